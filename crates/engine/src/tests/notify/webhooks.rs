//! Channels that tell by webhook.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use docmill_model::channel::{ChannelScope, DeliveryState};
use docmill_model::job::EventType;
use docmill_notify::{WebhookSecret, verify};
use docmill_store::{ChannelTarget, Replay, Store};
use docmill_testkit::SmtpServer;

use super::kit::{Received, Receiver, SILENT, a_while, mailing, mails_to, webhook_request};
use crate::tests::world::{World, config, until};
use crate::{ChannelPatch, ChannelRefused, SecretPatch};

fn signed_by(received: &Received, secret: &str) -> bool {
    let secret = WebhookSecret::parse(secret).unwrap();
    let timestamp = received.headers["webhook-timestamp"].parse().unwrap();
    let header = received.headers.get("webhook-signature").map(String::as_str);
    verify(
        &[&secret],
        received.id(),
        timestamp,
        &received.body,
        header.unwrap_or_default(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_arrives_once_signed_and_in_its_scope_only() {
    let world = World::new().await;
    let (all, one) = (Receiver::start().await, Receiver::start().await);
    world.engine.start().await.unwrap();
    let (flow, other) = (
        world.workflow(|_| ()).await,
        world.workflow(|one| one.name = "other".into()).await,
    );
    let request = webhook_request(&all.url(), EventType::ALL, None);
    let created = world
        .engine
        .create_channel(world.principal.workspace, ChannelScope::Workspace, request, &[])
        .await
        .unwrap();
    let secret = created.secret.unwrap();
    assert!(secret.starts_with("whsec_") && created.channel.enabled());
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let events = [EventType::JobCompleted, EventType::JobCompleted];
    let request = webhook_request(&one.url(), &events, Some(own));
    world.channel(ChannelScope::Workflow(flow.id), request).await;

    world.source.put("a.txt", "alpha", Some("1"));
    let job = world.run(&flow).await;
    world.run(&other).await;
    until("the events", async || {
        (all.received().len() >= 6 && one.received().len() == 1).then_some(())
    })
    .await;
    a_while().await;
    let received = all.received();
    assert_eq!(received.len(), 6);
    assert_eq!(received.iter().map(Received::id).collect::<BTreeSet<_>>().len(), 6);
    let mut told: Vec<_> = received
        .iter()
        .filter(|one| one.json()["data"]["job"]["id"] == job.id.to_string())
        .collect();
    told.sort_by_key(|one| one.json()["data"]["job"]["sequence"].as_u64());
    let names: Vec<_> = told.iter().map(|one| one.event()).collect();
    assert_eq!(names, ["job.scheduled", "job.in_progress", "job.completed"]);
    let end = told[2].json();
    assert_eq!(
        (
            &end["data"]["job"]["files_succeeded"],
            &end["data"]["job"]["workflow_name"]
        ),
        (&1.into(), &"flow".into())
    );
    assert!(
        received
            .iter()
            .all(|one| signed_by(one, &secret) && !signed_by(one, own))
    );
    let scoped = one.received();
    assert_eq!(
        (one.events(), signed_by(&scoped[0], own)),
        (vec!["job.completed".to_owned()], true)
    );
    assert_eq!(scoped[0].json()["data"]["job"]["workflow_id"], flow.id.to_string());

    // Neither secret nor what a URL may hide in its query is in the database in clear, the secret not at all.
    world.engine.stop().await;
    let database = std::fs::read(world.home.path().join("db")).unwrap();
    let journal = std::fs::read(world.home.path().join("db-wal")).unwrap_or_default();
    for secret in [secret.as_str(), own] {
        let text = &secret.as_bytes()[6..];
        assert!(
            [&database, &journal]
                .iter()
                .all(|bytes| !bytes.windows(text.len()).any(|window| window == text))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_of_a_rotation_sign_and_a_removed_one_does_not() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    world.engine.start().await.unwrap();
    let old = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], Some(old));
    let channel = world.channel(ChannelScope::Workspace, request).await.channel;
    let next = async |count| {
        world.submitted(&world.engine).await;
        until("the event", async || {
            Some(receiver.received()).filter(|all| all.len() == count)
        })
        .await
        .remove(count - 1)
    };
    assert!(signed_by(&next(1).await, old));
    let new = world.engine.rotate_secret(channel, None, &[]).await.unwrap();
    let during = next(2).await;
    assert!(signed_by(&during, old) && signed_by(&during, &new));
    let chosen = "another secret of one's own";
    let patch = |secret| ChannelPatch {
        secret: Some(secret),
        ..ChannelPatch::default()
    };
    world
        .engine
        .update_channel(channel, patch(SecretPatch::Set(chosen.into())), &[])
        .await
        .unwrap();
    let after = next(3).await;
    assert!(signed_by(&after, chosen) && !signed_by(&after, old) && !signed_by(&after, &new));
    world
        .engine
        .update_channel(channel, patch(SecretPatch::Remove), &[])
        .await
        .unwrap();
    assert!(!next(4).await.headers.contains_key("webhook-signature"));
    assert!(
        world
            .engine
            .rotate_secret(channel, Some("short".into()), &[])
            .await
            .is_err()
    );
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_that_do_not_answer_hold_up_only_themselves() {
    let world = World::telling(config(), |config| {
        config.webhooks_at_once = 12;
        config.webhooks_per_host = 4;
    })
    .await;
    let (dead, live) = (Receiver::start().await, Receiver::start().await);
    dead.answer(SILENT);
    for _ in 0..10 {
        let request = webhook_request(&dead.url(), &[EventType::JobScheduled], None);
        world.channel(ChannelScope::Workspace, request).await;
    }
    world.engine.start().await.unwrap();
    for _ in 0..3 {
        world.submitted(&world.engine).await;
    }
    until("the dead one to be busy", async || {
        (dead.received().len() == 4).then_some(())
    })
    .await;
    world
        .channel(
            ChannelScope::Workspace,
            webhook_request(&live.url(), &[EventType::JobScheduled], None),
        )
        .await;
    for sent in 1..=5 {
        let started = Instant::now();
        world.submitted(&world.engine).await;
        until("the live one", async || (live.received().len() == sent).then_some(())).await;
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    }
    assert_eq!(dead.received().len(), 4, "no more than its share is under way");
    world.engine.stop_now().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_tried_again_under_its_id_and_replayed_on_demand() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    world.engine.start().await.unwrap();
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], None);
    let channel = world.channel(ChannelScope::Workspace, request).await.channel;
    receiver.answer(500);
    world.submitted(&world.engine).await;
    until("an attempt", async || (receiver.received().len() == 1).then_some(())).await;
    receiver.answer(204);
    let received = until("the next", async || {
        Some(receiver.received()).filter(|all| all.len() == 2)
    })
    .await;
    assert_eq!(
        (received[0].id(), &received[0].body),
        (received[1].id(), &received[1].body)
    );
    let delivery = until("its end", async || {
        let delivery = world.deliveries(channel).await.swap_remove(0);
        (delivery.state == DeliveryState::Delivered).then_some(delivery)
    })
    .await;
    let attempts = world.store.attempts(channel, delivery.id).await.unwrap().unwrap();
    let seen: Vec<_> = attempts
        .iter()
        .map(|one| (one.status, one.response.as_deref()))
        .collect();
    assert_eq!(seen, [(Some(500), Some("said")), (Some(204), None)]);
    assert!(!attempts[0].error.as_ref().unwrap().contains("hush"));
    assert_eq!(
        world.engine.replay_delivery(channel, delivery.id).await.unwrap(),
        Replay::Replayed
    );
    let third = until("the replay", async || receiver.received().get(2).cloned()).await;
    assert_eq!(third.id(), delivery.id.to_string());
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_is_left_alone_until_it_is_wanted_again() {
    let world = World::new().await;
    let receiver = Receiver::start().await;
    world.engine.start().await.unwrap();
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], None);
    let channel = world.channel(ChannelScope::Workspace, request).await.channel;
    receiver.answer(410);
    world.submitted(&world.engine).await;
    let record = until("the channel to be disabled", async || {
        Some(world.record(channel).await).filter(|record| !record.enabled())
    })
    .await;
    assert!(record.bounced.unwrap().1.contains("410"));
    receiver.answer(200);
    world.submitted(&world.engine).await;
    a_while().await;
    assert_eq!(receiver.received().len(), 1);
    let enable = ChannelPatch {
        enabled: Some(true),
        ..ChannelPatch::default()
    };
    assert!(
        world
            .engine
            .update_channel(channel, enable, &[])
            .await
            .unwrap()
            .enabled()
    );
    assert_eq!(world.engine.replay_failed(channel, 0).await.unwrap(), Some(1));
    until("the replay", async || (receiver.received().len() == 2).then_some(())).await;
    let deleted = world.engine.delete_channel(channel).await.unwrap();
    assert!(deleted && !world.engine.delete_channel(channel).await.unwrap());
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_only_fails_is_disabled_and_its_workspace_told() {
    let server = SmtpServer::start(&[]);
    let world = mailing(&server, |config| config.disable_after = Duration::ZERO).await;
    let receiver = Receiver::start().await;
    world.engine.start().await.unwrap();
    let told = world
        .verified(&server, "ana@example.org", &[EventType::JobFailed])
        .await;
    let request = webhook_request(&receiver.url(), &[EventType::JobScheduled], None);
    let channel = world.channel(ChannelScope::Workspace, request).await.channel;
    receiver.answer(500);
    world.submitted(&world.engine).await;
    let mail = until("the notice", async || {
        let mails = mails_to(&server, "ana@example.org");
        mails.into_iter().find(|mail| mail.event == "channel.disabled")
    })
    .await;
    assert!(
        mail.subject.contains("webhook") && !mail.text.contains("hush"),
        "{}",
        mail.text
    );
    assert!(!world.record(channel).await.enabled() && world.record(told).await.enabled());
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_that_may_not_be_reached_and_senseless_changes_are_refused() {
    let world = World::telling(config(), |config| config.max_per_scope = 1).await;
    let workspace = world.principal.workspace;
    let create = async |url: &str, secret: Option<&str>| {
        let request = webhook_request(url, &[EventType::JobFailed], secret);
        world
            .engine
            .create_channel(workspace, ChannelScope::Workspace, request, &["body".into()])
            .await
    };
    let long = format!("https://example.com/{}", "a".repeat(2_048));
    for url in [
        "",
        "example.com",
        "ftp://example.com",
        "https://u:p@example.com",
        "https://10.0.0.1/",
        "http://[::1]/",
        &long,
    ] {
        match create(url, None).await {
            Err(ChannelRefused::Invalid(problems)) => assert_eq!(problems[0].loc, ["body", "url"]),
            other => panic!("{url}: {other:?}"),
        }
    }
    match create("https://example.com/", Some("short")).await {
        Err(ChannelRefused::Invalid(problems)) => assert_eq!(problems[0].loc, ["body", "secret"]),
        other => panic!("{other:?}"),
    }
    let channel = create("https://EXAMPLE.com", None).await.unwrap().channel;
    let ChannelTarget::Webhook { url, host, .. } = &channel.definition.target else {
        panic!()
    };
    assert_eq!(
        (url.as_str(), host.as_str()),
        ("https://example.com/", "example.com:443")
    );
    assert!(matches!(
        create("https://example.com", None).await,
        Err(ChannelRefused::Full { max: 1 })
    ));
    for patch in [
        ChannelPatch {
            kind: Some(docmill_model::channel::ChannelKind::Email),
            ..ChannelPatch::default()
        },
        ChannelPatch {
            email: Some(crate::EmailPatch::default()),
            ..ChannelPatch::default()
        },
    ] {
        let refused = world.engine.update_channel(channel.channel, patch, &[]).await;
        assert!(matches!(refused, Err(ChannelRefused::Invalid(_))));
    }
}
