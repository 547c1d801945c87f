//! Blobs: files' bytes under keys docmill chooses, never under names a client sent.

use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use docmill_model::ids::{FileId, JobId, WorkspaceId};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use crate::{Result, StoreError};

/// Where the bytes are. A `put` that returned is atomic and durable.
#[derive(Clone, Debug)]
pub struct BlobStore {
    inner: Arc<dyn ObjectStore>,
    root: PathBuf,
}

/// Key of an uploaded file.
pub fn input_key(workspace: WorkspaceId, file: FileId) -> String {
    format!("in/{workspace}/{file}")
}

/// Key of a node's output. It holds the claim's fencing token, so a worker that lost its lease can't
/// overwrite what the next one stored.
pub fn output_key(workspace: WorkspaceId, job: JobId, file: FileId, token: i64, node_index: u32) -> String {
    format!("out/{workspace}/{job}/{file}.{token}.{node_index}.json")
}

impl BlobStore {
    /// Blobs as files below a directory, which is created.
    pub fn local(root: &FsPath) -> Result<Self> {
        std::fs::create_dir_all(root)
            .map_err(|error| StoreError::Open(format!("cannot create {}: {error}", root.display())))?;
        let inner = LocalFileSystem::new_with_prefix(root)
            .map_err(StoreError::Blob)?
            .with_fsync(true);
        Ok(Self {
            inner: Arc::new(inner),
            root: root.to_owned(),
        })
    }

    /// Stores a whole blob.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.inner
            .put(&path(key)?, PutPayload::from_bytes(bytes))
            .await
            .map_err(StoreError::Blob)?;
        Ok(())
    }

    /// Starts storing a blob piece by piece; it exists once [`BlobUpload::finish`] returned.
    pub fn upload(&self, key: &str) -> BlobUpload {
        BlobUpload {
            store: self.clone(),
            key: key.to_owned(),
            upload: None,
            part: Vec::new(),
        }
    }

    /// The whole blob.
    pub async fn get(&self, key: &str) -> Result<Bytes> {
        self.fetch(key).await?.bytes().await.map_err(StoreError::Blob)
    }

    /// The blob as a stream of pieces.
    pub async fn stream(&self, key: &str) -> Result<BoxStream<'static, std::io::Result<Bytes>>> {
        Ok(self
            .fetch(key)
            .await?
            .into_stream()
            .map_err(std::io::Error::other)
            .boxed())
    }

    async fn fetch(&self, key: &str) -> Result<object_store::GetResult> {
        self.inner.get(&path(key)?).await.map_err(|error| match error {
            object_store::Error::NotFound { .. } => StoreError::BlobMissing(key.to_owned()),
            error => StoreError::Blob(error),
        })
    }

    /// Deletes a blob; one that is not there is no error.
    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.inner.delete(&path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::Blob(error)),
        }
    }

    /// Removes what uploads that never finished left behind and nobody touched since `before`; how many
    /// there were. They are files beside the blobs that no key names and no list shows.
    pub async fn remove_unfinished(&self, before: SystemTime) -> std::io::Result<u64> {
        let root = self.root.clone();
        tokio::task::spawn_blocking(move || remove_staged(&root, before))
            .await
            .map_err(std::io::Error::other)?
    }

    /// Keys and ages of all blobs: `(key, last modified in microseconds)`.
    pub fn list(&self) -> BoxStream<'static, Result<(String, i64)>> {
        self.inner
            .list(None)
            .map(|meta| match meta {
                Ok(meta) => Ok((meta.location.to_string(), meta.last_modified.timestamp_micros())),
                Err(error) => Err(StoreError::Blob(error)),
            })
            .boxed()
    }
}

/// A blob is written to `KEY#NUMBER` and renamed when it is whole.
fn remove_staged(folder: &FsPath, before: SystemTime) -> std::io::Result<u64> {
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Renamed or deleted since the folder was read.
            Err(_) => continue,
        };
        if metadata.is_dir() {
            removed += remove_staged(&entry.path(), before)?;
            continue;
        }
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.rsplit_once('#'))
            .map(|(_, number)| number);
        let staged = number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
        if staged && metadata.modified().is_ok_and(|modified| modified < before) {
            std::fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|error| StoreError::Corrupt(format!("blob key `{key}`: {error}")))
}

/// A blob being stored. Dropped before [`BlobUpload::finish`], it leaves nothing a reader can see.
#[derive(Debug)]
pub struct BlobUpload {
    store: BlobStore,
    key: String,
    upload: Option<Box<dyn MultipartUpload>>,
    part: Vec<u8>,
}

/// Bytes collected before they are handed on: the least size object stores take for a part.
const PART_BYTES: usize = 5 * 1024 * 1024;

impl BlobUpload {
    /// Adds bytes at the end.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.part.extend_from_slice(bytes);
        if self.part.len() >= PART_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    async fn flush(&mut self) -> Result<()> {
        let part = PutPayload::from(std::mem::take(&mut self.part));
        if self.upload.is_none() {
            let upload = self
                .store
                .inner
                .put_multipart(&path(&self.key)?)
                .await
                .map_err(StoreError::Blob)?;
            self.upload = Some(upload);
        }
        match &mut self.upload {
            Some(upload) => upload.put_part(part).await.map_err(StoreError::Blob),
            None => Err(StoreError::Closed),
        }
    }

    /// Makes the blob durable and visible.
    pub async fn finish(mut self) -> Result<()> {
        if self.upload.is_none() {
            return self.store.put(&self.key, std::mem::take(&mut self.part).into()).await;
        }
        if !self.part.is_empty() {
            self.flush().await?;
        }
        match self.upload.take() {
            Some(mut upload) => upload.complete().await.map(drop).map_err(StoreError::Blob),
            None => Err(StoreError::Closed),
        }
    }

    /// Removes what was written so far.
    pub async fn abort(mut self) {
        if let Some(mut upload) = self.upload.take() {
            // The garbage collector removes what this leaves behind.
            let _ = upload.abort().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn blobs_appear_whole_and_deletion_is_idempotent() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = BlobStore::local(dir.path()).unwrap();
        let key = input_key(WorkspaceId::new(), FileId::new());
        let mut upload = blobs.upload(&key);
        upload.write(b"one ").await.unwrap();
        assert!(matches!(blobs.get(&key).await, Err(StoreError::BlobMissing(_))));
        upload.write(b"two").await.unwrap();
        upload.finish().await.unwrap();
        assert_eq!(blobs.get(&key).await.unwrap(), "one two");
        assert_eq!(blobs.list().try_collect::<Vec<_>>().await.unwrap().len(), 1);
        blobs.delete(&key).await.unwrap();
        blobs.delete(&key).await.unwrap();
        assert!(matches!(blobs.get(&key).await, Err(StoreError::BlobMissing(_))));
    }

    #[tokio::test]
    async fn leftovers_of_a_crash_are_found_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = BlobStore::local(dir.path()).unwrap();
        let mut upload = blobs.upload("in/a/cut");
        upload.write(&vec![7; PART_BYTES + 1]).await.unwrap();
        // As a killed process leaves it: neither finished nor aborted.
        std::mem::forget(upload);
        blobs.put("in/a/whole", "x".into()).await.unwrap();
        assert_eq!(blobs.remove_unfinished(SystemTime::UNIX_EPOCH).await.unwrap(), 0);
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(blobs.remove_unfinished(later).await.unwrap(), 1);
        assert_eq!(blobs.get("in/a/whole").await.unwrap(), "x");
    }

    #[tokio::test]
    async fn an_empty_upload_is_an_empty_blob_and_an_aborted_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = BlobStore::local(dir.path()).unwrap();
        blobs.upload("in/a/empty").finish().await.unwrap();
        assert_eq!(blobs.get("in/a/empty").await.unwrap(), "");
        let mut upload = blobs.upload("in/a/gone");
        upload.write(b"x").await.unwrap();
        upload.abort().await;
        assert_eq!(blobs.list().try_collect::<Vec<_>>().await.unwrap().len(), 1);
    }
}
