//! Files of workflows: given when they are run, or read from a source.

use reqwest::Method;
use serde_json::json;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::{File, Folders, Server, custom_workflow};
use crate::workflows::places;

#[tokio::test]
async fn a_workflow_without_source_takes_files_when_it_is_run() {
    let server = Server::with(&[("LIMITS__MAX_FILE_BYTES", "100000")]).await;
    let client = server.client();
    let workflow = client.workflow(&custom_workflow("by hand")).await;
    let id = text(&workflow["id"]);
    let files = [
        File::new("a.html", html("first", 3)),
        File::new("b ü.html", html("second", 2)),
    ];
    let answer = client.send(client.run_request(id, &files)).await;
    assert_eq!(answer.status, 202, "{answer}");
    let started = answer.json();
    assert!(
        ["SCHEDULED", "IN_PROGRESS"].contains(&text(&started["status"])),
        "{started}"
    );
    assert_eq!(started["job_type"], "persistent");
    assert_eq!(
        (&started["workflow_id"], &started["workflow_name"]),
        (&workflow["id"], &workflow["name"])
    );
    let job = client.ended(text(&started["id"])).await;
    assert_eq!(job["status"], "COMPLETED");
    let ids = file_ids(&job);
    assert_eq!(ids.len(), 2);
    assert!(client.text(text(&job["id"]), &ids[1]).await.contains("second"));
    assert_eq!(
        job["output_node_files"][0]["node_id"],
        workflow["workflow_nodes"][0]["id"]
    );
    let by_key = client.post("/workflows/by-hand/run").await;
    assert_eq!(by_key.status, 202, "without any file: {by_key}");
    let empty = client.ended(text(&by_key.json()["id"])).await;
    assert_eq!(
        (&empty["status"], &empty["input_file_ids"]),
        (&json!("COMPLETED"), &json!([]))
    );
    let listed = client.get(&format!("/jobs?workflow_id={id}")).await.ok();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));

    let many: Vec<_> = (0..11).map(|n| File::new(format!("{n}.html"), html("x", 1))).collect();
    client
        .send(client.run_request(id, &many))
        .await
        .error(422, "too_many_files");
    let large = [File::new("large.html", vec![b'x'; 200_000])];
    client
        .send(client.run_request(id, &large))
        .await
        .error(413, "file_too_large");
    // Without a body, the content type says nothing.
    let request = client.request(Method::POST, &format!("/workflows/{id}/run"));
    let empty = client.send(request.header("content-type", "application/json")).await;
    assert_eq!(empty.status, 202, "{empty}");
    let request = client.request(Method::POST, &format!("/workflows/{id}/run"));
    let answer = client
        .send(request.header("content-type", "text/csv").body("1,2"))
        .await;
    answer.error(415, "unsupported_media_type");
    for input in server.files_below("blobs/in") {
        assert!(
            ids.iter().any(|id| input.ends_with(id)),
            "{} was left behind",
            input.display()
        );
    }
}

#[tokio::test]
async fn a_workflow_with_a_source_takes_no_files() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    let mut body = custom_workflow("w");
    body["source_id"] = json!(source);
    let id = text(&client.workflow(&body).await["id"]).to_owned();
    let answer = client
        .send(client.run_request(&id, &[File::new("a.html", html("a", 1))]))
        .await;
    assert_eq!(places(&answer), ["body.input_files"]);
    assert_eq!(client.get("/jobs").await.ok(), json!([]));
    assert!(server.files_below("blobs/in").is_empty());
}

#[tokio::test]
async fn workflows_of_jobs_over_local_files_are_hidden() {
    let server = Server::start().await;
    let client = server.client();
    let job = client.run(&crate::kit::partition_only(), &[]).await;
    let path = format!("/workflows/{}", text(&job["workflow_id"]));
    client.get(&path).await.error(404, "not_found");
    client
        .put_json(&path, &json!({"name": "mine"}))
        .await
        .error(404, "not_found");
    client.delete(&path).await.error(404, "not_found");
    client.post(&format!("{path}/run")).await.error(404, "not_found");
    for list in [
        "/workflows",
        "/workflows?show_only_soft_deleted=true",
        "/workflows?name=job",
    ] {
        assert_eq!(client.get(list).await.ok(), json!([]));
    }
}

#[tokio::test]
async fn a_provider_key_in_a_node_is_neither_told_nor_kept() {
    let server = Server::start().await;
    let client = server.client();
    let canary = "sk-canary-0123456789abcdef";
    let node = json!({"name": "n", "type": "partition", "subtype": "vlm", "settings": {
        "is_dynamic": true, "allow_fast": true, "provider": "openai", "provider_api_key": canary}});
    let body = json!({"name": "w", "workflow_type": "custom", "workflow_nodes": [node]});
    let created = client.workflow(&body).await;
    let settings = &created["workflow_nodes"][0]["settings"];
    assert_eq!(
        (&settings["provider_api_key"], &settings["provider"]),
        (&json!("**********"), &json!("openai"))
    );
    // Sent back as it came, it still runs.
    let path = format!("/workflows/{}", text(&created["id"]));
    client
        .put_json(&path, &json!({"workflow_nodes": created["workflow_nodes"]}))
        .await
        .ok();
    crate::secrets::assert_nowhere(&server, canary);
}
