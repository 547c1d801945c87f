//! Vision models that fail, and servers that die while pages are shown.

use std::time::Duration;

use docmill_testkit::{Double, Reply};
use serde_json::{Value, json};

use crate::chain::output;
use crate::kit::client::text;
use crate::kit::models::{self, MODEL_KEY, asked, completion};
use crate::kit::{Client, File, until};
use crate::vision::{assert_completed, book, good_reader, page_of, pages, reader, transcript, warnings};

fn request(allow_fast: bool) -> Value {
    json!({"job_nodes": [reader(json!({"allow_fast": allow_fast}))]})
}

async fn failure(client: &Client, job: &Value) -> (String, String) {
    assert_eq!(job["status"], "FAILED", "{job}");
    let failed = client.failed_files(text(&job["id"])).await;
    let failed = &failed["failed_files"][0];
    (text(&failed["code"]).to_owned(), text(&failed["error"]).to_owned())
}

/// Fails for page 3, answers page 4 with what is no page, and reads the others.
async fn fails_at_three() -> Double {
    Double::start(|asked, _| {
        Ok(match page_of(asked)? {
            3 => Reply::status(503, "{}").with("x-request-id", "req_503"),
            4 => completion("I can not transcribe this."),
            page => completion(transcript(page)),
        })
    })
    .await
}

#[tokio::test]
async fn the_local_engine_stands_in_for_pages_that_fail() {
    let double = fails_at_three().await;
    let server = models::server(&double, &[("PROVIDERS__OPENAI__MAX_RETRIES", "1")]).await;
    let client = server.client();
    let job = client.run(&request(true), &[File::new("book.pdf", book(5))]).await;
    assert_completed(&job);
    // Page 3 is tried twice as a call, page 4 is asked again in other words.
    assert_eq!(double.count(), 3 + 2 + 2);
    let elements = output(&client, &job, 0).await;
    let on = |page: u32| {
        let all = elements.as_array().expect("a list").iter();
        let of_page = all.filter(|e| e["metadata"]["page_number"] == page);
        of_page
            .map(|e| (text(&e["metadata"]["routing"]), text(&e["text"])))
            .collect::<Vec<_>>()
    };
    assert_eq!(on(3), [("fast", "The text layer of page 3.")]);
    assert_eq!(on(4), [("fast", "The text layer of page 4.")]);
    assert_eq!(on(5).first(), Some(&("vlm", "Chapter 5")));
    let warnings = warnings(&client, &job).await;
    let told: Vec<_> = warnings
        .iter()
        .map(|w| (text(&w["code"]), w["page_number"].clone()))
        .collect();
    assert_eq!(told, [("page_read_locally", json!(3)), ("page_read_locally", json!(4))]);
    for part in ["openai", "503", "req_503", "local engine"] {
        assert!(text(&warnings[0]["message"]).contains(part), "{warnings:?}");
    }
    let pages = pages(&client, &job).await;
    assert_eq!(
        (&pages[2]["route"], &pages[2]["reason"]),
        (&json!("fast"), &json!("model_failed"))
    );
    assert_eq!((&pages[3]["calls"], &pages[3]["tokens_in"]), (&json!(2), &json!(200)));
    // What could not be used is asked anew, what could is not.
    let before = double.count();
    assert_completed(&client.run(&request(true), &[File::new("book.pdf", book(5))]).await);
    assert_eq!(double.count() - before, 4);
}

#[tokio::test]
async fn without_a_stand_in_a_failed_page_fails_the_file_and_answers_are_kept() {
    let double = fails_at_three().await;
    let one_by_one = [
        ("PROVIDERS__OPENAI__MAX_RETRIES", "0"),
        ("PROVIDERS__OPENAI__CONCURRENCY", "1"),
    ];
    let server = models::server(&double, &one_by_one).await;
    let client = server.client();
    let job = client.run(&request(false), &[File::new("book.pdf", book(9))]).await;
    let (code, reason) = failure(&client, &job).await;
    assert_eq!(code, "provider_unavailable", "{reason}");
    for part in ["page 3", "openai", "503", "req_503", "`vlm`"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(double.count(), 3, "nothing more is asked");
    let cost = client.details(text(&job["id"])).await["node_stats"][0]["cost"].clone();
    assert_eq!(cost["tokens_in"], 200, "{cost}");
    let retried = client.post(&format!("/jobs/{}/retry", text(&job["id"]))).await.ok();
    client.ended(text(&retried["id"])).await;
    assert_eq!(double.count(), 4, "page 3 alone");
}

#[tokio::test]
async fn a_wrong_key_fails_the_file_at_once() {
    let double = Double::start(|_, _| {
        let body = json!({"error": {"message": "Incorrect API key provided.", "code": "invalid_api_key"}});
        Ok(Reply::status(401, body.to_string()).with("x-request-id", "req_7"))
    })
    .await;
    let server = models::server(&double, &[("PROVIDERS__OPENAI__CONCURRENCY", "1")]).await;
    let client = server.client();
    for allow_fast in [true, false] {
        let before = double.count();
        let job = client
            .run(&request(allow_fast), &[File::new("book.pdf", book(12))])
            .await;
        let (code, reason) = failure(&client, &job).await;
        assert_eq!(code, "provider_refused");
        assert!(reason.contains("401") && reason.contains("req_7"), "{reason}");
        assert_eq!(double.count() - before, 1);
    }
    crate::secrets::assert_nowhere(&server, MODEL_KEY);
}

/// A server killed while pages are shown pays for no page twice but those under way, here two at most.
#[tokio::test]
async fn a_kill_repeats_at_most_the_pages_under_way() {
    let double = good_reader(Duration::from_millis(50)).await;
    let two_at_once = [("PROVIDERS__OPENAI__CONCURRENCY", "2"), ("ENGINE__WORKERS", "1")];
    let mut server = models::server(&double, &two_at_once).await;
    let created = server
        .client()
        .created(&request(false), &[File::new("book.pdf", book(20))])
        .await;
    let mut kills = 0;
    for calls in [3, 9, 15] {
        until("some calls", async || {
            (double.count() >= calls + 2 * kills).then_some(())
        })
        .await;
        server.kill();
        kills += 1;
        server = server.restart().await;
    }
    let client = server.client();
    let job = client.ended(text(&created["id"])).await;
    assert_completed(&job);
    let elements = output(&client, &job, 0).await;
    assert_eq!(elements.as_array().map(Vec::len), Some(40));
    until("the double to be done", async || {
        (asked(&double).len() == 20).then_some(())
    })
    .await;
    assert!(
        double.count() <= 20 + 2 * kills,
        "{} calls, {kills} kills",
        double.count()
    );
    assert!(asked(&double).values().all(|times| *times <= 1 + kills));
}

#[tokio::test]
async fn a_budget_ends_the_reading_of_pages() {
    let double = good_reader(Duration::ZERO).await;
    // A page costs 100 × 10 + 10 × 100 millionths: 0.002. The fourth is the last.
    let priced = [
        ("PROVIDERS__OPENAI__PRICES__GPT-4O__INPUT_PER_MILLION", "10"),
        ("PROVIDERS__OPENAI__PRICES__GPT-4O__OUTPUT_PER_MILLION", "100"),
        ("PROVIDERS__OPENAI__CONCURRENCY", "1"),
        ("BUDGET__PER_WORKSPACE_PER_MONTH", "0.007"),
    ];
    let server = models::server(&double, &priced).await;
    let client = server.client();
    let job = client.run(&request(true), &[File::new("book.pdf", book(9))]).await;
    let (code, reason) = failure(&client, &job).await;
    assert_eq!(code, "budget_exceeded", "{reason}");
    assert_eq!(double.count(), 4);
}
