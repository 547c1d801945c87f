//! Hostile and mistaken channels.

use reqwest::Method;
use serde_json::{Value, json};

use super::CHANNELS;
use crate::kit::client::text;
use crate::kit::post::{Post, created, email};
use crate::kit::{File, Server, custom_workflow};
use crate::workflows::places;

fn with(field: &str, value: Value) -> Value {
    let mut body = email("ana@example.org", &["job.failed"]);
    body[field] = value;
    body
}

fn webhook(url: &str) -> Value {
    json!({"channel_type": "webhook", "event_types": ["job.failed"], "url": url})
}

#[tokio::test]
async fn n07_e01_wrong_fields_are_told_at_their_places() {
    let server = Server::start().await;
    let client = server.client();
    let address = |address: &str| email(address, &["job.failed"]);
    let long = format!("{}@{}.example.org", "a".repeat(60), "b".repeat(60));
    let longest = format!("a@{}", "b23456789.".repeat(30));
    let cases = [
        (json!({}), "body.channel_type"),
        (with("channel_type", json!("sms")), "body.channel_type"),
        (with("description", json!("ä".repeat(256))), "body.description"),
        (with("description", json!(7)), "body.description"),
        (with("event_types", json!([])), "body.event_types"),
        (with("event_types", json!("job.failed")), "body.event_types"),
        (with("event_types", json!(null)), "body.event_types"),
        (
            with("event_types", json!(["job.failed", "job.exploded"])),
            "body.event_types.1",
        ),
        (with("event_types", json!(vec!["job.failed"; 101])), "body.event_types"),
        (with("event_types", json!(["channel.disabled"])), "body.event_types.0"),
        (with("enabled", json!("yes")), "body.enabled"),
        (with("email_config", json!(null)), "body.email_config"),
        (with("email_config", json!("ana@example.org")), "body.email_config"),
        (with("email_config", json!({})), "body.email_config.recipient_email"),
        (
            with("email_config", json!({"recipient_email": "a@example.org", "bcc": "x"})),
            "body.email_config.bcc",
        ),
        (
            with(
                "email_config",
                json!({"recipient_email": "a@example.org", "cc": ["b@example.org", "c,d@example.org"]}),
            ),
            "body.email_config.cc.1",
        ),
        (
            with(
                "email_config",
                json!({"recipient_email": "a@example.org", "cc": vec!["b@example.org"; 11]}),
            ),
            "body.email_config.cc",
        ),
        (
            with(
                "email_config",
                json!({"recipient_email": "a@example.org", "reply_to": "x\r\nBcc: e@example.org"}),
            ),
            "body.email_config.reply_to",
        ),
        (with("url", json!("https://example.org")), "body.url"),
        (with("bcc", json!(["e@example.org"])), "body.bcc"),
        (address(&longest), "body.email_config.recipient_email"),
        (
            address("a@example.org\r\nBcc: e@example.org"),
            "body.email_config.recipient_email",
        ),
        (address("a@example.org\n"), "body.email_config.recipient_email"),
        (address("a\u{0}@example.org"), "body.email_config.recipient_email"),
        (
            address("a@example.org, b@example.org"),
            "body.email_config.recipient_email",
        ),
        (
            address("a@example.org;b@example.org"),
            "body.email_config.recipient_email",
        ),
        (address("friends: a@example.org;"), "body.email_config.recipient_email"),
        (address("Ana <a@example.org>"), "body.email_config.recipient_email"),
        (address("\"a b\"@example.org"), "body.email_config.recipient_email"),
        (address("a(comment)@example.org"), "body.email_config.recipient_email"),
        (address("a@[127.0.0.1]"), "body.email_config.recipient_email"),
        (address("a@b@example.org"), "body.email_config.recipient_email"),
        (address("a%b@c@example.org"), "body.email_config.recipient_email"),
        (address(" a@example.org"), "body.email_config.recipient_email"),
        (address("@example.org"), "body.email_config.recipient_email"),
        (address(""), "body.email_config.recipient_email"),
        (webhook(""), "body.url"),
        (webhook("not a url"), "body.url"),
        (webhook("http://example.org/"), "body.url"),
        (webhook("ftp://example.org/"), "body.url"),
        (webhook("https://canary-user:canary-pass@example.org/"), "body.url"),
        (webhook("https://127.0.0.1/"), "body.url"),
        (webhook("https://2130706433/"), "body.url"),
        (webhook("https://0x7f.1/"), "body.url"),
        (webhook("https://[::ffff:10.0.0.1]/"), "body.url"),
        (webhook("https://169.254.169.254/latest/meta-data"), "body.url"),
        (webhook("https://metadata.google.internal./"), "body.url"),
        (webhook("https://localhost./"), "body.url"),
        (
            webhook(&format!("https://example.org/{}", "x".repeat(3_000))),
            "body.url",
        ),
        (
            json!({"channel_type": "webhook", "event_types": ["job.failed"]}),
            "body.url",
        ),
        (
            json!({"channel_type": "webhook", "event_types": ["job.failed"], "url": "https://93.184.215.14/",
                "secret": "canary-short"}),
            "body.secret",
        ),
        (
            json!({"channel_type": "webhook", "event_types": ["job.failed"], "url": "https://93.184.215.14/",
                "email_config": {"recipient_email": "a@example.org"}}),
            "body.email_config",
        ),
    ];
    for (body, place) in cases {
        let answer = client.post_json(CHANNELS, &body).await;
        answer.error(422, "validation_failed");
        assert_eq!(places(&answer), [place], "{body}");
        assert!(!answer.to_string().contains("canary"), "{answer}");
    }
    for kind in ["email", "webhook"] {
        let listed = client.get(&format!("{CHANNELS}?channel_type={kind}")).await.ok();
        assert_eq!(listed, json!({"items": []}));
    }
    for query in ["", "?channel_type=sms", "?channel_type=email&enabled=maybe"] {
        client
            .get(&format!("{CHANNELS}{query}"))
            .await
            .error(422, "validation_failed");
    }
    // What is unusual and right is taken.
    for good in [long.as_str(), "info@bücher.example", "a.b+c_d'e@example.org"] {
        created(&client, CHANNELS, &address(good)).await;
    }
    created(&client, CHANNELS, &with("description", json!("ä".repeat(255)))).await;
    let hook = created(&client, CHANNELS, &webhook("https://93.184.215.14/")).await;
    let one = format!("{CHANNELS}/{}", text(&hook["id"]));
    for (patch, place) in [
        (json!({"channel_type": "email"}), "body.channel_type"),
        (
            json!({"email_config": {"recipient_email": "a@example.org"}}),
            "body.email_config",
        ),
        (json!({"url": "https://10.0.0.1/"}), "body.url"),
        (json!({"id": "ep_"}), "body.id"),
        (json!({"event_types": []}), "body.event_types"),
    ] {
        let answer = client.send_json(Method::PATCH, &one, &patch).await;
        answer.error(422, "validation_failed");
        assert_eq!(places(&answer), [place], "{patch}");
    }
}

#[tokio::test]
async fn n07_n08_no_text_of_a_user_becomes_a_header_or_markup_of_a_mail() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let client = server.client();
    let evil = "x\r\nBcc: eve@example.org\r\n\r\n<script>alert(1)</script> https://evil.example/ \u{202e}\u{0}";
    let channel = post
        .verified(&client, CHANNELS, "ana@example.org", &["job.failed"])
        .await;
    let one = format!("{CHANNELS}/{}", text(&channel["id"]));
    client
        .send_json(Method::PATCH, &one, &json!({"description": evil}))
        .await
        .ok();
    assert_eq!(client.post(&format!("{one}/test")).await.status, 202);
    post.mail("ana@example.org", 2).await;
    let name = "Re: a <b>bold</b> name \u{2028}Bcc: eve@example.org https://evil.example/";
    let workflow = client.workflow(&custom_workflow(name)).await;
    let file = File::new(
        "a%0D%0ABcc: eve@example.org <img src=x>.pdf",
        b"%PDF-1.7 nothing".to_vec(),
    );
    let run = client.send(client.run_request(text(&workflow["id"]), &[file])).await;
    assert_eq!(run.status, 202, "{run}");
    assert_eq!(client.ended(text(&run.json()["id"])).await["status"], "FAILED");
    let mail = post.mail("ana@example.org", 3).await;
    assert!(mail.header("subject").len() > 10);
    for mail in post.mails() {
        assert_eq!(mail.to, ["ana@example.org"]);
        assert!(
            mail.headers("bcc").is_empty() && mail.headers("cc").is_empty(),
            "{}",
            mail.raw
        );
        assert_eq!(mail.header("auto-submitted"), "auto-generated");
        let parsed = mail.parsed();
        assert_eq!(parsed["to"], json!(["ana@example.org"]));
        let html = text(&parsed["html"]).to_owned();
        for markup in ["<script", "<b>bold", "<img", "href=\"https://evil"] {
            assert!(!html.contains(markup), "{html}");
        }
        assert!(!text(&parsed["text"]).contains("https://evil.example"), "{parsed}");
    }
}
