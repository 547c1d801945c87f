//! What can be asked about stored workflows: create, change, delete, run.

use docmill_model::chain::Problem;
use docmill_model::ids::{JobId, WorkflowId, WorkspaceId};
use docmill_model::job::JobType;
use docmill_model::time::Micros;
use docmill_model::workflow::{Schedule, WorkflowState};
use docmill_store::{Job, NewJob, NewRun, NewWorkflow, Principal, StoreError, Workflow, WorkflowDefinition};

use crate::clock::now;
use crate::engine::{Engine, SubmittedFile, as_accepted, new_file};
use crate::schedule::{self, ScheduleError};

/// Why a workflow is not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such live workflow.
    #[error("no such workflow")]
    NotFound,
    /// It is inactive.
    #[error("the workflow is inactive")]
    Inactive,
    /// A run of it that reads from sources has not ended.
    #[error("run {0} of the workflow has not ended")]
    Active(JobId),
    /// Files came with the request, and the workflow reads from sources.
    #[error("the workflow reads from its sources and takes no files")]
    TakesNoFiles,
    /// Its nodes are no chain this version can run.
    #[error("the workflow's nodes are no chain that can be run")]
    ChainInvalid(Vec<Problem>),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::WorkflowGone(_) => Self::NotFound,
            StoreError::WorkflowInactive(_) => Self::Inactive,
            StoreError::RunActive(job) => Self::Active(job),
            error => Self::Store(error),
        }
    }
}

impl Engine {
    /// Records a workflow. `next_fire_at` of the definition is worked out here, from its schedule.
    ///
    /// # Errors
    /// [`StoreError::KeyTaken`], [`StoreError::ConnectorGone`].
    pub async fn create_workflow(
        &self,
        principal: &Principal,
        key: Option<String>,
        mut definition: WorkflowDefinition,
    ) -> docmill_store::Result<Workflow> {
        let at = now();
        definition.next_fire_at = next_fire(&definition, at)?;
        let new = NewWorkflow {
            id: WorkflowId::new(),
            workspace: principal.workspace,
            key,
            principal: *principal,
            definition,
        };
        let workflow = self.store().create_workflow(new, at).await?;
        self.shared.clock_wake.notify_one();
        Ok(workflow)
    }

    /// Replaces a live workflow's definition; `next_fire_at` of the new one is worked out here. `old` is the
    /// workflow as it was read to make the new definition; `None` when there is no such workflow any more.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it was changed since, [`StoreError::ConnectorGone`].
    pub async fn update_workflow(
        &self,
        workspace: WorkspaceId,
        old: &Workflow,
        mut definition: WorkflowDefinition,
    ) -> docmill_store::Result<Option<Workflow>> {
        let at = now();
        let before = &old.definition;
        // A firing that is due and not done yet must not get lost because something else was changed.
        let same = before.schedule == definition.schedule && before.state == definition.state;
        definition.next_fire_at = match before.next_fire_at {
            Some(next) if same => Some(next),
            _ => next_fire(&definition, at)?,
        };
        let workflow = self
            .store()
            .update_workflow(workspace, old.id, definition, old.updated_at, at)
            .await?;
        self.shared.clock_wake.notify_one();
        Ok(workflow)
    }

    /// Deletes a workflow softly and stops its runs; whether there was such a live workflow.
    pub async fn delete_workflow(&self, workspace: WorkspaceId, workflow: WorkflowId) -> docmill_store::Result<bool> {
        let Some(jobs) = self.store().delete_workflow(workspace, workflow, now()).await? else {
            return Ok(false);
        };
        for job in jobs {
            self.end_work_on(job);
        }
        Ok(true)
    }

    /// Runs a workflow by hand. `files` are for workflows without sources.
    pub async fn run_workflow(
        &self,
        principal: &Principal,
        workflow: &Workflow,
        files: Vec<SubmittedFile>,
    ) -> Result<Job, RunError> {
        if !files.is_empty() && !workflow.definition.sources.is_empty() {
            return Err(RunError::TakesNoFiles);
        }
        let at = now();
        let mut job = run_of(self, principal, workflow, JobType::Persistent).map_err(RunError::ChainInvalid)?;
        job.files = files.into_iter().map(new_file).collect();
        let accepted = as_accepted(&job, at);
        self.accept(job, at).await?;
        Ok(accepted)
    }
}

/// The next instants at which a workflow runs by itself, at most `count`; none without a schedule and
/// while it is inactive.
pub fn next_runs(definition: &WorkflowDefinition, count: usize) -> Vec<Micros> {
    match &definition.schedule {
        Some(schedule) if definition.state == WorkflowState::Active => schedule::next_runs(schedule, now(), count),
        _ => Vec::new(),
    }
}

fn next_fire(definition: &WorkflowDefinition, at: Micros) -> docmill_store::Result<Option<Micros>> {
    match &definition.schedule {
        Some(schedule) if definition.state == WorkflowState::Active => {
            schedule::next_after(schedule, at).map_err(|error| not_a_schedule(schedule, &error))
        }
        _ => Ok(None),
    }
}

/// Callers read schedules with [`schedule::parse`], which lets only good ones through.
fn not_a_schedule(schedule: &Schedule, error: &ScheduleError) -> StoreError {
    StoreError::Corrupt(format!("schedule `{}`: {error}", schedule.cron))
}

/// A run of a workflow, without files.
pub(crate) fn run_of(
    engine: &Engine,
    principal: &Principal,
    workflow: &Workflow,
    job_type: JobType,
) -> Result<NewJob, Vec<Problem>> {
    let definition = &workflow.definition;
    let keys = engine.node_keys(principal.workspace);
    let chain = engine
        .models()
        .stored_chain(&keys, &definition.nodes, &["workflow_nodes".into()])?;
    Ok(NewJob {
        id: JobId::new(),
        account: principal.account,
        workspace: principal.workspace,
        workflow: workflow.id,
        workflow_name: definition.name.clone(),
        job_type,
        chain,
        retry_of: None,
        files: Vec::new(),
        run: Some(NewRun {
            sources: definition.sources.clone(),
            destinations: definition.destinations.clone(),
            reprocess_all: definition.reprocess_all,
            delete_removed: definition.delete_removed,
        }),
    })
}
