//! Rows and blobs: everything docmill remembers.
//!
//! [`Store`] is a trait by use case: one method is one transaction and keeps one invariant. Nothing
//! outside this crate opens a transaction or writes SQL. [`blob`] holds the files' bytes.

pub mod blob;
mod channels;
mod deliveries;
mod error;
mod paid;
pub mod sqlite;
#[cfg(test)]
mod suite;
mod types;
mod workflows;

use async_trait::async_trait;
use docmill_model::PageRoute;
use docmill_model::channel::{ChannelKind, ChannelScope};
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{
    AccountId, CheckId, ConnectorId, DeliveryId, EventId, FileId, JobId, KeyId, NodeId, WorkflowId, WorkspaceId,
};
use docmill_model::job::JobStatus;
use docmill_model::time::Micros;

pub use channels::*;
pub use deliveries::*;
pub use error::{Result, StoreError};
pub use paid::*;
pub use types::*;
pub use workflows::*;

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
    /// a free slot of its kind: local-file jobs and workflow runs have slots of their own.
    ///
    /// A run of a workflow that is deleted or inactive is refused with [`StoreError::WorkflowGone`] or
    /// [`StoreError::WorkflowInactive`]; one with sources while another such run of the workflow has not
    /// ended, with [`StoreError::RunActive`].
    ///
    /// The job is never ended on return: a job without files that starts here is ended by
    /// [`Store::settle`], one that starts later ends as it starts.
    ///
    /// A retry refers to blobs or objects of the job it retries; [`StoreError::OriginalGone`] when that job holds
    /// them no longer.
    async fn create_job(&self, job: NewJob, now: Micros) -> Result<()>;

    /// A job with its files' ids and outputs.
    async fn job(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Job>>;

    /// Jobs that match, newest first.
    async fn jobs(&self, workspace: WorkspaceId, filter: &JobFilter) -> Result<Vec<Job>>;

    /// Files of a job in their order, leaving out `offset` and at most `limit`; with `failed_only`, those
    /// that failed. `None` when there is no such job.
    async fn job_files(&self, workspace: WorkspaceId, job: JobId, page: FilePage) -> Result<Option<Vec<JobFile>>>;

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

    /// Removes an ended job and hands its blobs to the garbage list. Its events stay in the inbox, without
    /// the names of its files, until they expire.
    async fn delete_job(&self, workspace: WorkspaceId, job: JobId) -> Result<DeleteOutcome>;

    /// Events of a job after `sequence`, in order.
    async fn events(&self, workspace: WorkspaceId, job: JobId, after: i64) -> Result<Vec<Event>>;

    // ---- connectors ----

    /// Records a connector; its slug. [`StoreError::KeyTaken`] when the slug asked for is taken by another
    /// connector of the same role in the workspace.
    async fn create_connector(&self, connector: NewConnector, now: Micros) -> Result<String>;

    /// A connector by id or slug.
    async fn connector(&self, workspace: WorkspaceId, role: ConnectorRole, which: &str) -> Result<Option<Connector>>;

    /// Connectors of a role, oldest first; only those of a type, if given.
    async fn connectors(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        kind: Option<&str>,
    ) -> Result<Vec<Connector>>;

    /// Replaces a connector's settings; `None` when there is no such connector.
    async fn update_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        connector: ConnectorId,
        config: serde_json::Value,
        now: Micros,
    ) -> Result<Option<Connector>>;

    /// Deletes a connector no live workflow uses.
    async fn delete_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        connector: ConnectorId,
    ) -> Result<ConnectorDeletion>;

    /// Records that a connection is being checked; earlier checks of the connector are forgotten.
    async fn create_check(&self, connector: ConnectorId, check: CheckId, now: Micros) -> Result<()>;

    /// Ends a check, with the reason if it failed.
    async fn finish_check(&self, check: CheckId, outcome: std::result::Result<(), String>, now: Micros) -> Result<()>;

    /// The latest check of a connector.
    async fn latest_check(&self, workspace: WorkspaceId, connector: ConnectorId) -> Result<Option<ConnectionCheck>>;

    /// Fails every check that has not ended with `reason`: those of a server that is gone.
    async fn abandon_checks(&self, reason: &str, now: Micros) -> Result<u64>;

    // ---- workflows ----

    /// Records a workflow. [`StoreError::KeyTaken`] as for connectors, [`StoreError::ConnectorGone`] when
    /// one of its connectors does not exist in the workspace in that role.
    async fn create_workflow(&self, workflow: NewWorkflow, now: Micros) -> Result<Workflow>;

    /// A live workflow by id or slug.
    async fn workflow(&self, workspace: WorkspaceId, which: &str) -> Result<Option<Workflow>>;

    /// Workflows that match.
    async fn workflows(&self, workspace: WorkspaceId, filter: &WorkflowFilter) -> Result<Vec<Workflow>>;

    /// Replaces a live workflow's definition if it is still as of `seen` (the `updated_at` it was read
    /// with): [`StoreError::Conflict`] otherwise. `None` when there is no such workflow.
    async fn update_workflow(
        &self,
        workspace: WorkspaceId,
        workflow: WorkflowId,
        definition: WorkflowDefinition,
        seen: Option<Micros>,
        now: Micros,
    ) -> Result<Option<Workflow>>;

    /// Deletes a workflow softly and stops its jobs that have not ended; those jobs, or `None` when there
    /// is no such live workflow.
    async fn delete_workflow(
        &self,
        workspace: WorkspaceId,
        workflow: WorkflowId,
        now: Micros,
    ) -> Result<Option<Vec<JobId>>>;

    /// Live, active workflows whose next firing is due at `now`, the most overdue first.
    async fn due_workflows(&self, now: Micros, max: u32) -> Result<Vec<DueWorkflow>>;

    /// When the next workflow is due; `None` when none has a schedule.
    async fn next_due(&self) -> Result<Option<Micros>>;

    /// Fires a due workflow: in one transaction records the firing (one row per workflow and instant, so
    /// that no restart fires twice), moves `next_fire_at` on, and creates the run unless the last one has
    /// not ended and the schedule says to skip.
    async fn fire(&self, run: ScheduledRun, now: Micros) -> Result<Firing>;

    // ---- listings: runs that are finding out their files ----

    /// Claims up to `max` started runs whose sources are not listed to the end, are due, and are not leased.
    async fn claim_listings(&self, max: usize, lease_until: Micros, now: Micros) -> Result<Vec<ListingClaim>>;

    /// Extends listing leases; returns those that are lost.
    async fn renew_listings(&self, leases: &[ListingLease], lease_until: Micros) -> Result<Vec<ListingLease>>;

    /// Adds listed objects to a run and notes how far it is; how many of its files now wait for a worker.
    ///
    /// An object the run has already is left alone. Without `reprocess_all`, one whose version the workflow
    /// processed before is only counted as unchanged. [`StoreError::LeaseLost`] when the run was stopped or
    /// is listed by somebody else.
    async fn add_listed(&self, lease: ListingLease, page: ListedPage, now: Micros) -> Result<u64>;

    /// How many of a run's files wait for a worker. [`StoreError::LeaseLost`] as for `add_listed`.
    async fn backlog(&self, lease: ListingLease) -> Result<u64>;

    /// Ends a listing. After a complete one, with `delete_removed`, files the workflow processed before and
    /// that were not listed now are added with [`FileAction::Delete`]. The run ends if no file is left.
    async fn finish_listing(&self, lease: ListingLease, outcome: ListingOutcome, now: Micros) -> Result<()>;

    /// Gives a listing back, as when the server stops.
    async fn release_listing(&self, lease: ListingLease) -> Result<()>;

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

    // ---- nodes that call models ----

    /// Records how far a claimed file is, in place of what was recorded before. Goes with the file's success or
    /// the job's deletion. [`StoreError::LeaseLost`] when somebody else has the file now.
    async fn save_checkpoint(&self, lease: Lease, checkpoint: Checkpoint) -> Result<()>;

    /// How far a file is; `None` when it has to begin at its first node.
    async fn checkpoint(&self, file: FileId) -> Result<Option<Checkpoint>>;

    /// Kept answers of a workspace by their keys; those there are.
    async fn answers(&self, workspace: WorkspaceId, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>>;

    /// Keeps answers and adds up what they cost, for the file, the job and the workspace's month. Of more than
    /// `max_bytes` of a workspace's answers the least recently used go, but none younger than a day; 0 keeps
    /// none.
    async fn record_calls(&self, record: CallRecord, max_bytes: u64, now: Micros) -> Result<()>;

    /// Forgets kept answers, as those that turned out to be of no use.
    async fn forget_answers(&self, workspace: WorkspaceId, keys: Vec<String>) -> Result<()>;

    /// What a workspace spent in a month (`YYYY-MM`), in millionths.
    async fn spent(&self, workspace: WorkspaceId, month: &str) -> Result<i64>;

    /// What the nodes of a job cost, by their positions.
    async fn job_costs(&self, workspace: WorkspaceId, job: JobId) -> Result<Vec<(u32, Cost)>>;

    /// What the nodes cost for some files of a job, by file and position.
    async fn file_costs(&self, workspace: WorkspaceId, job: JobId, files: &[FileId]) -> Result<Vec<FileCost>>;

    /// How the pages of some files of a job were read, in the order of `files`, at most `max` pages in all: the
    /// last file told may lack pages, and those behind it are left out, as are files without pages.
    async fn page_routes(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        files: &[FileId],
        max: usize,
    ) -> Result<Vec<(FileId, Vec<PageRoute>)>>;

    /// Forgets answers not used since `before`, at most `max`; how many there were.
    async fn expire_answers(&self, before: Micros, max: u32) -> Result<u64>;

    // ---- channels ----

    /// Records a channel unless its scope has `max` already. A mail channel is unverified, and its code is
    /// handed to the outbox as a delivery, within the budgets; a webhook is verified.
    /// [`StoreError::WorkflowGone`] when its workflow is deleted or never was.
    async fn create_channel(
        &self,
        channel: NewChannel,
        max: u32,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<ChannelCreation>;

    /// A channel.
    async fn channel(&self, channel: ChannelRef) -> Result<Option<Channel>>;

    /// Channels of a scope and kind, oldest first; only those that are enabled or not, if given.
    async fn channels(
        &self,
        workspace: WorkspaceId,
        scope: ChannelScope,
        kind: ChannelKind,
        enabled: Option<bool>,
    ) -> Result<Vec<Channel>>;

    /// Replaces a verified channel's definition (of the same kind) if it is still as of `seen`, the
    /// `updated_at` it was read with: [`StoreError::Conflict`] otherwise.
    ///
    /// With another recipient (compared as text) the channel is unverified, its code void, and `code` is
    /// sent to the new one; without `code` that is a [`StoreError::Conflict`] too. What is pending for a
    /// channel that is disabled or has another recipient is cancelled; a webhook's goes to its new URL. Becoming wanted clears why it was
    /// disabled or bounced.
    async fn update_channel(
        &self,
        channel: ChannelRef,
        definition: ChannelDefinition,
        code: Option<NewCode>,
        seen: Micros,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<ChannelUpdate>;

    /// Deletes a channel with its code and cancels what is pending for it; whether there was one. Budgets
    /// of its mailbox stay.
    async fn delete_channel(&self, channel: ChannelRef, now: Micros) -> Result<bool>;

    /// Makes a new code the channel's only one and hands it to the outbox, unless a budget or the cool-down
    /// forbids. `None` when there is no such channel.
    async fn issue_code(
        &self,
        channel: ChannelRef,
        code: NewCode,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<Option<CodeIssue>>;

    /// Tries a code, given as its keyed hash. A try is counted before it is compared, in constant time, and
    /// no answer is given before the count is durable: of any number of tries at once at most
    /// `limits.tries` are compared. `None` when there is no such channel.
    async fn try_code(
        &self,
        channel: ChannelRef,
        presented: CodeHash,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<Option<CodeTry>>;

    /// Stops sending events to a mail or webhook channel, as its receiver asked by the link in a mail;
    /// whether there was such a channel.
    async fn unsubscribe(&self, channel: ChannelRef, reason: &str, now: Micros) -> Result<bool>;

    // ---- deliveries ----

    /// Hands a test to the outbox. `None` when there is no such channel or it is disabled or unverified.
    async fn create_test(&self, channel: ChannelRef, now: Micros) -> Result<Option<DeliveryId>>;

    /// Claims deliveries that are due, fair across receivers: those with the fewest under way first. Each is
    /// leased under a new fencing token. What may not be sent any more (its channel is gone, disabled or
    /// unverified; its code expired) is cancelled instead.
    async fn claim_deliveries(&self, query: DeliveryQuery, now: Micros) -> Result<Vec<DeliveryClaim>>;

    /// Claims up to `max` further events due to the same mailbox in the same workspace as a claimed one, for
    /// one digest of them all; oldest first. None when the lease is lost.
    async fn claim_siblings(
        &self,
        lease: DeliveryLease,
        max: u32,
        lease_until: Micros,
        now: Micros,
    ) -> Result<Vec<DeliveryClaim>>;

    /// How many mails of events a mailbox was sent since an instant; a digest counts once.
    async fn mails_since(&self, workspace: WorkspaceId, mailbox: &str, since: Micros) -> Result<u64>;

    /// When the next delivery of a lane is due; `None` when none waits.
    async fn next_delivery(&self, lane: ChannelKind) -> Result<Option<Micros>>;

    /// Extends leases; returns those that are lost.
    async fn renew_deliveries(&self, leases: &[DeliveryLease], lease_until: Micros) -> Result<Vec<DeliveryLease>>;

    /// Records an attempt and what came of it, for one delivery or for all of a digest (the first is the one
    /// whose id the digest had). A success clears the channel's failures. A failure of an event or notice,
    /// with `disable_after`, disables the channel when that long nothing but failures came; disabling writes
    /// a notice to the inbox and to the workspace's enabled mail channels, in the same transaction.
    /// [`StoreError::LeaseLost`] when no lease is held any more, and then nothing changed.
    async fn finish_deliveries(
        &self,
        leases: &[DeliveryLease],
        attempt: Attempt,
        outcome: DeliveryOutcome,
        disable_after: Option<Micros>,
        now: Micros,
    ) -> Result<DeliveryFinish>;

    /// Gives claimed deliveries back untried, not to be claimed before an instant: as when the server stops
    /// (0), or a receiver was sent enough for now.
    async fn defer_deliveries(&self, leases: &[DeliveryLease], not_before: Micros) -> Result<()>;

    /// Returns deliveries whose lease has expired or, with `all` (right only when no other process works on
    /// the store), every claimed one. They are attempted again under the same id. How many there were.
    async fn recover_deliveries(&self, all: bool, now: Micros) -> Result<u64>;

    /// Deliveries of a channel, newest first; `None` when there is no such channel.
    async fn deliveries(&self, channel: ChannelRef, filter: DeliveryFilter) -> Result<Option<Vec<Delivery>>>;

    /// One delivery of a channel.
    async fn delivery(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Option<Delivery>>;

    /// The latest attempts of a delivery (at most 100), in order; `None` when the channel has no such
    /// delivery.
    async fn attempts(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Option<Vec<Attempt>>>;

    /// Sends a delivery again, behind first attempts.
    async fn replay_delivery(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Replay>;

    /// Sends all events and notices again that failed or were cancelled and were created at `since` or
    /// later; how many. `None` when there is no such channel, or it is disabled or unverified.
    async fn replay_failed(&self, channel: ChannelRef, since: Micros) -> Result<Option<u64>>;

    // ---- inbox ----

    /// Notifications of a workspace that match, newest first.
    async fn notifications(&self, workspace: WorkspaceId, filter: &InboxFilter) -> Result<Vec<Notification>>;

    /// A notification.
    async fn notification(&self, workspace: WorkspaceId, id: EventId) -> Result<Option<Notification>>;

    /// How many notifications are unread, of one workflow if given.
    async fn unread_count(&self, workspace: WorkspaceId, workflow: Option<WorkflowId>) -> Result<u64>;

    /// Marks notifications as read; how many were not.
    async fn mark_read(&self, workspace: WorkspaceId, which: MarkRead, now: Micros) -> Result<u64>;

    // ---- upkeep ----

    /// Deletes jobs ended before `before`, at most `max`; how many there were.
    async fn expire_jobs(&self, before: Micros, max: u32) -> Result<u64>;

    /// Deletes deliveries ended before `before` with their attempts, then events recorded before it that
    /// have no delivery left, and channels of workflows deleted before it; at most `max` of each. How many
    /// rows went.
    async fn expire_notifications(&self, before: Micros, max: u32) -> Result<u64>;

    /// Wipes codes that have expired, from the outbox too, and forgets budgets that are over; how many.
    async fn expire_codes(&self, now: Micros) -> Result<u64>;

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
