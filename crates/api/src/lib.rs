//! The HTTP edge: routes, authentication, form reading, answers. No logic of jobs lives here.

mod auth;
mod body;
mod definition;
mod dto;
mod error;
mod extract;
mod filename;
mod openapi;
mod path;
mod query;
mod routes;
mod serve;
mod tap;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use docmill_engine::Engine;
use docmill_sandbox::Report;
use metrics_exporter_prometheus::PrometheusHandle;

pub use auth::TokenSigner;
pub use openapi::document as openapi;
pub use serve::{app, serve};

/// What the edge needs to know.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// Request headers an API key is taken from, lower case, in order of preference.
    pub key_headers: Vec<String>,
    /// Whether the list of workflows asks for `Authorization: Bearer`.
    pub require_bearer_for_workflows: bool,
    /// How long an access token lives.
    pub token_lifetime: Duration,
    /// Limits of requests.
    pub limits: RequestLimits,
    /// Limits told by `GET /limits` that other parts enforce: `(name, value)`.
    pub other_limits: Vec<(&'static str, u64)>,
    /// What isolates child processes.
    pub sandbox: Report,
    /// Time for a request's header, and between two pieces of its body.
    pub idle_timeout: Duration,
    /// Time for a whole request.
    pub request_timeout: Duration,
}

/// Limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Files of one job.
    pub max_files_per_job: usize,
    /// Bytes of one file.
    pub max_file_bytes: u64,
    /// Least time between two jobs of an account, in milliseconds.
    pub create_gap_ms: u64,
    /// Local-file jobs of an account that run at once.
    pub max_running_local_jobs: u32,
}

/// State of the routes.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) config: Arc<ApiConfig>,
    pub(crate) tokens: Arc<TokenSigner>,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) seen: Arc<auth::SeenKeys>,
}
