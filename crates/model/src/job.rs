//! Jobs, their files and the states they pass through.

use crate::words::text_enum;

text_enum! {
    /// Status of a job.
    JobStatus {
        /// Accepted, waiting for one of the account's running jobs to end.
        Scheduled = "SCHEDULED",
        /// Running.
        InProgress = "IN_PROGRESS",
        /// Ended; at least one file was processed, or there was none to process.
        Completed = "COMPLETED",
        /// Ended; no file was processed.
        Failed = "FAILED",
        /// Ended by cancellation.
        Stopped = "STOPPED",
    }
}

text_enum! {
    /// What started a job.
    JobType {
        /// A chain given in the request.
        Ephemeral = "ephemeral",
        /// A template.
        Template = "template",
        /// A stored workflow, by hand.
        Persistent = "persistent",
        /// A stored workflow, by its schedule.
        Scheduled = "scheduled",
    }
}

text_enum! {
    /// State of one file of a job.
    TaskState {
        /// Its job has not started.
        Waiting = "waiting",
        /// May be claimed by a worker.
        Ready = "ready",
        /// Claimed, under a lease.
        Running = "running",
        /// Every node's output is stored.
        Succeeded = "succeeded",
        /// Failed; the reason is stored.
        Failed = "failed",
        /// Ended by cancellation of the job.
        Stopped = "stopped",
    }
}

text_enum! {
    /// How far a run is in finding out its files.
    ListingState {
        /// Its sources are not listed to the end.
        Open = "open",
        /// They are.
        Complete = "complete",
        /// They could not be listed, for good.
        Failed = "failed",
    }
}

text_enum! {
    /// A job event: what channels choose from.
    EventType {
        /// Accepted.
        JobScheduled = "job.scheduled",
        /// Started.
        JobInProgress = "job.in_progress",
        /// Some files have ended since the last event; only recorded where a channel wants it.
        JobProgress = "job.progress",
        /// Ended with at least one processed file.
        JobCompleted = "job.completed",
        /// Cancelled.
        JobStopped = "job.stopped",
        /// Ended without a processed file.
        JobFailed = "job.failed",
    }
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobTrigger {
    /// A slot is free for it.
    Admit,
    /// Its last file ended: how many succeeded and how many failed.
    AllFilesEnded {
        /// Files processed.
        succeeded: u64,
        /// Files that failed.
        failed: u64,
    },
    /// Somebody cancelled it.
    Cancel,
}

impl JobStatus {
    /// Whether the job has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped)
    }

    /// The status after `trigger`, or `None` where nothing changes: an ended job stays as it ended.
    ///
    /// The only place that decides a job's status.
    pub fn after(self, trigger: JobTrigger) -> Option<JobStatus> {
        match (self, trigger) {
            (Self::Scheduled, JobTrigger::Admit) => Some(Self::InProgress),
            (Self::InProgress, JobTrigger::AllFilesEnded { succeeded: 0, failed }) if failed > 0 => Some(Self::Failed),
            (Self::InProgress, JobTrigger::AllFilesEnded { .. }) => Some(Self::Completed),
            (Self::Scheduled | Self::InProgress, JobTrigger::Cancel) => Some(Self::Stopped),
            _ => None,
        }
    }

    /// The event that tells of entering this status.
    pub fn event(self) -> EventType {
        match self {
            Self::Scheduled => EventType::JobScheduled,
            Self::InProgress => EventType::JobInProgress,
            Self::Completed => EventType::JobCompleted,
            Self::Failed => EventType::JobFailed,
            Self::Stopped => EventType::JobStopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_jobs_never_change() {
        let triggers = [
            JobTrigger::Admit,
            JobTrigger::AllFilesEnded {
                succeeded: 1,
                failed: 0,
            },
            JobTrigger::AllFilesEnded {
                succeeded: 0,
                failed: 1,
            },
            JobTrigger::Cancel,
        ];
        for status in JobStatus::ALL.iter().filter(|s| s.is_terminal()) {
            for trigger in triggers {
                assert_eq!(status.after(trigger), None);
            }
        }
    }

    #[test]
    fn a_job_fails_only_when_no_file_was_processed() {
        let ended = |succeeded, failed| JobStatus::InProgress.after(JobTrigger::AllFilesEnded { succeeded, failed });
        assert_eq!(ended(0, 0), Some(JobStatus::Completed));
        assert_eq!(ended(1, 9), Some(JobStatus::Completed));
        assert_eq!(ended(0, 1), Some(JobStatus::Failed));
    }
}
