//! What a webhook is told.

use docmill_model::time::iso8601;
use serde_json::json;

use crate::JobReport;

/// Most failed files that are told one by one.
pub(crate) const MOST_FAILED: usize = 20;

/// Longest reason, in characters.
const LONGEST_REASON: usize = 500;

/// The body of a webhook's request, UTF-8 JSON: `{"type", "timestamp", "data": {"job", "workspace_id"}}`.
///
/// `type` is the event's name, `timestamp` its instant (ISO 8601, UTC). `data.job` holds `id` and `job_id`
/// (the same), `workflow_id`, `workflow_name`, `status`, `sequence`, `created_at`, `files_total`,
/// `files_succeeded`, `files_failed`, `files_stopped`, `processing_time_ms` (null until the job has ended),
/// `message`, `failed_files` (the first 20, each `{"name", "reason"}`), and `url` when the server knows
/// its own address. The same report always gives the same bytes.
pub fn payload(report: &JobReport) -> Vec<u8> {
    let files = &report.files;
    let failed: Vec<_> = report
        .failed_files
        .iter()
        .take(MOST_FAILED)
        .map(|file| {
            let reason: String = file.reason.chars().take(LONGEST_REASON).collect();
            json!({"name": file.name, "reason": reason})
        })
        .collect();
    json!({
        "type": report.event.as_str(),
        "timestamp": iso8601(report.at),
        "data": {
            "job": {
                "id": report.job_id,
                "job_id": report.job_id,
                "workflow_id": report.workflow_id,
                "workflow_name": report.workflow_name,
                "status": report.status,
                "sequence": report.sequence,
                "created_at": iso8601(report.created_at),
                "files_total": files.total,
                "files_succeeded": files.succeeded,
                "files_failed": files.failed,
                "files_stopped": files.stopped,
                "processing_time_ms": report.duration.map(|span| span.max(0) / 1_000),
                "message": report.message,
                "failed_files": failed,
                "url": report.link,
            },
            "workspace_id": report.workspace_id,
        },
    })
    .to_string()
    .into_bytes()
}
