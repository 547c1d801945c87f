//! Records of the store.

use docmill_model::chain::NodeChain;
use docmill_model::connector::SourceObject;
use docmill_model::ids::{AccountId, ConnectorId, EventId, FileId, JobId, KeyId, NodeId, WorkflowId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus, JobType, ListingState, TaskState};
use docmill_model::time::Micros;
use docmill_model::{Code, PageRoute, Warning};
use serde_json::Value;

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Id.
    pub id: AccountId,
    /// Unique name.
    pub name: String,
    /// When it was created.
    pub created_at: Micros,
}

/// A workspace.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Id.
    pub id: WorkspaceId,
    /// Its account.
    pub account: AccountId,
    /// Unique name.
    pub name: String,
    /// When it was created.
    pub created_at: Micros,
}

/// A key to record.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The workspace it opens.
    pub workspace: WorkspaceId,
    /// Free name.
    pub name: String,
    /// First characters of the key, to tell keys apart in lists.
    pub prefix: String,
    /// SHA-256 of the whole key, hexadecimal.
    pub secret_hash: String,
}

/// A recorded key.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Id.
    pub id: KeyId,
    /// Name of the workspace it opens.
    pub workspace_name: String,
    /// Free name.
    pub name: String,
    /// First characters of the key.
    pub prefix: String,
    /// When it was created.
    pub created_at: Micros,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Micros>,
    /// When it was revoked.
    pub revoked_at: Option<Micros>,
}

/// Who a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The account limits are counted against.
    pub account: AccountId,
    /// The workspace whose objects it may touch.
    pub workspace: WorkspaceId,
    /// The key used.
    pub key: KeyId,
}

/// A job to create.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Id.
    pub id: JobId,
    /// Its account.
    pub account: AccountId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its workflow.
    pub workflow: WorkflowId,
    /// The workflow's name.
    pub workflow_name: String,
    /// What started it.
    pub job_type: JobType,
    /// What to do with each file.
    pub chain: NodeChain,
    /// The job whose failed files it runs again.
    pub retry_of: Option<JobId>,
    /// Its files, in the order of upload.
    pub files: Vec<NewFile>,
    /// Set for a run of a stored workflow.
    pub run: Option<NewRun>,
}

/// What a run of a stored workflow has beyond other jobs.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// Sources to list. Empty: only the files the job is created with.
    pub sources: Vec<ConnectorId>,
    /// Where outputs go. Empty: they are kept for download.
    pub destinations: Vec<ConnectorId>,
    /// Whether files that have not changed since they were last processed are processed again.
    pub reprocess_all: bool,
    /// Whether files that are gone from their source are removed from the destinations.
    pub delete_removed: bool,
}

/// A file of a job to create.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// Id.
    pub id: FileId,
    /// Name, for display only.
    pub name: String,
    /// Declared MIME type.
    pub content_type: Option<String>,
    /// Bytes, 0 where a source does not tell.
    pub size: u64,
    /// Where its bytes are.
    pub input: FileInput,
    /// The file of the job it retries, whose checkpoint it goes on from.
    pub resumes: Option<FileId>,
}

/// Where a file's bytes are.
#[derive(Clone, Debug, PartialEq)]
pub enum FileInput {
    /// In a blob of this key.
    Blob(String),
    /// At a source.
    Source {
        /// The source.
        source: ConnectorId,
        /// The object there.
        object: SourceObject,
        /// What to do with it.
        action: FileAction,
    },
}

/// What is done with a file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// It is fetched, run through the chain, and its output put to the destinations.
    Process,
    /// It is gone from its source, and is removed from the destinations.
    Delete,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Id.
    pub id: JobId,
    /// Its workflow.
    pub workflow: WorkflowId,
    /// The workflow's name.
    pub workflow_name: String,
    /// What started it.
    pub job_type: JobType,
    /// Status.
    pub status: JobStatus,
    /// What is done with each file.
    pub chain: NodeChain,
    /// Why it ended as it did, for people.
    pub message: Option<String>,
    /// When it was accepted.
    pub created_at: Micros,
    /// When it started.
    pub started_at: Option<Micros>,
    /// When it ended.
    pub ended_at: Option<Micros>,
    /// Number of files.
    pub files_total: u64,
    /// Files processed.
    pub files_succeeded: u64,
    /// Files that failed.
    pub files_failed: u64,
    /// Ids of its files in the order of upload.
    pub file_ids: Vec<FileId>,
    /// Outputs there are, by node then file: `(node, file)`.
    pub outputs: Vec<(NodeId, FileId)>,
    /// Whether its files come from a source. Then `file_ids` and `outputs` are empty: there may be a
    /// million, and [`crate::Store::job_files`] gives them page by page.
    pub from_sources: bool,
    /// How far the listing of its sources is; none when it has none.
    pub listing: Option<ListingState>,
    /// Where outputs go; empty: they are kept for download.
    pub destinations: Vec<ConnectorId>,
    /// Files that had not changed since the workflow last processed them and were left alone.
    pub files_unchanged: u64,
}

/// A file of a job.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// Id.
    pub id: FileId,
    /// Name as uploaded, cleaned for display.
    pub name: String,
    /// Declared MIME type.
    pub content_type: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Where its bytes are.
    pub input: FileInput,
    /// Where it stands.
    pub state: TaskState,
    /// Times it was claimed.
    pub attempt: u32,
    /// Why it failed.
    pub error: Option<(Code, String)>,
    /// What was not done.
    pub warnings: Vec<Warning>,
    /// Elements of the last node's output.
    pub elements: Option<u64>,
    /// Pages.
    pub pages: Option<u64>,
    /// When it was first claimed.
    pub started_at: Option<Micros>,
    /// When it ended.
    pub ended_at: Option<Micros>,
    /// Nodes whose output is stored.
    pub nodes_done: u64,
}

/// A stored output.
#[derive(Clone, Debug)]
pub struct Output {
    /// Key of its blob.
    pub blob_key: String,
    /// Bytes.
    pub size: u64,
    /// Name of the input file.
    pub file_name: String,
}

/// The right to write about one claimed file. Only [`crate::Store::claim`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub(crate) file: FileId,
    pub(crate) token: i64,
}

impl Lease {
    /// The file.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The fencing token: larger for each later claim of the same file.
    pub fn token(&self) -> i64 {
        self.token
    }
}

/// A file to work on.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The right to it.
    pub lease: Lease,
    /// Its job.
    pub job: JobId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its job's workflow.
    pub workflow: WorkflowId,
    /// What to do with it.
    pub chain: NodeChain,
    /// Its name.
    pub name: String,
    /// Declared MIME type.
    pub content_type: Option<String>,
    /// Where its bytes are.
    pub input: FileInput,
    /// Where its output goes.
    pub destinations: Vec<ConnectorId>,
    /// Those of the destinations where a file of a source may have its plain name. At all others another
    /// workflow or source was first, and a name must hold a part of the document's id.
    pub plain_at: Vec<ConnectorId>,
    /// SHA-256 of the content the workflow processed last under this locator, hexadecimal; `None` when
    /// there is none or the run processes everything again. The same content need not be processed.
    pub known_hash: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Times it was claimed, with this one.
    pub attempt: u32,
}

/// How a claimed file ended.
#[derive(Clone, Debug)]
pub enum FileOutcome {
    /// Every node's output is durable.
    Succeeded {
        /// `(node, position of the node, blob key, bytes)`.
        outputs: Vec<(NodeId, u32, String, u64)>,
        /// What was not done.
        warnings: Vec<Warning>,
        /// Elements of the last output.
        elements: u64,
        /// Pages.
        pages: u64,
        /// How each page was read.
        routes: Vec<PageRoute>,
        /// SHA-256 of the file's content, hexadecimal, for a file from a source: what the workflow's next
        /// run compares with.
        content_hash: Option<String>,
    },
    /// It failed for good.
    Failed {
        /// Stable code.
        code: Code,
        /// Reason, for people.
        message: String,
    },
    /// It is to be tried again, not before this instant.
    Retry {
        /// Earliest instant.
        not_before: Micros,
    },
}

/// What became of a request to delete a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// It is gone.
    Deleted,
    /// It has not ended.
    NotEnded,
    /// There is none.
    NotFound,
}

/// A recorded event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Id.
    pub id: EventId,
    /// Position among the job's events, from 1.
    pub sequence: i64,
    /// What happened.
    pub event_type: EventType,
    /// The job as it was then.
    pub payload: Value,
    /// When.
    pub created_at: Micros,
}

/// Counts for monitoring.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Jobs waiting for a slot.
    pub jobs_scheduled: u64,
    /// Jobs running.
    pub jobs_in_progress: u64,
    /// Files ready to be claimed.
    pub files_ready: u64,
    /// Files being processed.
    pub files_running: u64,
    /// Age of the oldest ready file, in microseconds.
    pub oldest_ready_age: Micros,
    /// Deliveries waiting for their first or next attempt, or under way.
    pub deliveries_pending: u64,
}

/// Which files of a job to read.
#[derive(Clone, Copy, Debug)]
pub struct FilePage {
    /// Only those that failed.
    pub failed_only: bool,
    /// Files to leave out at the start.
    pub offset: u64,
    /// At most this many.
    pub limit: u32,
}

impl FilePage {
    /// All files: right only for jobs whose number of files is bounded.
    pub const ALL: Self = Self {
        failed_only: false,
        offset: 0,
        limit: u32::MAX,
    };
}

/// Filters of [`crate::Store::jobs`].
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only jobs of this workflow.
    pub workflow: Option<WorkflowId>,
    /// Only jobs in this status.
    pub status: Option<JobStatus>,
    /// At most this many; 0 means no bound.
    pub limit: u32,
}
