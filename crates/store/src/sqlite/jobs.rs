//! Jobs: creation, reading, stopping, deletion, and the two transitions every other use case needs.

use docmill_model::ids::{AccountId, EventId, FileId, JobId, NodeId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus, JobTrigger, JobType, TaskState};
use docmill_model::time::{Micros, iso8601};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::rows::{code, count, id, json, parse_id, to_json, word};
use crate::{DeleteOutcome, Event, Job, JobFile, JobFilter, NewJob, Output, Result};

impl SqliteStore {
    pub(super) async fn take_create_turn(
        &self,
        account: AccountId,
        gap: Micros,
        now: Micros,
    ) -> Result<std::result::Result<(), Micros>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    // A time in the future can only come from a clock that was set back since.
                    let passed = sqlx::query(
                        "UPDATE accounts SET last_create_at = $2
                         WHERE id = $1 AND (last_create_at <= $2 - $3 OR last_create_at > $2)",
                    )
                    .bind(account.to_string())
                    .bind(now)
                    .bind(gap)
                    .execute(&mut *db)
                    .await?;
                    if passed.rows_affected() > 0 {
                        return Ok(Ok(()));
                    }
                    let last: i64 = sqlx::query_scalar("SELECT last_create_at FROM accounts WHERE id = $1")
                        .bind(account.to_string())
                        .fetch_one(db)
                        .await?;
                    Ok(Err((last + gap - now).max(1)))
                })
            })
            .await
    }

    pub(super) async fn insert_job(&self, job: NewJob, now: Micros) -> Result<()> {
        let max_running = self.max_running_local_jobs;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    insert(db, &job, now).await?;
                    record_event(db, job.id, JobStatus::Scheduled.event(), now).await?;
                    admit(db, &job.account.to_string(), max_running, now).await?;
                    Ok(())
                })
            })
            .await
    }

    pub(super) async fn find_job(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Job>> {
        let row = sqlx::query("SELECT * FROM jobs WHERE id = $1 AND workspace_id = $2")
            .bind(job.to_string())
            .bind(workspace.to_string())
            .fetch_optional(&self.readers)
            .await?;
        match row {
            Some(row) => {
                let mut job = job_record(&row)?;
                self.attach_files(std::slice::from_mut(&mut job)).await?;
                Ok(Some(job))
            }
            None => Ok(None),
        }
    }

    pub(super) async fn list_jobs(&self, workspace: WorkspaceId, filter: &JobFilter) -> Result<Vec<Job>> {
        let rows = sqlx::query(
            "SELECT * FROM jobs
             WHERE workspace_id = $1 AND ($2 IS NULL OR workflow_id = $2) AND ($3 IS NULL OR status = $3)
             ORDER BY seq DESC LIMIT $4",
        )
        .bind(workspace.to_string())
        .bind(filter.workflow.map(|w| w.to_string()))
        .bind(filter.status.map(|s| s.as_str()))
        .bind(if filter.limit == 0 {
            i64::MAX
        } else {
            filter.limit.into()
        })
        .fetch_all(&self.readers)
        .await?;
        let mut jobs = rows.iter().map(job_record).collect::<Result<Vec<_>>>()?;
        self.attach_files(&mut jobs).await?;
        Ok(jobs)
    }

    async fn attach_files(&self, jobs: &mut [Job]) -> Result<()> {
        for job in jobs {
            let files = sqlx::query("SELECT id FROM job_files WHERE job_id = $1 ORDER BY ordinal")
                .bind(job.id.to_string())
                .fetch_all(&self.readers)
                .await?;
            job.file_ids = files.iter().map(|row| id(row, "id")).collect::<Result<_>>()?;
            let outputs = sqlx::query(
                "SELECT o.node_id, o.file_id FROM outputs o JOIN job_files f ON f.id = o.file_id
                 WHERE o.job_id = $1 ORDER BY o.node_index, f.ordinal",
            )
            .bind(job.id.to_string())
            .fetch_all(&self.readers)
            .await?;
            job.outputs = outputs
                .iter()
                .map(|row| Ok((id(row, "node_id")?, id(row, "file_id")?)))
                .collect::<Result<_>>()?;
        }
        Ok(())
    }

    pub(super) async fn list_job_files(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Vec<JobFile>>> {
        let exists = sqlx::query("SELECT 1 FROM jobs WHERE id = $1 AND workspace_id = $2")
            .bind(job.to_string())
            .bind(workspace.to_string())
            .fetch_optional(&self.readers)
            .await?;
        if exists.is_none() {
            return Ok(None);
        }
        let rows = sqlx::query(
            "SELECT f.*, (SELECT count(*) FROM outputs o WHERE o.file_id = f.id) AS nodes_done
             FROM job_files f WHERE f.job_id = $1 ORDER BY f.ordinal",
        )
        .bind(job.to_string())
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(file_record).collect::<Result<_>>().map(Some)
    }

    pub(super) async fn find_output(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        file: FileId,
        node: Option<NodeId>,
    ) -> Result<Option<Output>> {
        let row = sqlx::query(
            "SELECT o.blob_key, o.size, f.name FROM outputs o JOIN job_files f ON f.id = o.file_id
             WHERE o.file_id = $1 AND o.job_id = $2 AND f.workspace_id = $3 AND ($4 IS NULL OR o.node_id = $4)
             ORDER BY o.node_index DESC LIMIT 1",
        )
        .bind(file.to_string())
        .bind(job.to_string())
        .bind(workspace.to_string())
        .bind(node.map(|n| n.to_string()))
        .fetch_optional(&self.readers)
        .await?;
        row.map(|row| {
            Ok(Output {
                blob_key: row.try_get("blob_key")?,
                size: count(&row, "size")?,
                file_name: row.try_get("name")?,
            })
        })
        .transpose()
    }

    pub(super) async fn cancel_job(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        now: Micros,
    ) -> Result<Option<JobStatus>> {
        let max_running = self.max_running_local_jobs;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let row = sqlx::query("SELECT status, account_id FROM jobs WHERE id = $1 AND workspace_id = $2")
                        .bind(job.to_string())
                        .bind(workspace.to_string())
                        .fetch_optional(&mut *db)
                        .await?;
                    let Some(row) = row else { return Ok(None) };
                    let before = word(&row, "status", JobStatus::parse)?;
                    if let Some(after) = before.after(JobTrigger::Cancel) {
                        sqlx::query(
                            "UPDATE job_files SET state = 'stopped', lease_until = NULL, ended_at = $2
                             WHERE job_id = $1 AND state IN ('waiting', 'ready', 'running')",
                        )
                        .bind(job.to_string())
                        .bind(now)
                        .execute(&mut *db)
                        .await?;
                        set_status(db, job, after, Some("cancelled on request"), now).await?;
                        admit(db, row.try_get("account_id")?, max_running, now).await?;
                    }
                    Ok(Some(before))
                })
            })
            .await
    }

    pub(super) async fn remove_job(&self, workspace: WorkspaceId, job: JobId) -> Result<DeleteOutcome> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let row = sqlx::query("SELECT status FROM jobs WHERE id = $1 AND workspace_id = $2")
                        .bind(job.to_string())
                        .bind(workspace.to_string())
                        .fetch_optional(&mut *db)
                        .await?;
                    let Some(row) = row else {
                        return Ok(DeleteOutcome::NotFound);
                    };
                    if !word(&row, "status", JobStatus::parse)?.is_terminal() {
                        return Ok(DeleteOutcome::NotEnded);
                    }
                    delete(db, job).await?;
                    Ok(DeleteOutcome::Deleted)
                })
            })
            .await
    }

    pub(super) async fn list_events(&self, workspace: WorkspaceId, job: JobId, after: i64) -> Result<Vec<Event>> {
        let rows = sqlx::query(
            "SELECT id, sequence, type, payload, created_at FROM events
             WHERE job_id = $1 AND workspace_id = $2 AND sequence > $3 ORDER BY sequence",
        )
        .bind(job.to_string())
        .bind(workspace.to_string())
        .bind(after)
        .fetch_all(&self.readers)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(Event {
                    id: id(row, "id")?,
                    sequence: row.try_get("sequence")?,
                    event_type: word(row, "type", EventType::parse)?,
                    payload: json(row, "payload")?,
                    created_at: row.try_get("created_at")?,
                })
            })
            .collect()
    }
}

async fn insert(db: &mut SqliteConnection, job: &NewJob, now: Micros) -> Result<()> {
    sqlx::query(
        "INSERT INTO jobs (id, workspace_id, account_id, workflow_id, workflow_name, job_type, status, chain,
                           retry_of, created_at, files_total)
         VALUES ($1, $2, $3, $4, $5, $6, 'SCHEDULED', $7, $8, $9, $10)",
    )
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
    .execute(&mut *db)
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
    Ok(())
}

/// Starts an account's waiting jobs, in order of arrival, while it has free slots.
pub(super) async fn admit(db: &mut SqliteConnection, account: &str, max_running: u32, now: Micros) -> Result<u64> {
    let mut admitted = 0;
    loop {
        let next: Option<String> = sqlx::query_scalar(
            "SELECT id FROM jobs WHERE account_id = $1 AND status = 'SCHEDULED' ORDER BY seq LIMIT 1",
        )
        .bind(account)
        .fetch_optional(&mut *db)
        .await?;
        let Some(next) = next else { return Ok(admitted) };
        if max_running > 0 {
            let running: i64 =
                sqlx::query_scalar("SELECT count(*) FROM jobs WHERE account_id = $1 AND status = 'IN_PROGRESS'")
                    .bind(account)
                    .fetch_one(&mut *db)
                    .await?;
            if running >= i64::from(max_running) {
                return Ok(admitted);
            }
        }
        sqlx::query("UPDATE job_files SET state = 'ready' WHERE job_id = $1 AND state = 'waiting'")
            .bind(&next)
            .execute(&mut *db)
            .await?;
        if let Some(status) = JobStatus::Scheduled.after(JobTrigger::Admit) {
            set_status(db, parse_id(&next)?, status, None, now).await?;
        }
        admitted += 1;
    }
}

/// Writes a job's new status, its times and the event that tells of it.
pub(super) async fn set_status(
    db: &mut SqliteConnection,
    job: JobId,
    status: JobStatus,
    message: Option<&str>,
    now: Micros,
) -> Result<()> {
    let sql = if status.is_terminal() {
        "UPDATE jobs SET status = $2, message = $3, ended_at = $4 WHERE id = $1"
    } else {
        "UPDATE jobs SET status = $2, message = $3, started_at = $4 WHERE id = $1"
    };
    sqlx::query(sql)
        .bind(job.to_string())
        .bind(status.as_str())
        .bind(message)
        .bind(now)
        .execute(&mut *db)
        .await?;
    record_event(db, job, status.event(), now).await
}

async fn record_event(db: &mut SqliteConnection, job: JobId, event: EventType, now: Micros) -> Result<()> {
    let row = sqlx::query(
        "UPDATE jobs SET event_count = event_count + 1 WHERE id = $1
         RETURNING event_count, workspace_id, workflow_id, workflow_name, status,
                   files_total, files_succeeded, files_failed",
    )
    .bind(job.to_string())
    .fetch_one(&mut *db)
    .await?;
    let payload = json!({
        "job_id": job,
        "workflow_id": row.try_get::<&str, _>("workflow_id")?,
        "workflow_name": row.try_get::<&str, _>("workflow_name")?,
        "status": row.try_get::<&str, _>("status")?,
        "files_total": count(&row, "files_total")?,
        "files_succeeded": count(&row, "files_succeeded")?,
        "files_failed": count(&row, "files_failed")?,
        "at": iso8601(now),
    });
    sqlx::query(
        "INSERT INTO events (id, job_id, workspace_id, sequence, type, payload, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(EventId::new().to_string())
    .bind(job.to_string())
    .bind(row.try_get::<&str, _>("workspace_id")?)
    .bind(row.try_get::<i64, _>("event_count")?)
    .bind(event.as_str())
    .bind(payload.to_string())
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
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

fn job_record(row: &SqliteRow) -> Result<Job> {
    Ok(Job {
        id: id(row, "id")?,
        workflow: id(row, "workflow_id")?,
        workflow_name: row.try_get("workflow_name")?,
        job_type: word(row, "job_type", JobType::parse)?,
        status: word(row, "status", JobStatus::parse)?,
        chain: json(row, "chain")?,
        message: row.try_get("message")?,
        created_at: row.try_get("created_at")?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        files_total: count(row, "files_total")?,
        files_succeeded: count(row, "files_succeeded")?,
        files_failed: count(row, "files_failed")?,
        file_ids: Vec::new(),
        outputs: Vec::new(),
    })
}

fn file_record(row: &SqliteRow) -> Result<JobFile> {
    let error_code: Option<String> = row.try_get("error_code")?;
    let message: Option<String> = row.try_get("error_message")?;
    let warnings: Option<String> = row.try_get("warnings")?;
    Ok(JobFile {
        id: id(row, "id")?,
        name: row.try_get("name")?,
        content_type: row.try_get("content_type")?,
        size: count(row, "size")?,
        blob_key: row.try_get("blob_key")?,
        state: word(row, "state", TaskState::parse)?,
        attempt: count(row, "attempt")? as u32,
        error: error_code.map(|text| (code(&text), message.unwrap_or_default())),
        warnings: match warnings {
            Some(_) => json(row, "warnings")?,
            None => Vec::new(),
        },
        elements: row.try_get::<Option<i64>, _>("elements")?.map(|n| n.max(0) as u64),
        pages: row.try_get::<Option<i64>, _>("pages")?.map(|n| n.max(0) as u64),
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        nodes_done: count(row, "nodes_done")?,
    })
}
