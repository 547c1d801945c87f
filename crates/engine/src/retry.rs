//! Running the failed files of an ended job again.

use docmill_model::ids::{FileId, JobId, WorkflowId};
use docmill_model::job::{JobType, TaskState};
use docmill_store::{FilePage, Job, JobFile, NewFile, NewJob, NewRun, Principal, StoreError};

use crate::clock::now;
use crate::engine::{Engine, as_accepted};

/// Files read at once.
const PAGE: u32 = 1_000;

/// Most files one retry takes up: they are in memory at once. Running the workflow again takes up any number.
const MOST: usize = 100_000;

/// Why a job can't be retried.
#[derive(Debug, thiserror::Error)]
pub enum RetryError {
    /// No such job.
    #[error("no such job")]
    NotFound,
    /// It has not ended.
    #[error("the job has not ended")]
    NotEnded,
    /// It has no failed file.
    #[error("the job has no failed file")]
    NothingFailed,
    /// More files failed than one retry takes up.
    #[error("more than {MOST} files failed; run the workflow again, which takes up every failed file")]
    TooMany,
    /// It is a run of a workflow that is deleted.
    #[error("the workflow is deleted")]
    WorkflowGone,
    /// It is a run of a workflow that is inactive.
    #[error("the workflow is inactive")]
    WorkflowInactive,
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for RetryError {
    fn from(error: StoreError) -> Self {
        match error {
            // Deleted since it was looked at.
            StoreError::OriginalGone(_) => Self::NotFound,
            StoreError::WorkflowGone(_) => Self::WorkflowGone,
            StoreError::WorkflowInactive(_) => Self::WorkflowInactive,
            error => Self::Store(error),
        }
    }
}

impl Engine {
    /// Runs the failed files of an ended job again, as a new job with the same chain and the same
    /// destinations. Files of sources are fetched anew.
    pub async fn retry_job(&self, principal: &Principal, job: JobId) -> Result<Job, RetryError> {
        let original = self
            .store()
            .job(principal.workspace, job)
            .await?
            .ok_or(RetryError::NotFound)?;
        if !original.status.is_terminal() {
            return Err(RetryError::NotEnded);
        }
        let files = self.files_to_retry(principal, &original).await?;
        if files.is_empty() {
            return Err(RetryError::NothingFailed);
        }
        let id = JobId::new();
        let stored = matches!(original.job_type, JobType::Persistent | JobType::Scheduled);
        let (workflow, workflow_name) = if stored {
            (original.workflow, original.workflow_name)
        } else {
            (WorkflowId::new(), format!("job-{}", &id.to_string()[..8]))
        };
        let retry = NewJob {
            id,
            account: principal.account,
            workspace: principal.workspace,
            workflow,
            workflow_name,
            job_type: original.job_type,
            chain: original.chain,
            retry_of: Some(job),
            files,
            run: stored.then(|| NewRun {
                sources: Vec::new(),
                destinations: original.destinations,
                // They are asked for: none is left out for being known.
                reprocess_all: true,
                delete_removed: false,
            }),
        };
        let at = now();
        let mut accepted = as_accepted(&retry, at);
        if original.from_sources {
            accepted.from_sources = true;
            accepted.file_ids.clear();
        }
        self.accept(retry, at).await?;
        Ok(accepted)
    }

    async fn files_to_retry(&self, principal: &Principal, original: &Job) -> Result<Vec<NewFile>, RetryError> {
        let mut page = FilePage {
            // A run may have a million files, nearly all of them fine.
            failed_only: original.from_sources,
            offset: 0,
            limit: PAGE,
        };
        let mut files = Vec::new();
        loop {
            let some = self.store().job_files(principal.workspace, original.id, page).await?;
            let some = some.ok_or(RetryError::NotFound)?;
            let read = some.len();
            let wanted = |file: &JobFile| matches!(file.state, TaskState::Failed | TaskState::Stopped);
            files.extend(some.into_iter().filter(wanted).map(|file| NewFile {
                id: FileId::new(),
                name: file.name,
                content_type: file.content_type,
                size: file.size,
                input: file.input,
                resumes: Some(file.id),
            }));
            if files.len() > MOST {
                return Err(RetryError::TooMany);
            }
            if read < PAGE as usize {
                return Ok(files);
            }
            page.offset += u64::from(PAGE);
        }
    }
}
