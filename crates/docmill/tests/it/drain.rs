//! Stopping the server politely.

use std::time::Duration;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{html, slow_html};
use crate::kit::raw::Raw;
use crate::kit::{File, Server, partition_only, until};

#[tokio::test]
async fn an_idle_server_stops_at_once_also_with_connections_open() {
    let mut server = Server::start().await;
    server
        .client()
        .run(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    let _idle = Raw::connect(&server).await;
    let (status, took) = server.terminate().await;
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}

#[tokio::test]
async fn a_file_that_can_end_in_time_does() {
    let mut server = Server::with(&[("ENGINE__DRAIN_SECS", "100"), ("ENGINE__LEASE_SECS", "300")]).await;
    let job = server
        .client()
        .created(&partition_only(), &[File::new("a.html", html("drained", 3_000))])
        .await;
    until("the file to run", async || {
        (!server.children().is_empty()).then_some(())
    })
    .await;
    let (status, took) = server.terminate().await;
    assert!(status.success());
    // Not by the rhythm in which leases are renewed.
    assert!(took < Duration::from_secs(60), "{took:?}");
    let server = server.restart().await;
    let client = server.client();
    let details = client.details(text(&job["id"])).await;
    assert_eq!(
        (&details["processing_status"], &details["files"][0]["attempts"]),
        (&"SUCCESS".into(), &1.into())
    );
}

#[tokio::test]
async fn files_that_can_not_end_in_time_go_on_after_the_next_start_uncharged() {
    let mut server = Server::with(&[("ENGINE__DRAIN_SECS", "1"), ("ENGINE__WORKERS", "2")]).await;
    let slow = File::new("slow.html", slow_html());
    let client = server.client();
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(client.created(&partition_only(), &[slow.clone(), slow.clone()]).await);
    }
    until("files to run", async || (server.children().len() == 2).then_some(())).await;
    let (status, took) = server.terminate().await;
    assert!(status.success(), "{status}: {}", server.log());
    assert!(took < Duration::from_secs(12), "{took:?}");
    assert!(server.children().is_empty());
    let server = server.restart_with("ENGINE__DRAIN_SECS", "1").await;
    let client = server.client();
    for job in &jobs[1..] {
        client.post(&format!("/jobs/{}/cancel", text(&job["id"]))).await.ok();
    }
    let job = client.ended(text(&jobs[0]["id"])).await;
    assert_eq!(job["status"], "COMPLETED");
    let details = client.details(text(&job["id"])).await;
    for row in details["files"].as_array().expect("files") {
        assert_eq!(
            (&row["state"], &row["attempts"]),
            (&"succeeded".into(), &1.into()),
            "{row}"
        );
    }
    assert!(client.elements(text(&job["id"]), &file_ids(&job)[0]).await.len() > 1_000);
}

/// Stopping must not wait for the rhythm of anything inside: many times, with files at every stage.
#[tokio::test]
async fn stopping_is_quick_whatever_is_under_way() {
    let mut server = Server::start().await;
    for round in 0..4u64 {
        let client = server.client();
        for _ in 0..3 {
            client
                .created(&partition_only(), &[File::new("a.html", html("quick", 400))])
                .await;
        }
        tokio::time::sleep(Duration::from_millis(round * 70)).await;
        let (status, took) = server.terminate().await;
        assert!(status.success());
        assert!(took < Duration::from_secs(8), "{took:?} in round {round}");
        server = server.restart().await;
    }
    let client = server.client();
    for job in client.get("/jobs").await.ok().as_array().expect("a list") {
        assert_eq!(client.ended(text(&job["id"])).await["status"], "COMPLETED");
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_without_waiting() {
    let mut server = Server::with(&[("ENGINE__DRAIN_SECS", "600"), ("ENGINE__WORKERS", "1")]).await;
    let client = server.client();
    for _ in 0..5 {
        client
            .created(&partition_only(), &[File::new("slow.html", slow_html())])
            .await;
    }
    until("the file to run", async || {
        (!server.children().is_empty()).then_some(())
    })
    .await;
    let again = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let pid = server.pid().to_string();
    let second = tokio::spawn(async move {
        again.await;
        std::process::Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill runs")
    });
    let (status, took) = server.terminate().await;
    second.await.expect("sent");
    assert!(status.success());
    assert!(took < Duration::from_secs(10), "{took:?}");
}
