//! Channels as clients see them.

use reqwest::Method;
use serde_json::json;

use super::CHANNELS;
use crate::kit::client::text;
use crate::kit::post::{Post, Receiver, created, email};
use crate::kit::{Server, custom_workflow, partition_only};

#[tokio::test]
async fn channels_are_created_listed_changed_and_deleted_in_both_scopes() {
    let post = Post::start();
    let server = post.server(&[]).await;
    let client = server.client();
    let workflow = client.workflow(&custom_workflow("w")).await;
    let below = format!("/workflows/{}/notifications/channels", text(&workflow["id"]));
    for scope in [CHANNELS, "/notifications/channels/", below.as_str()] {
        let hook = json!({"channel_type": "webhook", "event_types": ["job.failed", "job.failed"], "enabled": false,
            "url": "https://93.184.215.14/hook", "description": "ä".repeat(255)});
        let made = created(&client, scope, &hook).await;
        let id = text(&made["id"]);
        assert!(id.len() == 31 && id.starts_with("ep_") && id[3..].bytes().all(|b| b.is_ascii_alphanumeric()));
        assert!(text(&made["secret"]).starts_with("whsec_"));
        assert_eq!(made["event_types"], json!(["job.failed"]));
        let one = format!("{}/{id}", scope.trim_end_matches('/'));
        let read = client.get(&one).await.ok();
        let mut shown = made.clone();
        shown.as_object_mut().expect("an object").remove("secret");
        assert_eq!(read, shown, "the secret is shown once");
        assert!(read.get("email_config").is_none() && read["signed"] == true && read["enabled"] == false);
        let listed = client
            .get(&format!("{scope}?channel_type=webhook&enabled=false"))
            .await
            .ok();
        assert!(listed["items"].as_array().expect("a list").contains(&read), "{listed}");
        assert!(!listed.to_string().contains("whsec_"));
        let none = client
            .get(&format!("{scope}?channel_type=webhook&enabled=true"))
            .await
            .ok();
        assert_eq!(none, json!({"items": []}));
        let patch = json!({"enabled": true, "description": null, "secret": "", "channel_type": "webhook"});
        let changed = client.send_json(Method::PATCH, &one, &patch).await.ok();
        assert_eq!(
            (&changed["enabled"], &changed["description"], &changed["signed"]),
            (&json!(true), &json!(null), &json!(false))
        );
        assert_eq!(changed["event_types"], json!(["job.failed"]));
        // A webhook is verified as it is.
        assert_eq!(
            client
                .post_json(&format!("{one}/verify"), &json!({"code": "000000"}))
                .await
                .status,
            204
        );
        let rotated = client.post(&format!("{one}/secret/rotate")).await.ok();
        assert!(text(&rotated["secret"]).starts_with("whsec_") && rotated["secret"] != made["secret"]);
        let gone = client.delete(&one).await;
        assert_eq!((gone.status, gone.bytes.len()), (204, 0));
        client.get(&one).await.error(404, "not_found");
        client.delete(&one).await.error(404, "not_found");
    }
    let mail = post.verified(&client, &below, "ana@example.org", &["job.failed"]).await;
    let one = format!("{below}/{}", text(&mail["id"]));
    assert_eq!(mail["email_config"]["provider"], "smtp");
    client
        .post(&format!("{one}/secret/rotate"))
        .await
        .error(409, "channel_state_conflict");
    // Read, changed and sent back, as clients do.
    let config = json!({"recipient_email": "ana@example.org", "provider": "smtp", "reply_to": "bo@example.org"});
    let changed = client
        .send_json(Method::PATCH, &one, &json!({"email_config": config}))
        .await
        .ok();
    assert_eq!(
        (&changed["enabled"], &changed["email_config"]["reply_to"]),
        (&json!(true), &json!("bo@example.org"))
    );
    // With the workflow go its channels.
    client
        .delete(&format!("/workflows/{}", text(&workflow["id"])))
        .await
        .ok();
    client.get(&one).await.error(404, "not_found");
}

#[tokio::test]
async fn a_scope_holds_as_many_as_the_limit_told_and_each_scope_its_own() {
    let server = Server::with(&[("CHANNELS__MAX_PER_SCOPE", "3")]).await;
    let client = server.client();
    assert_eq!(client.get("/limits").await.ok()["max_channels_per_scope"], 3);
    let workflow = client.workflow(&custom_workflow("w")).await;
    let below = format!("/workflows/{}/notifications/channels", text(&workflow["id"]));
    let hook = json!({"channel_type": "webhook", "event_types": ["job.failed"], "url": "https://93.184.215.14/"});
    for scope in [CHANNELS, below.as_str()] {
        for _ in 0..3 {
            created(&client, scope, &hook).await;
        }
        client.post_json(scope, &hook).await.error(409, "too_many_channels");
        client
            .post_json(scope, &email("a@example.org", &["job.failed"]))
            .await
            .error(409, "too_many_channels");
    }
    let default = Server::start().await;
    assert_eq!(default.client().get("/limits").await.ok()["max_channels_per_scope"], 50);
}

#[tokio::test]
async fn a_link_in_a_mail_stops_it_with_one_click_and_not_by_a_look() {
    let post = Post::start();
    let server = post.server(&[("LOG__LEVEL", "trace")]).await;
    let client = server.client();
    let channel = post
        .verified(&client, CHANNELS, "ana@example.org", &["job.completed"])
        .await;
    let one = format!("{CHANNELS}/{}", text(&channel["id"]));
    client.run(&partition_only(), &[]).await;
    let mail = post.mail("ana@example.org", 2).await;
    assert_eq!(mail.header("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
    let link = mail.header("list-unsubscribe");
    let link = link.trim_matches(['<', '>']);
    let path = link
        .strip_prefix(crate::kit::post::PUBLIC)
        .expect("the server's address");
    let page = client.send(client.anonymous(Method::GET, path)).await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"))
    );
    assert!(
        page.header("content-security-policy")
            .is_some_and(|policy| policy.contains("default-src 'none'"))
    );
    let html = String::from_utf8_lossy(&page.bytes).into_owned();
    assert!(
        html.contains("<form method=\"post\">") && !html.contains("ana"),
        "{html}"
    );
    assert_eq!(client.get(&one).await.ok()["enabled"], true);
    let click = || client.anonymous(Method::POST, path).body("List-Unsubscribe=One-Click");
    for _ in 0..2 {
        assert_eq!(client.send(click()).await.status, 200);
    }
    let stopped = client.get(&one).await.ok();
    assert_eq!(stopped["enabled"], false);
    assert!(text(&stopped["disabled_reason"]).contains("unsubscribed"), "{stopped}");
    // The link is the right to stop the channel, so the log does not have it.
    let token = path.rsplit('/').next().expect("a token");
    assert!(!server.log().contains(token));
    // A link that was made up and one whose channel is gone look alike.
    client.delete(&one).await;
    let bare = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = |path: &str| format!("http://{}{path}", server.address());
    let gone = bare.post(url(path)).send().await.expect("an answer");
    let made_up = bare
        .post(url("/unsubscribe/ep_x.YWJj"))
        .send()
        .await
        .expect("an answer");
    assert_eq!((gone.status().as_u16(), made_up.status().as_u16()), (404, 404));
    assert_eq!(gone.text().await.expect("text"), made_up.text().await.expect("text"));
    let damaged = bare.get(url(&format!("{path}x"))).send().await.expect("an answer");
    assert_eq!(damaged.status().as_u16(), 404);
}

#[tokio::test]
async fn without_a_mail_server_codes_are_files() {
    let server = Server::start().await;
    let client = server.client();
    let channel = created(&client, CHANNELS, &email("ana@example.org", &["job.failed"])).await;
    assert_eq!(channel["email_config"]["provider"], "file");
    let mail = crate::kit::until("the mail's file", async || {
        let files = server.files_below("outbox");
        let path = files
            .into_iter()
            .find(|path| path.extension().is_some_and(|ending| ending == "eml"))?;
        std::fs::read_to_string(path)
            .ok()
            .filter(|text| text.contains("</html>"))
    })
    .await;
    let mail = crate::kit::post::Mail {
        to: Vec::new(),
        raw: mail,
    };
    let path = format!("{CHANNELS}/{}/verify", text(&channel["id"]));
    assert_eq!(client.post_json(&path, &json!({"code": mail.code()})).await.status, 204);
}

#[tokio::test]
async fn a_webhook_on_plain_http_or_inside_is_refused() {
    let receiver = Receiver::start().await;
    let server = Server::start().await;
    let client = server.client();
    let hook = json!({"channel_type": "webhook", "event_types": ["job.failed"], "url": receiver.url()});
    let answer = client.post_json(CHANNELS, &hook).await;
    answer.error(422, "validation_failed");
    assert_eq!(crate::workflows::places(&answer), ["body.url"]);
    assert_eq!(receiver.calls().len(), 0);
}
