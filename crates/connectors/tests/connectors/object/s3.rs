//! S3 and compatible services.

use docmill_connectors::{ErrorKind, Source, open_source};
use docmill_model::connector::ConnectorRole;
use futures_util::TryStreamExt;
use serde_json::{Value, json};

use super::super::conformance::sources::{self, list};
use super::super::conformance::{destinations, environment, error, settings, source};
use super::super::servers::{Gate, Server};
use super::{Client, Store, common_names};

const MOTO: &str = ".venv/bin/moto_server";

async fn start() -> (Store, Value) {
    // Three calls make a user; from then on signatures are checked.
    let server = Server::start(MOTO, &["-p", "{port}"], &[("INITIAL_NO_AUTH_ACTION_COUNT", "3")]).await;
    let gate = Gate::before(server.port).await;
    let client = Client::start("s3", &json!({"url": server.url(), "bucket": "files"}));
    let made = client.call(json!({"op": "create"})).await;
    let mut odd_names = common_names();
    odd_names.extend(
        [
            "/absolute",
            "a//b",
            "\u{1}control",
            "back\\slash",
            " ",
            "x/../../y",
            "x/./y",
            "..",
            "end/..",
        ]
        .map(str::to_owned),
    );
    let store = Store {
        kind: "s3",
        config: json!({
            "key": made["key"],
            "secret": made["secret"],
            "endpoint_url": gate.url(),
        }),
        wrong: Some(json!({"secret": "not the secret"})),
        bucket: "s3://files".into(),
        absent: "s3://absent".into(),
        odd_names,
        over_a_page: 1_050,
        client,
        gate,
        _server: server,
    };
    (store, made)
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let (store, _) = start().await;
    sources::conforms(&store).await;
    destinations::conforms(&store).await;
}

async fn keys(source: &dyn Source) -> Vec<String> {
    let objects = list(source, None).await.expect("a listing");
    objects.into_iter().map(|object| object.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_single_objects_and_roles() {
    let (store, made) = start().await;
    for key in [
        "docs/",
        "docs/a.txt",
        "docs/sub/b.txt",
        "docs/sub/",
        "docs2/c.txt",
        "top.txt",
        "old_$folder$",
    ] {
        let content: &[u8] = if key.ends_with(['/', '$']) { b"" } else { b"text" };
        store.client.put(key, content).await;
    }
    let open = |folder: &str, changes: &Value| source("s3", &store.config("s3://files", folder, Some(changes)));
    let names = async |folder: &str, changes: Value| keys(&*open(folder, &changes)).await;
    assert_eq!(names("docs", json!({})).await, ["a.txt", "sub/b.txt"]);
    assert_eq!(names("docs/", json!({"recursive": false})).await, ["a.txt"]);
    assert_eq!(names("", json!({"recursive": false})).await, ["top.txt"]);
    assert_eq!(names("top.txt", json!({})).await, ["top.txt"]);
    assert_eq!(names("docs/a.txt", json!({})).await, ["a.txt"]);
    assert_eq!(names("nothing", json!({})).await, [""; 0]);
    let object = list(&*open("docs", &json!({})), None).await.unwrap().remove(0);
    assert_eq!(object.data_source["url"], "s3://files/docs/a.txt");
    assert_eq!(object.data_source["version"], json!(object.version.unwrap()));
    assert_eq!(
        object.data_source["record_locator"],
        json!({"protocol": "s3", "remote_file_path": "s3://files/docs/a.txt"})
    );
    let modified = object.data_source["date_modified"].as_str().unwrap();
    assert!(modified.parse::<i64>().unwrap() > 1_700_000_000);

    let role = json!({"role_arn": made["role_arn"], "external_id": "outside"});
    assert_eq!(names("docs", role).await, ["a.txt", "sub/b.txt"]);
    let wrong = json!({"role_arn": made["role_arn"], "external_id": "wrong"});
    let refused = error(open("docs", &wrong).check().await, "a wrong external id");
    assert_eq!(refused.kind, ErrorKind::Unauthorized);
    assert!(refused.message.starts_with("cannot assume the role: "), "{refused}");
    let broken = json!({"token": "line\nbreak", "secret": "line\nbreak"});
    assert_eq!(
        error(open("docs", &broken).check().await, "nonsense").kind,
        ErrorKind::Invalid
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn public_buckets_need_no_credentials() {
    let server = Server::start(MOTO, &["-p", "{port}"], &[]).await;
    let url = server.url();
    let http = reqwest_put(&format!("{url}/open"), "").await;
    assert!(http.is_ok(), "{http:?}");
    reqwest_put(&format!("{url}/open/a.txt"), "hello").await.unwrap();
    let open = source(
        "s3",
        &json!({"remote_url": "s3://open", "anonymous": true, "endpoint_url": url}),
    );
    let objects: Vec<_> = open.list(None).try_collect().await.expect("a listing");
    assert_eq!(&*open.fetch(&objects[0], 10).await.unwrap(), b"hello");
}

async fn reqwest_put(url: &str, body: &'static str) -> Result<(), docmill_connectors::ConnectorError> {
    // The double serves public objects only without credentials, as the real one does.
    let client = environment().egress.http_client(std::time::Duration::from_secs(10))?;
    let response = client
        .request(reqwest::Method::PUT, url)
        .header("x-amz-acl", "public-read")
        .body(body)
        .send()
        .await
        .expect("an answer");
    assert!(response.status().is_success(), "{response:?}");
    Ok(())
}

#[test]
fn settings_that_cannot_work_are_told() {
    let good = json!({"remote_url": "s3://bucket/x", "key": "k", "secret": "s"});
    let open = |changes: Value, guarded: bool| {
        let mut config = good.clone();
        for (name, value) in changes.as_object().unwrap() {
            config[name.as_str()] = value.clone();
        }
        let mut environment = environment();
        if guarded {
            environment.egress = docmill_egress::Egress::new(docmill_egress::Policy::default());
        }
        open_source(&environment, "s3", &settings(ConnectorRole::Source, "s3", &config))
    };
    assert!(open(json!({}), true).is_ok());
    for (changes, kind, words) in [
        (json!({"remote_url": "bucket"}), ErrorKind::Invalid, "is no URL"),
        (
            json!({"remote_url": "gs://bucket"}),
            ErrorKind::Invalid,
            "another scheme",
        ),
        (json!({"remote_url": "s3://"}), ErrorKind::Invalid, "names no bucket"),
        (
            json!({"remote_url": "s3://evil.example:1?/x"}),
            ErrorKind::Invalid,
            "no name of a bucket",
        ),
        (
            json!({"remote_url": "s3://a@b/x"}),
            ErrorKind::Invalid,
            "no name of a bucket",
        ),
        (
            json!({"remote_url": "s3://../x"}),
            ErrorKind::Invalid,
            "no name of a bucket",
        ),
        (json!({"region": "evil.example/"}), ErrorKind::Invalid, "region must be"),
        (json!({"key": null}), ErrorKind::Invalid, "one of them is missing"),
        (
            json!({"key": null, "secret": null}),
            ErrorKind::Invalid,
            "no credentials",
        ),
        (json!({"anonymous": true}), ErrorKind::Invalid, "anonymous means"),
        (
            json!({"key": null, "secret": null, "anonymous": true, "role_arn": "r"}),
            ErrorKind::Invalid,
            "role_arn needs",
        ),
        (
            json!({"key": null, "secret": null, "ambient_credentials": true}),
            ErrorKind::Forbidden,
            "not permitted on this server",
        ),
        (
            json!({"endpoint_url": "http://example.com"}),
            ErrorKind::Forbidden,
            "plain http",
        ),
        (
            json!({"endpoint_url": "https://169.254.169.254"}),
            ErrorKind::Forbidden,
            "link-local",
        ),
        (
            json!({"sts_endpoint_url": "https://10.0.0.1"}),
            ErrorKind::Forbidden,
            "private",
        ),
        (
            json!({"endpoint_url": "https://u:p@example.com"}),
            ErrorKind::Forbidden,
            "user name",
        ),
        (
            json!({"endpoint_url": "https://example.com/?x=1"}),
            ErrorKind::Invalid,
            "no query",
        ),
    ] {
        let Err(error) = open(changes.clone(), true) else {
            panic!("{changes} must be refused")
        };
        assert!(
            error.kind == kind && error.message.contains(words),
            "{changes}: {error:?}"
        );
    }
}
