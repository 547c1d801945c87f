//! Deleting jobs and their blobs.

use std::collections::BTreeSet;

use docmill_model::ids::JobId;
use docmill_model::job::JobStatus;
use docmill_model::time::SECOND;

use super::World;
use super::world::{NOW, blob_of, failed, output_keys, retry_of, succeeded};
use crate::{DeleteOutcome, FilePage, NewJob, StoreError};

impl World {
    async fn delete(&self, job: JobId) -> DeleteOutcome {
        self.store.delete_job(self.workspace, job).await.unwrap()
    }

    async fn garbage(&self) -> BTreeSet<String> {
        self.store.garbage(1000).await.unwrap().into_iter().collect()
    }

    /// A job whose files failed.
    async fn failed_job(&self, files: usize) -> NewJob {
        let job = self.new_job(files);
        self.add(job.clone()).await;
        for claim in self.claim(files).await {
            self.finish(claim.lease, failed("x")).await;
        }
        job
    }
}

fn inputs(job: &NewJob) -> BTreeSet<String> {
    job.files.iter().map(|file| blob_of(&file.input)).collect()
}

pub(crate) async fn only_ended_jobs_go(w: World) {
    let w = w.with_limit(1).await;
    let (running, waiting) = (w.create(1).await, w.create(1).await);
    assert_eq!(w.delete(running).await, DeleteOutcome::NotEnded);
    assert_eq!(w.delete(waiting).await, DeleteOutcome::NotEnded);
    assert_eq!(w.delete(JobId::new()).await, DeleteOutcome::NotFound);
    w.store.stop_job(w.workspace, running, NOW).await.unwrap();
    assert_eq!(w.delete(running).await, DeleteOutcome::Deleted);
    assert_eq!(w.delete(running).await, DeleteOutcome::NotFound);
    assert!(w.store.job(w.workspace, running).await.unwrap().is_none());
    assert!(
        w.store
            .job_files(w.workspace, running, FilePage::ALL)
            .await
            .unwrap()
            .is_none()
    );
    assert!(w.events(running).await.is_empty());
    assert_eq!(w.status(waiting).await, JobStatus::InProgress);
}

pub(crate) async fn deletion_leaves_garbage(w: World) {
    let job = w.new_job(2);
    w.add(job.clone()).await;
    let other = w.create(1).await;
    let claims = w.claim(2).await;
    w.finish(claims[0].lease, succeeded(&claims[0])).await;
    w.finish(claims[1].lease, failed("x")).await;
    assert!(w.garbage().await.is_empty());
    assert_eq!(w.delete(job.id).await, DeleteOutcome::Deleted);
    let mut expected = inputs(&job);
    expected.extend(output_keys(&claims[0]).into_iter().map(|output| output.2));
    assert_eq!(w.garbage().await, expected);
    let gone = w
        .store
        .output(w.workspace, job.id, claims[0].lease.file(), None)
        .await
        .unwrap();
    assert!(gone.is_none());
    assert_eq!(w.files(other).await.len(), 1);
}

pub(crate) async fn garbage_is_forgotten_when_told(w: World) {
    let job = w.failed_job(3).await;
    w.delete(job.id).await;
    assert_eq!(w.store.garbage(2).await.unwrap().len(), 2);
    let some = w.store.garbage(2).await.unwrap();
    w.store.forget_garbage(&some).await.unwrap();
    w.store.forget_garbage(&["never/there".into()]).await.unwrap();
    w.store.forget_garbage(&[]).await.unwrap();
    let mut expected = inputs(&job);
    expected.retain(|key| !some.contains(key));
    assert_eq!(w.garbage().await, expected);
}

pub(crate) async fn a_retrys_blobs_stay(w: World) {
    let original = w.failed_job(2).await;
    let mut retry = retry_of(&original);
    retry.files.truncate(1);
    w.add(retry.clone()).await;
    assert_eq!(w.delete(original.id).await, DeleteOutcome::Deleted);
    let mut expected = inputs(&original);
    expected.retain(|key| *key != blob_of(&retry.files[0].input));
    assert_eq!(w.garbage().await, expected, "only what the retry does not need");
    let claim = w.claim_one().await;
    assert_eq!(claim.input, original.files[0].input);
    w.finish(claim.lease, succeeded(&claim)).await;
}

pub(crate) async fn the_last_holder_frees_the_blobs(w: World) {
    let original = w.failed_job(1).await;
    let retry = retry_of(&original);
    w.add(retry.clone()).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, failed("x")).await;
    let mut again = retry_of(&retry);
    again.files[0].name = "again".into();
    w.add(again.clone()).await;
    w.store.stop_job(w.workspace, again.id, NOW).await.unwrap();
    for job in [&original, &again] {
        assert_eq!(w.delete(job.id).await, DeleteOutcome::Deleted);
        assert!(w.garbage().await.is_empty());
    }
    assert_eq!(w.delete(retry.id).await, DeleteOutcome::Deleted);
    assert_eq!(w.garbage().await, inputs(&original));
}

pub(crate) async fn no_retry_of_a_deleted_job(w: World) {
    let original = w.failed_job(1).await;
    let retry = retry_of(&original);
    w.delete(original.id).await;
    let refused = w.store.create_job(retry.clone(), NOW).await;
    assert!(matches!(refused, Err(StoreError::OriginalGone(job)) if job == original.id));
    assert!(w.store.job(w.workspace, retry.id).await.unwrap().is_none());
    assert_eq!(w.garbage().await, inputs(&original));
    let stats = w.store.stats(NOW).await.unwrap();
    assert_eq!((stats.jobs_in_progress, stats.files_ready), (0, 0));
}

pub(crate) async fn retries_and_deletions_at_once(w: World) {
    for round in 0..20 {
        let original = w.failed_job(1).await;
        let retry = retry_of(&original);
        let created = {
            let (store, retry) = (w.store.clone(), retry.clone());
            tokio::spawn(async move { store.create_job(retry, NOW).await })
        };
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(w.delete(original.id).await, DeleteOutcome::Deleted);
        let blob_is_garbage = !w.garbage().await.is_disjoint(&inputs(&original));
        match created.await.unwrap() {
            Ok(()) => {
                assert!(!blob_is_garbage, "the retry needs it");
                w.run_all().await;
            }
            Err(StoreError::OriginalGone(_)) => assert!(blob_is_garbage),
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) async fn no_retry_with_strange_blobs(w: World) {
    let (_, elsewhere) = w.another_account("b").await;
    let (mine, other) = (w.failed_job(1).await, w.failed_job(1).await);
    let mut mixed = retry_of(&mine);
    mixed.files[0].input = other.files[0].input.clone();
    let mut stolen = retry_of(&mine);
    stolen.workspace = elsewhere;
    for retry in [mixed, stolen] {
        let refused = w.store.create_job(retry, NOW).await;
        assert!(matches!(refused, Err(StoreError::OriginalGone(_))));
    }
}

pub(crate) async fn old_jobs_expire_oldest_first(w: World) {
    let mut jobs = Vec::new();
    for age in 0..4 {
        let job = w.new_job(1);
        w.add(job.clone()).await;
        let claim = w.claim_one().await;
        w.store
            .finish(claim.lease, failed("x"), NOW + age * SECOND)
            .await
            .unwrap();
        jobs.push(job);
    }
    let running = w.create(1).await;
    let expire = async |before, max| w.store.expire_jobs(before, max).await.unwrap();
    assert_eq!(expire(NOW, 10).await, 0, "ended at that moment is not before it");
    assert_eq!(expire(NOW + 3 * SECOND, 2).await, 2);
    let mut expected = inputs(&jobs[0]);
    expected.extend(inputs(&jobs[1]));
    assert_eq!(w.garbage().await, expected);
    assert_eq!(expire(NOW + 3 * SECOND, 2).await, 1);
    assert_eq!(expire(i64::MAX, 10).await, 1);
    let left: Vec<_> = w.jobs().await.iter().map(|job| job.id).collect();
    assert_eq!(left, [running], "what runs does not expire");
}

pub(crate) async fn unreferenced_blobs_are_found(w: World) {
    let job = w.new_job(2);
    w.add(job.clone()).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, succeeded(&claim)).await;
    let mut keys: Vec<_> = inputs(&job).into_iter().collect();
    keys.extend(output_keys(&claim).into_iter().map(|output| output.2));
    assert!(w.store.unreferenced(&keys).await.unwrap().is_empty());
    assert!(w.store.unreferenced(&[]).await.unwrap().is_empty());
    keys.insert(1, "in/nobody/knows".into());
    assert_eq!(w.store.unreferenced(&keys).await.unwrap(), ["in/nobody/knows"]);
    keys.remove(1);
    w.store.stop_job(w.workspace, job.id, NOW).await.unwrap();
    w.delete(job.id).await;
    assert_eq!(w.store.unreferenced(&keys).await.unwrap(), keys);
}
