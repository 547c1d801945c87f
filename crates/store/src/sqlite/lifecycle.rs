//! How a job comes into being, moves on and goes: the steps that several use cases share. Each runs in
//! its caller's transaction.

use docmill_model::ids::JobId;
use docmill_model::job::{JobStatus, JobTrigger};
use docmill_model::time::Micros;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::Slots;
use super::events::{event_columns, record_event, record_progress};
use super::naming;
use super::paid::resume;
use super::rows::{action_word, count, id, parse_id, size_column, to_json, word};

use crate::{FileInput, NewFile, NewJob, NewRun, Result, StoreError};

/// The account's next job of a kind to start, and how many of them run.
pub(super) const NEXT_WAITING: &str = "SELECT j.id, j.files_total, j.listing,
        (SELECT count(*) FROM jobs r
         WHERE r.account_id = $1 AND r.status = 'IN_PROGRESS' AND r.stored = $2) AS running
     FROM jobs j WHERE j.account_id = $1 AND j.stored = $2 AND j.status = 'SCHEDULED' ORDER BY j.seq LIMIT 1";

/// Records a job that waits, its files, its listing and its first event.
pub(super) async fn insert(db: &mut SqliteConnection, job: &NewJob, now: Micros) -> Result<()> {
    let none = NewRun::default();
    let run = job.run.as_ref().unwrap_or(&none);
    let listed = !run.sources.is_empty();
    let from_sources = listed
        || job
            .files
            .iter()
            .any(|file| matches!(file.input, FileInput::Source { .. }));
    let row = sqlx::query(concat!(
        "INSERT INTO jobs (id, workspace_id, account_id, workflow_id, workflow_name, job_type, status, chain,
                           retry_of, created_at, files_total, event_count, stored, from_sources, destinations,
                           reprocess_all, listing)
         VALUES ($1, $2, $3, $4, $5, $6, 'SCHEDULED', $7, $8, $9, $10, 1, $11, $12, $13, $14, $15) ",
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
    .bind(job.run.is_some())
    .bind(from_sources)
    .bind(to_json(&run.destinations)?)
    .bind(run.reprocess_all)
    .bind(listed.then_some("open"))
    .fetch_one(&mut *db)
    .await?;
    for (ordinal, file) in job.files.iter().enumerate() {
        insert_file(db, job, ordinal, file).await?;
    }
    if listed {
        sqlx::query(
            "INSERT INTO listings (job_id, job_seq, sources, delete_removed, listed)
             SELECT id, seq, $2, $3, $4 FROM jobs WHERE id = $1",
        )
        .bind(job.id.to_string())
        .bind(to_json(&run.sources)?)
        .bind(run.delete_removed)
        .bind(job.files.len() as i64)
        .execute(&mut *db)
        .await?;
    }
    naming::settle(db, job).await?;
    record_event(db, &row, JobStatus::Scheduled.event(), now).await
}

async fn insert_file(db: &mut SqliteConnection, job: &NewJob, ordinal: usize, file: &NewFile) -> Result<()> {
    let (blob_key, source) = match &file.input {
        FileInput::Blob(key) => (key.as_str(), None),
        FileInput::Source { source, object, action } => ("", Some((source, object, *action))),
    };
    sqlx::query(
        "INSERT INTO job_files (id, job_id, workspace_id, ordinal, name, content_type, size, blob_key, state,
                                source_id, locator, object, action)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', $9, $10, $11, $12)",
    )
    .bind(file.id.to_string())
    .bind(job.id.to_string())
    .bind(job.workspace.to_string())
    .bind(ordinal as i64)
    .bind(&file.name)
    .bind(&file.content_type)
    .bind(size_column(file.size))
    .bind(blob_key)
    .bind(source.map(|(source, _, _)| source.to_string()))
    .bind(source.map(|(_, object, _)| object.locator.as_str()))
    .bind(source.map(|(_, object, _)| to_json(object)).transpose()?)
    .bind(source.map(|(_, _, action)| action_word(action)))
    .execute(&mut *db)
    .await?;
    match (job.retry_of, file.resumes) {
        (Some(_), Some(from)) => resume(db, job.id, from, file.id).await,
        _ => Ok(()),
    }
}

/// Refuses a retry of what the job it retries no longer holds: that job was deleted meanwhile, so
/// blobs are garbage or about to be.
pub(super) async fn check_original(db: &mut SqliteConnection, job: &NewJob) -> Result<()> {
    let Some(original) = job.retry_of else { return Ok(()) };
    for file in &job.files {
        let held = match &file.input {
            FileInput::Blob(key) => {
                sqlx::query("SELECT 1 FROM job_files WHERE blob_key = $1 AND job_id = $2 AND workspace_id = $3 LIMIT 1")
                    .bind(key)
            }
            FileInput::Source { object, .. } => sqlx::query(
                "SELECT 1 FROM job_files
                 WHERE locator = $1 AND job_id = $2 AND workspace_id = $3 AND source_id = $4 LIMIT 1",
            )
            .bind(&object.locator),
        };
        let held = held.bind(original.to_string()).bind(job.workspace.to_string());
        let held = match &file.input {
            FileInput::Blob(_) => held,
            FileInput::Source { source, .. } => held.bind(source.to_string()),
        };
        let held = held.fetch_optional(&mut *db).await?;
        held.ok_or(StoreError::OriginalGone(original))?;
    }
    Ok(())
}

/// Refuses a run whose workflow may not run now.
pub(super) async fn check_workflow(db: &mut SqliteConnection, job: &NewJob) -> Result<()> {
    let Some(run) = &job.run else { return Ok(()) };
    let state: Option<String> =
        sqlx::query_scalar("SELECT state FROM workflows WHERE id = $1 AND workspace_id = $2 AND deleted = 0")
            .bind(job.workflow.to_string())
            .bind(job.workspace.to_string())
            .fetch_optional(&mut *db)
            .await?;
    match state.as_deref() {
        None => return Err(StoreError::WorkflowGone(job.workflow)),
        Some("active") => {}
        Some(_) => return Err(StoreError::WorkflowInactive(job.workflow)),
    }
    if run.sources.is_empty() {
        return Ok(());
    }
    let active: Option<String> = sqlx::query_scalar(
        "SELECT id FROM jobs WHERE workflow_id = $1 AND stored = 1 AND status IN ('SCHEDULED', 'IN_PROGRESS')
             AND listing IS NOT NULL LIMIT 1",
    )
    .bind(job.workflow.to_string())
    .fetch_optional(db)
    .await?;
    match active {
        Some(run) => Err(StoreError::RunActive(parse_id(&run)?)),
        None => Ok(()),
    }
}

/// Starts an account's waiting jobs of a kind (`stored`: runs of stored workflows), in order of arrival,
/// while it has free slots; how many.
///
/// A job without files and sources ends as it starts, unless it is `fresh`: the one this transaction
/// creates, which its creator has to see before it ends.
pub(super) async fn admit(
    db: &mut SqliteConnection,
    account: &str,
    stored: bool,
    slots: Slots,
    fresh: Option<JobId>,
    now: Micros,
) -> Result<u64> {
    let slots = if stored { slots.workflow_jobs } else { slots.local_jobs };
    let mut admitted = 0;
    loop {
        let next = sqlx::query(NEXT_WAITING).bind(account).bind(stored);
        let Some(next) = next.fetch_optional(&mut *db).await? else {
            return Ok(admitted);
        };
        if slots > 0 && count(&next, "running")? >= u64::from(slots) {
            return Ok(admitted);
        }
        let job: JobId = id(&next, "id")?;
        let listed = next.try_get::<Option<&str>, _>("listing")?.is_some();
        sqlx::query("UPDATE job_files SET state = 'ready' WHERE job_id = $1 AND state = 'waiting'")
            .bind(job.to_string())
            .execute(&mut *db)
            .await?;
        if listed {
            sqlx::query("UPDATE listings SET started = 1 WHERE job_id = $1")
                .bind(job.to_string())
                .execute(&mut *db)
                .await?;
        }
        let started = change_status(db, job, JobStatus::Scheduled, JobTrigger::Admit, None, now).await?;
        if let Some(started) = started
            && count(&next, "files_total")? == 0
            && !listed
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

/// Counts ended files of a job (none, to only look) and ends the job when they were its last and no more
/// are being listed; whether it ended.
pub(super) async fn count_ended(
    db: &mut SqliteConnection,
    job: JobId,
    succeeded: u32,
    failed: u32,
    slots: Slots,
    now: Micros,
) -> Result<bool> {
    let row = sqlx::query(
        "UPDATE jobs SET files_succeeded = files_succeeded + $2, files_failed = files_failed + $3
         WHERE id = $1 AND status = 'IN_PROGRESS'
         RETURNING status, account_id, stored, listing, listing_error, files_total, files_succeeded, files_failed,
             started_at, progress_at",
    )
    .bind(job.to_string())
    .bind(succeeded)
    .bind(failed)
    .fetch_optional(&mut *db)
    .await?;
    let Some(row) = row else { return Ok(false) };
    let (succeeded, failed) = (count(&row, "files_succeeded")?, count(&row, "files_failed")?);
    let open = row.try_get::<Option<&str>, _>("listing")? == Some("open");
    if open || succeeded + failed < count(&row, "files_total")? {
        record_progress(db, job, &row, now).await?;
        return Ok(false);
    }
    let files = match (succeeded, failed) {
        (_, 0) => None,
        (0, failed) => Some(format!(
            "no file was processed: {}",
            first_reasons(db, job, failed).await?
        )),
        (_, failed) => Some(format!("{failed} of {} files failed", succeeded + failed)),
    };
    let unlisted: Option<String> = row.try_get("listing_error")?;
    let listing_failed = u64::from(unlisted.is_some());
    let message = match (unlisted, files) {
        (Some(reason), Some(files)) => Some(format!("the sources could not be listed to the end: {reason}; {files}")),
        (Some(reason), None) => Some(format!("the sources could not be listed to the end: {reason}")),
        (None, files) => files,
    };
    let status = word(&row, "status", JobStatus::parse)?;
    let trigger = JobTrigger::AllFilesEnded {
        succeeded,
        failed: failed + listing_failed,
    };
    change_status(db, job, status, trigger, message.as_deref(), now).await?;
    let (account, stored) = (row.try_get("account_id")?, row.try_get("stored")?);
    admit(db, account, stored, slots, None, now).await?;
    Ok(true)
}

/// Stops a job that has not ended, with its files and its listing; its status before. Whoever stops a job
/// has to [`admit`] the next.
pub(super) async fn stop(db: &mut SqliteConnection, job: &SqliteRow, message: &str, now: Micros) -> Result<JobStatus> {
    let job_id: JobId = id(job, "id")?;
    let before = word(job, "status", JobStatus::parse)?;
    let stopped = change_status(db, job_id, before, JobTrigger::Cancel, Some(message), now).await?;
    if stopped.is_none() {
        return Ok(before);
    }
    // A run may have a million files, but few that have not ended: those are found by what is ready or
    // running in the workspace. Only a job that has not started has waiting ones.
    let states: &[&'static str] = match before {
        JobStatus::Scheduled => &[STOP_WAITING],
        _ => &[STOP_READY, STOP_RUNNING],
    };
    for &sql in states {
        sqlx::query(sql)
            .bind(job_id.to_string())
            .bind(now)
            .bind(job.try_get::<&str, _>("workspace_id")?)
            .execute(&mut *db)
            .await?;
    }
    sqlx::query("DELETE FROM listings WHERE job_id = $1")
        .bind(job_id.to_string())
        .execute(&mut *db)
        .await?;
    Ok(before)
}

const STOP_WAITING: &str = "UPDATE job_files SET state = 'stopped', ended_at = $2
     WHERE job_id = $1 AND workspace_id = $3 AND state = 'waiting'";
pub(super) const STOP_READY: &str = "UPDATE job_files SET state = 'stopped', ended_at = $2
     WHERE seq IN (SELECT seq FROM job_files INDEXED BY job_files_ready
                   WHERE workspace_id = $3 AND state = 'ready' AND job_id = $1)";
pub(super) const STOP_RUNNING: &str = "UPDATE job_files SET state = 'stopped', lease_until = NULL, ended_at = $2
     WHERE seq IN (SELECT seq FROM job_files INDEXED BY job_files_running
                   WHERE workspace_id = $3 AND state = 'running' AND job_id = $1)";

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
