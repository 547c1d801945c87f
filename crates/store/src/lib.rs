//! Rows and blobs: everything docmill remembers.
//!
//! [`Store`] is a trait by use case: one method is one transaction and keeps one invariant. Nothing
//! outside this crate opens a transaction or writes SQL. [`blob`] holds the files' bytes.

pub mod blob;
mod error;
pub mod sqlite;
#[cfg(test)]
mod suite;
mod types;

use async_trait::async_trait;
use docmill_model::ids::{AccountId, FileId, JobId, KeyId, NodeId, WorkflowId, WorkspaceId};
use docmill_model::job::JobStatus;
use docmill_model::time::Micros;

pub use error::{Result, StoreError};
pub use types::*;

/// Durable state. Every method that changes something returns only once the change survives a crash.
///
/// `now` is the caller's clock; methods never read one.
#[async_trait]
pub trait Store: Send + Sync {
    // ---- accounts, workspaces, keys ----

    /// Creates an account; [`StoreError::NameTaken`] when there is one of that name.
    async fn create_account(&self, name: &str, now: Micros) -> Result<AccountId>;

    /// All accounts, by name.
    async fn accounts(&self) -> Result<Vec<Account>>;

    /// Creates a workspace; [`StoreError::NameTaken`] when any account has one of that name.
    async fn create_workspace(&self, account: AccountId, name: &str, now: Micros) -> Result<WorkspaceId>;

    /// All workspaces, by name.
    async fn workspaces(&self) -> Result<Vec<Workspace>>;

    /// Records a key by its hash.
    async fn create_key(&self, key: NewKey, now: Micros) -> Result<KeyId>;

    /// Keys of one workspace, or of all; oldest first.
    async fn keys(&self, workspace: Option<WorkspaceId>) -> Result<Vec<ApiKey>>;

    /// Revokes the live keys whose prefix or id is `which`; how many there were.
    async fn revoke_keys(&self, which: &str, now: Micros) -> Result<u64>;

    /// Who a key with this hash stands for; `None` when it is unknown or revoked.
    async fn principal_by_hash(&self, secret_hash: &str) -> Result<Option<Principal>>;

    /// Who a key stands for; `None` when it is unknown or revoked.
    async fn principal_by_key(&self, key: KeyId) -> Result<Option<Principal>>;

    /// Notes that a key was used.
    async fn touch_key(&self, key: KeyId, now: Micros) -> Result<()>;

    // ---- jobs ----

    /// Lets an account create a job unless it did so less than `gap` ago; of two calls at once only
    /// one passes. The error side tells how long to wait.
    async fn pass_create_gate(
        &self,
        account: AccountId,
        gap: Micros,
        now: Micros,
    ) -> Result<std::result::Result<(), Micros>>;

    /// Records a job and its files (whose blobs must be durable), and starts it when its account has
    /// a free slot. It is never ended on return: a job without files that starts here is ended by
    /// [`Store::settle`], one that starts later ends as it starts.
    ///
    /// A retry refers to blobs of the job it retries; [`StoreError::OriginalGone`] when that job holds
    /// them no longer.
    async fn create_job(&self, job: NewJob, now: Micros) -> Result<()>;

    /// A job with its files' ids and outputs.
    async fn job(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Job>>;

    /// Jobs that match, newest first.
    async fn jobs(&self, workspace: WorkspaceId, filter: &JobFilter) -> Result<Vec<Job>>;

    /// The files of a job in the order of upload; `None` when there is no such job.
    async fn job_files(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Vec<JobFile>>>;

    /// Where the output of a file at a node is stored.
    async fn output(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        file: FileId,
        node: Option<NodeId>,
    ) -> Result<Option<Output>>;

    /// Stops a job that has not ended. `None` when there is no such job, else its status before.
    async fn stop_job(&self, workspace: WorkspaceId, job: JobId, now: Micros) -> Result<Option<JobStatus>>;

    /// Removes an ended job and hands its blobs to the garbage list.
    async fn delete_job(&self, workspace: WorkspaceId, job: JobId) -> Result<DeleteOutcome>;

    /// Events of a job after `sequence`, in order.
    async fn events(&self, workspace: WorkspaceId, job: JobId, after: i64) -> Result<Vec<Event>>;

    // ---- tasks ----

    /// Claims up to `max` files for workers: fair across workspaces, first come first served within
    /// one. Each is leased until `lease_until` under a new fencing token.
    async fn claim(&self, max: usize, lease_until: Micros, now: Micros) -> Result<Vec<Claim>>;

    /// Extends leases; returns those that are lost, whose work must be dropped.
    async fn renew(&self, leases: &[Lease], lease_until: Micros) -> Result<Vec<Lease>>;

    /// Ends a claimed file and, with its last file, the job; lets the account's next job start.
    /// [`StoreError::LeaseLost`] when somebody else has the file now, and then nothing changed.
    async fn finish(&self, lease: Lease, outcome: FileOutcome, now: Micros) -> Result<()>;

    /// Gives a claimed file back untried, as when the server stops.
    async fn release(&self, lease: Lease) -> Result<()>;

    /// Returns files whose worker is gone: those with an expired lease, or, with `all_running`, every
    /// running one (right only when no other process works on the store). A file claimed
    /// `max_attempts` times already fails instead. How many there were.
    async fn recover(&self, all_running: bool, max_attempts: u32, now: Micros) -> Result<u64>;

    /// Ends running jobs that have no file left to run, which are those created without files, and
    /// starts waiting jobs where a slot is free, as after the limit was raised. How many it touched.
    async fn settle(&self, now: Micros) -> Result<u64>;

    // ---- upkeep ----

    /// Deletes jobs ended before `before`, at most `max`; how many there were.
    async fn expire_jobs(&self, before: Micros, max: u32) -> Result<u64>;

    /// Keys of blobs to delete, at most `max`.
    async fn garbage(&self, max: u32) -> Result<Vec<String>>;

    /// Forgets garbage that has been deleted.
    async fn forget_garbage(&self, keys: &[String]) -> Result<()>;

    /// Which of these blob keys no row refers to.
    async fn unreferenced(&self, keys: &[String]) -> Result<Vec<String>>;

    /// Counts for monitoring.
    async fn stats(&self, now: Micros) -> Result<Stats>;

    /// Fails when the store can't be written.
    async fn check_writable(&self) -> Result<()>;
}

/// Filters of [`Store::jobs`].
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only jobs of this workflow.
    pub workflow: Option<WorkflowId>,
    /// Only jobs in this status.
    pub status: Option<JobStatus>,
    /// At most this many; 0 means no bound.
    pub limit: u32,
}
