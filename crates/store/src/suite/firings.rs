//! Schedules: due workflows, and firing each instant once.

use docmill_model::job::{JobStatus, JobType};
use docmill_model::time::{Micros, SECOND};
use docmill_model::workflow::{Overlap, WorkflowState};

use super::World;
use super::flows::{definition, objects, scheduled};
use super::world::{BOUNDS, NOW, at_once};
use crate::{Firing, ListingOutcome, ScheduledRun, StoreError, Workflow, WorkflowDefinition};

const HOUR: Micros = 3600 * SECOND;

impl World {
    /// A workflow with a source that is due at an instant.
    async fn due_at(&self, overlap: Overlap, at: Micros) -> Workflow {
        let definition = WorkflowDefinition {
            sources: vec![self.source().await],
            ..scheduled(overlap, at)
        };
        self.workflow(definition).await
    }

    /// What fires a workflow, as it was read, at an instant.
    fn firing(&self, workflow: &Workflow, fire_at: Micros) -> ScheduledRun {
        let mut job = self.new_run(workflow);
        job.job_type = JobType::Scheduled;
        ScheduledRun {
            fire_at,
            seen: workflow.updated_at,
            next_fire_at: Some(fire_at + HOUR),
            job,
        }
    }

    async fn fire(&self, workflow: &Workflow, fire_at: Micros) -> Firing {
        let run = self.firing(workflow, fire_at);
        self.store.fire(run, fire_at).await.unwrap()
    }

    /// The workflows due at an instant, by slug.
    async fn due(&self, now: Micros) -> Vec<String> {
        let due = self.store.due_workflows(now, 100).await.unwrap();
        due.into_iter().map(|due| due.workflow.key).collect()
    }
}

pub(crate) async fn due_workflows_are_told_most_overdue_first(w: World) {
    assert_eq!(w.store.next_due().await.unwrap(), None);
    w.workflow(definition("by hand")).await;
    let late = w.due_at(Overlap::Skip, NOW + 5).await;
    let later = w.due_at(Overlap::Skip, NOW + 3).await;
    let inactive = WorkflowDefinition {
        state: WorkflowState::Inactive,
        ..scheduled(Overlap::Skip, NOW)
    };
    w.workflow(inactive).await;
    let gone = w.due_at(Overlap::Skip, NOW).await;
    w.store.delete_workflow(w.workspace, gone.id, NOW).await.unwrap();
    assert_eq!(w.store.next_due().await.unwrap(), Some(NOW + 3));
    assert!(w.due(NOW + 2).await.is_empty());
    assert_eq!(w.due(NOW + 3).await, std::slice::from_ref(&later.key));
    assert_eq!(w.due(NOW + 9).await, [later.key, late.key]);
    let one = w.store.due_workflows(NOW + 9, 1).await.unwrap();
    assert_eq!((one.len(), one[0].workflow.id), (1, later.id));
    assert_eq!(
        (one[0].principal.account, one[0].principal.workspace),
        (w.account, w.workspace)
    );
}

pub(crate) async fn firing_starts_a_run_and_moves_on(w: World) {
    let flow = w.due_at(Overlap::Skip, NOW).await;
    assert_eq!(w.fire(&flow, NOW).await, Firing::Started);
    let jobs = w.jobs().await;
    assert_eq!(
        (jobs.len(), jobs[0].job_type, jobs[0].status),
        (1, JobType::Scheduled, JobStatus::InProgress)
    );
    assert_eq!(jobs[0].workflow, flow.id);
    assert_eq!(w.store.next_due().await.unwrap(), Some(NOW + HOUR));
    let read = w.store.workflow(w.workspace, &flow.key).await.unwrap().unwrap();
    assert_eq!(read.updated_at, None, "no change by a client");
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a"])).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    w.run_all().await;
    assert_eq!(w.fire(&flow, NOW + HOUR).await, Firing::Started);
}

pub(crate) async fn an_instant_fires_once(mut w: World) {
    let flow = w.due_at(Overlap::Allow, NOW).await;
    assert_eq!(w.fire(&flow, NOW).await, Firing::Started);
    assert_eq!(w.fire(&flow, NOW).await, Firing::Stale);
    w.store = w.backend.open_after_crash(BOUNDS).await;
    assert_eq!(w.fire(&flow, NOW).await, Firing::Stale);
    // Even when the clock was set back and the workflow is due at that instant again.
    let back = w
        .store
        .update_workflow(w.workspace, flow.id, flow.definition.clone(), None, NOW);
    let back = back.await.unwrap().unwrap();
    assert_eq!(w.store.next_due().await.unwrap(), Some(NOW));
    assert_eq!(w.fire(&back, NOW).await, Firing::Stale);
    assert_eq!(
        w.store.next_due().await.unwrap(),
        Some(NOW + HOUR),
        "and is due no more"
    );
    assert_eq!(w.jobs().await.len(), 1);
}

pub(crate) async fn of_firings_at_once_one_starts(w: World) {
    for overlap in [Overlap::Skip, Overlap::Allow] {
        let flow = w.due_at(overlap, NOW).await;
        let before = w.jobs().await.len();
        let results = at_once(10, |_| {
            let (store, run) = (w.store.clone(), w.firing(&flow, NOW));
            async move { store.fire(run, NOW).await }
        });
        let results: Vec<_> = results.await.into_iter().map(Result::unwrap).collect();
        let started = results.iter().filter(|firing| **firing == Firing::Started).count();
        assert_eq!((started, results.len()), (1, 10));
        assert!(!results.contains(&Firing::Skipped), "{results:?}");
        assert_eq!(w.jobs().await.len(), before + 1);
    }
}

pub(crate) async fn an_overlapping_firing_is_skipped_or_allowed(w: World) {
    let skipping = w.due_at(Overlap::Skip, NOW).await;
    let allowing = w.due_at(Overlap::Allow, NOW).await;
    for flow in [&skipping, &allowing] {
        assert_eq!(w.fire(flow, NOW).await, Firing::Started);
    }
    assert_eq!(w.fire(&skipping, NOW + HOUR).await, Firing::Skipped);
    assert_eq!(
        w.fire(&skipping, NOW + HOUR).await,
        Firing::Stale,
        "recorded all the same"
    );
    assert_eq!(w.fire(&allowing, NOW + HOUR).await, Firing::Started);
    assert_eq!(w.jobs().await.len(), 3);
    let first = w.jobs().await.last().unwrap().id;
    w.store.stop_job(w.workspace, first, NOW).await.unwrap();
    assert_eq!(w.fire(&skipping, NOW + 2 * HOUR).await, Firing::Started);
}

pub(crate) async fn a_run_by_hand_counts_as_the_last_run(w: World) {
    let flow = w.due_at(Overlap::Skip, NOW).await;
    w.run(&flow).await;
    assert_eq!(w.fire(&flow, NOW).await, Firing::Skipped);
    let by_hand = w.store.create_job(w.new_run(&flow), NOW).await;
    assert!(matches!(by_hand, Err(StoreError::RunActive(_))));
}

pub(crate) async fn a_workflow_changed_since_it_was_due_does_not_fire_as_it_was(w: World) {
    let change = async |flow: &Workflow, definition: WorkflowDefinition| {
        let done = w
            .store
            .update_workflow(w.workspace, flow.id, definition, flow.updated_at, NOW);
        done.await.unwrap().unwrap()
    };
    let renamed = w.due_at(Overlap::Skip, NOW).await;
    let stopped = w.due_at(Overlap::Skip, NOW).await;
    let later = w.due_at(Overlap::Skip, NOW).await;
    let unscheduled = w.due_at(Overlap::Skip, NOW).await;
    let gone = w.due_at(Overlap::Skip, NOW).await;
    let now_called = WorkflowDefinition {
        name: "new name".into(),
        ..renamed.definition.clone()
    };
    let fresh = change(&renamed, now_called).await;
    let inactive = WorkflowDefinition {
        state: WorkflowState::Inactive,
        ..stopped.definition.clone()
    };
    let inactive = change(&stopped, inactive).await;
    let postponed = change(&later, scheduled(Overlap::Skip, NOW + 9)).await;
    let by_hand = change(&unscheduled, definition("by hand")).await;
    w.store.delete_workflow(w.workspace, gone.id, NOW).await.unwrap();
    for flow in [
        &renamed,
        &stopped,
        &inactive,
        &later,
        &postponed,
        &unscheduled,
        &by_hand,
        &gone,
    ] {
        assert_eq!(w.fire(flow, NOW).await, Firing::Stale);
    }
    assert!(w.jobs().await.is_empty());
    assert_eq!(
        w.due(NOW).await,
        std::slice::from_ref(&fresh.key),
        "what was only renamed is due still"
    );
    assert_eq!(w.fire(&fresh, NOW).await, Firing::Started);
    assert_eq!(w.jobs().await[0].workflow_name, "new name");
}

pub(crate) async fn missed_instants_are_one_firing(w: World) {
    let flow = w.due_at(Overlap::Skip, NOW).await;
    // Hours later only the latest instant is fired.
    assert_eq!(w.fire(&flow, NOW + 5 * HOUR).await, Firing::Started);
    assert_eq!(w.fire(&flow, NOW + 4 * HOUR).await, Firing::Stale);
    assert_eq!(w.store.next_due().await.unwrap(), Some(NOW + 6 * HOUR));
}

pub(crate) async fn runs_of_allowed_overlap_delete_nothing_the_other_saw(w: World) {
    let definition = WorkflowDefinition {
        sources: vec![w.source().await],
        delete_removed: true,
        ..scheduled(Overlap::Allow, NOW)
    };
    let flow = w.workflow(definition).await;
    w.run_over(&flow, &objects(&["a", "b"])).await;
    for at in [NOW, NOW + HOUR] {
        assert_eq!(w.fire(&flow, at).await, Firing::Started);
    }
    let listings = w.claim_listings(2).await;
    for listing in &listings {
        w.add_objects(listing.lease, &objects(&["a", "b"])).await;
    }
    for listing in &listings {
        w.end_listing(listing.lease, ListingOutcome::Complete).await;
    }
    assert!(w.claim(9).await.is_empty());
    let unchanged: Vec<_> = w.jobs().await.iter().map(|job| job.files_unchanged).collect();
    assert_eq!(unchanged, [2, 2, 0]);
}
