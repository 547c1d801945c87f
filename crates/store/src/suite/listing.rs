//! Reading jobs, files and outputs.

use docmill_model::ids::{FileId, JobId, NodeId, WorkflowId};
use docmill_model::job::JobStatus::{Completed, InProgress, Scheduled};
use docmill_model::job::JobType;

use super::World;
use super::world::{NOW, output_keys, retry_of, succeeded};
use crate::{FilePage, JobFilter};

impl World {
    async fn list(&self, filter: JobFilter) -> Vec<JobId> {
        let jobs = self.store.jobs(self.workspace, &filter).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect()
    }
}

pub(crate) async fn jobs_newest_first(w: World) {
    assert!(w.list(JobFilter::default()).await.is_empty());
    let mut jobs = Vec::new();
    for _ in 0..7 {
        // Ids may be made in another order than jobs arrive in.
        let job = w.new_job(1);
        jobs.insert(0, job);
    }
    for job in &jobs {
        w.add(job.clone()).await;
    }
    let expected: Vec<_> = jobs.iter().rev().map(|job| job.id).collect();
    assert_eq!(w.list(JobFilter::default()).await, expected);
}

pub(crate) async fn filters_and_limit(w: World) {
    let w = w.with_limit(1).await;
    let of_interest = WorkflowId::new();
    let mut jobs = Vec::new();
    for n in 0..6 {
        let mut job = w.new_job(1);
        if n % 2 == 0 {
            job.workflow = of_interest;
        }
        jobs.push(w.add(job).await);
    }
    for _ in 0..2 {
        let claim = w.claim_one().await;
        w.finish(claim.lease, succeeded(&claim)).await;
    }
    let workflow = Some(of_interest);
    let list = async |workflow, status, limit| {
        let filter = JobFilter {
            workflow,
            status,
            limit,
        };
        let found = w.list(filter).await;
        let place = |id| jobs.iter().position(|job| job == id).unwrap();
        found.iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 0).await, [5, 4, 3, 2, 1, 0]);
    assert_eq!(list(None, None, 2).await, [5, 4]);
    assert_eq!(list(workflow, None, 0).await, [4, 2, 0]);
    assert_eq!(list(workflow, None, 1).await, [4]);
    assert_eq!(list(Some(WorkflowId::new()), None, 0).await, [0; 0]);
    assert_eq!(list(None, Some(Completed), 0).await, [1, 0]);
    assert_eq!(list(None, Some(InProgress), 9).await, [2]);
    assert_eq!(list(None, Some(Scheduled), 2).await, [5, 4]);
    assert_eq!(list(workflow, Some(Completed), 0).await, [0]);
    assert_eq!(list(workflow, Some(Scheduled), 5).await, [4]);
}

pub(crate) async fn jobs_carry_files_and_outputs(w: World) {
    let (a, b) = (w.new_job(3), w.new_job(2));
    w.add(a.clone()).await;
    w.add(b.clone()).await;
    let claims = w.claim(5).await;
    // Outputs are listed by node, then file, whatever ended first.
    for claim in claims.iter().rev() {
        w.finish(claim.lease, succeeded(claim)).await;
    }
    let listed = w.jobs().await;
    for (job, listed) in [(&b, &listed[0]), (&a, &listed[1])] {
        let files: Vec<_> = job.files.iter().map(|file| file.id).collect();
        let nodes = job.chain.nodes().iter();
        let outputs: Vec<_> = nodes
            .flat_map(|node| files.iter().map(|file| (node.id, *file)))
            .collect();
        assert_eq!((&listed.file_ids, &listed.outputs), (&files, &outputs));
        let found = w.job(job.id).await;
        assert_eq!(format!("{found:?}"), format!("{listed:?}"), "one by one as in the list");
    }
    let only = JobFilter {
        limit: 1,
        ..JobFilter::default()
    };
    let only = w.store.jobs(w.workspace, &only).await.unwrap();
    assert_eq!((only.len(), only[0].file_ids.len(), only[0].outputs.len()), (1, 2, 4));
}

pub(crate) async fn files_in_order_of_upload(w: World) {
    let mut job = w.new_job(10);
    job.files.reverse();
    w.add(job.clone()).await;
    let files = w.files(job.id).await;
    for (file, sent) in files.iter().zip(&job.files) {
        assert_eq!((file.id, &file.name, file.size), (sent.id, &sent.name, sent.size));
        assert_eq!((&file.input, &file.content_type), (&sent.input, &sent.content_type));
    }
    assert_eq!(files.len(), 10);
    let empty = w.create(0).await;
    assert!(w.files(empty).await.is_empty());
    assert!(
        w.store
            .job_files(w.workspace, JobId::new(), FilePage::ALL)
            .await
            .unwrap()
            .is_none()
    );
}

pub(crate) async fn the_default_output_is_the_last_nodes(w: World) {
    let (job, other) = (w.create(1).await, w.create(1).await);
    let claim = w.claim_one().await;
    let file = claim.lease.file();
    let output = async |job, file, node| w.store.output(w.workspace, job, file, node).await.unwrap();
    assert!(output(job, file, None).await.is_none(), "not before the file ended");
    w.finish(claim.lease, succeeded(&claim)).await;
    for (node, index, key, size) in output_keys(&claim) {
        let found = output(job, file, Some(node)).await.unwrap();
        assert_eq!(
            (&found.blob_key, found.size, found.file_name.as_str()),
            (&key, size, "0.txt")
        );
        if index == 1 {
            assert_eq!(output(job, file, None).await.unwrap().blob_key, key);
        }
    }
    assert!(output(job, file, Some(NodeId::new())).await.is_none());
    assert!(output(job, FileId::new(), None).await.is_none());
    assert!(output(other, file, None).await.is_none(), "a file of another job");
}

pub(crate) async fn a_job_reads_back(w: World) {
    let mut job = w.new_job(1);
    job.job_type = JobType::Template;
    job.workflow_name = "Übung \"1\"; DROP TABLE jobs".into();
    job.files[0].name = "файл 🦀'.pdf".into();
    job.files[0].content_type = None;
    job.files[0].size = 50 << 20;
    w.add(job.clone()).await;
    let read = w.job(job.id).await;
    assert_eq!(
        (read.id, read.workflow, read.job_type),
        (job.id, job.workflow, job.job_type)
    );
    assert_eq!((&read.workflow_name, &read.chain), (&job.workflow_name, &job.chain));
    assert_eq!(
        (read.created_at, read.started_at, read.ended_at),
        (NOW, Some(NOW), None)
    );
    assert_eq!((read.files_total, read.message), (1, None));
    let file = w.files(job.id).await.remove(0);
    assert_eq!(
        (&file.name, file.content_type, file.size),
        (&job.files[0].name, None, 50 << 20)
    );
    let retry = retry_of(&job);
    w.add(retry.clone()).await;
    assert_eq!(w.files(retry.id).await[0].input, file.input);
}
