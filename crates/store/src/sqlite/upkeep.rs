//! Garbage and monitoring.

use docmill_model::time::Micros;
use sqlx::Row;

use super::SqliteStore;
use super::rows::count;
use crate::{Result, Stats};

/// Whether a row refers to a blob.
pub(super) const REFERRED: &str = "SELECT EXISTS (SELECT 1 FROM job_files WHERE blob_key = $1)
        OR EXISTS (SELECT 1 FROM outputs WHERE blob_key = $1)
        OR EXISTS (SELECT 1 FROM checkpoint_outputs WHERE blob_key = $1)";

/// What [`Stats`] tells.
pub(super) const COUNTS: &str = "SELECT
        (SELECT count(*) FROM jobs WHERE status = 'SCHEDULED') AS scheduled,
        (SELECT count(*) FROM jobs WHERE status = 'IN_PROGRESS') AS in_progress,
        (SELECT count(*) FROM job_files WHERE state = 'ready') AS ready,
        (SELECT count(*) FROM job_files WHERE state = 'running') AS running,
        (SELECT count(*) FROM deliveries WHERE state = 'pending') AS pending,
        (SELECT min(j.started_at) FROM jobs j WHERE j.status = 'IN_PROGRESS' AND EXISTS
             (SELECT 1 FROM job_files f WHERE f.job_id = j.id AND f.state = 'ready')) AS oldest";

impl SqliteStore {
    pub(super) async fn list_garbage(&self, max: u32) -> Result<Vec<String>> {
        Ok(sqlx::query_scalar("SELECT blob_key FROM blob_garbage LIMIT $1")
            .bind(max)
            .fetch_all(&self.readers)
            .await?)
    }

    pub(super) async fn remove_garbage(&self, keys: Vec<String>) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    for key in keys {
                        sqlx::query("DELETE FROM blob_garbage WHERE blob_key = $1")
                            .bind(key)
                            .execute(&mut *db)
                            .await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    pub(super) async fn find_unreferenced(&self, keys: &[String]) -> Result<Vec<String>> {
        let mut connection = self.readers.acquire().await?;
        let mut free = Vec::new();
        for key in keys {
            let used: i64 = sqlx::query_scalar(REFERRED)
                .bind(key)
                .fetch_one(&mut *connection)
                .await?;
            if used == 0 {
                free.push(key.clone());
            }
        }
        Ok(free)
    }

    pub(super) async fn count(&self, now: Micros) -> Result<Stats> {
        let row = sqlx::query(COUNTS).fetch_one(&self.readers).await?;
        let oldest: Option<i64> = row.try_get("oldest")?;
        Ok(Stats {
            jobs_scheduled: count(&row, "scheduled")?,
            jobs_in_progress: count(&row, "in_progress")?,
            files_ready: count(&row, "ready")?,
            files_running: count(&row, "running")?,
            oldest_ready_age: oldest.map_or(0, |at| (now - at).max(0)),
            deliveries_pending: count(&row, "pending")?,
        })
    }

    pub(super) async fn probe_write(&self) -> Result<()> {
        self.writer
            .write(|db| {
                Box::pin(async move {
                    // Writes a page and takes it back: a full disk or a lost permission shows here.
                    sqlx::query("INSERT INTO blob_garbage (blob_key) VALUES ('probe') ON CONFLICT DO NOTHING")
                        .execute(&mut *db)
                        .await?;
                    sqlx::query("DELETE FROM blob_garbage WHERE blob_key = 'probe'")
                        .execute(db)
                        .await?;
                    Ok(())
                })
            })
            .await
    }
}
