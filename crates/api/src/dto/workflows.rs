//! Workflows.

use std::collections::BTreeMap;

use docmill_engine::{masked, next_runs};
use docmill_model::chain::NodeSpec;
use docmill_model::time::iso8601;
use docmill_model::workflow::WorkflowType;
use docmill_store::Workflow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::JobNode;

/// Runs of the future that are told.
const SHOWN_RUNS: usize = 5;

/// A workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkflowInformation {
    /// Id.
    #[schema(format = "uuid")]
    id: String,
    /// Name for people; several workflows may have the same.
    name: String,
    /// Slug, unique among the workspace's workflows; stands for the id in paths.
    key: String,
    /// Ids of its sources; none when files are uploaded at run.
    sources: Vec<String>,
    /// Ids of its destinations; none when outputs are kept for download.
    destinations: Vec<String>,
    /// `basic`, `advanced`, `platinum`, `custom` or `template`.
    workflow_type: String,
    /// Its chain.
    workflow_nodes: Vec<WorkflowNode>,
    /// When it runs by itself.
    schedule: Option<WorkflowSchedule>,
    /// Time zone the schedule is read in; null without one.
    timezone: Option<String>,
    /// What happens when it is time and the last run has not ended: `skip` or `allow`; null without schedule.
    schedule_overlap: Option<String>,
    /// The next five runs of the schedule; none while the workflow is inactive.
    next_runs: Vec<String>,
    /// `active` or `inactive`.
    status: String,
    /// Whether runs process files again that have not changed.
    reprocess_all: bool,
    /// Whether runs remove documents from the destinations whose file is gone from the source.
    delete_removed_files: bool,
    /// When it was created.
    #[schema(format = "date-time")]
    created_at: String,
    /// When it was last changed.
    #[schema(format = "date-time")]
    updated_at: Option<String>,
    /// When it was deleted.
    #[schema(format = "date-time")]
    deleted_at: Option<String>,
}

/// A node of a workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkflowNode {
    /// Id.
    #[schema(format = "uuid")]
    id: Option<String>,
    name: String,
    /// `partition`, `prompter`, `chunk`, `structured_data_extractor` or `embed`.
    #[serde(rename = "type")]
    kind: String,
    subtype: String,
    /// Settings as given; credentials masked.
    settings: BTreeMap<String, Value>,
}

/// A schedule.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WorkflowSchedule {
    /// Exactly one.
    crontab_entries: Vec<CrontabEntry>,
}

/// A line of cron.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CrontabEntry {
    /// Minute, hour, day of month, month, day of week.
    cron_expression: String,
}

impl WorkflowInformation {
    /// The workflow as told to a client.
    pub(crate) fn new(workflow: Workflow, client: Client) -> Self {
        let next_runs = if workflow.deleted_at.is_some() {
            Vec::new()
        } else {
            next_runs(&workflow.definition, SHOWN_RUNS)
        };
        let definition = workflow.definition;
        let schedule = definition.schedule;
        Self {
            id: workflow.id.to_string(),
            name: definition.name,
            key: workflow.key,
            sources: definition.sources.iter().map(ToString::to_string).collect(),
            destinations: definition.destinations.iter().map(ToString::to_string).collect(),
            workflow_type: type_for(client, definition.kind).to_string(),
            workflow_nodes: definition.nodes.into_iter().map(WorkflowNode::from).collect(),
            timezone: schedule.as_ref().map(|schedule| schedule.timezone.clone()),
            schedule_overlap: schedule.as_ref().map(|schedule| schedule.overlap.to_string()),
            schedule: schedule.map(|schedule| WorkflowSchedule {
                crontab_entries: vec![CrontabEntry {
                    cron_expression: schedule.cron,
                }],
            }),
            next_runs: next_runs.into_iter().map(iso8601).collect(),
            status: definition.state.to_string(),
            reprocess_all: definition.reprocess_all,
            delete_removed_files: definition.delete_removed,
            created_at: iso8601(workflow.created_at),
            updated_at: workflow.updated_at.map(iso8601),
            deleted_at: workflow.deleted_at.map(iso8601),
        }
    }
}

impl From<NodeSpec> for WorkflowNode {
    fn from(node: NodeSpec) -> Self {
        Self {
            id: node.id.map(|id| id.to_string()),
            name: node.name,
            kind: node.kind,
            subtype: node.subtype,
            settings: match masked(&Value::Object(node.settings)) {
                Value::Object(settings) => settings.into_iter().collect(),
                _ => BTreeMap::new(),
            },
        }
    }
}

/// What an answer has to know about who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Knows every word of this interface.
    Any,
    /// A generated client that refuses a whole answer for a word it does not know.
    ClosedWords,
}

impl Client {
    /// Who sends this `User-Agent`.
    pub(crate) fn of(user_agent: &[u8]) -> Self {
        if user_agent.starts_with(b"speakeasy-sdk/") {
            Self::ClosedWords
        } else {
            Self::Any
        }
    }
}

/// The type's word. The generated clients have no `template` in their list and would refuse the whole
/// answer; to them such a workflow is `custom`, which is how it runs.
fn type_for(client: Client, kind: WorkflowType) -> WorkflowType {
    match (client, kind) {
        (Client::ClosedWords, WorkflowType::Template) => WorkflowType::Custom,
        (_, kind) => kind,
    }
}

/// A workflow to create.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({
    "name": "Reports every hour", "workflow_type": "custom",
    "source_id": "reports", "destination_id": "elements",
    "schedule": "every hour", "timezone": "Europe/Vienna",
    "workflow_nodes": [
        {"name": "Partitioner", "type": "partition", "subtype": "service_api", "settings": {"strategy": "auto"}},
        {"name": "Chunker", "type": "chunk", "subtype": "chunk_by_title", "settings": {"max_characters": 1000}},
    ],
})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct CreateWorkflow {
    /// 1 to 255 characters.
    name: String,
    /// `basic`, `advanced` and `platinum` without nodes get a partition node of strategy `fast`, `hi_res`, or
    /// the cheapest per page; `custom` needs `workflow_nodes` or `template_id`, `template` a `template_id`.
    #[schema(value_type = WorkflowTypeWord)]
    workflow_type: String,
    /// Id or key of a source. Without one, files are uploaded at run.
    source_id: Option<String>,
    /// Id or key of a destination. Without one, outputs are kept for download.
    destination_id: Option<String>,
    /// The chain.
    workflow_nodes: Option<Vec<JobNode>>,
    /// Template to take the chain from; `workflow_nodes` wins when both are there.
    template_id: Option<String>,
    /// When it runs by itself: words such as `daily` or `every 2 hours`, five fields of cron, or the object
    /// an answer holds. Needs a source.
    #[schema(value_type = Option<ScheduleInput>)]
    schedule: Option<Value>,
    /// IANA time zone the schedule is read in; `UTC` by default.
    timezone: Option<String>,
    /// What happens when it is time and the last run has not ended: `skip` (default) or `allow`.
    schedule_overlap: Option<String>,
    /// Process files again that have not changed; false by default.
    reprocess_all: Option<bool>,
    /// Remove documents from the destination whose file is gone from the source; false by default.
    delete_removed_files: Option<bool>,
    /// `active` (default) or `inactive`.
    state: Option<String>,
    /// Slug of 1 to 63 of `a-z`, `0-9` and single hyphens; made from the name when absent.
    key: Option<String>,
}

/// What to change of a workflow. What is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({"schedule": "30 6 * * 1-5", "timezone": "America/New_York", "reprocess_all": true})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct UpdateWorkflow {
    /// 1 to 255 characters.
    name: Option<String>,
    #[schema(value_type = Option<WorkflowTypeWord>)]
    workflow_type: Option<String>,
    /// Id or key of a source; null takes it away.
    source_id: Option<String>,
    /// Id or key of a destination; null takes it away.
    destination_id: Option<String>,
    /// The chain.
    workflow_nodes: Option<Vec<JobNode>>,
    /// Template to take the chain from; `workflow_nodes` wins when both are there.
    template_id: Option<String>,
    /// As in creation; null takes it away.
    #[schema(value_type = Option<ScheduleInput>)]
    schedule: Option<Value>,
    /// IANA time zone the schedule is read in.
    timezone: Option<String>,
    /// `skip` or `allow`.
    schedule_overlap: Option<String>,
    reprocess_all: Option<bool>,
    delete_removed_files: Option<bool>,
    /// `active` or `inactive`.
    state: Option<String>,
}

/// A workflow's type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) enum WorkflowTypeWord {
    Basic,
    Advanced,
    Platinum,
    Custom,
    Template,
}

/// A schedule as a client gives it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) enum ScheduleInput {
    /// Words or cron.
    Text(String),
    /// As in answers.
    Entries(WorkflowSchedule),
}

/// The form of a run.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct RunWorkflowForm {
    /// Files, for a workflow without source; the part may also be called `input_files[]`.
    #[schema(value_type = Option<Vec<String>>, format = Binary)]
    input_files: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generated_clients_read_custom_for_template() {
        let closed = Client::of(b"speakeasy-sdk/python 0.46.4 2.680.0 1.2.31 unstructured-client");
        for kind in WorkflowType::ALL {
            assert_eq!(type_for(Client::of(b"curl/8.5.0"), *kind), *kind);
            assert_eq!(type_for(Client::of(b""), *kind), *kind);
        }
        assert_eq!(type_for(closed, WorkflowType::Template), WorkflowType::Custom);
        assert_eq!(type_for(closed, WorkflowType::Platinum), WorkflowType::Platinum);
    }
}
