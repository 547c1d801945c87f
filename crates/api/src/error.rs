//! Errors as answers.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use docmill_model::Code;
use docmill_model::chain::Problem;
use docmill_model::time::Micros;
use docmill_store::StoreError;
use serde_json::{Value, json};

/// An error to answer with. The body gets its request id on the way out, see [`with_request_id`].
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    detail: Value,
    retry_after_secs: Option<u64>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: Value::String(detail.into()),
            retry_after_secs: None,
        }
    }

    /// Problems with the request's fields or chain.
    pub(crate) fn problems(code: Code, problems: &[Problem]) -> Self {
        Self {
            code,
            detail: json!(problems),
            retry_after_secs: None,
        }
    }

    /// One problem with one field.
    pub(crate) fn field(loc: &[&str], kind: &'static str, msg: impl Into<String>) -> Self {
        let loc: Vec<Value> = loc.iter().map(|part| json!(part)).collect();
        Self::problems(Code::ValidationFailed, &[Problem::new(&loc, kind, msg)])
    }

    pub(crate) fn retry_after(mut self, secs: u64) -> Self {
        self.retry_after_secs = Some(secs);
        self
    }

    /// How long to wait, in whole seconds.
    pub(crate) fn wait(self, micros: Micros) -> Self {
        let secs = u64::try_from(micros).unwrap_or(0).div_ceil(1_000_000);
        self.retry_after(secs.max(1))
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_)
            | StoreError::CommitFailed(_)
            | StoreError::Blob(_)
            | StoreError::BlobFiles(_)
            | StoreError::BlobMissing(_)
            | StoreError::Open(_) => {
                tracing::error!(error = %chain(&error), "the store failed");
                Self::new(Code::StorageUnavailable, "the data can't be read or written now").retry_after(5)
            }
            StoreError::Closed => Self::new(Code::ShuttingDown, "the server is shutting down").retry_after(5),
            StoreError::KeyTaken(key) => Self::new(Code::KeyTaken, format!("the key `{key}` is taken")),
            StoreError::WorkflowGone(_) => Self::not_found("Workflow"),
            StoreError::WorkflowInactive(_) => Self::new(Code::WorkflowStateConflict, "the workflow is inactive"),
            StoreError::RunActive(job) => Self::new(
                Code::WorkflowStateConflict,
                format!("the workflow's last run, job {job}, has not ended; wait for its end, or cancel it"),
            ),
            StoreError::ConnectorGone(_) => Self::new(Code::ValidationFailed, "there is no such connector"),
            StoreError::Conflict => Self::new(
                Code::WorkflowStateConflict,
                "the workflow was changed by others at the same time; nothing of this change was done",
            ),
            StoreError::NameTaken(_) | StoreError::LeaseLost | StoreError::OriginalGone(_) | StoreError::Corrupt(_) => {
                tracing::error!(error = %chain(&error), "unexpected store error");
                Self::new(Code::Internal, "Internal server error")
            }
        }
    }
}

/// An error with all its causes, for the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Gives every answer its request id, and every error its body.
pub(crate) fn with_request_id(response: Response, request_id: &str) -> Response {
    let error = response.extensions().get::<ApiError>().cloned();
    let mut response = match error {
        Some(error) => {
            let mut answer = error_body(&error, request_id);
            // Set by the router on 405.
            if let Some(allow) = response.headers().get(header::ALLOW) {
                answer.headers_mut().insert(header::ALLOW, allow.clone());
            }
            answer
        }
        None => response,
    };
    if let Ok(value) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}

fn error_body(error: &ApiError, request_id: &str) -> Response {
    let mut body = json!({
        "detail": error.detail,
        "code": error.code,
        "hint": error.code.hint(),
        "request_id": request_id,
    });
    if error.status().is_server_error() {
        body["retryable"] = error.code.retryable().into();
    }
    let mut response = (error.status(), Json(body)).into_response();
    if let Some(secs) = error.retry_after_secs {
        response.headers_mut().insert(header::RETRY_AFTER, secs.into());
    }
    if error.code.status() == 401 {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
