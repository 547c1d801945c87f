//! The inbox of a workspace.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, File, Server, custom_workflow, partition_only};

const INBOX: &str = "/api/v1/notifications";

async fn unread(client: &Client, query: &str) -> u64 {
    let count = client.get(&format!("{INBOX}/unread-count{query}")).await.ok();
    count["unread_count"].as_u64().expect("a number")
}

async fn mark(client: &Client, body: Value) -> u64 {
    let marked = client.post_json(&format!("{INBOX}/mark-read"), &body).await.ok();
    marked["marked_count"].as_u64().expect("a number")
}

#[tokio::test]
async fn every_event_is_there_page_by_page_and_is_marked_once() {
    let server = Server::start().await;
    let client = server.client();
    let workflow = client.workflow(&custom_workflow("w")).await;
    let workflow = text(&workflow["id"]);
    client.run(&partition_only(), &[]).await;
    let run = client
        .send(client.run_request(workflow, &[File::new("a.html", "<p>a</p>")]))
        .await;
    client.ended(text(&run.json()["id"])).await;

    let all = client.get(INBOX).await.ok();
    let all = all["events"].as_array().expect("a list").clone();
    let types: Vec<&str> = all.iter().rev().map(|event| text(&event["event_type"])).collect();
    let each = ["job.scheduled", "job.in_progress", "job.completed"];
    assert_eq!(types, [each, each].concat());
    assert_eq!(all[0]["payload"]["status"], "COMPLETED");
    assert_eq!(
        (&all[0]["workflow_id"], &all[0]["is_read"]),
        (&json!(workflow), &json!(false))
    );
    let one = format!("{INBOX}/{}", text(&all[0]["id"]));
    assert_eq!(client.get(&one).await.ok(), all[0]);

    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{INBOX}?limit=2{cursor}")).await.ok();
        seen.extend(page["events"].as_array().expect("a list").clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, all);
    let of_workflow = client
        .get(&format!(
            "{INBOX}?workflow_id={workflow}&event_types=job.completed,job.failed"
        ))
        .await;
    assert_eq!(of_workflow.ok()["events"], json!([all[0]]));
    let since = text(&all[0]["created_at"]);
    let recent = client.get(&format!("{INBOX}?since={since}")).await.ok();
    assert!(recent["events"].as_array().expect("a list").contains(&all[0]));

    assert_eq!(
        (
            unread(&client, "").await,
            unread(&client, &format!("?workflow_id={workflow}")).await
        ),
        (6, 3)
    );
    let ids: Vec<&Value> = all.iter().take(2).map(|event| &event["id"]).collect();
    assert_eq!(mark(&client, json!({"notification_ids": ids})).await, 2);
    assert_eq!(mark(&client, json!({"notification_ids": ids})).await, 0);
    assert_eq!(client.get(&one).await.ok()["is_read"], true);
    let left = client.get(&format!("{INBOX}?unread_only=true")).await.ok();
    assert_eq!(left["events"].as_array().map(Vec::len), Some(4));
    assert_eq!(mark(&client, json!({"before": "2020-01-01T00:00:00Z"})).await, 0);
    assert_eq!(
        mark(&client, json!({"mark_all": true, "workflow_id": workflow})).await,
        1
    );
    assert_eq!(mark(&client, json!({"mark_all": true})).await, 3);
    assert_eq!(unread(&client, "").await, 0);
    let ids: HashSet<&str> = all.iter().map(|event| text(&event["id"])).collect();
    assert_eq!(ids.len(), 6);

    // Others see nothing of it, by the same answer as for nothing.
    let stranger = server.stranger();
    assert_eq!(
        stranger.get(INBOX).await.ok(),
        json!({"events": [], "next_cursor": null})
    );
    let nothing = stranger
        .get(&format!("{INBOX}/01979764-2b70-7c3e-8a1f-000000000001"))
        .await;
    nothing.error(404, "not_found");
    assert_eq!(stranger.get(&one).await.comparable(), nothing.comparable());
    assert_eq!(
        stranger.get(&format!("{INBOX}/no-id")).await.comparable(),
        nothing.comparable()
    );
    assert_eq!(mark(&stranger, json!({"notification_ids": [all[0]["id"]]})).await, 0);
}

#[tokio::test]
async fn what_is_wrong_is_refused() {
    let server = Server::start().await;
    let client = server.client();
    for bad in [
        "limit=0",
        "limit=101",
        "cursor=x",
        "cursor=1.2",
        "since=soon",
        "event_types=job.unknown",
        "event_types=,",
        "unread_only=maybe",
        "workflow_id=Not%20a%20key",
    ] {
        client
            .get(&format!("{INBOX}?{bad}"))
            .await
            .error(422, "validation_failed");
    }
    let id = "01979764-2b70-7c3e-8a1f-000000000001";
    for bad in [
        json!({}),
        json!({"mark_all": false}),
        json!({"mark_all": true, "before": "2026-01-01"}),
        json!({"notification_ids": [id], "mark_all": true}),
        json!({"notification_ids": [id], "workflow_id": id}),
        json!({"notification_ids": vec![id; 101]}),
        json!({"notification_ids": ["x"]}),
        json!({"notification_ids": id}),
        json!({"before": "yesterday"}),
        json!({"mark_all": "yes"}),
        json!({"mark_all": true, "workflow_id": "w"}),
        json!({"mark_all": true, "all": true}),
    ] {
        client
            .post_json(&format!("{INBOX}/mark-read"), &bad)
            .await
            .error(422, "validation_failed");
    }
    client
        .get(&format!("{INBOX}/mark-read"))
        .await
        .error(405, "method_not_allowed");
}
