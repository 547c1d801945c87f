//! Connectors and checks of their connections.

use docmill_model::connector::{CheckStatus, ConnectorRole};
use docmill_model::ids::{CheckId, ConnectorId, WorkspaceId};
use docmill_model::time::Micros;
use serde_json::Value;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::rows::{id, json, to_json, word};
use super::slugs;
use crate::{ConnectionCheck, Connector, ConnectorDeletion, NewConnector, Result, StoreError};

pub(super) const CONNECTOR_BY_ID: &str = "SELECT * FROM connectors WHERE id = $1 AND workspace_id = $2 AND role = $3";
pub(super) const CONNECTOR_BY_KEY: &str = "SELECT * FROM connectors WHERE key = $1 AND workspace_id = $2 AND role = $3";
pub(super) const CONNECTORS: &str = "SELECT * FROM connectors WHERE workspace_id = $1 AND role = $2
         AND ($3 IS NULL OR kind = $3) ORDER BY created_at, id";

/// The first live workflows that use a connector.
pub(super) const USERS: &str = "SELECT w.id, w.name FROM workflow_refs r JOIN workflows w ON w.seq = r.workflow_seq
     WHERE r.workspace_id = $1 AND r.role = $2 AND r.ref_id = $3 AND r.deleted = 0 ORDER BY r.workflow_seq LIMIT 5";

impl SqliteStore {
    pub(super) async fn insert_connector(&self, connector: NewConnector, now: Micros) -> Result<String> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let (workspace, role) = (connector.workspace.to_string(), connector.role.as_str());
                    let asked = connector.key.as_deref();
                    let key = slugs::assign(db, slugs::CONNECTOR_KEY, &workspace, role, asked, &connector.name).await?;
                    sqlx::query(
                        "INSERT INTO connectors (id, workspace_id, role, name, key, kind, config, created_at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                    )
                    .bind(connector.id.to_string())
                    .bind(workspace)
                    .bind(role)
                    .bind(&connector.name)
                    .bind(&key)
                    .bind(&connector.kind)
                    .bind(to_json(&connector.config)?)
                    .bind(now)
                    .execute(db)
                    .await?;
                    Ok(key)
                })
            })
            .await
    }

    pub(super) async fn find_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        which: &str,
    ) -> Result<Option<Connector>> {
        let as_id = which.parse::<ConnectorId>().ok().map(|id| id.to_string());
        let ways = [(CONNECTOR_BY_ID, as_id.as_deref()), (CONNECTOR_BY_KEY, Some(which))];
        for (sql, value) in ways {
            let Some(value) = value else { continue };
            let query = sqlx::query(sql)
                .bind(value)
                .bind(workspace.to_string())
                .bind(role.as_str());
            if let Some(row) = query.fetch_optional(&self.readers).await? {
                return connector_record(&row).map(Some);
            }
        }
        Ok(None)
    }

    pub(super) async fn list_connectors(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        kind: Option<&str>,
    ) -> Result<Vec<Connector>> {
        let rows = sqlx::query(CONNECTORS)
            .bind(workspace.to_string())
            .bind(role.as_str())
            .bind(kind)
            .fetch_all(&self.readers)
            .await?;
        rows.iter().map(connector_record).collect()
    }

    pub(super) async fn set_connector_config(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        connector: ConnectorId,
        config: Value,
        now: Micros,
    ) -> Result<Option<Connector>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let row = sqlx::query(
                        "UPDATE connectors SET config = $4, updated_at = $5
                         WHERE id = $1 AND workspace_id = $2 AND role = $3 RETURNING *",
                    )
                    .bind(connector.to_string())
                    .bind(workspace.to_string())
                    .bind(role.as_str())
                    .bind(to_json(&config)?)
                    .bind(now)
                    .fetch_optional(db)
                    .await?;
                    row.as_ref().map(connector_record).transpose()
                })
            })
            .await
    }

    pub(super) async fn remove_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        connector: ConnectorId,
    ) -> Result<ConnectorDeletion> {
        let (workspace, connector) = (workspace.to_string(), connector.to_string());
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let users = sqlx::query(USERS).bind(&workspace).bind(role.as_str()).bind(&connector);
                    let users = users.fetch_all(&mut *db).await?;
                    if !users.is_empty() {
                        let users = users.iter().map(|row| Ok((id(row, "id")?, row.try_get("name")?)));
                        return Ok(ConnectorDeletion::InUse(users.collect::<Result<_>>()?));
                    }
                    let gone = sqlx::query("DELETE FROM connectors WHERE id = $1 AND workspace_id = $2 AND role = $3")
                        .bind(&connector)
                        .bind(&workspace)
                        .bind(role.as_str())
                        .execute(db)
                        .await?;
                    Ok(match gone.rows_affected() {
                        0 => ConnectorDeletion::NotFound,
                        _ => ConnectorDeletion::Deleted,
                    })
                })
            })
            .await
    }

    pub(super) async fn insert_check(&self, connector: ConnectorId, check: CheckId, now: Micros) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let done = sqlx::query(
                        "INSERT INTO connection_checks (id, connector_id, status, created_at)
                         SELECT $2, id, 'SCHEDULED', $3 FROM connectors WHERE id = $1
                         ON CONFLICT (connector_id) DO UPDATE SET id = excluded.id, status = excluded.status,
                             reason = NULL, created_at = excluded.created_at, reported_at = NULL",
                    )
                    .bind(connector.to_string())
                    .bind(check.to_string())
                    .bind(now)
                    .execute(db)
                    .await?;
                    match done.rows_affected() {
                        0 => Err(StoreError::ConnectorGone(connector)),
                        _ => Ok(()),
                    }
                })
            })
            .await
    }

    pub(super) async fn set_check_ended(
        &self,
        check: CheckId,
        outcome: std::result::Result<(), String>,
        now: Micros,
    ) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let status = match outcome {
                        Ok(()) => CheckStatus::Success,
                        Err(_) => CheckStatus::Failure,
                    };
                    sqlx::query(
                        "UPDATE connection_checks SET status = $2, reason = $3, reported_at = $4
                         WHERE id = $1 AND status = 'SCHEDULED'",
                    )
                    .bind(check.to_string())
                    .bind(status.as_str())
                    .bind(outcome.err())
                    .bind(now)
                    .execute(db)
                    .await?;
                    Ok(())
                })
            })
            .await
    }

    pub(super) async fn find_check(
        &self,
        workspace: WorkspaceId,
        connector: ConnectorId,
    ) -> Result<Option<ConnectionCheck>> {
        let row = sqlx::query(
            "SELECT k.* FROM connection_checks k JOIN connectors c ON c.id = k.connector_id
             WHERE c.id = $1 AND c.workspace_id = $2",
        )
        .bind(connector.to_string())
        .bind(workspace.to_string())
        .fetch_optional(&self.readers)
        .await?;
        row.map(|row| {
            Ok(ConnectionCheck {
                id: id(&row, "id")?,
                status: word(&row, "status", CheckStatus::parse)?,
                reason: row.try_get("reason")?,
                created_at: row.try_get("created_at")?,
                reported_at: row.try_get("reported_at")?,
            })
        })
        .transpose()
    }

    pub(super) async fn fail_open_checks(&self, reason: &str, now: Micros) -> Result<u64> {
        let reason = reason.to_owned();
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let done = sqlx::query(
                        "UPDATE connection_checks SET status = 'FAILURE', reason = $1, reported_at = $2
                         WHERE status = 'SCHEDULED'",
                    )
                    .bind(reason)
                    .bind(now)
                    .execute(db)
                    .await?;
                    Ok(done.rows_affected())
                })
            })
            .await
    }
}

fn connector_record(row: &SqliteRow) -> Result<Connector> {
    Ok(Connector {
        id: id(row, "id")?,
        role: word(row, "role", ConnectorRole::parse)?,
        name: row.try_get("name")?,
        key: row.try_get("key")?,
        kind: row.try_get("kind")?,
        config: json(row, "config")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}
