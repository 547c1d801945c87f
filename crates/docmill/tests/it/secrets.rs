//! Secrets of connectors are in no answer, no log and no file of the server.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, Server, until};

const CANARY: &str = "canary-7b1f0c5e";
const MASK: &str = "**********";

/// Looks for `secret` in everything the server has written.
pub(crate) fn assert_nowhere(server: &Server, secret: &str) {
    let files = server.files_below("");
    assert!(files.len() > 2, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "the secret is in {}", file.display());
    }
    assert!(!server.log().contains(secret), "the secret is in the log");
}

/// Settings that fit a schema, with a secret of its own wherever one may stand; whether there is any.
fn settings(schema: &Value) -> (Value, bool) {
    let mut config = json!({});
    let mut secret = false;
    for (name, property) in schema["properties"].as_object().expect("properties") {
        if property["writeOnly"] == true {
            config[name] = json!(format!("{CANARY}-{name}"));
            secret = true;
        } else if schema["required"].as_array().expect("a list").contains(&json!(name)) {
            config[name] = match (text(&property["type"]), name.as_str()) {
                ("string", "host") => json!("db.invalid"),
                ("string", "remote_url") => json!("s3://bucket/prefix"),
                ("string", "url") => json!("https://service.invalid"),
                ("string", _) => json!("elements"),
                ("array", "hosts") => json!(["https://service.invalid"]),
                ("array", _) => json!(["elements"]),
                ("integer", _) => property["minimum"].clone(),
                (_, _) => json!(true),
            };
        }
    }
    (config, secret)
}

async fn try_everything(client: &Client, role: &str, kind: &str, schema: &Value) -> bool {
    let (config, secret) = settings(schema);
    let body = json!({"name": format!("{kind} with secrets"), "type": kind, "config": config});
    let answer = client.post_json(&format!("/{role}s"), &body).await;
    assert!(!answer.to_string().contains(CANARY), "{kind}: {answer}");
    if answer.status != 200 || !secret {
        // Refused settings must not be told back either; that is all there is to see here.
        return false;
    }
    let created = answer.json();
    for (name, value) in config.as_object().expect("an object") {
        let expected = if text(value_or(value)).starts_with(CANARY) {
            &json!(MASK)
        } else {
            value
        };
        assert_eq!(created["config"][name], *expected, "{kind} {name}");
    }
    let path = format!("/{role}s/{}", text(&created["id"]));
    let mut answers = vec![
        client.get(&path).await,
        client.get(&format!("/{role}s")).await,
        client.put_json(&path, &json!({"config": created["config"]})).await,
        client
            .put_json(&path, &json!({"config": {"nonsense": format!("{CANARY}-wrong")}}))
            .await,
        client.post(&format!("{path}/connection-check")).await,
    ];
    assert_eq!(
        answers[2].ok()["config"],
        created["config"],
        "masks sent back keep the secrets"
    );
    // The check fails, and says why without saying what it used.
    let check = until("the check to end", async || {
        let answer = client.get(&format!("{path}/connection-check")).await;
        (answer.ok()["status"] != "SCHEDULED").then_some(answer)
    })
    .await;
    assert_eq!(check.ok()["status"], "FAILURE", "{kind}: {check}");
    assert!(text(&check.ok()["reason"]).len() > 10, "{check}");
    answers.push(check);
    answers.push(client.delete(&path).await);
    for answer in answers {
        assert!(!answer.to_string().contains(CANARY), "{kind}: {answer}");
    }
    true
}

fn value_or(value: &Value) -> &Value {
    static NONE: Value = Value::Null;
    static EMPTY: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| json!(""));
    if value.is_string() && *value != NONE {
        value
    } else {
        &EMPTY
    }
}

#[tokio::test]
async fn secrets_of_every_type_stay_secret() {
    // Everything is logged that ever can be.
    let server = Server::with(&[("LOG__LEVEL", "trace")]).await;
    let client = server.client();
    let types = client.get("/connectors").await.ok();
    let mut tried = Vec::new();
    for kind in types.as_array().expect("a list") {
        for role in ["source", "destination"] {
            let name = text(&kind["type"]);
            if kind[role].is_object() && try_everything(&client, role, name, &kind[role]).await {
                tried.push(format!("{name} {role}"));
            }
        }
    }
    assert!(tried.contains(&"postgres source".to_owned()), "{tried:?}");
    assert!(tried.contains(&"postgres destination".to_owned()), "{tried:?}");
    assert_nowhere(&server, CANARY);
}

#[tokio::test]
async fn a_secret_survives_an_update_that_sends_its_mask_and_only_that() {
    let server = Server::start().await;
    let client = server.client();
    let config = json!({"host": "db.invalid", "database": "d", "port": 5432, "username": "u", "password": "first-secret",
        "table_name": "t", "batch_size": 10});
    let body = json!({"name": "db", "type": "postgres", "config": config});
    let created = client.post_json("/destinations", &body).await.ok();
    assert_eq!(created["config"]["password"], MASK);
    let path = format!("/destinations/{}", text(&created["id"]));
    let mut update = created["config"].clone();
    update["table_name"] = json!("other");
    let updated = client.put_json(&path, &json!({"config": update})).await.ok();
    assert_eq!(
        (&updated["config"]["table_name"], &updated["config"]["password"]),
        (&json!("other"), &json!(MASK))
    );
    assert!(updated["updated_at"].is_string());
    // The stored password is not sent to a server it was not given for.
    update["host"] = json!("other.invalid");
    let answer = client.put_json(&path, &json!({"config": update})).await;
    assert_eq!(crate::workflows::places(&answer), ["body.config.password"]);
    update["password"] = json!("second-secret");
    client.put_json(&path, &json!({"config": update})).await.ok();
    // Where nothing is stored the mask is no password.
    let mut masked = body.clone();
    masked["config"]["password"] = json!(MASK);
    let answer = client.post_json("/destinations", &masked).await;
    assert_eq!(crate::workflows::places(&answer), ["body.config.password"]);
    let request = client
        .request(Method::PUT, &path)
        .header("content-type", "application/json");
    client.send(request.body("{}")).await.error(422, "validation_failed");
    assert_nowhere(&server, "first-secret");
}
