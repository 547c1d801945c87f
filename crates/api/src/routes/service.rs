//! The service itself: limits, tokens, health, metrics, documentation.

use std::sync::Arc;

use axum::Json;
use axum::extract::{OriginalUri, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use docmill_engine::now;
use docmill_model::Code;
use docmill_model::time::SECOND;
use serde_json::{Value, json};
use utoipa_swagger_ui::Config;

use crate::App;
use crate::auth::Caller;
use crate::dto::{AccessToken, ErrorBody};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathText;

/// Get the limits of this server. Most are settings of the same name under `limits`; those of notifications are
/// settings under `channels` and `mail`.
#[utoipa::path(get, path = "/limits", tag = "service", operation_id = "get_limits",
    responses((status = 200, description = "Object of numbers by setting name"), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn limits(State(app): State<App>, _caller: Caller) -> Json<Value> {
    let limits = &app.config.limits;
    let mut answer = json!({
        "max_files_per_job": limits.max_files_per_job,
        "max_file_bytes": limits.max_file_bytes,
        "create_gap_ms": limits.create_gap_ms,
        "max_running_local_jobs": limits.max_running_local_jobs,
    });
    for (name, value) in &app.config.other_limits {
        answer[*name] = (*value).into();
    }
    Json(answer)
}

/// Exchange an API key for an access token.
#[utoipa::path(post, path = "/auth/token", tag = "service", operation_id = "create_access_token",
    responses((status = 200, body = AccessToken), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn token(State(app): State<App>, Caller(principal): Caller) -> ApiResult<Json<AccessToken>> {
    let lifetime = app.config.token_lifetime;
    let access_token = app
        .tokens
        .sign(&principal, lifetime, now())
        .ok_or_else(|| ApiError::new(Code::Internal, "Internal server error"))?;
    Ok(Json(AccessToken {
        access_token,
        token_type: "bearer",
        expires_in: lifetime.as_secs(),
    }))
}

/// Whether the process runs.
#[utoipa::path(get, path = "/livez", tag = "service", operation_id = "livez",
    responses((status = 200, description = "The process runs")))]
pub(crate) async fn livez() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Whether the server can take jobs: store and blobs can be written; and what isolates child processes.
#[utoipa::path(get, path = "/readyz", tag = "service", operation_id = "readyz",
    responses((status = 200, description = "Ready"), (status = 503, description = "Not ready; the body says why")))]
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    let store = app.engine.store().check_writable().await;
    let probe = "probe/readyz";
    let blobs = app.engine.blobs().put(probe, "ok".into()).await;
    let ready = store.is_ok() && blobs.is_ok();
    let word = |ok: bool| if ok { "ok" } else { "unavailable" };
    let body = json!({
        "status": if ready { "ready" } else { "not ready" },
        "store": word(store.is_ok()),
        "blobs": word(blobs.is_ok()),
        "sandbox": app.config.sandbox,
        "slots": app.engine.slots(),
    });
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(body)).into_response()
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "service", operation_id = "metrics",
    responses((status = 200, description = "Prometheus text format", content_type = "text/plain")))]
pub(crate) async fn metrics(State(app): State<App>) -> ApiResult<Response> {
    let stats = app.engine.store().stats(now()).await?;
    metrics::gauge!("docmill_jobs", "status" => "scheduled").set(stats.jobs_scheduled as f64);
    metrics::gauge!("docmill_jobs", "status" => "in_progress").set(stats.jobs_in_progress as f64);
    metrics::gauge!("docmill_files", "state" => "ready").set(stats.files_ready as f64);
    metrics::gauge!("docmill_files", "state" => "running").set(stats.files_running as f64);
    metrics::gauge!("docmill_oldest_ready_file_seconds").set(stats.oldest_ready_age as f64 / SECOND as f64);
    app.metrics.run_upkeep();
    Ok((
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        app.metrics.render(),
    )
        .into_response())
}

/// The OpenAPI document.
pub(crate) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(crate::openapi())
}

/// The API reference page.
pub(crate) async fn docs_page(OriginalUri(uri): OriginalUri) -> ApiResult<Response> {
    let Html(page) = Html(docs_file("index.html")?.1);
    let page = String::from_utf8_lossy(&page);
    // The page's links are relative to `/docs/`, and the page answers without the slash too.
    let base = if uri.path().ends_with('/') { "./" } else { "docs/" };
    Ok(Html(page.replacen("<head>", &format!("<head><base href=\"{base}\">"), 1)).into_response())
}

/// A file of the API reference page.
pub(crate) async fn docs_asset(PathText(name): PathText) -> ApiResult<Response> {
    let (content_type, bytes) = docs_file(&name)?;
    Ok(([(header::CONTENT_TYPE, content_type)], bytes).into_response())
}

fn docs_file(name: &str) -> ApiResult<(String, Vec<u8>)> {
    // The validator badge would call an outside service.
    let config = Arc::new(
        Config::from("../openapi.json")
            .validator_url("none")
            .try_it_out_enabled(true),
    );
    match utoipa_swagger_ui::serve(name, config) {
        Ok(Some(file)) => Ok((file.content_type, file.bytes.into_owned())),
        _ => Err(ApiError::not_found("Page")),
    }
}
