//! How attempts end: the log, and what they say of their channels.

use docmill_model::channel::{ChannelId, DeliveryKind, NoticeType};
use docmill_model::time::{Micros, iso8601_duration};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::channels::disable;
use super::events::record_notice;
use super::rows::{id, word};
use crate::{Attempt, DeliveryFinish, DeliveryLease, DeliveryOutcome, Result, StoreError};

pub(super) const FINISH: &str = "UPDATE deliveries
     SET state = $3, again = 1, attempts = attempts + 1, lease_until = NULL, not_before = $4, ended_at = $5,
         last_status = $6, last_error = $7, digest_of = $8, sealed = iif($3 = 'pending', sealed, NULL)
     WHERE id = $1 AND token = $2 AND state = 'pending' AND lease_until IS NOT NULL
     RETURNING seq, channel_id, kind, attempts";
pub(super) const NOTE_FAILURE: &str = "UPDATE channels SET failing_since = COALESCE(failing_since, $2)
     WHERE id = $1 RETURNING *, (wanted = 1 AND verified_at IS NOT NULL) AS enabled";
pub(super) const NOTE_SUCCESS: &str = "UPDATE channels
     SET failing_since = NULL, bounced_at = NULL, bounce_reason = NULL
     WHERE id = $1 AND (failing_since IS NOT NULL OR bounced_at IS NOT NULL)";
pub(super) const NOTE_BOUNCE: &str = "UPDATE channels SET bounced_at = $2, bounce_reason = $3
     WHERE id = $1 RETURNING *, (wanted = 1 AND verified_at IS NOT NULL) AS enabled";

impl SqliteStore {
    pub(super) async fn end_attempt(
        &self,
        leases: Vec<DeliveryLease>,
        attempt: Attempt,
        outcome: DeliveryOutcome,
        disable_after: Option<Micros>,
        now: Micros,
    ) -> Result<DeliveryFinish> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut finish = DeliveryFinish::default();
                    let first = leases.first().copied();
                    for lease in leases {
                        let digest_of = first.filter(|first| *first != lease);
                        let Some(row) = end(db, lease, digest_of, &attempt, &outcome, now).await? else {
                            continue;
                        };
                        finish.finished += 1;
                        finish.disabled |= note(db, &row, &attempt, &outcome, disable_after, now).await?;
                    }
                    match finish.finished {
                        0 => Err(StoreError::LeaseLost),
                        _ => Ok(finish),
                    }
                })
            })
            .await
    }
}

/// Ends one claimed delivery and logs the attempt; its row, or `None` when the lease is lost.
async fn end(
    db: &mut SqliteConnection,
    lease: DeliveryLease,
    digest_of: Option<DeliveryLease>,
    attempt: &Attempt,
    outcome: &DeliveryOutcome,
    now: Micros,
) -> Result<Option<SqliteRow>> {
    let (state, not_before) = match outcome {
        DeliveryOutcome::Delivered => ("delivered", 0),
        DeliveryOutcome::Retry { not_before } => ("pending", *not_before),
        DeliveryOutcome::Failed | DeliveryOutcome::Bounced { .. } => ("failed", 0),
    };
    let row = sqlx::query(FINISH)
        .bind(lease.id.to_string())
        .bind(lease.token)
        .bind(state)
        .bind(not_before)
        .bind((state != "pending").then_some(now))
        .bind(attempt.status)
        .bind(&attempt.error)
        .bind(digest_of.map(|first| first.id.to_string()))
        .fetch_optional(&mut *db)
        .await?;
    let Some(row) = row else { return Ok(None) };
    sqlx::query(
        "INSERT INTO delivery_attempts (delivery_seq, number, started_at, duration, status, response, error)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(row.try_get::<i64, _>("seq")?)
    .bind(row.try_get::<i64, _>("attempts")?)
    .bind(attempt.started_at)
    .bind(attempt.duration)
    .bind(attempt.status)
    .bind(&attempt.response)
    .bind(&attempt.error)
    .execute(db)
    .await?;
    Ok(Some(row))
}

/// Notes on the channel what the attempt says of it; whether that disabled it.
async fn note(
    db: &mut SqliteConnection,
    delivery: &SqliteRow,
    attempt: &Attempt,
    outcome: &DeliveryOutcome,
    disable_after: Option<Micros>,
    now: Micros,
) -> Result<bool> {
    let channel: ChannelId = id(delivery, "channel_id")?;
    let kind = word(delivery, "kind", DeliveryKind::parse)?;
    match outcome {
        DeliveryOutcome::Delivered => {
            sqlx::query(NOTE_SUCCESS).bind(channel.to_string()).execute(db).await?;
            Ok(false)
        }
        DeliveryOutcome::Bounced { reason } => {
            let row = sqlx::query(NOTE_BOUNCE)
                .bind(channel.to_string())
                .bind(now)
                .bind(reason);
            match row.fetch_optional(&mut *db).await? {
                Some(row) if row.try_get("enabled")? => {
                    give_up(db, channel, &row, NoticeType::ChannelBounced, reason, now).await
                }
                _ => Ok(false),
            }
        }
        // Codes and tests are sent on demand: that they fail says nothing of how events fare.
        DeliveryOutcome::Retry { .. } | DeliveryOutcome::Failed
            if matches!(kind, DeliveryKind::Event | DeliveryKind::Notice) =>
        {
            let row = sqlx::query(NOTE_FAILURE)
                .bind(channel.to_string())
                .bind(attempt.started_at);
            let Some(row) = row.fetch_optional(&mut *db).await? else {
                return Ok(false);
            };
            let since: Micros = row.try_get("failing_since")?;
            if !row.try_get::<bool, _>("enabled")? || disable_after.is_none_or(|span| now - since < span) {
                return Ok(false);
            }
            let last = attempt.error.as_deref().unwrap_or("no reason was given");
            let reason = format!(
                "nothing but failures for {}; the last: {last}",
                iso8601_duration(now - since)
            );
            give_up(db, channel, &row, NoticeType::ChannelDisabled, &reason, now).await
        }
        DeliveryOutcome::Retry { .. } | DeliveryOutcome::Failed => Ok(false),
    }
}

async fn give_up(
    db: &mut SqliteConnection,
    channel: ChannelId,
    row: &SqliteRow,
    notice: NoticeType,
    reason: &str,
    now: Micros,
) -> Result<bool> {
    disable(db, channel, reason, now).await?;
    record_notice(db, row, notice, reason, now).await?;
    Ok(true)
}
