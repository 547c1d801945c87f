//! The promised limits, at their edges.

use std::time::{Duration, Instant};

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{html, slow_html};
use crate::kit::raw::{END, FORM, Raw, create_head, file, request_data};
use crate::kit::{File, Server, partition_only, until};

#[tokio::test]
async fn ten_files_pass_and_eleven_do_not() {
    let server = Server::start().await;
    let client = server.client();
    let files: Vec<_> = (0..11)
        .map(|n| File::new("same name.html", html(&format!("file {n}"), 1)))
        .collect();
    let job = client.run(&partition_only(), &files[..10]).await;
    assert_eq!(job["status"], "COMPLETED");
    let ids = file_ids(&job);
    assert_eq!(ids.len(), 10);
    for (number, id) in ids.iter().enumerate() {
        let said = client.text(text(&job["id"]), id).await;
        assert!(
            said.contains(&format!("file {number}")),
            "ids are in the order of upload: {said}"
        );
    }
    let body = client
        .create(&partition_only(), &files)
        .await
        .error(422, "too_many_files");
    assert!(text(&body["detail"]).contains("10") && text(&body["detail"]).contains("limits.max_files_per_job"));
    // Nothing of the refused one is left.
    until("the refused files to be gone", async || {
        (server.files_below("blobs/in").len() == 10).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_file_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
    let server = Server::with(&[("LIMITS__MAX_FILE_BYTES", "1000")]).await;
    let client = server.client();
    let mut page = html("edge", 1);
    page.resize(1_000, b' ');
    let job = client
        .run(&partition_only(), &[File::new("edge.html", page.clone())])
        .await;
    assert_eq!(job["status"], "COMPLETED");
    page.push(b' ');
    let over = [
        File::new("small.html", html("s", 1)),
        File::new("edge.html", page.clone()),
    ];
    let body = client
        .create(&partition_only(), &over)
        .await
        .error(413, "file_too_large");
    let detail = text(&body["detail"]);
    assert!(
        detail.contains("edge.html") && detail.contains("1000") && detail.contains("limits.max_file_bytes"),
        "{detail}"
    );
    assert_eq!(server.files_below("blobs/in").len(), 1);

    // Without a Content-Length, in pieces.
    let mut raw = Raw::connect(&server).await;
    raw.send(create_head(FORM, None).as_bytes()).await;
    let body = [
        request_data(&partition_only().to_string()),
        file(b"chunked.html", &page),
        END.to_vec(),
    ]
    .concat();
    for piece in body.chunks(100) {
        raw.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
        raw.send(piece).await;
        raw.send(b"\r\n").await;
    }
    raw.send(b"0\r\n\r\n").await;
    raw.answer().await.expect("an answer").error(413, "file_too_large");
}

#[tokio::test]
async fn a_form_in_pieces_without_length_is_read_like_any_other() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    raw.send(create_head(FORM, None).as_bytes()).await;
    let body = [
        request_data(&partition_only().to_string()),
        file(b"chunked.html", &html("pieces", 3)),
        END.to_vec(),
    ]
    .concat();
    for piece in body.chunks(7) {
        raw.send(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
            .await;
    }
    raw.send(b"0\r\n\r\n").await;
    let answer = raw.answer().await.expect("an answer");
    assert_eq!(answer.status, 200);
    let client = server.client();
    let job = client.ended(text(&answer.json()["id"])).await;
    assert!(
        client
            .text(text(&job["id"]), &file_ids(&job)[0])
            .await
            .contains("pieces")
    );
}

/// The real defaults: 50 MiB pass, one byte more is refused with an answer the client gets to read, and
/// the server's memory does not follow the file.
#[tokio::test]
async fn fifty_mebibytes_are_the_default_and_stream_through() {
    const LIMIT: usize = 50 * 1024 * 1024;
    let server = Server::start().await;
    let client = server.client();
    client
        .run(&partition_only(), &[File::new("warm-up.html", html("w", 1))])
        .await;
    let before = server.resident_kib();
    let mut page = html("big", 10);
    page.resize(LIMIT, b'\n');
    page.push(b'\n');
    for _ in 0..3 {
        let over = client
            .create(&partition_only(), &[File::new("big.html", page.clone())])
            .await;
        over.error(413, "file_too_large");
    }
    let after = server.resident_kib();
    assert!(
        after < before + 40 * 1024,
        "from {before} to {after} KiB while 150 MiB streamed in"
    );
    page.pop();
    let job = client.created(&partition_only(), &[File::new("big.html", page)]).await;
    let details = client.details(text(&job["id"])).await;
    assert_eq!(details["files"][0]["size"], LIMIT);
    client.post(&format!("/jobs/{}/cancel", text(&job["id"]))).await.ok();
}

#[tokio::test]
async fn a_stream_without_end_is_cut_and_costs_no_memory() {
    let server = Server::with(&[("LIMITS__MAX_FILE_BYTES", "10000000")]).await;
    server
        .client()
        .run(&partition_only(), &[File::new("warm-up.html", html("w", 1))])
        .await;
    let before = server.resident_kib();
    let mut raw = Raw::connect(&server).await;
    raw.send(create_head(FORM, Some(usize::MAX / 4)).as_bytes()).await;
    let start = file(b"endless.txt", b"");
    raw.send(&start[..start.len() - 2]).await;
    let piece = vec![b'x'; 1 << 20];
    let mut sent = 0u64;
    let mut peak = 0;
    while raw.send(&piece).await {
        sent += 1;
        peak = peak.max(server.resident_kib());
        assert!(sent < 4_096, "the server takes everything");
    }
    assert!(peak < before + 40 * 1024, "from {before} to {peak} KiB");
    assert!(server.files_below("blobs/in").len() <= 1);
    server.client().get("/jobs").await.ok();
}

#[tokio::test]
async fn of_two_creations_at_once_exactly_one_passes() {
    let server = Server::with(&[("LIMITS__CREATE_GAP_MS", "3000")]).await;
    let client = server.client();
    for _ in 0..2 {
        let request = async || {
            let client = client.on_new_connection();
            client
                .create(&partition_only(), &[File::new("a.html", html("a", 1))])
                .await
        };
        let started = Instant::now();
        let answers = [request(), request(), request(), request()];
        let answers = futures(answers).await;
        let passed = answers.iter().filter(|answer| answer.status == 200).count();
        if started.elapsed() < Duration::from_secs(3) {
            assert_eq!(passed, 1);
        }
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            let body = refused.error(429, "rate_limited");
            assert!(text(&body["detail"]).contains("3000") && text(&body["detail"]).contains("limits.create_gap_ms"));
            let wait: u64 = refused
                .header("retry-after")
                .and_then(|v| v.parse().ok())
                .expect("Retry-After");
            assert!((1..=3).contains(&wait), "{wait}");
        }
        // After the time the answer names, the door is open.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    // Another account has a gap of its own, and the answer says so.
    client.create(&partition_only(), &[]).await.ok();
    server.stranger().create(&partition_only(), &[]).await.ok();
}

/// A refusal must be readable also for a client that is in the middle of sending a large file.
#[tokio::test]
async fn a_client_that_is_still_sending_reads_why_it_was_refused() {
    let server = Server::with(&[("LIMITS__CREATE_GAP_MS", "600000")]).await;
    let client = server.client();
    client.create(&partition_only(), &[]).await.ok();
    let big = File::new("big.html", vec![b'x'; 20 << 20]);
    for _ in 0..3 {
        client
            .create(&partition_only(), std::slice::from_ref(&big))
            .await
            .error(429, "rate_limited");
        let form = Form::new().part("input_files", Part::bytes(big.bytes.clone()).file_name("big.html"));
        let request = client
            .anonymous(Method::POST, "/jobs")
            .header("service-api-key", "wrong")
            .multipart(form);
        client.send(request).await.error(401, "api_key_invalid");
        let request = client
            .request(Method::POST, "/jobs/")
            .header("content-type", "text/plain")
            .body(big.bytes.clone());
        client.send(request).await.error(429, "rate_limited");
        let request = client.request(Method::POST, "/nothing").body(big.bytes.clone());
        client.send(request).await.error(404, "not_found");
    }
}

#[tokio::test]
async fn the_sixth_job_waits_and_starts_in_order() {
    let server = Server::with(&[("ENGINE__WORKERS", "1")]).await;
    let client = server.client();
    let slow = File::new("slow.html", slow_html());
    let mut jobs = Vec::new();
    for _ in 0..8 {
        jobs.push(client.created(&partition_only(), std::slice::from_ref(&slow)).await);
    }
    let status = async |index: usize| {
        let job = client.get(&format!("/jobs/{}", text(&jobs[index]["id"]))).await.ok();
        text(&job["status"]).to_owned()
    };
    for (index, expected) in [
        "IN_PROGRESS",
        "IN_PROGRESS",
        "IN_PROGRESS",
        "IN_PROGRESS",
        "IN_PROGRESS",
        "SCHEDULED",
        "SCHEDULED",
        "SCHEDULED",
    ]
    .iter()
    .enumerate()
    {
        // One may have ended already; then a waiting one has moved up, which the next loop looks at.
        assert_eq!(status(index).await, *expected, "job {index}");
    }
    for ending in 0..3 {
        client
            .post(&format!("/jobs/{}/cancel", text(&jobs[ending]["id"])))
            .await
            .ok();
        assert_eq!(status(5 + ending).await, "IN_PROGRESS");
        if ending < 2 {
            assert_eq!(status(6 + ending).await, "SCHEDULED");
        }
    }
    // Another account is not held up by this one's limit.
    let stranger = server.stranger();
    let theirs = stranger
        .created(&partition_only(), &[File::new("a.html", html("a", 1))])
        .await;
    assert_eq!(theirs["status"], "IN_PROGRESS");
    for job in &jobs {
        client.post(&format!("/jobs/{}/cancel", text(&job["id"]))).await.ok();
    }
    assert_eq!(stranger.ended(text(&theirs["id"])).await["status"], "COMPLETED");
}

#[tokio::test]
async fn the_limit_of_running_jobs_holds_under_many_creations_at_once() {
    let server = Server::with(&[("LIMITS__MAX_RUNNING_LOCAL_JOBS", "3")]).await;
    let client = server.client();
    let creations = (0..24).map(async |n| {
        let client = client.on_new_connection();
        client
            .created(
                &partition_only(),
                &[File::new(format!("{n}.html"), html("parallel", 200))],
            )
            .await
    });
    let watch = async {
        let mut most = 0;
        loop {
            let jobs = client.get("/jobs").await.ok();
            let jobs = jobs.as_array().expect("a list");
            let count = |status: &str| jobs.iter().filter(|job| job["status"] == status).count();
            most = most.max(count("IN_PROGRESS"));
            if count("COMPLETED") == 24 {
                return most;
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    };
    let (_, most) = tokio::join!(futures(creations), tokio::time::timeout(crate::kit::PATIENCE, watch));
    let most = most.expect("all jobs complete in time");
    assert!((1..=3).contains(&most), "{most} ran at once");
}

#[tokio::test]
async fn the_limits_told_are_the_limits_set() {
    let server = Server::with(&[("LIMITS__MAX_FILES_PER_JOB", "2"), ("LIMITS__TASK_TIMEOUT_SECS", "77")]).await;
    let client = server.client();
    let told = client.get("/api/v1/limits/").await.ok();
    assert_eq!(
        (&told["max_files_per_job"], &told["task_timeout_secs"]),
        (&json!(2), &json!(77))
    );
    let files = vec![File::new("a.html", html("a", 1)); 3];
    client
        .create(&partition_only(), &files)
        .await
        .error(422, "too_many_files");
}

/// Runs futures side by side.
async fn futures<T>(all: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(all).await
}
