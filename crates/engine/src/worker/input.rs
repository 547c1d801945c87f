//! Where a claimed file's bytes come from, and what its child process is told about it.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use docmill_connectors::{ErrorKind, Result as ConnectorResult};
use docmill_model::chain::NodeChain;
use docmill_model::connector::SourceObject;
use docmill_model::document::WarningCode;
use docmill_model::ids::ConnectorId;
use docmill_model::limits::ParseLimits;
use docmill_model::time::SECOND;
use docmill_model::{Code, Warning};
use docmill_store::{Claim, FileInput, FileOutcome, StoreError};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Task;
use super::delivery::record;
use super::patience::patiently;
use crate::budget::Share;
use crate::clock::now;
use crate::protocol::TaskRequest;

/// Bytes from which a content's hash is worked out on a thread that may block.
const LARGE: usize = 1 << 20;

/// A file's bytes, ready to be run.
pub(super) struct Input {
    pub(super) bytes: Bytes,
    /// Held as long as the bytes are in memory.
    pub(super) share: Option<Share>,
    /// SHA-256 of the bytes of a file from a source, hexadecimal.
    pub(super) hash: Option<String>,
}

/// What reading a file leads to.
pub(super) enum Start {
    /// It is to be run.
    Run(Input),
    /// It has ended already: it can't be had, or it has not changed.
    End(FileOutcome),
}

impl Task<'_> {
    pub(super) async fn start(&self) -> Start {
        match &self.claim.input {
            FileInput::Blob(key) => self.read_blob(key).await,
            FileInput::Source { source, object, .. } => self.read_object(*source, object).await,
        }
    }

    async fn read_blob(&self, key: &str) -> Start {
        let share = self.room.inputs.take(self.claim.size).await;
        match self.engine.blobs().get(key).await {
            Ok(bytes) => Start::Run(Input {
                bytes,
                share,
                hash: None,
            }),
            Err(StoreError::BlobMissing(_)) => Start::End(FileOutcome::Failed {
                code: Code::Internal,
                message: "the uploaded file is not in the blob store any more".into(),
            }),
            Err(error) => Start::End(self.storage_failed(&error)),
        }
    }

    async fn read_object(&self, source: ConnectorId, object: &SourceObject) -> Start {
        let (bytes, share) = match self.fetch(source, object).await {
            Ok(fetched) => fetched,
            Err(error) => return Start::End(self.connector_failed(source, error)),
        };
        let hash = content_hash(bytes.clone()).await;
        if self.claim.known_hash.is_some() && self.claim.known_hash == hash {
            return Start::End(unchanged(hash));
        }
        Start::Run(Input { bytes, share, hash })
    }

    /// The bytes of an object, and their share of memory: as much as the source says there is, or as much as
    /// there may be where it does not say or was wrong.
    async fn fetch(&self, source: ConnectorId, object: &SourceObject) -> ConnectorResult<(Bytes, Option<Share>)> {
        let limit = self.engine.shared.config.max_file_bytes;
        if let Some(size) = object.size.filter(|size| *size <= limit) {
            let share = self.room.inputs.take(size).await;
            match self.fetch_at_most(source, object, size).await {
                Ok(bytes) => return Ok((bytes, share)),
                // It has grown since it was listed.
                Err(error) if error.kind == ErrorKind::TooLarge && size < limit => {}
                Err(error) => return Err(error),
            }
        }
        let share = self.room.inputs.take(limit).await;
        let bytes = self.fetch_at_most(source, object, limit).await?;
        Ok((bytes, share))
    }

    async fn fetch_at_most(&self, source: ConnectorId, object: &SourceObject, limit: u64) -> ConnectorResult<Bytes> {
        patiently(|| async {
            let connections = &self.engine.shared.connections;
            let source = connections
                .source(self.engine.store(), self.claim.workspace, source)
                .await?;
            source.fetch(object, limit).await
        })
        .await
    }
}

async fn content_hash(bytes: Bytes) -> Option<String> {
    if bytes.len() < LARGE {
        return Some(hex::encode(Sha256::digest(&bytes)));
    }
    tokio::task::spawn_blocking(move || hex::encode(Sha256::digest(&bytes)))
        .await
        .ok()
}

fn unchanged(content_hash: Option<String>) -> FileOutcome {
    FileOutcome::Succeeded {
        outputs: Vec::new(),
        warnings: vec![Warning::new(
            WarningCode::Unchanged,
            "the content is what the workflow processed last; it was left as it is",
        )],
        elements: 0,
        pages: 0,
        routes: Vec::new(),
        content_hash,
    }
}

/// What a child process is told about a file.
pub(super) fn request(claim: &Claim, chain: NodeChain, limits: &ParseLimits) -> TaskRequest {
    if let FileInput::Source { object, .. } = &claim.input {
        return TaskRequest::of_object(object, &record(claim).id, chain, limits.clone());
    }
    TaskRequest {
        filename: Some(claim.name.clone()),
        content_type: claim.content_type.clone(),
        chain,
        limits: limits.clone(),
        scope: scope(claim),
        last_modified: None,
        file_directory: None,
        data_source: None,
        inspect: false,
        draw: None,
    }
}

/// What makes ids of a file's elements differ from those of others. An object of a source has the same on every
/// run.
pub(super) fn scope(claim: &Claim) -> String {
    match &claim.input {
        FileInput::Source { .. } => record(claim).id,
        FileInput::Blob(_) => claim.lease.file().to_string(),
    }
}

impl TaskRequest {
    /// What a child process is told about an object of a source. With the record id as scope its elements
    /// have the same ids on every run.
    pub fn of_object(object: &SourceObject, record_id: &str, chain: NodeChain, limits: ParseLimits) -> Self {
        let (folder, name) = match object.name.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, object.name.as_str()),
        };
        Self {
            filename: Some(name.to_owned()),
            content_type: object.content_type.clone(),
            chain,
            limits,
            scope: record_id.to_owned(),
            last_modified: object.data_source.get("date_modified").and_then(wall_time),
            file_directory: folder.filter(|folder| !folder.is_empty()).map(str::to_owned),
            draw: None,
            data_source: Some(with_date_processed(&object.data_source)),
            inspect: false,
        }
    }
}

/// What a source tells of an object, with the time of processing: seconds since 1970, as dates of objects
/// are written.
fn with_date_processed(data_source: &Value) -> Value {
    let mut data_source = data_source.as_object().cloned().unwrap_or_default();
    data_source.insert("date_processed".into(), (now() / SECOND).to_string().into());
    Value::Object(data_source)
}

/// A date of an object, seconds since 1970 or RFC 3339, as `YYYY-MM-DDTHH:MM:SS`.
fn wall_time(date: &Value) -> Option<String> {
    let text = date.as_str()?;
    let at = match text.parse::<f64>() {
        Ok(seconds) if seconds.abs() < 1e11 => DateTime::<Utc>::from_timestamp(seconds as i64, 0)?,
        Ok(_) => return None,
        Err(_) => DateTime::parse_from_rfc3339(text).ok()?.to_utc(),
    };
    Some(at.format("%Y-%m-%dT%H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dates_of_objects() {
        assert_eq!(
            wall_time(&json!("1720544414.5")).as_deref(),
            Some("2024-07-09T17:00:14")
        );
        assert_eq!(
            wall_time(&json!("2024-07-09T19:00:14+02:00")).as_deref(),
            Some("2024-07-09T17:00:14")
        );
        for none in [json!("yesterday"), json!(5), json!("1e300"), json!("NaN"), json!("")] {
            assert_eq!(wall_time(&none), None, "{none}");
        }
        let source = with_date_processed(&json!({"url": "u"}));
        assert_eq!(source["url"], "u");
        assert!(source["date_processed"].as_str().unwrap().parse::<u64>().unwrap() > 1_700_000_000);
        assert!(with_date_processed(&Value::Null)["date_processed"].is_string());
    }
}
