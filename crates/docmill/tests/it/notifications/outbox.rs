//! What was sent, why not, and sending it again.

use serde_json::{Value, json};

use super::CHANNELS;
use crate::kit::client::text;
use crate::kit::post::{Post, Receiver, created};
use crate::kit::{Client, partition_only, until};

async fn hooked(client: &Client, receiver: &Receiver) -> (String, String) {
    let body = json!({"channel_type": "webhook", "event_types": ["job.completed"], "url": receiver.url()});
    let channel = created(client, CHANNELS, &body).await;
    (
        format!("{CHANNELS}/{}", text(&channel["id"])),
        text(&channel["secret"]).to_owned(),
    )
}

async fn attempts(client: &Client, channel: &str, count: usize) -> (Value, Vec<Value>) {
    until("the attempts", async || {
        let page = client.get(&format!("{channel}/deliveries")).await.ok();
        let delivery = page["deliveries"].get(0)?.clone();
        let path = format!("{channel}/deliveries/{}", text(&delivery["id"]));
        assert_eq!(client.get(&path).await.ok()["id"], delivery["id"]);
        let attempts = client.get(&format!("{path}/attempts")).await.ok();
        let attempts = attempts["attempts"].as_array().expect("a list").clone();
        (attempts.len() >= count).then_some((delivery, attempts))
    })
    .await
}

#[tokio::test]
async fn n10_requests_are_signed_and_a_rotation_leaves_both_secrets_good() {
    let (post, receiver) = (Post::start(), Receiver::start().await);
    let server = post.server(&[]).await;
    let client = server.client();
    let (channel, first) = hooked(&client, &receiver).await;
    let sent = client.post(&format!("{channel}/test")).await;
    assert_eq!(sent.status, 202, "{sent}");
    let call = receiver.wait(1).await[0].clone();
    assert_eq!(call.header("webhook-id"), text(&sent.json()["delivery_id"]));
    assert_eq!(call.json()["type"], "channel.test");
    assert!(call.verifies(&first));
    let too_soon = client.post(&format!("{channel}/test")).await;
    too_soon.error(429, "rate_limited");
    assert!(too_soon.header("retry-after").is_some());
    let rotated = client.post(&format!("{channel}/secret/rotate")).await.ok();
    client.run(&partition_only(), &[]).await;
    let call = receiver.wait(2).await[1].clone();
    assert!(call.verifies(&first) && call.verifies(text(&rotated["secret"])));
    assert!(!call.verifies("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
    let given = json!({"secret": "a secret of my own, long enough"});
    let rotated = client.post_json(&format!("{channel}/secret/rotate"), &given).await.ok();
    assert!(text(&rotated["secret"]).len() > 10);
    let short = client
        .post_json(&format!("{channel}/secret/rotate"), &json!({"secret": "short"}))
        .await;
    short.error(422, "validation_failed");
}

#[tokio::test]
async fn n11_n12_failures_are_logged_retried_and_replayed_under_the_same_id() {
    let (post, receiver) = (Post::start(), Receiver::start().await);
    let server = post.server(&[]).await;
    let client = server.client();
    let (channel, _) = hooked(&client, &receiver).await;
    receiver.answers("302 Found", "location: https://127.0.0.1:1/elsewhere\r\n");
    client.run(&partition_only(), &[]).await;
    let (delivery, tried) = attempts(&client, &channel, 2).await;
    assert_eq!(
        (&delivery["state"], &delivery["kind"]),
        (&json!("pending"), &json!("event"))
    );
    assert_eq!(
        (&tried[0]["status"], &delivery["event_type"]),
        (&json!(302), &json!("job.completed"))
    );
    assert!(text(&tried[0]["error"]).contains("redirect"), "{tried:?}");
    assert!(delivery["next_attempt_at"].is_string() && tried[0]["duration_ms"].is_u64());
    let ids: Vec<_> = receiver
        .calls()
        .iter()
        .map(|call| call.header("webhook-id").to_owned())
        .collect();
    assert!(ids.iter().all(|id| *id == text(&delivery["id"])), "{ids:?}");

    let one = format!("{channel}/deliveries/{}", text(&delivery["id"]));
    receiver.answers("200 OK", "");
    let replay = client.post(&format!("{one}/replay")).await;
    assert_eq!((replay.status, &replay.json()["id"]), (202, &delivery["id"]));
    until("the delivery", async || {
        (client.get(&one).await.ok()["state"] == "delivered").then_some(())
    })
    .await;

    // A receiver that is gone for good ends the delivery and the channel; then all that failed goes again.
    receiver.answers("410 Gone", "");
    client.run(&partition_only(), &[]).await;
    let gone = until("the channel's end", async || {
        let shown = client.get(&channel).await.ok();
        (shown["enabled"] == false).then_some(shown)
    })
    .await;
    assert!(
        gone["disabled_reason"].is_string() || gone["bounced_reason"].is_string(),
        "{gone}"
    );
    let failed = client.get(&format!("{channel}/deliveries?state=failed")).await.ok();
    assert_eq!(failed["deliveries"].as_array().map(Vec::len), Some(1), "{failed}");
    let inbox = client
        .get("/notifications?event_types=channel.disabled,channel.bounced")
        .await
        .ok();
    assert_eq!(inbox["events"].as_array().map(Vec::len), Some(1), "{inbox}");
    let since = json!({"since": "2020-01-01T00:00:00Z"});
    let replay = format!("{channel}/deliveries/replay-failed");
    client
        .post_json(&replay, &since)
        .await
        .error(409, "channel_state_conflict");
    receiver.answers("200 OK", "");
    let enable = json!({"enabled": true});
    client.send_json(reqwest::Method::PATCH, &channel, &enable).await.ok();
    let answer = client.post_json(&replay, &since).await;
    assert_eq!((answer.status, answer.json()), (202, json!({"replayed_count": 1})));
    until("all to be delivered", async || {
        let page = client.get(&format!("{channel}/deliveries?state=delivered")).await.ok();
        (page["deliveries"].as_array().map(Vec::len) == Some(2)).then_some(())
    })
    .await;
    for body in [
        json!({}),
        json!({"since": "yesterday"}),
        json!({"since": "2020-01-01T00:00:00Z", "x": 1}),
    ] {
        client.post_json(&replay, &body).await.error(422, "validation_failed");
    }
}

#[tokio::test]
async fn deliveries_are_listed_page_by_page_and_codes_are_never_sent_twice() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let client = server.client();
    let channel = post
        .verified(&client, CHANNELS, "ana@example.org", &["job.completed"])
        .await;
    let channel = format!("{CHANNELS}/{}", text(&channel["id"]));
    for _ in 0..2 {
        client.run(&partition_only(), &[]).await;
    }
    let mut cursor = String::new();
    let mut kinds = Vec::new();
    loop {
        let page = client.get(&format!("{channel}/deliveries?limit=1{cursor}")).await.ok();
        let deliveries = page["deliveries"].as_array().expect("a list");
        assert_eq!(deliveries.len(), 1);
        kinds.push(text(&deliveries[0]["kind"]).to_owned());
        if deliveries[0]["kind"] == "code" {
            let path = format!("{channel}/deliveries/{}/replay", text(&deliveries[0]["id"]));
            client.post(&path).await.error(409, "channel_state_conflict");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(kinds, ["event", "event", "code"]);
    for bad in ["limit=0", "limit=101", "cursor=x", "state=lost"] {
        client
            .get(&format!("{channel}/deliveries?{bad}"))
            .await
            .error(422, "validation_failed");
    }
    let nothing = "01979764-2b70-7c3e-8a1f-000000000001";
    for id in [nothing, "x"] {
        client
            .get(&format!("{channel}/deliveries/{id}"))
            .await
            .error(404, "not_found");
    }
}

#[tokio::test]
async fn e05_exceptions_are_the_operators_and_are_told_at_the_start() {
    let post = Post::start();
    let server = post.server(&[("EGRESS__ALLOW_HTTP", "true")]).await;
    let log = server.log();
    for setting in ["egress.danger_allow_cidrs", "egress.allow_http", "127.0.0.1/32"] {
        assert!(log.contains(setting), "{setting} in {log}");
    }
    let plain = crate::kit::Server::start().await;
    assert!(!plain.log().contains("danger_allow_cidrs"));
}
