//! Records of connectors, workflows, their firings and listings.

use docmill_model::chain::NodeSpec;
use docmill_model::connector::{CheckStatus, ConnectorRole, SourceObject};
use docmill_model::ids::{CheckId, ConnectorId, FileId, JobId, NodeId, WorkflowId, WorkspaceId};
use docmill_model::time::Micros;
use docmill_model::workflow::{Schedule, WorkflowState, WorkflowType};
use serde_json::Value;

use crate::types::{NewJob, Principal};

/// A connector to record.
#[derive(Clone, Debug)]
pub struct NewConnector {
    /// Id.
    pub id: ConnectorId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Which way it moves data.
    pub role: ConnectorRole,
    /// Free name.
    pub name: String,
    /// Slug asked for; `None` to have one made from the name that is free.
    pub key: Option<String>,
    /// Its type.
    pub kind: String,
    /// Its settings, secrets encrypted.
    pub config: Value,
}

/// A connector.
#[derive(Clone, Debug)]
pub struct Connector {
    /// Id.
    pub id: ConnectorId,
    /// Which way it moves data.
    pub role: ConnectorRole,
    /// Free name.
    pub name: String,
    /// Slug, unique among the workspace's connectors of its role.
    pub key: String,
    /// Its type.
    pub kind: String,
    /// Its settings, secrets encrypted.
    pub config: Value,
    /// When it was created.
    pub created_at: Micros,
    /// When its settings last changed.
    pub updated_at: Option<Micros>,
}

/// What became of a request to delete a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectorDeletion {
    /// It is gone.
    Deleted,
    /// There is none.
    NotFound,
    /// Live workflows use it: the first few, by id and name.
    InUse(Vec<(WorkflowId, String)>),
}

/// A check of a connector's connection.
#[derive(Clone, Debug)]
pub struct ConnectionCheck {
    /// Id.
    pub id: CheckId,
    /// Where it stands.
    pub status: CheckStatus,
    /// Why it failed.
    pub reason: Option<String>,
    /// When it was asked for.
    pub created_at: Micros,
    /// When it ended.
    pub reported_at: Option<Micros>,
}

/// What a workflow is made of.
#[derive(Clone, Debug)]
pub struct WorkflowDefinition {
    /// Free name.
    pub name: String,
    /// What kind of definition it was made from.
    pub kind: WorkflowType,
    /// Where files come from; empty: they are uploaded at run.
    pub sources: Vec<ConnectorId>,
    /// Where outputs go; empty: they are kept for download.
    pub destinations: Vec<ConnectorId>,
    /// Its nodes as sent, each with its id.
    pub nodes: Vec<NodeSpec>,
    /// When it runs by itself.
    pub schedule: Option<Schedule>,
    /// When it runs next; `None` without schedule and while inactive.
    pub next_fire_at: Option<Micros>,
    /// Whether it may run.
    pub state: WorkflowState,
    /// Whether runs process files again that have not changed.
    pub reprocess_all: bool,
    /// Whether runs remove files from the destinations that are gone from their source.
    pub delete_removed: bool,
}

/// A workflow to record.
#[derive(Clone, Debug)]
pub struct NewWorkflow {
    /// Id.
    pub id: WorkflowId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Slug asked for; `None` to have one made from the name that is free.
    pub key: Option<String>,
    /// Who created it: its scheduled runs count against this account.
    pub principal: Principal,
    /// What it is made of.
    pub definition: WorkflowDefinition,
}

/// A workflow.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// Id.
    pub id: WorkflowId,
    /// Slug, unique among the workspace's live workflows.
    pub key: String,
    /// What it is made of.
    pub definition: WorkflowDefinition,
    /// When it was created.
    pub created_at: Micros,
    /// When it was last changed by a client.
    pub updated_at: Option<Micros>,
    /// When it was deleted.
    pub deleted_at: Option<Micros>,
}

/// Column a list of workflows is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkflowOrder {
    /// Id, which is the order of creation.
    #[default]
    Id,
    /// Name, by code point.
    Name,
    /// `active` before `inactive`.
    State,
    /// The type's word.
    Kind,
    /// Instant of creation.
    CreatedAt,
    /// Instant of the last change; those never changed count as changed when created.
    UpdatedAt,
}

/// Filters of [`crate::Store::workflows`]; all given ones must hold.
#[derive(Clone, Debug, Default)]
pub struct WorkflowFilter {
    /// Holds a node with this id.
    pub node: Option<NodeId>,
    /// Reads from this source.
    pub source: Option<ConnectorId>,
    /// Writes to this destination.
    pub destination: Option<ConnectorId>,
    /// Is in this state.
    pub state: Option<WorkflowState>,
    /// Created at this instant or later.
    pub created_since: Option<Micros>,
    /// Created at this instant or earlier.
    pub created_before: Option<Micros>,
    /// Its name holds this text; case does not matter (Unicode simple lower case).
    pub name: Option<String>,
    /// Deleted ones instead of live ones.
    pub deleted: bool,
    /// Sorted by this, ties by id (ascending in both directions).
    pub order: WorkflowOrder,
    /// Greatest first.
    pub descending: bool,
    /// Records to leave out at the start.
    pub offset: u64,
    /// At most this many.
    pub limit: u32,
}

/// A workflow whose schedule says it is time.
#[derive(Clone, Debug)]
pub struct DueWorkflow {
    /// Its workspace and account, and the key that created it.
    pub principal: Principal,
    /// The workflow.
    pub workflow: Workflow,
}

/// What became of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firing {
    /// The run exists.
    Started,
    /// The last run has not ended; the firing is recorded as skipped.
    Skipped,
    /// It had been fired already, or the workflow was changed, stopped or deleted meanwhile.
    Stale,
}

/// A run to start by schedule.
#[derive(Clone, Debug)]
pub struct ScheduledRun {
    /// The instant of the schedule it stands for.
    pub fire_at: Micros,
    /// The workflow's `updated_at` when it was read as due: a run made of an older definition is stale.
    pub seen: Option<Micros>,
    /// When the workflow is due next.
    pub next_fire_at: Option<Micros>,
    /// The job.
    pub job: NewJob,
}

/// The right to add files to a run. Only [`crate::Store::claim_listings`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListingLease {
    pub(crate) job: JobId,
    pub(crate) token: i64,
}

impl ListingLease {
    /// The run.
    pub fn job(&self) -> JobId {
        self.job
    }
}

/// A run whose sources are to be listed.
#[derive(Clone, Debug)]
pub struct ListingClaim {
    /// The right to it.
    pub lease: ListingLease,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its sources, in order.
    pub sources: Vec<ConnectorId>,
    /// Where to go on: position in `sources` and the last locator recorded there.
    pub position: (u32, Option<String>),
    /// Times it was claimed without coming further, with this one.
    pub attempt: u32,
}

/// Some of what a source lists.
#[derive(Clone, Debug)]
pub struct ListedPage {
    /// Position of the source in the run's sources.
    pub source_index: u32,
    /// The objects, with the id each gets if it is new to the run.
    pub objects: Vec<(FileId, SourceObject)>,
    /// Whether the source has no more.
    pub last_of_source: bool,
}

/// How a listing ended.
#[derive(Clone, Debug)]
pub enum ListingOutcome {
    /// Every source was listed to its end.
    Complete,
    /// It could not be listed, for good.
    Failed(String),
    /// It is to be tried again, not before this instant.
    Retry(Micros),
}
