//! One interface under three mounts, with and without a slash, and what other methods get.

use reqwest::Method;
use serde_json::{Value, json};

use crate::access::operations;
use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::{File, Folders, Server, custom_workflow, partition_only};

const MOUNTS: [&str; 3] = ["", "/api/v1", "/api/v1/api/v1"];

#[tokio::test]
async fn every_operation_answers_under_every_mount_with_and_without_a_slash() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let job = client
        .run(&partition_only(), &[File::new("a.html", html("mounts", 2))])
        .await;
    let (id, file) = (text(&job["id"]), &file_ids(&job)[0]);
    let local = json!({"name": "n", "type": "local", "config": {"path": folders.folder("x")}});
    let workflow = client.workflow(&custom_workflow("w")).await;
    let objects = [
        ("{job_id}", id.to_owned()),
        ("{template_id}", "hi_res_partition".to_owned()),
        ("{workflow_id}", text(&workflow["id"]).to_owned()),
        ("{source_id}", client.local("source", &folders.folder("x")).await),
        (
            "{destination_id}",
            client.local("destination", &folders.folder("x")).await,
        ),
    ];
    for (role, (_, id)) in [("sources", &objects[3]), ("destinations", &objects[4])] {
        client.post(&format!("/{role}/{id}/connection-check")).await;
    }
    let mut paths: Vec<_> = operations(&client).await;
    paths.push((Method::GET, "/openapi.json".into()));
    paths.push((Method::GET, "/docs".into()));
    for (method, path) in paths {
        let mut answers = Vec::new();
        for mount in MOUNTS {
            for slash in ["", "/"] {
                // Deleting would work once only.
                let id_of_none = "01980000-0000-7000-8000-00000000abcd";
                let mut path = path.clone();
                for (place, id) in &objects {
                    path = path.replace(place, if method == Method::DELETE { id_of_none } else { id });
                }
                let query = if path.ends_with("download") {
                    format!("?file_id={file}")
                } else if path.ends_with("/channels") {
                    "?channel_type=email".to_owned()
                } else {
                    String::new()
                };
                let url = format!("{mount}{path}{slash}{query}");
                let request = client.request(method.clone(), &url);
                let json = |body: &Value| {
                    let request = client.request(method.clone(), &url);
                    request
                        .header("content-type", "application/json")
                        .body(body.to_string())
                };
                let request = match (method.as_str(), path.as_str()) {
                    ("POST", "/jobs") => request
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body(format!("request_data={}", urlencode(&partition_only().to_string()))),
                    ("POST", "/workflows") => json(&custom_workflow("w")),
                    ("POST", "/sources" | "/destinations") | ("PUT", _) => json(&local),
                    ("POST", "/notifications/mark-read") => json(&json!({"mark_all": true})),
                    ("POST", path) if path.ends_with("/channels") => json(&json!({
                        "channel_type": "webhook", "event_types": ["job.failed"], "url": "https://93.184.215.14/",
                    })),
                    _ => request,
                };
                let answer = client.send(request).await;
                let routed = answer.status != 404 || answer.json()["detail"] != "Not Found";
                assert!(routed, "{method} {url}: {answer}");
                answers.push((url, answer.status));
            }
        }
        let expected = match (method.as_str(), path.as_str()) {
            ("DELETE", _) => 404,
            // There are none.
            (_, path) if path.contains("{channel_id}") || path.contains("{notification_id}") => 404,
            ("POST", path) if path.ends_with("/channels") => 201,
            // No file of the job failed.
            (_, "/jobs/{job_id}/retry") => 409,
            (_, "/workflows/{workflow_id}/run") => 202,
            ("POST", path) if path.ends_with("/connection-check") => 202,
            _ => 200,
        };
        assert!(
            answers.iter().all(|(_, status)| *status == expected),
            "{method} {path}: {answers:?}"
        );
    }
}

#[tokio::test]
async fn other_paths_are_unknown_and_other_methods_refused() {
    let server = Server::start().await;
    let client = server.client();
    for path in [
        "/nothing",
        "/api/v1/nothing/",
        "/api/v1/api/v1/api/v1/jobs",
        "/api/v2/jobs",
        "/jobs/x/y/z",
        "/api/v1",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.error(404, "not_found")["detail"], "Not Found", "{path}");
    }
    for (method, path, allowed) in [
        (Method::PUT, "/jobs", "POST"),
        (Method::DELETE, "/api/v1/jobs/", "GET"),
        (Method::PATCH, "/jobs/01980000-0000-7000-8000-00000000abcd", "DELETE"),
        (Method::GET, "/jobs/01980000-0000-7000-8000-00000000abcd/cancel", "POST"),
        (Method::POST, "/templates", "GET"),
        (Method::OPTIONS, "/jobs", "POST"),
        (Method::TRACE, "/limits", "GET"),
    ] {
        let answer = client.send(client.request(method.clone(), path)).await;
        answer.error(405, "method_not_allowed");
        let allow = answer.header("allow").unwrap_or_default();
        assert!(
            allow.split(',').any(|word| word.trim() == allowed),
            "{method} {path}: Allow: {allow}"
        );
    }
    let head = client.send(client.request(Method::HEAD, "/api/v1/jobs/")).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    let head = client.send(client.anonymous(Method::HEAD, "/api/v1/jobs/")).await;
    assert_eq!((head.status, head.bytes.len()), (401, 0));
}

#[tokio::test]
async fn the_service_tells_of_itself() {
    let server = Server::start().await;
    let client = server.client();
    let limits = client.get("/limits").await.ok();
    for (name, value) in [
        ("max_files_per_job", 10u64),
        ("max_file_bytes", 50 * 1024 * 1024),
        ("create_gap_ms", 0),
        ("max_running_local_jobs", 5),
        ("max_pages", 20_000),
    ] {
        assert_eq!(limits[name], json!(value), "{name}");
    }
    let anonymous = async |path: &str| client.send(client.anonymous(Method::GET, path)).await;
    assert_eq!(anonymous("/livez").await.ok()["status"], "ok");
    let ready = anonymous("/readyz").await.ok();
    assert_eq!(
        (&ready["status"], &ready["store"], &ready["blobs"]),
        (&json!("ready"), &json!("ok"), &json!("ok"))
    );
    assert!(
        ready["sandbox"]["level"].is_string() && ready["slots"].as_u64() > Some(0),
        "{ready}"
    );
    client
        .run(&partition_only(), &[File::new("a.html", html("figures", 1))])
        .await;
    let figures = anonymous("/metrics").await;
    assert!(
        figures
            .header("content-type")
            .is_some_and(|v| v.starts_with("text/plain")),
        "{figures}"
    );
    let figures = String::from_utf8(figures.bytes).expect("text");
    for name in [
        "docmill_http_requests_total{status=\"200\"}",
        "docmill_files_total{outcome=\"succeeded\"} 1",
        "docmill_jobs{status=\"in_progress\"} 0",
        "docmill_files{state=\"ready\"} 0",
    ] {
        assert!(figures.contains(name), "no {name} in {figures}");
    }
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let server = Server::start().await;
    let second = server.second_server();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        !second.status.success() && said.contains("another docmill server is using"),
        "{said}"
    );
    server.client().get("/jobs").await.ok();
}

#[tokio::test]
async fn the_first_start_prints_a_key_once() {
    // An empty bootstrap key is none.
    let server = Server::with(&[("BOOTSTRAP_API_KEY", "")]).await;
    let printed = |server: &Server| {
        server
            .files_below("..")
            .iter()
            .filter(|p| p.to_string_lossy().contains("stdout"))
            .map(|p| std::fs::read_to_string(p).expect("text"))
            .collect::<String>()
    };
    let out = printed(&server);
    let key = out
        .split_whitespace()
        .find(|word| word.starts_with("dm_"))
        .expect("a key")
        .to_owned();
    let client = server.client();
    client
        .send(client.anonymous(Method::GET, "/jobs").header("service-api-key", &key))
        .await
        .ok();
    assert!(!server.log().contains(&key), "the key is in the log");
    let server = server.restart().await;
    assert_eq!(printed(&server).matches("dm_").count(), 1);
    let client = server.client();
    client
        .send(client.anonymous(Method::GET, "/jobs").header("service-api-key", &key))
        .await
        .ok();
}

pub(crate) fn urlencode(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
