//! Channels: creation, reading, change and deletion.

use docmill_model::channel::{ChannelId, ChannelKind, ChannelScope};
use docmill_model::ids::WorkspaceId;
use docmill_model::job::EventType;
use docmill_model::time::Micros;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::codes::{Recipient, issue, void};
use super::rows::{id, json, to_json, word};
use crate::{
    Channel, ChannelCreation, ChannelDefinition, ChannelRef, ChannelTarget, ChannelUpdate, CodeLimits, NewChannel,
    NewCode, Result, StoreError,
};

pub(super) const CHANNEL: &str = "SELECT * FROM channels WHERE id = $1 AND workspace_id = $2 AND scope = $3";
pub(super) const CHANNELS: &str = "SELECT * FROM channels WHERE workspace_id = $1 AND scope = $2 AND kind = $3
         AND ($4 IS NULL OR (wanted = 1 AND verified_at IS NOT NULL) = $4) ORDER BY seq";
pub(super) const IN_SCOPE: &str = "SELECT count(*) FROM channels WHERE workspace_id = $1 AND scope = $2";
/// Ends what waits to be sent to a channel. What is being sent just now comes to its own end.
pub(super) const CANCEL: &str = "UPDATE deliveries SET state = 'cancelled', ended_at = $2, last_error = $3
     WHERE channel_id = $1 AND state = 'pending' AND lease_until IS NULL AND kind <> 'code'";

impl SqliteStore {
    pub(super) async fn insert_channel(
        &self,
        new: NewChannel,
        max: u32,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<ChannelCreation> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let (workspace, scope) = (new.channel.workspace.to_string(), scope_column(new.channel.scope));
                    check_scope(db, new.channel).await?;
                    let there = sqlx::query_scalar(IN_SCOPE).bind(&workspace).bind(&scope);
                    let there: u32 = there.fetch_one(&mut *db).await?;
                    if there >= max {
                        return Ok(ChannelCreation::Full);
                    }
                    let row = insert_row(db, &new, now).await?;
                    insert_events(db, &row, &new.definition).await?;
                    let mail = new.definition.target.kind() == ChannelKind::Email;
                    if let Some(code) = new.code.as_ref().filter(|_| mail) {
                        let recipient = Recipient {
                            workspace: &workspace,
                            channel: new.channel.id,
                            mailbox: new.definition.target.receiver(),
                        };
                        if let Some(refusal) = issue(db, &recipient, code, limits, now).await? {
                            sqlx::query("DELETE FROM channels WHERE id = $1")
                                .bind(new.channel.id.to_string())
                                .execute(db)
                                .await?;
                            return Ok(ChannelCreation::Refused(refusal));
                        }
                    }
                    Ok(ChannelCreation::Created(Box::new(channel_record(&row)?)))
                })
            })
            .await
    }

    pub(super) async fn find_channel(&self, channel: ChannelRef) -> Result<Option<Channel>> {
        let mut connection = self.readers.acquire().await?;
        let row = find(&mut connection, channel).await?;
        row.as_ref().map(channel_record).transpose()
    }

    pub(super) async fn list_channels(
        &self,
        workspace: WorkspaceId,
        scope: ChannelScope,
        kind: ChannelKind,
        enabled: Option<bool>,
    ) -> Result<Vec<Channel>> {
        let rows = sqlx::query(CHANNELS)
            .bind(workspace.to_string())
            .bind(scope_column(scope))
            .bind(kind.as_str())
            .bind(enabled)
            .fetch_all(&self.readers)
            .await?;
        rows.iter().map(channel_record).collect()
    }

    pub(super) async fn set_channel_definition(
        &self,
        channel: ChannelRef,
        definition: ChannelDefinition,
        code: Option<NewCode>,
        seen: Micros,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<ChannelUpdate> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(row) = find(db, channel).await? else {
                        return Ok(ChannelUpdate::NotFound);
                    };
                    let old = channel_record(&row)?;
                    if old.verified_at.is_none() {
                        return Ok(ChannelUpdate::NotVerified);
                    }
                    let target = &definition.target;
                    if old.updated_at != seen || old.definition.target.kind() != target.kind() {
                        return Err(StoreError::Conflict);
                    }
                    let moved =
                        target.kind() == ChannelKind::Email && address(target) != address(&old.definition.target);
                    if moved {
                        let recipient = Recipient {
                            workspace: row.try_get("workspace_id")?,
                            channel: channel.id,
                            mailbox: target.receiver(),
                        };
                        let code = code.as_ref().ok_or(StoreError::Conflict)?;
                        if let Some(refusal) = issue(db, &recipient, code, limits, now).await? {
                            return Ok(ChannelUpdate::Refused(refusal));
                        }
                    }
                    let row = update_row(db, &old, &definition, moved, now).await?;
                    sqlx::query("DELETE FROM channel_events WHERE channel_seq = $1")
                        .bind(row.try_get::<i64, _>("seq")?)
                        .execute(&mut *db)
                        .await?;
                    insert_events(db, &row, &definition).await?;
                    if moved {
                        cancel(db, channel.id, "the channel's address was changed", now).await?;
                    } else if !definition.wanted {
                        cancel(db, channel.id, "the channel was disabled", now).await?;
                    } else if target.receiver() != old.definition.target.receiver() {
                        redirect(db, channel.id, target.receiver()).await?;
                    }
                    Ok(ChannelUpdate::Updated(Box::new(channel_record(&row)?)))
                })
            })
            .await
    }

    pub(super) async fn remove_channel(&self, channel: ChannelRef, now: Micros) -> Result<bool> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    if find(db, channel).await?.is_none() {
                        return Ok(false);
                    }
                    void(db, channel.id, "the channel was deleted", now).await?;
                    cancel(db, channel.id, "the channel was deleted", now).await?;
                    sqlx::query("DELETE FROM channels WHERE id = $1")
                        .bind(channel.id.to_string())
                        .execute(db)
                        .await?;
                    Ok(true)
                })
            })
            .await
    }

    pub(super) async fn stop_channel(&self, channel: ChannelRef, reason: String, now: Micros) -> Result<bool> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(row) = find(db, channel).await? else {
                        return Ok(false);
                    };
                    if row.try_get("wanted")? {
                        disable(db, channel.id, &reason, now).await?;
                    }
                    Ok(true)
                })
            })
            .await
    }
}

/// The column's word for a scope.
pub(super) fn scope_column(scope: ChannelScope) -> String {
    scope
        .workflow()
        .map(|workflow| workflow.to_string())
        .unwrap_or_default()
}

/// The row of a channel, by one statement whether it is unknown or somebody else's.
pub(super) async fn find(db: &mut SqliteConnection, channel: ChannelRef) -> Result<Option<SqliteRow>> {
    Ok(sqlx::query(CHANNEL)
        .bind(channel.id.to_string())
        .bind(channel.workspace.to_string())
        .bind(scope_column(channel.scope))
        .fetch_optional(db)
        .await?)
}

/// Sends a channel nothing more, by the server's own decision.
pub(super) async fn disable(db: &mut SqliteConnection, channel: ChannelId, reason: &str, now: Micros) -> Result<()> {
    sqlx::query(
        "UPDATE channels SET wanted = 0, disabled_at = $2, disabled_reason = $3, updated_at = max(updated_at + 1, $2)
         WHERE id = $1",
    )
    .bind(channel.to_string())
    .bind(now)
    .bind(reason)
    .execute(&mut *db)
    .await?;
    cancel(db, channel, reason, now).await
}

async fn cancel(db: &mut SqliteConnection, channel: ChannelId, reason: &str, now: Micros) -> Result<()> {
    sqlx::query(CANCEL)
        .bind(channel.to_string())
        .bind(now)
        .bind(reason)
        .execute(db)
        .await?;
    Ok(())
}

/// Counts what waits for a channel against its new receiver.
async fn redirect(db: &mut SqliteConnection, channel: ChannelId, receiver: &str) -> Result<()> {
    sqlx::query("UPDATE deliveries SET receiver = $2 WHERE channel_id = $1 AND state = 'pending'")
        .bind(channel.to_string())
        .bind(receiver)
        .execute(db)
        .await?;
    Ok(())
}

async fn check_scope(db: &mut SqliteConnection, channel: ChannelRef) -> Result<()> {
    let Some(workflow) = channel.scope.workflow() else {
        return Ok(());
    };
    sqlx::query("SELECT 1 FROM workflows WHERE id = $1 AND workspace_id = $2 AND deleted = 0")
        .bind(workflow.to_string())
        .bind(channel.workspace.to_string())
        .fetch_optional(db)
        .await?
        .map(drop)
        .ok_or(StoreError::WorkflowGone(workflow))
}

fn address(target: &ChannelTarget) -> &str {
    match target {
        ChannelTarget::Email { recipient, .. } => recipient,
        ChannelTarget::Webhook { url, .. } => url,
    }
}

/// What only one kind of channel has.
struct Particulars<'a> {
    cc: String,
    reply_to: Option<&'a str>,
    secrets: Option<&'a [u8]>,
}

fn particulars(target: &ChannelTarget) -> Result<Particulars<'_>> {
    let (cc, reply_to, secrets) = match target {
        ChannelTarget::Email { cc, reply_to, .. } => (cc.as_slice(), reply_to.as_deref(), None),
        ChannelTarget::Webhook { secrets, .. } => (&[][..], None, secrets.as_deref()),
    };
    Ok(Particulars {
        cc: to_json(&cc)?,
        reply_to,
        secrets,
    })
}

async fn insert_row(db: &mut SqliteConnection, new: &NewChannel, now: Micros) -> Result<SqliteRow> {
    let definition = &new.definition;
    let Particulars { cc, reply_to, secrets } = particulars(&definition.target)?;
    let kind = definition.target.kind();
    let query = sqlx::query(
        "INSERT INTO channels (id, workspace_id, scope, kind, description, events, wanted, receiver, address, cc,
                               reply_to, secrets, verified_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14) RETURNING *",
    )
    .bind(new.channel.id.to_string())
    .bind(new.channel.workspace.to_string())
    .bind(scope_column(new.channel.scope))
    .bind(kind.as_str())
    .bind(&definition.description)
    .bind(to_json(&definition.events)?)
    .bind(definition.wanted)
    .bind(definition.target.receiver())
    .bind(address(&definition.target))
    .bind(cc)
    .bind(reply_to)
    .bind(secrets)
    .bind((kind == ChannelKind::Webhook).then_some(now))
    .bind(now);
    Ok(query.fetch_one(db).await?)
}

/// Writes a definition over the row it replaces. Each change has an instant of its own, whatever the clock
/// does, so that it is told from the one before.
async fn update_row(
    db: &mut SqliteConnection,
    old: &Channel,
    definition: &ChannelDefinition,
    moved: bool,
    now: Micros,
) -> Result<SqliteRow> {
    let Particulars { cc, reply_to, secrets } = particulars(&definition.target)?;
    let anew = definition.wanted && !old.definition.wanted;
    let elsewhere = address(&definition.target) != address(&old.definition.target);
    let query = sqlx::query(
        "UPDATE channels SET description = $2, events = $3, wanted = $4, receiver = $5, address = $6, cc = $7,
             reply_to = $8, secrets = $9, updated_at = $10, verified_at = iif($11, NULL, verified_at),
             disabled_at = iif($12, NULL, disabled_at), disabled_reason = iif($12, NULL, disabled_reason),
             bounced_at = iif($13, NULL, bounced_at), bounce_reason = iif($13, NULL, bounce_reason),
             failing_since = iif($13, NULL, failing_since)
         WHERE id = $1 RETURNING *",
    )
    .bind(old.channel.id.to_string())
    .bind(&definition.description)
    .bind(to_json(&definition.events)?)
    .bind(definition.wanted)
    .bind(definition.target.receiver())
    .bind(address(&definition.target))
    .bind(cc)
    .bind(reply_to)
    .bind(secrets)
    .bind(now.max(old.updated_at + 1))
    .bind(moved)
    .bind(anew)
    .bind(anew || elsewhere);
    Ok(query.fetch_one(db).await?)
}

async fn insert_events(db: &mut SqliteConnection, channel: &SqliteRow, definition: &ChannelDefinition) -> Result<()> {
    for event in &definition.events {
        // The same type may be named twice.
        sqlx::query(
            "INSERT INTO channel_events (workspace_id, scope, type, channel_seq) VALUES ($1, $2, $3, $4)
             ON CONFLICT DO NOTHING",
        )
        .bind(channel.try_get::<&str, _>("workspace_id")?)
        .bind(channel.try_get::<&str, _>("scope")?)
        .bind(event.as_str())
        .bind(channel.try_get::<i64, _>("seq")?)
        .execute(&mut *db)
        .await?;
    }
    Ok(())
}

pub(super) fn channel_record(row: &SqliteRow) -> Result<Channel> {
    let scope = match row.try_get::<&str, _>("scope")? {
        "" => ChannelScope::Workspace,
        _ => ChannelScope::Workflow(id(row, "scope")?),
    };
    let since = |at, why| -> Result<Option<(Micros, String)>> {
        let reason: Option<String> = row.try_get(why)?;
        Ok(row.try_get::<Option<Micros>, _>(at)?.zip(reason))
    };
    Ok(Channel {
        channel: ChannelRef {
            workspace: id(row, "workspace_id")?,
            scope,
            id: id(row, "id")?,
        },
        definition: ChannelDefinition {
            description: row.try_get("description")?,
            events: json::<Vec<EventType>>(row, "events")?,
            wanted: row.try_get("wanted")?,
            target: target(row)?,
        },
        verified_at: row.try_get("verified_at")?,
        disabled: since("disabled_at", "disabled_reason")?,
        bounced: since("bounced_at", "bounce_reason")?,
        failing_since: row.try_get("failing_since")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}

fn target(row: &SqliteRow) -> Result<ChannelTarget> {
    Ok(match word(row, "kind", ChannelKind::parse)? {
        ChannelKind::Email => ChannelTarget::Email {
            recipient: row.try_get("address")?,
            mailbox: row.try_get("receiver")?,
            cc: json(row, "cc")?,
            reply_to: row.try_get("reply_to")?,
        },
        ChannelKind::Webhook => ChannelTarget::Webhook {
            url: row.try_get("address")?,
            host: row.try_get("receiver")?,
            secrets: row.try_get("secrets")?,
        },
    })
}
