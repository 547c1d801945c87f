//! Object stores: s3 against moto, azure against Azurite, gcs against an emulator. The services' own clients
//! write what the connectors read and read what they write.

mod azure;
mod gcs;
mod pages;
mod s3;

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docmill_connectors::{Destination, Document, Source, object_name};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use super::conformance::destinations::DestinationRig;
use super::conformance::sources::SourceRig;
use super::conformance::{destination, source};
use super::servers::{Gate, Server, program};

/// A service, its own client, and the settings of the connector.
pub(crate) struct Store {
    pub(crate) kind: &'static str,
    pub(crate) client: Client,
    pub(crate) gate: Gate,
    /// Settings that work, without `remote_url`.
    pub(crate) config: Value,
    /// Changes to them that are refused.
    pub(crate) wrong: Option<Value>,
    /// Scheme and bucket of `remote_url`.
    pub(crate) bucket: String,
    /// The same of a bucket that is not there.
    pub(crate) absent: String,
    pub(crate) odd_names: Vec<String>,
    pub(crate) over_a_page: usize,
    pub(crate) _server: Server,
}

impl Store {
    pub(crate) fn config(&self, bucket: &str, folder: &str, changes: Option<&Value>) -> Value {
        let mut config = self.config.clone();
        config["remote_url"] = format!("{bucket}/{folder}").into();
        for (name, value) in changes.and_then(Value::as_object).into_iter().flatten() {
            config[name.as_str()] = value.clone();
        }
        config
    }

    /// The elements of every object below the destination's folder, by key.
    async fn outputs(&self) -> BTreeMap<String, Vec<Value>> {
        let keys = self.client.call(json!({"op": "list", "key": "out/deep/"})).await;
        let mut outputs = BTreeMap::new();
        for key in keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap()) {
            if let Some(body) = self.client.get(key).await {
                outputs.insert(key.to_owned(), serde_json::from_slice(&body).unwrap());
            }
        }
        outputs
    }
}

#[async_trait]
impl SourceRig for Store {
    fn source(&self) -> Arc<dyn Source> {
        source(self.kind, &self.config(&self.bucket, "docs", None))
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Source>> {
        let wrong = self.wrong.as_ref()?;
        Some(source(self.kind, &self.config(&self.bucket, "docs", Some(wrong))))
    }

    fn absent(&self) -> Arc<dyn Source> {
        source(self.kind, &self.config(&self.absent, "docs", None))
    }

    async fn write(&self, name: &str, content: &[u8]) {
        self.client.put(&format!("docs/{name}"), content).await;
    }

    async fn remove(&self, name: &str) {
        let key = format!("docs/{name}");
        self.client.call(json!({"op": "delete", "key": key})).await;
    }

    fn locator(&self, name: &str) -> String {
        format!("docs/{name}")
    }

    fn odd_names(&self) -> Vec<String> {
        self.odd_names.clone()
    }

    async fn power(&self, on: bool) -> bool {
        self.gate.set(on).await;
        true
    }

    fn over_a_page(&self) -> usize {
        self.over_a_page
    }
}

#[async_trait]
impl DestinationRig for Store {
    fn destination(&self) -> Arc<dyn Destination> {
        destination(self.kind, &self.config(&self.bucket, "out/deep/", None))
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Destination>> {
        let wrong = self.wrong.as_ref()?;
        Some(destination(
            self.kind,
            &self.config(&self.bucket, "out/deep/", Some(wrong)),
        ))
    }

    fn absent(&self) -> Option<Arc<dyn Destination>> {
        Some(destination(self.kind, &self.config(&self.absent, "out/deep/", None)))
    }

    async fn texts(&self, document: &Document) -> Vec<String> {
        let key = format!("out/deep/{}", object_name(&document.record_id, &document.name));
        let Some(body) = self.client.get(&key).await else {
            return Vec::new();
        };
        let elements: Vec<Value> = serde_json::from_slice(&body).expect("JSON");
        elements
            .iter()
            .map(|element| element["text"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn total(&self) -> usize {
        self.outputs().await.values().map(Vec::len).sum()
    }

    async fn power(&self, on: bool) -> bool {
        self.gate.set(on).await;
        true
    }

    fn parses(&self) -> bool {
        false
    }
}

/// A service's own client, in a process of its own.
pub(crate) struct Client {
    pipes: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
    _child: Child,
}

impl Client {
    pub(crate) fn start(kind: &str, settings: &Value) -> Self {
        let mut child = Command::new(program(".venv/bin/python"))
            .arg(program("tests/python/object_store_client.py"))
            .args([kind, &settings.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python starts");
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            pipes: Mutex::new((input, output)),
            _child: child,
        }
    }

    /// Sends a request and gives the answer.
    pub(crate) async fn call(&self, request: Value) -> Value {
        let mut pipes = self.pipes.lock().await;
        pipes.0.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let line = pipes.1.next_line().await.unwrap();
        let line = line.expect("the client answers; if it can't be imported run scripts/setup");
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer.get("error").is_none(), "{request}: {answer}");
        answer["answer"].take()
    }

    pub(crate) async fn put(&self, key: &str, body: &[u8]) {
        self.call(json!({"op": "put", "key": key, "body": STANDARD.encode(body)}))
            .await;
    }

    pub(crate) async fn get(&self, key: &str) -> Option<Vec<u8>> {
        let body = self.call(json!({"op": "get", "key": key})).await;
        body.as_str().map(|body| STANDARD.decode(body).unwrap())
    }
}

/// Names every service takes.
pub(crate) fn common_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a",
        "a.b/c",
        "a b/c",
        "a/b",
        "a+b&c=d?e#f",
        "100%",
        "%2F",
        "a%2F..%2Fb",
        "%2e%2e/x",
        "'\"<>`{}|^~[]*$!@,;()",
        "-rf",
        ".hidden",
        "...",
        "a/...b",
        "C:x",
        "\u{202e}fdp",
        "\u{e4}\u{308}",
        "\u{1f600}/\u{1f600}",
        "\u{ff5e}",
    ]
    .map(str::to_owned)
    .into();
    names.push(format!("{}deep", "d/".repeat(100)));
    names.push("n".repeat(900));
    names
}
