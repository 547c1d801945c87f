//! Removing jobs that have ended, and what workflows that are deleted have processed.
//!
//! A run may have a million files. Its rows go in parts, each a transaction of its own, so that other
//! writers come between; until the last part the job is there.

use docmill_model::ids::{JobId, WorkspaceId};
use docmill_model::job::JobStatus;
use docmill_model::time::Micros;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::rows::{parse_id, word};
use crate::{DeleteOutcome, Result};

/// Files of runs removed in one transaction.
const PART: u64 = 10_000;

/// Records of processed objects removed in one transaction.
const RECORDS: u32 = 2_000;

/// Jobs that ended before an instant.
pub(super) const EXPIRED: &str =
    "SELECT id FROM jobs WHERE ended_at IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2";

/// Some files of a job; a macro so that it can be part of literals.
macro_rules! part {
    () => {
        "(SELECT id FROM job_files WHERE job_id = $1 ORDER BY ordinal LIMIT $2)"
    };
}

/// Whether no other job needs the blob of a checkpoint `c` of job `$1`; part of a condition.
macro_rules! unshared {
    () => {
        " AND NOT EXISTS (SELECT 1 FROM outputs o WHERE o.blob_key = c.blob_key)
          AND NOT EXISTS (SELECT 1 FROM checkpoint_outputs d JOIN checkpoints e ON e.file_id = d.file_id
                          WHERE d.blob_key = c.blob_key AND e.job_id <> $1)"
    };
}

impl SqliteStore {
    pub(super) async fn remove_job(&self, workspace: WorkspaceId, job: JobId) -> Result<DeleteOutcome> {
        loop {
            let removed = self
                .writer
                .write(move |db| Box::pin(async move { remove_ended(db, workspace, job).await }))
                .await?;
            if let Some(outcome) = removed {
                return Ok(outcome);
            }
        }
    }

    pub(super) async fn remove_jobs_ended_before(&self, before: Micros, max: u32) -> Result<u64> {
        let mut removed = 0;
        loop {
            let left = max.saturating_sub(u32::try_from(removed).unwrap_or(u32::MAX));
            let (jobs, done) = self
                .writer
                .write(move |db| Box::pin(async move { remove_expired(db, before, left).await }))
                .await?;
            removed += jobs;
            if done {
                return Ok(removed);
            }
        }
    }
}

/// Removes a job that has ended, or a part of it: then there is no outcome yet.
async fn remove_ended(db: &mut SqliteConnection, workspace: WorkspaceId, job: JobId) -> Result<Option<DeleteOutcome>> {
    let row = sqlx::query("SELECT status FROM jobs WHERE id = $1 AND workspace_id = $2")
        .bind(job.to_string())
        .bind(workspace.to_string())
        .fetch_optional(&mut *db)
        .await?;
    let Some(row) = row else {
        return Ok(Some(DeleteOutcome::NotFound));
    };
    if !word(&row, "status", JobStatus::parse)?.is_terminal() {
        return Ok(Some(DeleteOutcome::NotEnded));
    }
    let mut budget = PART;
    Ok(delete(db, job, &mut budget).await?.then_some(DeleteOutcome::Deleted))
}

/// Removes jobs that ended before an instant, oldest first; how many, and whether that is all.
async fn remove_expired(db: &mut SqliteConnection, before: Micros, max: u32) -> Result<(u64, bool)> {
    let expired = sqlx::query_scalar(EXPIRED).bind(before).bind(max);
    let jobs: Vec<String> = expired.fetch_all(&mut *db).await?;
    let (mut removed, mut budget) = (0, PART);
    for job in &jobs {
        if !delete(db, parse_id(job)?, &mut budget).await? {
            return Ok((removed, false));
        }
        removed += 1;
    }
    Ok((removed, true))
}

/// Removes a job's rows, as far as the budget of files from sources goes; whether it is gone. Blobs that
/// only it referred to become garbage.
async fn delete(db: &mut SqliteConnection, job: JobId, budget: &mut u64) -> Result<bool> {
    let job = job.to_string();
    if !delete_part(db, &job, budget).await? {
        return Ok(false);
    }
    let statements = [
        // A retry refers to its original's input blobs, so only those no other job holds may go.
        "INSERT INTO blob_garbage (blob_key)
         SELECT f.blob_key FROM job_files f WHERE f.job_id = $1 AND f.blob_key <> '' AND NOT EXISTS
             (SELECT 1 FROM job_files g WHERE g.blob_key = f.blob_key AND g.job_id <> $1)
         ON CONFLICT DO NOTHING",
        // A retry goes on from its original's checkpoints, whose blobs become its outputs.
        "INSERT INTO blob_garbage (blob_key) SELECT o.blob_key FROM outputs o WHERE o.job_id = $1 AND NOT EXISTS
             (SELECT 1 FROM checkpoint_outputs c WHERE c.blob_key = o.blob_key) AND NOT EXISTS
             (SELECT 1 FROM outputs p WHERE p.blob_key = o.blob_key AND p.job_id <> $1) ON CONFLICT DO NOTHING",
        "DELETE FROM outputs WHERE job_id = $1",
        concat!(
            "INSERT INTO blob_garbage (blob_key)
             SELECT c.blob_key FROM checkpoint_outputs c
             WHERE c.file_id IN (SELECT file_id FROM checkpoints WHERE job_id = $1) ",
            unshared!(),
            " ON CONFLICT DO NOTHING"
        ),
        "DELETE FROM checkpoint_outputs WHERE file_id IN (SELECT file_id FROM checkpoints WHERE job_id = $1)",
        "DELETE FROM checkpoints WHERE job_id = $1",
        "DELETE FROM file_costs WHERE job_id = $1",
        "DELETE FROM page_routes WHERE job_id = $1",
        "DELETE FROM job_costs WHERE job_id = $1",
        "UPDATE events SET failed_files = NULL WHERE job_id = $1",
        "DELETE FROM listings WHERE job_id = $1",
        "DELETE FROM job_files WHERE job_id = $1",
        "DELETE FROM jobs WHERE id = $1",
    ];
    for sql in statements {
        sqlx::query(sql).bind(&job).execute(&mut *db).await?;
    }
    Ok(true)
}

/// Removes files of a run, up to the budget; whether none is left.
async fn delete_part(db: &mut SqliteConnection, job: &str, budget: &mut u64) -> Result<bool> {
    let many: Option<bool> = sqlx::query_scalar("SELECT from_sources FROM jobs WHERE id = $1")
        .bind(job)
        .fetch_optional(&mut *db)
        .await?;
    if many != Some(true) {
        return Ok(true);
    }
    let statements = [
        concat!(
            "INSERT INTO blob_garbage (blob_key) SELECT o.blob_key FROM outputs o WHERE o.file_id IN ",
            part!(),
            " AND NOT EXISTS (SELECT 1 FROM checkpoint_outputs c WHERE c.blob_key = o.blob_key)
              AND NOT EXISTS (SELECT 1 FROM outputs p WHERE p.blob_key = o.blob_key AND p.job_id <> $1)
             ON CONFLICT DO NOTHING"
        ),
        concat!(
            "INSERT INTO blob_garbage (blob_key) SELECT c.blob_key FROM checkpoint_outputs c WHERE c.file_id IN ",
            part!(),
            unshared!(),
            " ON CONFLICT DO NOTHING"
        ),
        // Files may have been uploaded to a run that has sources too.
        concat!(
            "INSERT INTO blob_garbage (blob_key) SELECT f.blob_key FROM job_files f WHERE f.blob_key <> ''
                 AND NOT EXISTS (SELECT 1 FROM job_files g WHERE g.blob_key = f.blob_key AND g.job_id <> $1)
                 AND f.id IN ",
            part!(),
            " ON CONFLICT DO NOTHING"
        ),
        concat!("DELETE FROM outputs WHERE file_id IN ", part!()),
        concat!("DELETE FROM checkpoint_outputs WHERE file_id IN ", part!()),
        concat!("DELETE FROM checkpoints WHERE file_id IN ", part!()),
        concat!("DELETE FROM file_costs WHERE file_id IN ", part!()),
        concat!("DELETE FROM page_routes WHERE file_id IN ", part!()),
        concat!("DELETE FROM job_files WHERE id IN ", part!()),
    ];
    let mut removed = 0;
    for sql in statements {
        let done = sqlx::query(sql)
            .bind(job)
            .bind(*budget as i64)
            .execute(&mut *db)
            .await?;
        removed = done.rows_affected();
    }
    let all = removed < *budget;
    *budget = budget.saturating_sub(removed);
    Ok(all)
}

/// Removes some of what deleted workflows have processed.
pub(super) async fn forget_processed(db: &mut SqliteConnection) -> Result<()> {
    let next = sqlx::query_scalar("SELECT workflow_id FROM forgotten_workflows LIMIT 1");
    let next: Option<String> = next.fetch_optional(&mut *db).await?;
    let Some(workflow) = next else { return Ok(()) };
    let done = sqlx::query(
        "DELETE FROM processed_objects WHERE (workflow_id, source_id, locator) IN
             (SELECT workflow_id, source_id, locator FROM processed_objects WHERE workflow_id = $1 LIMIT $2)",
    )
    .bind(&workflow)
    .bind(RECORDS)
    .execute(&mut *db)
    .await?;
    if done.rows_affected() < u64::from(RECORDS) {
        sqlx::query("DELETE FROM forgotten_workflows WHERE workflow_id = $1")
            .bind(&workflow)
            .execute(db)
            .await?;
    }
    Ok(())
}
