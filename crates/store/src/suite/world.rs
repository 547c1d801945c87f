//! A store with an account and a workspace in it, and short words for what tests do all the time.

use std::sync::Arc;

use async_trait::async_trait;
use docmill_model::chain::NodeChain;
use docmill_model::ids::{AccountId, FileId, JobId, NodeId, WorkflowId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus, JobType, TaskState};
use docmill_model::time::{Micros, SECOND};
use docmill_model::{Code, chain};
use serde_json::json;

use crate::blob::input_key;
use crate::sqlite::Slots;
use crate::{Claim, FileInput, FileOutcome, FilePage, Job, JobFile, JobFilter, Lease, NewFile, NewJob, Result, Store};

/// When tests begin.
pub(crate) const NOW: Micros = 1_700_000_000 * SECOND;

/// Until when they lease.
pub(crate) const LEASE: Micros = NOW + 60 * SECOND;

/// Running jobs an account may have, unless a test says otherwise.
pub(crate) const SLOTS: usize = 5;

/// As slots.
pub(crate) const BOUNDS: Slots = Slots {
    local_jobs: SLOTS as u32,
    workflow_jobs: SLOTS as u32,
};

/// Where an implementation keeps one store.
#[async_trait]
pub(crate) trait Backend: Send + Sync + 'static {
    /// Opens the store, which is empty the first time; one opened before is closed first.
    async fn open(&self, slots: Slots) -> Arc<dyn Store>;

    /// Opens the store as it would be if the process had been killed just now.
    async fn open_after_crash(&self, slots: Slots) -> Arc<dyn Store>;
}

pub(crate) struct World {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) account: AccountId,
    pub(crate) workspace: WorkspaceId,
}

impl World {
    pub(crate) async fn new(backend: impl Backend) -> Self {
        let store = backend.open(BOUNDS).await;
        let account = store.create_account("account", NOW).await.unwrap();
        let workspace = store.create_workspace(account, "workspace", NOW).await.unwrap();
        Self {
            backend: Box::new(backend),
            store,
            account,
            workspace,
        }
    }

    /// The same store with another limit of running jobs.
    pub(crate) async fn with_limit(mut self, local_jobs: u32) -> Self {
        self.store = self.backend.open(Slots { local_jobs, ..BOUNDS }).await;
        self
    }

    /// Another workspace of the account.
    pub(crate) async fn another_workspace(&self, name: &str) -> WorkspaceId {
        self.store.create_workspace(self.account, name, NOW).await.unwrap()
    }

    /// Another account with a workspace, both of this name.
    pub(crate) async fn another_account(&self, name: &str) -> (AccountId, WorkspaceId) {
        let account = self.store.create_account(name, NOW).await.unwrap();
        let workspace = self.store.create_workspace(account, name, NOW).await.unwrap();
        (account, workspace)
    }

    /// A job to create, with this many files.
    pub(crate) fn new_job(&self, files: usize) -> NewJob {
        new_job(self.account, self.workspace, files)
    }

    pub(crate) async fn create(&self, files: usize) -> JobId {
        self.add(self.new_job(files)).await
    }

    pub(crate) async fn create_in(&self, workspace: WorkspaceId, files: usize) -> JobId {
        self.add(new_job(self.account, workspace, files)).await
    }

    pub(crate) async fn add(&self, job: NewJob) -> JobId {
        let id = job.id;
        self.store.create_job(job, NOW).await.unwrap();
        id
    }

    pub(crate) async fn job(&self, job: JobId) -> Job {
        self.store.job(self.workspace, job).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, job: JobId) -> JobStatus {
        self.job(job).await.status
    }

    pub(crate) async fn statuses(&self, jobs: &[JobId]) -> Vec<JobStatus> {
        let mut statuses = Vec::new();
        for job in jobs {
            statuses.push(self.status(*job).await);
        }
        statuses
    }

    pub(crate) async fn jobs(&self) -> Vec<Job> {
        self.store.jobs(self.workspace, &JobFilter::default()).await.unwrap()
    }

    pub(crate) async fn files(&self, job: JobId) -> Vec<JobFile> {
        self.store
            .job_files(self.workspace, job, FilePage::ALL)
            .await
            .unwrap()
            .unwrap()
    }

    pub(crate) async fn states(&self, job: JobId) -> Vec<TaskState> {
        self.files(job).await.iter().map(|file| file.state).collect()
    }

    pub(crate) async fn events(&self, job: JobId) -> Vec<EventType> {
        let events = self.store.events(self.workspace, job, 0).await.unwrap();
        for (expected, event) in (1..).zip(&events) {
            assert_eq!(event.sequence, expected, "sequences have no gap");
        }
        events.into_iter().map(|event| event.event_type).collect()
    }

    pub(crate) async fn claim(&self, max: usize) -> Vec<Claim> {
        self.store.claim(max, LEASE, NOW).await.unwrap()
    }

    /// Claims the only file that comes first.
    pub(crate) async fn claim_one(&self) -> Claim {
        let mut claims = self.claim(1).await;
        assert_eq!(claims.len(), 1);
        claims.remove(0)
    }

    pub(crate) async fn finish(&self, lease: Lease, outcome: FileOutcome) {
        self.store.finish(lease, outcome, NOW + SECOND).await.unwrap();
    }

    /// Claims and finishes everything that is ready, and what becomes ready by that.
    pub(crate) async fn run_all(&self) {
        loop {
            let claims = self.claim(100).await;
            if claims.is_empty() {
                return;
            }
            for claim in claims {
                self.finish(claim.lease, succeeded(&claim)).await;
            }
        }
    }
}

pub(crate) fn new_job(account: AccountId, workspace: WorkspaceId, files: usize) -> NewJob {
    NewJob {
        id: JobId::new(),
        account,
        workspace,
        workflow: WorkflowId::new(),
        workflow_name: "workflow".into(),
        job_type: JobType::Ephemeral,
        chain: two_nodes(),
        retry_of: None,
        run: None,
        files: (0..files).map(|n| new_file(workspace, &format!("{n}.txt"))).collect(),
    }
}

pub(crate) fn new_file(workspace: WorkspaceId, name: &str) -> NewFile {
    let id = FileId::new();
    NewFile {
        id,
        name: name.into(),
        content_type: Some("text/plain".into()),
        size: 7,
        input: FileInput::Blob(input_key(workspace, id)),
        resumes: None,
    }
}

/// The blob an uploaded file is in.
pub(crate) fn blob_of(input: &FileInput) -> String {
    match input {
        FileInput::Blob(key) => key.clone(),
        FileInput::Source { .. } => panic!("not uploaded"),
    }
}

/// Runs files of a job again.
pub(crate) fn retry_of(job: &NewJob) -> NewJob {
    let mut retry = new_job(job.account, job.workspace, 0);
    retry.retry_of = Some(job.id);
    retry.files = job.files.clone();
    for file in &mut retry.files {
        file.id = FileId::new();
    }
    retry
}

/// Partition, then chunk.
fn two_nodes() -> NodeChain {
    let nodes = json!([
        {"name": "p", "type": "partition", "subtype": "unstructured_api", "settings": {}},
        {"name": "c", "type": "chunk", "subtype": "chunk_by_title", "settings": {}},
    ]);
    chain::parse(&nodes, &[]).unwrap().0
}

/// The keys of a claim's outputs, as [`succeeded`] stores them.
pub(crate) fn output_keys(claim: &Claim) -> Vec<(NodeId, u32, String, u64)> {
    let nodes = claim.chain.nodes().iter().zip(0u32..);
    nodes
        .map(|(node, index)| {
            let key = format!("out/{}.{}.{index}", claim.lease.file(), claim.lease.token());
            (node.id, index, key, u64::from(index) + 10)
        })
        .collect()
}

pub(crate) fn succeeded(claim: &Claim) -> FileOutcome {
    FileOutcome::Succeeded {
        outputs: output_keys(claim),
        warnings: Vec::new(),
        elements: 3,
        pages: 2,
        routes: Vec::new(),
        content_hash: None,
    }
}

pub(crate) fn failed(message: &str) -> FileOutcome {
    FileOutcome::Failed {
        code: Code::AttemptsExhausted,
        message: message.into(),
    }
}

pub(crate) fn retried(not_before: Micros) -> FileOutcome {
    FileOutcome::Retry { not_before }
}

/// Runs `call` `n` times at once; what came of each.
pub(crate) async fn at_once<T, F>(n: usize, call: impl Fn(usize) -> F) -> Vec<Result<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..n {
        tasks.spawn(call(i));
    }
    tasks.join_all().await
}
