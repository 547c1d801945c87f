//! Events: recorded in the transaction of what they tell of, and handed there to the channels that are
//! enabled at that moment, one delivery for each.

use docmill_model::channel::{ChannelId, DeliveryKind, NoticeType};
use docmill_model::ids::{DeliveryId, EventId, JobId};
use docmill_model::job::EventType;
use docmill_model::time::{Micros, SECOND, iso8601};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::rows::{count, id, to_json};
use crate::{FailedFile, Result};

/// Time between two events of a job's progress.
const PROGRESS_GAP: Micros = 10 * SECOND;

/// Failed files an event names.
const NAMED: u32 = 20;

/// Characters of a reason an event keeps.
const REASON: usize = 500;

/// What an event tells about its job; a macro so that it can be part of literals.
macro_rules! event_columns {
    () => {
        "RETURNING id, event_count, workspace_id, workflow_id, workflow_name, job_type, status, message,
                   files_total, files_succeeded, files_failed, created_at, started_at, ended_at"
    };
}
pub(super) use event_columns;

/// The enabled channels that are told of a type of event of a workflow's jobs.
macro_rules! subscribers {
    ($columns:literal, $workspace:literal, $workflow:literal, $type:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM channel_events e CROSS JOIN channels c ON c.seq = e.channel_seq
             WHERE e.workspace_id = ",
            $workspace,
            " AND e.scope IN ('', ",
            $workflow,
            ") AND e.type = ",
            $type,
            " AND c.wanted = 1 AND c.verified_at IS NOT NULL"
        )
    };
}
pub(super) const SUBSCRIBERS: &str = subscribers!("c.id, c.kind, c.receiver", "$1", "$2", "$3");

/// The enabled mail channels that are told of another channel's fate.
pub(super) const NOTICED: &str = "SELECT id, kind, receiver FROM channels
     WHERE workspace_id = $1 AND scope IN ('', $2) AND kind = 'email' AND id <> $3
         AND wanted = 1 AND verified_at IS NOT NULL";

/// Counts an event of a job's progress if one is due and a channel wants it.
pub(super) const PROGRESS: &str = concat!(
    "UPDATE jobs SET event_count = event_count + 1, progress_at = $2
     WHERE id = $1 AND status = 'IN_PROGRESS' AND EXISTS (",
    subscribers!("1", "jobs.workspace_id", "jobs.workflow_id", "'job.progress'"),
    ") ",
    event_columns!()
);

/// One delivery for each `[id, channel, lane, receiver]`, due at once whatever the clock does.
pub(super) const HAND_OUT: &str = "INSERT INTO deliveries
         (id, workspace_id, channel_id, kind, event_id, lane, receiver, not_before, created_at)
     SELECT value ->> 0, $2, value ->> 1, $3, $4, value ->> 2, value ->> 3, 0, $5 FROM json_each($1) WHERE true";

/// Records an event of a job, given the job's [`event_columns`], and hands it to the channels.
pub(super) async fn record_event(
    db: &mut SqliteConnection,
    job: &SqliteRow,
    event: EventType,
    now: Micros,
) -> Result<()> {
    let job_id: JobId = id(job, "id")?;
    let (workspace, workflow): (&str, &str) = (job.try_get("workspace_id")?, job.try_get("workflow_id")?);
    let ended = job.try_get::<Option<Micros>, _>("ended_at")?.is_some();
    let failed_files = match ended && count(job, "files_failed")? > 0 {
        true => Some(to_json(&failed_files(db, job_id).await?)?),
        false => None,
    };
    let event_id = EventId::new().to_string();
    sqlx::query(
        "INSERT INTO events (id, workspace_id, workflow_id, job_id, sequence, type, payload, failed_files,
                             created_at, read_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(&event_id)
    .bind(workspace)
    .bind(workflow)
    .bind(job_id.to_string())
    .bind(job.try_get::<i64, _>("event_count")?)
    .bind(event.as_str())
    .bind(payload(job, job_id, now)?.to_string())
    .bind(failed_files)
    .bind(now)
    // Progress is no news for the inbox once the job goes on.
    .bind((event == EventType::JobProgress).then_some(now))
    .execute(&mut *db)
    .await?;
    let channels = sqlx::query(SUBSCRIBERS)
        .bind(workspace)
        .bind(workflow)
        .bind(event.as_str());
    let channels = channels.fetch_all(&mut *db).await?;
    hand_out(db, &channels, workspace, DeliveryKind::Event, &event_id, now).await
}

/// Records that a job goes on, given its `started_at` and `progress_at`, unless that was just told or nobody
/// wants to know.
pub(super) async fn record_progress(db: &mut SqliteConnection, job: JobId, row: &SqliteRow, now: Micros) -> Result<()> {
    let told: Micros = row.try_get("progress_at")?;
    let since = told.max(row.try_get::<Option<Micros>, _>("started_at")?.unwrap_or_default());
    // An instant in the future can only come from a clock that was set back since.
    if since > now - PROGRESS_GAP && told <= now {
        return Ok(());
    }
    let row = sqlx::query(PROGRESS).bind(job.to_string()).bind(now);
    match row.fetch_optional(&mut *db).await? {
        Some(row) => record_event(db, &row, EventType::JobProgress, now).await,
        None => Ok(()),
    }
}

/// Records the fate of a channel, given its row, and tells the other mail channels of its workspace.
pub(super) async fn record_notice(
    db: &mut SqliteConnection,
    channel: &SqliteRow,
    notice: NoticeType,
    reason: &str,
    now: Micros,
) -> Result<()> {
    let channel_id: ChannelId = id(channel, "id")?;
    let (workspace, scope): (&str, &str) = (channel.try_get("workspace_id")?, channel.try_get("scope")?);
    let event_id = EventId::new().to_string();
    let payload = json!({
        "channel_id": channel_id,
        "channel_type": channel.try_get::<&str, _>("kind")?,
        "description": channel.try_get::<Option<&str>, _>("description")?,
        "reason": reason,
        "at": iso8601(now),
    });
    sqlx::query(
        "INSERT INTO events (id, workspace_id, workflow_id, sequence, type, payload, created_at)
         VALUES ($1, $2, $3, 0, $4, $5, $6)",
    )
    .bind(&event_id)
    .bind(workspace)
    .bind((!scope.is_empty()).then_some(scope))
    .bind(notice.as_str())
    .bind(payload.to_string())
    .bind(now)
    .execute(&mut *db)
    .await?;
    let channels = sqlx::query(NOTICED)
        .bind(workspace)
        .bind(scope)
        .bind(channel_id.to_string());
    let channels = channels.fetch_all(&mut *db).await?;
    hand_out(db, &channels, workspace, DeliveryKind::Notice, &event_id, now).await
}

async fn hand_out(
    db: &mut SqliteConnection,
    channels: &[SqliteRow],
    workspace: &str,
    kind: DeliveryKind,
    event: &str,
    now: Micros,
) -> Result<()> {
    if channels.is_empty() {
        return Ok(());
    }
    let mut deliveries = Vec::with_capacity(channels.len());
    for row in channels {
        let (channel, lane, receiver): (&str, &str, &str) =
            (row.try_get("id")?, row.try_get("kind")?, row.try_get("receiver")?);
        deliveries.push(json!([DeliveryId::new(), channel, lane, receiver]));
    }
    sqlx::query(HAND_OUT)
        .bind(Value::Array(deliveries).to_string())
        .bind(workspace)
        .bind(kind.as_str())
        .bind(event)
        .bind(now)
        .execute(db)
        .await?;
    Ok(())
}

fn payload(job: &SqliteRow, job_id: JobId, now: Micros) -> Result<Value> {
    let created: Micros = job.try_get("created_at")?;
    let (started, ended): (Option<Micros>, Option<Micros>) = (job.try_get("started_at")?, job.try_get("ended_at")?);
    let spent = ended.map(|at| (at - started.unwrap_or(created)).max(0) / 1_000);
    Ok(json!({
        "job_id": job_id,
        "workflow_id": job.try_get::<&str, _>("workflow_id")?,
        "workflow_name": job.try_get::<&str, _>("workflow_name")?,
        "job_type": job.try_get::<&str, _>("job_type")?,
        "status": job.try_get::<&str, _>("status")?,
        "message": job.try_get::<Option<&str>, _>("message")?,
        "files_total": count(job, "files_total")?,
        "files_succeeded": count(job, "files_succeeded")?,
        "files_failed": count(job, "files_failed")?,
        "created_at": iso8601(created),
        "started_at": started.map(iso8601),
        "ended_at": ended.map(iso8601),
        "processing_time_ms": spent,
        "at": iso8601(now),
    }))
}

/// A job's first failed files.
async fn failed_files(db: &mut SqliteConnection, job: JobId) -> Result<Vec<FailedFile>> {
    let rows = sqlx::query(
        "SELECT name, error_message FROM job_files WHERE job_id = $1 AND state = 'failed' ORDER BY ordinal LIMIT $2",
    )
    .bind(job.to_string())
    .bind(NAMED)
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            let reason: Option<&str> = row.try_get("error_message")?;
            Ok(FailedFile {
                name: row.try_get("name")?,
                reason: reason.unwrap_or_default().chars().take(REASON).collect(),
            })
        })
        .collect()
}
