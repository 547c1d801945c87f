//! Reads the body of a creation or an update.

use docmill_model::Code;
use docmill_model::chain::{NodeSpec, Problem};
use docmill_model::ids::WorkspaceId;
use docmill_model::template;
use docmill_model::workflow::{Overlap, WorkflowState, WorkflowType};
use serde_json::{Map, Value, json};

use super::{Given, defaults, schedule};
use crate::App;
use crate::body::{Change, Fields};
use crate::error::{ApiError, ApiResult};

/// Who reads the nodes: the workspace, and the nodes the workflow has.
pub(crate) struct Reader<'a> {
    pub(crate) app: &'a App,
    pub(crate) workspace: WorkspaceId,
    pub(crate) stored: &'a [NodeSpec],
}

impl Reader<'_> {
    fn chain(&self, nodes: &Value, loc: &[Value]) -> Chain {
        let (_, specs) = self.app.engine.read_chain(self.workspace, nodes, self.stored, loc)?;
        Ok(Some(specs))
    }
}

/// Reads a body; `creating` asks for all a workflow can't be without. Fields a client has no say in (`id`,
/// `created_at` and whatever docmill does not know) are ignored.
///
/// # Errors
/// Every problem at once, except those that need a look into the store.
pub(crate) fn read(reader: &Reader<'_>, body: &Map<String, Value>, creating: bool) -> ApiResult<Given> {
    let mut fields = Fields::new(body);
    let mut given = Given {
        name: fields.name(creating),
        ..Given::default()
    };
    if creating {
        given.key = fields.key();
        fields.required_text("workflow_type");
    } else if fields.value("key").is_some() {
        fields.problem("key", "value_error", "a workflow's key never changes; leave it out");
    }
    if fields.value("workflow_type").is_some_and(Value::is_string) {
        given.kind = fields.word("workflow_type", WorkflowType::ALL);
    }
    given.source = reference(&mut fields, "source_id");
    given.destination = reference(&mut fields, "destination_id");
    given.schedule = schedule::read(&mut fields);
    given.timezone = schedule::read_timezone(&mut fields);
    given.overlap = fields.word("schedule_overlap", Overlap::ALL);
    given.state = fields.word("state", WorkflowState::ALL);
    given.reprocess_all = fields.boolean("reprocess_all");
    given.delete_removed = fields.boolean("delete_removed_files");
    let chain = nodes(reader, &mut fields, given.kind, creating);
    let fields_are_good = fields.problems.is_empty();
    match chain {
        Ok(nodes) => given.nodes = nodes,
        // A chain that can't run has a code of its own, unless there is more to tell.
        Err(problems) if fields_are_good => return Err(ApiError::problems(Code::ChainInvalid, &problems)),
        Err(problems) => fields.problems.extend(problems),
    }
    fields.finish()?;
    Ok(given)
}

/// The id or key of a connector; `null` takes the connector away.
fn reference(fields: &mut Fields<'_>, name: &str) -> Change<String> {
    if fields.value(name).is_none() {
        return if fields.is_there(name) {
            Change::Clear
        } else {
            Change::Keep
        };
    }
    match fields.text(name) {
        Some(text) => Change::Set(text.to_owned()),
        None => Change::Keep,
    }
}

type Chain = Result<Option<Vec<NodeSpec>>, Vec<Problem>>;

/// The nodes: those given, else those of the template, else those the type stands for. As in jobs, nodes
/// win over a template when both are given.
fn nodes(reader: &Reader<'_>, fields: &mut Fields<'_>, kind: Option<WorkflowType>, creating: bool) -> Chain {
    let at_nodes = [json!("body"), json!("workflow_nodes")];
    let template = match fields.text("template_id") {
        None => None,
        Some(id) => match template::find(id) {
            Some(template) => Some(template),
            None => {
                let id: String = id.chars().take(64).collect();
                fields.problem("template_id", "value_error", format!("Template {id} not found"));
                return Ok(None);
            }
        },
    };
    let given = fields
        .value("workflow_nodes")
        .filter(|nodes| !creating || template.is_none() || *nodes != &json!([]));
    if let Some(nodes) = given {
        return reader.chain(nodes, &at_nodes);
    }
    if let Some(template) = template {
        return reader.chain(&template.nodes(), &[json!("body"), json!("template_id")]);
    }
    if !creating {
        return Ok(None);
    }
    match kind {
        Some(WorkflowType::Custom) => fields.problem(
            "workflow_nodes",
            "missing",
            "a workflow of type `custom` needs `workflow_nodes`, or a `template_id` to take them from",
        ),
        Some(WorkflowType::Template) => fields.problem(
            "template_id",
            "missing",
            "a workflow of type `template` needs a `template_id`; `GET /templates` lists them",
        ),
        Some(kind) => {
            if let Some(nodes) = defaults::nodes(kind) {
                return reader.chain(&nodes, &at_nodes);
            }
        }
        None => {}
    }
    Ok(None)
}
