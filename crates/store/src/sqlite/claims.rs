//! Tasks: claiming, leasing and ending the files of running jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use docmill_model::Code;
use docmill_model::ids::{FileId, JobId, NodeId};
use docmill_model::time::Micros;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::deletion::forget_processed;
use super::lifecycle::{admit, count_ended};
use super::listings::give_all_back;
use super::page_routes::keep_routes;
use super::paid::drop_checkpoint;
use super::rows::{count, id, input, json, parse_id, to_json};
use super::{Slots, SqliteStore, naming};
use crate::{Claim, FileInput, FileOutcome, Lease, Result, StoreError};

/// Workspaces with files to claim, those with the fewest running files first: how many files run, and
/// how many are ready (counted up to what is wanted).
pub(super) const CLAIMABLE: &str = "SELECT w.id,
        (SELECT count(*) FROM job_files r WHERE r.workspace_id = w.id AND r.state = 'running') AS running,
        (SELECT count(*) FROM (SELECT 1 FROM job_files f
                               WHERE f.workspace_id = w.id AND f.state = 'ready' AND f.not_before <= $1
                               LIMIT $2) AS wanted) AS ready
     FROM workspaces w
     WHERE EXISTS (SELECT 1 FROM job_files f
                   WHERE f.workspace_id = w.id AND f.state = 'ready' AND f.not_before <= $1)
     ORDER BY running, w.last_claimed_at, w.id LIMIT $2";

/// Claims a workspace's oldest ready files.
pub(super) const CLAIM: &str = "UPDATE job_files
     SET state = 'running', token = token + 1, attempt = attempt + 1, lease_until = $2,
         started_at = COALESCE(started_at, $3)
     WHERE seq IN (SELECT seq FROM job_files
                   WHERE workspace_id = $1 AND state = 'ready' AND not_before <= $3 ORDER BY seq LIMIT $4)
     RETURNING seq, id, token, attempt, job_id, workspace_id, name, content_type, blob_key, size,
               source_id, object, action,
               (SELECT chain FROM jobs j WHERE j.id = job_id) AS chain,
               (SELECT workflow_id FROM jobs j WHERE j.id = job_id) AS workflow_id,
               (SELECT destinations FROM jobs j WHERE j.id = job_id) AS destinations,
               CASE WHEN action = 'process' THEN
                   (SELECT p.content_hash FROM jobs j JOIN processed_objects p ON p.workflow_id = j.workflow_id
                    WHERE j.id = job_id AND j.reprocess_all = 0 AND p.source_id = job_files.source_id
                        AND p.locator = job_files.locator) END AS known_hash";

/// Files whose worker is gone.
pub(super) const ABANDONED: &str = "SELECT seq, id, token, attempt FROM job_files
     WHERE state = 'running' AND ($1 OR lease_until < $2)";

impl SqliteStore {
    pub(super) async fn claim_files(&self, max: usize, lease_until: Micros, now: Micros) -> Result<Vec<Claim>> {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let workspaces = sqlx::query(CLAIMABLE).bind(now).bind(max).fetch_all(&mut *db).await?;
                    let mut claims = Vec::new();
                    for (workspace, files) in shares(&workspaces, max)? {
                        for row in claim_from(db, workspace, files, lease_until, now).await? {
                            match claim(&row) {
                                Err(StoreError::Corrupt(reason)) => {
                                    fail_unreadable(db, &row, &reason, slots, now).await?;
                                }
                                claim => {
                                    let mut claim = claim?;
                                    name_plainly(db, &mut claim, &claims).await?;
                                    claims.push(claim);
                                }
                            }
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
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(job) = end_file(db, lease, &outcome, now).await? else {
                        return Err(StoreError::LeaseLost);
                    };
                    match outcome {
                        FileOutcome::Retry { .. } => Ok(()),
                        FileOutcome::Succeeded { .. } => count_ended(db, job, 1, 0, slots, now).await.map(drop),
                        FileOutcome::Failed { .. } => count_ended(db, job, 0, 1, slots, now).await.map(drop),
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
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let gone = sqlx::query(ABANDONED).bind(all_running).bind(now);
                    let rows = in_order(gone.fetch_all(&mut *db).await?)?;
                    for row in &rows {
                        let lease = lease(row)?;
                        if count(row, "attempt")? < u64::from(max_attempts) {
                            // At once: an instant by a clock that was wrong could be far in the future.
                            end_file(db, lease, &FileOutcome::Retry { not_before: 0 }, now).await?;
                            continue;
                        }
                        let outcome = FileOutcome::Failed {
                            code: Code::AttemptsExhausted,
                            message: format!("the server stopped {max_attempts} times while it processed this file"),
                        };
                        if let Some(job) = end_file(db, lease, &outcome, now).await? {
                            count_ended(db, job, 0, 1, slots, now).await?;
                        }
                    }
                    if all_running {
                        give_all_back(db).await?;
                    }
                    Ok(rows.len() as u64)
                })
            })
            .await
    }

    pub(super) async fn settle_jobs(&self, now: Micros) -> Result<u64> {
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut touched = 0;
                    let done: Vec<String> = sqlx::query_scalar(
                        "SELECT id FROM jobs
                         WHERE status = 'IN_PROGRESS' AND files_succeeded + files_failed >= files_total
                             AND listing IS NOT 'open'",
                    )
                    .fetch_all(&mut *db)
                    .await?;
                    for job in done {
                        count_ended(db, parse_id(&job)?, 0, 0, slots, now).await?;
                        touched += 1;
                    }
                    forget_processed(db).await?;
                    let waiting = "SELECT DISTINCT account_id, stored FROM jobs WHERE status = 'SCHEDULED'";
                    for row in sqlx::query(waiting).fetch_all(&mut *db).await? {
                        let (account, stored) = (row.try_get("account_id")?, row.try_get("stored")?);
                        touched += admit(db, account, stored, slots, None, now).await?;
                    }
                    Ok(touched)
                })
            })
            .await
    }
}

/// How many of `max` files to claim from each workspace: each goes to the one that would then have the
/// fewest running, so that a long queue can't keep the others waiting. The same for what is sent to receivers.
pub(super) fn shares(workspaces: &[SqliteRow], max: u32) -> Result<Vec<(&str, u32)>> {
    let mut shares = Vec::with_capacity(workspaces.len());
    let mut next = BinaryHeap::new();
    for (place, row) in workspaces.iter().enumerate() {
        shares.push((row.try_get("id")?, 0));
        next.push(Reverse((count(row, "running")?, place, count(row, "ready")?)));
    }
    for _ in 0..max {
        let Some(Reverse((running, place, ready))) = next.pop() else {
            break;
        };
        if let Some((_, files)) = shares.get_mut(place) {
            *files += 1;
        }
        if ready > 1 {
            next.push(Reverse((running + 1, place, ready - 1)));
        }
    }
    shares.retain(|(_, files)| *files > 0);
    Ok(shares)
}

/// Claims a workspace's `files` oldest ready files.
async fn claim_from(
    db: &mut SqliteConnection,
    workspace: &str,
    files: u32,
    lease_until: Micros,
    now: Micros,
) -> Result<Vec<SqliteRow>> {
    let rows = sqlx::query(CLAIM)
        .bind(workspace)
        .bind(lease_until)
        .bind(now)
        .bind(files)
        .fetch_all(&mut *db)
        .await?;
    // Grows even when the clock does not, so that the workspace goes behind its equals in any case.
    sqlx::query(
        "UPDATE workspaces
         SET last_claimed_at = CASE WHEN last_claimed_at < $2 THEN $2 ELSE last_claimed_at + 1 END WHERE id = $1",
    )
    .bind(workspace)
    .bind(now)
    .execute(db)
    .await?;
    in_order(rows)
}

/// Rows by their `seq`. Sorting here leaves the database free to find them by the index that fits.
fn in_order(rows: Vec<SqliteRow>) -> Result<Vec<SqliteRow>> {
    let mut rows = rows
        .into_iter()
        .map(|row| Ok((row.try_get::<i64, _>("seq")?, row)))
        .collect::<Result<Vec<_>>>()?;
    rows.sort_by_key(|(seq, _)| *seq);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Ends a claimed file whose job can't be read, so that it does not stand in the way of all others.
async fn fail_unreadable(
    db: &mut SqliteConnection,
    row: &SqliteRow,
    reason: &str,
    slots: Slots,
    now: Micros,
) -> Result<()> {
    tracing::error!(reason, "a job in the store can't be read");
    let outcome = FileOutcome::Failed {
        code: Code::Internal,
        message: "the record of this job can't be read; submit the file again".into(),
    };
    if let Some(job) = end_file(db, lease(row)?, &outcome, now).await? {
        count_ended(db, job, 0, 1, slots, now).await?;
    }
    Ok(())
}

fn lease(row: &SqliteRow) -> Result<Lease> {
    Ok(Lease {
        file: id(row, "id")?,
        token: row.try_get("token")?,
    })
}

fn claim(row: &SqliteRow) -> Result<Claim> {
    Ok(Claim {
        lease: lease(row)?,
        job: id(row, "job_id")?,
        workspace: id(row, "workspace_id")?,
        chain: json(row, "chain")?,
        name: row.try_get("name")?,
        content_type: row.try_get("content_type")?,
        workflow: id(row, "workflow_id")?,
        input: input(row)?,
        destinations: json(row, "destinations")?,
        plain_at: Vec::new(),
        known_hash: row.try_get("known_hash")?,
        size: count(row, "size")?,
        attempt: count(row, "attempt")? as u32,
    })
}

/// Fills in where the document gets a plain name. Files claimed together mostly are of one source, so the one
/// before may tell.
async fn name_plainly(db: &mut SqliteConnection, claim: &mut Claim, before: &[Claim]) -> Result<()> {
    let FileInput::Source { source, .. } = &claim.input else {
        return Ok(());
    };
    let same = |other: &&Claim| {
        let of_source = matches!(&other.input, FileInput::Source { source: other, .. } if other == source);
        of_source && other.job == claim.job
    };
    claim.plain_at = match before.last().filter(same) {
        Some(other) => other.plain_at.clone(),
        None => naming::plain_at(db, claim.workspace, claim.workflow, *source, &claim.destinations).await?,
    };
    Ok(())
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
             WHERE id = $1 AND token = $2 AND state = 'running' RETURNING job_id, action",
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
             WHERE id = $1 AND token = $2 AND state = 'running' RETURNING job_id, action",
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
             WHERE id = $1 AND token = $2 AND state = 'running' RETURNING job_id, action",
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
    if let FileOutcome::Succeeded {
        outputs,
        content_hash,
        routes,
        ..
    } = outcome
    {
        insert_outputs(db, lease.file, job, outputs).await?;
        keep_routes(db, lease.file, job, routes).await?;
        drop_checkpoint(db, &lease.file.to_string()).await?;
        match row.try_get("action")? {
            Some("process") => remember(db, lease.file, content_hash.as_deref()).await?,
            Some(_) => forget(db, lease.file).await?,
            None => {}
        }
    }
    Ok(Some(job))
}

/// Notes what a workflow has processed: its next run leaves the object alone unless it has changed.
async fn remember(db: &mut SqliteConnection, file: FileId, content_hash: Option<&str>) -> Result<()> {
    sqlx::query(
        "INSERT INTO processed_objects (workflow_id, source_id, locator, name, version, content_hash, seen_by)
         SELECT j.workflow_id, f.source_id, f.locator, f.name, f.object ->> 'version', $2, j.seq
         FROM job_files f JOIN jobs j ON j.id = f.job_id WHERE f.id = $1
         ON CONFLICT (workflow_id, source_id, locator) DO UPDATE SET name = excluded.name,
             version = excluded.version, content_hash = excluded.content_hash,
             seen_by = max(seen_by, excluded.seen_by)",
    )
    .bind(file.to_string())
    .bind(content_hash)
    .execute(db)
    .await?;
    Ok(())
}

/// Forgets an object that was removed from the destinations.
async fn forget(db: &mut SqliteConnection, file: FileId) -> Result<()> {
    sqlx::query(
        "DELETE FROM processed_objects WHERE (workflow_id, source_id, locator) =
             (SELECT j.workflow_id, f.source_id, f.locator
              FROM job_files f JOIN jobs j ON j.id = f.job_id WHERE f.id = $1)",
    )
    .bind(file.to_string())
    .execute(db)
    .await?;
    Ok(())
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
