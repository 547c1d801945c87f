//! Elements on their way to destinations.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use bytes::Bytes;
use docmill_connectors::{ConnectorError, Document, name_with_id};
use docmill_model::ids::ConnectorId;
use docmill_store::{Claim, FileInput};
use tokio::sync::Mutex;

use super::patience::patiently;
use crate::engine::Engine;
use crate::records::{record_id, upload_record_id, upload_record_name};

/// Locks that documents share by chance; far more than files under way.
const LOCKS: usize = 1_024;

/// Puts documents to destinations, never one document twice at once: two runs of a workflow may overlap.
pub(super) struct Delivery {
    locks: Vec<Mutex<()>>,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            locks: (0..LOCKS).map(|_| Mutex::default()).collect(),
        }
    }
}

/// What names a claimed file's document at destinations.
pub(super) struct Record {
    pub(super) id: String,
    /// Name of the file.
    name: String,
    /// Whether no other file of any workflow has the name, wherever it goes.
    unique: bool,
}

impl Record {
    /// The document's name at a destination.
    fn name_at(&self, claim: &Claim, destination: ConnectorId) -> String {
        if self.unique || claim.plain_at.contains(&destination) {
            self.name.clone()
        } else {
            name_with_id(&self.id, &self.name)
        }
    }
}

/// What names a claimed file's document.
pub(super) fn record(claim: &Claim) -> Record {
    match &claim.input {
        FileInput::Source { source, object, .. } => Record {
            id: record_id(claim.workflow, *source, &object.locator),
            name: object.name.clone(),
            unique: false,
        },
        FileInput::Blob(_) => {
            let file = claim.lease.file();
            Record {
                id: upload_record_id(claim.workflow, file),
                name: upload_record_name(file, &claim.name),
                unique: true,
            }
        }
    }
}

impl Delivery {
    /// Puts a document to every destination of its run. Repeating it changes nothing.
    pub(super) async fn put(
        &self,
        engine: &Engine,
        claim: &Claim,
        elements: Bytes,
    ) -> Result<(), (ConnectorId, ConnectorError)> {
        let record = record(claim);
        let _turn = self.turn(&record.id).await;
        for &id in &claim.destinations {
            let document = Document {
                record_id: record.id.clone(),
                name: record.name_at(claim, id),
                elements: elements.clone(),
            };
            let started = Instant::now();
            let result = patiently(|| async {
                let connections = &engine.shared.connections;
                let destination = connections.destination(engine.store(), claim.workspace, id).await?;
                destination.put(&document).await
            })
            .await;
            count("put", started, result.is_ok());
            result.map_err(|error| (id, error))?;
        }
        Ok(())
    }

    /// Removes a document from every destination of its run.
    pub(super) async fn delete(&self, engine: &Engine, claim: &Claim) -> Result<(), (ConnectorId, ConnectorError)> {
        let record = record(claim);
        let _turn = self.turn(&record.id).await;
        for &id in &claim.destinations {
            let name = record.name_at(claim, id);
            let started = Instant::now();
            let result = patiently(|| async {
                let connections = &engine.shared.connections;
                let destination = connections.destination(engine.store(), claim.workspace, id).await?;
                destination.delete(&record.id, &name).await
            })
            .await;
            count("delete", started, result.is_ok());
            result.map_err(|error| (id, error))?;
        }
        Ok(())
    }

    async fn turn(&self, record_id: &str) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        record_id.hash(&mut hasher);
        let index = (hasher.finish() % LOCKS as u64) as usize;
        Some(self.locks.get(index)?.lock().await)
    }
}

fn count(operation: &'static str, started: Instant, worked: bool) {
    let outcome = if worked { "succeeded" } else { "failed" };
    metrics::counter!("docmill_deliveries_total", "operation" => operation, "outcome" => outcome).increment(1);
    metrics::histogram!("docmill_delivery_seconds").record(started.elapsed().as_secs_f64());
}
