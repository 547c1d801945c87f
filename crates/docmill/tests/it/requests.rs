//! `request_data` in all its wrong forms.

use std::time::{Duration, Instant};

use reqwest::Method;
use reqwest::multipart::Form;
use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Answer, Client, Server, partition_node, partition_only};

async fn send(client: &Client, request_data: String) -> Answer {
    let form = Form::new().text("request_data", request_data);
    client.send(client.request(Method::POST, "/jobs").multipart(form)).await
}

#[tokio::test]
async fn what_is_not_an_object_of_json_is_refused_quickly() {
    let server = Server::start().await;
    let client = server.client();
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let deeper = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for (data, kind) in [
        ("", "json_invalid"),
        ("{", "json_invalid"),
        ("{'job_nodes': []}", "json_invalid"),
        ("{\"job_nodes\": NaN}", "json_invalid"),
        ("{\"job_nodes\": Infinity}", "json_invalid"),
        ("{\"job_nodes\": 1e999}", "json_invalid"),
        ("{} {}", "json_invalid"),
        (deep.as_str(), "json_invalid"),
        (deeper.as_str(), "json_invalid"),
        ("[]", "dict_type"),
        ("null", "dict_type"),
        ("\"text\"", "dict_type"),
        ("1", "dict_type"),
    ] {
        let started = Instant::now();
        let body = send(&client, data.to_owned()).await.error(422, "validation_failed");
        let problem = &body["detail"][0];
        assert_eq!(
            (&problem["loc"], &problem["type"]),
            (&json!(["body", "request_data"]), &json!(kind))
        );
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{kind} took {:?}",
            started.elapsed()
        );
    }
    let form = Form::new().text("other", "x");
    let body = client
        .send(client.request(Method::POST, "/jobs").multipart(form))
        .await
        .error(422, "validation_failed");
    assert_eq!(
        body["detail"],
        json!([{"loc": ["body", "request_data"], "msg": "field required", "type": "missing"}])
    );
    let empty = client.post("/jobs").await;
    empty.error(415, "unsupported_media_type");
}

#[tokio::test]
async fn chains_that_can_not_run_are_refused_node_by_node() {
    let server = Server::start().await;
    let client = server.client();
    let node = |kind: &str, subtype: &str, settings: Value| json!({"name": "n", "type": kind, "subtype": subtype, "settings": settings});
    let at = |rest: Value| {
        let mut loc = vec![json!("body"), json!("request_data"), json!("job_nodes")];
        loc.extend(rest.as_array().expect("a list").clone());
        Value::Array(loc)
    };
    let cases: Vec<(Value, Value)> = vec![
        (json!("partition"), json!([])),
        (json!([]), json!([])),
        (json!([1]), json!([0])),
        (json!([{}]), json!([0, "name"])),
        (json!([{"name": "n", "type": "partition"}]), json!([0, "subtype"])),
        (
            json!([{"name": 1, "type": "partition", "subtype": "vlm"}]),
            json!([0, "name"]),
        ),
        (json!([node("shred", "finely", json!({}))]), json!([0, "type"])),
        (json!([node("partition", "magic", json!({}))]), json!([0, "subtype"])),
        (
            json!([node("partition", "unstructured_api", json!([]))]),
            json!([0, "settings"]),
        ),
        (
            json!([node("partition", "unstructured_api", json!({"strategy": "psychic"}))]),
            json!([0, "settings", "strategy"]),
        ),
        (
            json!([node("partition", "unstructured_api", json!({"strategy": 1}))]),
            json!([0, "settings", "strategy"]),
        ),
        (
            json!([node("partition", "unstructured_api", json!({"strategie": "fast"}))]),
            json!([0, "settings", "strategie"]),
        ),
        (json!([node("chunk", "chunk_by_title", json!({}))]), json!([0])),
        (json!([partition_node(), partition_node()]), json!([1])),
        (
            json!([partition_node(), node("chunk", "chunk_by_mood", json!({}))]),
            json!([1, "subtype"]),
        ),
        (
            json!([
                partition_node(),
                node("chunk", "chunk_by_title", json!({"max_characters": -1}))
            ]),
            json!([1, "settings", "max_characters"]),
        ),
        (
            json!([
                partition_node(),
                node("chunk", "chunk_by_title", json!({"max_characters": 1e300}))
            ]),
            json!([1, "settings", "max_characters"]),
        ),
        (
            json!([
                partition_node(),
                node("chunk", "chunk_by_title", json!({"max_characters": 0}))
            ]),
            json!([1, "settings", "max_characters"]),
        ),
        (
            json!([
                partition_node(),
                node("chunk", "chunk_by_title", json!({"max_characters": "many"}))
            ]),
            json!([1, "settings", "max_characters"]),
        ),
        (
            json!([
                partition_node(),
                node("embed", "azure_openai", json!({"model_name": "x"}))
            ]),
            json!([1, "subtype"]),
        ),
        (
            json!([{"id": "7", "name": "n", "type": "partition", "subtype": "vlm"}]),
            json!([0, "id"]),
        ),
    ];
    for (nodes, loc) in cases {
        let started = Instant::now();
        let answer = send(&client, json!({"job_nodes": nodes}).to_string()).await;
        let body = answer.json();
        assert_eq!(answer.status, 422, "{nodes}: {answer}");
        assert!(["chain_invalid", "validation_failed"].contains(&text(&body["code"])));
        let locs: Vec<_> = body["detail"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|p| p["loc"].clone())
            .collect();
        assert!(locs.contains(&at(loc.clone())), "{nodes}: {locs:?}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
    let many = json!({"job_nodes": vec![partition_node(); 10_000]});
    send(&client, many.to_string()).await.error(422, "chain_invalid");
    let neither = send(&client, "{}".into()).await.error(422, "validation_failed");
    assert_eq!(
        neither["detail"][0]["loc"],
        json!(["body", "request_data", "job_nodes"])
    );
    for template in [json!(1), json!([]), json!("x".repeat(100_000)), json!("\u{0}\r\n")] {
        send(&client, json!({"template_id": template}).to_string())
            .await
            .error(422, "validation_failed");
    }
    assert_eq!(client.get("/jobs").await.ok(), json!([]));
}

#[tokio::test]
async fn text_of_the_request_is_data_wherever_it_ends_up() {
    let server = Server::start().await;
    let client = server.client();
    let evil = "x\r\n2026-01-01T00:00:00Z ERROR forged \u{1b}[2J '; DROP TABLE jobs; -- \0 {{7*7}} ${HOME}";
    let mut node = partition_node();
    node["name"] = json!(evil);
    let job = client.run(&json!({"job_nodes": [node]}), &[]).await;
    assert_eq!(
        client.details(text(&job["id"])).await["node_stats"][0]["node_name"],
        evil
    );
    for wrong in [
        json!({"template_id": evil}),
        json!({"job_nodes": [{"name": "n", "type": evil, "subtype": evil}]}),
    ] {
        client.create(&wrong, &[]).await.json();
    }
    for path in ["/jobs/x%0d%0aforged", "/%1b[2Jforged", "/jobs?status=x%0d%0aforged"] {
        client.get(path).await;
    }
    assert_eq!(client.get("/jobs").await.ok().as_array().map(Vec::len), Some(1));
    let log = server.log();
    assert!(
        !log.lines()
            .any(|line| line.starts_with("2026-01-01") || line.starts_with("forged")),
        "{log}"
    );
    assert!(!log.contains('\u{1b}') && !log.contains('\0'));
}

#[tokio::test]
async fn unknown_fields_beside_the_chain_are_ignored() {
    let server = Server::start().await;
    let client = server.client();
    let mut data = partition_only();
    data["status"] = json!("COMPLETED");
    data["id"] = json!("01980000-0000-7000-8000-00000000abcd");
    data["workspace_id"] = json!("01980000-0000-7000-8000-00000000abcd");
    let job = client.run(&data, &[]).await;
    assert_ne!(job["id"], data["id"]);
}
