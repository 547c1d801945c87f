//! What there is to tell of an event, from the record of it.

use docmill_model::channel::{ChannelScope, NotificationType};
use docmill_model::job::JobStatus;
use docmill_model::time::{Micros, iso8601, parse_iso8601};
use docmill_notify::{FailedFile, FileCounts, JobReport};
use docmill_store::{ChannelRef, EventSnapshot};
use serde_json::{Value, json};

/// The report of a job's event; `None` for what is no job's, and for a record that lacks what every job has.
pub(super) fn job_report(event: &EventSnapshot, public_url: Option<&str>) -> Option<JobReport> {
    let NotificationType::Job(kind) = event.kind else {
        return None;
    };
    let job = &event.payload;
    let text = |name: &str| job.get(name).and_then(Value::as_str);
    let number = |name: &str| job.get(name).and_then(Value::as_u64).unwrap_or(0);
    let instant = |name: &str| text(name).and_then(parse_iso8601);
    let job_id = text("job_id")?.parse().ok()?;
    let status = JobStatus::parse(text("status")?)?;
    let (total, succeeded, failed) = (number("files_total"), number("files_succeeded"), number("files_failed"));
    let stopped = match status {
        JobStatus::Stopped => total.saturating_sub(succeeded).saturating_sub(failed),
        _ => 0,
    };
    let took = job.get("processing_time_ms").and_then(Value::as_i64);
    Some(JobReport {
        event: kind,
        at: event.created_at,
        sequence: u64::try_from(event.sequence).unwrap_or(0),
        job_id,
        workspace_id: event.workspace,
        workflow_id: text("workflow_id").and_then(|id| id.parse().ok()).or(event.workflow),
        workflow_name: text("workflow_name").unwrap_or_default().to_owned(),
        status,
        files: FileCounts {
            total,
            succeeded,
            failed,
            stopped,
        },
        created_at: instant("created_at").unwrap_or(event.created_at),
        duration: took.map(|milliseconds| milliseconds.saturating_mul(1_000)),
        message: text("message").map(str::to_owned),
        failed_files: event
            .failed_files
            .iter()
            .map(|file| FailedFile {
                name: file.name.clone(),
                reason: file.reason.clone(),
            })
            .collect(),
        link: public_url.map(|url| format!("{url}/api/v1/jobs/{job_id}")),
    })
}

/// The channel that a notice tells of.
pub(super) fn noticed_channel(event: &EventSnapshot) -> Option<ChannelRef> {
    Some(ChannelRef {
        workspace: event.workspace,
        scope: event.workflow.map_or(ChannelScope::Workspace, ChannelScope::Workflow),
        id: event.payload.get("channel_id")?.as_str()?.parse().ok()?,
    })
}

/// The body of a request that tries whether a webhook works.
pub(super) fn test_payload(channel: ChannelRef, at: Micros) -> Vec<u8> {
    json!({
        "type": "channel.test",
        "timestamp": iso8601(at),
        "data": {"channel_id": channel.id, "workspace_id": channel.workspace},
    })
    .to_string()
    .into_bytes()
}

/// The body of a request that tells of a channel.
pub(super) fn notice_payload(event: &EventSnapshot) -> Vec<u8> {
    json!({
        "type": event.kind.as_str(),
        "timestamp": iso8601(event.created_at),
        "data": {"channel": event.payload, "workspace_id": event.workspace},
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use docmill_model::channel::NoticeType;
    use docmill_model::ids::{EventId, JobId, WorkflowId, WorkspaceId};
    use docmill_model::job::EventType;

    use super::*;

    fn event(kind: NotificationType, payload: Value) -> EventSnapshot {
        EventSnapshot {
            id: EventId::new(),
            workspace: WorkspaceId::new(),
            workflow: Some(WorkflowId::new()),
            sequence: 3,
            kind,
            payload,
            failed_files: Vec::new(),
            created_at: 1_000_000,
        }
    }

    #[test]
    fn a_report_tells_what_the_event_recorded() {
        let (job, workflow) = (JobId::new(), WorkflowId::new());
        let stopped = event(
            NotificationType::Job(EventType::JobStopped),
            json!({
                "job_id": job, "workflow_id": workflow, "workflow_name": "flow", "job_type": "persistent",
                "status": "STOPPED", "message": null, "files_total": 10, "files_succeeded": 3, "files_failed": 2,
                "created_at": "1970-01-01T00:00:00.500000Z", "started_at": null, "ended_at": null,
                "processing_time_ms": 1_250, "at": "1970-01-01T00:00:01Z",
            }),
        );
        let report = job_report(&stopped, Some("https://mill.example.com")).unwrap();
        let files = report.files;
        assert_eq!(
            (files.total, files.succeeded, files.failed, files.stopped),
            (10, 3, 2, 5)
        );
        assert_eq!(
            (report.created_at, report.duration, report.at),
            (500_000, Some(1_250_000), 1_000_000)
        );
        assert_eq!(
            (report.job_id, report.workflow_id, report.sequence),
            (job, Some(workflow), 3)
        );
        assert_eq!(
            report.link.unwrap(),
            format!("https://mill.example.com/api/v1/jobs/{job}")
        );
        assert_eq!(noticed_channel(&stopped), None);
    }

    #[test]
    fn what_is_no_jobs_event_has_no_report() {
        let notice = event(
            NotificationType::Notice(NoticeType::ChannelBounced),
            json!({"channel_id": "ep_"}),
        );
        assert!(job_report(&notice, None).is_none() && noticed_channel(&notice).is_none());
        for payload in [
            json!(null),
            json!([]),
            json!({}),
            json!({"job_id": "x", "status": "STOPPED"}),
        ] {
            assert!(job_report(&event(NotificationType::Job(EventType::JobFailed), payload), None).is_none());
        }
    }
}
