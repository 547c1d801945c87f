//! Webhooks against a real https receiver, well-behaved and not.

mod common;

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use common::receiver::{Manners, Receiver, egress};
use common::{AT, report};
use docmill_egress::{Egress, Policy};
use docmill_notify::{
    AttemptReport, FailedFile, JobReport, Outcome, WebhookSecret, WebhookSender, payload, test_payload, verify,
};
use serde_json::{Value, json};

const ID: &str = "01979764-2b70-7c3e-8a1f-0000000000aa";
/// What an attempt may take here, so that slow receivers are slow and the tests are not.
const SHORT: Duration = Duration::from_millis(600);

fn sender() -> WebhookSender {
    WebhookSender::with_timeout(&egress(), SHORT).unwrap()
}

fn secret(fill: u8) -> WebhookSecret {
    WebhookSecret::generate([fill; 32])
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

async fn posted(url: &str) -> AttemptReport {
    sender()
        .send(url, ID, now(), Bytes::from(payload(&report())), &[&secret(1)])
        .await
}

/// What came of a receiver with these manners, within the time given.
async fn posted_to(manners: Manners) -> (Receiver, AttemptReport) {
    let receiver = Receiver::start(manners).await;
    let attempt = posted(&receiver.url()).await;
    assert!(attempt.duration < SHORT + Duration::from_millis(400), "{attempt:?}");
    (receiver, attempt)
}

/// Why it is to be tried again.
fn reason(attempt: &AttemptReport) -> &str {
    match &attempt.outcome {
        Outcome::Retry { reason, .. } => {
            assert!(!reason.contains("s3cret") && !reason.contains("key="), "{reason}");
            reason
        }
        other => panic!("{other:?}"),
    }
}

/// What the public library says of a request.
fn judged(secret: &str, raw: bool, headers: &Value, body: &[u8]) -> String {
    let mut child = docmill_testkit::python("verify_webhook.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let request = json!({"secret": secret, "raw": raw, "headers": headers, "body": std::str::from_utf8(body).unwrap()});
    child
        .stdin
        .take()
        .unwrap()
        .write_all(request.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Posts `body` and gives back what arrived: its headers and its bytes.
async fn arrived(body: &[u8], timestamp: i64, secrets: &[&WebhookSecret]) -> (Value, Vec<u8>) {
    let receiver = Receiver::answering("204 No Content", "").await;
    let attempt = sender()
        .send(&receiver.url(), ID, timestamp, Bytes::copy_from_slice(body), secrets)
        .await;
    assert_eq!(
        (attempt.status, &attempt.outcome),
        (Some(204), &Outcome::Delivered),
        "{attempt:?}"
    );
    let requests = receiver.requests();
    let [request] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(request.line(), "POST /in/s3cret?key=s3cret HTTP/1.1");
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("accept-encoding"), "identity");
    assert!(request.header("user-agent").starts_with("docmill/"));
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers = names.map(|name| (name.to_owned(), request.header(name).into()));
    (Value::Object(headers.into_iter().collect()), request.body.clone())
}

#[tokio::test]
async fn the_very_bytes_are_signed_and_arrive() {
    let odd = JobReport {
        workflow_name: "Größe \"x\" \u{2028} 😀 </script>".into(),
        failed_files: vec![FailedFile {
            name: "a\r\nb\0.pdf".into(),
            reason: "no".into(),
        }],
        ..report()
    };
    for body in [payload(&odd), b"{ \"spaced\" :  1.0 }\n".to_vec()] {
        let (headers, arrived) = arrived(&body, now(), &[&secret(1)]).await;
        assert_eq!(arrived, body);
        assert_eq!(headers["webhook-id"], ID);
        let timestamp: i64 = headers["webhook-timestamp"].as_str().unwrap().parse().unwrap();
        let signature = headers["webhook-signature"].as_str().unwrap();
        assert!(verify(&[&secret(1)], ID, timestamp, &body, signature));
        assert_eq!(judged(secret(1).reveal(), false, &headers, &body), "good");
    }
}

#[tokio::test]
async fn the_public_library_takes_what_is_signed_and_nothing_else() {
    let body = payload(&report());
    let (headers, arrived_body) = arrived(&body, now(), &[&secret(1)]).await;
    assert_eq!(judged(secret(1).reveal(), false, &headers, &arrived_body), "good");
    assert!(judged(secret(2).reveal(), false, &headers, &body).starts_with("refused"));
    assert!(judged(secret(1).reveal(), false, &headers, &[&body[..], b" "].concat()).starts_with("refused"));
    for (name, value) in [
        ("webhook-id", "another".to_owned()),
        ("webhook-timestamp", (now() + 1_000).to_string()),
        ("webhook-signature", "v1,AAAA".to_owned()),
    ] {
        let mut headers = headers.clone();
        headers[name] = value.into();
        assert!(
            judged(secret(1).reveal(), false, &headers, &body).starts_with("refused"),
            "{name}"
        );
    }
    // Kept by somebody and sent again later.
    let (old, body) = arrived(&body, now() - 600, &[&secret(1)]).await;
    assert!(judged(secret(1).reveal(), false, &old, &body).starts_with("refused"));
    // A secret of the receiver's own making, whose bytes are the key.
    let own = WebhookSecret::parse("correct horse battery staple").unwrap();
    let (headers, body) = arrived(&body, now(), &[&own]).await;
    assert_eq!(judged(own.reveal(), true, &headers, &body), "good");
}

#[tokio::test]
async fn during_a_rotation_both_secrets_verify() {
    let (new, old) = (secret(2), secret(1));
    let (headers, body) = arrived(&payload(&report()), now(), &[&new, &old]).await;
    assert_eq!(headers["webhook-signature"].as_str().unwrap().split(' ').count(), 2);
    assert_eq!(judged(new.reveal(), false, &headers, &body), "good");
    assert_eq!(judged(old.reveal(), false, &headers, &body), "good");
    assert!(judged(secret(3).reveal(), false, &headers, &body).starts_with("refused"));
}

#[tokio::test]
async fn the_answers_status_says_what_to_do() {
    for status in ["200 OK", "201 Created", "202 Accepted", "299 Odd"] {
        let receiver = Receiver::answering(status, "").await;
        assert_eq!(posted(&receiver.url()).await.outcome, Outcome::Delivered, "{status}");
    }
    for (status, header, wait) in [
        ("500 Internal Server Error", "retry-after: 7\r\n", None),
        ("404 Not Found", "", None),
        ("400 Bad Request", "", None),
        ("429 Too Many Requests", "retry-after: 7\r\n", Some(7)),
        ("503 Service Unavailable", "retry-after: 99999999\r\n", Some(36_000)),
        ("503 Service Unavailable", "retry-after: \u{ff}\r\n", None),
    ] {
        let receiver = Receiver::answering(status, header).await;
        let attempt = posted(&receiver.url()).await;
        assert!(reason(&attempt).contains(status), "{attempt:?}");
        let Outcome::Retry { after, .. } = attempt.outcome else {
            panic!()
        };
        assert_eq!(after.map(|wait| wait.as_secs()), wait, "{status}");
    }
    let receiver = Receiver::answering("410 Gone", "").await;
    let attempt = posted(&receiver.url()).await;
    assert!(
        matches!(attempt.outcome, Outcome::Final { gone: true, .. }),
        "{attempt:?}"
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Receiver::answering("200 OK", "").await;
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let header = format!("location: {}\r\n", target.url());
        let receiver = Receiver::answering(status, &header).await;
        let attempt = posted(&receiver.url()).await;
        assert!(reason(&attempt).contains("redirects are not followed"), "{attempt:?}");
        assert_eq!(attempt.status.unwrap().to_string(), status[..3]);
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn receivers_that_keep_an_attempt_waiting_are_left() {
    let (receiver, attempt) = posted_to(Manners::Silent).await;
    assert_eq!(reason(&attempt), "no answer within 0.6 seconds");
    assert_eq!((attempt.status, receiver.requests().len()), (None, 1));
    // One header after the other, and interim answers for ever.
    for (first, next) in [
        ("HTTP/1.1 200 OK\r\n", "x-more: y\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
    ] {
        let (_, attempt) = posted_to(Manners::Slow(first, next)).await;
        assert_eq!(reason(&attempt), "no answer within 0.6 seconds");
    }
    // The status tells that it was taken, however long the rest may take.
    let (_, attempt) = posted_to(Manners::Slow("HTTP/1.1 200 OK\r\n\r\nfirst ", "x")).await;
    assert_eq!((attempt.status, &attempt.outcome), (Some(200), &Outcome::Delivered));
    assert!(
        attempt.first_bytes.starts_with("first xx") && attempt.duration >= SHORT / 2,
        "{attempt:?}"
    );
}

#[tokio::test]
async fn of_an_endless_answer_the_beginning_is_read() {
    const PIECE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for (first, piece) in [
        ("HTTP/1.1 500 Oops\r\n\r\n", PIECE),
        ("HTTP/1.1 500 Oops\r\ncontent-length: 999999999999\r\n\r\n", PIECE),
        (
            "HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n",
            "10\r\n0123456789abcdef\r\n",
        ),
    ] {
        let (receiver, attempt) = posted_to(Manners::Endless(first, piece)).await;
        assert_eq!(attempt.status, Some(500), "{attempt:?}");
        assert!(reason(&attempt).contains("500"));
        assert!(attempt.first_bytes.starts_with("0123456789abcdef") && attempt.first_bytes.len() == 1024);
        // The connection is closed: no more is taken than fits the buffers on the way.
        let taken = receiver.written();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let later = receiver.written();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(receiver.written(), later, "{taken}");
        assert!(later < 16 << 20, "{later}");
    }
    // Headers without end.
    let (_, attempt) = posted_to(Manners::Endless(
        "HTTP/1.1 200 OK\r\n",
        "x-more: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
    ))
    .await;
    assert!(reason(&attempt).contains("connection broke"), "{attempt:?}");
    assert_eq!(attempt.first_bytes, "");
}

#[tokio::test]
async fn packed_answers_stay_packed() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let megabyte = vec![b'a'; 1 << 20];
    for _ in 0..40 {
        packed.write_all(&megabyte).unwrap();
    }
    let packed = packed.finish().unwrap();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    let answer = [answer.into_bytes(), packed].concat();
    let (_, attempt) = posted_to(Manners::Says(answer)).await;
    assert_eq!(attempt.outcome, Outcome::Delivered);
    assert!(
        attempt.first_bytes.starts_with(" \u{fffd}") && !attempt.first_bytes.contains("aaaa"),
        "{attempt:?}"
    );
}

#[tokio::test]
async fn what_is_kept_of_an_answer_is_plain_text_of_a_kilobyte() {
    let body = [
        b"no\0\x1b[31m such\r\nthing \xff".to_vec(),
        "ü".repeat(2_000).into_bytes(),
    ]
    .concat();
    let head = format!("HTTP/1.1 500 Oops\r\ncontent-length: {}\r\n\r\n", body.len());
    let (_, attempt) = posted_to(Manners::Says([head.into_bytes(), body].concat())).await;
    let kept = &attempt.first_bytes;
    assert!(kept.starts_with("no  [31m such \nthing \u{fffd}üü"), "{kept}");
    assert!(kept.len() <= 1024 && kept.len() > 1000);
    assert!(kept.chars().all(|c| c == '\n' || !c.is_control()));
}

#[tokio::test]
async fn connections_that_break_are_tried_again() {
    for answer in ["", "HTTP/1.1 200", "nonsense\r\n\r\n", "HTTP/1.1 999999 X\r\n\r\n"] {
        let (_, attempt) = posted_to(Manners::Says(answer.into())).await;
        assert!(
            reason(&attempt).contains("the connection broke"),
            "{answer:?}: {attempt:?}"
        );
        assert_eq!((attempt.status, attempt.first_bytes.as_str()), (None, ""));
    }
    let port = docmill_testkit::free_port();
    let attempt = posted(&format!("https://127.0.0.1:{port}/s3cret")).await;
    assert!(reason(&attempt).starts_with("no connection"), "{attempt:?}");
    // An answer that is shorter than it said: its status came, and that is what counts.
    let (_, attempt) = posted_to(Manners::Says("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok".into())).await;
    assert_eq!(
        (attempt.outcome, attempt.first_bytes.as_str()),
        (Outcome::Delivered, "ok")
    );
}

#[tokio::test]
async fn what_the_guard_refuses_is_never_connected_to() {
    let receiver = Receiver::answering("200 OK", "").await;
    let port = receiver.port();
    let strict = WebhookSender::with_timeout(&Egress::new(Policy::default()), SHORT).unwrap();
    for (url, why) in [
        (receiver.url(), "127.0.0.1 is a loopback address"),
        (format!("https://[::ffff:127.0.0.1]:{port}/s3cret"), "loopback"),
        (format!("https://0x7f000001:{port}/s3cret"), "loopback"),
        ("https://10.0.0.1/s3cret".into(), "10.0.0.1 is a private address"),
        ("https://169.254.169.254/s3cret".into(), "link-local"),
        (format!("https://localhost:{port}/s3cret"), "localhost"),
        (format!("http://127.0.0.1:{port}/s3cret"), "plain http"),
    ] {
        let attempt = strict.send(&url, ID, now(), Bytes::new(), &[&secret(1)]).await;
        assert!(reason(&attempt).contains(why), "{url}: {attempt:?}");
        assert_eq!(attempt.status, None);
    }
    for (url, why) in [
        (format!("http://127.0.0.1:{port}/s3cret"), "plain http is not allowed"),
        (
            format!("https://user:s3cret@127.0.0.1:{port}/"),
            "user name or password",
        ),
        (format!("https://s3cret@127.0.0.1:{port}/"), "user name or password"),
        ("https://127.0.0.1:25/s3cret".into(), "port 25"),
        ("file:///etc/s3cret".into(), "https://"),
    ] {
        let attempt = posted(&url).await;
        assert!(reason(&attempt).contains(why), "{url}: {attempt:?}");
    }
    for url in [
        "",
        "no url",
        "https://",
        "file:///etc/passwd",
        "https://127.0.0.1:99999/",
    ] {
        let attempt = posted(url).await;
        assert!(!matches!(attempt.outcome, Outcome::Delivered), "{url}: {attempt:?}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_receiver_that_nobody_vouches_for_gets_nothing() {
    let receiver = Receiver::answering("200 OK", "").await;
    let policy = Policy {
        ca_file: None,
        ..egress().policy().clone()
    };
    let sender = WebhookSender::with_timeout(&Egress::new(policy), SHORT).unwrap();
    let attempt = sender
        .send(&receiver.url(), ID, now(), Bytes::from_static(b"{}"), &[&secret(1)])
        .await;
    assert!(reason(&attempt).contains("certificate"), "{attempt:?}");
    assert!(receiver.requests().is_empty() && receiver.connections() > 0);
}

#[tokio::test]
async fn dead_receivers_do_not_delay_the_living() {
    let (dead, alive) = (
        Receiver::start(Manners::Silent).await,
        Receiver::answering("200 OK", "").await,
    );
    let sender = WebhookSender::with_timeout(&egress(), Duration::from_secs(10)).unwrap();
    for _ in 0..50 {
        let (sender, url) = (sender.clone(), dead.url());
        tokio::spawn(async move {
            sender
                .send(&url, ID, now(), Bytes::from_static(b"{}"), &[&secret(1)])
                .await
        });
    }
    let start = Instant::now();
    while dead.requests().len() < 50 {
        assert!(start.elapsed() < Duration::from_secs(8), "{}", dead.requests().len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let attempt = sender
        .send(&alive.url(), ID, now(), Bytes::from_static(b"{}"), &[&secret(1)])
        .await;
    assert_eq!(attempt.outcome, Outcome::Delivered);
    assert!(attempt.duration < Duration::from_secs(2), "{attempt:?}");
}

#[test]
fn bodies_are_as_documented() {
    let body: Value = serde_json::from_slice(&payload(&report())).unwrap();
    assert_eq!(body["type"], "job.completed");
    assert_eq!(body["timestamp"], "2026-06-22T11:37:21.648Z");
    let job = &body["data"]["job"];
    assert_eq!(job["id"], "01979764-2b70-7c3e-8a1f-000000000001");
    assert_eq!(
        (&job["job_id"], &job["status"], &job["sequence"]),
        (&job["id"], &json!("COMPLETED"), &json!(3))
    );
    assert_eq!(job["processing_time_ms"], 195_300);
    assert_eq!(job["failed_files"][0]["name"], "invoice-4711.pdf");
    assert_eq!(body["data"]["workspace_id"], "01979764-2b70-7c3e-8a1f-000000000002");
    let long = JobReport {
        workflow_name: "ä".repeat(10_000),
        message: Some("ö".repeat(10_000)),
        failed_files: vec![
            FailedFile {
                name: "ü".repeat(10_000),
                reason: "ß".repeat(10_000),
            };
            500
        ],
        ..report()
    };
    assert!(payload(&long).len() < 40_000);
    let test = test_payload(
        "ep_0a1B2c3D4e5F6g7H8i9J0k1L2m3N",
        Some("ERP"),
        &report().workspace_id,
        AT,
    );
    let test: Value = serde_json::from_slice(&test).unwrap();
    assert_eq!(
        (&test["type"], &test["data"]["channel"]["description"]),
        (&json!("channel.test"), &json!("ERP"))
    );
}
