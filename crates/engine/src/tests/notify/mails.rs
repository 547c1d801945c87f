//! Channels that tell by mail.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use docmill_model::channel::{ChannelScope, DeliveryKind, DeliveryState, NotificationType};
use docmill_model::job::EventType;
use docmill_store::{CodeIssue, CodeTry, InboxFilter, Store};
use docmill_testkit::SmtpServer;

use super::kit::{a_while, mail_request, mailing, mails_to, nothing, through};
use crate::tests::world::{World, config, until};
use crate::{ChannelPatch, ChannelRefused, EmailPatch, TargetRequest, TestSend};

const ANA: &str = "ana@example.org";
const BO: &str = "bo@example.org";

const ENDS: &[EventType] = &[EventType::JobCompleted, EventType::JobStopped, EventType::JobFailed];

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_gets_its_code_and_once_verified_each_of_its_events_once() {
    let server = SmtpServer::start(&[]);
    let world = mailing(&server, |_| ()).await;
    world.engine.start().await.unwrap();
    let mut request = mail_request(ANA, ENDS);
    let TargetRequest::Email { cc, .. } = &mut request.target else {
        panic!()
    };
    cc.push(BO.into());
    let channel = world.channel(ChannelScope::Workspace, request).await;
    assert!(!channel.enabled());
    let code = until("the code", async || mails_to(&server, ANA).pop()).await;
    assert_eq!(code.recipients, [ANA], "nobody else sees the code");
    assert!(!code.subject.contains(&code.code()));

    // Unverified: nothing but the code.
    let workflow = world.workflow(|_| ()).await;
    world.source.put("a.txt", "alpha", Some("1"));
    world.run(&workflow).await;
    a_while().await;
    assert_eq!(server.mails().len(), 1);

    let channel = channel.channel;
    let wrong = if code.code() == "000000" { "000001" } else { "000000" };
    let verify = async |code: &str| world.engine.verify_channel(channel, code).await.unwrap();
    assert_eq!(verify(wrong).await, Some(CodeTry::Wrong { left: 4 }));
    assert_eq!(verify(&code.code()).await, Some(CodeTry::Verified));
    assert_eq!(verify(wrong).await, Some(CodeTry::AlreadyVerified));
    assert_eq!(
        world.engine.verify_channel(nothing(channel), wrong).await.unwrap(),
        None
    );
    assert_eq!(
        world.engine.resend_code(channel).await.unwrap(),
        Some(CodeIssue::AlreadyVerified)
    );

    world.source.put("b.txt", "beta", Some("1"));
    world.run(&workflow).await;
    let mail = until("the mail", async || mails_to(&server, BO).pop()).await;
    a_while().await;
    assert_eq!(mails_to(&server, ANA).len(), 2, "one event was asked for");
    assert_eq!(
        (mail.event.as_str(), mail.recipients.as_slice()),
        ("job.completed", &[ANA, BO].map(String::from)[..])
    );
    assert!(mail.subject.contains("flow"), "{}", mail.subject);
    let deliveries = world.deliveries(channel).await;
    let [event, code] = &deliveries[..] else {
        panic!("{deliveries:?}")
    };
    assert_eq!((code.kind, code.state), (DeliveryKind::Code, DeliveryState::Delivered));
    assert_eq!(
        (event.kind, event.state, event.attempts),
        (DeliveryKind::Event, DeliveryState::Delivered, 1)
    );
    assert_eq!(mail.message_id, format!("{}@example.com", event.id));

    // A click in the mail ends it.
    let link = mail.unsubscribe.unwrap();
    let token = link.strip_prefix("https://mill.example.com/unsubscribe/").unwrap();
    assert_eq!(world.engine.unsubscribe_target(token), Some(channel));
    assert!(!world.engine.unsubscribe(&token[1..]).await.unwrap());
    assert!(world.engine.unsubscribe(token).await.unwrap());
    let record = world.record(channel).await;
    assert!(!record.enabled() && record.disabled.unwrap().1.contains("unsubscribed"));
    assert_eq!(world.engine.send_test(channel).await.unwrap(), TestSend::Disabled);
    world.source.put("c.txt", "gamma", Some("1"));
    world.run(&workflow).await;
    a_while().await;
    assert_eq!(mails_to(&server, ANA).len(), 2);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_address_must_be_verified_again_and_what_is_no_address_is_refused() {
    let server = SmtpServer::start(&[]);
    let world = mailing(&server, |_| ()).await;
    world.engine.start().await.unwrap();
    let channel = world.verified(&server, ANA, ENDS).await;
    let patch = |recipient: &str, cc: &[&str]| ChannelPatch {
        email: Some(EmailPatch {
            recipient: Some(recipient.into()),
            cc: Some(cc.iter().map(|text| (*text).to_owned()).collect()),
            reply_to: None,
        }),
        ..ChannelPatch::default()
    };
    for (recipient, cc, place) in [
        ("ana@example.org, bo@example.org", &[][..], "recipient_email"),
        ("ana@example.org\r\nBcc: bo@example.org", &[], "recipient_email"),
        (ANA, &[BO, "nobody"], "cc"),
    ] {
        match world
            .engine
            .update_channel(channel, patch(recipient, cc), &["body".into()])
            .await
        {
            Err(ChannelRefused::Invalid(problems)) => {
                let [problem] = &problems[..] else {
                    panic!("{problems:?}")
                };
                assert_eq!(
                    (&problem.loc[1], &problem.loc[2]),
                    (&"email_config".into(), &place.into())
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let moved = world.engine.update_channel(channel, patch(BO, &[]), &[]).await.unwrap();
    assert!(!moved.enabled() && moved.verified_at.is_none());
    let again = world.engine.update_channel(channel, ChannelPatch::default(), &[]).await;
    assert!(matches!(again, Err(ChannelRefused::NotVerified)));
    let code = until("the code", async || mails_to(&server, BO).pop()).await;
    let verified = world.engine.verify_channel(channel, &code.code()).await.unwrap();
    assert_eq!(verified, Some(CodeTry::Verified));
    let gone = world
        .engine
        .update_channel(nothing(channel), ChannelPatch::default(), &[])
        .await;
    assert!(matches!(gone, Err(ChannelRefused::NotFound)));

    // A test arrives, and another one a moment later is refused.
    let TestSend::Sent(test) = world.engine.send_test(channel).await.unwrap() else {
        panic!()
    };
    let mail = until("the test", async || {
        mails_to(&server, BO).pop().filter(|mail| mail.event == "channel.test")
    })
    .await;
    assert_eq!(mail.message_id, format!("{test}@example.com"));
    assert!(matches!(
        world.engine.send_test(channel).await.unwrap(),
        TestSend::TooSoon { wait: 1.. }
    ));
    assert_eq!(
        world.engine.send_test(nothing(channel)).await.unwrap(),
        TestSend::NotFound
    );
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_told_of_many_events_at_once_instead_of_being_flooded() {
    let server = SmtpServer::start(&[]);
    let world = mailing(&server, |config| config.mails_a_minute = 3).await;
    world.engine.start().await.unwrap();
    let channel = world.verified(&server, ANA, &[EventType::JobScheduled]).await;
    world.engine.stop().await;

    for _ in 0..10 {
        world.submitted(&world.engine).await;
    }
    let next = world.next_server();
    next.start().await.unwrap();
    until("all to be delivered", async || {
        let deliveries = world.deliveries(channel).await;
        let done = deliveries.iter().filter(|one| one.state == DeliveryState::Delivered);
        (done.count() == 11).then_some(())
    })
    .await;
    let mails = mails_to(&server, ANA).split_off(1);
    let events: Vec<_> = mails.iter().map(|mail| mail.event.as_str()).collect();
    assert_eq!(events, ["job.scheduled", "job.scheduled", "channel.digest"]);
    assert!(mails[2].subject.contains('8'), "{}", mails[2].subject);
    let deliveries = world.deliveries(channel).await;
    let first = deliveries
        .iter()
        .find(|one| mails[2].message_id.starts_with(&one.id.to_string()))
        .unwrap();
    assert_eq!(
        deliveries.iter().filter(|one| one.digest_of == Some(first.id)).count(),
        7
    );

    // The next one waits for its turn.
    world.submitted(&next).await;
    until("the mail to be put off", async || {
        let latest = world.deliveries(channel).await.swap_remove(0);
        let put_off = latest.not_before.is_some_and(|at| at > crate::now() + 3_000_000);
        (latest.state == DeliveryState::Pending && put_off).then_some(())
    })
    .await;
    assert_eq!(mails_to(&server, ANA).len(), 4);
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_refused_for_good_is_told_of_and_left_alone() {
    let mut server = SmtpServer::start(&[]);
    let world = mailing(&server, |_| ()).await;
    world.engine.start().await.unwrap();
    let bounced = world.verified(&server, ANA, ENDS).await;
    let other = world.verified(&server, BO, &[EventType::JobFailed]).await;
    server.restart(&["--rcpt", "ana@example.org=550 no such mailbox"]);
    let workflow = world.workflow(|_| ()).await;
    world.source.put("a.txt", "alpha", Some("1"));
    world.run(&workflow).await;
    let notice = until("the notice", async || mails_to(&server, BO).pop()).await;
    assert_eq!(notice.event, "channel.disabled");
    assert!(notice.text.contains("no such mailbox"), "{}", notice.text);
    let record = world.record(bounced).await;
    assert!(!record.enabled() && record.bounced.unwrap().1.contains("no such mailbox"));
    assert!(world.record(other).await.enabled());
    let delivery = &world.deliveries(bounced).await[0];
    assert_eq!(
        (delivery.state, delivery.attempts, delivery.last_status),
        (DeliveryState::Failed, 1, Some(550))
    );
    let filter = InboxFilter {
        limit: 50,
        unread_only: true,
        ..InboxFilter::default()
    };
    let inbox = world
        .store
        .notifications(world.principal.workspace, &filter)
        .await
        .unwrap();
    assert!(inbox.iter().any(|one| matches!(one.kind, NotificationType::Notice(_))));
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_refused_for_good_says_nothing_about_its_address() {
    let mut server = SmtpServer::start(&[]);
    let world = mailing(&server, |_| ()).await;
    world.engine.start().await.unwrap();
    let channel = world.verified(&server, ANA, &[EventType::JobCompleted]).await;
    server.restart(&["--data", "554 looks like spam"]);
    let workflow = world.workflow(|_| ()).await;
    world.source.put("a.txt", "alpha", Some("1"));
    world.run(&workflow).await;
    let delivery = until("the refusal", async || {
        let delivery = world.deliveries(channel).await.swap_remove(0);
        (delivery.state == DeliveryState::Failed).then_some(delivery)
    })
    .await;
    assert_eq!((delivery.attempts, delivery.last_status), (1, Some(554)));
    let record = world.record(channel).await;
    assert!(record.enabled() && record.bounced.is_none());
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_may_have_arrived_is_sent_again_as_the_same_mail() {
    let mut server = SmtpServer::start(&[]);
    let world = mailing(&server, |_| ()).await;
    world.engine.start().await.unwrap();
    let channel = world.verified(&server, ANA, &[EventType::JobScheduled]).await;
    server.restart(&["--drop-first-after-data"]);
    world.submitted(&world.engine).await;
    let mails = until("the second mail", async || {
        Some(mails_to(&server, ANA)).filter(|mails| mails.len() == 2)
    })
    .await;
    assert_eq!(mails[0].message_id, mails[1].message_id);
    until("the record of it", async || {
        let delivery = world.deliveries(channel).await.swap_remove(0);
        (delivery.state == DeliveryState::Delivered && delivery.attempts == 2).then_some(())
    })
    .await;
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_the_mail_server_at_once() {
    let server = SmtpServer::start(&[]);
    let world = World::telling(config(), through(&server)).await;
    world.engine.start().await.unwrap();
    world.verified(&server, ANA, &[EventType::JobScheduled]).await;
    let started = Instant::now();
    world.submitted(&world.engine).await;
    until("the mail", async || (mails_to(&server, ANA).len() == 2).then_some(())).await;
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_mails_are_files_one_for_each_event() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    assert!(world.engine.mails_are_files());
    world.channel(ChannelScope::Workspace, mail_request(ANA, ENDS)).await;
    let outbox = world.home.path().join("outbox");
    let names = until("the code's file", async || {
        let names: BTreeSet<_> = std::fs::read_dir(&outbox)
            .ok()?
            .map(|entry| entry.unwrap().file_name())
            .collect();
        let done = !names.is_empty() && names.iter().all(|name| name.to_str().unwrap().ends_with(".eml"));
        done.then_some(names)
    })
    .await;
    assert_eq!(names.len(), 1);
    world.engine.stop().await;
}
