//! A provider's double: takes exactly what it is told to expect.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use docmill_egress::{Egress, Policy};
use docmill_providers::{
    ChatRequest, Image, ImageType, JsonSchema, Message, Part, Provider, ProviderSettings, Providers, Secret,
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// A key that may appear nowhere.
pub(crate) const KEY: &str = "sk-test-0123456789abcdefghij";

/// A request, read to its end.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// As it was sent.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Checks everything but the body of a JSON request: `headers` are all that may come beside the usual.
    pub(crate) fn is(&self, path: &str, query: &str, headers: &[(&str, &str)]) -> Result<(), String> {
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

    pub(crate) fn json(&self) -> Result<Fields, String> {
        let value: Value = serde_json::from_slice(&self.body).map_err(|error| error.to_string())?;
        Fields::of(value)
    }
}

/// Fields of an object, each to be taken once.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn of(value: Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            other => Err(format!("{other} is no object")),
        }
    }

    pub(crate) fn take(&mut self, name: &str) -> Result<Value, String> {
        self.0.remove(name).ok_or_else(|| format!("field {name} is missing"))
    }

    /// The field must be there with this value.
    pub(crate) fn equals(&mut self, name: &str, wanted: Value) -> Result<(), String> {
        let found = self.take(name)?;
        if found == wanted {
            return Ok(());
        }
        Err(format!("field {name} is {found}, not {wanted}"))
    }

    /// Nothing may be left.
    pub(crate) fn done(self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("field {name} is not known")),
        }
    }
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(body: Value) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    pub(crate) fn status(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What is known of the requests so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) count: AtomicUsize,
    under_way: AtomicUsize,
    pub(crate) most_under_way: AtomicUsize,
    pub(crate) asked: Mutex<Vec<Asked>>,
}

/// A server on a port.
pub(crate) struct Double {
    pub(crate) url: String,
    pub(crate) seen: Arc<Seen>,
}

type Handler = dyn Fn(&Asked, usize) -> Result<Reply, String> + Send + Sync;

impl Double {
    /// `handler` gets each request and its number from 0; what it refuses is answered with 400.
    pub(crate) async fn start(
        handler: impl Fn(&Asked, usize) -> Result<Reply, String> + Send + Sync + 'static,
    ) -> Self {
        Self::slow(Duration::ZERO, handler).await
    }

    pub(crate) async fn slow(
        delay: Duration,
        handler: impl Fn(&Asked, usize) -> Result<Reply, String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
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
                seen.asked.lock().unwrap().push(asked);
                seen.under_way.fetch_sub(1, Ordering::SeqCst);
                respond(reply)
            }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }

    pub(crate) fn count(&self) -> usize {
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
        body: to_bytes(body, 64 << 20).await.unwrap().to_vec(),
    }
}

fn respond(reply: Reply) -> Response {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// A guard that lets tests reach doubles.
pub(crate) fn egress() -> Egress {
    Egress::new(Policy {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        allow_http: true,
        ca_file: None,
    })
}

/// Settings for tests: short waits.
pub(crate) fn settings(base_url: &str) -> ProviderSettings {
    ProviderSettings {
        base_url: Some(base_url.to_owned()),
        api_key: Some(Secret::new(KEY)),
        timeout_secs: 5,
        retry_base_millis: 1,
        ..ProviderSettings::default()
    }
}

pub(crate) fn providers(name: Provider, settings: ProviderSettings) -> Providers {
    Providers::new(egress(), BTreeMap::from([(name, settings)]))
}

/// A request with everything in it: a system text, turns, an image and a schema.
pub(crate) fn full() -> ChatRequest {
    ChatRequest {
        system: Some("Be brief.".into()),
        messages: vec![
            Message::user(vec![Part::Text("Hello".into())]),
            Message::assistant("Hi"),
            Message::user(vec![
                Part::Text("What is \"this\"?\n".into()),
                Part::Image(Image::new(ImageType::Png, b"\x89PNG fake")),
            ]),
        ],
        schema: Some(schema()),
        max_tokens: 77,
        temperature: Some(0.1),
    }
}

pub(crate) fn schema() -> JsonSchema {
    JsonSchema {
        name: "description".into(),
        schema: schema_value(),
        strict: true,
    }
}

pub(crate) fn schema_value() -> Value {
    json!({
        "type": "object",
        "properties": {"type": {"type": "string"}},
        "required": ["type"],
        "additionalProperties": false,
    })
}

/// What [`full`]'s image is in base64.
pub(crate) const PNG: &str = "iVBORyBmYWtl";

pub(crate) fn simple(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![Message::user(vec![Part::Text(text.into())])],
        max_tokens: 10,
        ..ChatRequest::default()
    }
}

pub(crate) fn texts(count: usize) -> Vec<String> {
    (0..count).map(|place| format!("text {place}")).collect()
}

/// A vector that tells which text it is of.
pub(crate) fn vector(text: &Value, dims: usize) -> Vec<f32> {
    let place: f32 = text.as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let mut vector = vec![0.25; dims];
    vector[0] = place;
    vector
}

pub(crate) fn in_order(vectors: &[Vec<f32>], dims: usize) {
    for (place, vector) in vectors.iter().enumerate() {
        assert_eq!((vector[0], vector.len()), (place as f32, dims));
    }
}
