//! The inbox: what it shows, what is read, and how long things are kept.

use docmill_model::channel::{ChannelKind, NotificationType};
use docmill_model::ids::EventId;
use docmill_model::job::EventType::{JobCompleted, JobFailed, JobScheduled};
use docmill_model::time::SECOND;

use super::World;
use super::flows::definition;
use super::told::hook_at;
use super::world::{NOW, failed};
use crate::{DeleteOutcome, DeliveryOutcome, InboxCursor, InboxFilter, MarkRead, Notification};

impl World {
    async fn find(&self, filter: InboxFilter) -> Vec<Notification> {
        self.store.notifications(self.workspace, &filter).await.unwrap()
    }

    async fn unread(&self) -> u64 {
        self.store.unread_count(self.workspace, None).await.unwrap()
    }
}

const ALL: InboxFilter = InboxFilter {
    workflow: None,
    types: Vec::new(),
    since: None,
    unread_only: false,
    after: None,
    limit: 1_000,
};

pub(crate) async fn every_event_is_in_the_inbox(w: World) {
    let job = w.create(1).await;
    w.run_all().await;
    let news = w.inbox().await;
    let types: Vec<_> = news.iter().map(|n| n.kind.as_str()).collect();
    assert_eq!(
        types,
        ["job.completed", "job.in_progress", "job.scheduled"],
        "newest first"
    );
    let read = w.store.notification(w.workspace, news[0].id).await.unwrap().unwrap();
    assert_eq!(
        (read.kind, read.created_at),
        (NotificationType::Job(JobCompleted), NOW + SECOND)
    );
    assert_eq!((read.read_at, read.workflow), (None, Some(w.job(job).await.workflow)));
    assert_eq!(
        (&read.payload["job_id"], &read.payload["status"]),
        (&job.to_string().into(), &"COMPLETED".into())
    );
    assert!(
        w.store
            .notification(w.workspace, EventId::new())
            .await
            .unwrap()
            .is_none()
    );
}

pub(crate) async fn filters_match_and_pages_join(w: World) {
    let flow = w.workflow(definition("flow")).await;
    for n in 0..6 {
        if n % 2 == 0 {
            let run = w.new_run(&flow);
            w.store.create_job(run, NOW + n * SECOND).await.unwrap();
        } else {
            w.store.create_job(w.new_job(1), NOW + n * SECOND).await.unwrap();
        }
    }
    let mut lost = w.claim(2).await;
    w.finish(lost.remove(0).lease, failed("x")).await;
    let all = w.inbox().await;
    let marked: Vec<EventId> = all.iter().step_by(3).map(|n| n.id).collect();
    w.store
        .mark_read(w.workspace, MarkRead::Ids(marked.clone()), NOW)
        .await
        .unwrap();
    let all = w.inbox().await;
    for bits in 0..16u32 {
        let has = |bit: u32| bits & (1 << bit) != 0;
        let filter = InboxFilter {
            workflow: has(0).then_some(flow.id),
            types: if has(1) {
                vec![NotificationType::Job(JobScheduled), NotificationType::Job(JobFailed)]
            } else {
                Vec::new()
            },
            since: has(2).then_some(NOW + 2 * SECOND),
            unread_only: has(3),
            ..ALL
        };
        let matches = |n: &&Notification| {
            filter.workflow.is_none_or(|flow| n.workflow == Some(flow))
                && (filter.types.is_empty() || filter.types.contains(&n.kind))
                && filter.since.is_none_or(|since| n.created_at >= since)
                && !(filter.unread_only && n.read_at.is_some())
        };
        let expected: Vec<EventId> = all.iter().filter(matches).map(|n| n.id).collect();
        let (mut joined, mut after) = (Vec::new(), None);
        loop {
            let page = w
                .find(InboxFilter {
                    after,
                    limit: 2,
                    ..filter.clone()
                })
                .await;
            let Some(last) = page.last() else { break };
            after = Some(InboxCursor {
                created_at: last.created_at,
                id: last.id,
            });
            joined.extend(page.iter().map(|n| n.id));
        }
        assert_eq!(joined, expected, "{filter:?}");
        assert!(!expected.is_empty());
    }
}

pub(crate) async fn marking_counts_what_is_new(w: World) {
    let flow = w.workflow(definition("flow")).await;
    w.run(&flow).await;
    w.create(1).await;
    assert_eq!(w.unread().await, 4);
    assert_eq!(w.store.unread_count(w.workspace, Some(flow.id)).await.unwrap(), 2);
    let first = w.inbox().await[0].id;
    let mark = |which| w.store.mark_read(w.workspace, which, NOW + 7);
    assert_eq!(
        mark(MarkRead::Ids(vec![first, first, EventId::new()])).await.unwrap(),
        1
    );
    assert_eq!(mark(MarkRead::Ids(vec![first])).await.unwrap(), 0);
    let until = |workflow, before| MarkRead::Until { workflow, before };
    assert_eq!(mark(until(None, NOW)).await.unwrap(), 0, "before the instant");
    assert_eq!(mark(until(Some(flow.id), NOW + 1)).await.unwrap(), 2);
    assert_eq!(w.unread().await, 1);
    assert_eq!(mark(until(None, NOW + 1)).await.unwrap(), 1);
    assert_eq!(w.unread().await, 0);
    assert!(w.inbox().await.iter().all(|n| n.read_at == Some(NOW + 7)));
}

pub(crate) async fn many_are_marked_to_the_end(w: World) {
    // More than one part.
    let jobs = super::world::at_once(2_100, |_| {
        let (store, job) = (w.store.clone(), w.new_job(0));
        async move { store.create_job(job, NOW).await }
    });
    jobs.await.into_iter().for_each(|created| created.unwrap());
    w.store.settle(NOW).await.unwrap();
    let unread = w.unread().await;
    assert!(unread > 2_100);
    let jobs_only = InboxFilter {
        types: vec![NotificationType::Job(JobScheduled)],
        limit: u32::MAX,
        ..ALL
    };
    assert_eq!(w.find(jobs_only).await.len(), 2_100);
    let all = MarkRead::Until {
        workflow: None,
        before: NOW + 1,
    };
    assert_eq!(w.store.mark_read(w.workspace, all, NOW).await.unwrap(), unread);
    assert_eq!(w.unread().await, 0);
}

pub(crate) async fn a_deleted_job_stays_in_the_inbox_without_its_files(w: World) {
    let hook = w.hook("a.example", &[JobFailed]).await;
    let job = w.create(1).await;
    w.finish(w.claim_one().await.lease, failed("secret name")).await;
    assert_eq!(
        w.store.delete_job(w.workspace, job).await.unwrap(),
        DeleteOutcome::Deleted
    );
    assert_eq!(w.inbox().await.len(), 3);
    assert!(
        w.store.events(w.workspace, job, 0).await.unwrap().is_empty(),
        "the job has none any more"
    );
    let due = w.to_send(ChannelKind::Webhook).await;
    assert_eq!(
        (due.len(), due[0].channel.channel),
        (1, hook),
        "what was under way still arrives"
    );
    let told = due[0].event.as_ref().unwrap();
    assert!(told.failed_files.is_empty() && told.payload["files_failed"] == 1);
}

pub(crate) async fn what_is_old_is_forgotten(w: World) {
    let hook = w.hook("a.example", &[JobScheduled]).await;
    let flow = w.workflow(definition("flow")).await.id;
    let of_flow = w
        .channel_at(w.of_workflow(flow), hook_at("b.example", &[JobFailed]))
        .await;
    w.store.delete_workflow(w.workspace, flow, NOW).await.unwrap();
    w.create(1).await;
    w.run_all().await;
    assert_eq!(w.store.expire_notifications(NOW, 100).await.unwrap(), 0, "not older");
    assert_eq!(
        w.store.expire_notifications(NOW + 1, 100).await.unwrap(),
        2,
        "an event, and the flow's channel"
    );
    assert!(w.store.channel(of_flow).await.unwrap().is_none());
    let kept = w.inbox().await;
    let kept: Vec<_> = kept.iter().map(|n| n.kind.as_str()).collect();
    assert_eq!(
        kept,
        ["job.completed", "job.scheduled"],
        "what is still to be sent stays"
    );
    let claim = w.to_send(ChannelKind::Webhook).await.remove(0);
    let id = claim.lease.delivery();
    w.end(&claim, DeliveryOutcome::Delivered).await;
    assert_eq!(
        w.store.expire_notifications(NOW + 9 * SECOND, 1).await.unwrap(),
        2,
        "at most one of each"
    );
    assert_eq!(w.store.expire_notifications(NOW + 9 * SECOND, 100).await.unwrap(), 1);
    assert!(w.inbox().await.is_empty() && w.log(hook).await.is_empty());
    assert!(w.store.attempts(hook, id).await.unwrap().is_none());
}
