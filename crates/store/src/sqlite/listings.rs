//! Listings: runs that are finding out their files.

use docmill_model::ids::{ConnectorId, JobId};
use docmill_model::time::Micros;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::lifecycle::count_ended;
use super::listed_pages::{add_page, add_removed};
use super::rows::{count, id, json};
use crate::{ListedPage, ListingClaim, ListingLease, ListingOutcome, Result, StoreError};

/// Claims started runs, first come first served.
pub(super) const CLAIM_LISTINGS: &str = "UPDATE listings
     SET token = token + 1, attempt = attempt + 1, lease_until = $1
     WHERE job_id IN (SELECT job_id FROM listings WHERE started = 1 AND not_before <= $2
                          AND (lease_until IS NULL OR lease_until < $2) ORDER BY job_seq LIMIT $3)
     RETURNING *, (SELECT workspace_id FROM jobs j WHERE j.id = job_id) AS workspace_id";

/// Files of a run that wait for a worker: those that have not ended but for those that run, which are found
/// among the few that run in the workspace.
pub(super) const BACKLOG: &str = "SELECT j.files_total - j.files_succeeded - j.files_failed
         - (SELECT count(*) FROM job_files f
            WHERE f.workspace_id = j.workspace_id AND f.state = 'running' AND f.job_id = j.id) AS waiting
     FROM listings l JOIN jobs j ON j.id = l.job_id
     WHERE l.job_id = $1 AND l.token = $2 AND l.lease_until IS NOT NULL";

/// A listing somebody has the right to, with what its run is.
pub(super) const HELD: &str = "SELECT l.*, j.workspace_id, j.workflow_id, j.reprocess_all
     FROM listings l JOIN jobs j ON j.id = l.job_id
     WHERE l.job_id = $1 AND l.token = $2 AND l.lease_until IS NOT NULL";

impl SqliteStore {
    pub(super) async fn claim_runs_to_list(
        &self,
        max: usize,
        lease_until: Micros,
        now: Micros,
    ) -> Result<Vec<ListingClaim>> {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let query = sqlx::query(CLAIM_LISTINGS).bind(lease_until).bind(now).bind(max);
                    let rows = query.fetch_all(db).await?;
                    let mut claims = rows
                        .iter()
                        .map(|row| Ok((row.try_get::<i64, _>("job_seq")?, claim(row)?)))
                        .collect::<Result<Vec<(i64, ListingClaim)>>>()?;
                    claims.sort_by_key(|(seq, _)| *seq);
                    Ok(claims.into_iter().map(|(_, claim)| claim).collect())
                })
            })
            .await
    }

    pub(super) async fn renew_listing_leases(
        &self,
        leases: Vec<ListingLease>,
        lease_until: Micros,
    ) -> Result<Vec<ListingLease>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut lost = Vec::new();
                    for lease in leases {
                        let done = sqlx::query(
                            "UPDATE listings SET lease_until = $3
                             WHERE job_id = $1 AND token = $2 AND lease_until IS NOT NULL",
                        )
                        .bind(lease.job.to_string())
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

    pub(super) async fn add_listed_page(&self, lease: ListingLease, page: ListedPage, _now: Micros) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let run = held(db, lease).await?;
                    add_page(db, &run, &page).await?;
                    waiting(db, lease).await
                })
            })
            .await
    }

    pub(super) async fn count_backlog(&self, lease: ListingLease) -> Result<u64> {
        let row = sqlx::query(BACKLOG)
            .bind(lease.job.to_string())
            .bind(lease.token)
            .fetch_optional(&self.readers)
            .await?;
        count(&row.ok_or(StoreError::LeaseLost)?, "waiting")
    }

    pub(super) async fn end_listing(&self, lease: ListingLease, outcome: ListingOutcome, now: Micros) -> Result<()> {
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let run = held(db, lease).await?;
                    let (state, error) = match outcome {
                        ListingOutcome::Retry(not_before) => return give_back(db, lease, not_before).await,
                        ListingOutcome::Complete => ("complete", None),
                        ListingOutcome::Failed(reason) => ("failed", Some(reason)),
                    };
                    if error.is_none() && run.delete_removed {
                        add_removed(db, &run).await?;
                    }
                    sqlx::query("UPDATE jobs SET listing = $2, listing_error = $3 WHERE id = $1")
                        .bind(lease.job.to_string())
                        .bind(state)
                        .bind(error)
                        .execute(&mut *db)
                        .await?;
                    sqlx::query("DELETE FROM listings WHERE job_id = $1")
                        .bind(lease.job.to_string())
                        .execute(&mut *db)
                        .await?;
                    count_ended(db, lease.job, 0, 0, slots, now).await.map(drop)
                })
            })
            .await
    }

    pub(super) async fn release_run(&self, lease: ListingLease) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    sqlx::query(
                        "UPDATE listings SET lease_until = NULL, attempt = max(attempt - 1, 0)
                         WHERE job_id = $1 AND token = $2 AND lease_until IS NOT NULL",
                    )
                    .bind(lease.job.to_string())
                    .bind(lease.token)
                    .execute(db)
                    .await?;
                    Ok(())
                })
            })
            .await
    }
}

/// Takes every listing from whoever had it, who is gone; how many there were.
pub(super) async fn give_all_back(db: &mut SqliteConnection) -> Result<u64> {
    let done = sqlx::query("UPDATE listings SET lease_until = NULL, not_before = 0 WHERE started = 1");
    Ok(done.execute(db).await?.rows_affected())
}

async fn give_back(db: &mut SqliteConnection, lease: ListingLease, not_before: Micros) -> Result<()> {
    sqlx::query("UPDATE listings SET lease_until = NULL, not_before = $2 WHERE job_id = $1")
        .bind(lease.job.to_string())
        .bind(not_before)
        .execute(db)
        .await?;
    Ok(())
}

/// A run that is being listed, and how far.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) job: JobId,
    pub(super) job_seq: i64,
    pub(super) workspace: String,
    pub(super) workflow: String,
    pub(super) sources: Vec<ConnectorId>,
    pub(super) reprocess_all: bool,
    pub(super) delete_removed: bool,
    /// Objects seen so far.
    pub(super) listed: i64,
}

async fn held(db: &mut SqliteConnection, lease: ListingLease) -> Result<Listed> {
    let row = sqlx::query(HELD)
        .bind(lease.job.to_string())
        .bind(lease.token)
        .fetch_optional(db)
        .await?;
    let row = row.ok_or(StoreError::LeaseLost)?;
    Ok(Listed {
        job: lease.job,
        job_seq: row.try_get("job_seq")?,
        workspace: row.try_get("workspace_id")?,
        workflow: row.try_get("workflow_id")?,
        sources: json(&row, "sources")?,
        reprocess_all: row.try_get("reprocess_all")?,
        delete_removed: row.try_get("delete_removed")?,
        listed: row.try_get("listed")?,
    })
}

async fn waiting(db: &mut SqliteConnection, lease: ListingLease) -> Result<u64> {
    let query = sqlx::query(BACKLOG).bind(lease.job.to_string()).bind(lease.token);
    count(&query.fetch_one(db).await?, "waiting")
}

fn claim(row: &SqliteRow) -> Result<ListingClaim> {
    Ok(ListingClaim {
        lease: ListingLease {
            job: id(row, "job_id")?,
            token: row.try_get("token")?,
        },
        workspace: id(row, "workspace_id")?,
        sources: json(row, "sources")?,
        position: (count(row, "source_index")? as u32, row.try_get("locator")?),
        attempt: count(row, "attempt")? as u32,
    })
}
