//! Workflows: create, list, read, change, delete, run.

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use docmill_engine::RunError;
use docmill_model::Code;
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, NodeId};
use docmill_model::workflow::WorkflowState;
use docmill_store::{Principal, StoreError, Workflow, WorkflowDefinition, WorkflowFilter, WorkflowOrder};
use serde_json::{Value, json};

use crate::App;
use crate::auth::{BearerCaller, Caller};
use crate::body::JsonObject;
use crate::definition::{self, Given};
use crate::dto::{
    Client, CreateWorkflow, ErrorBody, JobInformation, RunWorkflowForm, UpdateWorkflow, WorkflowInformation,
};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathText;
use crate::query::{IdOrKey, Query};
use crate::routes::jobs::accepted;
use crate::upload;

/// Workflows of one page at most.
const MAX_PAGE_SIZE: u64 = 1_000;
/// Workflows of one page by default.
const PAGE_SIZE: u64 = 20;
/// The last page there may be: its place still is a number everywhere.
const MAX_PAGE: u64 = 1_000_000_000_000;
/// Times an update is tried when others change the workflow at the same moment.
const UPDATE_TRIES: u32 = 5;
/// Microseconds of what instants are told to.
const MILLISECOND: i64 = 1_000;

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let agent = parts.headers.get(header::USER_AGENT);
        Ok(Self::of(agent.map_or(&[], |value| value.as_bytes())))
    }
}

/// Create a workflow.
#[utoipa::path(post, path = "/workflows", tag = "workflows", operation_id = "create_workflow",
    request_body = CreateWorkflow,
    responses((status = 200, body = WorkflowInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    Caller(principal): Caller,
    client: Client,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<WorkflowInformation>> {
    let reader = definition::Reader {
        app: &app,
        workspace: principal.workspace,
        stored: &[],
    };
    let given = definition::read(&reader, &body, true)?;
    let definition = definition::apply(&app, principal.workspace, &given, None).await?;
    let workflow = app
        .engine
        .create_workflow(&principal, given.key, definition.clone())
        .await
        .map_err(|error| store_error(error, &definition))?;
    Ok(Json(WorkflowInformation::new(workflow, client)))
}

/// List workflows.
#[utoipa::path(get, path = "/workflows", tag = "workflows", operation_id = "list_workflows",
    params(
        ("dag_node_configuration_id" = Option<String>, Query, description = "Only those that hold a node with this id."),
        ("source_id" = Option<String>, Query, description = "Only those that read from this source (id or key)."),
        ("destination_id" = Option<String>, Query, description = "Only those that write to this destination (id or key)."),
        ("status" = Option<String>, Query, description = "Only those that are `active` or `inactive`."),
        ("page" = Option<u64>, Query, description = "Page, from 1; 1 by default."),
        ("page_size" = Option<u64>, Query, description = "Workflows of a page, 1 to 1000; 20 by default."),
        ("created_since" = Option<String>, Query, description = "Only those created at this instant or later (ISO 8601; UTC unless it says otherwise)."),
        ("created_before" = Option<String>, Query, description = "Only those created at this instant or earlier."),
        ("name" = Option<String>, Query, description = "Only those whose name holds this text; case does not matter."),
        ("sort_by" = Option<String>, Query, description = "`id` (default), `name`, `status`, `workflow_type`, `created_at` or `updated_at`; ties by id."),
        ("sort_direction" = Option<String>, Query, description = "`asc` (default) or `desc`."),
        ("show_only_soft_deleted" = Option<bool>, Query, description = "Deleted workflows instead of live ones."),
        ("show_recommender_workflows" = Option<bool>, Query, description = "Accepted and without effect: there are no such workflows."),
    ),
    responses((status = 200, body = Vec<WorkflowInformation>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    BearerCaller(principal): BearerCaller,
    client: Client,
    query: Query,
) -> ApiResult<Json<Vec<WorkflowInformation>>> {
    let Some(filter) = filter(&app, &principal, query).await? else {
        return Ok(Json(Vec::new()));
    };
    let workflows = app.engine.store().workflows(principal.workspace, &filter).await?;
    let list = workflows
        .into_iter()
        .map(|workflow| WorkflowInformation::new(workflow, client));
    Ok(Json(list.collect()))
}

/// The filter of a list; `None` when nothing can match.
async fn filter(app: &App, principal: &Principal, mut query: Query) -> ApiResult<Option<WorkflowFilter>> {
    let orders = [
        ("id", WorkflowOrder::Id),
        ("name", WorkflowOrder::Name),
        ("status", WorkflowOrder::State),
        ("workflow_type", WorkflowOrder::Kind),
        ("created_at", WorkflowOrder::CreatedAt),
        ("updated_at", WorkflowOrder::UpdatedAt),
    ];
    // Any text may be asked for; what is no id is the id of no node.
    let node = query
        .text("dag_node_configuration_id")
        .map(|text| text.parse::<NodeId>());
    let source = query.id_or_key::<ConnectorId>("source_id");
    let destination = query.id_or_key::<ConnectorId>("destination_id");
    let state = query.word("status", WorkflowState::ALL);
    let page = query.integer("page", 1, MAX_PAGE).unwrap_or(1);
    let page_size = query.integer("page_size", 1, MAX_PAGE_SIZE).unwrap_or(PAGE_SIZE);
    // Instants are compared as they are told, to the millisecond.
    let to_the_millisecond = |at: i64| at - at.rem_euclid(MILLISECOND);
    let created_since = query.instant("created_since").map(to_the_millisecond);
    let created_before = query
        .instant("created_before")
        .map(|at| to_the_millisecond(at) + MILLISECOND - 1);
    let name = query.text("name");
    let order = query.word("sort_by", &orders.map(|(word, _)| word));
    let direction = query.word("sort_direction", &["asc", "desc"]);
    let deleted = query.boolean("show_only_soft_deleted").unwrap_or(false);
    query.boolean("show_recommender_workflows");
    query.finish()?;
    let filter = WorkflowFilter {
        node: None,
        source: None,
        destination: None,
        state,
        created_since,
        created_before,
        name,
        deleted,
        order: orders
            .iter()
            .find(|(word, _)| Some(*word) == order)
            .map_or(WorkflowOrder::Id, |(_, order)| *order),
        descending: direction == Some("desc"),
        offset: (page - 1) * page_size,
        limit: u32::try_from(page_size).unwrap_or(u32::MAX),
    };
    let Ok(node) = node.transpose() else {
        return Ok(None);
    };
    let Ok(source) = connector(app, principal, ConnectorRole::Source, source).await? else {
        return Ok(None);
    };
    let Ok(destination) = connector(app, principal, ConnectorRole::Destination, destination).await? else {
        return Ok(None);
    };
    Ok(Some(WorkflowFilter {
        node,
        source,
        destination,
        ..filter
    }))
}

/// There is no connector with the key asked for.
struct Nobody;

async fn connector(
    app: &App,
    principal: &Principal,
    role: ConnectorRole,
    which: Option<IdOrKey<ConnectorId>>,
) -> ApiResult<Result<Option<ConnectorId>, Nobody>> {
    Ok(match which {
        None => Ok(None),
        Some(IdOrKey::Id(id)) => Ok(Some(id)),
        Some(IdOrKey::Key(key)) => match app.engine.store().connector(principal.workspace, role, &key).await? {
            Some(connector) => Ok(Some(connector.id)),
            None => Err(Nobody),
        },
    })
}

/// Get a workflow.
#[utoipa::path(get, path = "/workflows/{workflow_id}", tag = "workflows", operation_id = "get_workflow",
    params(("workflow_id" = String, Path, description = "Id or key.")),
    responses((status = 200, body = WorkflowInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    Caller(principal): Caller,
    client: Client,
    PathText(which): PathText,
) -> ApiResult<Json<WorkflowInformation>> {
    let workflow = find(&app, &principal, &which).await?;
    Ok(Json(WorkflowInformation::new(workflow, client)))
}

/// Change a workflow. What the body does not hold stays as it is.
#[utoipa::path(put, path = "/workflows/{workflow_id}", tag = "workflows", operation_id = "update_workflow",
    params(("workflow_id" = String, Path, description = "Id or key.")),
    request_body = UpdateWorkflow,
    responses((status = 200, body = WorkflowInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn update(
    State(app): State<App>,
    Caller(principal): Caller,
    client: Client,
    PathText(which): PathText,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<WorkflowInformation>> {
    // Whether there is such a workflow comes before what is wrong with the change.
    let workflow = find(&app, &principal, &which).await?;
    let reader = definition::Reader {
        app: &app,
        workspace: principal.workspace,
        stored: &workflow.definition.nodes,
    };
    let given = definition::read(&reader, &body, false)?;
    for _ in 0..UPDATE_TRIES {
        if let Some(workflow) = try_update(&app, &principal, &which, &given).await? {
            return Ok(Json(WorkflowInformation::new(workflow, client)));
        }
    }
    Err(ApiError::new(
        Code::WorkflowStateConflict,
        "the workflow was changed by others at the same time, again and again; nothing of this change was done",
    ))
}

/// One try; `None` when somebody else changed the workflow meanwhile.
async fn try_update(app: &App, principal: &Principal, which: &str, given: &Given) -> ApiResult<Option<Workflow>> {
    let workflow = find(app, principal, which).await?;
    let stored = workflow.definition.clone();
    let definition = definition::apply(app, principal.workspace, given, Some(stored)).await?;
    let updated = app
        .engine
        .update_workflow(principal.workspace, &workflow, definition.clone())
        .await;
    match updated {
        Ok(Some(workflow)) => Ok(Some(workflow)),
        Ok(None) => Err(not_found()),
        Err(StoreError::Conflict) => Ok(None),
        Err(error) => Err(store_error(error, &definition)),
    }
}

/// Delete a workflow. Its jobs that have not ended are stopped; it can still be listed with
/// `show_only_soft_deleted`.
#[utoipa::path(delete, path = "/workflows/{workflow_id}", tag = "workflows", operation_id = "delete_workflow",
    params(("workflow_id" = String, Path, description = "Id or key.")),
    responses((status = 200, description = "Deleted; the body is an empty object."), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<Value>> {
    let workflow = find(&app, &principal, &which).await?;
    if app.engine.delete_workflow(principal.workspace, workflow.id).await? {
        Ok(Json(json!({})))
    } else {
        Err(not_found())
    }
}

/// Run a workflow now. Files may only come with it when the workflow has no source.
#[utoipa::path(post, path = "/workflows/{workflow_id}/run", tag = "workflows", operation_id = "run_workflow",
    params(("workflow_id" = String, Path, description = "Id or key.")),
    request_body(content = Option<RunWorkflowForm>, content_type = "multipart/form-data"),
    responses((status = 202, body = JobInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn run(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
    request: Request,
) -> ApiResult<(StatusCode, Json<JobInformation>)> {
    let workflow = find(&app, &principal, &which).await?;
    if workflow.definition.state == WorkflowState::Inactive {
        return Err(inactive());
    }
    let files = upload::read_files(
        &app,
        principal.workspace,
        request,
        workflow.definition.sources.is_empty(),
    )
    .await?;
    match app.engine.run_workflow(&principal, &workflow, files.clone()).await {
        Ok(job) => Ok((StatusCode::ACCEPTED, Json(accepted(&app, &principal, job).await))),
        Err(error) => {
            // After a failed commit nobody knows whether the run exists, and its blobs stay.
            if !matches!(error, RunError::Store(_)) {
                upload::discard(&app, &files).await;
            }
            Err(run_error(error))
        }
    }
}

fn run_error(error: RunError) -> ApiError {
    match error {
        RunError::NotFound => not_found(),
        RunError::Inactive => inactive(),
        RunError::Active(job) => StoreError::RunActive(job).into(),
        RunError::TakesNoFiles => upload::takes_no_files(),
        RunError::ChainInvalid(problems) => ApiError::problems(Code::ChainInvalid, &problems),
        RunError::Store(error) => error.into(),
    }
}

fn inactive() -> ApiError {
    ApiError::new(
        Code::WorkflowStateConflict,
        "the workflow is inactive; set its `state` to `active` to run it",
    )
}

fn not_found() -> ApiError {
    ApiError::not_found("Workflow")
}

async fn find(app: &App, principal: &Principal, which: &str) -> ApiResult<Workflow> {
    app.engine
        .store()
        .workflow(principal.workspace, which)
        .await?
        .ok_or_else(not_found)
}

/// What the store says about a workflow, in words of the interface.
fn store_error(error: StoreError, definition: &WorkflowDefinition) -> ApiError {
    match error {
        StoreError::ConnectorGone(gone) => definition::connector_gone(definition, gone),
        error => error.into(),
    }
}
