//! PostgreSQL, against a real server.

use std::sync::Arc;

use async_trait::async_trait;
use docmill_connectors::{Destination, Document, ErrorKind, Source};
use docmill_testkit::Postgres;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::conformance::destinations::{self, DestinationRig, document};
use super::conformance::sources::{self, SourceRig, list};
use super::conformance::{destination, error, source};

struct Rig {
    server: Postgres,
    table: &'static str,
}

impl Rig {
    async fn new(table: &'static str, statements: &str) -> Self {
        let rig = Self {
            server: Postgres::start(),
            table,
        };
        rig.run(statements).await;
        rig
    }

    async fn run(&self, statements: &str) {
        self.server
            .client()
            .await
            .batch_execute(statements)
            .await
            .expect("statements");
    }

    fn config(&self, changes: &Value) -> Value {
        let mut config = json!({
            "host": "127.0.0.1",
            "port": self.server.port(),
            "database": Postgres::DATABASE,
            "username": Postgres::USER,
            "password": Postgres::PASSWORD,
            "table_name": self.table,
            "batch_size": 50,
        });
        for (name, value) in changes.as_object().unwrap() {
            config[name] = value.clone();
        }
        config
    }

    fn source_with(&self, changes: &Value) -> Arc<dyn Source> {
        source("postgres", &self.config(changes))
    }

    fn destination_with(&self, changes: &Value) -> Arc<dyn Destination> {
        destination("postgres", &self.config(changes))
    }
}

#[async_trait]
impl SourceRig for Rig {
    fn source(&self) -> Arc<dyn Source> {
        self.source_with(&json!({"fields": ["body"]}))
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Source>> {
        Some(self.source_with(&json!({"password": "wrong"})))
    }

    fn absent(&self) -> Arc<dyn Source> {
        self.source_with(&json!({"table_name": "absent"}))
    }

    async fn write(&self, name: &str, content: &[u8]) {
        let client = self.server.client().await;
        let sql = "INSERT INTO files (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body";
        client
            .execute(sql, &[&name, &std::str::from_utf8(content).unwrap()])
            .await
            .unwrap();
    }

    async fn remove(&self, name: &str) {
        let client = self.server.client().await;
        client
            .execute("DELETE FROM files WHERE id = $1", &[&name])
            .await
            .unwrap();
    }

    fn odd_names(&self) -> Vec<String> {
        let mut names: Vec<String> = [
            "",
            " ",
            "'",
            "\"",
            "\\",
            "a/b",
            "../x",
            "new\nline",
            "\u{1f600}",
            "\u{202e}",
            "%",
            "NULL",
            "$1",
            "'; DROP TABLE files; --",
        ]
        .map(str::to_owned)
        .into();
        names.push("n".repeat(2_000));
        names
    }

    async fn power(&self, on: bool) -> bool {
        self.server.power(on);
        true
    }

    fn over_a_page(&self) -> usize {
        120
    }
}

#[async_trait]
impl DestinationRig for Rig {
    fn destination(&self) -> Arc<dyn Destination> {
        self.destination_with(&json!({}))
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Destination>> {
        Some(self.destination_with(&json!({"password": "wrong"})))
    }

    fn absent(&self) -> Option<Arc<dyn Destination>> {
        Some(self.destination_with(&json!({"table_name": "absent"})))
    }

    async fn texts(&self, document: &Document) -> Vec<String> {
        let sql = format!("SELECT text FROM {} WHERE record_id = $1", self.table);
        let rows = self
            .server
            .client()
            .await
            .query(&sql, &[&document.record_id])
            .await
            .unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn total(&self) -> usize {
        let sql = format!("SELECT count(*) FROM {}", self.table);
        let count: i64 = self.server.client().await.query_one(&sql, &[]).await.unwrap().get(0);
        count.try_into().unwrap()
    }

    async fn power(&self, on: bool) -> bool {
        self.server.power(on);
        true
    }

    fn kept(&self, text: &str) -> String {
        text.replace('\0', "\u{fffd}")
    }
}

const FILES: &str = "CREATE TABLE files (id text PRIMARY KEY, body text)";

/// As users of other services for the same purpose have it.
const FLAT: &str = "CREATE TABLE elements (id UUID PRIMARY KEY, record_id VARCHAR, element_id VARCHAR, text TEXT, \
    embeddings DECIMAL [], parent_id VARCHAR, page_number INTEGER, is_continuation BOOLEAN, orig_elements TEXT, \
    noted timestamptz DEFAULT now())";

#[tokio::test(flavor = "multi_thread")]
async fn a_table_conforms_as_a_source() {
    sources::conforms(&Rig::new("files", FILES).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flat_table_conforms_as_a_destination() {
    let rig = Rig::new("elements", FLAT).await;
    destinations::conforms(&rig).await;
    rig.destination().put(&document(1, "a", &["one".into()])).await.unwrap();
    let sql = "SELECT element_id, embeddings::float8[], page_number, noted IS NOT NULL FROM elements";
    let row = rig.server.client().await.query_one(sql, &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), format!("{:032x}", 3));
    assert_eq!(row.get::<_, Vec<f64>>(1), [0.25, -1.5, 3.0]);
    assert_eq!(row.get::<_, i32>(2), 1);
    assert!(
        row.get::<_, bool>(3),
        "columns docmill knows nothing of keep their defaults"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_vectors_is_made_and_filled() {
    let table = "\"My reports\".\"Ele\"\"ments\"";
    let rig = Rig::new(table, "CREATE EXTENSION vector; CREATE SCHEMA \"My reports\"").await;
    let made = rig.destination_with(&json!({"create_table": true}));
    made.check().await.unwrap();
    made.delete("absent", "absent").await.unwrap();
    let advice = error(rig.destination().check().await, "a table that is not there");
    assert!(advice.message.contains("CREATE TABLE"), "{advice}");
    let documents: Vec<_> = (1..9)
        .map(|number| document(number, "a", &["one".into(), "two".into()]))
        .collect();
    let puts = documents.iter().map(|document| made.put(document));
    for put in futures_util::future::join_all(puts).await {
        put.unwrap();
    }
    assert_eq!(rig.total().await, 16);
    let sql = format!(
        "SELECT format_type(atttypid, atttypmod), (SELECT min(embeddings <-> '[0.25,-1.5,3]') FROM {table}), (SELECT \
         metadata->'data_source'->>'version' FROM {table} LIMIT 1) FROM pg_attribute WHERE attrelid = $1::text::regclass \
         AND attname = 'embeddings'"
    );
    let row = rig.server.client().await.query_one(&sql, &[&table]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "vector(3)");
    assert_eq!(row.get::<_, f64>(1), 0.0);
    assert_eq!(row.get::<_, String>(2), "1");
    let mut longer = document(1, "a", &["one".into()]);
    longer.elements = r#"[{"element_id": "x", "text": "t", "embeddings": [1, 2, 3, 4]}]"#.into();
    let wrong = error(made.put(&longer).await, "a vector of another length");
    assert!(wrong.message.contains("dimensions") && !wrong.retryable(), "{wrong}");
    assert_eq!(
        rig.texts(&documents[0]).await.len(),
        2,
        "the transaction was rolled back"
    );
    made.put(&documents[0]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_can_not_work_are_refused_with_advice() {
    let rig = Rig::new(
        "elements",
        "CREATE TABLE no_record (id uuid PRIMARY KEY); CREATE TABLE no_id (record_id text); CREATE TABLE no_key (id \
         uuid, record_id text); CREATE TABLE number (id int PRIMARY KEY, record_id text); CREATE TABLE fine (id uuid \
         PRIMARY KEY, record_id text); CREATE ROLE reader LOGIN PASSWORD 'r'; GRANT SELECT ON fine TO reader",
    )
    .await;
    for (table, advice) in [
        ("no_record", "ADD COLUMN record_id"),
        ("no_id", "ADD COLUMN id"),
        ("no_key", "ADD PRIMARY KEY"),
        ("number", "must be of type uuid"),
    ] {
        let error = error(rig.destination_with(&json!({"table_name": table})).check().await, table);
        assert!(
            error.kind == ErrorKind::Invalid && error.message.contains(advice),
            "{error}"
        );
    }
    let reader = json!({"username": "reader", "password": "r", "table_name": "fine"});
    let refused = error(rig.destination_with(&reader).check().await, "a user who may only read");
    assert!(
        refused.kind == ErrorKind::Unauthorized && refused.message.contains("INSERT"),
        "{refused}"
    );
    let fine = rig.destination_with(&json!({"table_name": "fine"}));
    let refused = error(
        fine.put(&document(1, "a", &["t".into()])).await,
        "no place for embeddings",
    );
    assert!(refused.message.contains("embeddings"), "{refused}");
    for (changes, kind) in [
        (json!({"database": "absent"}), ErrorKind::Missing),
        (json!({"username": "nobody"}), ErrorKind::Unauthorized),
        (json!({"table_name": "a.b.c.d"}), ErrorKind::Invalid),
        (json!({"table_name": "fine; DROP TABLE fine"}), ErrorKind::Missing),
        (json!({"port": docmill_testkit::free_port()}), ErrorKind::Unavailable),
        (json!({"sslmode": "require"}), ErrorKind::Invalid),
    ] {
        let error = error(rig.destination_with(&changes).check().await, "a check");
        assert_eq!(error.kind, kind, "{error}");
        assert!(!error.message.contains(Postgres::PASSWORD));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_become_texts_tables_or_files() {
    let rig = Rig::new(
        "\"Odd \"\"table\"",
        "CREATE TABLE \"Odd \"\"table\" (\"Key\" bigint PRIMARY KEY, title text, \"a,\"\"b\" jsonb, raw bytea, at \
         timestamptz); INSERT INTO \"Odd \"\"table\" SELECT n, 'Title \"' || n || '\"', '{\"x\": 1}', '\\xff00', \
         '2024-05-06 07:08:09+02' FROM generate_series(-5, 300) n; CREATE VIEW seen AS SELECT * FROM \"Odd \"\"table\"; \
         CREATE TABLE twins (id int, body text); INSERT INTO twins VALUES (1, 'a'), (1, 'b'), (2, NULL), (NULL, 'c')",
    )
    .await;
    let fetch = async |changes: &Value, index: usize| {
        let source = rig.source_with(changes);
        source.check().await.unwrap();
        let objects = list(&*source, None).await.unwrap();
        let bytes = source.fetch(&objects[index], 1_000).await;
        (objects.len(), objects[index].clone(), bytes)
    };
    let (count, object, bytes) = fetch(
        &json!({"id_column": "Key", "fields": ["Key", "title", "a,\"b", "at"]}),
        6,
    )
    .await;
    assert_eq!(
        (count, &*object.locator, &*object.name),
        (306, "1", "Odd \"table/1.csv")
    );
    let csv = "\"Key\",\"title\",\"a,\"\"b\",\"at\"\r\n\"1\",\"Title \"\"1\"\"\",\"{\"\"x\"\": 1}\",\"2024-05-06 05:08:09+00\"\r\n";
    assert_eq!(std::str::from_utf8(&bytes.unwrap()).unwrap(), csv);
    let (_, object, bytes) = fetch(&json!({"id_column": "Key", "fields": ["raw"]}), 0).await;
    assert_eq!(
        (&*object.locator, &*bytes.unwrap(), object.content_type),
        ("-5", &b"\xff\0"[..], None)
    );
    let (_, _, bytes) = fetch(&json!({"id_column": "Key"}), 0).await;
    assert!(bytes.unwrap().starts_with(b"\"Key\",\"title\""));

    // Views have no versions of their own.
    let view = json!({"table_name": "seen", "id_column": "Key", "fields": ["title"]});
    let before = fetch(&view, 6).await.1;
    assert_eq!(fetch(&view, 6).await.1, before);
    rig.run("UPDATE \"Odd \"\"table\" SET title = 'new' WHERE \"Key\" = 1")
        .await;
    let (_, after, bytes) = fetch(&view, 6).await;
    assert_ne!(after.version, before.version);
    assert_eq!(&*bytes.unwrap(), b"new");

    let (count, _, bytes) = fetch(&json!({"table_name": "twins"}), 0).await;
    assert_eq!(count, 3);
    assert_eq!(error(bytes, "two rows of one name").kind, ErrorKind::Invalid);
    let nothing = fetch(&json!({"table_name": "twins", "fields": ["body"]}), 2).await.2;
    assert_eq!(&*nothing.unwrap(), b"");
    let wrong = rig.source_with(&json!({"id_column": "id; DROP TABLE twins"}));
    let wrong = error(wrong.check().await, "no such column");
    assert!(
        wrong.kind == ErrorKind::Invalid && wrong.message.contains("Key"),
        "{wrong}"
    );
}

/// A server in front of PostgreSQL that speaks TLS, as load balancers of providers do.
async fn tls_front(address: &str, behind: u16) -> u16 {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../egress/tests/tls");
    use rustls::pki_types::pem::PemObject;
    let chain = rustls::pki_types::CertificateDer::pem_file_iter(directory.join("server.pem")).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::from_pem_file(directory.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind((address, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut request = [0; 8];
                stream.read_exact(&mut request).await?;
                assert_eq!(
                    request,
                    [0, 0, 0, 8, 4, 210, 22, 47],
                    "nothing is sent before encryption"
                );
                stream.write_all(b"S").await?;
                let mut stream = acceptor.accept(stream).await?;
                let mut server = tokio::net::TcpStream::connect(("127.0.0.1", behind)).await?;
                tokio::io::copy_bidirectional(&mut stream, &mut server).await
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_as_asked() {
    let rig = Rig::new("files", FILES).await;
    let port = tls_front("127.0.0.1", rig.server.port()).await;
    let other = tls_front("127.0.0.2", rig.server.port()).await;
    let ca =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../egress/tests/tls/ca.pem"))
            .unwrap();
    let check = async |mode: &str, host: &str, ca: Option<&str>| {
        let port = if host == "127.0.0.2" { other } else { port };
        let config = json!({"port": port, "sslmode": mode, "host": host, "ssl_root_cert": ca});
        rig.source_with(&config).check().await
    };
    for mode in ["prefer", "require"] {
        check(mode, "127.0.0.1", None).await.unwrap();
    }
    check("verify-full", "localhost", Some(&ca)).await.unwrap();
    for (result, what) in [
        (
            check("verify-full", "localhost", None).await,
            "an authority nobody knows",
        ),
        (check("verify-full", "127.0.0.2", Some(&ca)).await, "another name"),
    ] {
        let error = error(result, what);
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
        assert!(error.message.contains("certificate"), "{error}");
    }
    let open = |changes: &Value| {
        let config = rig.config(changes);
        let settings =
            super::conformance::settings(docmill_model::connector::ConnectorRole::Source, "postgres", &config);
        docmill_connectors::open_source(&super::conformance::environment(), "postgres", &settings)
    };
    for bad in [
        json!({"sslmode": "tls"}),
        json!({"sslmode": "verify-full", "ssl_root_cert": "junk"}),
    ] {
        assert_eq!(error(open(&bad), "settings that can't work").kind, ErrorKind::Invalid);
    }
}
