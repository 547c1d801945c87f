//! Schedules: which workflows are due, and firing each instant once.

use docmill_model::time::{Micros, SECOND};
use docmill_model::workflow::{Overlap, Schedule};
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::lifecycle::{admit, insert};
use super::rows::{id, json};
use super::workflows::{ACTIVE_JOBS, workflow_record};
use crate::{DueWorkflow, Firing, Principal, Result, ScheduledRun};

/// How long firings are remembered; instants this old don't come back.
const REMEMBERED: Micros = 400 * 24 * 3600 * SECOND;

pub(super) const DUE: &str = "SELECT * FROM workflows
     WHERE next_fire_at IS NOT NULL AND next_fire_at <= $1 AND state = 'active' AND deleted = 0
     ORDER BY next_fire_at, seq LIMIT $2";

pub(super) const NEXT_DUE: &str = "SELECT min(next_fire_at) FROM workflows
     WHERE next_fire_at IS NOT NULL AND state = 'active' AND deleted = 0";

impl SqliteStore {
    pub(super) async fn list_due(&self, now: Micros, max: u32) -> Result<Vec<DueWorkflow>> {
        let rows = sqlx::query(DUE).bind(now).bind(max).fetch_all(&self.readers).await?;
        rows.iter()
            .map(|row| {
                Ok(DueWorkflow {
                    principal: Principal {
                        account: id(row, "account_id")?,
                        workspace: id(row, "workspace_id")?,
                        key: id(row, "key_id")?,
                    },
                    workflow: workflow_record(row)?,
                })
            })
            .collect()
    }

    pub(super) async fn first_due(&self) -> Result<Option<Micros>> {
        Ok(sqlx::query_scalar(NEXT_DUE).fetch_one(&self.readers).await?)
    }

    pub(super) async fn fire_workflow(&self, run: ScheduledRun, now: Micros) -> Result<Firing> {
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(overlap) = due(db, &run).await? else {
                        return Ok(Firing::Stale);
                    };
                    // In any case: an instant fired before, as by a clock that was set back, must not
                    // keep the workflow due for ever.
                    sqlx::query("UPDATE workflows SET next_fire_at = $2 WHERE id = $1")
                        .bind(run.job.workflow.to_string())
                        .bind(run.next_fire_at)
                        .execute(&mut *db)
                        .await?;
                    let active = sqlx::query(ACTIVE_JOBS).bind(run.job.workflow.to_string());
                    let skipped = overlap == Overlap::Skip && !active.fetch_all(&mut *db).await?.is_empty();
                    if !record(db, &run, skipped, now).await? {
                        return Ok(Firing::Stale);
                    }
                    if skipped {
                        return Ok(Firing::Skipped);
                    }
                    insert(db, &run.job, now).await?;
                    let (account, stored) = (run.job.account.to_string(), run.job.run.is_some());
                    admit(db, &account, stored, slots, Some(run.job.id), now).await?;
                    Ok(Firing::Started)
                })
            })
            .await
    }
}

/// What the schedule says on overlapping runs; `None` when the workflow is not as it was when it was read
/// as due, or the instant is none it is due for.
async fn due(db: &mut SqliteConnection, run: &ScheduledRun) -> Result<Option<Overlap>> {
    let row = sqlx::query(
        "SELECT schedule FROM workflows
         WHERE id = $1 AND workspace_id = $2 AND deleted = 0 AND state = 'active' AND schedule IS NOT NULL
             AND next_fire_at <= $3 AND updated_at IS $4",
    )
    .bind(run.job.workflow.to_string())
    .bind(run.job.workspace.to_string())
    .bind(run.fire_at)
    .bind(run.seen)
    .fetch_optional(db)
    .await?;
    row.map(|row| Ok(json::<Schedule>(&row, "schedule")?.overlap))
        .transpose()
}

/// Records a firing; whether there was none of that instant.
async fn record(db: &mut SqliteConnection, run: &ScheduledRun, skipped: bool, now: Micros) -> Result<bool> {
    let workflow = run.job.workflow.to_string();
    let job = (!skipped).then(|| run.job.id.to_string());
    let done = sqlx::query(
        "INSERT INTO firings (workflow_id, fire_at, job_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    )
    .bind(&workflow)
    .bind(run.fire_at)
    .bind(job)
    .bind(now)
    .execute(&mut *db)
    .await?;
    sqlx::query("DELETE FROM firings WHERE workflow_id = $1 AND fire_at < $2")
        .bind(&workflow)
        .bind(run.fire_at - REMEMBERED)
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}
