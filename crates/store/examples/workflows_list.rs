//! How long a page of a list of workflows takes, in a workspace with many.
//!
//! `cargo run --release -p docmill-store --example workflows_list -- [WORKFLOWS] [TRIES] [DIR]`
//!
//! Fills a workspace, then reads pages of 20 for each filter and usual combinations, in each order and
//! direction, from the start, and at random depths. Prints the median and the 99th percentile in milliseconds
//! over all orders, and the slowest order.

use std::path::Path;
use std::time::Instant;

use docmill_model::chain::NodeSpec;
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{AccountId, ConnectorId, KeyId, NodeId, WorkflowId, WorkspaceId};
use docmill_model::time::{Micros, SECOND};
use docmill_model::workflow::{WorkflowState, WorkflowType};
use docmill_store::sqlite::{Slots, SqliteStore};
use docmill_store::{
    NewConnector, NewWorkflow, Principal, Result, Store, WorkflowDefinition, WorkflowFilter, WorkflowOrder,
};
use futures_util::future::try_join_all;

const PAGE: u32 = 20;
const START: Micros = 1_700_000_000 * SECOND;

const ORDERS: [WorkflowOrder; 6] = [
    WorkflowOrder::Id,
    WorkflowOrder::Name,
    WorkflowOrder::State,
    WorkflowOrder::Kind,
    WorkflowOrder::CreatedAt,
    WorkflowOrder::UpdatedAt,
];

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }
}

/// What the workflows refer to. Half of them read from the first source; every one has a node of its own,
/// and half have one of a few shared nodes.
struct Parts {
    workspace: WorkspaceId,
    principal: Principal,
    sources: Vec<ConnectorId>,
    destinations: Vec<ConnectorId>,
    shared_nodes: Vec<NodeId>,
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| -> std::result::Result<u64, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (workflows, tries) = (number(100_000)?, number(10)?);
    let directory = match arguments.next() {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir_in(".")?,
    };
    let path = directory.path().join("bench.db");
    let slots = Slots {
        local_jobs: 0,
        workflow_jobs: 0,
    };
    let store = SqliteStore::open(&path, slots).await?;
    let parts = prepare(&store).await?;
    let start = Instant::now();
    let own_nodes = fill(&store, &parts, workflows).await?;
    println!(
        "{workflows} workflows created in {:.1?}; the database has {} MB",
        start.elapsed(),
        megabytes(&path)
    );
    println!("{:44} {:>22} {:>22}", "", "first page", "any page");
    println!(
        "{:44} {:>6} {:>6} {:8} {:>6} {:>6}",
        "filter (ms)", "p50", "p99", "", "p50", "p99"
    );
    for (name, filter) in filters(&parts, &own_nodes, workflows) {
        let rows = count(&store, &parts, &filter).await?;
        let first = measure(&store, &parts, &filter, tries, 1).await?;
        let any = measure(&store, &parts, &filter, tries, rows).await?;
        println!(
            "{:44} {:6.1} {:6.1} {:8} {:6.1} {:6.1}  slowest by {}",
            format!("{name} ({rows} rows)"),
            first.median,
            first.p99,
            "",
            any.median,
            any.p99,
            any.slowest
        );
    }
    store.close().await;
    Ok(())
}

fn megabytes(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    (size(path) + size(&path.with_extension("db-wal"))) / 1_000_000
}

async fn prepare(store: &SqliteStore) -> Result<Parts> {
    let account: AccountId = store.create_account("bench", START).await?;
    let workspace = store.create_workspace(account, "bench", START).await?;
    let mut parts = Parts {
        workspace,
        principal: Principal {
            account,
            workspace,
            key: KeyId::new(),
        },
        sources: Vec::new(),
        destinations: Vec::new(),
        shared_nodes: (0..5).map(|_| NodeId::new()).collect(),
    };
    for role in [ConnectorRole::Source, ConnectorRole::Destination] {
        for n in 0..200 {
            let connector = NewConnector {
                id: ConnectorId::new(),
                workspace,
                role,
                name: format!("connector {n}"),
                key: None,
                kind: "s3".into(),
                config: serde_json::json!({}),
            };
            let id = connector.id;
            store.create_connector(connector, START).await?;
            match role {
                ConnectorRole::Source => parts.sources.push(id),
                ConnectorRole::Destination => parts.destinations.push(id),
            }
        }
    }
    Ok(parts)
}

/// Creates the workflows; each one's own node.
async fn fill(store: &SqliteStore, parts: &Parts, workflows: u64) -> Result<Vec<NodeId>> {
    let mut numbers = Numbers(1);
    let mut own_nodes = Vec::new();
    for first in (0..workflows).step_by(500) {
        let group: Vec<_> = (first..workflows.min(first + 500))
            .map(|n| {
                let (definition, own) = random_definition(&mut numbers, parts, n);
                own_nodes.push(own);
                NewWorkflow {
                    id: WorkflowId::new(),
                    workspace: parts.workspace,
                    key: None,
                    principal: parts.principal,
                    definition,
                }
            })
            .collect();
        let at = |n: usize| START + (first as i64 + n as i64) * SECOND;
        let creations = group
            .into_iter()
            .enumerate()
            .map(|(n, new)| store.create_workflow(new, at(n)));
        try_join_all(creations).await?;
    }
    Ok(own_nodes)
}

fn random_definition(numbers: &mut Numbers, parts: &Parts, n: u64) -> (WorkflowDefinition, NodeId) {
    let own = NodeId::new();
    let mut nodes = vec![node(own)];
    if numbers.below(2) == 0 {
        nodes.extend(numbers.pick(&parts.shared_nodes).map(|id| node(*id)));
    }
    let source = match numbers.below(2) {
        0 => parts.sources.first(),
        _ => numbers.pick(&parts.sources),
    };
    let teams = ["Invoices", "Contracts", "Claims", "Reports", "Ärzte"];
    let definition = WorkflowDefinition {
        name: format!(
            "{} {:06} workflow",
            numbers.pick(&teams).unwrap_or(&"x"),
            numbers.below(1_000_000)
        ),
        kind: *numbers.pick(WorkflowType::ALL).unwrap_or(&WorkflowType::Custom),
        sources: source.copied().into_iter().collect(),
        destinations: numbers.pick(&parts.destinations).copied().into_iter().collect(),
        nodes,
        schedule: None,
        next_fire_at: None,
        state: match n % 50 {
            0 => WorkflowState::Inactive,
            _ => WorkflowState::Active,
        },
        reprocess_all: false,
        delete_removed: false,
    };
    (definition, own)
}

fn node(id: NodeId) -> NodeSpec {
    NodeSpec {
        id: Some(id),
        name: "Partitioner".into(),
        kind: "partition".into(),
        subtype: "unstructured_api".into(),
        settings: Default::default(),
    }
}

fn filters(parts: &Parts, own_nodes: &[NodeId], workflows: u64) -> Vec<(&'static str, WorkflowFilter)> {
    let none = WorkflowFilter::default;
    let (popular, rare) = (parts.sources.first().copied(), parts.sources.last().copied());
    let middle = START + (workflows as i64 / 2) * SECOND;
    let named = |text: &str| Some(text.to_owned());
    let active = Some(WorkflowState::Active);
    vec![
        ("none", none()),
        (
            "deleted",
            WorkflowFilter {
                deleted: true,
                ..none()
            },
        ),
        (
            "state active",
            WorkflowFilter {
                state: active,
                ..none()
            },
        ),
        (
            "state inactive",
            WorkflowFilter {
                state: Some(WorkflowState::Inactive),
                ..none()
            },
        ),
        (
            "created since, newer half",
            WorkflowFilter {
                created_since: Some(middle),
                ..none()
            },
        ),
        (
            "created before, older half",
            WorkflowFilter {
                created_before: Some(middle),
                ..none()
            },
        ),
        (
            "created in 100 s",
            WorkflowFilter {
                created_since: Some(middle),
                created_before: Some(middle + 100 * SECOND),
                ..none()
            },
        ),
        (
            "created never",
            WorkflowFilter {
                created_before: Some(1),
                ..none()
            },
        ),
        (
            "source of half",
            WorkflowFilter {
                source: popular,
                ..none()
            },
        ),
        ("source of few", WorkflowFilter { source: rare, ..none() }),
        (
            "destination",
            WorkflowFilter {
                destination: parts.destinations.first().copied(),
                ..none()
            },
        ),
        (
            "node of one",
            WorkflowFilter {
                node: own_nodes.get(own_nodes.len() / 2).copied(),
                ..none()
            },
        ),
        (
            "node of a tenth",
            WorkflowFilter {
                node: parts.shared_nodes.first().copied(),
                ..none()
            },
        ),
        (
            "node of none",
            WorkflowFilter {
                node: Some(NodeId::new()),
                ..none()
            },
        ),
        (
            "name, all",
            WorkflowFilter {
                name: named("workflow"),
                ..none()
            },
        ),
        (
            "name, a fifth",
            WorkflowFilter {
                name: named("INVOICE"),
                ..none()
            },
        ),
        (
            "name, few",
            WorkflowFilter {
                name: named("s 1234"),
                ..none()
            },
        ),
        (
            "name, none",
            WorkflowFilter {
                name: named("qqqq"),
                ..none()
            },
        ),
        (
            "name, two letters",
            WorkflowFilter {
                name: named("77"),
                ..none()
            },
        ),
        (
            "name, two letters, none",
            WorkflowFilter {
                name: named("qq"),
                ..none()
            },
        ),
        (
            "source of half, state inactive",
            WorkflowFilter {
                source: popular,
                state: Some(WorkflowState::Inactive),
                ..none()
            },
        ),
        (
            "source of half, destination, active",
            WorkflowFilter {
                source: popular,
                destination: parts.destinations.first().copied(),
                state: active,
                ..none()
            },
        ),
        (
            "source of half, node of a tenth",
            WorkflowFilter {
                source: popular,
                node: parts.shared_nodes.first().copied(),
                ..none()
            },
        ),
        (
            "source of half, name, a fifth",
            WorkflowFilter {
                source: popular,
                name: named("invoice"),
                ..none()
            },
        ),
        (
            "name, a fifth, active, newer half",
            WorkflowFilter {
                name: named("invoice"),
                state: active,
                created_since: Some(middle),
                ..none()
            },
        ),
        (
            "name, a fifth, inactive",
            WorkflowFilter {
                name: named("invoice"),
                state: Some(WorkflowState::Inactive),
                ..none()
            },
        ),
    ]
}

async fn count(store: &SqliteStore, parts: &Parts, filter: &WorkflowFilter) -> Result<u64> {
    let all = WorkflowFilter {
        limit: u32::MAX,
        ..filter.clone()
    };
    Ok(store.workflows(parts.workspace, &all).await?.len() as u64)
}

struct Times {
    median: f64,
    p99: f64,
    slowest: String,
}

/// Reads pages that start before `rows`, in each order and direction.
async fn measure(store: &SqliteStore, parts: &Parts, filter: &WorkflowFilter, tries: u64, rows: u64) -> Result<Times> {
    let mut numbers = Numbers(7);
    let mut times = Vec::new();
    for order in ORDERS {
        for descending in [false, true] {
            for _ in 0..tries {
                let page = WorkflowFilter {
                    order,
                    descending,
                    offset: numbers.below(rows),
                    limit: PAGE,
                    ..filter.clone()
                };
                let start = Instant::now();
                store.workflows(parts.workspace, &page).await?;
                let down = if descending { ", down" } else { "" };
                times.push((start.elapsed().as_secs_f64() * 1e3, format!("{order:?}{down}")));
            }
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |part: f64| times.get(((times.len() as f64 * part) as usize).min(times.len().saturating_sub(1)));
    Ok(Times {
        median: at(0.5).map_or(0.0, |time| time.0),
        p99: at(0.99).map_or(0.0, |time| time.0),
        slowest: times.last().map_or_else(String::new, |time| time.1.clone()),
    })
}
