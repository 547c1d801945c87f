//! What was sent: lists for people, sending again, and forgetting.

use docmill_model::channel::{DeliveryKind, DeliveryState, NotificationType};
use docmill_model::ids::DeliveryId;
use docmill_model::time::Micros;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::channels::{channel_record, find};
use super::rows::{count, id, word};
use crate::{Attempt, ChannelRef, Delivery, DeliveryFilter, Replay, Result};

/// Deliveries sent again, or forgotten, in one transaction.
const PART: u64 = 2_000;

/// Attempts a list shows.
const ATTEMPTS_SHOWN: u32 = 100;

macro_rules! delivery_rows {
    ($which:expr) => {
        concat!(
            "SELECT d.*, (SELECT e.type FROM events e WHERE e.id = d.event_id) AS event_type FROM deliveries d
             WHERE d.channel_id = $1 ",
            $which
        )
    };
}
/// The latest of a channel's deliveries that have ended in a state.
macro_rules! ended {
    ($state:literal) => {
        concat!(
            "SELECT seq FROM (SELECT seq FROM deliveries WHERE channel_id = $1 AND state = ",
            $state,
            " AND ended_at IS NOT NULL AND seq < $2 ORDER BY seq DESC LIMIT $3)"
        )
    };
}
macro_rules! pending {
    () => {
        "SELECT seq FROM (SELECT seq FROM deliveries WHERE channel_id = $1 AND state = 'pending'
             AND seq < $2 ORDER BY seq DESC LIMIT $3)"
    };
}
/// A page of them all is taken from the pages of each state.
pub(super) const LATEST: &str = delivery_rows!(concat!(
    "AND d.seq IN (",
    pending!(),
    " UNION ALL ",
    ended!("'delivered'"),
    " UNION ALL ",
    ended!("'failed'"),
    " UNION ALL ",
    ended!("'cancelled'"),
    ") ORDER BY d.seq DESC LIMIT $3"
));
pub(super) const LATEST_PENDING: &str = delivery_rows!(concat!("AND d.seq IN (", pending!(), ") ORDER BY d.seq DESC"));
pub(super) const LATEST_ENDED: &str = delivery_rows!(concat!("AND d.seq IN (", ended!("$4"), ") ORDER BY d.seq DESC"));
pub(super) const ONE: &str = delivery_rows!("AND d.id = $2");
pub(super) const ATTEMPTS: &str = "SELECT * FROM
         (SELECT a.* FROM deliveries d JOIN delivery_attempts a ON a.delivery_seq = d.seq
          WHERE d.id = $2 AND d.channel_id = $1 ORDER BY a.number DESC LIMIT $3) ORDER BY number";
pub(super) const AGAIN: &str = "UPDATE deliveries
     SET state = 'pending', again = iif(state = 'pending', again, 1), attempt = 0, not_before = 0, ended_at = NULL,
         digest_of = NULL, receiver = $2
     WHERE seq = $1 AND lease_until IS NULL";
pub(super) const ALL_AGAIN: &str = "UPDATE deliveries
     SET state = 'pending', again = 1, attempt = 0, not_before = 0, ended_at = NULL, digest_of = NULL, receiver = $4
     WHERE seq IN (SELECT seq FROM deliveries WHERE channel_id = $1 AND state IN ('failed', 'cancelled')
                       AND ended_at IS NOT NULL
                       AND kind IN ('event', 'notice') AND created_at >= $2 LIMIT $3)";
pub(super) const OLD_DELIVERIES: &str =
    "SELECT seq FROM deliveries WHERE ended_at IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2";
pub(super) const FORGET_EVENTS: &str = "DELETE FROM events WHERE id IN
         (SELECT e.id FROM events e WHERE e.created_at < $1
              AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id) ORDER BY e.created_at LIMIT $2)";
pub(super) const FORGET_CHANNELS: &str = "DELETE FROM channels WHERE seq IN
         (SELECT c.seq FROM channels c CROSS JOIN workflows w ON w.id = c.scope
          WHERE c.scope <> '' AND w.deleted = 1 AND w.deleted_at < $1 LIMIT $2)";

impl SqliteStore {
    pub(super) async fn list_deliveries(
        &self,
        channel: ChannelRef,
        filter: DeliveryFilter,
    ) -> Result<Option<Vec<Delivery>>> {
        let mut snapshot = self.readers.begin().await?;
        if find(&mut snapshot, channel).await?.is_none() {
            return Ok(None);
        }
        let sql = match filter.state {
            None => LATEST,
            Some(DeliveryState::Pending) => LATEST_PENDING,
            Some(_) => LATEST_ENDED,
        };
        let mut query = sqlx::query(sql)
            .bind(channel.id.to_string())
            .bind(filter.before.unwrap_or(i64::MAX))
            .bind(filter.limit);
        if let Some(state) = filter.state.filter(|state| *state != DeliveryState::Pending) {
            query = query.bind(state.as_str());
        }
        let rows = query.fetch_all(&mut *snapshot).await?;
        snapshot.rollback().await?;
        rows.iter().map(delivery_record).collect::<Result<_>>().map(Some)
    }

    pub(super) async fn find_delivery(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Option<Delivery>> {
        let mut snapshot = self.readers.begin().await?;
        let row = match find(&mut snapshot, channel).await? {
            None => None,
            Some(_) => delivery_row(&mut snapshot, channel, delivery).await?,
        };
        snapshot.rollback().await?;
        row.as_ref().map(delivery_record).transpose()
    }

    pub(super) async fn list_attempts(
        &self,
        channel: ChannelRef,
        delivery: DeliveryId,
    ) -> Result<Option<Vec<Attempt>>> {
        let mut snapshot = self.readers.begin().await?;
        let known = find(&mut snapshot, channel).await?.is_some()
            && delivery_row(&mut snapshot, channel, delivery).await?.is_some();
        if !known {
            return Ok(None);
        }
        let rows = sqlx::query(ATTEMPTS)
            .bind(channel.id.to_string())
            .bind(delivery.to_string())
            .bind(ATTEMPTS_SHOWN)
            .fetch_all(&mut *snapshot)
            .await?;
        snapshot.rollback().await?;
        rows.iter().map(attempt_record).collect::<Result<_>>().map(Some)
    }

    pub(super) async fn send_again(&self, channel: ChannelRef, delivery: DeliveryId) -> Result<Replay> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(channel_row) = find(db, channel).await? else {
                        return Ok(Replay::NotFound);
                    };
                    let Some(row) = delivery_row(db, channel, delivery).await? else {
                        return Ok(Replay::NotFound);
                    };
                    if word(&row, "kind", DeliveryKind::parse)? == DeliveryKind::Code {
                        return Ok(Replay::NotReplayable);
                    }
                    let target = channel_record(&channel_row)?;
                    if !target.enabled() {
                        return Ok(Replay::Disabled);
                    }
                    sqlx::query(AGAIN)
                        .bind(row.try_get::<i64, _>("seq")?)
                        .bind(target.definition.target.receiver())
                        .execute(db)
                        .await?;
                    Ok(Replay::Replayed)
                })
            })
            .await
    }

    pub(super) async fn send_failed_again(&self, channel: ChannelRef, since: Micros) -> Result<Option<u64>> {
        let mut total = 0;
        loop {
            let some = self.writer.write(move |db| {
                Box::pin(async move {
                    let Some(row) = find(db, channel).await? else {
                        return Ok(None);
                    };
                    let target = channel_record(&row)?;
                    if !target.enabled() {
                        return Ok(None);
                    }
                    let done = sqlx::query(ALL_AGAIN)
                        .bind(channel.id.to_string())
                        .bind(since)
                        .bind(PART as i64)
                        .bind(target.definition.target.receiver())
                        .execute(db)
                        .await?;
                    Ok(Some(done.rows_affected()))
                })
            });
            match some.await? {
                None if total == 0 => return Ok(None),
                None => return Ok(Some(total)),
                Some(part) => {
                    total += part;
                    if part < PART {
                        return Ok(Some(total));
                    }
                }
            }
        }
    }

    pub(super) async fn forget_notifications(&self, before: Micros, max: u32) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let old = sqlx::query_scalar(OLD_DELIVERIES).bind(before).bind(max);
                    let old: Vec<i64> = old.fetch_all(&mut *db).await?;
                    for seq in &old {
                        for sql in [
                            "DELETE FROM delivery_attempts WHERE delivery_seq = $1",
                            "DELETE FROM deliveries WHERE seq = $1",
                        ] {
                            sqlx::query(sql).bind(seq).execute(&mut *db).await?;
                        }
                    }
                    let mut forgotten = old.len() as u64;
                    for sql in [FORGET_EVENTS, FORGET_CHANNELS] {
                        let done = sqlx::query(sql).bind(before).bind(max).execute(&mut *db).await?;
                        forgotten += done.rows_affected();
                    }
                    Ok(forgotten)
                })
            })
            .await
    }
}

async fn delivery_row(
    db: &mut SqliteConnection,
    channel: ChannelRef,
    delivery: DeliveryId,
) -> Result<Option<SqliteRow>> {
    let row = sqlx::query(ONE).bind(channel.id.to_string()).bind(delivery.to_string());
    Ok(row.fetch_optional(db).await?)
}

fn delivery_record(row: &SqliteRow) -> Result<Delivery> {
    let state = word(row, "state", DeliveryState::parse)?;
    let optional_id = |column| row.try_get::<Option<&str>, _>(column);
    Ok(Delivery {
        seq: row.try_get("seq")?,
        id: id(row, "id")?,
        kind: word(row, "kind", DeliveryKind::parse)?,
        event: match (optional_id("event_id")?, optional_id("event_type")?) {
            (Some(_), Some(_)) => Some((id(row, "event_id")?, word(row, "event_type", NotificationType::parse)?)),
            _ => None,
        },
        state,
        attempts: u32::try_from(count(row, "attempts")?).unwrap_or(u32::MAX),
        not_before: match state {
            DeliveryState::Pending => row.try_get("not_before")?,
            _ => None,
        },
        last_status: row.try_get("last_status")?,
        last_error: row.try_get("last_error")?,
        digest_of: optional_id("digest_of")?.map(|_| id(row, "digest_of")).transpose()?,
        created_at: row.try_get("created_at")?,
        ended_at: row.try_get("ended_at")?,
    })
}

fn attempt_record(row: &SqliteRow) -> Result<Attempt> {
    Ok(Attempt {
        started_at: row.try_get("started_at")?,
        duration: row.try_get("duration")?,
        status: row.try_get("status")?,
        response: row.try_get("response")?,
        error: row.try_get("error")?,
    })
}
