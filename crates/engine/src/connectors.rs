//! What can be asked about connectors: create, change, delete, check.

use std::time::Duration;

use docmill_connectors::{ConnectorError, MASK, find, unmask, validate};
use docmill_model::chain::Problem;
use docmill_model::connector::{CheckStatus, ConnectorRole};
use docmill_model::ids::{CheckId, ConnectorId, WorkspaceId};
use docmill_store::{ConnectionCheck, Connector, ConnectorDeletion, NewConnector, Principal, StoreError};
use serde_json::{Map, Value};

use crate::clock::now;
use crate::engine::Engine;
use crate::vault::VaultError;

/// Time a connection check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Connection checks at once; later ones wait.
pub(crate) const CHECKS_AT_ONCE: usize = 16;

/// Why a check failed that its server did not end.
pub(crate) const CHECK_ABANDONED: &str = "the server stopped before the check ended; start it again";

/// A connector to create.
#[derive(Clone, Copy, Debug)]
pub struct ConnectorSettings<'a> {
    /// Which way it moves data.
    pub role: ConnectorRole,
    /// Free name.
    pub name: &'a str,
    /// Slug asked for.
    pub key: Option<&'a str>,
    /// Its type.
    pub kind: &'a str,
    /// Its settings as sent.
    pub config: &'a Value,
    /// Where in the request the settings are, for problems.
    pub loc: &'a [Value],
}

/// Why a connector is not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorRefused {
    /// There is no such type in this role; the message says which there are.
    #[error("{0}")]
    UnknownType(String),
    /// The settings can't work.
    #[error("the settings are not valid")]
    Invalid(Vec<Problem>),
    /// A secret can't be encrypted or decrypted.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The store failed; [`StoreError::KeyTaken`] when the slug is taken.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Creates a connector. What is returned holds encrypted secrets: send [`crate::masked`] settings out.
    pub async fn create_connector(
        &self,
        principal: &Principal,
        settings: ConnectorSettings<'_>,
    ) -> Result<Connector, ConnectorRefused> {
        let id = ConnectorId::new();
        let mut given = settings.config.clone();
        let config = self.sealed(id, settings.role, settings.kind, &mut given, &Map::new(), settings.loc)?;
        let (name, at) = (settings.name.to_owned(), now());
        let new = NewConnector {
            id,
            workspace: principal.workspace,
            role: settings.role,
            name: name.clone(),
            key: settings.key.map(str::to_owned),
            kind: settings.kind.to_owned(),
            config: config.clone(),
        };
        let key = self.store().create_connector(new, at).await?;
        Ok(Connector {
            id,
            role: settings.role,
            name,
            key,
            kind: settings.kind.to_owned(),
            config,
            created_at: at,
            updated_at: None,
        })
    }

    /// Replaces a connector's settings; where a secret is the mask, the stored one stays. `None` when there
    /// is no such connector. Runs under way use the new settings within seconds.
    pub async fn update_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        which: &str,
        config: &Value,
        loc: &[Value],
    ) -> Result<Option<Connector>, ConnectorRefused> {
        let Some(connector) = self.store().connector(workspace, role, which).await? else {
            return Ok(None);
        };
        let mut given = config.clone();
        // Secrets that can't be read any more must not keep anybody from writing new ones.
        let stored = if holds_mask(&given) {
            self.shared.connections.vault.open(connector.id, &connector.config)?
        } else {
            Map::new()
        };
        let config = self.sealed(connector.id, role, &connector.kind, &mut given, &stored, loc)?;
        let updated = self
            .store()
            .update_connector(workspace, role, connector.id, config, now())
            .await?;
        self.shared.connections.forget(connector.id);
        Ok(updated)
    }

    /// Deletes a connector no live workflow uses.
    pub async fn delete_connector(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        which: &str,
    ) -> docmill_store::Result<ConnectorDeletion> {
        let Some(connector) = self.store().connector(workspace, role, which).await? else {
            return Ok(ConnectorDeletion::NotFound);
        };
        let deletion = self.store().delete_connector(workspace, role, connector.id).await?;
        if deletion == ConnectorDeletion::Deleted {
            self.shared.connections.forget(connector.id);
        }
        Ok(deletion)
    }

    /// Starts to check a connector's connection; `None` when there is no such connector. The outcome is
    /// stored as its latest check.
    pub async fn check_connection(
        &self,
        workspace: WorkspaceId,
        role: ConnectorRole,
        which: &str,
    ) -> docmill_store::Result<Option<ConnectionCheck>> {
        let Some(connector) = self.store().connector(workspace, role, which).await? else {
            return Ok(None);
        };
        let check = ConnectionCheck {
            id: CheckId::new(),
            status: CheckStatus::Scheduled,
            reason: None,
            created_at: now(),
            reported_at: None,
        };
        self.store()
            .create_check(connector.id, check.id, check.created_at)
            .await?;
        self.shared.tasks.spawn(run_check(self.clone(), connector, check.id));
        Ok(Some(check))
    }

    /// Settings as sent, checked and encrypted for storing.
    fn sealed(
        &self,
        id: ConnectorId,
        role: ConnectorRole,
        kind: &str,
        given: &mut Value,
        stored: &Map<String, Value>,
        loc: &[Value],
    ) -> Result<Value, ConnectorRefused> {
        let fields = find(role, kind)
            .and_then(|kind| kind.fields(role))
            .ok_or_else(|| ConnectorRefused::UnknownType(docmill_connectors::unavailable(role, kind)))?;
        unmask(fields, given, stored, loc).map_err(ConnectorRefused::Invalid)?;
        let config = validate(fields, given, loc).map_err(ConnectorRefused::Invalid)?;
        let connections = &self.shared.connections;
        connections
            .try_open(role, kind, &config)
            .map_err(|error| ConnectorRefused::Invalid(vec![Problem::new(loc, "value_error", error.message)]))?;
        Ok(Value::Object(connections.vault.seal(id, fields, config)?))
    }
}

async fn run_check(engine: Engine, connector: Connector, check: CheckId) {
    let shared = &engine.shared;
    let attempt = async {
        let _permit = shared.checks.acquire().await;
        tokio::time::timeout(CHECK_TIMEOUT, shared.connections.check(&connector)).await
    };
    let outcome = tokio::select! {
        outcome = attempt => match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(ConnectorError { message, .. })) => Err(message),
            Err(_) => Err(format!("no answer within {} seconds", CHECK_TIMEOUT.as_secs())),
        },
        () = shared.stopping.cancelled() => Err(CHECK_ABANDONED.to_owned()),
    };
    let label = if outcome.is_ok() { "success" } else { "failure" };
    metrics::counter!("docmill_connection_checks_total", "type" => connector.kind.clone(), "outcome" => label)
        .increment(1);
    if let Err(error) = shared.store.finish_check(check, outcome, now()).await {
        // It stays as it is until the next start fails it.
        tracing::error!(%error, connector.id = %connector.id, "cannot record a connection check");
    }
}

fn holds_mask(config: &Value) -> bool {
    config
        .as_object()
        .is_some_and(|config| config.values().any(|value| value == MASK))
}
