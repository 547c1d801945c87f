//! What a webhook is told.

use docmill_model::ids::WorkspaceId;
use docmill_model::time::{Micros, iso8601};
use serde_json::json;

use crate::JobReport;

/// Most failed files that are told one by one.
pub(crate) const MOST_FAILED: usize = 20;

/// Longest reason or message, in characters.
const LONGEST_REASON: usize = 500;
/// Longest name or description, in characters.
const LONGEST_NAME: usize = 255;

/// The body of a webhook's request, UTF-8 JSON: `{"type", "timestamp", "data": {"job", "workspace_id"}}`.
///
/// `type` is the event's name, `timestamp` its instant (ISO 8601, UTC). `data.job` holds `id` and `job_id`
/// (the same), `workflow_id`, `workflow_name`, `status`, `sequence`, `created_at`, `files_total`,
/// `files_succeeded`, `files_failed`, `files_stopped`, `processing_time_ms` (null until the job has ended),
/// `message`, `failed_files` (the first 20, each `{"name", "reason"}`), and `url` when the server knows
/// its own address. Names are cut after 255 characters, reasons and messages after 500. The same report
/// always gives the same bytes.
pub fn payload(report: &JobReport) -> Vec<u8> {
    let files = &report.files;
    let failed: Vec<_> = report
        .failed_files
        .iter()
        .take(MOST_FAILED)
        .map(|file| json!({"name": cut(&file.name, LONGEST_NAME), "reason": cut(&file.reason, LONGEST_REASON)}))
        .collect();
    json!({
        "type": report.event.as_str(),
        "timestamp": iso8601(report.at),
        "data": {
            "job": {
                "id": report.job_id,
                "job_id": report.job_id,
                "workflow_id": report.workflow_id,
                "workflow_name": cut(&report.workflow_name, LONGEST_NAME),
                "status": report.status,
                "sequence": report.sequence,
                "created_at": iso8601(report.created_at),
                "files_total": files.total,
                "files_succeeded": files.succeeded,
                "files_failed": files.failed,
                "files_stopped": files.stopped,
                "processing_time_ms": report.duration.map(|span| span.max(0) / 1_000),
                "message": report.message.as_deref().map(|message| cut(message, LONGEST_REASON)),
                "failed_files": failed,
                "url": report.link,
            },
            "workspace_id": report.workspace_id,
        },
    })
    .to_string()
    .into_bytes()
}

/// The body that somebody asked for to see whether a webhook works: `{"type": "channel.test", "timestamp",
/// "data": {"channel": {"id", "description"}, "workspace_id"}}`.
pub fn test_payload(channel_id: &str, description: Option<&str>, workspace_id: &WorkspaceId, at: Micros) -> Vec<u8> {
    json!({
        "type": "channel.test",
        "timestamp": iso8601(at),
        "data": {
            "channel": {
                "id": channel_id,
                "description": description.map(|text| cut(text, LONGEST_NAME)),
            },
            "workspace_id": workspace_id,
        },
    })
    .to_string()
    .into_bytes()
}

fn cut(text: &str, most: usize) -> &str {
    text.char_indices()
        .nth(most)
        .and_then(|(end, _)| text.get(..end))
        .unwrap_or(text)
}
