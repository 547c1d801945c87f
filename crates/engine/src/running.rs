//! Files being processed right now in this process: how far they are, and how to stop them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use docmill_model::ids::{FileId, JobId};
use docmill_sandbox::CancelFlag;
use docmill_store::Lease;
use tokio_util::sync::CancellationToken;

/// How far a file has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileProgress {
    /// Pages done.
    pub pages_done: u32,
    /// Pages there are; 0 when not known or not paged.
    pub pages_total: u32,
    /// Elements found.
    pub elements: u64,
    /// Nodes whose output is ready.
    pub nodes_done: u32,
}

/// The files being processed.
#[derive(Clone, Debug, Default)]
pub struct RunningFiles {
    files: Arc<Mutex<HashMap<FileId, Entry>>>,
}

/// How work on a file is told to end: a flag for the threads that talk to child processes, a token for
/// tasks that wait for sources and destinations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel {
    pub(crate) flag: CancelFlag,
    pub(crate) token: CancellationToken,
}

impl Cancel {
    fn cancel(&self) {
        self.flag.cancel();
        self.token.cancel();
    }
}

#[derive(Debug)]
struct Entry {
    job: JobId,
    lease: Lease,
    cancel: Cancel,
    progress: FileProgress,
}

impl RunningFiles {
    fn lock(&self) -> MutexGuard<'_, HashMap<FileId, Entry>> {
        // The map is valid between any two statements that touch it, so a panic elsewhere does no harm.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn start(&self, job: JobId, lease: Lease) -> Cancel {
        let cancel = Cancel::default();
        let entry = Entry {
            job,
            lease,
            cancel: cancel.clone(),
            progress: FileProgress::default(),
        };
        self.lock().insert(lease.file(), entry);
        cancel
    }

    pub(crate) fn end(&self, lease: Lease) {
        let mut files = self.lock();
        if files.get(&lease.file()).is_some_and(|entry| entry.lease == lease) {
            files.remove(&lease.file());
        }
    }

    pub(crate) fn update(&self, file: FileId, change: impl FnOnce(&mut FileProgress)) {
        if let Some(entry) = self.lock().get_mut(&file) {
            change(&mut entry.progress);
        }
    }

    /// How far a file is; `None` when it is not being processed here.
    pub fn progress(&self, file: FileId) -> Option<FileProgress> {
        self.lock().get(&file).map(|entry| entry.progress)
    }

    /// How far the files of a job are that are being processed here.
    pub fn of_job(&self, job: JobId) -> Vec<FileProgress> {
        let files = self.lock();
        files
            .values()
            .filter(|entry| entry.job == job)
            .map(|entry| entry.progress)
            .collect()
    }

    pub(crate) fn cancel_job(&self, job: JobId) {
        for entry in self.lock().values().filter(|entry| entry.job == job) {
            entry.cancel.cancel();
        }
    }

    pub(crate) fn cancel_lease(&self, lease: Lease) {
        if let Some(entry) = self.lock().get(&lease.file()).filter(|entry| entry.lease == lease) {
            entry.cancel.cancel();
        }
    }

    pub(crate) fn cancel_all(&self) {
        for entry in self.lock().values() {
            entry.cancel.cancel();
        }
    }

    pub(crate) fn leases(&self) -> Vec<Lease> {
        self.lock().values().map(|entry| entry.lease).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}
