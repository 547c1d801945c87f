//! What doubles of HTTP services share: a server that can be taken down with all its connections, and
//! that can be told to fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// A request, read to its end.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Parameters of the query, decoded, in order.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    /// A header's text; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Whether the query has just these parameters.
    pub(crate) fn asks(&self, wanted: &[(&str, &str)]) -> bool {
        let query = self.query.iter().map(|(name, value)| (&**name, &**value));
        query.eq(wanted.iter().copied())
    }

    /// The body as JSON; a body of another kind is refused.
    pub(crate) fn json(&self) -> Result<Value, Box<Response>> {
        if self.header("content-type") != "application/json" {
            return Err(Box::new(answer(
                406,
                "{\"error\":\"Content-Type header is not supported\"}",
            )));
        }
        serde_json::from_slice(&self.body).map_err(|error| Box::new(answer(400, &error.to_string())))
    }
}

/// An answer.
pub(crate) fn answer(status: u16, body: &str) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("content-type", "application/json")], body.to_owned()).into_response()
}

/// What a service does with a request.
pub(crate) trait Service: Send + Sync + 'static {
    fn handle(&self, asked: &Asked) -> Response;
}

/// Answers to give instead of the service's own, each once: status, headers, body.
pub(crate) type Script = Arc<Mutex<VecDeque<(u16, Vec<(&'static str, &'static str)>, &'static str)>>>;

/// A service on a port.
pub(crate) struct Double<S> {
    pub(crate) service: Arc<S>,
    pub(crate) script: Script,
    pub(crate) port: u16,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl<S: Service> Double<S> {
    pub(crate) async fn start(service: S) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let double = Self {
            service: Arc::new(service),
            script: Script::default(),
            port: listener.local_addr().unwrap().port(),
            running: Mutex::default(),
        };
        double.run(listener);
        double
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Takes the server up, or down with every connection.
    pub(crate) async fn power(&self, on: bool) {
        if on {
            self.run(TcpListener::bind(("127.0.0.1", self.port)).await.unwrap());
        } else {
            let running = self.running.lock().unwrap().take().expect("a running server");
            running.abort();
            let _ = running.await;
        }
    }

    /// Answers the next request otherwise.
    pub(crate) fn next(&self, status: u16, headers: &[(&'static str, &'static str)], body: &'static str) {
        self.script.lock().unwrap().push_back((status, headers.to_vec(), body));
    }

    fn run(&self, listener: TcpListener) {
        let (service, script) = (Arc::clone(&self.service), Arc::clone(&self.script));
        let router = Router::new().fallback(move |request: Request| {
            let (service, script) = (Arc::clone(&service), Arc::clone(&script));
            async move {
                let asked = read(request).await;
                let scripted = script.lock().unwrap().pop_front();
                match scripted {
                    None => service.handle(&asked),
                    Some((status, headers, body)) => {
                        let mut answer = Response::builder().status(status);
                        for (name, value) in headers {
                            answer = answer.header(name, value);
                        }
                        answer.body(Body::from(body)).unwrap()
                    }
                }
            }
        });
        let task = tokio::spawn(async move {
            // Dropped with the task, and every connection with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(router.clone());
                connections.spawn(async move {
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        *self.running.lock().unwrap() = Some(task);
    }
}

async fn read(request: Request) -> Asked {
    let (parts, body) = request.into_parts();
    let url = url::Url::parse(&format!("http://x{}", parts.uri)).unwrap();
    let pairs = url.query_pairs().into_owned();
    Asked {
        method: parts.method,
        path: url.path().to_owned(),
        query: pairs.collect(),
        headers: parts.headers,
        body: to_bytes(body, 64 << 20).await.unwrap(),
    }
}
