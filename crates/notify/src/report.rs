//! What is told of a job.

use docmill_model::ids::{JobId, WorkflowId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus};
use docmill_model::time::Micros;
use serde::{Deserialize, Serialize};

/// One event of a job with what there is to tell about it, as it was when the event happened. Made once,
/// so that each attempt to deliver it says the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReport {
    /// What happened.
    pub event: EventType,
    /// When.
    pub at: Micros,
    /// Number of the event among its job's events, so that receivers can drop what comes late.
    pub sequence: u64,
    /// The job.
    pub job_id: JobId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its workflow.
    pub workflow_id: Option<WorkflowId>,
    /// Name of the workflow.
    pub workflow_name: String,
    /// The job's status after the event.
    pub status: JobStatus,
    /// Its files.
    pub files: FileCounts,
    /// When it was created.
    pub created_at: Micros,
    /// How long it ran, once it has ended.
    pub duration: Option<Micros>,
    /// Why it failed or was stopped, where that is known.
    pub message: Option<String>,
    /// Failed files with their reasons: the first 20 or more ([`FileCounts::failed`] counts them all).
    pub failed_files: Vec<FailedFile>,
    /// Where people see the job, when the server knows its own address.
    pub link: Option<String>,
}

/// How many files of a job are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCounts {
    /// All.
    pub total: u64,
    /// Processed.
    pub succeeded: u64,
    /// Failed.
    pub failed: u64,
    /// Stopped with their job.
    pub stopped: u64,
}

/// A file that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedFile {
    /// Name of the file.
    pub name: String,
    /// Why it failed.
    pub reason: String,
}
