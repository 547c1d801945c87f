//! Tasks: claiming, leasing and ending the files of running jobs.

use docmill_model::Code;
use docmill_model::ids::{FileId, JobId, NodeId};
use docmill_model::job::{JobStatus, JobTrigger};
use docmill_model::time::Micros;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::jobs::{admit, set_status};
use super::rows::{count, id, json, to_json, word};
use crate::{Claim, FileOutcome, Lease, Result, StoreError};

impl SqliteStore {
    pub(super) async fn claim_files(&self, max: usize, lease_until: Micros, now: Micros) -> Result<Vec<Claim>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut claims = Vec::new();
                    while claims.len() < max {
                        // Each round the workspace with the fewest running files comes first, so that one
                        // with a long queue can't keep the others waiting.
                        let workspaces: Vec<String> = sqlx::query_scalar(
                            "SELECT w.id FROM workspaces w
                             WHERE EXISTS (SELECT 1 FROM job_files f
                                           WHERE f.workspace_id = w.id AND f.state = 'ready' AND f.not_before <= $1)
                             ORDER BY (SELECT count(*) FROM job_files r
                                       WHERE r.workspace_id = w.id AND r.state = 'running'),
                                      w.last_claimed_at
                             LIMIT $2",
                        )
                        .bind(now)
                        .bind((max - claims.len()) as i64)
                        .fetch_all(&mut *db)
                        .await?;
                        if workspaces.is_empty() {
                            break;
                        }
                        for workspace in workspaces {
                            claims.extend(claim_one(db, &workspace, lease_until, now).await?);
                        }
                    }
                    Ok(claims)
                })
            })
            .await
    }

    pub(super) async fn renew_leases(&self, leases: Vec<Lease>, lease_until: Micros) -> Result<Vec<Lease>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut lost = Vec::new();
                    for lease in leases {
                        let done = sqlx::query(
                            "UPDATE job_files SET lease_until = $3 WHERE id = $1 AND token = $2 AND state = 'running'",
                        )
                        .bind(lease.file.to_string())
                        .bind(lease.token)
                        .bind(lease_until)
                        .execute(&mut *db)
                        .await?;
                        if done.rows_affected() == 0 {
                            lost.push(lease);
                        }
                    }
                    Ok(lost)
                })
            })
            .await
    }

    pub(super) async fn finish_file(&self, lease: Lease, outcome: FileOutcome, now: Micros) -> Result<()> {
        let max_running = self.max_running_local_jobs;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(job) = end_file(db, lease, &outcome, now).await? else {
                        return Err(StoreError::LeaseLost);
                    };
                    match outcome {
                        FileOutcome::Retry { .. } => Ok(()),
                        FileOutcome::Succeeded { .. } => count_ended(db, job, true, max_running, now).await,
                        FileOutcome::Failed { .. } => count_ended(db, job, false, max_running, now).await,
                    }
                })
            })
            .await
    }

    pub(super) async fn release_file(&self, lease: Lease) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    sqlx::query(
                        "UPDATE job_files SET state = 'ready', attempt = attempt - 1, lease_until = NULL
                         WHERE id = $1 AND token = $2 AND state = 'running'",
                    )
                    .bind(lease.file.to_string())
                    .bind(lease.token)
                    .execute(db)
                    .await?;
                    Ok(())
                })
            })
            .await
    }

    pub(super) async fn recover_files(&self, all_running: bool, max_attempts: u32, now: Micros) -> Result<u64> {
        let max_running = self.max_running_local_jobs;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let rows = sqlx::query(
                        "SELECT id, token, attempt FROM job_files
                         WHERE state = 'running' AND ($1 OR lease_until < $2)",
                    )
                    .bind(all_running)
                    .bind(now)
                    .fetch_all(&mut *db)
                    .await?;
                    for row in &rows {
                        let lease = Lease {
                            file: id(row, "id")?,
                            token: row.try_get("token")?,
                        };
                        if count(row, "attempt")? < u64::from(max_attempts) {
                            end_file(db, lease, &FileOutcome::Retry { not_before: now }, now).await?;
                            continue;
                        }
                        let outcome = FileOutcome::Failed {
                            code: Code::AttemptsExhausted,
                            message: format!("the server stopped {max_attempts} times while it processed this file"),
                        };
                        if let Some(job) = end_file(db, lease, &outcome, now).await? {
                            count_ended(db, job, false, max_running, now).await?;
                        }
                    }
                    Ok(rows.len() as u64)
                })
            })
            .await
    }

    pub(super) async fn settle_jobs(&self, now: Micros) -> Result<u64> {
        let max_running = self.max_running_local_jobs;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut touched = 0;
                    let done: Vec<String> = sqlx::query_scalar(
                        "SELECT id FROM jobs
                         WHERE status = 'IN_PROGRESS' AND files_succeeded + files_failed >= files_total",
                    )
                    .fetch_all(&mut *db)
                    .await?;
                    for job in done {
                        close_if_done(db, super::rows::parse_id(&job)?, max_running, now).await?;
                        touched += 1;
                    }
                    let waiting: Vec<String> =
                        sqlx::query_scalar("SELECT DISTINCT account_id FROM jobs WHERE status = 'SCHEDULED'")
                            .fetch_all(&mut *db)
                            .await?;
                    for account in waiting {
                        touched += admit(db, &account, max_running, now).await?;
                    }
                    Ok(touched)
                })
            })
            .await
    }
}

async fn claim_one(
    db: &mut SqliteConnection,
    workspace: &str,
    lease_until: Micros,
    now: Micros,
) -> Result<Option<Claim>> {
    let row = sqlx::query(
        "UPDATE job_files
         SET state = 'running', token = token + 1, attempt = attempt + 1, lease_until = $2,
             started_at = COALESCE(started_at, $3)
         WHERE seq = (SELECT seq FROM job_files
                      WHERE workspace_id = $1 AND state = 'ready' AND not_before <= $3 ORDER BY seq LIMIT 1)
         RETURNING id, token, attempt, job_id, workspace_id, name, content_type, blob_key, size,
                   (SELECT chain FROM jobs WHERE jobs.id = job_id) AS chain",
    )
    .bind(workspace)
    .bind(lease_until)
    .bind(now)
    .fetch_optional(&mut *db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    sqlx::query("UPDATE workspaces SET last_claimed_at = $2 WHERE id = $1")
        .bind(workspace)
        .bind(now)
        .execute(db)
        .await?;
    Ok(Some(Claim {
        lease: Lease {
            file: id(&row, "id")?,
            token: row.try_get("token")?,
        },
        job: id(&row, "job_id")?,
        workspace: id(&row, "workspace_id")?,
        chain: json(&row, "chain")?,
        name: row.try_get("name")?,
        content_type: row.try_get("content_type")?,
        blob_key: row.try_get("blob_key")?,
        size: count(&row, "size")?,
        attempt: count(&row, "attempt")? as u32,
    }))
}

/// Writes a claimed file's outcome; the file's job, or `None` when the lease is lost.
async fn end_file(
    db: &mut SqliteConnection,
    lease: Lease,
    outcome: &FileOutcome,
    now: Micros,
) -> Result<Option<JobId>> {
    let (file, token) = (lease.file.to_string(), lease.token);
    let row = match outcome {
        FileOutcome::Succeeded {
            warnings,
            elements,
            pages,
            ..
        } => {
            sqlx::query(
                "UPDATE job_files SET state = 'succeeded', lease_until = NULL, ended_at = $3, warnings = $4,
                        elements = $5, pages = $6, error_code = NULL, error_message = NULL
             WHERE id = $1 AND token = $2 AND state = 'running' RETURNING job_id",
            )
            .bind(file)
            .bind(token)
            .bind(now)
            .bind(to_json(warnings)?)
            .bind(*elements as i64)
            .bind(*pages as i64)
            .fetch_optional(&mut *db)
            .await?
        }
        FileOutcome::Failed { code, message } => {
            sqlx::query(
                "UPDATE job_files SET state = 'failed', lease_until = NULL, ended_at = $3, error_code = $4,
                        error_message = $5
             WHERE id = $1 AND token = $2 AND state = 'running' RETURNING job_id",
            )
            .bind(file)
            .bind(token)
            .bind(now)
            .bind(code.as_str())
            .bind(message)
            .fetch_optional(&mut *db)
            .await?
        }
        FileOutcome::Retry { not_before } => {
            sqlx::query(
                "UPDATE job_files SET state = 'ready', lease_until = NULL, not_before = $3
             WHERE id = $1 AND token = $2 AND state = 'running' RETURNING job_id",
            )
            .bind(file)
            .bind(token)
            .bind(not_before)
            .fetch_optional(&mut *db)
            .await?
        }
    };
    let Some(row) = row else { return Ok(None) };
    let job = id(&row, "job_id")?;
    if let FileOutcome::Succeeded { outputs, .. } = outcome {
        insert_outputs(db, lease.file, job, outputs).await?;
    }
    Ok(Some(job))
}

async fn insert_outputs(
    db: &mut SqliteConnection,
    file: FileId,
    job: JobId,
    outputs: &[(NodeId, u32, String, u64)],
) -> Result<()> {
    for (node, index, blob_key, size) in outputs {
        sqlx::query(
            "INSERT INTO outputs (file_id, node_id, job_id, node_index, blob_key, size) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(file.to_string())
        .bind(node.to_string())
        .bind(job.to_string())
        .bind(i64::from(*index))
        .bind(blob_key)
        .bind(*size as i64)
        .execute(&mut *db)
        .await?;
    }
    Ok(())
}

/// Counts an ended file and ends its job when it was the last.
async fn count_ended(
    db: &mut SqliteConnection,
    job: JobId,
    succeeded: bool,
    max_running: u32,
    now: Micros,
) -> Result<()> {
    sqlx::query(
        "UPDATE jobs SET files_succeeded = files_succeeded + $2, files_failed = files_failed + $3 WHERE id = $1",
    )
    .bind(job.to_string())
    .bind(i64::from(succeeded))
    .bind(i64::from(!succeeded))
    .execute(&mut *db)
    .await?;
    close_if_done(db, job, max_running, now).await
}

async fn close_if_done(db: &mut SqliteConnection, job: JobId, max_running: u32, now: Micros) -> Result<()> {
    let row =
        sqlx::query("SELECT status, account_id, files_total, files_succeeded, files_failed FROM jobs WHERE id = $1")
            .bind(job.to_string())
            .fetch_one(&mut *db)
            .await?;
    let (succeeded, failed) = (count(&row, "files_succeeded")?, count(&row, "files_failed")?);
    if succeeded + failed < count(&row, "files_total")? {
        return Ok(());
    }
    let status = word(&row, "status", JobStatus::parse)?;
    let Some(after) = status.after(JobTrigger::AllFilesEnded { succeeded, failed }) else {
        return Ok(());
    };
    let message = match (succeeded, failed) {
        (_, 0) => None,
        (0, failed) => Some(format!(
            "no file was processed: {}",
            first_reasons(db, job, failed).await?
        )),
        (_, failed) => Some(format!("{failed} of {} files failed", succeeded + failed)),
    };
    set_status(db, job, after, message.as_deref(), now).await?;
    admit(db, row.try_get("account_id")?, max_running, now).await?;
    Ok(())
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
