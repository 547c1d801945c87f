//! How attempts end: the log, channels that fail for long or bounce, and sending again.

use docmill_model::channel::NoticeType::{ChannelBounced, ChannelDisabled};
use docmill_model::channel::{ChannelKind, DeliveryKind, DeliveryState, NotificationType};
use docmill_model::job::EventType::{JobCompleted, JobScheduled};
use docmill_model::time::{Micros, SECOND};

use super::World;
use super::flows::definition;
use super::told::{attempt, hook_at, query};
use super::world::NOW;
use crate::{Attempt, ChannelDefinition, ChannelRef, CodeTry, DeliveryFilter, DeliveryOutcome, Replay};

const DAYS: Micros = 24 * 3_600 * SECOND;

impl World {
    /// Claims what is due and fails it at an instant; whether that disabled the channel.
    async fn fail_at(&self, now: Micros) -> bool {
        let claims = self.to_send_at(ChannelKind::Webhook, now).await;
        let leases = [claims[0].lease];
        let failed = Attempt {
            started_at: now,
            ..attempt(Some("refused"), 503)
        };
        let retry = DeliveryOutcome::Retry { not_before: now };
        let done = self
            .store
            .finish_deliveries(&leases, failed, retry, Some(5 * DAYS), now);
        done.await.unwrap().disabled
    }
}

pub(crate) async fn attempts_are_logged(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let mut logged = Vec::new();
    for n in 0..3 {
        let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
        let leases = [claim.lease];
        let (made, outcome) = match n {
            2 => (attempt(None, 204), DeliveryOutcome::Delivered),
            _ => (
                Attempt {
                    started_at: NOW + n,
                    ..attempt(Some("busy"), 503)
                },
                DeliveryOutcome::Retry { not_before: NOW },
            ),
        };
        let done = w.store.finish_deliveries(&leases, made.clone(), outcome, None, NOW + 9);
        done.await.unwrap();
        logged.push(made);
    }
    let delivery = w.log(hook).await.remove(0);
    assert_eq!(
        (delivery.state, delivery.attempts, delivery.ended_at),
        (DeliveryState::Delivered, 3, Some(NOW + 9))
    );
    assert_eq!(
        (delivery.last_status, delivery.last_error, delivery.not_before),
        (Some(204), None, None)
    );
    assert_eq!(w.store.attempts(hook, delivery.id).await.unwrap().unwrap(), logged);
    assert_eq!(w.store.delivery(hook, delivery.id).await.unwrap().unwrap().attempts, 3);
}

pub(crate) async fn deliveries_are_listed_page_by_page(w: World) {
    let hook = w.hook("a.example", &[JobScheduled, JobCompleted]).await;
    for _ in 0..5 {
        w.run_one().await;
    }
    for claim in w.to_send(ChannelKind::Webhook).await.iter().take(4) {
        w.end(claim, DeliveryOutcome::Failed).await;
    }
    let all = w.log(hook).await;
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted_by_key(|delivery| -delivery.seq));
    for state in [None, Some(DeliveryState::Failed), Some(DeliveryState::Pending)] {
        let (mut joined, mut before) = (Vec::new(), None);
        loop {
            let filter = DeliveryFilter {
                state,
                before,
                limit: 3,
            };
            let page = w.store.deliveries(hook, filter).await.unwrap().unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.seq);
            joined.extend(page.into_iter().map(|delivery| delivery.id));
        }
        let wanted = all
            .iter()
            .filter(|delivery| state.is_none_or(|state| delivery.state == state));
        assert_eq!(joined, wanted.map(|delivery| delivery.id).collect::<Vec<_>>());
    }
}

pub(crate) async fn nothing_but_failures_for_long_disables(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    let witness = w.mail("a@example.org", &[]).await;
    let unverified = w.unverified("b@example.org", &[]).await;
    w.run_one().await;
    w.run_one().await;
    assert!(!w.fail_at(NOW).await);
    assert_eq!(w.read_channel(hook).await.failing_since, Some(NOW));
    assert!(!w.fail_at(NOW + 5 * DAYS - 1).await);
    assert!(w.fail_at(NOW + 5 * DAYS).await);
    let read = w.read_channel(hook).await;
    let (at, reason) = read.disabled.clone().unwrap();
    assert_eq!((read.enabled(), at), (false, NOW + 5 * DAYS));
    assert!(reason.contains("PT120H") && reason.contains("refused"), "{reason}");
    assert!(
        w.log(hook)
            .await
            .iter()
            .all(|delivery| delivery.state == DeliveryState::Cancelled || delivery.state == DeliveryState::Pending)
    );
    assert!(
        w.to_send_at(ChannelKind::Webhook, NOW + 9 * DAYS).await.is_empty(),
        "nothing is sent any more"
    );
    let news = w.inbox().await.remove(0);
    assert_eq!(
        (news.kind, news.read_at),
        (NotificationType::Notice(ChannelDisabled), None)
    );
    assert_eq!(news.payload["channel_id"], hook.id.to_string());
    assert_eq!(news.payload["reason"], reason);
    let notices = w.to_send(ChannelKind::Email).await;
    let told: Vec<_> = notices
        .iter()
        .filter(|claim| claim.kind == DeliveryKind::Notice)
        .collect();
    assert_eq!((told.len(), told[0].channel.channel), (1, witness));
    assert_eq!(told[0].event.as_ref().unwrap().id, news.id);
    assert!(
        notices
            .iter()
            .all(|claim| claim.channel.channel != unverified || claim.kind == DeliveryKind::Code)
    );
    // Wanted again, it starts with a clean record.
    let definition = ChannelDefinition {
        wanted: true,
        ..read.definition
    };
    let update = w
        .store
        .update_channel(hook, definition, None, read.updated_at, super::told::LIMITS, NOW);
    update.await.unwrap();
    let read = w.read_channel(hook).await;
    assert_eq!((read.enabled(), read.disabled, read.failing_since), (true, None, None));
}

pub(crate) async fn a_success_clears_the_failures(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    assert!(!w.fail_at(NOW).await);
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    w.end(&claim, DeliveryOutcome::Delivered).await;
    assert_eq!(w.read_channel(hook).await.failing_since, None);
    w.run_one().await;
    assert!(!w.fail_at(NOW + 6 * DAYS).await);
    assert_eq!(w.read_channel(hook).await.failing_since, Some(NOW + 6 * DAYS));
}

pub(crate) async fn failed_tests_disable_nothing(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    for days in [0, 6] {
        w.store.create_test(hook, NOW).await.unwrap().unwrap();
        assert!(!w.fail_at(NOW + days * DAYS).await);
    }
    let read = w.read_channel(hook).await;
    assert_eq!((read.enabled(), read.failing_since), (true, None));
}

pub(crate) async fn a_bounce_marks_and_disables(w: World) {
    let mail = w.mail("a@example.org", &[JobCompleted]).await;
    let witness = w.mail("b@example.org", &[]).await;
    w.run_one().await;
    let claim = w.to_send(ChannelKind::Email).await.remove(0);
    let bounced = DeliveryOutcome::Bounced {
        reason: "550 no such user".into(),
    };
    assert!(w.end(&claim, bounced).await.disabled);
    let read = w.read_channel(mail).await;
    assert_eq!(
        (read.enabled(), read.bounced),
        (false, Some((NOW, "550 no such user".into())))
    );
    assert_eq!(w.log(mail).await[0].state, DeliveryState::Failed);
    let bounced = NotificationType::Notice(ChannelBounced);
    assert_eq!(w.inbox().await.iter().filter(|n| n.kind == bounced).count(), 1);
    let notices = w.to_send(ChannelKind::Email).await;
    assert_eq!(
        (notices.len(), notices[0].channel.channel),
        (1, witness),
        "not to the one that bounced"
    );
}

pub(crate) async fn a_code_that_bounces_marks_only(w: World) {
    let mail = w.unverified("a@example.org", &[JobCompleted]).await;
    let claim = w.to_send(ChannelKind::Email).await.remove(0);
    let bounced = DeliveryOutcome::Bounced {
        reason: "550 no".into(),
    };
    assert!(!w.end(&claim, bounced).await.disabled);
    assert_eq!(w.read_channel(mail).await.bounced, Some((NOW, "550 no".into())));
    assert!(w.inbox().await.is_empty());
    assert_eq!(w.try_code(mail, 1, NOW).await, CodeTry::Verified);
    let read = w.read_channel(mail).await;
    assert_eq!((read.enabled(), read.bounced), (true, None));
}

pub(crate) async fn workflow_channels_are_told_of_their_own_scope(w: World) {
    let flow = w.workflow(definition("flow")).await;
    let hook = w
        .channel_at(w.of_workflow(flow.id), hook_at("a.example", &[JobScheduled]))
        .await;
    let mail = w.mail("a@example.org", &[]).await;
    w.run(&flow).await;
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    w.end(&claim, DeliveryOutcome::Bounced { reason: "410".into() }).await;
    let news = w.inbox().await.remove(0);
    assert_eq!(
        (news.workflow, news.kind),
        (Some(flow.id), NotificationType::Notice(ChannelBounced))
    );
    assert!(!w.read_channel(hook).await.enabled());
    assert_eq!(w.to_send(ChannelKind::Email).await[0].channel.channel, mail);
}

pub(crate) async fn a_delivery_is_replayed_under_its_id(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    w.end(&claim, DeliveryOutcome::Delivered).await;
    let id = claim.lease.delivery();
    assert_eq!(w.store.replay_delivery(hook, id).await.unwrap(), Replay::Replayed);
    let again = w.to_send(ChannelKind::Webhook).await.remove(0);
    assert_eq!(
        (again.lease.delivery(), again.attempt),
        (id, 1),
        "its schedule starts anew"
    );
    assert_eq!(
        w.store.replay_delivery(hook, id).await.unwrap(),
        Replay::Replayed,
        "under way: nothing to do"
    );
    w.end(&again, DeliveryOutcome::Delivered).await;
    assert!(w.to_send(ChannelKind::Webhook).await.is_empty());
    let attempts = w.store.attempts(hook, id).await.unwrap().unwrap();
    assert_eq!((attempts.len(), w.log(hook).await.len()), (2, 1), "the log goes on");
    w.store.unsubscribe(hook, "off", NOW).await.unwrap();
    assert_eq!(w.store.replay_delivery(hook, id).await.unwrap(), Replay::Disabled);
    assert_eq!(w.store.replay_failed(hook, 0).await.unwrap(), None);
}

pub(crate) async fn all_failed_since_are_replayed(w: World) {
    let hook = w.hook("a.example", &[JobScheduled, JobCompleted]).await;
    let other = w.hook("b.example", &[JobCompleted]).await;
    w.run_one().await;
    let mut new = w.new_job(0);
    new.files.clear();
    w.store.create_job(new, NOW + SECOND).await.unwrap();
    w.store.create_test(hook, NOW + SECOND).await.unwrap();
    for claim in w.to_send_at(ChannelKind::Webhook, NOW + SECOND).await {
        w.end(&claim, DeliveryOutcome::Failed).await;
    }
    // A job over no file is scheduled at NOW + 1 s; completion of the first one too.
    assert_eq!(w.store.replay_failed(hook, NOW + SECOND).await.unwrap(), Some(2));
    let due = w.to_send(ChannelKind::Webhook).await;
    assert!(
        due.iter()
            .all(|claim| claim.kind == DeliveryKind::Event && claim.channel.channel == hook)
    );
    assert_eq!(due.len(), 2);
    assert_eq!(w.store.replay_failed(hook, 0).await.unwrap(), Some(1));
    assert_eq!(w.store.replay_failed(other, NOW + 2 * SECOND).await.unwrap(), Some(0));
}

pub(crate) async fn many_failed_are_all_replayed(w: World) {
    let channel: ChannelRef = w.hook("a.example", &[JobScheduled]).await;
    let count = 2_005;
    let jobs = super::world::at_once(count, |_| {
        let (store, job) = (w.store.clone(), w.new_job(0));
        async move { store.create_job(job, NOW).await }
    });
    jobs.await.into_iter().for_each(|created| created.unwrap());
    let claims = w
        .store
        .claim_deliveries(query(ChannelKind::Webhook, 9_999), NOW)
        .await
        .unwrap();
    let leases: Vec<_> = claims.iter().map(|claim| claim.lease).collect();
    let done = w
        .store
        .finish_deliveries(&leases, attempt(Some("x"), 500), DeliveryOutcome::Failed, None, NOW);
    assert_eq!(done.await.unwrap().finished, count as u64);
    assert_eq!(w.store.replay_failed(channel, 0).await.unwrap(), Some(count as u64));
    assert_eq!(w.store.replay_failed(channel, 0).await.unwrap(), Some(0));
}
