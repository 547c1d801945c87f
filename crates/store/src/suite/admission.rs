//! When a job may be created, and when it starts.

use docmill_model::ids::JobId;
use docmill_model::job::JobStatus::{Completed, InProgress, Scheduled, Stopped};
use docmill_model::job::{EventType, JobStatus, TaskState};
use docmill_model::time::SECOND;

use super::World;
use super::world::{LEASE, NOW, SLOTS, at_once, failed, new_job, succeeded};

pub(crate) async fn gate_lets_one_through_in_a_gap(w: World) {
    let gate = async |now| w.store.pass_create_gate(w.account, SECOND, now).await.unwrap();
    assert_eq!(gate(NOW).await, Ok(()));
    assert_eq!(gate(NOW).await, Err(SECOND));
    assert_eq!(gate(NOW + SECOND - 1).await, Err(1));
    assert_eq!(gate(NOW + SECOND).await, Ok(()), "a refusal does not lengthen the wait");
    assert_eq!(gate(NOW + SECOND + 10).await, Err(SECOND - 10));
}

pub(crate) async fn gate_lets_one_of_many_at_once_through(w: World) {
    let answers = at_once(32, |_| {
        let (store, account) = (w.store.clone(), w.account);
        async move { store.pass_create_gate(account, SECOND, NOW).await }
    })
    .await;
    let passed = answers.into_iter().filter(|answer| answer.as_ref().unwrap().is_ok());
    assert_eq!(passed.count(), 1);
}

pub(crate) async fn gate_counts_accounts_apart(w: World) {
    let (other, _) = w.another_account("b").await;
    for account in [w.account, other] {
        assert_eq!(w.store.pass_create_gate(account, SECOND, NOW).await.unwrap(), Ok(()));
    }
}

pub(crate) async fn gate_opens_when_the_clock_was_set_back(w: World) {
    let gate = async |now| w.store.pass_create_gate(w.account, SECOND, now).await.unwrap();
    assert_eq!(gate(NOW).await, Ok(()));
    let hour_ago = NOW - 3600 * SECOND;
    assert_eq!(gate(hour_ago).await, Ok(()));
    assert!(gate(hour_ago + 1).await.is_err(), "and then counts by the new clock");
}

impl World {
    async fn create_many(&self, n: usize, files: usize) -> Vec<JobId> {
        let mut jobs = Vec::new();
        for _ in 0..n {
            jobs.push(self.create(files).await);
        }
        jobs
    }

    async fn count(&self, status: JobStatus) -> usize {
        self.jobs().await.iter().filter(|job| job.status == status).count()
    }

    /// Fills the slots with jobs of one file and has three more wait; has `free` free one slot (given the
    /// first job), and asserts that the first of the waiting starts.
    async fn a_slot_is_freed(self, free: impl AsyncFn(&World, JobId)) {
        let running = self.create_many(SLOTS, 1).await;
        let waiting = self.create_many(3, 1).await;
        free(&self, running[0]).await;
        assert!(self.status(running[0]).await.is_terminal());
        assert_eq!(self.statuses(&waiting).await, [InProgress, Scheduled, Scheduled]);
        assert_eq!(self.states(waiting[0]).await, [TaskState::Ready]);
        assert_eq!(self.states(waiting[1]).await, [TaskState::Waiting]);
        assert_eq!(self.count(InProgress).await, SLOTS);
    }
}

pub(crate) async fn the_sixth_job_waits(w: World) {
    let jobs = w.create_many(6, 2).await;
    assert_eq!(w.count(InProgress).await, 5);
    let sixth = w.job(jobs[5]).await;
    assert_eq!((sixth.status, sixth.started_at), (Scheduled, None));
    assert_eq!(w.events(jobs[5]).await, [EventType::JobScheduled]);
    assert_eq!(w.claim(100).await.len(), 10, "its files can't be claimed");
    assert_eq!(w.store.settle(NOW).await.unwrap(), 0);
}

pub(crate) async fn waiting_jobs_start_in_order_of_arrival(w: World) {
    let w = w.with_limit(1).await;
    let jobs = w.create_many(4, 1).await;
    for (place, job) in jobs.iter().enumerate() {
        let mut expected = vec![Completed; place];
        expected.push(InProgress);
        expected.resize(4, Scheduled);
        assert_eq!(w.statuses(&jobs).await, expected);
        let claim = w.claim_one().await;
        assert_eq!(claim.job, *job);
        w.finish(claim.lease, succeeded(&claim)).await;
    }
    assert_eq!(w.count(Completed).await, 4);
}

pub(crate) async fn a_slot_is_freed_by_success(w: World) {
    w.a_slot_is_freed(async |w: &World, _| {
        let claim = w.claim_one().await;
        w.finish(claim.lease, succeeded(&claim)).await;
    })
    .await;
}

pub(crate) async fn a_slot_is_freed_by_failure(w: World) {
    w.a_slot_is_freed(async |w: &World, _| {
        let claim = w.claim_one().await;
        w.finish(claim.lease, failed("broken")).await;
    })
    .await;
}

pub(crate) async fn a_slot_is_freed_by_stopping(w: World) {
    w.a_slot_is_freed(async |w: &World, job| {
        w.store.stop_job(w.workspace, job, NOW).await.unwrap();
    })
    .await;
}

pub(crate) async fn a_slot_is_freed_by_recovery(w: World) {
    w.a_slot_is_freed(async |w: &World, _| {
        w.claim_one().await;
        assert_eq!(w.store.recover(false, 1, LEASE + 1).await.unwrap(), 1);
    })
    .await;
}

pub(crate) async fn a_stopped_waiting_job_never_starts(w: World) {
    let w = w.with_limit(1).await;
    let jobs = w.create_many(3, 1).await;
    w.store.stop_job(w.workspace, jobs[1], NOW).await.unwrap();
    assert_eq!(
        w.statuses(&jobs).await,
        [InProgress, Stopped, Scheduled],
        "and frees no slot"
    );
    w.run_all().await;
    assert_eq!(w.statuses(&jobs).await, [Completed, Stopped, Completed]);
    assert_eq!(
        w.events(jobs[1]).await,
        [EventType::JobScheduled, EventType::JobStopped]
    );
}

pub(crate) async fn accounts_have_slots_of_their_own(w: World) {
    w.create_many(SLOTS + 1, 1).await;
    let (account, workspace) = w.another_account("b").await;
    let job = new_job(account, workspace, 1);
    w.store.create_job(job.clone(), NOW).await.unwrap();
    let job = w.store.job(workspace, job.id).await.unwrap().unwrap();
    assert_eq!(job.status, InProgress);
}

pub(crate) async fn workspaces_of_an_account_share_its_slots(w: World) {
    w.create_many(SLOTS, 1).await;
    let workspace = w.another_workspace("b").await;
    let job = w.create_in(workspace, 1).await;
    let job = w.store.job(workspace, job).await.unwrap().unwrap();
    assert_eq!(job.status, Scheduled);
}

pub(crate) async fn limit_holds_under_parallel_creation(w: World) {
    let created = at_once(64, |_| {
        let (store, job) = (w.store.clone(), w.new_job(1));
        async move { store.create_job(job, NOW).await }
    });
    for result in created.await {
        result.unwrap();
    }
    assert_eq!(w.count(InProgress).await, SLOTS);
    assert_eq!(w.count(Scheduled).await, 64 - SLOTS);
    // While workers end jobs in parallel there are never more than five, and in the end all are done.
    let worked = at_once(8, |_| {
        let (store, workspace) = (w.store.clone(), w.workspace);
        async move {
            while let Some(claim) = store.claim(1, LEASE, NOW).await?.pop() {
                let jobs = store.jobs(workspace, &crate::JobFilter::default()).await?;
                assert!(jobs.iter().filter(|job| job.status == InProgress).count() <= SLOTS);
                store.finish(claim.lease, succeeded(&claim), NOW).await?;
            }
            Ok(())
        }
    });
    for result in worked.await {
        result.unwrap();
    }
    // A worker may have found nothing ready in the moment before the last jobs were admitted.
    w.run_all().await;
    assert_eq!(w.count(Completed).await, 64);
}

pub(crate) async fn no_limit_starts_everything(w: World) {
    let w = w.with_limit(0).await;
    w.create_many(12, 1).await;
    assert_eq!(w.count(InProgress).await, 12);
}

pub(crate) async fn a_raised_limit_starts_more(w: World) {
    let jobs = w.create_many(SLOTS + 3, 1).await;
    let w = w.with_limit(SLOTS as u32 + 2).await;
    assert_eq!(w.store.settle(NOW).await.unwrap(), 2);
    assert_eq!(w.statuses(&jobs[SLOTS..]).await, [InProgress, InProgress, Scheduled]);
}

pub(crate) async fn a_job_without_files_ends_by_settling(w: World) {
    let job = w.create(0).await;
    assert_eq!(w.status(job).await, InProgress, "its creator sees it before it ends");
    assert!(w.claim(10).await.is_empty());
    assert_eq!(w.store.settle(NOW).await.unwrap(), 1);
    let ended = w.job(job).await;
    assert_eq!(
        (ended.status, ended.message, ended.ended_at),
        (Completed, None, Some(NOW))
    );
    let expected = [
        EventType::JobScheduled,
        EventType::JobInProgress,
        EventType::JobCompleted,
    ];
    assert_eq!(w.events(job).await, expected);
    assert_eq!(w.store.settle(NOW).await.unwrap(), 0);
}

pub(crate) async fn a_waiting_job_without_files_ends_as_it_starts(w: World) {
    let w = w.with_limit(1).await;
    w.create(1).await;
    let empty = w.create_many(3, 0).await;
    let last = w.create(1).await;
    assert_eq!(w.statuses(&empty).await, [Scheduled; 3]);
    let claim = w.claim_one().await;
    w.finish(claim.lease, failed("broken")).await;
    assert_eq!(w.statuses(&empty).await, [Completed; 3]);
    assert_eq!(
        w.status(last).await,
        InProgress,
        "it does not wait for anybody to settle"
    );
    let expected = [
        EventType::JobScheduled,
        EventType::JobInProgress,
        EventType::JobCompleted,
    ];
    assert_eq!(w.events(empty[2]).await, expected);
}
