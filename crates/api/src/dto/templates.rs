//! Templates and nodes.

use std::collections::BTreeMap;

use docmill_model::template::Template;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A template in the list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateListItem {
    id: &'static str,
    name: &'static str,
    version: &'static str,
    last_updated: &'static str,
    description: &'static str,
}

impl From<&Template> for TemplateListItem {
    fn from(template: &Template) -> Self {
        Self {
            id: template.id,
            name: template.name,
            version: template.version,
            last_updated: template.last_updated,
            description: template.description,
        }
    }
}

/// A template with its nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateDetail {
    #[serde(flatten)]
    template: TemplateListItem,
    /// The chain, in the shape of `job_nodes`.
    #[schema(value_type = Vec<JobNode>)]
    nodes: Value,
}

impl From<&Template> for TemplateDetail {
    fn from(template: &Template) -> Self {
        Self {
            template: template.into(),
            nodes: template.nodes(),
        }
    }
}

/// A node of a chain, as a client sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(
    dead_code,
    reason = "describes the request for the OpenAPI document; the model reads it"
)]
pub(crate) struct JobNode {
    /// Id; given by the server when absent.
    #[schema(format = "uuid")]
    id: Option<String>,
    name: String,
    /// `partition`, `prompter`, `chunk`, `structured_data_extractor` or `embed`.
    #[serde(rename = "type")]
    kind: String,
    /// Which node of the type; `GET /nodes` lists them.
    subtype: String,
    /// Settings of the subtype.
    settings: Option<BTreeMap<String, Value>>,
}
