//! The server: the router with its layers, the accept loop, shutdown.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, Request, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use docmill_engine::{Engine, UNSUBSCRIBE_PATH};
use docmill_model::Code;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use uuid::Uuid;

use crate::auth::{SeenKeys, TokenSigner};
use crate::error::{ApiError, with_request_id};
use crate::path::canonical;
use crate::routes::{service, unsubscribe};
use crate::tap::Tap;
use crate::{ApiConfig, App};

/// The router over an engine.
pub fn app(engine: Engine, config: ApiConfig, tokens: TokenSigner, metrics: PrometheusHandle) -> Router {
    let app = App {
        engine,
        config: Arc::new(config),
        tokens: Arc::new(tokens),
        metrics,
        seen: Arc::new(SeenKeys::default()),
    };
    let (router, _) = crate::openapi::routes().split_for_parts();
    router
        .route("/openapi.json", get(service::openapi))
        .route(
            &format!("{UNSUBSCRIBE_PATH}{{token}}"),
            get(unsubscribe::page).post(unsubscribe::stop),
        )
        .route("/docs", get(service::docs_page))
        .route("/docs/{file}", get(service::docs_asset))
        .fallback(|| async { ApiError::new(Code::NotFound, "Not Found") })
        .method_not_allowed_fallback(|| async { ApiError::new(Code::MethodNotAllowed, "Method Not Allowed") })
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(|_| {
            ApiError::new(Code::Internal, "Internal server error").into_response()
        }))
        .with_state(app)
}

/// Answers one request: finds the route for its path in any spelling, and gives the answer its request
/// id, its headers and, when it is an error, its body.
async fn answer(router: Router, mut request: Request<hyper::body::Incoming>) -> Result<Response, Infallible> {
    let request_id = Uuid::now_v7().to_string();
    let method = request.method().clone();
    let path = canonical(request.uri().path()).to_owned();
    let uri = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.clone(),
    };
    let original = request.uri().clone();
    if let Ok(uri) = Uri::try_from(uri) {
        *request.uri_mut() = uri;
    }
    request.extensions_mut().insert(axum::extract::OriginalUri(original));
    let expects = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let tap = Tap::new(body, expects);
    let request = Request::from_parts(parts, Body::new(tap.clone()));
    let span =
        tracing::info_span!("request", request.id = %request_id, http.method = %method, http.path = %loggable(&path));
    let started = std::time::Instant::now();
    let response = async {
        let response = match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status().as_u16();
        let code = response.extensions().get::<ApiError>().map(|error| error.code.as_str());
        tracing::info!(
            http.status = status,
            error.code = code,
            duration_ms = started.elapsed().as_millis() as u64,
            "answered"
        );
        metrics::counter!("docmill_http_requests_total", "status" => status.to_string()).increment(1);
        metrics::histogram!("docmill_http_request_seconds").record(started.elapsed().as_secs_f64());
        response
    }
    .instrument(span)
    .await;
    let gave_up = |error: &ApiError| error.code == Code::RequestTimeout;
    if response.status().as_u16() >= 400 && !response.extensions().get().is_some_and(gave_up) {
        tap.drain().await;
    }
    let mut response = with_request_id(response, &request_id);
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// The path for the log: the token in an unsubscribe link is the right to stop a channel's mails.
fn loggable(path: &str) -> &str {
    match path.starts_with(UNSUBSCRIBE_PATH) {
        true => UNSUBSCRIBE_PATH,
        false => path,
    }
}

/// Accepts connections until `shutdown` resolves, then lets open requests end for up to `grace`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    shutdown: impl Future<Output = ()>,
    grace: Duration,
) {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout);
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: others must end first.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        // Answers are small and must not wait for more to send.
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = hyper::service::service_fn(move |request| answer(router.clone(), request));
        let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended with an error");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("closing connections that did not end in time");
    }
}
