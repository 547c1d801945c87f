//! Opened connectors: kept while they are used, opened anew when their settings change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use docmill_connectors::{ConnectorError, Destination, Environment, ErrorKind, Source};
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, WorkspaceId};
use docmill_model::time::Micros;
use docmill_store::{Connector, Store};

use crate::vault::{Vault, VaultError};

/// Time after which it is looked up whether a connector's settings have changed.
const FRESH: Duration = Duration::from_secs(5);

/// Time without use after which an opened connector, and with it its connections, is dropped.
const IDLE: Duration = Duration::from_secs(300);

pub(crate) struct Connections {
    environment: Environment,
    pub(crate) vault: Vault,
    opened: Mutex<HashMap<ConnectorId, Entry>>,
}

#[derive(Clone)]
enum Opened {
    Source(Arc<dyn Source>),
    Destination(Arc<dyn Destination>),
}

struct Entry {
    opened: Opened,
    /// The settings it was opened with.
    version: Micros,
    looked_up: Instant,
    used: Instant,
}

impl Connections {
    pub(crate) fn new(environment: Environment, vault: Vault) -> Self {
        Self {
            environment,
            vault,
            opened: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectorId, Entry>> {
        // The map is valid between any two statements that touch it, so a panic elsewhere does no harm.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source of this id.
    pub(crate) async fn source(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        id: ConnectorId,
    ) -> Result<Arc<dyn Source>, ConnectorError> {
        match self.get(store, workspace, ConnectorRole::Source, id).await? {
            Opened::Source(source) => Ok(source),
            Opened::Destination(_) => Err(gone(ConnectorRole::Source, id)),
        }
    }

    /// The destination of this id.
    pub(crate) async fn destination(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        id: ConnectorId,
    ) -> Result<Arc<dyn Destination>, ConnectorError> {
        match self.get(store, workspace, ConnectorRole::Destination, id).await? {
            Opened::Destination(destination) => Ok(destination),
            Opened::Source(_) => Err(gone(ConnectorRole::Destination, id)),
        }
    }

    async fn get(
        &self,
        store: &dyn Store,
        workspace: WorkspaceId,
        role: ConnectorRole,
        id: ConnectorId,
    ) -> Result<Opened, ConnectorError> {
        if let Some(entry) = self
            .lock()
            .get_mut(&id)
            .filter(|entry| entry.looked_up.elapsed() < FRESH)
        {
            entry.used = Instant::now();
            return Ok(entry.opened.clone());
        }
        let connector = store
            .connector(workspace, role, &id.to_string())
            .await
            .map_err(|error| {
                ConnectorError::new(ErrorKind::Unavailable, format!("cannot read the connector: {error}"))
            })?
            .ok_or_else(|| gone(role, id))?;
        let now = Instant::now();
        let version = connector.updated_at.unwrap_or(connector.created_at);
        if let Some(entry) = self.lock().get_mut(&id).filter(|entry| entry.version == version) {
            (entry.used, entry.looked_up) = (now, now);
            return Ok(entry.opened.clone());
        }
        let opened = self.open(&connector)?;
        let entry = Entry {
            opened: opened.clone(),
            version,
            looked_up: now,
            used: now,
        };
        self.lock().insert(id, entry);
        Ok(opened)
    }

    fn open(&self, connector: &Connector) -> Result<Opened, ConnectorError> {
        let config = self.vault.open(connector.id, &connector.config).map_err(unreadable)?;
        Ok(match connector.role {
            ConnectorRole::Source => Opened::Source(docmill_connectors::open_source(
                &self.environment,
                &connector.kind,
                &config,
            )?),
            ConnectorRole::Destination => Opened::Destination(docmill_connectors::open_destination(
                &self.environment,
                &connector.kind,
                &config,
            )?),
        })
    }

    /// Whether settings can be opened at all; connects to nothing.
    pub(crate) fn try_open(
        &self,
        role: ConnectorRole,
        kind: &str,
        config: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), ConnectorError> {
        match role {
            ConnectorRole::Source => docmill_connectors::open_source(&self.environment, kind, config).map(drop),
            ConnectorRole::Destination => {
                docmill_connectors::open_destination(&self.environment, kind, config).map(drop)
            }
        }
    }

    /// Opens a connector for itself alone and has it try its connection.
    pub(crate) async fn check(&self, connector: &Connector) -> Result<(), ConnectorError> {
        match self.open(connector)? {
            Opened::Source(source) => source.check().await,
            Opened::Destination(destination) => destination.check().await,
        }
    }

    /// Forgets an opened connector whose settings changed or that was deleted.
    pub(crate) fn forget(&self, id: ConnectorId) {
        self.lock().remove(&id);
    }

    /// Drops what nobody has used for a while.
    pub(crate) fn drop_idle(&self) {
        self.lock().retain(|_, entry| entry.used.elapsed() < IDLE);
    }
}

fn gone(role: ConnectorRole, id: ConnectorId) -> ConnectorError {
    ConnectorError::new(ErrorKind::Missing, format!("the {role} {id} does not exist any more"))
}

fn unreadable(error: VaultError) -> ConnectorError {
    ConnectorError::new(ErrorKind::Invalid, error.to_string())
}

#[cfg(test)]
impl Connections {
    /// Has a connector stand for an object of the test.
    pub(crate) fn adopt(&self, id: ConnectorId, opened: TestConnector) {
        let opened = match opened {
            TestConnector::Source(source) => Opened::Source(source),
            TestConnector::Destination(destination) => Opened::Destination(destination),
        };
        let never = Instant::now() + Duration::from_secs(1 << 20);
        let entry = Entry {
            opened,
            version: 0,
            looked_up: never,
            used: never,
        };
        self.lock().insert(id, entry);
    }
}

#[cfg(test)]
pub(crate) enum TestConnector {
    Source(Arc<dyn Source>),
    Destination(Arc<dyn Destination>),
}
