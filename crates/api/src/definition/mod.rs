//! What a client says a workflow is made of: read from a body, completed, and made a definition.

mod defaults;
mod read;
mod schedule;

use docmill_model::Code;
use docmill_model::chain::{NodeSpec, Problem};
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, WorkspaceId};
use docmill_model::workflow::{Overlap, WorkflowState, WorkflowType};
use docmill_store::WorkflowDefinition;
use serde_json::json;

use crate::App;
use crate::body::Change;
use crate::error::{ApiError, ApiResult};

pub(crate) use read::{Reader, read};

/// What a body gives of a workflow. What it does not give stays as it is, or is the default.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) name: Option<String>,
    pub(crate) key: Option<String>,
    kind: Option<WorkflowType>,
    source: Change<String>,
    destination: Change<String>,
    nodes: Option<Vec<NodeSpec>>,
    /// Cron.
    schedule: Change<String>,
    timezone: Option<String>,
    overlap: Option<Overlap>,
    state: Option<WorkflowState>,
    reprocess_all: Option<bool>,
    delete_removed: Option<bool>,
}

/// What a new workflow is before its body is looked at.
fn blank() -> WorkflowDefinition {
    WorkflowDefinition {
        name: String::new(),
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

/// The definition a body makes of the one there is, or of nothing.
pub(crate) async fn apply(
    app: &App,
    workspace: WorkspaceId,
    given: &Given,
    stored: Option<WorkflowDefinition>,
) -> ApiResult<WorkflowDefinition> {
    let mut definition = stored.unwrap_or_else(blank);
    let mut problems = Vec::new();
    let source = (ConnectorRole::Source, &given.source, &mut definition.sources);
    let destination = (
        ConnectorRole::Destination,
        &given.destination,
        &mut definition.destinations,
    );
    for (role, change, place) in [source, destination] {
        match change {
            Change::Keep => {}
            Change::Clear => place.clear(),
            Change::Set(which) => match app.engine.store().connector(workspace, role, which).await? {
                Some(connector) => *place = vec![connector.id],
                None => problems.push(unknown_connector(role)),
            },
        }
    }
    set(&mut definition.name, &given.name);
    set(&mut definition.kind, &given.kind);
    set(&mut definition.nodes, &given.nodes);
    set(&mut definition.state, &given.state);
    set(&mut definition.reprocess_all, &given.reprocess_all);
    set(&mut definition.delete_removed, &given.delete_removed);
    definition.schedule = schedule::merge(definition.schedule, given, &mut problems);
    if definition.schedule.is_some() && definition.sources.is_empty() && problems.is_empty() {
        problems.push(Problem::new(
            &[json!("body"), json!("schedule")],
            "value_error",
            "a workflow without source takes its files when it is run, so it can't have a schedule: give a \
             `source_id`, or leave the schedule out (null)",
        ));
    }
    if !problems.is_empty() {
        return Err(ApiError::problems(Code::ValidationFailed, &problems));
    }
    Ok(definition)
}

fn set<T: Clone>(place: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

fn unknown_connector(role: ConnectorRole) -> Problem {
    Problem::new(
        &[json!("body"), json!(format!("{role}_id"))],
        "value_error",
        format!("there is no such {role}"),
    )
}

/// The error about a connector that went away between the look at it and the change that refers to it.
pub(crate) fn connector_gone(definition: &WorkflowDefinition, gone: ConnectorId) -> ApiError {
    let role = if definition.sources.contains(&gone) {
        ConnectorRole::Source
    } else {
        ConnectorRole::Destination
    };
    ApiError::problems(Code::ValidationFailed, &[unknown_connector(role)])
}
