//! Lists of workflows, compared with a plain vector that is filtered and sorted.

use docmill_model::chain::NodeSpec;
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, NodeId, WorkflowId};
use docmill_model::time::SECOND;
use docmill_model::workflow::{WorkflowState, WorkflowType};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::World;
use super::flows::definition;
use super::world::NOW;
use crate::{Workflow, WorkflowDefinition, WorkflowFilter, WorkflowOrder};

/// Random filters that are tried.
const CASES: usize = 4_000;
const WORKFLOWS: usize = 300;

const ORDERS: [WorkflowOrder; 6] = [
    WorkflowOrder::Id,
    WorkflowOrder::Name,
    WorkflowOrder::State,
    WorkflowOrder::Kind,
    WorkflowOrder::CreatedAt,
    WorkflowOrder::UpdatedAt,
];

/// Few, so that there are ties.
const NAMES: [&str; 10] = [
    "Invoices",
    "invoices ",
    "INVOICE 100%",
    "Ärzte",
    "ärzte\"s",
    "a_b",
    "日本語の文書",
    "x",
    "",
    "Weekly OR daily*",
];

/// Parts of names, and what is special to a search.
const TEXTS: [&str; 16] = [
    "inv",
    "VOICE",
    "ä",
    "ÄRZ",
    "ärzte\"",
    "_",
    "%",
    "100%",
    "本語の",
    "日",
    "",
    "or",
    "OR daily*",
    "zzz",
    "\"",
    "a\0b",
];

fn runner() -> TestRunner {
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    TestRunner::new_with_rng(Config::default(), seed)
}

fn draw<T>(runner: &mut TestRunner, strategy: impl Strategy<Value = T>) -> T {
    strategy.new_tree(runner).unwrap().current()
}

/// What workflows are made of, and what filters ask for.
struct Parts {
    sources: Vec<ConnectorId>,
    destinations: Vec<ConnectorId>,
    nodes: Vec<NodeId>,
}

fn node(id: NodeId) -> NodeSpec {
    NodeSpec {
        id: Some(id),
        name: "n".into(),
        kind: "partition".into(),
        subtype: "unstructured_api".into(),
        settings: Default::default(),
    }
}

fn some_of<T: Clone + std::fmt::Debug + 'static>(all: &[T]) -> impl Strategy<Value = Vec<T>> + use<T> {
    prop::sample::subsequence(all.to_vec(), 0..=all.len().min(2))
}

fn random_definition(runner: &mut TestRunner, parts: &Parts) -> WorkflowDefinition {
    WorkflowDefinition {
        kind: draw(runner, prop::sample::select(WorkflowType::ALL.to_vec())),
        sources: draw(runner, some_of(&parts.sources)),
        destinations: draw(runner, some_of(&parts.destinations)),
        nodes: draw(runner, some_of(&parts.nodes)).into_iter().map(node).collect(),
        state: draw(runner, prop::sample::select(WorkflowState::ALL.to_vec())),
        ..definition(draw(runner, prop::sample::select(NAMES.to_vec())))
    }
}

/// Workflows with ties in every column; some changed, some deleted.
async fn fill(w: &World, runner: &mut TestRunner, parts: &Parts) -> Vec<Workflow> {
    let mut all = Vec::new();
    for _ in 0..WORKFLOWS {
        let now = NOW + draw(runner, 0..20i64) * SECOND;
        let new = w.new_workflow(random_definition(runner, parts));
        let mut workflow = w.store.create_workflow(new, now).await.unwrap();
        if draw(runner, 0..4) == 0 {
            let changed = random_definition(runner, parts);
            let change = w
                .store
                .update_workflow(w.workspace, workflow.id, changed, None, now + 5 * SECOND);
            workflow = change.await.unwrap().unwrap();
        }
        if draw(runner, 0..6) == 0 {
            let deleted = w
                .store
                .delete_workflow(w.workspace, workflow.id, now + 9 * SECOND)
                .await;
            assert!(deleted.unwrap().is_some());
            workflow.deleted_at = Some(now + 9 * SECOND);
        }
        all.push(workflow);
    }
    all
}

fn random_filter(runner: &mut TestRunner, parts: &Parts) -> WorkflowFilter {
    let rarely = 0.25;
    let at = || (-1..21i64).prop_map(|seconds| NOW + seconds * SECOND);
    let texts = prop::sample::select(TEXTS.to_vec()).prop_map(str::to_owned);
    let states = prop::sample::select(WorkflowState::ALL.to_vec());
    let select = |ids: &[ConnectorId]| prop::sample::select(ids.to_vec());
    WorkflowFilter {
        node: draw(
            runner,
            prop::option::weighted(rarely, prop::sample::select(parts.nodes.clone())),
        ),
        source: draw(runner, prop::option::weighted(rarely, select(&parts.sources))),
        destination: draw(runner, prop::option::weighted(rarely, select(&parts.destinations))),
        state: draw(runner, prop::option::weighted(rarely, states)),
        created_since: draw(runner, prop::option::weighted(rarely, at())),
        created_before: draw(runner, prop::option::weighted(rarely, at())),
        name: draw(runner, prop::option::weighted(rarely, texts)),
        deleted: draw(runner, prop::bool::weighted(0.2)),
        order: draw(runner, prop::sample::select(ORDERS.to_vec())),
        descending: draw(runner, any::<bool>()),
        offset: draw(runner, prop_oneof![Just(0), 0..60u64, Just(10_000), Just(u64::MAX)]),
        limit: draw(runner, prop_oneof![0..4u32, Just(20), Just(1_000)]),
    }
}

fn matches(workflow: &Workflow, filter: &WorkflowFilter) -> bool {
    let of = &workflow.definition;
    let lower = |text: &str| text.to_lowercase();
    filter.deleted == workflow.deleted_at.is_some()
        && filter
            .node
            .is_none_or(|id| of.nodes.iter().any(|node| node.id == Some(id)))
        && filter.source.is_none_or(|id| of.sources.contains(&id))
        && filter.destination.is_none_or(|id| of.destinations.contains(&id))
        && filter.state.is_none_or(|state| of.state == state)
        && filter.created_since.is_none_or(|at| workflow.created_at >= at)
        && filter.created_before.is_none_or(|at| workflow.created_at <= at)
        && filter
            .name
            .as_ref()
            .is_none_or(|text| lower(&of.name).contains(&lower(text)))
}

/// The ids the vector gives for a filter.
fn expected(all: &[Workflow], filter: &WorkflowFilter) -> Vec<WorkflowId> {
    let mut found: Vec<_> = all.iter().filter(|workflow| matches(workflow, filter)).collect();
    found.sort_by(|a, b| {
        let (x, y) = (&a.definition, &b.definition);
        let changed = |workflow: &Workflow| workflow.updated_at.unwrap_or(workflow.created_at);
        let order = match filter.order {
            WorkflowOrder::Id => a.id.cmp(&b.id),
            WorkflowOrder::Name => x.name.cmp(&y.name),
            WorkflowOrder::State => x.state.as_str().cmp(y.state.as_str()),
            WorkflowOrder::Kind => x.kind.as_str().cmp(y.kind.as_str()),
            WorkflowOrder::CreatedAt => a.created_at.cmp(&b.created_at),
            WorkflowOrder::UpdatedAt => changed(a).cmp(&changed(b)),
        };
        let order = if filter.descending { order.reverse() } else { order };
        order.then(a.id.cmp(&b.id))
    });
    let offset = usize::try_from(filter.offset).unwrap_or(usize::MAX);
    let page = found.iter().skip(offset).take(filter.limit as usize);
    page.map(|workflow| workflow.id).collect()
}

pub(crate) async fn any_filter_matches_the_model(w: World) {
    let mut runner = runner();
    let mut parts = Parts {
        sources: Vec::new(),
        destinations: Vec::new(),
        nodes: (0..4).map(|_| NodeId::new()).collect(),
    };
    for _ in 0..4 {
        parts.sources.push(w.connector(ConnectorRole::Source, "s").await);
        parts
            .destinations
            .push(w.connector(ConnectorRole::Destination, "d").await);
    }
    let all = fill(&w, &mut runner, &parts).await;
    let mut filled = 0;
    for _ in 0..CASES {
        let filter = random_filter(&mut runner, &parts);
        let found = w.store.workflows(w.workspace, &filter).await.unwrap();
        let found: Vec<_> = found.iter().map(|workflow| workflow.id).collect();
        assert_eq!(found, expected(&all, &filter), "{filter:?}");
        filled += usize::from(!found.is_empty());
    }
    assert!(
        filled > CASES / 5,
        "only {filled} of {CASES} pages had something in them"
    );
}

pub(crate) async fn pages_join_to_the_whole(w: World) {
    let mut runner = runner();
    let parts = Parts {
        sources: vec![w.source().await],
        destinations: vec![w.destination().await],
        nodes: vec![NodeId::new()],
    };
    let all = fill(&w, &mut runner, &parts).await;
    for order in ORDERS {
        for descending in [false, true] {
            let whole = WorkflowFilter {
                order,
                descending,
                limit: u32::MAX,
                ..WorkflowFilter::default()
            };
            let mut joined = Vec::new();
            for number in 0.. {
                let page = WorkflowFilter {
                    offset: number * 7,
                    limit: 7,
                    ..whole.clone()
                };
                let found = w.store.workflows(w.workspace, &page).await.unwrap();
                if found.is_empty() {
                    break;
                }
                joined.extend(found.iter().map(|workflow| workflow.id));
            }
            assert_eq!(joined, expected(&all, &whole), "{order:?} {descending}");
        }
    }
}
