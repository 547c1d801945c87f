//! Codes, keys and secrets are in no log, no answer's error, and no file of the server.

use reqwest::Method;
use serde_json::json;

use super::CHANNELS;
use crate::kit::client::text;
use crate::kit::post::{LOGIN, Post, Receiver, created, email};
use crate::kit::server::KEY;
use crate::kit::{File, Server, partition_only};
use crate::secrets::assert_nowhere;

/// Whether a code stands in a text by itself: not as part of a longer number, id or fraction.
fn holds_code(bytes: &[u8], code: &str) -> bool {
    let apart = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.');
    bytes.windows(code.len()).enumerate().any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        window == code.as_bytes() && apart(before) && apart(bytes.get(at + code.len()))
    })
}

fn assert_no_code(server: &Server, code: &str) {
    assert!(!holds_code(server.log().as_bytes(), code), "a code is in the log");
    let files = server.files_below("");
    assert!(files.iter().any(|file| file.ends_with("docmill.db")), "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!holds_code(&bytes, code), "a code is in {}", file.display());
    }
}

#[tokio::test]
async fn n03_n05_codes_keys_and_secrets_are_nowhere() {
    let (post, receiver) = (Post::start(), Receiver::start().await);
    // Everything is logged that ever can be.
    let mut server = post.server(&[("LOG__LEVEL", "trace")]).await;
    let client = server.client();
    let mut codes = Vec::new();
    let pending = created(&client, CHANNELS, &email("new@example.org", &["job.failed"])).await;
    codes.push(post.mail("new@example.org", 1).await.code());
    client
        .post_json(
            &format!("{CHANNELS}/{}/verify", text(&pending["id"])),
            &json!({"code": "000000"}),
        )
        .await;
    let ana = post
        .verified(&client, CHANNELS, "ana@example.org", &["job.completed", "job.failed"])
        .await;
    codes.push(post.mail("ana@example.org", 1).await.code());
    let body = json!({"channel_type": "webhook", "event_types": ["job.completed"], "url": receiver.url()});
    let made = created(&client, CHANNELS, &body).await;
    let one = format!("{CHANNELS}/{}", text(&made["id"]));
    let own = "canary-own-secret-of-a-webhook-5e1";
    let mut signed = body.clone();
    signed["secret"] = json!(own);
    assert!(
        created(&client, CHANNELS, &signed).await.get("secret").is_none(),
        "they know it"
    );
    let rotated = client.post(&format!("{one}/secret/rotate")).await.ok();
    client.run(&partition_only(), &[File::new("a.html", "<p>a</p>")]).await;
    receiver.wait(2).await;
    post.mail("ana@example.org", 2).await;
    client
        .post_json(CHANNELS, &json!({"channel_type": "webhook", "secret": own, "x": own}))
        .await;
    let moved = json!({"email_config": {"recipient_email": "bo@example.org"}});
    client
        .send_json(Method::PATCH, &format!("{CHANNELS}/{}", text(&ana["id"])), &moved)
        .await
        .ok();
    codes.push(post.mail("bo@example.org", 1).await.code());

    let password = LOGIN.split(':').nth(1).expect("a password");
    let bare = |secret: &str| secret.trim_start_matches("whsec_").to_owned();
    let secrets = [
        bare(text(&made["secret"])),
        bare(text(&rotated["secret"])),
        own.into(),
        password.into(),
        KEY.into(),
    ];
    // While it runs, with the database's journal, and after it has ended.
    for round in 0..2 {
        for secret in &secrets {
            assert_nowhere(&server, secret);
        }
        for code in &codes {
            assert_no_code(&server, code);
        }
        if round == 0 {
            server.terminate().await;
        }
    }
}

/// Every outgoing connection is the guard's: nothing else in the product makes one.
#[test]
fn e06_only_the_guard_connects() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<_> = std::fs::read_dir(&crates)
        .expect("crates")
        .flatten()
        .filter(|entry| !["egress", "testkit"].contains(&entry.file_name().to_string_lossy().as_ref()))
        .map(|entry| entry.path().join("src"))
        .collect();
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap_or_default();
            read += 1;
            for way_out in [
                "reqwest::Client",
                "Client::builder()",
                "TcpStream::connect",
                "UdpSocket",
                "ureq::",
            ] {
                assert!(!source.contains(way_out), "{way_out} in {}", path.display());
            }
        }
    }
    assert!(read > 100, "{read}");
}
