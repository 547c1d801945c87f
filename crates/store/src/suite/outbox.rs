//! Events on their way: who is handed what, when, and who may send it.

use std::collections::HashSet;

use docmill_model::channel::{ChannelKind, ChannelScope, DeliveryKind, DeliveryState, NotificationType};
use docmill_model::ids::JobId;
use docmill_model::job::EventType::{
    self, JobCompleted, JobFailed, JobInProgress, JobProgress, JobScheduled, JobStopped,
};
use docmill_model::time::SECOND;

use super::World;
use super::flows::definition;
use super::told::{attempt, hook_at, query};
use super::world::{BOUNDS, LEASE, NOW, at_once, failed, succeeded};
use crate::{ChannelRef, DeliveryClaim, DeliveryOutcome, DeliveryQuery, StoreError};

fn types(claims: &[DeliveryClaim]) -> Vec<&'static str> {
    let events = claims.iter().filter_map(|claim| claim.event.as_ref());
    events.map(|event| event.kind.as_str()).collect()
}

pub(crate) async fn channels_hear_what_they_chose(w: World) {
    let all = [JobScheduled, JobInProgress, JobCompleted, JobStopped, JobFailed];
    let everything = w.hook("a.example", &all).await;
    let endings = w.hook("b.example", &[JobFailed, JobFailed, JobStopped]).await;
    w.run_one().await;
    let bad = w.create(1).await;
    w.finish(w.claim_one().await.lease, failed("no text")).await;
    let stopped = w.create(1).await;
    w.store.stop_job(w.workspace, stopped, NOW).await.unwrap();
    let due = w.to_send(ChannelKind::Webhook).await;
    let of = |channel: ChannelRef| -> Vec<DeliveryClaim> {
        due.iter()
            .filter(|claim| claim.channel.channel == channel)
            .cloned()
            .collect()
    };
    let start = ["job.scheduled", "job.in_progress"];
    let expected = [
        start.as_slice(),
        &["job.completed"],
        &start,
        &["job.failed"],
        &start,
        &["job.stopped"],
    ]
    .concat();
    assert_eq!(types(&of(everything)), expected);
    assert_eq!(types(&of(endings)), ["job.failed", "job.stopped"]);
    let told = of(endings)[0].event.clone().unwrap();
    assert_eq!((told.sequence, told.workspace), (3, w.workspace));
    assert_eq!(told.workflow, Some(w.job(bad).await.workflow));
    assert_eq!(told.payload["job_id"], bad.to_string());
    assert_eq!(
        (&told.payload["status"], &told.payload["files_failed"]),
        (&"FAILED".into(), &1.into())
    );
    assert_eq!(told.payload["processing_time_ms"], 1_000);
    assert_eq!(told.failed_files.len(), 1);
    assert_eq!(
        (told.failed_files[0].name.as_str(), told.failed_files[0].reason.as_str()),
        ("0.txt", "no text")
    );
}

pub(crate) async fn channels_hear_of_their_scope(w: World) {
    let (one, two) = (w.workflow(definition("one")).await, w.workflow(definition("two")).await);
    let of_one = w
        .channel_at(w.of_workflow(one.id), hook_at("a.example", &[JobScheduled]))
        .await;
    let of_all = w.hook("b.example", &[JobScheduled]).await;
    let another = w.another_workspace("another").await;
    let foreign = ChannelRef {
        workspace: another,
        ..w.in_workspace()
    };
    w.channel_at(foreign, hook_at("c.example", &[JobScheduled])).await;
    let (first, second) = (w.run(&one).await, w.run(&two).await);
    let upload = w.create(0).await;
    let told: HashSet<(ChannelRef, String)> = w
        .to_send(ChannelKind::Webhook)
        .await
        .iter()
        .map(|claim| {
            (
                claim.channel.channel,
                claim.event.as_ref().unwrap().payload["job_id"].to_string(),
            )
        })
        .collect();
    let named = |channel, job: JobId| (channel, format!("\"{job}\""));
    let expected = [(of_one, first), (of_all, first), (of_all, second), (of_all, upload)];
    assert_eq!(told, expected.map(|(channel, job)| named(channel, job)).into());
}

pub(crate) async fn only_enabled_channels_are_handed_events(w: World) {
    let mail = w.unverified("a@example.org", &[JobCompleted]).await;
    w.run_one().await;
    let log = w.log(mail).await;
    assert_eq!(
        (log.len(), log[0].kind),
        (1, DeliveryKind::Code),
        "nothing but its code"
    );
    w.try_code(mail, 1, NOW).await;
    assert!(w.to_send(ChannelKind::Email).await.is_empty(), "and nothing of before");
    w.run_one().await;
    let due = w.to_send(ChannelKind::Email).await;
    assert_eq!((due.len(), due[0].kind), (1, DeliveryKind::Event));
}

pub(crate) async fn events_and_deliveries_are_committed_together(w: World) {
    let hooks = [
        w.hook("a.example", &[JobCompleted]).await,
        w.hook("b.example", &[JobCompleted]).await,
    ];
    let jobs: Vec<JobId> = {
        let mut jobs = Vec::new();
        for _ in 0..5 {
            jobs.push(w.create(1).await);
        }
        jobs
    };
    // Images of the database as a kill would leave it, while jobs end.
    let store = w.store.clone();
    let ends = tokio::spawn(async move {
        loop {
            let Some(claim) = store.claim(1, LEASE, NOW).await.unwrap().pop() else {
                return;
            };
            store.finish(claim.lease, succeeded(&claim), NOW).await.unwrap();
        }
    });
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let image = w.backend.open_after_crash(BOUNDS).await;
    ends.await.ok();
    for hook in hooks {
        let filter = crate::DeliveryFilter {
            limit: 99,
            ..Default::default()
        };
        let told: HashSet<_> = image
            .deliveries(hook, filter)
            .await
            .unwrap()
            .unwrap()
            .into_iter()
            .map(|d| d.event.unwrap().0)
            .collect();
        let mut completed = HashSet::new();
        for job in &jobs {
            let status = image.job(w.workspace, *job).await.unwrap().unwrap().status;
            let events = image.events(w.workspace, *job, 0).await.unwrap();
            let last = events.last().unwrap();
            assert_eq!(
                last.event_type,
                status.event(),
                "the event is there exactly when the status is"
            );
            completed.extend((last.event_type == JobCompleted).then_some(last.id));
        }
        assert_eq!(told, completed, "and so are its deliveries");
    }
}

pub(crate) async fn an_event_is_handed_out_once(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    let job = w.run_one().await;
    w.store.settle(NOW).await.unwrap();
    w.store.recover(true, 9, NOW).await.unwrap();
    w.store.stop_job(w.workspace, job, NOW).await.unwrap();
    assert_eq!(w.log(hook).await.len(), 1);
    assert_eq!(w.store.stats(NOW).await.unwrap().deliveries_pending, 1);
    let store = w.store.clone();
    let claims = at_once(16, |_| {
        let store = store.clone();
        async move { store.claim_deliveries(query(ChannelKind::Webhook, 10), NOW).await }
    });
    let claims: Vec<_> = claims.await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(claims.len(), 1, "of claimers at once one has it");
}

pub(crate) async fn lanes_are_apart(w: World) {
    w.hook("a.example", &[JobCompleted]).await;
    w.mail("a@example.org", &[JobCompleted]).await;
    w.run_one().await;
    assert_eq!(w.store.next_delivery(ChannelKind::Email).await.unwrap(), Some(0));
    for lane in [ChannelKind::Webhook, ChannelKind::Email] {
        let due = w.to_send(lane).await;
        assert_eq!((due.len(), due[0].channel.definition.target.kind()), (1, lane));
        assert_eq!(w.store.next_delivery(lane).await.unwrap(), None);
    }
}

pub(crate) async fn a_receiver_holds_up_only_itself(w: World) {
    w.hook("dead.example", &[JobScheduled, JobInProgress, JobCompleted])
        .await;
    for _ in 0..5 {
        w.run_one().await;
    }
    w.hook("live.example", &[JobCompleted]).await;
    w.run_one().await;
    let two_each = DeliveryQuery {
        per_receiver: 2,
        ..query(ChannelKind::Webhook, 8)
    };
    let hosts = async || -> Vec<String> {
        let claims = w.store.claim_deliveries(two_each, NOW).await.unwrap();
        let mut hosts: Vec<_> = claims
            .iter()
            .map(|c| c.channel.definition.target.receiver().to_owned())
            .collect();
        hosts.sort();
        hosts
    };
    assert_eq!(hosts().await, ["dead.example", "dead.example", "live.example"]);
    w.run_one().await;
    assert_eq!(hosts().await, ["live.example"], "those under way count");
}

pub(crate) async fn receivers_take_turns(w: World) {
    for host in ["a.example", "b.example", "c.example"] {
        w.hook(host, &[JobScheduled, JobInProgress, JobCompleted]).await;
    }
    w.run_one().await;
    let mut hosts = Vec::new();
    for _ in 0..9 {
        let claims = w
            .store
            .claim_deliveries(query(ChannelKind::Webhook, 1), NOW)
            .await
            .unwrap();
        hosts.push(claims[0].channel.definition.target.receiver().to_owned());
    }
    for round in hosts.chunks(3) {
        assert_eq!(round.iter().collect::<HashSet<_>>().len(), 3, "{hosts:?}");
    }
}

pub(crate) async fn first_attempts_come_before_others(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let first = w.to_send(ChannelKind::Webhook).await.remove(0);
    w.end(&first, DeliveryOutcome::Retry { not_before: NOW }).await;
    w.run_one().await;
    let one = async |max_retries| {
        let query = DeliveryQuery {
            max_retries,
            ..query(ChannelKind::Webhook, 1)
        };
        w.store
            .claim_deliveries(query, NOW)
            .await
            .unwrap()
            .pop()
            .map(|claim| claim.attempt)
    };
    assert_eq!(one(1).await, Some(1));
    assert_eq!(one(0).await, None, "no room for others");
    assert_eq!(one(1).await, Some(2));
    assert_eq!(w.log(hook).await.len(), 2);
}

pub(crate) async fn a_retry_waits_for_its_time(w: World) {
    w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    let later = NOW + 5 * SECOND;
    w.end(&claim, DeliveryOutcome::Retry { not_before: later }).await;
    assert_eq!(w.store.next_delivery(ChannelKind::Webhook).await.unwrap(), Some(later));
    assert!(w.to_send_at(ChannelKind::Webhook, later - 1).await.is_empty());
    let again = w.to_send_at(ChannelKind::Webhook, later).await.remove(0);
    assert_eq!(again.lease.delivery(), claim.lease.delivery(), "the id stays");
    assert_eq!(again.attempt, 2);
}

pub(crate) async fn a_lost_lease_changes_nothing(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let stale = w.to_send(ChannelKind::Webhook).await.remove(0);
    assert_eq!(
        w.store.recover_deliveries(false, LEASE).await.unwrap(),
        0,
        "not expired yet"
    );
    assert!(
        w.store
            .renew_deliveries(&[stale.lease], LEASE + 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        w.store.recover_deliveries(false, LEASE + 5).await.unwrap(),
        0,
        "renewed"
    );
    assert_eq!(w.store.recover_deliveries(false, LEASE + 10).await.unwrap(), 1);
    let held = w.to_send(ChannelKind::Webhook).await.remove(0);
    assert_eq!((held.lease.delivery(), held.attempt), (stale.lease.delivery(), 1));
    let finish = |claim: &DeliveryClaim| {
        let lease = [claim.lease];
        let store = w.store.clone();
        async move {
            let done = store.finish_deliveries(&lease, attempt(None, 200), DeliveryOutcome::Delivered, None, NOW);
            done.await
        }
    };
    assert!(matches!(finish(&stale).await, Err(StoreError::LeaseLost)));
    w.store.defer_deliveries(&[stale.lease], NOW).await.unwrap();
    assert_eq!(
        w.store
            .renew_deliveries(&[stale.lease, held.lease], LEASE)
            .await
            .unwrap(),
        [stale.lease]
    );
    assert_eq!(w.log(hook).await[0].attempts, 0);
    finish(&held).await.unwrap();
    assert!(matches!(finish(&held).await, Err(StoreError::LeaseLost)));
    assert_eq!(
        (w.log(hook).await[0].attempts, w.log(hook).await[0].state),
        (1, DeliveryState::Delivered)
    );
}

pub(crate) async fn a_killed_server_loses_no_delivery(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let before = w.to_send(ChannelKind::Webhook).await.remove(0);
    let store = w.backend.open_after_crash(BOUNDS).await;
    assert!(
        store
            .claim_deliveries(query(ChannelKind::Webhook, 9), NOW)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(store.recover_deliveries(true, NOW).await.unwrap(), 1);
    let again = store
        .claim_deliveries(query(ChannelKind::Webhook, 9), NOW)
        .await
        .unwrap();
    assert_eq!(again[0].lease.delivery(), before.lease.delivery());
    assert_eq!(again[0].channel.channel, hook);
}

pub(crate) async fn deferred_deliveries_are_untried(w: World) {
    let hook = w.hook("a.example", &[JobCompleted]).await;
    w.run_one().await;
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    w.store.defer_deliveries(&[claim.lease], NOW + SECOND).await.unwrap();
    assert!(w.to_send(ChannelKind::Webhook).await.is_empty());
    let again = w.to_send_at(ChannelKind::Webhook, NOW + SECOND).await.remove(0);
    assert_eq!((again.attempt, w.log(hook).await[0].attempts), (1, 0));
}

pub(crate) async fn what_may_not_be_sent_any_more_is_not_claimed(w: World) {
    let hook = w.hook("a.example", &[JobScheduled, JobInProgress, JobCompleted]).await;
    w.run_one().await;
    let held = w.to_send(ChannelKind::Webhook).await;
    w.store.unsubscribe(hook, "off", NOW).await.unwrap();
    for claim in &held {
        w.end(claim, DeliveryOutcome::Retry { not_before: NOW }).await;
    }
    assert!(
        w.to_send(ChannelKind::Webhook).await.is_empty(),
        "disabled while it was tried"
    );
    assert!(
        w.log(hook)
            .await
            .iter()
            .all(|delivery| delivery.state == DeliveryState::Cancelled)
    );
    assert_eq!(w.store.next_delivery(ChannelKind::Webhook).await.unwrap(), None);
}

pub(crate) async fn mails_to_one_mailbox_are_claimed_together(w: World) {
    let one = w.mail("a@example.org", &[JobScheduled, JobCompleted]).await;
    let two = w.mail("A@example.org", &[JobCompleted]).await;
    w.mail("b@example.org", &[JobCompleted]).await;
    let another = w.another_workspace("another").await;
    let foreign = ChannelRef {
        workspace: another,
        ..w.in_workspace()
    };
    let foreign = w
        .channel_at(foreign, super::told::mail_to("a@example.org", &[JobScheduled]))
        .await;
    w.try_code(foreign, 1, NOW).await;
    w.create_in(another, 0).await;
    w.run_one().await;
    w.run_one().await;
    let lead = async || {
        let one_mail = DeliveryQuery {
            per_receiver: 1,
            ..query(ChannelKind::Email, 9)
        };
        let claims = w.store.claim_deliveries(one_mail, NOW).await.unwrap();
        claims.into_iter().find(|claim| claim.channel.channel != foreign)
    };
    let foreign_first = w
        .store
        .claim_deliveries(query(ChannelKind::Email, 1), NOW)
        .await
        .unwrap();
    w.end(&foreign_first[0], DeliveryOutcome::Delivered).await;
    let lead = lead().await.unwrap();
    assert_eq!(lead.channel.definition.target.receiver(), "a@example.org");
    let rest = w.store.claim_siblings(lead.lease, 4, LEASE, NOW).await.unwrap();
    assert_eq!(rest.len(), 4, "at most as many as asked for");
    assert!(rest.iter().all(|claim| [one, two].contains(&claim.channel.channel)));
    let more = w.store.claim_siblings(lead.lease, 99, LEASE, NOW).await.unwrap();
    assert_eq!(more.len(), 1, "2 x 3 in all");
    let leases: Vec<_> = [&lead].into_iter().chain(&rest).map(|claim| claim.lease).collect();
    let done = w
        .store
        .finish_deliveries(&leases, attempt(None, 250), DeliveryOutcome::Delivered, None, NOW);
    assert_eq!(done.await.unwrap().finished, 5);
    let digested = w.log(one).await.into_iter().chain(w.log(two).await);
    let digested = digested.filter(|delivery| delivery.digest_of == Some(lead.lease.delivery()));
    assert_eq!(digested.count(), 4);
    assert_eq!(
        w.store.mails_since(w.workspace, "a@example.org", NOW).await.unwrap(),
        1,
        "a digest is one mail"
    );
    assert_eq!(
        w.store
            .mails_since(w.workspace, "a@example.org", NOW + 1)
            .await
            .unwrap(),
        0
    );
    assert!(
        w.store
            .claim_siblings(lead.lease, 9, LEASE, NOW)
            .await
            .unwrap()
            .is_empty(),
        "the lease is lost"
    );
}

pub(crate) async fn tests_are_sent_to_enabled_channels(w: World) {
    let hook = w.hook("a.example", &[JobFailed]).await;
    let mail = w.unverified("a@example.org", &[JobFailed]).await;
    let test = w.store.create_test(hook, NOW).await.unwrap().unwrap();
    assert_eq!(w.store.create_test(mail, NOW).await.unwrap(), None);
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    assert_eq!((claim.lease.delivery(), claim.kind), (test, DeliveryKind::Test));
    assert!(claim.event.is_none());
}

pub(crate) async fn progress_is_told_to_those_who_want_it(w: World) {
    let events = async |job| -> Vec<EventType> { w.events(job).await };
    let finish_at = async |seconds| {
        let claim = w.claim_one().await;
        let done = w.store.finish(claim.lease, succeeded(&claim), NOW + seconds * SECOND);
        done.await.unwrap();
    };
    let unheard = w.create(2).await;
    finish_at(60).await;
    finish_at(61).await;
    assert_eq!(
        events(unheard).await,
        [JobScheduled, JobInProgress, JobCompleted],
        "nobody wants it"
    );
    let hook = w.hook("a.example", &[JobProgress]).await;
    let job = w.create(7).await;
    for seconds in [9, 10, 11, 19, 20, 31, 32] {
        finish_at(seconds).await;
    }
    let told = w.store.events(w.workspace, job, 0).await.unwrap();
    let progress: Vec<_> = told.iter().filter(|event| event.event_type == JobProgress).collect();
    let at: Vec<_> = progress.iter().map(|event| (event.created_at - NOW) / SECOND).collect();
    assert_eq!(at, [10, 20, 31], "at most one in 10 seconds");
    assert_eq!(progress[1].payload["files_succeeded"], 5);
    assert_eq!(events(job).await.last(), Some(&JobCompleted));
    assert_eq!(w.log(hook).await.len(), 3);
    let unread = w
        .store
        .unread_count(w.workspace, Some(w.job(job).await.workflow))
        .await
        .unwrap();
    assert_eq!(unread, 3, "progress is no news");
    let kind = w.log(hook).await[0].event.unwrap().1;
    assert_eq!(
        (kind, hook.scope),
        (NotificationType::Job(JobProgress), ChannelScope::Workspace)
    );
}
