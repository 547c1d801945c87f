//! Many workflows, queries of their list, and a model that knows what it should be.

use std::collections::BTreeMap;

use docmill_engine::access::hash_key;
use docmill_model::chain::{NodeSpec, parse};
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, WorkflowId};
use docmill_model::time::{Micros, SECOND, iso8601};
use docmill_model::workflow::{WorkflowState, WorkflowType};
use docmill_store::sqlite::{Slots, SqliteStore};
use docmill_store::{NewConnector, NewWorkflow, Principal, Store, WorkflowDefinition};
use futures_util::StreamExt;
use serde_json::json;

use crate::kit::server::KEY;
use crate::kit::{Server, partition_node};

const WORKFLOWS: usize = 10_000;
/// 2026-01-01T00:00:00Z.
const START: Micros = 1_767_225_600 * SECOND;

/// A small generator of numbers, the same on every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

/// What the model knows of a workflow.
#[derive(Clone)]
pub(super) struct Known {
    id: String,
    name: String,
    kind: WorkflowType,
    state: WorkflowState,
    source: Option<usize>,
    destination: Option<usize>,
    nodes: Vec<String>,
    created_at: Micros,
    updated_at: Option<Micros>,
    pub(super) deleted: bool,
}

pub(super) struct World {
    pub(super) known: Vec<Known>,
    sources: Vec<String>,
    destinations: Vec<String>,
    nodes: Vec<NodeSpec>,
}

const WORDS: [&str; 12] = [
    "Invoices",
    "invoices",
    "Straße",
    "ÄRGER",
    "ärger",
    "100%",
    "a_b",
    "日本語",
    "' OR 1=1 --",
    "x",
    "Report",
    "[a-z]*",
];

/// Fills the database of a stopped server.
pub(super) async fn fill(server: &Server) -> World {
    let slots = Slots {
        local_jobs: 5,
        workflow_jobs: 2,
    };
    let store = SqliteStore::open(&server.data_dir().join("docmill.db"), slots)
        .await
        .expect("the database");
    let principal = store
        .principal_by_hash(&hash_key(KEY))
        .await
        .expect("readable")
        .expect("the key");
    let mut dice = Dice(0x0123_4567_89ab_cdef);
    let mut connectors: Vec<Vec<ConnectorId>> = Vec::new();
    for role in [ConnectorRole::Source, ConnectorRole::Destination] {
        let mut ids = Vec::new();
        for number in 0..20 {
            let id = ConnectorId::new();
            let new = NewConnector {
                id,
                workspace: principal.workspace,
                role,
                name: format!("{role} {number}"),
                key: Some(format!("{role}-{number}")),
                kind: "local".into(),
                config: json!({"path": "/nowhere"}),
            };
            store.create_connector(new, START).await.expect("a connector");
            ids.push(id);
        }
        connectors.push(ids);
    }
    // Some nodes are shared, as when a chain is copied with its ids.
    let shared: Vec<_> = (0..30).map(|_| node()).collect();
    let mut known = Vec::new();
    let mut new = Vec::new();
    for number in 0..WORKFLOWS {
        let (workflow, record) = generate(&mut dice, &principal, &connectors, &shared, number);
        known.push(record);
        new.push(workflow);
    }
    let store = &store;
    let add = |(workflow, record): (NewWorkflow, Known)| async move {
        let (id, definition) = (workflow.id, workflow.definition.clone());
        store
            .create_workflow(workflow, record.created_at)
            .await
            .expect("a workflow");
        if let Some(at) = record.updated_at {
            let updated = store
                .update_workflow(principal.workspace, id, definition, None, at)
                .await;
            updated.expect("an update").expect("the workflow");
        }
        if record.deleted {
            let at = record.created_at + SECOND;
            store
                .delete_workflow(principal.workspace, id, at)
                .await
                .expect("a deletion");
        }
    };
    let pairs: Vec<_> = new.into_iter().zip(known.clone()).collect();
    futures_util::stream::iter(pairs.into_iter().map(add))
        .buffer_unordered(256)
        .collect::<Vec<_>>()
        .await;
    store.close().await;
    let texts = |ids: &[ConnectorId]| ids.iter().map(ToString::to_string).collect();
    World {
        known,
        sources: texts(&connectors[0]),
        destinations: texts(&connectors[1]),
        nodes: shared,
    }
}

fn node() -> NodeSpec {
    let (_, mut specs) = parse(&json!([partition_node()]), &[]).expect("a chain");
    specs.remove(0)
}

fn generate(
    dice: &mut Dice,
    principal: &Principal,
    connectors: &[Vec<ConnectorId>],
    shared: &[NodeSpec],
    number: usize,
) -> (NewWorkflow, Known) {
    let id = WorkflowId::new();
    let name = match dice.roll(3) {
        0 => dice.pick(&WORDS).to_string(),
        1 => format!("{} {}", dice.pick(&WORDS), dice.pick(&WORDS)),
        _ => format!("{} {}", dice.pick(&WORDS), number % 100),
    };
    let source = (dice.roll(4) > 0).then(|| dice.roll(20));
    let destination = (dice.roll(4) > 0).then(|| dice.roll(20));
    let nodes = vec![if dice.roll(2) == 0 {
        dice.pick(shared).clone()
    } else {
        node()
    }];
    // Few instants, so that many workflows share one.
    let created_at = START + dice.roll(500) as Micros * 60 * SECOND + dice.roll(3) as Micros * 1_000;
    let updated_at = (dice.roll(3) == 0).then(|| created_at + 1_000_000 * dice.roll(100_000) as Micros);
    let (kind, state) = (*dice.pick(WorkflowType::ALL), *dice.pick(WorkflowState::ALL));
    let known = Known {
        id: id.to_string(),
        name: name.clone(),
        kind,
        state,
        source,
        destination,
        nodes: nodes
            .iter()
            .filter_map(|node| node.id)
            .map(|id| id.to_string())
            .collect(),
        created_at,
        updated_at,
        deleted: dice.roll(10) == 0,
    };
    let definition = WorkflowDefinition {
        name,
        kind,
        sources: source.map(|index| connectors[0][index]).into_iter().collect(),
        destinations: destination.map(|index| connectors[1][index]).into_iter().collect(),
        nodes,
        schedule: None,
        next_fire_at: None,
        state,
        reprocess_all: false,
        delete_removed: false,
    };
    let workflow = NewWorkflow {
        id,
        workspace: principal.workspace,
        key: Some(format!("w-{number}")),
        principal: *principal,
        definition,
    };
    (workflow, known)
}

/// A random query, as parameters.
pub(super) fn query(dice: &mut Dice, world: &World) -> BTreeMap<&'static str, String> {
    let mut query = BTreeMap::new();
    let mut maybe = |name: &'static str, odds: usize, dice: &mut Dice, value: &dyn Fn(&mut Dice) -> String| {
        if dice.roll(odds) == 0 {
            query.insert(name, value(dice));
        }
    };
    let instant = |dice: &mut Dice| iso8601(START + dice.roll(520) as Micros * 60 * SECOND);
    maybe("dag_node_configuration_id", 8, dice, &|dice| {
        dice.pick(&world.nodes).id.expect("an id").to_string()
    });
    maybe("source_id", 4, dice, &|dice| {
        let index = dice.roll(20);
        if dice.roll(2) == 0 {
            world.sources[index].clone()
        } else {
            format!("source-{index}")
        }
    });
    maybe("destination_id", 4, dice, &|dice| {
        let index = dice.roll(20);
        if dice.roll(2) == 0 {
            world.destinations[index].clone()
        } else {
            format!("destination-{index}")
        }
    });
    maybe("status", 3, dice, &|dice| {
        dice.pick(&["active", "inactive"]).to_string()
    });
    maybe("created_since", 3, dice, &instant);
    maybe("created_before", 3, dice, &instant);
    maybe("name", 3, dice, &|dice| match dice.roll(4) {
        0 => dice
            .pick(&[
                "%",
                "_",
                "i",
                "voice",
                "ASSE",
                "aße",
                "rger 1",
                " ",
                "nothing has this",
                "語",
                "X",
            ])
            .to_string(),
        1 => dice.pick(&WORDS).to_uppercase(),
        2 => dice.pick(&WORDS).to_lowercase(),
        _ => dice.pick(&WORDS).to_string(),
    });
    maybe("show_only_soft_deleted", 4, dice, &|dice| {
        dice.pick(&["true", "false", "1", "False"]).to_string()
    });
    maybe("show_recommender_workflows", 6, dice, &|dice| {
        dice.pick(&["true", "false"]).to_string()
    });
    maybe("sort_by", 2, dice, &|dice| {
        dice.pick(&["id", "name", "status", "workflow_type", "created_at", "updated_at"])
            .to_string()
    });
    maybe("sort_direction", 2, dice, &|dice| {
        dice.pick(&["asc", "desc"]).to_string()
    });
    maybe("page", 2, dice, &|dice| (1 + dice.roll(4)).to_string());
    maybe("page_size", 2, dice, &|dice| {
        dice.pick(&["1", "7", "100", "1000"]).to_string()
    });
    query
}

/// Lower case character by character, as the interface says.
fn lower(text: &str) -> String {
    text.chars()
        .map(|c| {
            let mut lower = c.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(one), None) => one,
                _ => c,
            }
        })
        .collect()
}

/// What the list should be.
pub(super) fn expected(world: &World, query: &BTreeMap<&str, String>) -> Vec<String> {
    let get = |name: &str| query.get(name).map(String::as_str);
    let index = |ids: &[String], which: &str| {
        let by_key = || which.rsplit('-').next().and_then(|number| number.parse().ok());
        ids.iter().position(|id| id == which).or_else(by_key)
    };
    let deleted = matches!(get("show_only_soft_deleted"), Some("true" | "1"));
    let mut found: Vec<&Known> = world.known.iter().filter(|w| w.deleted == deleted).collect();
    found.retain(|w| {
        get("dag_node_configuration_id").is_none_or(|id| w.nodes.iter().any(|node| node == id))
            && get("source_id").is_none_or(|which| w.source.is_some() && w.source == index(&world.sources, which))
            && get("destination_id")
                .is_none_or(|which| w.destination.is_some() && w.destination == index(&world.destinations, which))
            && get("status").is_none_or(|word| w.state.as_str() == word)
            && get("created_since").is_none_or(|at| iso8601(w.created_at).as_str() >= at)
            && get("created_before").is_none_or(|at| iso8601(w.created_at).as_str() <= at)
            && get("name").is_none_or(|part| lower(&w.name).contains(&lower(part)))
    });
    let key = |w: &Known| match get("sort_by").unwrap_or("id") {
        "name" => w.name.clone(),
        "status" => w.state.to_string(),
        "workflow_type" => w.kind.to_string(),
        "created_at" => iso8601(w.created_at),
        "updated_at" => iso8601(w.updated_at.unwrap_or(w.created_at)),
        _ => w.id.clone(),
    };
    found.sort_by(|a, b| {
        let order = key(a).cmp(&key(b));
        let order = if get("sort_direction") == Some("desc") {
            order.reverse()
        } else {
            order
        };
        order.then_with(|| a.id.cmp(&b.id))
    });
    let number = |name: &str, default: usize| get(name).map_or(default, |text| text.parse().expect("a number"));
    let size = number("page_size", 20);
    let page = found.into_iter().skip((number("page", 1) - 1) * size).take(size);
    page.map(|w| w.id.clone()).collect()
}
