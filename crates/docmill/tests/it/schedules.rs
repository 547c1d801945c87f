//! Schedules as clients write and read them.

use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, Folders, custom_workflow};
use crate::workflows::places;

/// A workflow with a source, so that it may have a schedule.
async fn scheduled(client: &Client, source: &str, change: Value) -> Value {
    client.workflow(&body(source, change)).await
}

fn body(source: &str, change: Value) -> Value {
    let mut body = custom_workflow("w");
    body["source_id"] = source.into();
    for (name, value) in change.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn words_cron_and_the_answers_own_shape_are_read() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    for (word, cron) in [
        ("every 15 minutes", "*/15 * * * *"),
        ("every hour", "0 * * * *"),
        ("every 2 hours", "0 */2 * * *"),
        ("every 4 hours", "0 */4 * * *"),
        ("every 6 hours", "0 */6 * * *"),
        ("every 8 hours", "0 */8 * * *"),
        ("every 10 hours", "0 */10 * * *"),
        ("every 12 hours", "0 */12 * * *"),
        ("daily", "0 0 * * *"),
        ("weekly", "0 0 * * 0"),
        ("monthly", "0 0 1 * *"),
        ("30 6 * * 1-5", "30 6 * * 1-5"),
    ] {
        let created = scheduled(&client, &source, json!({"schedule": word})).await;
        assert_eq!(
            created["schedule"],
            json!({"crontab_entries": [{"cron_expression": cron}]}),
            "{word}"
        );
        let runs: Vec<_> = created["next_runs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(text)
            .collect();
        assert_eq!(runs.len(), 5, "{word}");
        assert!(
            runs.is_sorted() && runs[0] > text(&created["created_at"]),
            "{word}: {runs:?}"
        );
        assert!(runs.iter().all(|run| run.ends_with(":00.000Z")), "{runs:?}");
        let again = scheduled(&client, &source, json!({"schedule": created["schedule"]})).await;
        assert_eq!(again["schedule"], created["schedule"]);
    }
}

#[tokio::test]
async fn a_schedule_is_read_on_the_clock_of_its_time_zone() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    // Zones without daylight saving, so that the expectation holds all year.
    for (zone, hour) in [
        ("UTC", "T09:30"),
        ("Asia/Tokyo", "T00:30"),
        ("Asia/Kolkata", "T04:00"),
        ("Etc/GMT+5", "T14:30"),
    ] {
        let created = scheduled(&client, &source, json!({"schedule": "30 9 * * *", "timezone": zone})).await;
        assert_eq!(created["timezone"], zone);
        for run in created["next_runs"].as_array().expect("a list") {
            assert!(text(run).contains(hour), "{zone}: {run}");
        }
    }
}

#[tokio::test]
async fn nonsense_is_refused_and_the_answer_teaches() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    for schedule in [
        json!(""),
        json!("now"),
        json!("every 3 hours"),
        json!("* * * *"),
        json!("60 * * * *"),
        json!("* 24 * * *"),
        json!("* * 0 * *"),
        json!("* * 32 * *"),
        json!("* * * 13 *"),
        json!("* * * * 9"),
        json!("0 0 30 2 *"),
        json!("*/0 * * * *"),
        json!("5-1 * * * *"),
        json!("1,,2 * * * *"),
        json!("99999999999999999999 * * * *"),
        json!("* * * * * * * *"),
        json!("@reboot"),
        json!("0 0 * * *; rm -rf /"),
        json!("0 0 * * *\u{0}"),
        json!("ä ö ü ß €"),
        json!("*,".repeat(100_000)),
        json!(7),
        json!(true),
        json!([]),
        json!({}),
        json!({"crontab_entries": []}),
        json!({"crontab_entries": [{"cron_expression": 7}]}),
        json!({"crontab_entries": [{"cron_expression": "now"}]}),
        json!({"crontab_entries": [{"cron_expression": "0 0 * * *"}, {"cron_expression": "0 1 * * *"}]}),
        json!({"crontab_entries": {"cron_expression": "0 0 * * *"}}),
    ] {
        let answer = client
            .post_json("/workflows", &body(&source, json!({"schedule": schedule})))
            .await;
        assert_eq!(places(&answer), ["body.schedule"], "{schedule}");
        let message = answer.json()["detail"][0]["msg"].clone();
        let message = text(&message);
        // What would be right, unless what is wrong says it all.
        let teaches = message.contains("daily") && message.contains("cron");
        let teaches = teaches
            || ["cron_expression", "never fires", "at most"]
                .iter()
                .any(|part| message.contains(part));
        assert!(!message.contains("omponent") && !message.contains(".;"), "{message}");
        assert!(teaches && message.len() < 1_000, "{schedule}: {message}");
    }
    for zone in [
        json!(""),
        json!("Mars/Base"),
        json!("+02:00"),
        json!(1),
        json!("../../etc/passwd"),
        json!("x".repeat(100_000)),
    ] {
        let change = json!({"schedule": "daily", "timezone": zone});
        let answer = client.post_json("/workflows", &body(&source, change)).await;
        assert_eq!(places(&answer), ["body.timezone"], "{zone}");
    }
    assert_eq!(client.get("/workflows").await.ok(), json!([]));
}

#[tokio::test]
async fn a_workflow_without_source_has_no_schedule() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let mut body = custom_workflow("w");
    body["schedule"] = json!("daily");
    let answer = client.post_json("/workflows", &body).await;
    assert_eq!(places(&answer), ["body.schedule"]);
    assert!(text(&answer.json()["detail"][0]["msg"]).contains("source_id"));
    for (name, value) in [("timezone", "UTC"), ("schedule_overlap", "skip")] {
        let mut body = custom_workflow("w");
        body[name] = json!(value);
        assert_eq!(
            places(&client.post_json("/workflows", &body).await),
            [format!("body.{name}")]
        );
    }
    let source = client.local("source", &folders.folder("in")).await;
    let inactive = scheduled(&client, &source, json!({"schedule": "daily", "state": "inactive"})).await;
    assert_eq!(
        (&inactive["status"], &inactive["next_runs"]),
        (&json!("inactive"), &json!([]))
    );
}
