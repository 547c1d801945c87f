//! Monitoring, and what is left after a restart or a crash.

use docmill_model::job::TaskState;
use docmill_model::time::SECOND;

use super::World;
use super::world::{BOUNDS, LEASE, NOW, at_once, new_job, retried, succeeded};
use crate::{NewKey, StoreError};

pub(crate) async fn stats_count(w: World) {
    let read = async |now| {
        let stats = w.store.stats(now).await.unwrap();
        let counts = [
            stats.jobs_scheduled,
            stats.jobs_in_progress,
            stats.files_ready,
            stats.files_running,
        ];
        (counts, stats.oldest_ready_age)
    };
    assert_eq!(read(NOW).await, ([0; 4], 0));
    for _ in 0..7 {
        w.create(2).await;
    }
    assert_eq!(read(NOW + 3 * SECOND).await, ([2, 5, 10, 0], 3 * SECOND));
    let claims = w.claim(4).await;
    w.finish(claims[0].lease, succeeded(&claims[0])).await;
    assert_eq!(read(NOW).await, ([2, 5, 6, 3], 0));
    assert_eq!(read(NOW - SECOND).await.1, 0, "never negative");
    w.run_all().await;
    for claim in &claims[1..] {
        w.finish(claim.lease, succeeded(claim)).await;
    }
    w.run_all().await;
    assert_eq!(read(NOW + SECOND).await, ([0; 4], 0));
}

pub(crate) async fn the_store_says_it_is_writable(w: World) {
    w.store.check_writable().await.unwrap();
    assert!(
        w.store.garbage(10).await.unwrap().is_empty(),
        "and leaves nothing behind"
    );
}

/// All there is to see of the workspace.
async fn everything(w: &World) -> String {
    let mut all = format!("{:?} {:?}", w.store.workspaces().await, w.store.keys(None).await);
    all += &format!("{:?}", w.store.garbage(1000).await);
    for job in w.jobs().await {
        all += &format!("{job:?} {:?} {:?}", w.files(job.id).await, w.events(job.id).await);
    }
    all
}

pub(crate) async fn everything_acknowledged_survives_reopening(mut w: World) {
    let key = NewKey {
        workspace: w.workspace,
        name: "n".into(),
        prefix: "p".into(),
        secret_hash: "h".into(),
    };
    w.store.create_key(key, NOW).await.unwrap();
    let created = at_once(12, |n| {
        let (store, job) = (w.store.clone(), new_job(w.account, w.workspace, n % 3));
        async move {
            let id = job.id;
            store.create_job(job, NOW).await.map(|()| id)
        }
    });
    let jobs: Vec<_> = created.await.into_iter().map(Result::unwrap).collect();
    w.store.settle(NOW).await.unwrap();
    for claim in w.claim(3).await {
        w.finish(claim.lease, succeeded(&claim)).await;
    }
    w.store.stop_job(w.workspace, jobs[11], NOW).await.unwrap();
    w.store.delete_job(w.workspace, jobs[11]).await.unwrap();
    let before = everything(&w).await;
    w.store = w.backend.open_after_crash(BOUNDS).await;
    assert_eq!(everything(&w).await, before, "after a crash");
    w.store = w.backend.open(BOUNDS).await;
    assert_eq!(everything(&w).await, before, "after a restart");
    w.run_all().await;
    w.store.settle(NOW).await.unwrap();
    assert_eq!(w.jobs().await.len(), 11);
    assert!(w.jobs().await.iter().all(|job| job.status.is_terminal()));
}

pub(crate) async fn every_claim_and_lease_survives_reopening(mut w: World) {
    let job = w.create(3).await;
    let claims = w.claim(3).await;
    w.finish(claims[0].lease, retried(NOW + SECOND)).await;
    w.store.release(claims[1].lease).await.unwrap();
    w.store = w.backend.open_after_crash(BOUNDS).await;
    assert_eq!(
        w.states(job).await,
        [TaskState::Ready, TaskState::Ready, TaskState::Running]
    );
    assert!(w.store.renew(&[claims[2].lease], LEASE).await.unwrap().is_empty());
    assert_eq!(w.store.recover(true, 3, NOW).await.unwrap(), 1);
    let again = w.store.claim(3, LEASE, NOW + SECOND).await.unwrap();
    for (claim, old) in again.iter().zip(&claims) {
        assert_eq!(claim.lease.file(), old.lease.file());
        assert!(claim.lease.token() > old.lease.token());
        let late = w.store.finish(old.lease, succeeded(old), NOW).await;
        assert!(matches!(late, Err(StoreError::LeaseLost)));
    }
    assert_eq!(again.iter().map(|claim| claim.attempt).collect::<Vec<_>>(), [2, 1, 2]);
}
