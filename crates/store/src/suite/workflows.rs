//! Workflows: creation, change, deletion, and runs that may not be.

use docmill_model::chain::NodeSpec;
use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, NodeId, WorkflowId};
use docmill_model::job::{JobStatus, TaskState};
use docmill_model::time::SECOND;
use docmill_model::workflow::{Overlap, WorkflowState, WorkflowType};

use super::World;
use super::flows::{definition, objects, scheduled};
use super::world::{NOW, at_once};
use crate::{NewWorkflow, StoreError, Workflow, WorkflowDefinition, WorkflowFilter};

impl World {
    async fn read(&self, which: &str) -> Option<Workflow> {
        self.store.workflow(self.workspace, which).await.unwrap()
    }
}

pub(crate) async fn a_workflow_reads_back_by_id_and_slug(w: World) {
    let node = NodeSpec {
        id: Some(NodeId::new()),
        name: "p".into(),
        kind: "partition".into(),
        subtype: "unstructured_api".into(),
        settings: Default::default(),
    };
    let new = NewWorkflow {
        key: Some("nightly".into()),
        ..w.new_workflow(WorkflowDefinition {
            kind: WorkflowType::Advanced,
            sources: vec![w.source().await, w.source().await],
            destinations: vec![w.destination().await],
            nodes: vec![node],
            state: WorkflowState::Inactive,
            reprocess_all: true,
            delete_removed: true,
            ..scheduled(Overlap::Allow, NOW + SECOND)
        })
    };
    let created = w.store.create_workflow(new.clone(), NOW).await.unwrap();
    assert_eq!((created.id, created.key.as_str()), (new.id, "nightly"));
    assert_eq!(
        (created.created_at, created.updated_at, created.deleted_at),
        (NOW, None, None)
    );
    assert_eq!(format!("{:?}", created.definition), format!("{:?}", new.definition));
    for which in [created.id.to_string().as_str(), "nightly"] {
        assert_eq!(format!("{:?}", w.read(which).await.unwrap()), format!("{created:?}"));
    }
    assert!(w.read("scheduled").await.is_none(), "a name is no slug");
    assert!(w.read(&WorkflowId::new().to_string()).await.is_none());
}

pub(crate) async fn slugs_are_unique_among_live_workflows(w: World) {
    let asked = || NewWorkflow {
        key: Some("flow".into()),
        ..w.new_workflow(definition("Flow"))
    };
    let first = w.store.create_workflow(asked(), NOW).await.unwrap();
    let again = w.store.create_workflow(asked(), NOW).await;
    assert!(matches!(again, Err(StoreError::KeyTaken(key)) if key == "flow"));
    assert_eq!(w.workflow(definition("Flow")).await.key, "flow-2");
    assert_eq!(w.workflow(definition("Flow")).await.key, "flow-3");
    w.store
        .delete_workflow(w.workspace, first.id, NOW)
        .await
        .unwrap()
        .unwrap();
    assert!(w.read("flow").await.is_none());
    let second = w.store.create_workflow(asked(), NOW).await.unwrap();
    assert_eq!(w.read("flow").await.unwrap().id, second.id);
    assert_eq!(w.workflow(definition("???")).await.key, "workflow");
}

pub(crate) async fn connectors_of_a_workflow_must_exist_in_their_role(w: World) {
    let (source, destination) = (w.source().await, w.destination().await);
    let with = |sources: &[ConnectorId], destinations: &[ConnectorId]| WorkflowDefinition {
        sources: sources.to_vec(),
        destinations: destinations.to_vec(),
        ..definition("x")
    };
    let nobody = ConnectorId::new();
    let bad = [
        (with(&[destination], &[]), destination),
        (with(&[source], &[source]), source),
        (with(&[nobody], &[]), nobody),
    ];
    let good = w.workflow(with(&[source, source], &[destination])).await;
    for (definition, missing) in bad {
        let created = w.store.create_workflow(w.new_workflow(definition.clone()), NOW).await;
        assert!(matches!(created, Err(StoreError::ConnectorGone(id)) if id == missing));
        let changed = w
            .store
            .update_workflow(w.workspace, good.id, definition, None, NOW)
            .await;
        assert!(matches!(changed, Err(StoreError::ConnectorGone(id)) if id == missing));
    }
    assert_eq!(w.read("x").await.unwrap().definition.sources, [source, source]);
    assert!(w.read("x-2").await.is_none(), "what is refused leaves nothing");
}

pub(crate) async fn a_change_replaces_the_definition(w: World) {
    let (source, destination) = (w.source().await, w.destination().await);
    let flow = w.workflow(definition("before")).await;
    let after = WorkflowDefinition {
        sources: vec![source],
        destinations: vec![destination],
        state: WorkflowState::Inactive,
        kind: WorkflowType::Basic,
        ..scheduled(Overlap::Skip, NOW + SECOND)
    };
    let change = w
        .store
        .update_workflow(w.workspace, flow.id, after.clone(), None, NOW + SECOND);
    let changed = change.await.unwrap().unwrap();
    assert_eq!(format!("{:?}", changed.definition), format!("{after:?}"));
    assert_eq!(
        (changed.key.as_str(), changed.created_at),
        ("before", NOW),
        "the slug stays"
    );
    assert_eq!(changed.updated_at, Some(NOW + SECOND));
    assert_eq!(format!("{:?}", w.read("before").await.unwrap()), format!("{changed:?}"));
    let named = |name: &str| WorkflowFilter {
        name: Some(name.into()),
        limit: 10,
        ..WorkflowFilter::default()
    };
    assert!(
        w.store
            .workflows(w.workspace, &named("before"))
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        w.store.workflows(w.workspace, &named("schedul")).await.unwrap().len(),
        1
    );
    let unknown = w
        .store
        .update_workflow(w.workspace, WorkflowId::new(), definition("x"), None, NOW);
    assert!(unknown.await.unwrap().is_none());
}

pub(crate) async fn a_change_of_something_else_than_was_read_is_refused(w: World) {
    let flow = w.workflow(definition("x")).await;
    let change = async |name: &str, seen, now| {
        let done = w
            .store
            .update_workflow(w.workspace, flow.id, definition(name), seen, now);
        done.await.map(|workflow| workflow.unwrap().updated_at)
    };
    // The clock stands still, and goes back: each change is told from the one before all the same.
    let first = change("a", None, NOW).await.unwrap();
    assert!(matches!(change("b", None, NOW).await, Err(StoreError::Conflict)));
    let second = change("c", first, NOW).await.unwrap();
    let third = change("d", second, NOW - SECOND).await.unwrap();
    assert!(first < second && second < third);
    assert!(matches!(change("e", first, NOW).await, Err(StoreError::Conflict)));
    assert_eq!(w.read("x").await.unwrap().definition.name, "d");
}

pub(crate) async fn of_changes_at_once_one_wins(w: World) {
    let flow = w.workflow(definition("x")).await;
    let results = at_once(8, |n| {
        let (store, workspace, id) = (w.store.clone(), w.workspace, flow.id);
        async move {
            store
                .update_workflow(workspace, id, definition(&n.to_string()), None, NOW)
                .await
        }
    });
    let results = results.await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Ok(Some(_)) | Err(StoreError::Conflict)))
    );
}

pub(crate) async fn a_deleted_workflow_is_gone_but_listed_as_deleted(w: World) {
    let flow = w.workflow(scheduled(Overlap::Skip, NOW)).await;
    let delete = async || {
        w.store
            .delete_workflow(w.workspace, flow.id, NOW + SECOND)
            .await
            .unwrap()
    };
    assert_eq!(delete().await, Some(vec![]));
    assert_eq!(delete().await, None);
    assert!(w.read("scheduled").await.is_none());
    assert!(w.read(&flow.id.to_string()).await.is_none());
    let change = w
        .store
        .update_workflow(w.workspace, flow.id, definition("x"), None, NOW);
    assert!(change.await.unwrap().is_none());
    assert_eq!(w.store.next_due().await.unwrap(), None);
    for (deleted, count) in [(false, 0), (true, 1)] {
        let filter = WorkflowFilter {
            deleted,
            limit: 10,
            ..WorkflowFilter::default()
        };
        let found = w.store.workflows(w.workspace, &filter).await.unwrap();
        assert_eq!(found.len(), count);
        assert!(found.iter().all(|workflow| workflow.deleted_at == Some(NOW + SECOND)));
    }
}

pub(crate) async fn deleting_a_workflow_stops_its_jobs(w: World) {
    let slots = crate::sqlite::Slots {
        local_jobs: 5,
        workflow_jobs: 2,
    };
    let store = w.backend.open(slots).await;
    let w = World { store, ..w };
    let (flow, _) = w.workflow_with_source().await;
    let other = w.workflow(definition("other")).await;
    let listed = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a", "b"])).await;
    let mut uploaded = w.new_run(&flow);
    uploaded.run.as_mut().unwrap().sources.clear();
    uploaded.files = w.new_job(2).files;
    let uploaded = w.add(uploaded).await;
    let mut waiting = w.new_run(&flow);
    waiting.run.as_mut().unwrap().sources.clear();
    waiting.files = w.new_job(1).files;
    let waiting = w.add(waiting).await;
    let next = w.run(&other).await;
    let claim = w.claim_one().await;
    assert_eq!(w.status(next).await, JobStatus::Scheduled);
    let stopped = w.store.delete_workflow(w.workspace, flow.id, NOW).await.unwrap();
    assert_eq!(stopped, Some(vec![listed, uploaded, waiting]));
    assert_eq!(w.statuses(&[listed, uploaded, waiting]).await, [JobStatus::Stopped; 3]);
    assert_eq!(w.job(listed).await.message.as_deref(), Some("its workflow was deleted"));
    assert!(w.states(listed).await.iter().all(|state| *state == TaskState::Stopped));
    assert!(w.states(waiting).await.iter().all(|state| *state == TaskState::Stopped));
    assert!(w.status(next).await != JobStatus::Scheduled, "its slot is free");
    assert!(matches!(
        w.store.backlog(listing.lease).await,
        Err(StoreError::LeaseLost)
    ));
    let late = w.store.finish(claim.lease, super::flows::processed(&claim), NOW).await;
    assert!(matches!(late, Err(StoreError::LeaseLost)));
    assert!(w.claim_listings(9).await.is_empty());
}

pub(crate) async fn only_a_live_active_workflow_runs(w: World) {
    let flow = w.workflow(definition("x")).await;
    w.run(&flow).await;
    let inactive = WorkflowDefinition {
        state: WorkflowState::Inactive,
        ..definition("x")
    };
    let change = w.store.update_workflow(w.workspace, flow.id, inactive, None, NOW);
    change.await.unwrap().unwrap();
    let run = w.store.create_job(w.new_run(&flow), NOW).await;
    assert!(matches!(run, Err(StoreError::WorkflowInactive(id)) if id == flow.id));
    w.store.delete_workflow(w.workspace, flow.id, NOW).await.unwrap();
    let run = w.store.create_job(w.new_run(&flow), NOW).await;
    assert!(matches!(run, Err(StoreError::WorkflowGone(id)) if id == flow.id));
    assert_eq!(w.jobs().await.len(), 1, "what is refused leaves nothing");
}

pub(crate) async fn one_run_with_sources_at_a_time(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let first = w.run(&flow).await;
    let second = w.store.create_job(w.new_run(&flow), NOW).await;
    assert!(matches!(second, Err(StoreError::RunActive(id)) if id == first));
    let mut uploaded = w.new_run(&flow);
    uploaded.run.as_mut().unwrap().sources.clear();
    w.add(uploaded).await;
    let (other, _) = w.workflow_with_source().await;
    w.run(&other).await;
    w.store.stop_job(w.workspace, first, NOW).await.unwrap();
    w.run(&flow).await;
}

pub(crate) async fn another_workspace_has_no_part_in_workflows(w: World) {
    let (flow, source) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let sibling = w.another_workspace("sibling").await;
    let (account, stranger) = w.another_account("stranger").await;
    let store = &w.store;
    for other in [sibling, stranger] {
        for which in [flow.id.to_string(), flow.key.clone()] {
            assert!(store.workflow(other, &which).await.unwrap().is_none());
        }
        let all = [false, true].map(|deleted| WorkflowFilter {
            deleted,
            limit: 10,
            ..WorkflowFilter::default()
        });
        let named = WorkflowFilter {
            name: Some("workflow".into()),
            source: Some(source),
            limit: 10,
            ..WorkflowFilter::default()
        };
        for filter in all.iter().chain([&named]) {
            assert!(store.workflows(other, filter).await.unwrap().is_empty());
        }
        let change = store.update_workflow(other, flow.id, definition("x"), None, NOW).await;
        assert!(change.unwrap().is_none());
        assert!(store.delete_workflow(other, flow.id, NOW).await.unwrap().is_none());
        let which = source.to_string();
        assert!(
            store
                .connector(other, ConnectorRole::Source, &which)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            store
                .connectors(other, ConnectorRole::Source, None)
                .await
                .unwrap()
                .is_empty()
        );
        let gone = store.delete_connector(other, ConnectorRole::Source, source).await;
        assert_eq!(gone.unwrap(), crate::ConnectorDeletion::NotFound);
        let changed = store.update_connector(other, ConnectorRole::Source, source, serde_json::Value::Null, NOW);
        assert!(changed.await.unwrap().is_none());
        store
            .create_check(source, docmill_model::ids::CheckId::new(), NOW)
            .await
            .unwrap();
        assert!(store.latest_check(other, source).await.unwrap().is_none());
        let mut foreign = w.new_workflow(WorkflowDefinition {
            sources: vec![source],
            ..definition("x")
        });
        foreign.workspace = other;
        let created = store.create_workflow(foreign, NOW).await;
        assert!(matches!(created, Err(StoreError::ConnectorGone(_))));
        let mut foreign = w.new_run(&flow);
        (foreign.account, foreign.workspace) = (account, other);
        let run = store.create_job(foreign, NOW).await;
        assert!(matches!(run, Err(StoreError::WorkflowGone(_))));
    }
    assert_eq!(w.status(run).await, JobStatus::InProgress);
    assert_eq!(w.read(&flow.key).await.unwrap().updated_at, None);
}
