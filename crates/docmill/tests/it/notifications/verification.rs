//! Codes: tries, budgets, expiry, other people's channels.

use reqwest::Method;
use serde_json::{Value, json};

use super::CHANNELS;
use crate::kit::client::text;
use crate::kit::post::{Post, created, email};
use crate::kit::{Answer, Client, custom_workflow};

async fn try_code(client: &Client, channel: &Value, code: &str) -> Answer {
    let path = format!("{CHANNELS}/{}/verify", text(&channel["id"]));
    client.post_json(&path, &json!({"code": code})).await
}

fn another(code: &str) -> String {
    let number: u32 = code.parse().expect("digits");
    format!("{:06}", (number + 1) % 1_000_000)
}

#[tokio::test]
async fn n03_five_wrong_tries_end_a_code_and_a_new_one_voids_the_old() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let client = server.client();
    let channel = created(&client, CHANNELS, &email("ana@example.org", &["job.failed"])).await;
    let path = format!("{CHANNELS}/{}", text(&channel["id"]));
    let first = post.mail("ana@example.org", 1).await.code();
    // What can't be a code costs no try.
    for bad in ["", "12345", "1234567", "12345a", "１２３４５６"] {
        try_code(&client, &channel, bad).await.error(422, "validation_failed");
    }
    for left in [4, 3, 2, 1, 0] {
        let answer = try_code(&client, &channel, &another(&first)).await;
        let detail = answer.error(400, "verification_code_wrong")["detail"].clone();
        assert!(text(&detail).ends_with(&format!(": {left}")), "{detail}");
    }
    try_code(&client, &channel, &first)
        .await
        .error(429, "verification_attempts_exceeded");
    assert_eq!(client.post(&format!("{path}/resend")).await.status, 202);
    let second = post.mail("ana@example.org", 2).await.code();
    if first != second {
        try_code(&client, &channel, &first)
            .await
            .error(400, "verification_code_wrong");
    }
    let answer = client
        .post_json(&format!("{path}/verify"), &json!({"verification_code": second}))
        .await;
    assert_eq!((answer.status, answer.bytes.len()), (204, 0), "{answer}");
    assert_eq!(client.get(&path).await.ok()["enabled"], true);
    // A verified channel stays so, whatever code comes.
    assert_eq!(try_code(&client, &channel, &first).await.status, 204);
    client
        .post(&format!("{path}/resend"))
        .await
        .error(409, "channel_state_conflict");
}

#[tokio::test]
async fn n03_a_code_expires() {
    let post = Post::start();
    let server = post.server(&[("CHANNELS__CODE_LIFETIME_SECS", "1")]).await;
    let client = server.client();
    let channel = created(&client, CHANNELS, &email("ana@example.org", &["job.failed"])).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
    try_code(&client, &channel, "123456")
        .await
        .error(400, "verification_code_expired");
}

#[tokio::test]
async fn n04_budgets_survive_the_channel_and_resends_cool_down() {
    let post = Post::start();
    let server = post
        .server(&[
            ("CHANNELS__CODES_PER_DAY", "2"),
            ("CHANNELS__CODE_COOL_DOWN_SECS", "60"),
        ])
        .await;
    let client = server.client();
    for address in ["ana@example.org", "Ana+2@Example.org"] {
        let channel = created(&client, CHANNELS, &email(address, &["job.failed"])).await;
        let path = format!("{CHANNELS}/{}", text(&channel["id"]));
        let answer = client.post(&format!("{path}/resend")).await;
        answer.error(429, "rate_limited");
        let wait: u64 = answer
            .header("retry-after")
            .and_then(|secs| secs.parse().ok())
            .expect("seconds");
        assert!((1..=60).contains(&wait) || wait > 3_600, "{wait}");
        assert_eq!(client.delete(&path).await.status, 204);
    }
    let answer = client
        .post_json(CHANNELS, &email("ANA@example.org", &["job.failed"]))
        .await;
    answer.error(429, "rate_limited");
    let wait: u64 = answer
        .header("retry-after")
        .and_then(|secs| secs.parse().ok())
        .expect("seconds");
    assert!(wait > 3_600, "{wait}");
    created(&client, CHANNELS, &email("bo@example.org", &["job.failed"])).await;
}

#[tokio::test]
async fn n05_unknown_and_other_peoples_channels_are_told_apart_by_nothing() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let (client, stranger) = (server.client(), server.stranger());
    let workflow = client.workflow(&custom_workflow("w")).await;
    let below = format!("/workflows/{}/notifications/channels", text(&workflow["id"]));
    let mine = created(&client, CHANNELS, &email("ana@example.org", &["job.failed"])).await;
    let code = post.mail("ana@example.org", 1).await.code();
    let id = text(&mine["id"]);
    let unknown = "ep_0a1B2c3D4e5F6g7H8i9J0k1L2m3N";
    let operations = [
        (Method::GET, "", json!(null)),
        (Method::PATCH, "", json!({"enabled": false})),
        (Method::DELETE, "", json!(null)),
        (Method::POST, "/verify", json!({"code": code})),
        (Method::POST, "/verify", json!({"code": 1})),
        (Method::POST, "/resend", json!(null)),
        (Method::POST, "/test", json!(null)),
        (Method::POST, "/secret/rotate", json!({})),
        (Method::GET, "/deliveries", json!(null)),
        (
            Method::POST,
            "/deliveries/replay-failed",
            json!({"since": "2026-01-01"}),
        ),
        (
            Method::GET,
            "/deliveries/01979764-2b70-7c3e-8a1f-000000000001",
            json!(null),
        ),
        (
            Method::POST,
            "/deliveries/01979764-2b70-7c3e-8a1f-000000000001/replay",
            json!(null),
        ),
    ];
    for (method, rest, body) in &operations {
        let ask = async |client: &Client, path: String| match body {
            Value::Null => client.send(client.request(method.clone(), &path)).await,
            body => client.send_json(method.clone(), &path, body).await,
        };
        let nobodys = ask(&stranger, format!("{CHANNELS}/{unknown}{rest}")).await;
        assert_eq!(nobodys.error(404, "not_found")["detail"], "Channel not found");
        for answer in [
            ask(&stranger, format!("{CHANNELS}/{id}{rest}")).await,
            ask(&stranger, format!("{CHANNELS}/no-id{rest}")).await,
            // Mine, but not of this scope.
            ask(&client, format!("{below}/{id}{rest}")).await,
        ] {
            assert_eq!(answer.comparable(), nobodys.comparable(), "{method} {rest}");
        }
    }
    let foreign = stranger.get(&format!("{below}?channel_type=email")).await;
    assert_eq!(foreign.error(404, "not_found")["detail"], "Workflow not found");
    let none = "/workflows/01979764-2b70-7c3e-8a1f-000000000001/notifications/channels?channel_type=email";
    assert_eq!(foreign.comparable(), stranger.get(none).await.comparable());

    // Time tells nothing either: medians of many, taken in turns.
    let mut spans = [Vec::new(), Vec::new()];
    for round in 0..200 {
        let which = round % 2;
        let path = format!("{CHANNELS}/{}/verify", [id, unknown][which]);
        let start = std::time::Instant::now();
        stranger
            .post_json(&path, &json!({"code": code}))
            .await
            .error(404, "not_found");
        spans[which].push(start.elapsed());
    }
    let [other, none] = spans.map(|mut spans| {
        spans.sort();
        spans[spans.len() / 2].as_secs_f64()
    });
    assert!(other < none * 2.0 && none < other * 2.0, "{other} {none}");
    // None of this cost a try.
    assert_eq!(try_code(&client, &mine, &code).await.status, 204);
}

#[tokio::test]
async fn n06_of_tries_at_once_at_most_five_are_compared() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let client = server.client();
    let channel = created(&client, CHANNELS, &email("ana@example.org", &["job.failed"])).await;
    let code = post.mail("ana@example.org", 1).await.code();
    let wrong = another(&code);
    let tries = (0..60).map(|_| try_code(&client, &channel, &wrong));
    let answers = futures_util::future::join_all(tries).await;
    let compared = answers.iter().filter(|answer| answer.status == 400).count();
    assert_eq!(compared, 5);
    assert!(answers.iter().all(|answer| [400, 429].contains(&answer.status)));
    try_code(&client, &channel, &code)
        .await
        .error(429, "verification_attempts_exceeded");
}

#[tokio::test]
async fn another_address_has_to_be_verified_and_hears_nothing_before() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let client = server.client();
    let unverified = created(&client, CHANNELS, &email("new@example.org", &["job.completed"])).await;
    let path = format!("{CHANNELS}/{}", text(&unverified["id"]));
    client
        .send_json(Method::PATCH, &path, &json!({"description": "x"}))
        .await
        .error(409, "channel_not_verified");
    client
        .post(&format!("{path}/test"))
        .await
        .error(409, "channel_not_verified");

    let channel = post
        .verified(&client, CHANNELS, "ana@example.org", &["job.completed"])
        .await;
    let path = format!("{CHANNELS}/{}", text(&channel["id"]));
    let moved = json!({"email_config": {"recipient_email": "bo@example.org", "cc": ["cy@example.org"]}});
    let changed = client.send_json(Method::PATCH, &path, &moved).await.ok();
    assert_eq!(
        (&changed["enabled"], &changed["verified"]),
        (&json!(false), &json!(false))
    );
    let mail = post.mail("bo@example.org", 1).await;
    assert_eq!(mail.to, ["bo@example.org"], "a code goes to nobody else");
    client.run(&crate::kit::partition_only(), &[]).await;
    let verify = json!({"code": mail.code()});
    assert_eq!(client.post_json(&format!("{path}/verify"), &verify).await.status, 204);
    client.run(&crate::kit::partition_only(), &[]).await;
    let mail = post.mail("bo@example.org", 2).await;
    assert_eq!(mail.event(), "job.completed");
    assert_eq!(mail.to, ["bo@example.org", "cy@example.org"]);
    assert_eq!(post.mails_to("ana@example.org").len(), 1, "nothing but her code");
    // Disabled, it hears nothing.
    let disabled = client
        .send_json(Method::PATCH, &path, &json!({"enabled": false}))
        .await
        .ok();
    assert_eq!(disabled["enabled"], false);
    client.run(&crate::kit::partition_only(), &[]).await;
    client
        .post(&format!("{path}/test"))
        .await
        .error(409, "channel_state_conflict");
    assert_eq!(post.mails_to("bo@example.org").len(), 2);
}
