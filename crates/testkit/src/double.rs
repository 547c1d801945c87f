//! A double of somebody else's HTTP service: takes exactly what it is told to expect.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// A request, read to its end.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method.
    pub method: String,
    /// As it was sent.
    pub path: String,
    /// Without the question mark; empty if there is none.
    pub query: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Asked {
    /// A header's text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Checks everything but the body of a JSON request: `headers` are all that may come beside the usual.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn is(&self, path: &str, query: &str, headers: &[(&str, &str)]) -> Result<(), String> {
        let line = format!("{} {}?{}", self.method, self.path, self.query);
        let wanted = format!("POST {path}?{query}");
        if line != wanted {
            return Err(format!("{line} is not {wanted}"));
        }
        let usual = ["host", "content-length", "user-agent"];
        for name in self.headers.keys() {
            let known = headers.iter().any(|(known, _)| *known == name.as_str());
            if !known && !usual.contains(&name.as_str()) && !["content-type", "accept"].contains(&name.as_str()) {
                return Err(format!("header {name} is not known"));
            }
        }
        let json = [("content-type", "application/json"), ("accept", "application/json")];
        for (name, value) in headers.iter().chain(&json) {
            if self.header(name) != *value {
                return Err(format!("header {name} is `{}`", self.header(name)));
            }
        }
        if !self.header("user-agent").starts_with("docmill/") {
            return Err("who is it?".into());
        }
        Ok(())
    }

    /// The fields of the body.
    ///
    /// # Errors
    /// It is no JSON object.
    pub fn json(&self) -> Result<Fields, String> {
        let value: Value = serde_json::from_slice(&self.body).map_err(|error| error.to_string())?;
        Fields::of(value)
    }
}

/// Fields of an object, each to be taken once.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// The fields of a value.
    ///
    /// # Errors
    /// It is no object.
    pub fn of(value: Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            other => Err(format!("{other} is no object")),
        }
    }

    /// Takes a field.
    ///
    /// # Errors
    /// It is not there.
    pub fn take(&mut self, name: &str) -> Result<Value, String> {
        self.0.remove(name).ok_or_else(|| format!("field {name} is missing"))
    }

    /// The field must be there with this value.
    ///
    /// # Errors
    /// It is not.
    pub fn equals(&mut self, name: &str, wanted: Value) -> Result<(), String> {
        let found = self.take(name)?;
        if found == wanted {
            return Ok(());
        }
        Err(format!("field {name} is {found}, not {wanted}"))
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// Something is.
    pub fn done(self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("field {name} is not known")),
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: String,
}

impl Reply {
    /// 200 with a JSON body.
    pub fn json(body: Value) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    /// Another status, with a body.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// The same with a header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What is known of the requests so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Requests.
    pub count: AtomicUsize,
    under_way: AtomicUsize,
    /// Most requests that were under way at a time.
    pub most_under_way: AtomicUsize,
    /// The requests that were answered.
    pub asked: Mutex<Vec<Asked>>,
}

/// A server on a port.
#[derive(Debug)]
pub struct Double {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    /// What it has seen.
    pub seen: Arc<Seen>,
}

type Handler = dyn Fn(&Asked, usize) -> Result<Reply, String> + Send + Sync;

impl Double {
    /// `handler` gets each request and its number from 0; what it refuses is answered with 400.
    pub async fn start(handler: impl Fn(&Asked, usize) -> Result<Reply, String> + Send + Sync + 'static) -> Self {
        Self::slow(Duration::ZERO, handler).await
    }

    /// The same, with every answer that much later.
    pub async fn slow(
        delay: Duration,
        handler: impl Fn(&Asked, usize) -> Result<Reply, String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a working double");
        let url = format!("http://{}", listener.local_addr().expect("a working double"));
        let seen = Arc::new(Seen::default());
        let handler: Arc<Handler> = Arc::new(handler);
        let state = Arc::clone(&seen);
        let router = Router::new().fallback(move |request: Request| {
            let (seen, handler) = (Arc::clone(&state), Arc::clone(&handler));
            async move {
                let asked = read(request).await;
                let now = seen.under_way.fetch_add(1, Ordering::SeqCst) + 1;
                seen.most_under_way.fetch_max(now, Ordering::SeqCst);
                let number = seen.count.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(delay).await;
                let reply = handler(&asked, number).unwrap_or_else(|why| {
                    Reply::status(400, json!({"error": {"message": format!("double: {why}")}}).to_string())
                });
                seen.asked.lock().expect("a working double").push(asked);
                seen.under_way.fetch_sub(1, Ordering::SeqCst);
                respond(reply)
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }

    /// How many requests came.
    pub fn count(&self) -> usize {
        self.seen.count.load(Ordering::SeqCst)
    }
}

async fn read(request: Request) -> Asked {
    let (parts, body) = request.into_parts();
    Asked {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body: to_bytes(body, 64 << 20).await.expect("a working double").to_vec(),
    }
}

fn respond(reply: Reply) -> Response {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).expect("a working double");
    for (name, value) in reply.headers {
        response
            .headers_mut()
            .insert(name, value.parse().expect("a working double"));
    }
    response
}
