//! Azure Blob Storage.

use docmill_connectors::ErrorKind;
use serde_json::{Value, json};

use super::super::conformance::sources::{self, list};
use super::super::conformance::{destinations, error, source};
use super::super::servers::{Gate, Server};
use super::{Client, Store, common_names};

/// The emulator's own account, published in its documentation.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

async fn start() -> Store {
    let arguments = [
        "--inMemoryPersistence",
        "--silent",
        "--disableTelemetry",
        "--skipApiVersionCheck",
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "{port}",
    ];
    let server = Server::start("tests/node/node_modules/.bin/azurite-blob", &arguments, &[]).await;
    let gate = Gate::before(server.port).await;
    let string = format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={}/{ACCOUNT};",
        server.url()
    );
    let client = Client::start("azure", &json!({"connection_string": string, "container": "files"}));
    client.call(json!({"op": "create"})).await;
    let mut odd_names = common_names();
    odd_names.extend(["new\nline", "a//b", " x"].map(str::to_owned));
    Store {
        kind: "azure",
        config: json!({
            "account_name": ACCOUNT,
            "account_key": KEY,
            "endpoint_url": format!("{}/{ACCOUNT}", gate.url()),
        }),
        wrong: Some(json!({"account_key": "bm90IHRoZSBrZXk="})),
        bucket: "az://files".into(),
        absent: "az://absent".into(),
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

#[tokio::test(flavor = "multi_thread")]
async fn folders_signatures_and_connection_strings() {
    let store = start().await;
    for key in ["docs/a.txt", "docs/sub/b.txt", "docs2/c.txt"] {
        store.client.put(key, b"text").await;
    }
    let names = async |config: Value| {
        let objects = list(&*source("azure", &config), None).await?;
        Ok::<_, docmill_connectors::ConnectorError>(objects.into_iter().map(|object| object.name).collect::<Vec<_>>())
    };
    let flat = json!({"recursive": false});
    assert_eq!(
        names(store.config("az://files", "docs", Some(&flat))).await.unwrap(),
        ["a.txt"]
    );
    let service = store.config["endpoint_url"].as_str().unwrap().to_owned();
    let string = format!("AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={service}");
    let by_string = json!({"remote_url": "az://files/docs/", "connection_string": string});
    assert_eq!(names(by_string).await.unwrap(), ["a.txt", "sub/b.txt"]);

    let signature = store.client.call(json!({"op": "sign"})).await;
    let by_signature = |signature: &str| {
        json!({
            "remote_url": "az://files/docs",
            "account_name": ACCOUNT,
            "sas_token": signature,
            "endpoint_url": service,
        })
    };
    let signature = signature.as_str().unwrap();
    assert_eq!(names(by_signature(signature)).await.unwrap(), ["a.txt", "sub/b.txt"]);
    let forged = signature.replace("sp=rl", "sp=rwl");
    assert_ne!(forged, signature);
    let refused = error(names(by_signature(&forged)).await, "a forged signature");
    assert_eq!(refused.kind, ErrorKind::Unauthorized);
    assert!(!refused.message.contains("sig="), "{refused}");
    let nobody = json!({"remote_url": "az://files", "account_name": ACCOUNT, "endpoint_url": service});
    assert!(!error(names(nobody).await, "nobody").retryable());
}
