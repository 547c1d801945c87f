//! The life of a job, operation by operation.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{html, pdf, slow_html};
use crate::kit::{Client, File, Server, partition_and_chunk, partition_node, partition_only, until};
use crate::paths::urlencode;

/// One file at a time, so that the order of things is known.
const ONE_WORKER: [(&str, &str); 1] = [("ENGINE__WORKERS", "1")];

#[tokio::test]
async fn a_job_goes_from_upload_to_download_of_every_node() {
    let server = Server::start().await;
    let client = server.client();
    let files = [
        File::new("a.html", html("alpha", 12)),
        File::new("b.pdf", pdf(&["First page of b", "Second page of b"])),
    ];
    let created = client.created(&partition_and_chunk(), &files).await;
    check_job_shape(&created);
    assert_eq!(
        (&created["runtime"], &created["job_type"]),
        (&Value::Null, &json!("ephemeral"))
    );
    let id = text(&created["id"]);
    assert_eq!(text(&created["workflow_name"]), format!("job-{}", &id[..8]));
    let job = client.ended(id).await;
    check_job_shape(&job);
    assert_eq!(job["status"], "COMPLETED");
    assert!(text(&job["runtime"]).starts_with("PT"), "{job}");
    assert_eq!(job["input_file_ids"], created["input_file_ids"]);

    let ids = file_ids(&job);
    let outputs = job["output_node_files"].as_array().expect("outputs");
    assert_eq!(outputs.len(), 4);
    for output in outputs {
        let keys: Vec<_> = output
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, ["node_id", "file_id", "node_type", "node_subtype"]);
        assert!(ids.contains(&text(&output["file_id"]).to_owned()));
    }
    let of = |kind: &str| {
        let outputs: Vec<_> = outputs.iter().filter(|o| o["node_type"] == kind).collect();
        assert_eq!(outputs.len(), 2, "{kind}");
        text(&outputs[0]["node_id"]).to_owned()
    };
    let (partition, chunk) = (of("partition"), of("chunk"));
    assert_eq!(outputs[0]["node_subtype"], "unstructured_api");

    let download = async |query: String| client.get(&format!("/api/v1/jobs/{id}/download?{query}")).await;
    let parts = download(format!("file_id={}&node_id={partition}", ids[0])).await;
    let chunks = download(format!("file_id={}&node_id={chunk}", ids[0])).await;
    let default = download(format!("file_id={}", ids[0])).await;
    assert_eq!(chunks.bytes, default.bytes, "the default is the last node");
    assert_eq!(parts.header("content-type"), Some("application/json"));
    assert_eq!(
        parts.header("content-disposition"),
        Some("attachment; filename=\"a.html.json\"; filename*=UTF-8''a.html.json")
    );
    let types = |answer: &Value| -> Vec<String> {
        answer
            .as_array()
            .expect("a list")
            .iter()
            .map(|e| text(&e["type"]).to_owned())
            .collect()
    };
    let parts = parts.ok();
    assert_eq!(types(&parts)[0], "Title");
    assert_eq!(types(&parts).len(), 13);
    assert!(types(&chunks.ok()).iter().all(|kind| kind == "CompositeElement"));
    for element in parts.as_array().expect("a list") {
        assert!(element["element_id"].is_string() && element["text"].is_string());
        assert_eq!(element["metadata"]["filename"], "a.html");
        assert_eq!(element["metadata"]["filetype"], "text/html");
    }
    let pdf_text = client.text(id, &ids[1]).await;
    assert!(
        pdf_text.contains("First page of b") && pdf_text.contains("Second page of b"),
        "{pdf_text}"
    );

    let details = client.details(id).await;
    assert_eq!(
        (&details["processing_status"], &details["message"]),
        (&json!("SUCCESS"), &Value::Null)
    );
    assert_eq!(
        details["summary"],
        json!({"total_docs": 2, "total_docs_succeeded": 2, "total_docs_failed": 0})
    );
    let stats = details["node_stats"].as_array().expect("stats");
    for (stat, name) in stats.iter().zip(["Partitioner", "Chunker"]) {
        assert_eq!(stat["node_name"], name);
        assert_eq!(stat.get("ready").and_then(Value::as_u64), Some(0));
        assert_eq!(
            (&stat["in_progress"], &stat["success"], &stat["failure"]),
            (&json!(0), &json!(2), &json!(0))
        );
    }
    assert_eq!(details["files"][1]["document"], "b.pdf");
    assert_eq!(details["files"][1]["pages_total"], 2);
    assert_eq!(details["files"][1]["attempts"], 1);
    assert_eq!(client.failed_files(id).await, json!({"failed_files": []}));
}

fn check_job_shape(job: &Value) {
    let keys: Vec<_> = job.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "id",
        "workflow_id",
        "workflow_name",
        "status",
        "created_at",
        "runtime",
        "input_file_ids",
        "output_node_files",
        "job_type",
    ];
    assert_eq!(keys, expected);
    for id in [text(&job["id"]), text(&job["workflow_id"])] {
        assert!(id.len() == 36 && id.as_bytes()[14] == b'7', "{id} is no UUID v7");
    }
    let created = text(&job["created_at"]);
    assert!(
        created.len() >= 20 && created.contains('T') && created.ends_with('Z'),
        "{created}"
    );
}

#[tokio::test]
async fn both_names_of_the_file_part_and_both_words_for_the_partitioner_work() {
    let server = Server::start().await;
    let client = server.client();
    let nodes = json!({"job_nodes": [{"name": "P", "type": "partition", "subtype": "service_api"}]});
    let part = |name: &str| Part::bytes(html(name, 1)).file_name(format!("{name}.html"));
    let form = Form::new()
        .part("input_files[]", part("brackets"))
        .part("input_files", part("plain"))
        // The order of parts does not matter.
        .text("request_data", nodes.to_string());
    let job = client
        .send(client.request(Method::POST, "/jobs").multipart(form))
        .await
        .ok();
    let job = client.ended(text(&job["id"])).await;
    assert_eq!(job["output_node_files"][0]["node_subtype"], "service_api");
    let ids = file_ids(&job);
    assert!(client.text(text(&job["id"]), &ids[0]).await.contains("brackets"));
    assert!(client.text(text(&job["id"]), &ids[1]).await.contains("plain"));
}

#[tokio::test]
async fn a_job_without_files_is_accepted_and_completes() {
    let server = Server::start().await;
    let client = server.client();
    let urlencoded = client
        .request(Method::POST, "/api/v1/jobs/")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("request_data={}", urlencode(&partition_only().to_string())));
    let created = client.send(urlencoded).await.ok();
    let multipart = client.created(&partition_only(), &[]).await;
    // What a web form sends for a file field nobody filled in.
    let empty_field = Form::new()
        .text("request_data", partition_only().to_string())
        .part("input_files", Part::bytes(Vec::new()).file_name(""));
    let empty_field = client
        .send(client.request(Method::POST, "/jobs").multipart(empty_field))
        .await
        .ok();
    for created in [created, multipart, empty_field] {
        assert!(
            ["SCHEDULED", "IN_PROGRESS"].contains(&text(&created["status"])),
            "{created}"
        );
        let job = client.ended(text(&created["id"])).await;
        assert_eq!(
            (&job["status"], &job["input_file_ids"]),
            (&json!("COMPLETED"), &json!([]))
        );
        assert_eq!(job["output_node_files"], Value::Null);
        let details = client.details(text(&job["id"])).await;
        assert_eq!(details["processing_status"], "SUCCESS");
    }
}

#[tokio::test]
async fn templates_are_listed_and_run_or_say_what_they_lack() {
    let server = Server::start().await;
    let client = server.client();
    let list = client.get("/api/v1/templates/").await.ok();
    let ids: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|t| text(&t["id"]).to_owned())
        .collect();
    assert!(ids.contains(&"hi_res_partition".into()) && ids.contains(&"hi_res_and_enrichment".into()));
    for template in list.as_array().expect("a list") {
        for field in ["id", "name", "version", "last_updated", "description"] {
            assert!(template[field].is_string(), "{template}");
        }
        let one = client.get(&format!("/templates/{}", text(&template["id"]))).await.ok();
        for node in one["nodes"].as_array().expect("nodes") {
            for field in ["id", "name", "type", "subtype"] {
                assert!(node[field].is_string(), "{node}");
            }
        }
        assert_eq!(one["name"], template["name"]);
    }
    let unknown = client.get("/templates/nope").await;
    assert_eq!(unknown.error(404, "not_found")["detail"], "Template nope not found");

    let file = File::new("t.html", html("template", 2));
    let job = client
        .run(&json!({"template_id": "hi_res_partition"}), std::slice::from_ref(&file))
        .await;
    assert_eq!(
        (&job["job_type"], &job["status"]),
        (&json!("template"), &json!("COMPLETED"))
    );
    let nodes = client.get("/templates/hi_res_partition").await.ok();
    assert_eq!(job["output_node_files"][0]["node_id"], nodes["nodes"][0]["id"]);

    let refused = client
        .create(
            &json!({"template_id": "hi_res_and_enrichment"}),
            std::slice::from_ref(&file),
        )
        .await;
    let body = refused.error(422, "chain_invalid");
    assert!(body["detail"].to_string().contains("provider"), "{body}");
    let unknown = client
        .create(&json!({"template_id": "nope"}), &[])
        .await
        .error(422, "validation_failed");
    assert_eq!(
        unknown["detail"][0]["loc"],
        json!(["body", "request_data", "template_id"])
    );

    // Both given: the chain is what is run.
    let both = json!({"template_id": "hi_res_and_enrichment", "job_nodes": [partition_node()]});
    let job = client.run(&both, &[file]).await;
    assert_eq!(
        (&job["job_type"], &job["status"]),
        (&json!("ephemeral"), &json!("COMPLETED"))
    );
    // Null and empty are not given.
    for job_nodes in [json!(null), json!([])] {
        let job = client
            .run(&json!({"template_id": "hi_res_partition", "job_nodes": job_nodes}), &[])
            .await;
        assert_eq!(job["job_type"], "template");
    }
}

#[tokio::test]
async fn lists_are_newest_first_and_filtered() {
    let server = Server::with(&ONE_WORKER).await;
    let client = server.client();
    let done = client
        .run(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    let failed = client
        .run(&partition_only(), &[File::new("b.bin", vec![0u8; 100])])
        .await;
    assert_eq!(failed["status"], "FAILED");
    let stopped = stopped_job(&client).await;
    let ids = |list: Value| -> Vec<String> {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|job| text(&job["id"]).to_owned())
            .collect()
    };
    let id = |job: &Value| text(&job["id"]).to_owned();
    let all = ids(client.get("/jobs/").await.ok());
    assert_eq!(all, [id(&stopped), id(&failed), id(&done)]);
    for (words, expected) in [
        (vec!["completed", "COMPLETED", "Completed"], vec![id(&done)]),
        (vec!["failed", "FAILED"], vec![id(&failed)]),
        (vec!["stopped", "Stopped"], vec![id(&stopped)]),
        (vec!["in progress", "IN_PROGRESS", "in-progress", "scheduled"], vec![]),
    ] {
        for word in words {
            let list = client.get(&format!("/jobs?status={}", urlencode(word))).await.ok();
            assert_eq!(ids(list), expected, "{word}");
        }
    }
    let workflow = text(&done["workflow_id"]);
    assert_eq!(
        ids(client.get(&format!("/jobs?workflow_id={workflow}")).await.ok()),
        [id(&done)]
    );
    let both = client
        .get(&format!("/jobs?workflow_id={workflow}&status=failed"))
        .await
        .ok();
    assert_eq!(both, json!([]));
    assert_eq!(
        client
            .get("/jobs?workflow_id=&status=")
            .await
            .ok()
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    for (query, field) in [
        ("status=done", "status"),
        ("workflow_id=7", "workflow_id"),
        ("status=%27%20OR%201", "status"),
    ] {
        let body = client
            .get(&format!("/jobs?{query}"))
            .await
            .error(422, "validation_failed");
        assert_eq!(body["detail"][0]["loc"], json!(["query", field]));
    }
}

async fn stopped_job(client: &Client) -> Value {
    let job = client
        .created(&partition_only(), &[File::new("slow.html", slow_html())])
        .await;
    let id = text(&job["id"]);
    client.post(&format!("/jobs/{id}/cancel")).await.ok();
    client.get(&format!("/jobs/{id}")).await.ok()
}

#[tokio::test]
async fn a_running_job_is_cancelled_at_once_and_an_ended_one_stays() {
    let server = Server::with(&ONE_WORKER).await;
    let client = server.client();
    let job = client
        .created(&partition_only(), &[File::new("slow.html", slow_html())])
        .await;
    let id = text(&job["id"]);
    until("the file to run", async || {
        (!server.children().is_empty()).then_some(())
    })
    .await;
    let running = client.details(id).await;
    assert_eq!(running["processing_status"], "IN_PROGRESS");
    let asked = std::time::Instant::now();
    let answer = client.post(&format!("/jobs/{id}/cancel")).await.ok();
    assert_eq!((&answer["id"], &answer["status"]), (&json!(id), &json!("cancelled")));
    until("the child to be gone", async || {
        server.children().is_empty().then_some(())
    })
    .await;
    let took = asked.elapsed();
    assert!(took.as_millis() < 1_000, "the child lived on for {took:?}");
    let stopped = client.get(&format!("/jobs/{id}")).await.ok();
    assert_eq!(
        (&stopped["status"], &stopped["output_node_files"]),
        (&json!("STOPPED"), &Value::Null)
    );
    assert!(stopped["runtime"].is_string());
    let details = client.details(id).await;
    assert_eq!(
        (&details["processing_status"], &details["files"][0]["state"]),
        (&json!("STOPPED"), &json!("stopped"))
    );
    let file = &file_ids(&job)[0];
    client
        .get(&format!("/jobs/{id}/download?file_id={file}"))
        .await
        .error(404, "output_not_ready");
    assert_eq!(client.failed_files(id).await, json!({"failed_files": []}));

    let again = client.post(&format!("/jobs/{id}/cancel")).await.ok();
    assert_eq!(again["status"], "STOPPED");
    let done = client
        .run(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    let answer = client.post(&format!("/jobs/{}/cancel", text(&done["id"]))).await.ok();
    assert_eq!(answer["status"], "COMPLETED");
    assert_eq!(client.get(&format!("/jobs/{}", text(&done["id"]))).await.ok(), done);
    // Nothing of the stopped file was stored, then or later.
    assert!(
        server
            .files_below("blobs")
            .iter()
            .all(|path| !path.to_string_lossy().contains(file) || path.to_string_lossy().contains("/in/"))
    );
}

#[tokio::test]
async fn a_waiting_job_is_cancelled_before_it_starts() {
    let server = Server::with(&[("ENGINE__WORKERS", "1"), ("LIMITS__MAX_RUNNING_LOCAL_JOBS", "1")]).await;
    let client = server.client();
    let first = client
        .created(&partition_only(), &[File::new("slow.html", slow_html())])
        .await;
    let second = client
        .created(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    assert_eq!(second["status"], "SCHEDULED");
    let details = client.details(text(&second["id"])).await;
    assert_eq!(details["processing_status"], "SCHEDULED");
    assert_eq!(
        (&details["node_stats"][0]["ready"], &details["files"][0]["state"]),
        (&json!(1), &json!("waiting"))
    );
    let too_early = client.delete(&format!("/jobs/{}", text(&second["id"]))).await;
    too_early.error(409, "job_state_conflict");
    client
        .post(&format!("/jobs/{}/retry", text(&second["id"])))
        .await
        .error(409, "job_state_conflict");
    client.post(&format!("/jobs/{}/cancel", text(&second["id"]))).await.ok();
    let second = client.get(&format!("/jobs/{}", text(&second["id"]))).await.ok();
    assert_eq!(second["status"], "STOPPED");
    client.post(&format!("/jobs/{}/cancel", text(&first["id"]))).await.ok();
    let third = client
        .run(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    assert_eq!(third["status"], "COMPLETED");
    // The cancelled one never ran.
    assert_eq!(client.details(text(&second["id"])).await["files"][0]["attempts"], 0);
}

#[tokio::test]
async fn a_job_can_be_followed_to_its_end_and_from_the_middle() {
    let server = Server::start().await;
    let client = server.client();
    let created = client
        .created(&partition_only(), &[File::new("a.html", html("alpha", 2))])
        .await;
    let id = text(&created["id"]);
    // The answer ends by itself, with the event that tells of the job's end.
    let all = client.get(&format!("/api/v1/jobs/{id}/events")).await;
    assert_eq!(
        (all.status, all.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let all = String::from_utf8(all.bytes).expect("text");
    let events: Vec<_> = all.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["job.scheduled", "job.in_progress", "job.completed"], "{all}");
    let last = all
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .next_back()
        .expect("data");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(
        (&last["job_id"], &last["status"], &last["files_succeeded"]),
        (&json!(id), &json!("COMPLETED"), &json!(1))
    );
    let request = client
        .request(Method::GET, &format!("/jobs/{id}/events"))
        .header("last-event-id", "2");
    let rest = String::from_utf8(client.send(request).await.bytes).expect("text");
    assert!(
        rest.contains("job.completed") && !rest.contains("job.in_progress"),
        "{rest}"
    );
}
