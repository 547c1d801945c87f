//! The outbox: claiming and leasing what is to be sent.

use std::collections::{BTreeSet, HashMap};

use docmill_model::channel::{ChannelKind, DeliveryKind, NotificationType};
use docmill_model::ids::{DeliveryId, EventId, WorkspaceId};
use docmill_model::time::Micros;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::channels::{channel_record, find};
use super::claims::shares;
use super::rows::{count, id, json, to_json, word};
use crate::{Channel, ChannelRef, DeliveryClaim, DeliveryLease, DeliveryQuery, EventSnapshot, Result, StoreError};

/// What waits in a lane: not claimed. A macro so that it can be part of literals.
macro_rules! waiting {
    ($table:literal) => {
        concat!(
            $table,
            ".lane = $1 AND ",
            $table,
            ".state = 'pending' AND ",
            $table,
            ".lease_until IS NULL"
        )
    };
}

/// Receivers with something due, those with the fewest deliveries under way first, then by what has waited
/// longest: how many are under way, and how many more may be (counted up to the bound). The index is
/// walked from receiver to receiver, however much waits for each.
pub(super) const RECEIVERS: &str = concat!(
    "WITH RECURSIVE receivers (id) AS (
         SELECT (SELECT min(d.receiver) FROM deliveries d WHERE d.again = $2 AND ",
    waiting!("d"),
    ") UNION ALL
         SELECT (SELECT min(d.receiver) FROM deliveries d WHERE d.again = $2 AND d.receiver > r.id AND ",
    waiting!("d"),
    ") FROM receivers r WHERE r.id IS NOT NULL),
     counted AS (
         SELECT r.id,
             (SELECT count(*) FROM deliveries d WHERE d.lane = $1 AND d.receiver = r.id
                  AND d.state = 'pending' AND d.lease_until IS NOT NULL) AS running,
             (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.again = $2 AND d.receiver = r.id
                  AND d.not_before <= $3 AND ",
    waiting!("d"),
    " LIMIT $4)) AS due,
             (SELECT d.seq FROM deliveries d WHERE d.again = $2 AND d.receiver = r.id AND d.not_before <= $3 AND ",
    waiting!("d"),
    " ORDER BY d.not_before, d.seq LIMIT 1) AS oldest
         FROM receivers r WHERE r.id IS NOT NULL)
     SELECT id, running, min(due, $4 - running) AS ready FROM counted
     WHERE due > 0 AND running < $4 ORDER BY running, oldest LIMIT $5"
);

macro_rules! claim_these {
    ($which:expr) => {
        concat!(
            "UPDATE deliveries SET token = token + 1, attempt = attempt + 1, lease_until = $3
             WHERE seq IN (SELECT d.seq FROM deliveries d WHERE ",
            waiting!("d"),
            $which,
            ") RETURNING seq, id, token, kind, channel_id, event_id, sealed, attempt, created_at"
        )
    };
}

/// Claims what is due to a receiver, the longest due first.
pub(super) const CLAIM_FOR: &str =
    claim_these!(" AND d.again = $5 AND d.receiver = $2 AND d.not_before <= $4 ORDER BY d.not_before, d.seq LIMIT $6");

/// Claims events due to a mailbox in a workspace, the oldest first.
pub(super) const CLAIM_SIBLINGS: &str = claim_these!(
    " AND d.again IN (0, 1) AND d.receiver = $2 AND d.not_before <= $4 AND d.workspace_id = $5
      AND d.kind = 'event' ORDER BY d.seq LIMIT $6"
);

/// A claimed delivery.
pub(super) const CLAIMED: &str = "SELECT lane, receiver, workspace_id FROM deliveries
     WHERE id = $1 AND token = $2 AND state = 'pending' AND lease_until IS NOT NULL";

pub(super) const CHANNELS_OF_CLAIMS: &str = "SELECT c.*,
         (SELECT k.expires_at FROM channel_codes k WHERE k.channel_id = c.id) AS code_expires_at
     FROM channels c WHERE c.id IN (SELECT value FROM json_each($1))";
pub(super) const EVENTS_OF_CLAIMS: &str = "SELECT * FROM events WHERE id IN (SELECT value FROM json_each($1))";
pub(super) const NEXT: &str = "SELECT not_before FROM deliveries
     WHERE lane = $1 AND state = 'pending' AND lease_until IS NULL ORDER BY not_before LIMIT 1";
pub(super) const MAILED: &str = "SELECT count(*) FROM deliveries
     WHERE workspace_id = $1 AND receiver = $2 AND ended_at >= $3
         AND state = 'delivered' AND lane = 'email' AND kind = 'event' AND digest_of IS NULL";
pub(super) const GIVE_BACK: &str = "UPDATE deliveries SET lease_until = NULL, attempt = attempt - 1
     WHERE lane IN ('email', 'webhook') AND state = 'pending' AND lease_until IS NOT NULL AND ($1 OR lease_until < $2)";

impl SqliteStore {
    pub(super) async fn claim_due(&self, query: DeliveryQuery, now: Micros) -> Result<Vec<DeliveryClaim>> {
        loop {
            let claimed = self
                .writer
                .write(move |db| Box::pin(async move { claim(db, query, now).await }));
            let (claims, cancelled) = claimed.await?;
            // What was only cancelled must not look as if nothing were due.
            if !claims.is_empty() || cancelled == 0 {
                return Ok(claims);
            }
        }
    }

    pub(super) async fn claim_digest(
        &self,
        lease: DeliveryLease,
        max: u32,
        lease_until: Micros,
        now: Micros,
    ) -> Result<Vec<DeliveryClaim>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let held = sqlx::query(CLAIMED).bind(lease.id.to_string()).bind(lease.token);
                    let Some(held) = held.fetch_optional(&mut *db).await? else {
                        return Ok(Vec::new());
                    };
                    if held.try_get::<&str, _>("lane")? != ChannelKind::Email.as_str() {
                        return Ok(Vec::new());
                    }
                    let rows = sqlx::query(CLAIM_SIBLINGS)
                        .bind(ChannelKind::Email.as_str())
                        .bind(held.try_get::<&str, _>("receiver")?)
                        .bind(lease_until)
                        .bind(now)
                        .bind(held.try_get::<&str, _>("workspace_id")?)
                        .bind(max)
                        .fetch_all(&mut *db)
                        .await?;
                    let (mut claims, _) = load(db, &rows, now).await?;
                    claims.sort_by_key(|(seq, _)| *seq);
                    Ok(claims.into_iter().map(|(_, claim)| claim).collect())
                })
            })
            .await
    }

    pub(super) async fn count_mails(&self, workspace: WorkspaceId, mailbox: &str, since: Micros) -> Result<u64> {
        let mails: i64 = sqlx::query_scalar(MAILED)
            .bind(workspace.to_string())
            .bind(mailbox)
            .bind(since)
            .fetch_one(&self.readers)
            .await?;
        Ok(mails.max(0) as u64)
    }

    pub(super) async fn first_delivery(&self, lane: ChannelKind) -> Result<Option<Micros>> {
        let next = sqlx::query_scalar(NEXT).bind(lane.as_str());
        Ok(next.fetch_optional(&self.readers).await?)
    }

    pub(super) async fn renew_delivery_leases(
        &self,
        leases: Vec<DeliveryLease>,
        lease_until: Micros,
    ) -> Result<Vec<DeliveryLease>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut lost = Vec::new();
                    for lease in leases {
                        let done = sqlx::query(
                            "UPDATE deliveries SET lease_until = $3
                             WHERE id = $1 AND token = $2 AND state = 'pending' AND lease_until IS NOT NULL",
                        )
                        .bind(lease.id.to_string())
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

    pub(super) async fn give_deliveries_back(&self, leases: Vec<DeliveryLease>, not_before: Micros) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    for lease in leases {
                        sqlx::query(
                            "UPDATE deliveries SET lease_until = NULL, attempt = attempt - 1, not_before = $3
                             WHERE id = $1 AND token = $2 AND state = 'pending' AND lease_until IS NOT NULL",
                        )
                        .bind(lease.id.to_string())
                        .bind(lease.token)
                        .bind(not_before)
                        .execute(&mut *db)
                        .await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    pub(super) async fn give_abandoned_back(&self, all: bool, now: Micros) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let done = sqlx::query(GIVE_BACK).bind(all).bind(now).execute(db).await?;
                    Ok(done.rows_affected())
                })
            })
            .await
    }

    pub(super) async fn insert_test(&self, channel: ChannelRef, now: Micros) -> Result<Option<DeliveryId>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let row = find(db, channel).await?;
                    let Some(row) = row else { return Ok(None) };
                    if !channel_record(&row)?.enabled() {
                        return Ok(None);
                    }
                    let delivery = DeliveryId::new();
                    sqlx::query(
                        "INSERT INTO deliveries (id, workspace_id, channel_id, kind, lane, receiver, not_before,
                                                 created_at)
                         SELECT $2, workspace_id, id, $3, kind, receiver, 0, $4 FROM channels WHERE id = $1",
                    )
                    .bind(channel.id.to_string())
                    .bind(delivery.to_string())
                    .bind(DeliveryKind::Test.as_str())
                    .bind(now)
                    .execute(db)
                    .await?;
                    Ok(Some(delivery))
                })
            })
            .await
    }
}

/// Claims first attempts, then others; what was claimed, and how much was cancelled instead.
async fn claim(db: &mut SqliteConnection, query: DeliveryQuery, now: Micros) -> Result<(Vec<DeliveryClaim>, usize)> {
    let mut rows = claim_some(db, query, false, query.max, now).await?;
    let left = query.max.saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    rows.extend(claim_some(db, query, true, left.min(query.max_retries), now).await?);
    let (claims, cancelled) = load(db, &rows, now).await?;
    Ok((claims.into_iter().map(|(_, claim)| claim).collect(), cancelled))
}

async fn claim_some(
    db: &mut SqliteConnection,
    query: DeliveryQuery,
    again: bool,
    max: u32,
    now: Micros,
) -> Result<Vec<SqliteRow>> {
    if max == 0 {
        return Ok(Vec::new());
    }
    let receivers = sqlx::query(RECEIVERS)
        .bind(query.lane.as_str())
        .bind(again)
        .bind(now)
        .bind(query.per_receiver)
        .bind(max);
    let receivers = receivers.fetch_all(&mut *db).await?;
    let mut rows = Vec::new();
    for (receiver, deliveries) in shares(&receivers, max)? {
        let some = sqlx::query(CLAIM_FOR)
            .bind(query.lane.as_str())
            .bind(receiver)
            .bind(query.lease_until)
            .bind(now)
            .bind(again)
            .bind(deliveries);
        rows.extend(some.fetch_all(&mut *db).await?);
    }
    Ok(rows)
}

/// Completes claimed rows to claims, each with its `seq`, and cancels those that may not be sent; how many.
async fn load(
    db: &mut SqliteConnection,
    rows: &[SqliteRow],
    now: Micros,
) -> Result<(Vec<(i64, DeliveryClaim)>, usize)> {
    if rows.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let channels = referred(db, CHANNELS_OF_CLAIMS, "channel_id", rows).await?;
    let events = referred(db, EVENTS_OF_CLAIMS, "event_id", rows).await?;
    let mut claims = Vec::with_capacity(rows.len());
    for row in rows {
        let channel_id: &str = row.try_get("channel_id")?;
        let event_id: Option<&str> = row.try_get("event_id")?;
        let seq: i64 = row.try_get("seq")?;
        let event = event_id.map(|id| events.get(id));
        match claim_record(row, channels.get(channel_id), event, now) {
            Ok(Ok(claim)) => claims.push((seq, claim)),
            Ok(Err(reason)) => cancel(db, seq, reason, now).await?,
            Err(StoreError::Corrupt(reason)) => {
                tracing::error!(reason, "a delivery in the store can't be read");
                cancel(db, seq, "its record can't be read", now).await?;
            }
            Err(error) => return Err(error),
        }
    }
    let cancelled = rows.len() - claims.len();
    Ok((claims, cancelled))
}

/// The rows that these refer to in a column, by id.
async fn referred(
    db: &mut SqliteConnection,
    sql: &'static str,
    column: &str,
    rows: &[SqliteRow],
) -> Result<HashMap<String, SqliteRow>> {
    let mut ids = BTreeSet::new();
    for row in rows {
        ids.extend(row.try_get::<Option<&str>, _>(column)?);
    }
    let rows = sqlx::query(sql).bind(to_json(&ids)?).fetch_all(db).await?;
    rows.into_iter().map(|row| Ok((row.try_get("id")?, row))).collect()
}

/// A claim, or why it may not be sent.
fn claim_record(
    row: &SqliteRow,
    channel: Option<&SqliteRow>,
    event: Option<Option<&SqliteRow>>,
    now: Micros,
) -> Result<std::result::Result<DeliveryClaim, &'static str>> {
    let Some(channel_row) = channel else {
        return Ok(Err("the channel was deleted"));
    };
    let channel: Channel = channel_record(channel_row)?;
    let kind = word(row, "kind", DeliveryKind::parse)?;
    let sealed: Option<Vec<u8>> = row.try_get("sealed")?;
    if kind == DeliveryKind::Code {
        let expires: Option<Micros> = channel_row.try_get("code_expires_at")?;
        if sealed.is_none() || expires.is_none_or(|at| at <= now) {
            return Ok(Err("the code has expired"));
        }
    } else if !channel.enabled() {
        return Ok(Err("the channel was disabled"));
    }
    let event = match event {
        None => None,
        Some(None) => return Ok(Err("its event is not kept any more")),
        Some(Some(event)) => Some(snapshot(event)?),
    };
    Ok(Ok(DeliveryClaim {
        lease: lease(row)?,
        kind,
        channel,
        event,
        sealed,
        attempt: u32::try_from(count(row, "attempt")?).unwrap_or(u32::MAX),
        created_at: row.try_get("created_at")?,
    }))
}

fn lease(row: &SqliteRow) -> Result<DeliveryLease> {
    Ok(DeliveryLease {
        id: id(row, "id")?,
        token: row.try_get("token")?,
    })
}

async fn cancel(db: &mut SqliteConnection, seq: i64, reason: &str, now: Micros) -> Result<()> {
    sqlx::query(
        "UPDATE deliveries SET state = 'cancelled', lease_until = NULL, attempt = attempt - 1, sealed = NULL,
             ended_at = $2, last_error = $3 WHERE seq = $1",
    )
    .bind(seq)
    .bind(now)
    .bind(reason)
    .execute(db)
    .await?;
    Ok(())
}

fn snapshot(row: &SqliteRow) -> Result<EventSnapshot> {
    let workflow: Option<&str> = row.try_get("workflow_id")?;
    Ok(EventSnapshot {
        id: id::<EventId>(row, "id")?,
        workspace: id(row, "workspace_id")?,
        workflow: workflow.map(|_| id(row, "workflow_id")).transpose()?,
        sequence: row.try_get("sequence")?,
        kind: word(row, "type", NotificationType::parse)?,
        payload: json(row, "payload")?,
        failed_files: match row.try_get::<Option<&str>, _>("failed_files")? {
            Some(_) => json(row, "failed_files")?,
            None => Vec::new(),
        },
        created_at: row.try_get("created_at")?,
    })
}
