//! What an answer promised holds after the power is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{html, pdf, slow_html};
use crate::kit::{Client, File, Server, partition_and_chunk, partition_only, until};

#[tokio::test]
async fn a_job_killed_right_after_its_answer_completes_after_the_restart() {
    let mut server = Server::start().await;
    let page = html("survivor", 50);
    let created = server
        .client()
        .created(
            &partition_and_chunk(),
            &[File::new("a.html", page.clone()), File::new("b.pdf", pdf(&["second"]))],
        )
        .await;
    server.kill();
    let ids = file_ids(&created);
    let stored = server
        .files_below("blobs/in")
        .into_iter()
        .find(|path| path.ends_with(&ids[0]))
        .expect("the upload");
    assert_eq!(std::fs::read(stored).expect("readable"), page);
    let server = server.restart().await;
    let client = server.client();
    let id = text(&created["id"]);
    let job = client.ended(id).await;
    assert_eq!(
        (&job["status"], &job["input_file_ids"]),
        (&"COMPLETED".into(), &created["input_file_ids"])
    );
    assert_eq!(job["output_node_files"].as_array().map(Vec::len), Some(4));
    assert!(client.text(id, &ids[0]).await.contains("survivor"));
    assert!(client.text(id, &ids[1]).await.contains("second"));
}

#[tokio::test]
async fn children_die_with_the_server() {
    let mut server = Server::start().await;
    server
        .client()
        .created(&partition_only(), &[File::new("slow.html", slow_html())])
        .await;
    let children = until("a child", async || {
        Some(server.children()).filter(|found| !found.is_empty())
    })
    .await;
    server.kill();
    until("the children to die", async || {
        let alive = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
        };
        (!children.iter().any(alive)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_file_during_which_the_server_dies_every_time_is_given_up() {
    let mut server = Server::with(&[("ENGINE__MAX_ATTEMPTS", "2"), ("ENGINE__WORKERS", "1")]).await;
    let job = server
        .client()
        .created(&partition_only(), &[File::new("slow.html", slow_html())])
        .await;
    for _ in 0..2 {
        until("the file to run", async || {
            (!server.children().is_empty()).then_some(())
        })
        .await;
        server.kill();
        server = server.restart().await;
    }
    let client = server.client();
    let job = client.ended(text(&job["id"])).await;
    assert_eq!(job["status"], "FAILED");
    let failed = client.failed_files(text(&job["id"])).await;
    assert_eq!(failed["failed_files"][0]["code"], "attempts_exhausted");
}

/// Clients create jobs as fast as they can, the server is killed at any moment and started again. At the
/// end every job whose creation was answered has completed with every output there and whole.
#[tokio::test]
async fn nothing_acknowledged_is_lost_however_often_the_server_dies() {
    let loops: usize = std::env::var("DOCMILL_CRASH_LOOPS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    let settings = [
        ("LIMITS__MAX_RUNNING_LOCAL_JOBS", "0"),
        ("ENGINE__MAX_ATTEMPTS", "100000"),
        ("LOG__LEVEL", "warn"),
    ];
    let mut server = Server::with(&settings).await;
    let acknowledged: Arc<Mutex<Vec<Value>>> = Arc::default();
    for round in 0..loops {
        let over = Arc::new(AtomicBool::new(false));
        let load: Vec<_> = (0..4)
            .map(|number| {
                tokio::spawn(create_until(
                    server.client(),
                    over.clone(),
                    acknowledged.clone(),
                    number,
                ))
            })
            .collect();
        let moment = Duration::from_millis(rand::random_range(5..600));
        tokio::time::sleep(moment).await;
        server.kill();
        over.store(true, Ordering::Relaxed);
        for task in load {
            task.await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        server = server.restart().await;
    }
    let client = server.client();
    let acknowledged = acknowledged.lock().await;
    assert!(
        acknowledged.len() >= loops / 2,
        "only {} jobs were acknowledged in {loops} rounds",
        acknowledged.len()
    );
    for created in acknowledged.iter() {
        check_whole(&client, created).await;
    }
    // Jobs whose answer got lost may exist; they are whole too.
    let all = client.get("/jobs").await.ok();
    let all = all.as_array().expect("a list");
    assert!(all.len() >= acknowledged.len());
    for job in all {
        check_whole(&client, job).await;
    }
    eprintln!(
        "{loops} kills, {} jobs acknowledged, {} found, all whole",
        acknowledged.len(),
        all.len()
    );
}

/// Creates jobs until the server is gone; remembers those whose creation was answered.
async fn create_until(client: Client, over: Arc<AtomicBool>, acknowledged: Arc<Mutex<Vec<Value>>>, number: usize) {
    let client = client.on_new_connection();
    let files = [
        File::new("page.html", html(&format!("load {number}"), 5 + number * 20)),
        File::new("paper.pdf", pdf(&["one", "two", "three"])),
    ];
    while !over.load(Ordering::Relaxed) {
        let count = 1 + number % 2;
        match client
            .try_send(client.create_request(&partition_and_chunk(), &files[..count]))
            .await
        {
            Ok(answer) => acknowledged.lock().await.push(answer.ok()),
            // The server died before or while it answered; nothing was promised.
            Err(_) => return,
        }
    }
}

async fn check_whole(client: &Client, created: &Value) {
    let id = text(&created["id"]);
    let job = client.ended(id).await;
    assert_eq!(job["status"], "COMPLETED", "{}", client.failed_files(id).await);
    assert_eq!(job["input_file_ids"], created["input_file_ids"]);
    let outputs = job["output_node_files"].as_array().expect("outputs");
    assert_eq!(outputs.len(), 2 * file_ids(&job).len(), "{job}");
    for output in outputs {
        let (file, node) = (text(&output["file_id"]), text(&output["node_id"]));
        let answer = client
            .get(&format!("/jobs/{id}/download?file_id={file}&node_id={node}"))
            .await;
        assert!(
            answer.ok().as_array().is_some_and(|elements| !elements.is_empty()),
            "{id} {file} {node}"
        );
    }
}
