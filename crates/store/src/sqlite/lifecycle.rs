//! How a job comes into being, moves on and goes: the steps that several use cases share. Each runs in
//! its caller's transaction.

use docmill_model::ids::{EventId, JobId};
use docmill_model::job::{EventType, JobStatus, JobTrigger};
use docmill_model::time::{Micros, iso8601};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::rows::{count, id, to_json, word};
use crate::{NewJob, Result, StoreError};

/// What an event tells about its job; a macro so that it can be part of literals.
macro_rules! event_columns {
    () => {
        "RETURNING id, event_count, workspace_id, workflow_id, workflow_name, status,
                   files_total, files_succeeded, files_failed"
    };
}

/// The account's next job to start, and how many run.
pub(super) const NEXT_WAITING: &str = "SELECT j.id, j.files_total,
        (SELECT count(*) FROM jobs r WHERE r.account_id = $1 AND r.status = 'IN_PROGRESS') AS running
     FROM jobs j WHERE j.account_id = $1 AND j.status = 'SCHEDULED' ORDER BY j.seq LIMIT 1";

/// Records a job that waits, its files and its first event.
pub(super) async fn insert(db: &mut SqliteConnection, job: &NewJob, now: Micros) -> Result<()> {
    let row = sqlx::query(concat!(
        "INSERT INTO jobs (id, workspace_id, account_id, workflow_id, workflow_name, job_type, status, chain,
                           retry_of, created_at, files_total, event_count)
         VALUES ($1, $2, $3, $4, $5, $6, 'SCHEDULED', $7, $8, $9, $10, 1) ",
        event_columns!()
    ))
    .bind(job.id.to_string())
    .bind(job.workspace.to_string())
    .bind(job.account.to_string())
    .bind(job.workflow.to_string())
    .bind(&job.workflow_name)
    .bind(job.job_type.as_str())
    .bind(to_json(&job.chain)?)
    .bind(job.retry_of.map(|id| id.to_string()))
    .bind(now)
    .bind(job.files.len() as i64)
    .fetch_one(&mut *db)
    .await?;
    for (ordinal, file) in job.files.iter().enumerate() {
        sqlx::query(
            "INSERT INTO job_files (id, job_id, workspace_id, ordinal, name, content_type, size, blob_key, state)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting')",
        )
        .bind(file.id.to_string())
        .bind(job.id.to_string())
        .bind(job.workspace.to_string())
        .bind(ordinal as i64)
        .bind(&file.name)
        .bind(&file.content_type)
        .bind(file.size as i64)
        .bind(&file.blob_key)
        .execute(&mut *db)
        .await?;
    }
    record_event(db, &row, JobStatus::Scheduled.event(), now).await
}

/// Refuses a retry whose blobs the job it retries no longer holds: that job was deleted meanwhile, so
/// they are garbage or about to be.
pub(super) async fn check_original(db: &mut SqliteConnection, job: &NewJob) -> Result<()> {
    let Some(original) = job.retry_of else { return Ok(()) };
    for file in &job.files {
        sqlx::query("SELECT 1 FROM job_files WHERE blob_key = $1 AND job_id = $2 AND workspace_id = $3 LIMIT 1")
            .bind(&file.blob_key)
            .bind(original.to_string())
            .bind(job.workspace.to_string())
            .fetch_optional(&mut *db)
            .await?
            .ok_or(StoreError::OriginalGone(original))?;
    }
    Ok(())
}

/// Starts an account's waiting jobs, in order of arrival, while it has free slots; how many.
///
/// A job without files ends as it starts, unless it is `fresh`: the one this transaction creates, which
/// its creator has to see before it ends.
pub(super) async fn admit(
    db: &mut SqliteConnection,
    account: &str,
    max_running: u32,
    fresh: Option<JobId>,
    now: Micros,
) -> Result<u64> {
    let mut admitted = 0;
    loop {
        let next = sqlx::query(NEXT_WAITING).bind(account).fetch_optional(&mut *db).await?;
        let Some(next) = next else { return Ok(admitted) };
        if max_running > 0 && count(&next, "running")? >= u64::from(max_running) {
            return Ok(admitted);
        }
        let job: JobId = id(&next, "id")?;
        sqlx::query("UPDATE job_files SET state = 'ready' WHERE job_id = $1 AND state = 'waiting'")
            .bind(job.to_string())
            .execute(&mut *db)
            .await?;
        let started = change_status(db, job, JobStatus::Scheduled, JobTrigger::Admit, None, now).await?;
        if let Some(started) = started
            && count(&next, "files_total")? == 0
            && fresh != Some(job)
        {
            let nothing = JobTrigger::AllFilesEnded {
                succeeded: 0,
                failed: 0,
            };
            change_status(db, job, started, nothing, None, now).await?;
        }
        admitted += 1;
    }
}

/// Moves a job on from `status` as `trigger` says, and records the event that tells of it. The status
/// after, or `None` where the trigger changes nothing.
pub(super) async fn change_status(
    db: &mut SqliteConnection,
    job: JobId,
    status: JobStatus,
    trigger: JobTrigger,
    message: Option<&str>,
    now: Micros,
) -> Result<Option<JobStatus>> {
    let Some(after) = status.after(trigger) else {
        return Ok(None);
    };
    let sql = if after.is_terminal() {
        concat!(
            "UPDATE jobs SET status = $2, message = $3, ended_at = $4, event_count = event_count + 1
             WHERE id = $1 AND status = $5 ",
            event_columns!()
        )
    } else {
        concat!(
            "UPDATE jobs SET status = $2, message = $3, started_at = $4, event_count = event_count + 1
             WHERE id = $1 AND status = $5 ",
            event_columns!()
        )
    };
    let row = sqlx::query(sql)
        .bind(job.to_string())
        .bind(after.as_str())
        .bind(message)
        .bind(now)
        .bind(status.as_str())
        .fetch_one(&mut *db)
        .await?;
    record_event(db, &row, after.event(), now).await?;
    Ok(Some(after))
}

async fn record_event(db: &mut SqliteConnection, job: &SqliteRow, event: EventType, now: Micros) -> Result<()> {
    let job_id: JobId = id(job, "id")?;
    let payload = json!({
        "job_id": job_id,
        "workflow_id": job.try_get::<&str, _>("workflow_id")?,
        "workflow_name": job.try_get::<&str, _>("workflow_name")?,
        "status": job.try_get::<&str, _>("status")?,
        "files_total": count(job, "files_total")?,
        "files_succeeded": count(job, "files_succeeded")?,
        "files_failed": count(job, "files_failed")?,
        "at": iso8601(now),
    });
    sqlx::query(
        "INSERT INTO events (id, job_id, workspace_id, sequence, type, payload, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(EventId::new().to_string())
    .bind(job_id.to_string())
    .bind(job.try_get::<&str, _>("workspace_id")?)
    .bind(job.try_get::<i64, _>("event_count")?)
    .bind(event.as_str())
    .bind(payload.to_string())
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Counts ended files of a job (none, to only look) and ends the job when they were its last; whether
/// it ended.
pub(super) async fn count_ended(
    db: &mut SqliteConnection,
    job: JobId,
    succeeded: u32,
    failed: u32,
    max_running: u32,
    now: Micros,
) -> Result<bool> {
    let row = sqlx::query(
        "UPDATE jobs SET files_succeeded = files_succeeded + $2, files_failed = files_failed + $3
         WHERE id = $1 AND status = 'IN_PROGRESS'
         RETURNING status, account_id, files_total, files_succeeded, files_failed",
    )
    .bind(job.to_string())
    .bind(succeeded)
    .bind(failed)
    .fetch_optional(&mut *db)
    .await?;
    let Some(row) = row else { return Ok(false) };
    let (succeeded, failed) = (count(&row, "files_succeeded")?, count(&row, "files_failed")?);
    if succeeded + failed < count(&row, "files_total")? {
        return Ok(false);
    }
    let message = match (succeeded, failed) {
        (_, 0) => None,
        (0, failed) => Some(format!(
            "no file was processed: {}",
            first_reasons(db, job, failed).await?
        )),
        (_, failed) => Some(format!("{failed} of {} files failed", succeeded + failed)),
    };
    let status = word(&row, "status", JobStatus::parse)?;
    let trigger = JobTrigger::AllFilesEnded { succeeded, failed };
    change_status(db, job, status, trigger, message.as_deref(), now).await?;
    admit(db, row.try_get("account_id")?, max_running, None, now).await?;
    Ok(true)
}

/// The reasons of a job's first failed files, for its message.
async fn first_reasons(db: &mut SqliteConnection, job: JobId, failed: u64) -> Result<String> {
    const SHOWN: u64 = 3;
    let rows = sqlx::query(
        "SELECT name, error_message FROM job_files WHERE job_id = $1 AND state = 'failed' ORDER BY ordinal LIMIT $2",
    )
    .bind(job.to_string())
    .bind(SHOWN as i64)
    .fetch_all(db)
    .await?;
    let mut reasons = Vec::new();
    for row in &rows {
        let message: Option<String> = row.try_get("error_message")?;
        reasons.push(format!(
            "{}: {}",
            row.try_get::<&str, _>("name")?,
            message.unwrap_or_default()
        ));
    }
    if failed > SHOWN {
        reasons.push(format!("and {} more", failed - SHOWN));
    }
    Ok(reasons.join("; "))
}

/// Removes a job's rows; blobs that only it referred to become garbage.
pub(super) async fn delete(db: &mut SqliteConnection, job: JobId) -> Result<()> {
    let job = job.to_string();
    let statements = [
        // A retry refers to its original's input blobs, so only those no other job holds may go.
        "INSERT INTO blob_garbage (blob_key)
         SELECT f.blob_key FROM job_files f WHERE f.job_id = $1 AND NOT EXISTS
             (SELECT 1 FROM job_files g WHERE g.blob_key = f.blob_key AND g.job_id <> $1)
         ON CONFLICT DO NOTHING",
        "INSERT INTO blob_garbage (blob_key) SELECT blob_key FROM outputs WHERE job_id = $1 ON CONFLICT DO NOTHING",
        "DELETE FROM outputs WHERE job_id = $1",
        "DELETE FROM events WHERE job_id = $1",
        "DELETE FROM job_files WHERE job_id = $1",
        "DELETE FROM jobs WHERE id = $1",
    ];
    for sql in statements {
        sqlx::query(sql).bind(&job).execute(&mut *db).await?;
    }
    Ok(())
}
