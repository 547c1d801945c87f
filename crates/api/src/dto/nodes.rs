//! Kinds of nodes.

use docmill_model::chain::catalog::NodeEntry;
use docmill_model::provider::Available;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A kind of node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeKind {
    /// Type of the node.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Subtype of the node.
    subtype: &'static str,
    /// What it does.
    summary: &'static str,
    /// Where in a chain it may stand.
    place: &'static str,
    /// Model providers it may call; none if it calls nobody.
    providers: Vec<&'static str>,
    /// Whether it can't run without one of them.
    needs_provider: bool,
    /// Whether this server has what it needs: a node may also bring a key of its own.
    available: bool,
    /// JSON Schema of its settings.
    #[schema(value_type = Object)]
    settings_schema: Value,
}

impl NodeKind {
    pub(crate) fn of(entry: &'static NodeEntry, available: &Available) -> Self {
        let has = |provider: &docmill_model::provider::Provider| available.has(*provider);
        Self {
            kind: entry.kind,
            subtype: &entry.subtype,
            summary: &entry.summary,
            place: entry.place,
            providers: entry.providers.iter().map(|provider| provider.as_str()).collect(),
            needs_provider: entry.needs_provider,
            available: !entry.needs_provider || entry.providers.iter().any(has),
            settings_schema: entry.json_schema(),
        }
    }
}
