//! What the tests are made of: a real server in a directory of its own, a client, documents.

pub(crate) mod client;
pub(crate) mod documents;
pub(crate) mod models;
pub(crate) mod post;
pub(crate) mod raw;
pub(crate) mod server;

use std::time::{Duration, Instant};

pub(crate) use client::{Answer, Client, File};
use serde_json::{Value, json};
pub(crate) use server::Server;

/// Longest wait for anything that is expected to happen: far more than a slow machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What HTTP clients need to be built; any number of times.
pub(crate) fn install_cryptography() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Polls until `check` gives something, or fails the test saying what it waited for.
pub(crate) async fn until<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A directory tree sources and destinations may use, and the server setting that says so.
pub(crate) struct Folders {
    root: tempfile::TempDir,
}

impl Folders {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub(crate) fn setting(&self) -> (&'static str, String) {
        let root = self.root.path().to_str().expect("text");
        ("CONNECTORS__LOCAL_ROOTS", json!([root]).to_string())
    }

    /// A server that may use the tree.
    pub(crate) async fn server(&self) -> Server {
        let (name, value) = self.setting();
        Server::with(&[(name, &value)]).await
    }

    /// A folder of the tree, made if it is not there.
    pub(crate) fn folder(&self, name: &str) -> std::path::PathBuf {
        let folder = self.root.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// Every file below a folder, by path below it.
    pub(crate) fn files(&self, name: &str) -> std::collections::BTreeMap<String, Vec<u8>> {
        let top = self.root.path().join(name);
        let mut found = std::collections::BTreeMap::new();
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let below = entry
                        .path()
                        .strip_prefix(&top)
                        .expect("below")
                        .to_string_lossy()
                        .into_owned();
                    found.insert(below, std::fs::read(entry.path()).expect("readable"));
                }
            }
        }
        found
    }
}

/// A workflow of a partition node, without source and destination.
pub(crate) fn custom_workflow(name: &str) -> Value {
    json!({"name": name, "workflow_type": "custom", "workflow_nodes": [partition_node()]})
}

/// The same between two connectors.
pub(crate) fn piped_workflow(name: &str, source: &str, destination: &str) -> Value {
    let mut workflow = custom_workflow(name);
    workflow["source_id"] = source.into();
    workflow["destination_id"] = destination.into();
    workflow
}

/// `request_data` of a job that only partitions.
pub(crate) fn partition_only() -> Value {
    json!({"job_nodes": [partition_node()]})
}

/// `request_data` of a job that partitions and chunks.
pub(crate) fn partition_and_chunk() -> Value {
    json!({"job_nodes": [
        partition_node(),
        {"name": "Chunker", "type": "chunk", "subtype": "chunk_by_title", "settings": {"max_characters": 400}},
    ]})
}

pub(crate) fn partition_node() -> Value {
    json!({"name": "Partitioner", "type": "partition", "subtype": "unstructured_api", "settings": {"strategy": "fast"}})
}
