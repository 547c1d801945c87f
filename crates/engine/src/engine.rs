//! What can be asked of docmill: submit, stop, retry and delete jobs; start and stop the workers.

use std::sync::Arc;
use std::time::Duration;

use docmill_connectors::Environment;
use docmill_model::chain::{NodeChain, NodeSpec, Problem};
use docmill_model::channel::ChannelKind;
use docmill_model::ids::{FileId, JobId, WorkflowId, WorkspaceId};
use docmill_model::job::{JobStatus, JobType, ListingState};
use docmill_model::limits::ParseLimits;
use docmill_model::time::{Micros, SECOND};
use docmill_store::blob::BlobStore;
use docmill_store::{DeleteOutcome, FileInput, Job, NewFile, NewJob, Principal, Result, Store};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chain::{Models, NodeKeys};
use crate::clock::now;
use crate::connections::Connections;
use crate::connectors::{CHECK_ABANDONED, CHECKS_AT_ONCE};
use crate::listing::Listings;
use crate::notify::{NotificationConfig, Notifications};
use crate::runner::Runner;
use crate::running::RunningFiles;
use crate::vault::Vault;

/// How the engine runs.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// How long a claimed file may go without a sign of life of its server.
    pub lease: Duration,
    /// Times a file may be claimed before it fails.
    pub max_attempts: u32,
    /// How long files under way may take to end when the server stops.
    pub drain: Duration,
    /// How long jobs that ended are kept; `None` for ever.
    pub retention: Option<Duration>,
    /// Least time between two jobs of one account.
    pub create_gap: Duration,
    /// Most bytes of a file from a source.
    pub max_file_bytes: u64,
    /// Most files a run may list; `None` for no bound.
    pub max_files_per_run: Option<u64>,
    /// Bounds of the parsers.
    pub parse_limits: ParseLimits,
    /// The models that nodes can call.
    pub models: Models,
}

/// A job to run.
#[derive(Clone, Debug)]
pub struct Submission {
    /// What to do with each file.
    pub chain: NodeChain,
    /// What started it.
    pub job_type: JobType,
    /// Its files, whose blobs are durable.
    pub files: Vec<SubmittedFile>,
}

/// A file whose blob is durable.
#[derive(Clone, Debug)]
pub struct SubmittedFile {
    /// Id.
    pub id: FileId,
    /// Name, for display.
    pub name: String,
    /// Declared MIME type.
    pub content_type: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Key of the blob.
    pub blob_key: String,
}

/// The engine. Clones share one state.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: BlobStore,
    pub(crate) runner: Runner,
    pub(crate) running: RunningFiles,
    pub(crate) listings: Listings,
    pub(crate) connections: Connections,
    pub(crate) notifications: Notifications,
    pub(crate) checks: Semaphore,
    pub(crate) config: EngineConfig,
    /// There may be a file to claim.
    pub(crate) wake: Notify,
    /// There may be a run to list.
    pub(crate) listing_wake: Notify,
    /// A workflow may be due earlier than was known.
    pub(crate) clock_wake: Notify,
    /// Claim nothing more.
    pub(crate) stopping: CancellationToken,
    /// End at once.
    pub(crate) stopped: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine over a store, blobs and a pool of child processes, with what connectors and webhooks may use
    /// of the machine and the vault of their secrets. Call [`Engine::start`] to have it work.
    pub fn new(
        store: Arc<dyn Store>,
        blobs: BlobStore,
        runner: Runner,
        environment: Environment,
        vault: Vault,
        config: EngineConfig,
        notifications: NotificationConfig,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                blobs,
                runner,
                running: RunningFiles::default(),
                listings: Listings::default(),
                notifications: Notifications::new(notifications, environment.egress.clone()),
                connections: Connections::new(environment, vault),
                checks: Semaphore::new(CHECKS_AT_ONCE),
                config,
                wake: Notify::new(),
                listing_wake: Notify::new(),
                clock_wake: Notify::new(),
                stopping: CancellationToken::new(),
                stopped: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
        }
    }

    /// Takes up what an earlier process left, then starts claiming files.
    pub async fn start(&self) -> Result<()> {
        let shared = &self.shared;
        let recovered = shared.store.recover(true, shared.config.max_attempts, now()).await?;
        if recovered > 0 {
            tracing::info!(files = recovered, "took up files an earlier process was working on");
        }
        let checks = shared.store.abandon_checks(CHECK_ABANDONED, now()).await?;
        if checks > 0 {
            tracing::info!(checks, "failed connection checks an earlier process was working on");
        }
        let deliveries = shared.store.recover_deliveries(true, now()).await?;
        if deliveries > 0 {
            tracing::info!(deliveries, "took up deliveries an earlier process was working on");
        }
        shared.store.settle(now()).await?;
        for lane in ChannelKind::ALL {
            shared.tasks.spawn(crate::notify::lane_loop(self.clone(), *lane));
        }
        tokio::spawn(crate::notify::delivery_lease_loop(self.clone()));
        shared.tasks.spawn(crate::worker::claim_loop(self.clone()));
        shared.tasks.spawn(crate::listing::listing_loop(self.clone()));
        shared.tasks.spawn(crate::firing::firing_loop(self.clone()));
        // Not among the tasks waited for at the end: it goes on until they have ended.
        tokio::spawn(crate::leases::lease_loop(self.clone()));
        shared.tasks.spawn(crate::upkeep::upkeep_loop(self.clone()));
        Ok(())
    }

    /// Stops: claims nothing more, gives files under way the drain time, then hands them back.
    pub async fn stop(&self) {
        let shared = &self.shared;
        shared.stopping.cancel();
        shared.tasks.close();
        if tokio::time::timeout(shared.config.drain, shared.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                files = shared.running.len(),
                "stopping files that did not end in time; they will be run again"
            );
            self.stop_now().await;
        }
        shared.stopped.cancel();
    }

    /// Stops without waiting for files under way; they are handed back.
    pub async fn stop_now(&self) {
        self.shared.stopping.cancel();
        self.shared.stopped.cancel();
        self.shared.running.cancel_all();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// The store, for reading.
    pub fn store(&self) -> &dyn Store {
        self.shared.store.as_ref()
    }

    /// The blobs.
    pub fn blobs(&self) -> &BlobStore {
        &self.shared.blobs
    }

    /// The files being processed by this process.
    pub fn running(&self) -> &RunningFiles {
        &self.shared.running
    }

    /// Files processed at once.
    pub fn slots(&self) -> usize {
        self.shared.runner.slots()
    }

    /// The models that nodes can call.
    pub fn models(&self) -> &Models {
        &self.shared.config.models
    }

    /// What keys of a workspace's nodes are encrypted with.
    pub(crate) fn node_keys(&self, workspace: WorkspaceId) -> NodeKeys {
        NodeKeys {
            vault: self.shared.connections.vault.clone(),
            workspace,
        }
    }

    /// Reads a chain of nodes that a client sent, found at `loc` of its request: the chain to run, and the nodes
    /// as they are stored, keys encrypted in both. A key that comes as a mask is that of the node of the same id
    /// in `stored`.
    ///
    /// # Errors
    /// All that is wrong with it, each with its place: what can't run, and what lacks credentials.
    pub fn read_chain(
        &self,
        workspace: WorkspaceId,
        nodes: &serde_json::Value,
        stored: &[NodeSpec],
        loc: &[serde_json::Value],
    ) -> std::result::Result<(NodeChain, Vec<NodeSpec>), Vec<Problem>> {
        self.models().read_chain(&self.node_keys(workspace), nodes, stored, loc)
    }

    /// Lets the account create a job, or tells how long it must wait.
    pub async fn pass_create_gate(&self, principal: &Principal) -> Result<std::result::Result<(), Duration>> {
        let gap = micros(self.shared.config.create_gap);
        let passed = self
            .shared
            .store
            .pass_create_gate(principal.account, gap, now())
            .await?;
        Ok(passed.map_err(|wait| Duration::from_micros(wait.max(0) as u64)))
    }

    /// Accepts a job: from here on it survives a crash. The job as it was at that moment.
    pub async fn submit(&self, principal: &Principal, submission: Submission) -> Result<Job> {
        self.create(principal, submission, None).await
    }

    async fn create(&self, principal: &Principal, submission: Submission, retry_of: Option<JobId>) -> Result<Job> {
        let id = JobId::new();
        let at = now();
        let job = NewJob {
            id,
            account: principal.account,
            workspace: principal.workspace,
            workflow: WorkflowId::new(),
            workflow_name: format!("job-{}", &id.to_string()[..8]),
            job_type: submission.job_type,
            chain: submission.chain,
            retry_of,
            files: submission.files.into_iter().map(new_file).collect(),
            run: None,
        };
        let accepted = as_accepted(&job, at);
        self.accept(job, at).await?;
        Ok(accepted)
    }

    /// Records a job and has it worked on.
    pub(crate) async fn accept(&self, job: NewJob, at: Micros) -> Result<()> {
        let listed = job.run.as_ref().is_some_and(|run| !run.sources.is_empty());
        let empty = job.files.is_empty() && !listed;
        self.shared.store.create_job(job, at).await?;
        if empty {
            // No file's end will end it, so it is settled here; should that fail, the lease loop does it later.
            let engine = self.clone();
            self.shared.tasks.spawn(async move {
                match engine.shared.store.settle(now()).await {
                    Ok(_) => engine.shared.notifications.wake(),
                    Err(error) => tracing::warn!(%error, "cannot end jobs without files now"),
                }
            });
        }
        self.shared.wake.notify_one();
        self.shared.listing_wake.notify_one();
        self.shared.notifications.wake();
        Ok(())
    }

    /// Ends at once what this process does for a job that was stopped.
    pub(crate) fn end_work_on(&self, job: JobId) {
        self.shared.running.cancel_job(job);
        self.shared.listings.cancel(job);
        self.shared.wake.notify_one();
        // Its slot may be another run's now.
        self.shared.listing_wake.notify_one();
        self.shared.notifications.wake();
    }

    /// Stops a job: its status before, or `None` when there is no such job. The child processes of its
    /// files end at once.
    pub async fn stop_job(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<JobStatus>> {
        let before = self.shared.store.stop_job(workspace, job, now()).await?;
        if before.is_some() {
            self.end_work_on(job);
        }
        Ok(before)
    }

    /// Deletes an ended job with its files and outputs.
    pub async fn delete_job(&self, workspace: WorkspaceId, job: JobId) -> Result<DeleteOutcome> {
        let outcome = self.shared.store.delete_job(workspace, job).await?;
        if outcome == DeleteOutcome::Deleted {
            crate::upkeep::collect_garbage(self).await?;
        }
        Ok(outcome)
    }
}

/// The job at the moment of its acceptance.
pub(crate) fn as_accepted(job: &NewJob, at: Micros) -> Job {
    Job {
        id: job.id,
        workflow: job.workflow,
        workflow_name: job.workflow_name.clone(),
        job_type: job.job_type,
        status: JobStatus::Scheduled,
        chain: job.chain.clone(),
        message: None,
        created_at: at,
        started_at: None,
        ended_at: None,
        files_total: job.files.len() as u64,
        files_succeeded: 0,
        files_failed: 0,
        file_ids: job.files.iter().map(|file| file.id).collect(),
        outputs: Vec::new(),
        from_sources: job.run.as_ref().is_some_and(|run| !run.sources.is_empty()),
        listing: job
            .run
            .as_ref()
            .filter(|run| !run.sources.is_empty())
            .map(|_| ListingState::Open),
        destinations: job.run.as_ref().map(|run| run.destinations.clone()).unwrap_or_default(),
        files_unchanged: 0,
    }
}

pub(crate) fn new_file(file: SubmittedFile) -> NewFile {
    NewFile {
        id: file.id,
        name: file.name,
        content_type: file.content_type,
        size: file.size,
        input: FileInput::Blob(file.blob_key),
        resumes: None,
    }
}

pub(crate) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(i64::MAX / (2 * SECOND) * SECOND)
}
