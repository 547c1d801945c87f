//! What stays of a job: failures, retries, downloads, nothing after deletion.

use serde_json::json;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::{File, Server, partition_and_chunk, partition_only};

#[tokio::test]
async fn a_bad_file_fails_alone_and_is_retried_alone() {
    let server = Server::start().await;
    let client = server.client();
    let files = [
        File::new("good.html", html("good", 2)),
        File::new("bad.pdf", b"%PDF-1.7 and then nothing of the kind".to_vec()),
        File::new("also good.html", html("fine", 2)),
    ];
    let job = client.run(&partition_and_chunk(), &files).await;
    let id = text(&job["id"]);
    let ids = file_ids(&job);
    assert_eq!(job["status"], "COMPLETED");
    assert_eq!(job["output_node_files"].as_array().map(Vec::len), Some(4));
    let details = client.details(id).await;
    assert_eq!(details["processing_status"], "COMPLETED_WITH_ERRORS");
    assert_eq!(
        details["summary"],
        json!({"total_docs": 3, "total_docs_succeeded": 2, "total_docs_failed": 1})
    );
    assert_eq!(
        (
            &details["node_stats"][0]["failure"],
            &details["node_stats"][1]["failure"]
        ),
        (&json!(1), &json!(0))
    );
    let failed = client.failed_files(id).await;
    assert_eq!(failed["failed_files"].as_array().map(Vec::len), Some(1));
    let row = &failed["failed_files"][0];
    assert_eq!(
        (&row["document"], &row["file_id"], &row["code"]),
        (&json!("bad.pdf"), &json!(ids[1]), &json!("file_corrupt"))
    );
    assert!(text(&row["error"]).len() > 10);
    let missing = client.get(&format!("/jobs/{id}/download?file_id={}", ids[1])).await;
    assert!(text(&missing.error(404, "output_not_ready")["detail"]).contains("file_corrupt"));

    let retried = client.post(&format!("/api/v1/jobs/{id}/retry")).await.ok();
    assert_ne!(retried["id"], job["id"]);
    let retried = client.ended(text(&retried["id"])).await;
    assert_eq!((&retried["status"], file_ids(&retried).len()), (&json!("FAILED"), 1));
    let details = client.details(text(&retried["id"])).await;
    assert!(text(&details["message"]).contains("bad.pdf"), "{details}");

    // The retry needs the upload; deleting the first job must leave it, deleting both must not.
    client.delete(&format!("/jobs/{id}")).await.ok();
    let again = client.post(&format!("/jobs/{}/retry", text(&retried["id"]))).await.ok();
    let again = client.ended(text(&again["id"])).await;
    assert_eq!(
        client.failed_files(text(&again["id"])).await["failed_files"][0]["code"],
        "file_corrupt"
    );
    for job in [&retried, &again] {
        client.delete(&format!("/jobs/{}", text(&job["id"]))).await.ok();
    }
    let left: Vec<_> = server
        .files_below("blobs")
        .into_iter()
        .filter(|path| !path.ends_with("probe/readyz"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let nothing_failed = client.run(&partition_only(), &files[..1]).await;
    let answer = client
        .post(&format!("/jobs/{}/retry", text(&nothing_failed["id"])))
        .await;
    answer.error(409, "job_state_conflict");
}

#[tokio::test]
async fn a_deleted_job_is_gone_with_its_data() {
    let server = Server::start().await;
    let client = server.client();
    let job = client
        .run(&partition_and_chunk(), &[File::new("a.html", html("gone", 3))])
        .await;
    let id = text(&job["id"]);
    assert!(server.files_below("blobs").len() >= 3);
    assert_eq!(client.delete(&format!("/api/v1/jobs/{id}/")).await.ok(), json!({}));
    for path in [
        "",
        "/details",
        "/failed-files",
        "/download?file_id=01980000-0000-7000-8000-00000000abcd",
    ] {
        client.get(&format!("/jobs/{id}{path}")).await.error(404, "not_found");
    }
    for path in ["/cancel", "/retry"] {
        client.post(&format!("/jobs/{id}{path}")).await.error(404, "not_found");
    }
    client.delete(&format!("/jobs/{id}")).await.error(404, "not_found");
    assert_eq!(client.get("/jobs").await.ok(), json!([]));
    let left: Vec<_> = server
        .files_below("blobs")
        .into_iter()
        .filter(|path| !path.ends_with("probe/readyz"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_download_asks_for_what_there_is() {
    let server = Server::start().await;
    let client = server.client();
    let job = client
        .run(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    let (id, file) = (text(&job["id"]), &file_ids(&job)[0]);
    let never = "01980000-0000-7000-8000-00000000abcd";
    for query in ["", "?file_id=", "?node_id=x"] {
        let body = client
            .get(&format!("/jobs/{id}/download{query}"))
            .await
            .error(422, "validation_failed");
        assert_eq!(
            (&body["detail"][0]["loc"], &body["detail"][0]["type"]),
            (&json!(["query", "file_id"]), &json!("missing"))
        );
    }
    for (query, what) in [
        (format!("file_id={never}"), "File not found"),
        ("file_id=../../etc/passwd".into(), "File not found"),
        (format!("file_id={file}&node_id={never}"), "Node not found"),
        (format!("file_id={file}&node_id=last"), "Node not found"),
    ] {
        let body = client
            .get(&format!("/jobs/{id}/download?{query}"))
            .await
            .error(404, "not_found");
        assert_eq!(body["detail"], what, "{query}");
    }
    client
        .get(&format!("/jobs/{id}/download?file_id={file}&node_id="))
        .await
        .ok();
}
