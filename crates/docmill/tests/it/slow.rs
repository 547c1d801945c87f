//! Clients that send slowly, or not at all.

use std::time::{Duration, Instant};

use crate::kit::documents::html;
use crate::kit::raw::{FORM, Raw, create_head, file, request_data};
use crate::kit::server::KEY;
use crate::kit::{File, Server, partition_only};

#[tokio::test]
async fn a_body_that_stops_coming_is_given_up() {
    let server = Server::with(&[("LIMITS__IDLE_TIMEOUT_SECS", "1")]).await;
    let mut raw = Raw::connect(&server).await;
    raw.send(create_head(FORM, Some(100_000)).as_bytes()).await;
    raw.send(&request_data(&partition_only().to_string())).await;
    raw.send(&file(b"a.html", &html("slow", 100))[..1_000]).await;
    raw.answer().await.expect("an answer").error(408, "request_timeout");
    assert!(raw.answer().await.is_none(), "the connection is closed");
    assert!(server.files_below("blobs/in").is_empty());

    let mut urlencoded = Raw::connect(&server).await;
    urlencoded
        .send(create_head("application/x-www-form-urlencoded", Some(1_000)).as_bytes())
        .await;
    urlencoded.send(b"request_data=").await;
    urlencoded
        .answer()
        .await
        .expect("an answer")
        .error(408, "request_timeout");
}

#[tokio::test]
async fn a_request_that_trickles_is_given_up_after_its_whole_time() {
    let server = Server::with(&[
        ("LIMITS__IDLE_TIMEOUT_SECS", "5"),
        ("LIMITS__REQUEST_TIMEOUT_SECS", "2"),
    ])
    .await;
    let mut raw = Raw::connect(&server).await;
    raw.send(create_head(FORM, Some(100_000)).as_bytes()).await;
    raw.send(&request_data(&partition_only().to_string())).await;
    let started = Instant::now();
    let answer = loop {
        if let Some(answer) = raw.answer_within(Duration::from_millis(200)).await {
            break answer;
        }
        raw.send(b"-").await;
        assert!(started.elapsed() < crate::kit::PATIENCE, "it is let go on");
    };
    answer.error(408, "request_timeout");
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let server = Server::with(&[("LIMITS__IDLE_TIMEOUT_SECS", "1")]).await;
    let mut raw = Raw::connect(&server).await;
    raw.send(b"GET /jobs HTTP/1.1\r\nhost: x\r\nx-slow: ").await;
    // Closed with or without an answer.
    if let Some(answer) = raw.answer().await {
        assert_eq!(answer.status, 408);
    }
    let mut huge = Raw::connect(&server).await;
    huge.send(b"GET /jobs HTTP/1.1\r\nhost: x\r\nx-huge: ").await;
    let piece = vec![b'x'; 1 << 16];
    let mut sent = 0;
    while huge.send(&piece).await {
        sent += 1;
        assert!(sent < 1_000, "a head of {} MiB is read", sent / 16);
    }
    server.client().get("/jobs").await.ok();
}

#[tokio::test]
async fn a_thousand_idle_connections_do_not_stop_others() {
    let server = Server::start().await;
    let mut idle = Vec::new();
    for number in 0..1_000 {
        let mut raw = Raw::connect(&server).await;
        match number % 3 {
            0 => {}
            1 => drop(raw.send(b"GET /jobs HTTP/1.1\r\nhost: x\r\n").await),
            _ => drop(raw.send(create_head(FORM, Some(1_000)).as_bytes()).await),
        }
        idle.push(raw);
    }
    let client = server.client();
    for _ in 0..5 {
        let job = client
            .run(&partition_only(), &[File::new("a.html", html("busy", 2))])
            .await;
        assert_eq!(job["status"], "COMPLETED");
    }
    drop(idle);
    client.get("/jobs").await.ok();
}

#[tokio::test]
async fn what_is_not_http_is_turned_away() {
    let server = Server::start().await;
    let with_key = |head: &str| format!("{head}\r\nhost: x\r\nservice-api-key: {KEY}\r\n");
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GARBAGE\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        format!(
            "{}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            with_key("POST /jobs HTTP/1.1")
        )
        .into_bytes(),
        format!("{}content-length: -5\r\n\r\n", with_key("POST /jobs HTTP/1.1")).into_bytes(),
        format!(
            "{}content-length: 5\r\ncontent-length: 6\r\n\r\n12345",
            with_key("POST /jobs HTTP/1.1")
        )
        .into_bytes(),
        with_key(&format!("GET /{} HTTP/1.1", "x".repeat(100_000))).into_bytes(),
    ] {
        let mut raw = Raw::connect(&server).await;
        raw.send(&bytes).await;
        raw.send(b"\r\n\r\n").await;
        if let Some(answer) = raw.answer_within(Duration::from_secs(5)).await {
            assert!((400..500).contains(&answer.status), "{answer:?}");
        }
    }
    server.client().get("/jobs").await.ok();
}
