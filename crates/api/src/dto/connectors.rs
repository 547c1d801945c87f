//! Sources, destinations and their types.

use docmill_connectors::{ConnectorType, schema};
use docmill_engine::masked;
use docmill_model::connector::ConnectorRole;
use docmill_model::time::iso8601;
use docmill_store::{ConnectionCheck, Connector};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A source or a destination.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConnectorInformation {
    /// Id.
    #[schema(format = "uuid")]
    id: String,
    /// Name for people.
    name: String,
    /// Slug, unique among the workspace's sources or destinations; stands for the id in paths.
    key: String,
    /// Its type, one of `GET /connectors`.
    #[serde(rename = "type")]
    kind: String,
    /// Its settings with every default; secrets are `**********`.
    #[schema(value_type = Object)]
    config: Value,
    /// When it was created.
    #[schema(format = "date-time")]
    created_at: String,
    /// When its settings last changed.
    #[schema(format = "date-time")]
    updated_at: Option<String>,
}

impl From<Connector> for ConnectorInformation {
    fn from(connector: Connector) -> Self {
        Self {
            id: connector.id.to_string(),
            name: connector.name,
            key: connector.key,
            kind: connector.kind,
            config: masked(&connector.config),
            created_at: iso8601(connector.created_at),
            updated_at: connector.updated_at.map(iso8601),
        }
    }
}

/// A check of a connection.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DagNodeConnectionCheck {
    /// Id.
    #[schema(format = "uuid")]
    id: String,
    /// `SCHEDULED` until it has ended, then `SUCCESS` or `FAILURE`.
    status: String,
    /// Why it failed.
    reason: Option<String>,
    /// When it was asked for.
    #[schema(format = "date-time")]
    created_at: String,
    /// When it ended.
    #[schema(format = "date-time")]
    reported_at: Option<String>,
}

impl From<ConnectionCheck> for DagNodeConnectionCheck {
    fn from(check: ConnectionCheck) -> Self {
        Self {
            id: check.id.to_string(),
            status: check.status.to_string(),
            reason: check.reason,
            created_at: iso8601(check.created_at),
            reported_at: check.reported_at.map(iso8601),
        }
    }
}

/// A type of connector.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConnectorTypeInformation {
    /// Its name, as in a connector's `type`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// What it connects to.
    description: &'static str,
    /// JSON Schema of a source's `config`; null when there is no such source.
    #[schema(value_type = Option<Object>)]
    source: Option<Value>,
    /// JSON Schema of a destination's `config`; null when there is no such destination.
    #[schema(value_type = Option<Object>)]
    destination: Option<Value>,
}

impl From<&ConnectorType> for ConnectorTypeInformation {
    fn from(kind: &ConnectorType) -> Self {
        Self {
            kind: kind.name,
            description: kind.description,
            source: kind.fields(ConnectorRole::Source).map(schema),
            destination: kind.fields(ConnectorRole::Destination).map(schema),
        }
    }
}

/// A source or destination to create.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({
    "name": "Reports", "key": "reports", "type": "s3",
    "config": {"remote_url": "s3://reports/2026", "key": "AKIAIOSFODNN7EXAMPLE", "secret": "secret"},
})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct CreateConnector {
    /// 1 to 255 characters.
    name: String,
    /// One of `GET /connectors`.
    #[serde(rename = "type")]
    kind: String,
    /// Settings of the type; its JSON Schema is in `GET /connectors`.
    #[schema(value_type = Object)]
    config: Value,
    /// Slug of 1 to 63 of `a-z`, `0-9` and single hyphens; made from the name when absent.
    key: Option<String>,
}

/// New settings of a source or destination.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({
    "config": {"remote_url": "s3://reports/2027", "key": "AKIAIOSFODNN7EXAMPLE", "secret": "**********"},
})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct UpdateConnector {
    /// All settings, not just those that change; a secret sent back masked stays as it is, unless a setting
    /// changes that says where secrets are sent (host, URL): then it must be given again.
    #[schema(value_type = Object)]
    config: Value,
}
