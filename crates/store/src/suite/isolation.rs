//! A workspace is as good as alone: every method that takes one, with somebody else's job.

use docmill_model::job::JobStatus;

use super::World;
use super::world::{NOW, failed, succeeded};
use crate::{DeleteOutcome, FilePage, JobFilter};

pub(crate) async fn another_workspace_sees_nothing(w: World) {
    let job = w.create(2).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, succeeded(&claim)).await;
    let file = claim.lease.file();
    let node = w.job(job).await.outputs[0].0;
    let sibling = w.another_workspace("sibling").await;
    let (_, stranger) = w.another_account("stranger").await;
    let store = &w.store;
    for other in [sibling, stranger] {
        assert!(store.job(other, job).await.unwrap().is_none());
        assert!(store.jobs(other, &JobFilter::default()).await.unwrap().is_empty());
        let filter = JobFilter {
            workflow: Some(w.job(job).await.workflow),
            status: Some(JobStatus::InProgress),
            limit: 9,
        };
        assert!(store.jobs(other, &filter).await.unwrap().is_empty());
        assert!(store.job_files(other, job, FilePage::ALL).await.unwrap().is_none());
        assert!(store.output(other, job, file, None).await.unwrap().is_none());
        assert!(store.output(other, job, file, Some(node)).await.unwrap().is_none());
        assert!(store.events(other, job, 0).await.unwrap().is_empty());
        assert!(store.keys(Some(other)).await.unwrap().is_empty());
    }
    assert!(
        store
            .output(w.workspace, job, file, Some(node))
            .await
            .unwrap()
            .is_some()
    );
}

pub(crate) async fn another_workspace_changes_nothing(w: World) {
    let (running, ended) = (w.create(1).await, w.create(1).await);
    let claims = w.claim(2).await;
    w.finish(claims[1].lease, failed("x")).await;
    let sibling = w.another_workspace("sibling").await;
    let (_, stranger) = w.another_account("stranger").await;
    for other in [sibling, stranger] {
        assert_eq!(w.store.stop_job(other, running, NOW).await.unwrap(), None);
        assert_eq!(w.store.delete_job(other, ended).await.unwrap(), DeleteOutcome::NotFound);
    }
    assert_eq!(
        w.statuses(&[running, ended]).await,
        [JobStatus::InProgress, JobStatus::Failed]
    );
    assert!(w.store.garbage(10).await.unwrap().is_empty());
}
