//! Workflows that run by the clock.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use docmill_model::job::{JobStatus, JobType};
use docmill_model::time::{Micros, SECOND};
use docmill_model::workflow::WorkflowState;
use docmill_store::{Job, JobFilter, Store, Workflow};

use super::world::{World, until};
use crate::firing::fire_due;
use crate::schedule::Timetable;
use crate::{next_runs, now};

const DAY: Micros = 86_400 * SECOND;

async fn runs(world: &World, workflow: &Workflow) -> Vec<Job> {
    let filter = JobFilter {
        workflow: Some(workflow.id),
        ..JobFilter::default()
    };
    world.store.jobs(world.principal.workspace, &filter).await.unwrap()
}

async fn next_fire(world: &World, workflow: &Workflow) -> Option<Micros> {
    let id = workflow.id.to_string();
    let workflow = world
        .store
        .workflow(world.principal.workspace, &id)
        .await
        .unwrap()
        .unwrap();
    workflow.definition.next_fire_at
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_run_once_and_no_instant_twice() {
    let world = World::new().await;
    let workflow = world.scheduled("*/10 * * * *").await;
    let first = next_fire(&world, &workflow).await.unwrap();
    let mut aside = HashMap::new();
    fire_due(&world.engine, &mut aside, first - 1).await.unwrap();
    assert!(runs(&world, &workflow).await.is_empty());

    // The server was down for three days and some.
    let later = first + 3 * DAY + 5 * SECOND;
    fire_due(&world.engine, &mut aside, later).await.unwrap();
    fire_due(&world.engine, &mut aside, later).await.unwrap();
    let started = runs(&world, &workflow).await;
    assert_eq!((started.len(), started[0].job_type), (1, JobType::Scheduled));
    let timetable = Timetable::of(workflow.definition.schedule.as_ref().unwrap()).unwrap();
    assert_eq!(next_fire(&world, &workflow).await, timetable.next_after(later));

    // The clock is set back and comes to the same instants again.
    fire_due(&world.engine, &mut HashMap::new(), first).await.unwrap();
    // While the run has not ended, the next instant is passed over.
    fire_due(&world.engine, &mut HashMap::new(), later + 600 * SECOND)
        .await
        .unwrap();
    assert_eq!(runs(&world, &workflow).await.len(), 1);
    assert!(next_fire(&world, &workflow).await.unwrap() > later + 600 * SECOND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_can_not_run_keeps_no_other_from_running() {
    let world = World::new().await;
    let mut bad = Vec::new();
    for _ in 0..3 {
        let workflow = world
            .workflow(|definition| {
                definition.schedule =
                    Some(crate::schedule::parse("daily", None, docmill_model::workflow::Overlap::Skip).unwrap());
                definition.nodes[0].subtype = "of_another_time".into();
            })
            .await;
        bad.push(workflow);
    }
    let good = world.scheduled("daily").await;
    let at = next_fire(&world, &good).await.unwrap();
    fire_due(&world.engine, &mut HashMap::new(), at).await.unwrap();
    assert_eq!(runs(&world, &good).await.len(), 1);
    for workflow in &bad {
        assert!(runs(&world, workflow).await.is_empty());
        assert_eq!(next_fire(&world, workflow).await, Some(at + DAY));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_runs_a_workflow_that_is_due() {
    let world = World::new().await;
    world.source.put("a", "1", Some("1"));
    let workflow = world.scheduled("daily").await;
    let mut due = workflow.definition.clone();
    due.next_fire_at = Some(now() - 2 * DAY);
    let updated = world
        .store
        .update_workflow(world.principal.workspace, workflow.id, due, None, now())
        .await;
    updated.unwrap().unwrap();
    world.engine.start().await.unwrap();
    let job = until("the run", async || runs(&world, &workflow).await.pop()).await;
    assert_eq!(world.end_of(job.id).await.status, JobStatus::Completed);
    assert_eq!(world.destination.puts.load(Ordering::SeqCst), 1);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changing_a_workflow_moves_its_next_run_only_with_its_schedule() {
    let world = World::new().await;
    let workflow = world.scheduled("daily").await;
    let next = workflow.definition.next_fire_at;
    assert_eq!(next_runs(&workflow.definition, 5).first().copied(), next);
    let change = async |old: &Workflow, change: &dyn Fn(&mut docmill_store::WorkflowDefinition)| {
        let mut definition = old.definition.clone();
        change(&mut definition);
        let updated = world
            .engine
            .update_workflow(world.principal.workspace, old, definition)
            .await;
        updated.unwrap().unwrap()
    };
    let mut workflow = workflow;
    // Due, and renamed before it is run: it is still due.
    workflow.definition.next_fire_at = Some(now() - SECOND);
    let renamed = change(&workflow, &|definition| definition.name = "other".into()).await;
    assert_eq!(renamed.definition.next_fire_at, workflow.definition.next_fire_at);
    let inactive = change(&renamed, &|definition| definition.state = WorkflowState::Inactive).await;
    assert_eq!(inactive.definition.next_fire_at, None);
    assert!(next_runs(&inactive.definition, 5).is_empty());
    let active = change(&inactive, &|definition| definition.state = WorkflowState::Active).await;
    assert_eq!(active.definition.next_fire_at, next);
}
