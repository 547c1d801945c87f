//! Jobs: create, list, read, cancel, retry, delete.

use axum::Json;
use axum::extract::{Request, State};
use docmill_engine::{RetryError, Submission};
use docmill_model::Code;
use docmill_model::chain::{NodeChain, Problem};
use docmill_model::ids::JobId;
use docmill_model::job::{JobStatus, JobType};
use docmill_model::template;
use docmill_store::{DeleteOutcome, FilePage, Job, JobFile, JobFilter, Principal};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::App;
use crate::auth::Caller;
use crate::dto::{CancelResult, CreateJobForm, ErrorBody, JobDetails, JobFailedFiles, JobInformation};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Params, PathId};
use crate::query::Query;
use crate::upload;

/// Jobs or files a list holds at most.
const MAX_LISTED: u32 = 10_000;
/// Files of a run that are told unless the request says how many.
const LISTED_FILES: u32 = 1_000;
/// Pages of files that one answer tells of.
const TOLD_PAGES: usize = 20_000;

/// Create a job from local files and a chain of nodes.
#[utoipa::path(post, path = "/jobs", tag = "jobs", operation_id = "create_job",
    request_body(content = CreateJobForm, content_type = "multipart/form-data"),
    responses((status = 200, body = JobInformation), (status = "4XX", body = ErrorBody), (status = "5XX", body = ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    Caller(principal): Caller,
    request: Request,
) -> ApiResult<Json<JobInformation>> {
    if let Err(wait) = app.engine.pass_create_gate(&principal).await? {
        let gap = app.config.limits.create_gap_ms;
        return Err(ApiError::new(
            Code::RateLimited,
            format!("jobs of one account must be created at least {gap} ms apart (setting `limits.create_gap_ms`)"),
        )
        .retry_after(wait.as_millis().div_ceil(1_000).max(1) as u64));
    }
    let form = upload::read(&app, principal.workspace, request).await?;
    let result = match read_request_data(&app, &principal, form.request_data.as_deref()) {
        Ok((chain, job_type)) => {
            let submission = Submission {
                chain,
                job_type,
                files: form.files.clone(),
            };
            app.engine.submit(&principal, submission).await.map_err(ApiError::from)
        }
        Err(error) => {
            upload::discard(&app, &form.files).await;
            return Err(error);
        }
    };
    // From a failed commit on nobody knows whether the job exists; its blobs stay, and go with the
    // garbage if it does not.
    Ok(Json(accepted(&app, &principal, result?).await))
}

/// The answer about a job that was just accepted. Nothing that goes wrong from here on makes it an error:
/// the client would send the job a second time.
pub(crate) async fn accepted(app: &App, principal: &Principal, accepted: Job) -> JobInformation {
    let job = match app.engine.store().job(principal.workspace, accepted.id).await {
        Ok(Some(job)) => job,
        Ok(None) => accepted,
        Err(error) => {
            tracing::warn!(%error, job.id = %accepted.id, "cannot read a job that was just accepted");
            accepted
        }
    };
    let mut information = JobInformation::from(job);
    information.not_ended();
    information
}

fn read_request_data(app: &App, principal: &Principal, text: Option<&str>) -> ApiResult<(NodeChain, JobType)> {
    let Some(text) = text else {
        return Err(ApiError::field(&["body", "request_data"], "missing", "field required"));
    };
    let value: Value = serde_json::from_str(text).map_err(|error| {
        ApiError::field(
            &["body", "request_data"],
            "json_invalid",
            format!("not valid JSON: {error}"),
        )
    })?;
    let Some(object) = value.as_object() else {
        return Err(ApiError::field(
            &["body", "request_data"],
            "dict_type",
            "input should be a JSON object",
        ));
    };
    let given = |name: &str| object.get(name).filter(|value| !value.is_null());
    let loc = [json!("body"), json!("request_data"), json!("job_nodes")];
    let (nodes, job_type, loc) = match (given("job_nodes"), given("template_id")) {
        (Some(nodes), None) => (nodes.clone(), JobType::Ephemeral, &loc[..]),
        (Some(nodes), Some(_)) if nodes.as_array().is_none_or(|nodes| !nodes.is_empty()) => {
            (nodes.clone(), JobType::Ephemeral, &loc[..])
        }
        (_, Some(Value::String(id))) => match template::find(id) {
            Some(template) => (template.nodes(), JobType::Template, &loc[..2]),
            None => {
                return Err(ApiError::field(
                    &["body", "request_data", "template_id"],
                    "value_error",
                    format!("Template {} not found", id.chars().take(64).collect::<String>()),
                ));
            }
        },
        (_, Some(_)) => {
            return Err(ApiError::field(
                &["body", "request_data", "template_id"],
                "string_type",
                "input should be a string",
            ));
        }
        (None, None) => {
            return Err(ApiError::field(
                &["body", "request_data", "job_nodes"],
                "missing",
                "either `job_nodes` or `template_id` is required",
            ));
        }
    };
    match app.engine.read_chain(principal.workspace, &nodes, &[], loc) {
        Ok((chain, _)) => Ok((chain, job_type)),
        Err(problems) => Err(ApiError::problems(Code::ChainInvalid, &problems)),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct ListParams {
    /// Only jobs of this workflow (UUID).
    workflow_id: Option<String>,
    /// Only jobs in this status; case, spaces, `-` and `_` don't matter.
    status: Option<String>,
}

/// List jobs, newest first (at most 10,000).
#[utoipa::path(get, path = "/jobs", tag = "jobs", operation_id = "list_jobs", params(ListParams),
    responses((status = 200, body = Vec<JobInformation>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    Params(params): Params<ListParams>,
) -> ApiResult<Json<Vec<JobInformation>>> {
    let filter = filter(&params).map_err(|problems| ApiError::problems(Code::ValidationFailed, &problems))?;
    let jobs = app.engine.store().jobs(principal.workspace, &filter).await?;
    Ok(Json(jobs.into_iter().map(JobInformation::from).collect()))
}

fn filter(params: &ListParams) -> Result<JobFilter, Vec<Problem>> {
    let mut filter = JobFilter {
        limit: MAX_LISTED,
        ..JobFilter::default()
    };
    let mut problems = Vec::new();
    if let Some(text) = params.workflow_id.as_deref().filter(|text| !text.is_empty()) {
        match text.parse() {
            Ok(id) => filter.workflow = Some(id),
            Err(_) => problems.push(Problem::new(
                &[json!("query"), json!("workflow_id")],
                "uuid_parsing",
                "input should be a UUID",
            )),
        }
    }
    if let Some(text) = params.status.as_deref().filter(|text| !text.is_empty()) {
        let word: String = text
            .chars()
            .map(|c| {
                if matches!(c, ' ' | '-') {
                    '_'
                } else {
                    c.to_ascii_uppercase()
                }
            })
            .collect();
        match JobStatus::parse(&word) {
            Some(status) => filter.status = Some(status),
            None => problems.push(Problem::new(
                &[json!("query"), json!("status")],
                "literal_error",
                "input should be scheduled, in progress, completed, stopped or failed",
            )),
        }
    }
    if problems.is_empty() { Ok(filter) } else { Err(problems) }
}

/// Get a job.
#[utoipa::path(get, path = "/jobs/{job_id}", tag = "jobs", operation_id = "get_job", params(("job_id" = String, Path)),
    responses((status = 200, body = JobInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(id): PathId<JobId>,
) -> ApiResult<Json<JobInformation>> {
    Ok(Json(find(&app, &principal, id).await?.into()))
}

/// Get a job's progress, file by file.
#[utoipa::path(get, path = "/jobs/{job_id}/details", tag = "jobs", operation_id = "get_job_details",
    params(("job_id" = String, Path),
        ("offset" = Option<u64>, Query, description = "Files to leave out at the start; 0 by default."),
        ("limit" = Option<u32>, Query, description = "Files to tell at most, 1 to 10000; by default all, of a run that reads from sources 1000.")),
    responses((status = 200, body = JobDetails), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn details(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(id): PathId<JobId>,
    query: Query,
) -> ApiResult<Json<JobDetails>> {
    let (offset, limit) = page(query)?;
    let job = find(&app, &principal, id).await?;
    let wanted = FilePage {
        failed_only: false,
        offset,
        limit: limit.unwrap_or(LISTED_FILES),
    };
    // Counts of nodes come from all files, where there can't be too many.
    let read = if job.from_sources { wanted } else { FilePage::ALL };
    let files = files(&app, &principal, id, read).await?;
    let mut details = JobDetails::new(&job, &files, app.engine.running());
    if job.chain.free() < job.chain.nodes().len() {
        let store = app.engine.store();
        let ids: Vec<_> = files.iter().map(|file| file.id).collect();
        let nodes = store.job_costs(principal.workspace, id).await?;
        let of_files = store.file_costs(principal.workspace, id, &ids).await?;
        details = details.with_costs(&job, nodes, of_files);
    }
    if !job.from_sources {
        details = details.page(offset, limit.unwrap_or(u32::MAX));
    }
    let shown = if job.from_sources {
        0
    } else {
        usize::try_from(offset).unwrap_or(usize::MAX)
    };
    let shown: Vec<_> = files
        .iter()
        .skip(shown)
        .take(details.count())
        .map(|file| file.id)
        .collect();
    let routes = app
        .engine
        .store()
        .page_routes(principal.workspace, id, &shown, TOLD_PAGES)
        .await?;
    Ok(Json(details.with_routes(routes)))
}

/// Get the files of a job that failed, with the reasons.
#[utoipa::path(get, path = "/jobs/{job_id}/failed-files", tag = "jobs", operation_id = "get_job_failed_files",
    params(("job_id" = String, Path),
        ("offset" = Option<u64>, Query, description = "Files to leave out at the start; 0 by default."),
        ("limit" = Option<u32>, Query, description = "Files to tell at most, 1 to 10000 (default).")),
    responses((status = 200, body = JobFailedFiles), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn failed_files(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(id): PathId<JobId>,
    query: Query,
) -> ApiResult<Json<JobFailedFiles>> {
    let (offset, limit) = page(query)?;
    let page = FilePage {
        failed_only: true,
        offset,
        limit: limit.unwrap_or(MAX_LISTED),
    };
    Ok(Json(files(&app, &principal, id, page).await?.into()))
}

/// `offset` and `limit` of a list of files.
fn page(mut query: Query) -> ApiResult<(u64, Option<u32>)> {
    let offset = query.integer("offset", 0, u32::MAX.into());
    let limit = query.integer("limit", 1, MAX_LISTED.into());
    query.finish()?;
    let limit = limit.map(|limit| u32::try_from(limit).unwrap_or(MAX_LISTED));
    Ok((offset.unwrap_or(0), limit))
}

async fn files(app: &App, principal: &Principal, id: JobId, page: FilePage) -> ApiResult<Vec<JobFile>> {
    let files = app.engine.store().job_files(principal.workspace, id, page).await?;
    files.ok_or_else(job_not_found)
}

/// Cancel a job. One that has ended stays as it is.
#[utoipa::path(post, path = "/jobs/{job_id}/cancel", tag = "jobs", operation_id = "cancel_job",
    params(("job_id" = String, Path)),
    responses((status = 200, body = CancelResult), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(id): PathId<JobId>,
) -> ApiResult<Json<CancelResult>> {
    let before = app
        .engine
        .stop_job(principal.workspace, id)
        .await?
        .ok_or_else(job_not_found)?;
    let (status, message) = if before.is_terminal() {
        (before.to_string(), "Job had already ended.".to_owned())
    } else {
        ("cancelled".to_owned(), "Job successfully cancelled.".to_owned())
    };
    Ok(Json(CancelResult {
        id: id.to_string(),
        status,
        message,
    }))
}

/// Run the failed files of an ended job again, as a new job.
#[utoipa::path(post, path = "/jobs/{job_id}/retry", tag = "jobs", operation_id = "retry_job",
    params(("job_id" = String, Path)),
    responses((status = 200, body = JobInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn retry(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(id): PathId<JobId>,
) -> ApiResult<Json<JobInformation>> {
    let retried = app
        .engine
        .retry_job(&principal, id)
        .await
        .map_err(|error| match error {
            RetryError::NotFound => job_not_found(),
            RetryError::NotEnded | RetryError::NothingFailed | RetryError::TooMany => {
                ApiError::new(Code::JobStateConflict, error.to_string())
            }
            RetryError::WorkflowGone | RetryError::WorkflowInactive => {
                ApiError::new(Code::WorkflowStateConflict, error.to_string())
            }
            RetryError::Store(error) => error.into(),
        })?;
    Ok(Json(accepted(&app, &principal, retried).await))
}

/// Delete an ended job with its files and outputs.
#[utoipa::path(delete, path = "/jobs/{job_id}", tag = "jobs", operation_id = "delete_job",
    params(("job_id" = String, Path)),
    responses((status = 200, description = "Deleted; the body is an empty object."), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(id): PathId<JobId>,
) -> ApiResult<Json<Value>> {
    match app.engine.delete_job(principal.workspace, id).await? {
        DeleteOutcome::Deleted => Ok(Json(json!({}))),
        DeleteOutcome::NotFound => Err(job_not_found()),
        DeleteOutcome::NotEnded => Err(ApiError::new(
            Code::JobStateConflict,
            "the job has not ended; cancel it first",
        )),
    }
}

pub(crate) fn job_not_found() -> ApiError {
    ApiError::not_found("Job")
}

async fn find(app: &App, principal: &Principal, id: JobId) -> ApiResult<Job> {
    app.engine
        .store()
        .job(principal.workspace, id)
        .await?
        .ok_or_else(job_not_found)
}
