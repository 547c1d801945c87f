//! Workflows that are refused, and where their problems are.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, Server, custom_workflow, partition_node};
use crate::workflows::places;

async fn refused(client: &Client, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut body = custom_workflow("w");
    change(&mut body);
    places(&client.post_json("/workflows", &body).await)
}

#[tokio::test]
async fn names_and_keys_are_checked() {
    let server = Server::start().await;
    let client = server.client();
    let long = "ä".repeat(255);
    for name in [
        long.as_str(),
        "'; DROP TABLE workflows; --",
        "日本語 🙂",
        "<script>alert(1)</script>",
        "${HOME}",
    ] {
        let created = client.workflow(&custom_workflow(name)).await;
        assert_eq!(created["name"], name);
        assert_eq!(
            client.get(&format!("/workflows/{}", text(&created["key"]))).await.ok(),
            created
        );
    }
    for name in [
        json!(""),
        json!(" \t"),
        json!("x".repeat(256)),
        json!("x".repeat(500_000)),
        json!("a\r\nb"),
        json!("a\u{0}"),
        json!("\u{1b}[2J"),
        json!(7),
        json!({}),
        Value::Null,
    ] {
        assert_eq!(
            refused(&client, |body| body["name"] = name.clone()).await,
            ["body.name"],
            "{name}"
        );
    }
    // What looks like an id would stand for another workflow's after that one is gone.
    let id = "01a1feb6-f3a6-71a9-bb9e-3a692dee403a";
    assert_eq!(
        client.workflow(&custom_workflow(id)).await["key"],
        format!("workflow-{id}")
    );
    for key in [
        "",
        "-a",
        "a-",
        "a--b",
        "A",
        "a b",
        "ä",
        "a/b",
        "..",
        &"x".repeat(64),
        id,
    ] {
        assert_eq!(
            refused(&client, |body| body["key"] = json!(key)).await,
            ["body.key"],
            "{key}"
        );
    }
    let mut body = custom_workflow("same name");
    assert_eq!(client.workflow(&body).await["key"], "same-name");
    let second = client.workflow(&body).await;
    assert_ne!(second["key"], "same-name", "names may be equal, keys not");
    body["key"] = json!("same-name");
    let taken = client.post_json("/workflows", &body).await.error(409, "key_taken");
    assert!(text(&taken["detail"]).contains("same-name"));
    body["key"] = json!("chosen");
    assert_eq!(client.workflow(&body).await["key"], "chosen");
}

#[tokio::test]
async fn chains_and_fields_that_are_wrong_are_told_with_their_place() {
    let server = Server::start().await;
    let client = server.client();
    let node = |change: Value| {
        let mut node = partition_node();
        for (name, value) in change.as_object().expect("an object") {
            node[name] = value.clone();
        }
        node
    };
    let id = "01980000-0000-7000-8000-000000000001";
    let chunk = json!({"id": id, "name": "c", "type": "chunk", "subtype": "chunk_by_title"});
    for (nodes, place) in [
        (json!("partition"), "body.workflow_nodes"),
        (json!([]), "body.workflow_nodes"),
        (json!([1]), "body.workflow_nodes.0"),
        (json!([node(json!({"id": "7"}))]), "body.workflow_nodes.0.id"),
        (json!([node(json!({"id": id})), chunk]), "body.workflow_nodes.1.id"),
        (
            json!([node(json!({"subtype": "magic"}))]),
            "body.workflow_nodes.0.subtype",
        ),
        (
            json!([node(json!({"settings": {"strategy": "psychic"}}))]),
            "body.workflow_nodes.0.settings.strategy",
        ),
        (
            json!([
                partition_node(),
                {"name": "e", "type": "embed", "subtype": "voyageai", "settings": {"model_name": "voyage-3"}},
            ]),
            "body.workflow_nodes.1.subtype",
        ),
    ] {
        let mut body = custom_workflow("w");
        body["workflow_nodes"] = nodes.clone();
        let answer = client.post_json("/workflows", &body).await;
        answer.error(422, "chain_invalid");
        assert_eq!(places(&answer), [place], "{nodes}");
    }
    let gone = "01980000-0000-7000-8000-00000000abcd";
    for (name, value) in [
        ("workflow_type", json!("magic")),
        ("workflow_type", Value::Null),
        ("workflow_type", json!(1)),
        ("source_id", json!(gone)),
        ("source_id", json!(7)),
        ("source_id", json!("' OR 1=1 --")),
        ("destination_id", json!(gone)),
        ("destination_id", json!("x".repeat(100_000))),
        ("reprocess_all", json!("yes")),
        ("delete_removed_files", json!(1)),
        ("state", json!("asleep")),
        ("schedule_overlap", json!("queue")),
    ] {
        let found = refused(&client, |body| body[name] = value.clone()).await;
        assert_eq!(found, [format!("body.{name}")], "{value}");
    }
    let everything = json!({"name": 1, "workflow_type": "magic", "schedule": "at noon", "timezone": "Mars/Base",
        "reprocess_all": 1, "workflow_nodes": [{"name": "n"}]});
    let answer = client.post_json("/workflows", &everything).await;
    assert_eq!(answer.json()["code"], "validation_failed");
    assert!(places(&answer).len() >= 6, "all at once: {answer}");
    assert_eq!(client.get("/workflows").await.ok(), json!([]));
}

#[tokio::test]
async fn bodies_that_are_no_object_of_json_are_refused_quickly() {
    let server = Server::start().await;
    let client = server.client();
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let deep_settings = format!(
        r#"{{"name": "w", "workflow_type": "custom", "workflow_nodes": [{{"name": "n", "type": "partition",
            "subtype": "unstructured_api", "settings": {{"x": {}1{}}}}}]}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for path in ["/workflows", "/sources", "/destinations"] {
        for body in [
            "",
            "{",
            "[]",
            "null",
            "1",
            "{\"name\": NaN}",
            "{\"name\": 1e999}",
            "{} {}",
            &deep,
            &deep_settings,
        ] {
            let started = Instant::now();
            let answer = client.send_text(Method::POST, path, body.to_owned()).await;
            answer.error(422, "validation_failed");
            assert_eq!(places(&answer), ["body"]);
            assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        }
        let large = format!("{{\"name\": \"{}\"}}", "x".repeat(1_200_000));
        client
            .send_text(Method::POST, path, large)
            .await
            .error(413, "request_too_large");
        let request = client
            .request(Method::POST, path)
            .header("content-type", "text/plain")
            .body("{}");
        client.send(request).await.error(415, "unsupported_media_type");
        let request = client.request(Method::POST, path).body("{\"name\": 7}");
        assert!(
            places(&client.send(request).await).contains(&"body.name".to_owned()),
            "without a content type"
        );
        let request = client
            .request(Method::POST, path)
            .header("content-type", "application/json");
        let answer = client
            .send(request.body(vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']))
            .await;
        answer.error(422, "validation_failed");
    }
}
