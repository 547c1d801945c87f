//! The right to work on a file: renewing it, losing it, giving it back.

use docmill_model::Code;
use docmill_model::job::JobStatus::{Completed, Failed, InProgress};
use docmill_model::job::{EventType, TaskState};
use docmill_model::time::SECOND;

use super::World;
use super::world::{LEASE, NOW, at_once, failed, output_keys, retried, succeeded};
use crate::{FileOutcome, Lease, StoreError};

/// An instant at which leases of [`LEASE`] have ended.
const LATE: i64 = LEASE + 1;

impl World {
    async fn recover(&self) -> u64 {
        self.store.recover(false, 3, LATE).await.unwrap()
    }

    async fn is_lost(&self, lease: Lease, outcome: FileOutcome) -> bool {
        let result = self.store.finish(lease, outcome, LATE).await;
        matches!(result, Err(StoreError::LeaseLost))
    }
}

pub(crate) async fn tokens_grow(w: World) {
    w.create(1).await;
    let mut last = 0;
    for round in 0..3 {
        let claim = w.claim_one().await;
        assert!(claim.lease.token() > last);
        last = claim.lease.token();
        match round {
            0 => assert_eq!(w.recover().await, 1),
            1 => w.store.release(claim.lease).await.unwrap(),
            _ => w.finish(claim.lease, retried(NOW)).await,
        }
    }
    assert!(w.claim_one().await.lease.token() > last);
}

pub(crate) async fn renewal_extends(w: World) {
    w.create(2).await;
    let claims = w.claim(2).await;
    let kept = claims[1].lease;
    assert!(w.store.renew(&[kept], LATE + SECOND).await.unwrap().is_empty());
    assert!(w.store.renew(&[], LATE).await.unwrap().is_empty());
    assert_eq!(w.recover().await, 1, "the other one expired");
    assert!(w.store.renew(&[kept], LATE + SECOND).await.unwrap().is_empty());
}

pub(crate) async fn a_lost_lease_is_reported(w: World) {
    let job = w.create(3).await;
    let leases: Vec<_> = w.claim(3).await.iter().map(|claim| claim.lease).collect();
    assert!(w.store.renew(&leases[..2], LATE + SECOND).await.unwrap().is_empty());
    assert_eq!(w.recover().await, 1);
    assert_eq!(w.store.renew(&leases, LATE + SECOND).await.unwrap(), [leases[2]]);
    w.finish(leases[0], failed("x")).await;
    assert_eq!(
        w.store.renew(&leases, LATE + SECOND).await.unwrap(),
        [leases[0], leases[2]]
    );
    w.store.stop_job(w.workspace, job, NOW).await.unwrap();
    assert_eq!(w.store.renew(&leases, LATE + SECOND).await.unwrap(), leases);
}

pub(crate) async fn a_stale_token_changes_nothing(w: World) {
    let job = w.create(1).await;
    let stale = w.claim_one().await;
    assert_eq!(w.recover().await, 1);
    let before = format!("{:?} {:?}", w.job(job).await, w.files(job).await);
    for outcome in [succeeded(&stale), failed("late"), retried(LATE)] {
        assert!(w.is_lost(stale.lease, outcome).await, "the file is ready again");
    }
    assert_eq!(format!("{:?} {:?}", w.job(job).await, w.files(job).await), before);
    let live = w.claim_one().await;
    let before = format!("{:?} {:?}", w.job(job).await, w.files(job).await);
    for outcome in [succeeded(&stale), failed("late"), retried(LATE)] {
        assert!(w.is_lost(stale.lease, outcome).await, "somebody else runs it");
    }
    assert_eq!(format!("{:?} {:?}", w.job(job).await, w.files(job).await), before);
    w.finish(live.lease, succeeded(&live)).await;
    assert!(w.is_lost(stale.lease, failed("late")).await);
    assert_eq!(w.status(job).await, Completed);
}

pub(crate) async fn two_workers_one_result(w: World) {
    let job = w.create(1).await;
    let paused = w.claim_one().await;
    assert_eq!(w.recover().await, 1);
    let winner = w.claim_one().await;
    let results = at_once(8, |n| {
        let claim = if n % 2 == 0 { &paused } else { &winner };
        let (store, lease, outcome) = (w.store.clone(), claim.lease, succeeded(claim));
        async move { store.finish(lease, outcome, NOW).await }
    });
    let results = results.await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let lost = |result: &&_| matches!(result, Err(StoreError::LeaseLost));
    assert_eq!(results.iter().filter(lost).count(), 7);
    let output = w
        .store
        .output(w.workspace, job, winner.lease.file(), None)
        .await
        .unwrap();
    assert_eq!(output.unwrap().blob_key, output_keys(&winner)[1].2, "the winner's");
    assert_eq!(w.job(job).await.files_succeeded, 1);
    assert_eq!(w.events(job).await.len(), 3);
}

pub(crate) async fn finishing_twice_is_refused(w: World) {
    let job = w.create(2).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, succeeded(&claim)).await;
    assert!(w.is_lost(claim.lease, succeeded(&claim)).await);
    assert!(w.is_lost(claim.lease, failed("again")).await);
    let job = w.job(job).await;
    assert_eq!((job.status, job.files_succeeded, job.files_failed), (InProgress, 1, 0));
}

pub(crate) async fn release_charges_no_attempt(w: World) {
    let job = w.create(1).await;
    for _ in 0..5 {
        let claim = w.claim_one().await;
        assert_eq!(claim.attempt, 1);
        w.store.release(claim.lease).await.unwrap();
        assert!(w.is_lost(claim.lease, succeeded(&claim)).await);
    }
    let file = w.files(job).await.remove(0);
    assert_eq!((file.state, file.attempt), (TaskState::Ready, 0));
}

pub(crate) async fn a_stale_release_changes_nothing(w: World) {
    let job = w.create(1).await;
    let stale = w.claim_one().await;
    assert_eq!(w.recover().await, 1);
    w.store.release(stale.lease).await.unwrap();
    let live = w.claim_one().await;
    w.store.release(stale.lease).await.unwrap();
    let file = w.files(job).await.remove(0);
    assert_eq!((file.state, file.attempt), (TaskState::Running, 2));
    w.finish(live.lease, succeeded(&live)).await;
    w.store.release(live.lease).await.unwrap();
    assert_eq!(w.states(job).await, [TaskState::Succeeded]);
}

pub(crate) async fn expired_leases_are_recovered(w: World) {
    let job = w.create(2).await;
    let claim = w.claim_one().await;
    assert_eq!(w.store.recover(false, 3, LEASE).await.unwrap(), 0, "its last moment");
    assert_eq!(w.store.recover(false, 3, LATE).await.unwrap(), 1);
    assert_eq!(w.states(job).await, [TaskState::Ready, TaskState::Ready]);
    let again = w.store.claim(1, LATE + SECOND, LATE).await.unwrap().remove(0);
    assert_eq!(
        (again.lease.file(), again.attempt),
        (claim.lease.file(), 2),
        "the attempt counts"
    );
}

pub(crate) async fn live_leases_are_left_alone(w: World) {
    w.create(1).await;
    let claim = w.claim_one().await;
    assert_eq!(w.store.recover(false, 1, NOW).await.unwrap(), 0);
    w.finish(claim.lease, succeeded(&claim)).await;
}

pub(crate) async fn a_boot_recovers_everything_running(w: World) {
    let job = w.create(3).await;
    let claims = w.claim(2).await;
    assert_eq!(w.store.recover(true, 3, NOW).await.unwrap(), 2);
    assert_eq!(w.states(job).await, [TaskState::Ready; 3]);
    for claim in claims {
        assert!(w.is_lost(claim.lease, succeeded(&claim)).await);
    }
    assert_eq!(w.store.recover(true, 3, NOW).await.unwrap(), 0);
}

pub(crate) async fn a_clock_that_was_wrong_holds_nothing_up(w: World) {
    w.create(1).await;
    w.claim_one().await;
    let hour = 3600 * SECOND;
    assert_eq!(w.store.recover(false, 9, NOW + hour).await.unwrap(), 1, "an hour ahead");
    let claim = w.claim_one().await;
    w.finish(claim.lease, succeeded(&claim)).await;
}

pub(crate) async fn exhausted_attempts_fail_the_file_and_end_the_job(w: World) {
    let job = w.create(2).await;
    let good = w.claim(2).await.remove(0);
    w.finish(good.lease, succeeded(&good)).await;
    assert_eq!(w.store.recover(false, 2, LATE).await.unwrap(), 1);
    assert_eq!(w.status(job).await, InProgress, "one attempt is left");
    w.claim_one().await;
    assert_eq!(w.store.recover(false, 2, LATE).await.unwrap(), 1);
    let bad = w.files(job).await.remove(1);
    assert_eq!(bad.state, TaskState::Failed);
    let (code, message) = bad.error.unwrap();
    assert_eq!(code, Code::AttemptsExhausted);
    assert!(message.contains('2'), "{message}");
    let ended = w.job(job).await;
    assert_eq!((ended.status, ended.ended_at), (Completed, Some(LATE)));
    let alone = w.create(1).await;
    w.claim_one().await;
    w.store.recover(true, 1, NOW).await.unwrap();
    assert_eq!(w.status(alone).await, Failed);
    assert_eq!(w.events(alone).await.last(), Some(&EventType::JobFailed));
}

pub(crate) async fn retry_returns_the_file(w: World) {
    let job = w.create(1).await;
    let first = w.claim_one().await;
    w.finish(first.lease, retried(NOW)).await;
    assert!(w.is_lost(first.lease, succeeded(&first)).await);
    let second = w.claim_one().await;
    assert_eq!(second.attempt, 2);
    w.finish(second.lease, succeeded(&second)).await;
    let job = w.job(job).await;
    assert_eq!((job.status, job.files_succeeded), (Completed, 1));
}
