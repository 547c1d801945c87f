//! The operations of [`Store`], each by the module of its kind.

use async_trait::async_trait;
use docmill_model::PageRoute;
use docmill_model::channel::{ChannelKind, ChannelScope};
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{
    AccountId, CheckId, ConnectorId, DeliveryId, EventId, FileId, JobId, KeyId, NodeId, WorkflowId, WorkspaceId,
};
use docmill_model::job::JobStatus;
use docmill_model::time::Micros;

use super::{SqliteStore, keys};
use crate::{
    Account, ApiKey, Attempt, CallRecord, Channel, ChannelCreation, ChannelDefinition, ChannelRef, ChannelUpdate,
    Checkpoint, Claim, CodeHash, CodeIssue, CodeLimits, CodeTry, ConnectionCheck, Connector, ConnectorDeletion, Cost,
    DeleteOutcome, Delivery, DeliveryClaim, DeliveryFilter, DeliveryFinish, DeliveryLease, DeliveryOutcome,
    DeliveryQuery, DueWorkflow, Event, FileCost, FileOutcome, FilePage, Firing, InboxFilter, Job, JobFile, JobFilter,
    Lease, ListedPage, ListingClaim, ListingLease, ListingOutcome, MarkRead, NewChannel, NewCode, NewConnector, NewJob,
    NewKey, NewWorkflow, Notification, Output, Principal, Replay, Result, ScheduledRun, Stats, Store, Workflow,
    WorkflowDefinition, WorkflowFilter, Workspace,
};

#[async_trait]
impl Store for SqliteStore {
    async fn create_account(&self, name: &str, now: Micros) -> Result<AccountId> {
        self.insert_account(name, now).await
    }

    async fn accounts(&self) -> Result<Vec<Account>> {
        self.list_accounts().await
    }

    async fn create_workspace(&self, account: AccountId, name: &str, now: Micros) -> Result<WorkspaceId> {
        self.insert_workspace(account, name, now).await
    }

    async fn workspaces(&self) -> Result<Vec<Workspace>> {
        self.list_workspaces().await
    }

    async fn create_key(&self, key: NewKey, now: Micros) -> Result<KeyId> {
        self.insert_key(key, now).await
    }

    async fn keys(&self, workspace: Option<WorkspaceId>) -> Result<Vec<ApiKey>> {
        self.list_keys(workspace).await
    }

    async fn revoke_keys(&self, which: &str, now: Micros) -> Result<u64> {
        self.set_keys_revoked(which, now).await
    }

    async fn principal_by_hash(&self, secret_hash: &str) -> Result<Option<Principal>> {
        self.find_principal(keys::PRINCIPAL_BY_HASH, secret_hash).await
    }

    async fn principal_by_key(&self, key: KeyId) -> Result<Option<Principal>> {
        self.find_principal(keys::PRINCIPAL_BY_KEY, &key.to_string()).await
    }

    async fn touch_key(&self, key: KeyId, now: Micros) -> Result<()> {
        self.set_key_used(key, now).await
    }

    async fn pass_create_gate(
        &self,
        account: AccountId,
        gap: Micros,
        now: Micros,
    ) -> Result<std::result::Result<(), Micros>> {
        self.take_create_turn(account, gap, now).await
    }

    async fn create_job(&self, job: NewJob, now: Micros) -> Result<()> {
        self.insert_job(job, now).await
    }

    async fn job(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Job>> {
        self.find_job(workspace, job).await
    }

    async fn jobs(&self, workspace: WorkspaceId, filter: &JobFilter) -> Result<Vec<Job>> {
        self.list_jobs(workspace, filter).await
    }

    async fn job_files(&self, workspace: WorkspaceId, job: JobId, page: FilePage) -> Result<Option<Vec<JobFile>>> {
        self.list_job_files(workspace, job, page).await
    }

    async fn output(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        file: FileId,
        node: Option<NodeId>,
    ) -> Result<Option<Output>> {
        self.find_output(workspace, job, file, node).await
    }

    async fn stop_job(&self, workspace: WorkspaceId, job: JobId, now: Micros) -> Result<Option<JobStatus>> {
        self.cancel_job(workspace, job, now).await
    }

    async fn delete_job(&self, workspace: WorkspaceId, job: JobId) -> Result<DeleteOutcome> {
        self.remove_job(workspace, job).await
    }

    async fn events(&self, workspace: WorkspaceId, job: JobId, after: i64) -> Result<Vec<Event>> {
        self.list_events(workspace, job, after).await
    }

    async fn create_connector(&self, connector: NewConnector, now: Micros) -> Result<String> {
        self.insert_connector(connector, now).await
    }

    async fn connector(&self, workspace: WorkspaceId, role: ConnectorRole, which: &str) -> Result<Option<Connector>> {
        self.find_connector(workspace, role, which).await
    }

    async fn connectors(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        kind: Option<&str>,
    ) -> Result<Vec<Connector>> {
        self.list_connectors(workspace, role, kind).await
    }

    async fn update_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        connector: ConnectorId,
        config: serde_json::Value,
        now: Micros,
    ) -> Result<Option<Connector>> {
        self.set_connector_config(workspace, role, connector, config, now).await
    }

    async fn delete_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        connector: ConnectorId,
    ) -> Result<ConnectorDeletion> {
        self.remove_connector(workspace, role, connector).await
    }

    async fn create_check(&self, connector: ConnectorId, check: CheckId, now: Micros) -> Result<()> {
        self.insert_check(connector, check, now).await
    }

    async fn finish_check(&self, check: CheckId, outcome: std::result::Result<(), String>, now: Micros) -> Result<()> {
        self.set_check_ended(check, outcome, now).await
    }

    async fn latest_check(&self, workspace: WorkspaceId, connector: ConnectorId) -> Result<Option<ConnectionCheck>> {
        self.find_check(workspace, connector).await
    }

    async fn abandon_checks(&self, reason: &str, now: Micros) -> Result<u64> {
        self.fail_open_checks(reason, now).await
    }

    async fn create_workflow(&self, workflow: NewWorkflow, now: Micros) -> Result<Workflow> {
        self.insert_workflow(workflow, now).await
    }

    async fn workflow(&self, workspace: WorkspaceId, which: &str) -> Result<Option<Workflow>> {
        self.find_workflow(workspace, which).await
    }

    async fn workflows(&self, workspace: WorkspaceId, filter: &WorkflowFilter) -> Result<Vec<Workflow>> {
        self.list_workflows(workspace, filter).await
    }

    async fn update_workflow(
        &self,
        workspace: WorkspaceId,
        workflow: WorkflowId,
        definition: WorkflowDefinition,
        seen: Option<Micros>,
        now: Micros,
    ) -> Result<Option<Workflow>> {
        self.set_workflow_definition(workspace, workflow, definition, seen, now)
            .await
    }

    async fn delete_workflow(
        &self,
        workspace: WorkspaceId,
        workflow: WorkflowId,
        now: Micros,
    ) -> Result<Option<Vec<JobId>>> {
        self.remove_workflow(workspace, workflow, now).await
    }

    async fn due_workflows(&self, now: Micros, max: u32) -> Result<Vec<DueWorkflow>> {
        self.list_due(now, max).await
    }

    async fn next_due(&self) -> Result<Option<Micros>> {
        self.first_due().await
    }

    async fn fire(&self, run: ScheduledRun, now: Micros) -> Result<Firing> {
        self.fire_workflow(run, now).await
    }

    async fn claim_listings(&self, max: usize, lease_until: Micros, now: Micros) -> Result<Vec<ListingClaim>> {
        self.claim_runs_to_list(max, lease_until, now).await
    }

    async fn renew_listings(&self, leases: &[ListingLease], lease_until: Micros) -> Result<Vec<ListingLease>> {
        self.renew_listing_leases(leases.to_vec(), lease_until).await
    }

    async fn add_listed(&self, lease: ListingLease, page: ListedPage, now: Micros) -> Result<u64> {
        self.add_listed_page(lease, page, now).await
    }

    async fn backlog(&self, lease: ListingLease) -> Result<u64> {
        self.count_backlog(lease).await
    }

    async fn finish_listing(&self, lease: ListingLease, outcome: ListingOutcome, now: Micros) -> Result<()> {
        self.end_listing(lease, outcome, now).await
    }

    async fn release_listing(&self, lease: ListingLease) -> Result<()> {
        self.release_run(lease).await
    }

    async fn claim(&self, max: usize, lease_until: Micros, now: Micros) -> Result<Vec<Claim>> {
        self.claim_files(max, lease_until, now).await
    }

    async fn renew(&self, leases: &[Lease], lease_until: Micros) -> Result<Vec<Lease>> {
        self.renew_leases(leases.to_vec(), lease_until).await
    }

    async fn finish(&self, lease: Lease, outcome: FileOutcome, now: Micros) -> Result<()> {
        self.finish_file(lease, outcome, now).await
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        self.release_file(lease).await
    }

    async fn recover(&self, all_running: bool, max_attempts: u32, now: Micros) -> Result<u64> {
        self.recover_files(all_running, max_attempts, now).await
    }

    async fn settle(&self, now: Micros) -> Result<u64> {
        self.settle_jobs(now).await
    }

    async fn expire_jobs(&self, before: Micros, max: u32) -> Result<u64> {
        self.remove_jobs_ended_before(before, max).await
    }

    async fn save_checkpoint(&self, lease: Lease, checkpoint: Checkpoint) -> Result<()> {
        self.set_checkpoint(lease, checkpoint).await
    }

    async fn checkpoint(&self, file: FileId) -> Result<Option<Checkpoint>> {
        self.find_checkpoint(file).await
    }

    async fn answers(&self, workspace: WorkspaceId, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
        self.find_answers(workspace, keys).await
    }

    async fn record_calls(&self, record: CallRecord, max_bytes: u64, now: Micros) -> Result<()> {
        self.add_calls(record, max_bytes, now).await
    }

    async fn forget_answers(&self, workspace: WorkspaceId, keys: Vec<String>) -> Result<()> {
        self.remove_answers(workspace, keys).await
    }

    async fn spent(&self, workspace: WorkspaceId, month: &str) -> Result<i64> {
        self.find_spent(workspace, month).await
    }

    async fn job_costs(&self, workspace: WorkspaceId, job: JobId) -> Result<Vec<(u32, Cost)>> {
        self.list_job_costs(workspace, job).await
    }

    async fn file_costs(&self, workspace: WorkspaceId, job: JobId, files: &[FileId]) -> Result<Vec<FileCost>> {
        self.list_file_costs(workspace, job, files).await
    }

    async fn page_routes(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        files: &[FileId],
        max: usize,
    ) -> Result<Vec<(FileId, Vec<PageRoute>)>> {
        self.list_page_routes(workspace, job, files, max).await
    }

    async fn expire_answers(&self, before: Micros, max: u32) -> Result<u64> {
        self.remove_unused_answers(before, max).await
    }

    async fn create_channel(
        &self,
        channel: NewChannel,
        max: u32,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<ChannelCreation> {
        self.insert_channel(channel, max, limits, now).await
    }

    async fn channel(&self, channel: ChannelRef) -> Result<Option<Channel>> {
        self.find_channel(channel).await
    }

    async fn channels(
        &self,
        workspace: WorkspaceId,
        scope: ChannelScope,
        kind: ChannelKind,
        enabled: Option<bool>,
    ) -> Result<Vec<Channel>> {
        self.list_channels(workspace, scope, kind, enabled).await
    }

    async fn update_channel(
        &self,
        channel: ChannelRef,
        definition: ChannelDefinition,
        code: Option<NewCode>,
        seen: Micros,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<ChannelUpdate> {
        self.set_channel_definition(channel, definition, code, seen, limits, now)
            .await
    }

    async fn delete_channel(&self, channel: ChannelRef, now: Micros) -> Result<bool> {
        self.remove_channel(channel, now).await
    }

    async fn issue_code(
        &self,
        channel: ChannelRef,
        code: NewCode,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<Option<CodeIssue>> {
        self.send_code(channel, code, limits, now).await
    }

    async fn try_code(
        &self,
        channel: ChannelRef,
        presented: CodeHash,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<Option<CodeTry>> {
        self.compare_code(channel, presented, limits, now).await
    }

    async fn unsubscribe(&self, channel: ChannelRef, reason: &str, now: Micros) -> Result<bool> {
        self.stop_channel(channel, reason.to_owned(), now).await
    }

    async fn create_test(&self, channel: ChannelRef, now: Micros) -> Result<Option<DeliveryId>> {
        self.insert_test(channel, now).await
    }

    async fn claim_deliveries(&self, query: DeliveryQuery, now: Micros) -> Result<Vec<DeliveryClaim>> {
        self.claim_due(query, now).await
    }

    async fn claim_siblings(
        &self,
        lease: DeliveryLease,
        max: u32,
        lease_until: Micros,
        now: Micros,
    ) -> Result<Vec<DeliveryClaim>> {
        self.claim_digest(lease, max, lease_until, now).await
    }

    async fn mails_since(&self, workspace: WorkspaceId, mailbox: &str, since: Micros) -> Result<u64> {
        self.count_mails(workspace, mailbox, since).await
    }

    async fn next_delivery(&self, lane: ChannelKind) -> Result<Option<Micros>> {
        self.first_delivery(lane).await
    }

    async fn renew_deliveries(&self, leases: &[DeliveryLease], lease_until: Micros) -> Result<Vec<DeliveryLease>> {
        self.renew_delivery_leases(leases.to_vec(), lease_until).await
    }

    async fn finish_deliveries(
        &self,
        leases: &[DeliveryLease],
        attempt: Attempt,
        outcome: DeliveryOutcome,
        disable_after: Option<Micros>,
        now: Micros,
    ) -> Result<DeliveryFinish> {
        self.end_attempt(leases.to_vec(), attempt, outcome, disable_after, now)
            .await
    }

    async fn defer_deliveries(&self, leases: &[DeliveryLease], not_before: Micros) -> Result<()> {
        self.give_deliveries_back(leases.to_vec(), not_before).await
    }

    async fn recover_deliveries(&self, all: bool, now: Micros) -> Result<u64> {
        self.give_abandoned_back(all, now).await
    }

    async fn deliveries(&self, channel: ChannelRef, filter: DeliveryFilter) -> Result<Option<Vec<Delivery>>> {
        self.list_deliveries(channel, filter).await
    }

    async fn delivery(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Option<Delivery>> {
        self.find_delivery(channel, delivery).await
    }

    async fn attempts(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Option<Vec<Attempt>>> {
        self.list_attempts(channel, delivery).await
    }

    async fn replay_delivery(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Replay> {
        self.send_again(channel, delivery).await
    }

    async fn replay_failed(&self, channel: ChannelRef, since: Micros) -> Result<Option<u64>> {
        self.send_failed_again(channel, since).await
    }

    async fn notifications(&self, workspace: WorkspaceId, filter: &InboxFilter) -> Result<Vec<Notification>> {
        self.list_notifications(workspace, filter).await
    }

    async fn notification(&self, workspace: WorkspaceId, id: EventId) -> Result<Option<Notification>> {
        self.find_notification(workspace, id).await
    }

    async fn unread_count(&self, workspace: WorkspaceId, workflow: Option<WorkflowId>) -> Result<u64> {
        self.count_unread(workspace, workflow).await
    }

    async fn mark_read(&self, workspace: WorkspaceId, which: MarkRead, now: Micros) -> Result<u64> {
        self.set_read(workspace, which, now).await
    }

    async fn expire_notifications(&self, before: Micros, max: u32) -> Result<u64> {
        self.forget_notifications(before, max).await
    }

    async fn expire_codes(&self, now: Micros) -> Result<u64> {
        self.forget_codes(now).await
    }

    async fn garbage(&self, max: u32) -> Result<Vec<String>> {
        self.list_garbage(max).await
    }

    async fn forget_garbage(&self, keys: &[String]) -> Result<()> {
        self.remove_garbage(keys.to_vec()).await
    }

    async fn unreferenced(&self, keys: &[String]) -> Result<Vec<String>> {
        self.find_unreferenced(keys).await
    }

    async fn stats(&self, now: Micros) -> Result<Stats> {
        self.count(now).await
    }

    async fn check_writable(&self) -> Result<()> {
        self.probe_write().await
    }
}
