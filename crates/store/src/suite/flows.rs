//! Short words for connectors, workflows and runs in tests.

use docmill_model::connector::{ConnectorRole, SourceObject};
use docmill_model::ids::{ConnectorId, FileId, JobId, KeyId, WorkflowId, WorkspaceId};
use docmill_model::job::JobType;
use docmill_model::time::{Micros, SECOND};
use docmill_model::workflow::{Overlap, Schedule, WorkflowState, WorkflowType};
use serde_json::{Value, json};

use super::World;
use super::world::{LEASE, NOW, new_job};
use crate::{
    Claim, FileOutcome, ListedPage, ListingClaim, ListingLease, ListingOutcome, NewConnector, NewJob, NewRun,
    NewWorkflow, Principal, Workflow, WorkflowDefinition,
};

impl World {
    pub(crate) async fn connector(&self, role: ConnectorRole, name: &str) -> ConnectorId {
        let new = new_connector(self.workspace, role, name);
        let id = new.id;
        self.store.create_connector(new, NOW).await.unwrap();
        id
    }

    pub(crate) async fn source(&self) -> ConnectorId {
        self.connector(ConnectorRole::Source, "source").await
    }

    pub(crate) async fn destination(&self) -> ConnectorId {
        self.connector(ConnectorRole::Destination, "destination").await
    }

    /// A destination that leads there.
    pub(crate) async fn connector_at(&self, remote_url: &str) -> ConnectorId {
        let mut new = new_connector(self.workspace, ConnectorRole::Destination, "elsewhere");
        new.config = json!({"remote_url": remote_url});
        let id = new.id;
        self.store.create_connector(new, NOW).await.unwrap();
        id
    }

    pub(crate) fn new_workflow(&self, definition: WorkflowDefinition) -> NewWorkflow {
        NewWorkflow {
            id: WorkflowId::new(),
            workspace: self.workspace,
            key: None,
            principal: Principal {
                account: self.account,
                workspace: self.workspace,
                key: KeyId::new(),
            },
            definition,
        }
    }

    pub(crate) async fn workflow(&self, definition: WorkflowDefinition) -> Workflow {
        let new = self.new_workflow(definition);
        self.store.create_workflow(new, NOW).await.unwrap()
    }

    /// A workflow that reads from one new source.
    pub(crate) async fn workflow_with_source(&self) -> (Workflow, ConnectorId) {
        let source = self.source().await;
        let definition = WorkflowDefinition {
            sources: vec![source],
            ..definition("workflow")
        };
        (self.workflow(definition).await, source)
    }

    /// A run of a workflow as it is defined, by hand.
    pub(crate) fn new_run(&self, workflow: &Workflow) -> NewJob {
        let mut job = new_job(self.account, self.workspace, 0);
        let definition = &workflow.definition;
        job.workflow = workflow.id;
        job.workflow_name = definition.name.clone();
        job.job_type = JobType::Persistent;
        job.run = Some(NewRun {
            sources: definition.sources.clone(),
            destinations: definition.destinations.clone(),
            reprocess_all: definition.reprocess_all,
            delete_removed: definition.delete_removed,
        });
        job
    }

    pub(crate) async fn run(&self, workflow: &Workflow) -> JobId {
        self.add(self.new_run(workflow)).await
    }

    pub(crate) async fn claim_listing(&self) -> ListingClaim {
        let mut claims = self.claim_listings(1).await;
        assert_eq!(claims.len(), 1);
        claims.remove(0)
    }

    pub(crate) async fn claim_listings(&self, max: usize) -> Vec<ListingClaim> {
        self.store.claim_listings(max, LEASE, NOW).await.unwrap()
    }

    /// Adds a page of the first source; how many files wait.
    pub(crate) async fn add_objects(&self, lease: ListingLease, objects: &[SourceObject]) -> u64 {
        self.store.add_listed(lease, page(0, objects), NOW).await.unwrap()
    }

    pub(crate) async fn end_listing(&self, lease: ListingLease, outcome: ListingOutcome) {
        self.store.finish_listing(lease, outcome, NOW + SECOND).await.unwrap();
    }

    /// Runs a workflow over a source that has these objects, to the end; names of the files in it.
    pub(crate) async fn run_over(&self, workflow: &Workflow, objects: &[SourceObject]) -> (JobId, Vec<String>) {
        let job = self.run(workflow).await;
        let listing = self.claim_listing().await;
        self.add_objects(listing.lease, objects).await;
        self.end_listing(listing.lease, ListingOutcome::Complete).await;
        for claim in self.claim(1000).await {
            self.finish(claim.lease, processed(&claim)).await;
        }
        assert!(self.job(job).await.status.is_terminal());
        let names = self.files(job).await.into_iter().map(|file| file.name).collect();
        (job, names)
    }
}

pub(crate) fn new_connector(workspace: WorkspaceId, role: ConnectorRole, name: &str) -> NewConnector {
    NewConnector {
        id: ConnectorId::new(),
        workspace,
        role,
        name: name.into(),
        key: None,
        kind: "s3".into(),
        config: json!({"remote_url": "s3://bucket/"}),
    }
}

pub(crate) fn definition(name: &str) -> WorkflowDefinition {
    WorkflowDefinition {
        name: name.into(),
        kind: WorkflowType::Custom,
        sources: Vec::new(),
        destinations: Vec::new(),
        nodes: Vec::new(),
        schedule: None,
        next_fire_at: None,
        state: WorkflowState::Active,
        reprocess_all: false,
        delete_removed: false,
    }
}

/// A definition that is due at an instant, and every hour.
pub(crate) fn scheduled(overlap: Overlap, next_fire_at: Micros) -> WorkflowDefinition {
    WorkflowDefinition {
        schedule: Some(Schedule {
            cron: "0 * * * *".into(),
            timezone: "UTC".into(),
            overlap,
        }),
        next_fire_at: Some(next_fire_at),
        ..definition("scheduled")
    }
}

/// An object `locator` in a version; without one when that is empty.
pub(crate) fn object(locator: &str, version: &str) -> SourceObject {
    SourceObject {
        locator: locator.into(),
        name: format!("folder/{locator}"),
        size: Some(11),
        version: (!version.is_empty()).then(|| version.into()),
        content_type: Some("text/html".into()),
        data_source: json!({"url": format!("s3://bucket/{locator}")}),
    }
}

/// Objects of version 1.
pub(crate) fn objects(locators: &[&str]) -> Vec<SourceObject> {
    locators.iter().map(|locator| object(locator, "1")).collect()
}

pub(crate) fn page(source_index: u32, objects: &[SourceObject]) -> ListedPage {
    ListedPage {
        source_index,
        objects: objects.iter().map(|object| (FileId::new(), object.clone())).collect(),
        last_of_source: false,
    }
}

/// The SHA-256 a test gives to a content.
pub(crate) fn hash(content: &str) -> String {
    format!("{content:0>64}")
}

/// A file that was delivered, with a content that is named by its version.
pub(crate) fn processed(claim: &Claim) -> FileOutcome {
    let version = match &claim.input {
        crate::FileInput::Source { object, .. } => object.version.clone(),
        crate::FileInput::Blob(_) => None,
    };
    FileOutcome::Succeeded {
        outputs: Vec::new(),
        warnings: Vec::new(),
        elements: 3,
        pages: 2,
        routes: Vec::new(),
        content_hash: Some(hash(&version.unwrap_or_default())),
    }
}

/// A connector's settings after a change.
pub(crate) fn other_config() -> Value {
    json!({"remote_url": "s3://other/", "key": {"$enc": "v1:abc"}})
}
