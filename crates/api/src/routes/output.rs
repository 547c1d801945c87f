//! Download of outputs.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use docmill_model::Code;
use docmill_model::ids::{FileId, JobId, NodeId};
use docmill_model::job::TaskState;
use docmill_store::{FilePage, StoreError};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::App;
use crate::auth::Caller;
use crate::dto::ErrorBody;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Params, PathId};
use crate::filename::attachment;
use crate::routes::jobs::job_not_found;

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct DownloadParams {
    /// Id of the file: one of `input_file_ids`, or a `file_id` of `output_node_files`.
    #[param(required = true)]
    file_id: Option<String>,
    /// Id of the node whose output is wanted; the last node's by default.
    node_id: Option<String>,
}

/// Download the output of one file: a JSON array of elements.
#[utoipa::path(get, path = "/jobs/{job_id}/download", tag = "jobs", operation_id = "download_job_output",
    params(("job_id" = String, Path), DownloadParams),
    responses((status = 200, description = "Elements", content_type = "application/json"), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn download(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(job): PathId<JobId>,
    Params(params): Params<DownloadParams>,
) -> ApiResult<Response> {
    let Some(file_id) = params.file_id.as_deref().filter(|text| !text.is_empty()) else {
        return Err(ApiError::field(&["query", "file_id"], "missing", "field required"));
    };
    let file: FileId = file_id.parse().map_err(|_| ApiError::not_found("File"))?;
    let node: Option<NodeId> = match params.node_id.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => Some(text.parse().map_err(|_| ApiError::not_found("Node"))?),
        None => None,
    };
    let store = app.engine.store();
    let Some(output) = store.output(principal.workspace, job, file, node).await? else {
        return Err(why_missing(&app, &principal, job, file).await?);
    };
    let stream = match app.engine.blobs().stream(&output.blob_key).await {
        // The job was deleted between the two looks.
        Err(StoreError::BlobMissing(_)) => return Err(job_not_found()),
        stream => stream?,
    };
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, output.size.into());
    if let Ok(value) = HeaderValue::from_str(&attachment(&format!("{}.json", output.file_name))) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// Why there is no output.
async fn why_missing(app: &App, principal: &docmill_store::Principal, job: JobId, file: FileId) -> ApiResult<ApiError> {
    let store = app.engine.store();
    let record = store.job(principal.workspace, job).await?.ok_or_else(job_not_found)?;
    if record.from_sources {
        // Among a million files this one is not looked for.
        return Ok(ApiError::new(
            Code::OutputNotReady,
            "the run has no such output: the file is not done, or failed, or its output went to the workflow's \
             destinations, and then none is kept for download",
        ));
    }
    let files = store.job_files(principal.workspace, job, FilePage::ALL).await?;
    let files = files.ok_or_else(job_not_found)?;
    let Some(file) = files.iter().find(|f| f.id == file) else {
        return Ok(ApiError::not_found("File"));
    };
    Ok(match (file.state, &file.error) {
        (TaskState::Succeeded, _) if !record.destinations.is_empty() => ApiError::new(
            Code::OutputNotReady,
            "the file's output went to the workflow's destinations, and none is kept for download",
        ),
        (TaskState::Succeeded, _) => ApiError::not_found("Node"),
        (_, Some((code, message))) => ApiError::new(
            Code::OutputNotReady,
            format!("the file has no output: it failed with {code}: {message}"),
        ),
        (state, None) => ApiError::new(Code::OutputNotReady, format!("the file has no output: it is {state}")),
    })
}
