//! Accounts, workspaces and API keys.

use docmill_model::ids::{AccountId, KeyId, WorkspaceId};
use docmill_model::time::Micros;
use sqlx::Row;

use super::SqliteStore;
use super::rows::id;
use crate::{Account, ApiKey, NewKey, Principal, Result, StoreError, Workspace};

pub(super) const PRINCIPAL_BY_HASH: &str =
    "SELECT k.id, k.workspace_id, w.account_id FROM api_keys k JOIN workspaces w ON w.id = k.workspace_id
     WHERE k.secret_hash = $1 AND k.revoked_at IS NULL";

pub(super) const PRINCIPAL_BY_KEY: &str =
    "SELECT k.id, k.workspace_id, w.account_id FROM api_keys k JOIN workspaces w ON w.id = k.workspace_id
     WHERE k.id = $1 AND k.revoked_at IS NULL";

impl SqliteStore {
    pub(super) async fn insert_account(&self, name: &str, now: Micros) -> Result<AccountId> {
        let account = AccountId::new();
        let name = name.to_owned();
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    sqlx::query("INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3)")
                        .bind(account.to_string())
                        .bind(&name)
                        .bind(now)
                        .execute(db)
                        .await
                        .map_err(|error| taken(error, &name))?;
                    Ok(account)
                })
            })
            .await
    }

    pub(super) async fn list_accounts(&self) -> Result<Vec<Account>> {
        let rows = sqlx::query("SELECT id, name, created_at FROM accounts ORDER BY name")
            .fetch_all(&self.readers)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Account {
                    id: id(row, "id")?,
                    name: row.try_get("name")?,
                    created_at: row.try_get("created_at")?,
                })
            })
            .collect()
    }

    pub(super) async fn insert_workspace(&self, account: AccountId, name: &str, now: Micros) -> Result<WorkspaceId> {
        let workspace = WorkspaceId::new();
        let name = name.to_owned();
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    sqlx::query("INSERT INTO workspaces (id, account_id, name, created_at) VALUES ($1, $2, $3, $4)")
                        .bind(workspace.to_string())
                        .bind(account.to_string())
                        .bind(&name)
                        .bind(now)
                        .execute(db)
                        .await
                        .map_err(|error| taken(error, &name))?;
                    Ok(workspace)
                })
            })
            .await
    }

    pub(super) async fn list_workspaces(&self) -> Result<Vec<Workspace>> {
        let rows = sqlx::query("SELECT id, account_id, name, created_at FROM workspaces ORDER BY name")
            .fetch_all(&self.readers)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Workspace {
                    id: id(row, "id")?,
                    account: id(row, "account_id")?,
                    name: row.try_get("name")?,
                    created_at: row.try_get("created_at")?,
                })
            })
            .collect()
    }

    pub(super) async fn insert_key(&self, key: NewKey, now: Micros) -> Result<KeyId> {
        let key_id = KeyId::new();
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    sqlx::query(
                        "INSERT INTO api_keys (id, workspace_id, name, prefix, secret_hash, created_at)
                         VALUES ($1, $2, $3, $4, $5, $6)",
                    )
                    .bind(key_id.to_string())
                    .bind(key.workspace.to_string())
                    .bind(&key.name)
                    .bind(&key.prefix)
                    .bind(&key.secret_hash)
                    .bind(now)
                    .execute(db)
                    .await
                    .map_err(|error| taken(error, &key.prefix))?;
                    Ok(key_id)
                })
            })
            .await
    }

    pub(super) async fn list_keys(&self, workspace: Option<WorkspaceId>) -> Result<Vec<ApiKey>> {
        let rows = sqlx::query(
            "SELECT k.id, w.name AS workspace_name, k.name, k.prefix, k.created_at, k.last_used_at, k.revoked_at
             FROM api_keys k JOIN workspaces w ON w.id = k.workspace_id
             WHERE $1 IS NULL OR k.workspace_id = $1
             ORDER BY k.created_at, k.id",
        )
        .bind(workspace.map(|w| w.to_string()))
        .fetch_all(&self.readers)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(ApiKey {
                    id: id(row, "id")?,
                    workspace_name: row.try_get("workspace_name")?,
                    name: row.try_get("name")?,
                    prefix: row.try_get("prefix")?,
                    created_at: row.try_get("created_at")?,
                    last_used_at: row.try_get("last_used_at")?,
                    revoked_at: row.try_get("revoked_at")?,
                })
            })
            .collect()
    }

    pub(super) async fn set_keys_revoked(&self, which: &str, now: Micros) -> Result<u64> {
        let which = which.to_owned();
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let done = sqlx::query(
                        "UPDATE api_keys SET revoked_at = $2 WHERE (id = $1 OR prefix = $1) AND revoked_at IS NULL",
                    )
                    .bind(which)
                    .bind(now)
                    .execute(db)
                    .await?;
                    Ok(done.rows_affected())
                })
            })
            .await
    }

    /// Looks up a live key with [`PRINCIPAL_BY_HASH`] or [`PRINCIPAL_BY_KEY`].
    pub(super) async fn find_principal(&self, sql: &'static str, value: &str) -> Result<Option<Principal>> {
        let row = sqlx::query(sql).bind(value).fetch_optional(&self.readers).await?;
        row.map(|row| {
            Ok(Principal {
                account: id(&row, "account_id")?,
                workspace: id(&row, "workspace_id")?,
                key: id(&row, "id")?,
            })
        })
        .transpose()
    }

    pub(super) async fn set_key_used(&self, key: KeyId, now: Micros) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    sqlx::query(
                        "UPDATE api_keys SET last_used_at = $2
                         WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)",
                    )
                    .bind(key.to_string())
                    .bind(now)
                    .execute(db)
                    .await?;
                    Ok(())
                })
            })
            .await
    }
}

fn taken(error: sqlx::Error, name: &str) -> StoreError {
    match &error {
        sqlx::Error::Database(database) if database.is_unique_violation() => StoreError::NameTaken(name.to_owned()),
        _ => error.into(),
    }
}
