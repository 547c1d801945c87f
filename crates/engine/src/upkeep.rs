//! Work that nobody waits for: retention, garbage, forgotten uploads.

use std::time::{Duration, SystemTime};

use docmill_model::time::{Micros, SECOND};
use docmill_store::{Result, StoreError};
use futures_util::TryStreamExt;

use crate::clock::now;
use crate::engine::{Engine, micros};

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(600);

/// Jobs or blobs dealt with in one transaction.
const BATCH: u32 = 500;

/// Age from which a blob no row refers to is taken for a leftover of an upload that never became a job.
const ORPHAN_AGE: Micros = 24 * 3_600 * SECOND;

pub(crate) async fn upkeep_loop(engine: Engine) {
    let mut tick = tokio::time::interval(ROUND);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = engine.shared.stopping.cancelled() => return,
        }
        if let Err(error) = round(&engine).await {
            tracing::warn!(%error, "upkeep could not finish; it goes on at the next round");
        }
    }
}

async fn round(engine: &Engine) -> Result<()> {
    if let Some(retention) = engine.shared.config.retention {
        let before = now() - micros(retention);
        loop {
            let expired = engine.store().expire_jobs(before, BATCH).await?;
            if expired > 0 {
                tracing::info!(jobs = expired, "deleted jobs past their retention");
            }
            if expired < u64::from(BATCH) {
                break;
            }
        }
        loop {
            let expired = engine.store().expire_notifications(before, BATCH).await?;
            if expired > 0 {
                tracing::info!(
                    rows = expired,
                    "deleted deliveries and notifications past their retention"
                );
            }
            if expired < u64::from(BATCH) {
                break;
            }
        }
    }
    // Answers hold what documents hold, so they go as jobs do: when they have not been used for so long.
    if let Some(retention) = engine.shared.config.retention {
        let before = now() - micros(retention);
        while engine.store().expire_answers(before, BATCH).await? == u64::from(BATCH) {}
    }
    collect_garbage(engine).await?;
    collect_orphans(engine).await?;
    let age = Duration::from_micros(ORPHAN_AGE.unsigned_abs());
    if let Some(before) = SystemTime::now().checked_sub(age) {
        let removed = engine
            .blobs()
            .remove_unfinished(before)
            .await
            .map_err(StoreError::BlobFiles)?;
        if removed > 0 {
            tracing::info!(files = removed, "removed leftovers of uploads that never finished");
        }
    }
    Ok(())
}

/// Deletes blobs on the garbage list.
pub(crate) async fn collect_garbage(engine: &Engine) -> Result<()> {
    loop {
        let keys = engine.store().garbage(BATCH).await?;
        if keys.is_empty() {
            return Ok(());
        }
        for key in &keys {
            engine.blobs().delete(key).await?;
        }
        engine.store().forget_garbage(&keys).await?;
    }
}

/// Deletes old blobs no row refers to: uploads whose request never became a job, and outputs of workers
/// that lost their lease. A blob's row, if it ever gets one, is written soon after the blob, so age alone
/// protects uploads under way.
async fn collect_orphans(engine: &Engine) -> Result<()> {
    let before = now() - ORPHAN_AGE;
    let mut blobs = engine.blobs().list();
    let mut old = Vec::new();
    loop {
        let next = blobs.try_next().await?;
        if let Some((key, modified)) = &next
            && *modified < before
        {
            old.push(key.clone());
        }
        if old.len() >= BATCH as usize || (next.is_none() && !old.is_empty()) {
            for key in engine.store().unreferenced(&old).await? {
                tracing::info!(blob = key, "deleting a blob nothing refers to");
                engine.blobs().delete(&key).await?;
            }
            old.clear();
        }
        if next.is_none() {
            return Ok(());
        }
    }
}
