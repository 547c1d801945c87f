//! The conformance suite on SQLite, and tests of what is particular to it.

mod atomicity;
mod files;
mod groups;
mod plans;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Slots, SqliteStore};
use crate::Store;
use crate::suite::{Backend, store_suite};

store_suite!(Directory::new());

const FIVE: Slots = Slots {
    local_jobs: 5,
    workflow_jobs: 5,
};

/// A database in a directory of its own.
struct Directory {
    directory: tempfile::TempDir,
    /// The file that is in use, and the store that has it open.
    open: Mutex<(PathBuf, Option<Arc<SqliteStore>>)>,
}

impl Directory {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("docmill.db");
        Self {
            directory,
            open: Mutex::new((path, None)),
        }
    }
}

#[async_trait]
impl Backend for Directory {
    async fn open(&self, slots: Slots) -> Arc<dyn Store> {
        let mut open = self.open.lock().await;
        if let Some(store) = open.1.take() {
            store.close().await;
        }
        let store = Arc::new(SqliteStore::open(&open.0, slots).await.unwrap());
        open.1 = Some(store.clone());
        store
    }

    async fn open_after_crash(&self, slots: Slots) -> Arc<dyn Store> {
        let image = {
            let mut open = self.open.lock().await;
            let image = self.directory.path().join("after-crash.db");
            copy_as_it_is(&open.0, &image);
            std::mem::replace(&mut open.0, image)
        };
        assert!(image.exists());
        self.open(slots).await
    }
}

/// Copies a database that is open, with its log, as a kill would leave it.
fn copy_as_it_is(from: &Path, to: &Path) {
    let log = |path: &Path| path.with_extension("db-wal");
    std::fs::copy(from, to).unwrap();
    std::fs::copy(log(from), log(to)).unwrap();
}
