//! What the tests are made of: a real server in a directory of its own, a client, documents.

pub(crate) mod client;
pub(crate) mod documents;
pub(crate) mod raw;
pub(crate) mod server;

use std::time::{Duration, Instant};

pub(crate) use client::{Answer, Client, File};
use serde_json::{Value, json};
pub(crate) use server::Server;

/// Longest wait for anything that is expected to happen: far more than a slow machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

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
