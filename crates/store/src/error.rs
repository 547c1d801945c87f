//! What can go wrong in the store.

use docmill_model::ids::{ConnectorId, JobId, WorkflowId};

/// Result of a store method.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A failed store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An object of that name exists.
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    /// The lease is not held any more.
    #[error("the lease is lost")]
    LeaseLost,
    /// The job a new one was to retry is not there any more, and its files neither.
    #[error("job {0} is gone")]
    OriginalGone(JobId),
    /// Another live object of the workspace has the slug.
    #[error("the key `{0}` is taken")]
    KeyTaken(String),
    /// A connector a workflow refers to does not exist in the workspace in that role.
    #[error("connector {0} does not exist")]
    ConnectorGone(ConnectorId),
    /// The workflow of a run is deleted or never was.
    #[error("workflow {0} is gone")]
    WorkflowGone(WorkflowId),
    /// The workflow of a run is inactive.
    #[error("workflow {0} is inactive")]
    WorkflowInactive(WorkflowId),
    /// Another run of the workflow has not ended.
    #[error("run {0} of the workflow has not ended")]
    RunActive(JobId),
    /// The object was changed since it was read.
    #[error("changed by somebody else")]
    Conflict,
    /// The database can't be used now: disk full, locked, permissions.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// The commit failed for the whole group of operations this one was in: disk full, locked,
    /// permissions. Later operations work again once the cause is gone.
    #[error("the commit failed: {0}")]
    CommitFailed(String),
    /// The blob store can't be used now.
    #[error("the blob store is not available")]
    Blob(#[source] object_store::Error),
    /// The files below the blob store can't be read or removed.
    #[error("the blob store's folder is not available")]
    BlobFiles(#[source] std::io::Error),
    /// No such blob.
    #[error("blob `{0}` is missing")]
    BlobMissing(String),
    /// The database holds something docmill can't have written.
    #[error("unreadable row: {0}")]
    Corrupt(String),
    /// The database was made by a newer or altered docmill, or the files can't be opened.
    #[error("{0}")]
    Open(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolClosed => Self::Closed,
            error => Self::Unavailable(error),
        }
    }
}
