//! Google Cloud Storage. The emulator takes any token, so a double of the token service checks what service
//! accounts sign, and a double of a listing checks what is asked for.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use docmill_connectors::{ErrorKind, open_source};
use docmill_model::connector::ConnectorRole;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::conformance::sources::{self, list};
use super::super::conformance::{destinations, environment, error, settings, source};
use super::super::servers::{Gate, Server, program};
use super::{Client, Store, common_names};

const PEM: &str = include_str!("service_account.pem");
const EMAIL: &str = "reader@project.example";

/// Serves HTTP: gives the answer to each request's head and body.
async fn double(answer: impl Fn(&str, &str) -> (u16, Value) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let (head, body) = loop {
                let mut bytes = [0; 8192];
                let length = stream.read(&mut bytes).await.unwrap();
                request.extend_from_slice(&bytes[..length]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let wanted = |head: &str| {
                    let line = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    line.map_or(0, |length| length.parse::<usize>().unwrap())
                };
                match text.split_once("\r\n\r\n") {
                    Some((head, body)) if body.len() >= wanted(head) => break (head.to_owned(), body.to_owned()),
                    _ if length == 0 => return,
                    _ => {}
                }
            };
            let (status, body) = answer(&head, &body);
            let body = body.to_string();
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    url
}

/// Hands out tokens to whom has signed with the service account's key.
async fn token_service() -> String {
    double(|_, body| {
        let form: Vec<_> = body.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let value = |name: &str| form.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let refused = json!({"error": "invalid_grant", "error_description": "Invalid JWT Signature."});
        if value("grant_type") != Some("urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer") {
            return (400, refused);
        }
        let parts: Vec<_> = value("assertion").unwrap_or_default().split('.').collect();
        let [header, claims, signature] = parts[..] else {
            return (400, refused);
        };
        let der = STANDARD
            .decode(PEM.lines().filter(|line| !line.starts_with('-')).collect::<String>())
            .unwrap();
        let key = RsaKeyPair::from_pkcs8(&der).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let read = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        let (text, header, claims) = (format!("{header}.{claims}"), read(header), read(claims));
        let scope = claims["scope"].as_str().unwrap();
        let good = public.verify(text.as_bytes(), &signature).is_ok()
            && header["alg"] == "RS256"
            && claims["iss"] == EMAIL
            && claims["aud"].as_str().unwrap().ends_with("/token")
            && scope.starts_with("https://www.googleapis.com/auth/devstorage.read_")
            && claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap() == 3_600;
        match good {
            true => (
                200,
                json!({"access_token": "token", "expires_in": 3_600, "token_type": "Bearer"}),
            ),
            false => (400, refused),
        }
    })
    .await
}

fn key_file(email: &str, token_service: &str) -> String {
    json!({
        "type": "service_account",
        "client_email": email,
        "private_key_id": "1",
        "private_key": PEM,
        "token_uri": format!("{token_service}/token"),
    })
    .to_string()
}

async fn start() -> Store {
    let script = program("tests/python/gcs_emulator.py");
    let script = script.to_str().expect("a path that is text");
    let arguments = [
        script,
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        "{port}",
        "--in-memory",
    ];
    let server = Server::start(".venv/bin/python", &arguments, &[]).await;
    let gate = Gate::before(server.port).await;
    let tokens = token_service().await;
    let client = Client::start("gcs", &json!({"url": server.url(), "bucket": "files"}));
    client.call(json!({"op": "create"})).await;
    let odd_names = common_names();
    Store {
        kind: "gcs",
        config: json!({
            "service_account_key": key_file(EMAIL, &tokens),
            "endpoint_url": gate.url(),
        }),
        wrong: Some(json!({"service_account_key": key_file("nobody@project.example", &tokens)})),
        bucket: "gs://files".into(),
        absent: "gs://absent".into(),
        odd_names,
        over_a_page: 1_050,
        client,
        gate,
        _server: server,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let store = start().await;
    sources::conforms(&store).await;
    destinations::conforms(&store).await;
}

#[tokio::test]
async fn pages_are_asked_for_one_after_the_other() {
    let url = double(|head, _| {
        let line = head.lines().next().unwrap();
        assert!(line.starts_with("GET /storage/v1/b/files/o?maxResults="), "{line}");
        if !head.contains("authorization: Bearer given") {
            return (401, json!({"error": {"message": "Invalid Credentials"}}));
        }
        let item = |name: &str| json!({"name": name, "generation": "1", "size": "1"});
        let after = line.contains("startOffset=d%2Fb");
        match (line.contains("pageToken="), line.contains("pageToken=second")) {
            (false, _) if after => (
                200,
                json!({"items": [item("d/b"), item("d/c")], "nextPageToken": "second"}),
            ),
            (false, _) => (
                200,
                json!({"items": [item("d/a"), item("d/b")], "nextPageToken": "second"}),
            ),
            // A page may be empty and not the last.
            (true, true) => (200, json!({"nextPageToken": "third"})),
            (true, false) => (200, json!({"items": [item("d/x/"), item("d/z")]})),
        }
    })
    .await;
    let open = |token: &str| {
        source(
            "gcs",
            &json!({"remote_url": "gs://files/d", "oauth_token": token, "endpoint_url": url}),
        )
    };
    let names = async |after: Option<&str>| {
        let objects = list(&*open("given"), after.map(str::to_owned)).await.unwrap();
        objects.into_iter().map(|object| object.name).collect::<Vec<_>>()
    };
    assert_eq!(names(None).await, ["a", "b", "x/", "z"]);
    assert_eq!(names(Some("d/b")).await, ["c", "x/", "z"]);
    let refused = error(list(&*open("old"), None).await, "a token that has ended");
    assert_eq!(refused.kind, ErrorKind::Unauthorized);
    assert!(!refused.message.contains("old"), "{refused}");

    let circle = double(|_, _| (200, json!({"nextPageToken": "same"}))).await;
    let circle = source("gcs", &json!({"remote_url": "gs://files", "endpoint_url": circle}));
    assert!(error(list(&*circle, None).await, "a circle").message.contains("circle"));
}

#[test]
fn settings_that_cannot_work_are_told() {
    let mut guarded = environment();
    guarded.egress = docmill_egress::Egress::new(docmill_egress::Policy::default());
    for (config, words) in [
        (json!({"service_account_key": "path/to/file.json"}), "is no JSON"),
        (json!({"service_account_key": "{}"}), "has no `type`"),
        (
            json!({"service_account_key": r#"{"type": "external_account"}"#}),
            "of type `external_account`",
        ),
        (
            json!({"service_account_key": r#"{"type": "service_account", "client_email": "a", "private_key": "b"}"#}),
            "no RSA key",
        ),
        (
            json!({"service_account_key": key_file(EMAIL, "http://169.254.169.254")}),
            "token_uri of service_account_key: plain http",
        ),
        (json!({"refresh_token": "r"}), "one is missing"),
        (json!({"remote_url": "gs://a b"}), "no name of a bucket"),
    ] {
        let mut config = config;
        if config.get("remote_url").is_none() {
            config["remote_url"] = "gs://files".into();
        }
        let Err(error) = open_source(&guarded, "gcs", &settings(ConnectorRole::Source, "gcs", &config)) else {
            panic!("{config} must be refused")
        };
        assert!(error.message.contains(words), "{config}: {error}");
    }
}
