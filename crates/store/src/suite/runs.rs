//! Runs of stored workflows: slots, what is processed again and what is not, retries, deletion.

use docmill_model::job::{JobStatus, TaskState};
use docmill_model::time::SECOND;

use super::World;
use super::flows::{definition, hash, object, objects, processed};
use super::world::{NOW, failed, new_file, output_keys};
use crate::sqlite::Slots;
use crate::{
    Claim, DeleteOutcome, FileAction, FileInput, FileOutcome, ListingOutcome, NewFile, NewJob, StoreError, Workflow,
    WorkflowDefinition,
};

impl World {
    async fn with_slots(mut self, local_jobs: u32, workflow_jobs: u32) -> Self {
        let slots = Slots {
            local_jobs,
            workflow_jobs,
        };
        self.store = self.backend.open(slots).await;
        self
    }

    async fn deleting_workflow(&self) -> Workflow {
        let definition = WorkflowDefinition {
            sources: vec![self.source().await],
            delete_removed: true,
            ..definition("x")
        };
        self.workflow(definition).await
    }

    /// Runs over a source that has these objects; the claims of its files, which then end well.
    async fn claims_of(&self, workflow: &Workflow, found: &[docmill_model::connector::SourceObject]) -> Vec<Claim> {
        self.run(workflow).await;
        let listing = self.claim_listing().await;
        self.add_objects(listing.lease, found).await;
        self.end_listing(listing.lease, ListingOutcome::Complete).await;
        let claims = self.claim(100).await;
        for claim in &claims {
            self.finish(claim.lease, processed(claim)).await;
        }
        claims
    }
}

pub(crate) async fn runs_and_local_jobs_have_slots_of_their_own(w: World) {
    let w = w.with_slots(1, 2).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        let (flow, _) = w.workflow_with_source().await;
        runs.push(w.run(&flow).await);
    }
    let local = [w.create(1).await, w.create(1).await];
    use JobStatus::{Completed, InProgress, Scheduled};
    assert_eq!(w.statuses(&runs).await, [InProgress, InProgress, Scheduled, Scheduled]);
    assert_eq!(w.statuses(&local).await, [InProgress, Scheduled]);
    assert_eq!(w.claim_listings(9).await.len(), 2, "waiting runs are not listed");
    w.run_all().await;
    assert_eq!(w.statuses(&local).await, [Completed, Completed]);
    assert_eq!(w.status(runs[2]).await, Scheduled);
    w.store.stop_job(w.workspace, runs[1], NOW).await.unwrap();
    assert_eq!(w.statuses(&runs[2..]).await, [InProgress, Scheduled]);
    let next = w.claim_listing().await;
    assert_eq!(next.lease.job(), runs[2]);
    w.end_listing(next.lease, ListingOutcome::Complete).await;
    assert_eq!(w.statuses(&runs[2..]).await, [Completed, InProgress]);
    let w = w.with_slots(1, 0).await;
    let (flow, _) = w.workflow_with_source().await;
    assert_eq!(w.status(w.run(&flow).await).await, InProgress);
}

pub(crate) async fn a_waiting_run_without_files_is_listed_when_it_starts(w: World) {
    let w = w.with_slots(1, 1).await;
    let (first, second) = (w.workflow_with_source().await.0, w.workflow_with_source().await.0);
    let (first, second) = (w.run(&first).await, w.run(&second).await);
    w.store.stop_job(w.workspace, first, NOW).await.unwrap();
    assert_eq!(w.status(second).await, JobStatus::InProgress, "not ended as it starts");
    w.store.settle(NOW).await.unwrap();
    assert_eq!(w.claim_listing().await.lease.job(), second);
}

pub(crate) async fn only_what_is_new_or_changed_is_processed(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let (_, files) = w.run_over(&flow, &objects(&["a", "b"])).await;
    assert_eq!(files, ["folder/a", "folder/b"]);
    let (run, files) = w
        .run_over(&flow, &[object("a", "1"), object("b", "2"), object("c", "1")])
        .await;
    assert_eq!(files, ["folder/b", "folder/c"]);
    let job = w.job(run).await;
    assert_eq!(
        (job.files_total, job.files_unchanged, job.status),
        (2, 1, JobStatus::Completed)
    );
    let (run, files) = w
        .run_over(&flow, &[object("a", "1"), object("b", "2"), object("c", "1")])
        .await;
    assert!(files.is_empty());
    assert_eq!(w.job(run).await.files_unchanged, 3);
    // Workflows know nothing of each other, nor sources.
    let other = w.workflow(flow.definition.clone()).await;
    assert_eq!(w.run_over(&other, &objects(&["a"])).await.1.len(), 1);
}

pub(crate) async fn unchanged_objects_are_counted_once(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    w.run_over(&flow, &objects(&["a", "b"])).await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    assert_eq!(w.add_objects(listing.lease, &objects(&["a", "a", "b"])).await, 0);
    w.add_objects(listing.lease, &objects(&["b", "a"])).await;
    let job = w.job(run).await;
    assert_eq!((job.files_total, job.files_unchanged), (0, 2));
}

pub(crate) async fn reprocessing_takes_everything(w: World) {
    let definition = WorkflowDefinition {
        sources: vec![w.source().await],
        reprocess_all: true,
        ..definition("x")
    };
    let flow = w.workflow(definition).await;
    for _ in 0..2 {
        let claims = w.claims_of(&flow, &objects(&["a", "b"])).await;
        assert_eq!(claims.len(), 2);
        assert!(claims.iter().all(|claim| claim.known_hash.is_none()));
    }
}

pub(crate) async fn the_content_known_is_told_to_the_worker(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    w.run_over(&flow, &[object("a", "1"), object("b", "")]).await;
    let claims = w
        .claims_of(&flow, &[object("a", "2"), object("b", ""), object("c", "")])
        .await;
    let known: Vec<_> = claims.iter().map(|claim| claim.known_hash.clone()).collect();
    assert_eq!(known, [Some(hash("1")), Some(hash("")), None]);
    // The new version is known now, though its content may have been the same.
    let claims = w.claims_of(&flow, &[object("a", "2"), object("b", "")]).await;
    assert_eq!(claims.len(), 1, "what has no version is always fetched");
}

pub(crate) async fn a_failed_file_is_tried_by_the_next_run(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a"])).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, failed("bad")).await;
    assert_eq!(w.status(run).await, JobStatus::Failed);
    let (_, files) = w.run_over(&flow, &objects(&["a"])).await;
    assert_eq!(files.len(), 1);
    // Of what was processed before, the old version stays known.
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &[object("a", "2")]).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, failed("bad")).await;
    assert_eq!(w.status(run).await, JobStatus::Failed);
    assert!(w.run_over(&flow, &[object("a", "1")]).await.1.is_empty());
    assert_eq!(w.run_over(&flow, &[object("a", "2")]).await.1.len(), 1);
}

fn action_of(claim: &Claim) -> FileAction {
    match &claim.input {
        FileInput::Source { action, .. } => *action,
        FileInput::Blob(_) => panic!("uploaded"),
    }
}

pub(crate) async fn what_is_gone_from_the_source_is_deleted(w: World) {
    let flow = w.deleting_workflow().await;
    w.claims_of(&flow, &objects(&["a", "b", "c", "d"])).await;
    let claims = w.claims_of(&flow, &[object("a", "1"), object("b", "2")]).await;
    let told: Vec<_> = claims
        .iter()
        .map(|claim| (claim.name.as_str(), action_of(claim)))
        .collect();
    use FileAction::{Delete, Process};
    assert_eq!(
        told,
        [("folder/b", Process), ("folder/c", Delete), ("folder/d", Delete)]
    );
    let FileInput::Source { object: gone, .. } = &claims[1].input else {
        panic!("uploaded")
    };
    assert_eq!((gone.locator.as_str(), &gone.version), ("c", &None));
    assert_eq!(claims[1].known_hash, None);
    assert!(
        w.claims_of(&flow, &[object("a", "1"), object("b", "2")])
            .await
            .is_empty(),
        "once"
    );
    let back = w
        .claims_of(&flow, &[object("a", "1"), object("b", "2"), object("c", "1")])
        .await;
    assert_eq!((back.len(), action_of(&back[0])), (1, Process));
}

pub(crate) async fn a_deletion_that_failed_is_tried_again(w: World) {
    let flow = w.deleting_workflow().await;
    w.claims_of(&flow, &objects(&["a"])).await;
    w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let claim = w.claim_one().await;
    assert_eq!(action_of(&claim), FileAction::Delete);
    w.finish(claim.lease, failed("no connection")).await;
    assert_eq!(w.claims_of(&flow, &[]).await.len(), 1);
    assert!(w.claims_of(&flow, &[]).await.is_empty());
}

pub(crate) async fn nothing_is_deleted_after_a_listing_that_failed(w: World) {
    let flow = w.deleting_workflow().await;
    w.claims_of(&flow, &objects(&["a", "b"])).await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a"])).await;
    w.end_listing(listing.lease, ListingOutcome::Failed("gone away".into()))
        .await;
    assert!(w.claim(9).await.is_empty());
    assert_eq!(w.status(run).await, JobStatus::Failed);
    // Nor without the setting, nor of what is there but failed.
    let quiet = w.workflow_with_source().await.0;
    w.claims_of(&quiet, &objects(&["a"])).await;
    assert!(w.claims_of(&quiet, &[]).await.is_empty());
    w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &[object("a", "2"), object("b", "1")])
        .await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, failed("bad")).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    assert!(w.claim(9).await.is_empty());
}

pub(crate) async fn many_files_gone_are_all_deleted(w: World) {
    let flow = w.deleting_workflow().await;
    let all: Vec<_> = (0..2_345).map(|n| object(&format!("o{n}"), "1")).collect();
    w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &all).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    for claim in w.claim(5_000).await {
        w.finish(claim.lease, processed(&claim)).await;
    }
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &all[..5]).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    assert_eq!(w.job(run).await.files_total, 2_340);
    let claims = w.claim(5_000).await;
    assert_eq!(claims.len(), 2_340);
    assert!(claims.iter().all(|claim| action_of(claim) == FileAction::Delete));
}

/// A retry of the failed files of a run.
async fn retry(w: &World, flow: &Workflow, run: docmill_model::ids::JobId) -> NewJob {
    let mut retry = w.new_run(flow);
    retry.retry_of = Some(run);
    retry.run.as_mut().unwrap().sources.clear();
    let files = w.files(run).await.into_iter();
    let files = files.filter(|file| file.state == TaskState::Failed);
    retry.files = files
        .map(|file| NewFile {
            input: file.input,
            ..new_file(w.workspace, &file.name)
        })
        .collect();
    retry
}

pub(crate) async fn failed_files_of_a_run_can_be_retried(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a", "b"])).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let claims = w.claim(2).await;
    w.finish(claims[0].lease, failed("x")).await;
    w.finish(claims[1].lease, processed(&claims[1])).await;
    let again = retry(&w, &flow, run).await;
    let id = w.add(again.clone()).await;
    let job = w.job(id).await;
    assert_eq!((job.from_sources, job.files_total, job.file_ids.len()), (true, 1, 0));
    let claim = w.claim_one().await;
    assert_eq!((&claim.input, claim.job), (&claims[0].input, id));
    w.finish(claim.lease, processed(&claim)).await;
    assert_eq!(w.status(id).await, JobStatus::Completed);
    assert!(
        w.run_over(&flow, &objects(&["a", "b"])).await.1.is_empty(),
        "both are known now"
    );
    assert_eq!(
        w.store.delete_job(w.workspace, run).await.unwrap(),
        DeleteOutcome::Deleted
    );
    let late = NewJob {
        id: docmill_model::ids::JobId::new(),
        ..again
    };
    let late = w.store.create_job(late, NOW).await;
    assert!(matches!(late, Err(StoreError::OriginalGone(id)) if id == run));
}

pub(crate) async fn outputs_of_a_run_without_destinations_are_kept_and_deleted(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a", "b"])).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let mut expected = Vec::new();
    for claim in w.claim(2).await {
        let outputs = output_keys(&claim);
        expected.extend(outputs.iter().map(|output| output.2.clone()));
        let outcome = FileOutcome::Succeeded {
            outputs,
            warnings: Vec::new(),
            elements: 1,
            pages: 1,
            routes: Vec::new(),
            content_hash: Some(hash("1")),
        };
        w.finish(claim.lease, outcome).await;
        let found = w
            .store
            .output(w.workspace, run, claim.lease.file(), None)
            .await
            .unwrap();
        assert_eq!(found.unwrap().blob_key, expected[expected.len() - 1]);
    }
    assert!(w.files(run).await.iter().all(|file| file.nodes_done == 2));
    assert_eq!(
        w.store.delete_job(w.workspace, run).await.unwrap(),
        DeleteOutcome::Deleted
    );
    let mut garbage = w.store.garbage(100).await.unwrap();
    garbage.sort();
    expected.sort();
    assert_eq!(garbage, expected);
    assert!(w.store.job(w.workspace, run).await.unwrap().is_none());
}

pub(crate) async fn a_large_run_is_deleted_to_the_end(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let mut runs = Vec::new();
    for size in [20_001, 1] {
        let run = w.run(&flow).await;
        let listing = w.claim_listing().await;
        let found: Vec<_> = (0..size).map(|n| object(&n.to_string(), "")).collect();
        w.add_objects(listing.lease, &found).await;
        w.store.stop_job(w.workspace, run, NOW).await.unwrap();
        runs.push(run);
    }
    assert_eq!(w.store.expire_jobs(NOW + SECOND, 1).await.unwrap(), 1);
    let left: Vec<_> = w.jobs().await.into_iter().map(|job| job.id).collect();
    assert_eq!(left, [runs[1]]);
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    let found: Vec<_> = (0..10_000).map(|n| object(&n.to_string(), "")).collect();
    w.add_objects(listing.lease, &found).await;
    w.store.stop_job(w.workspace, run, NOW).await.unwrap();
    assert_eq!(
        w.store.delete_job(w.workspace, run).await.unwrap(),
        DeleteOutcome::Deleted
    );
    assert_eq!(w.store.expire_jobs(NOW + SECOND, 5).await.unwrap(), 1);
    assert!(w.jobs().await.is_empty());
}

/// Where each claim's document has its plain name, for runs of the workflows one after another.
async fn plainly(w: &World, flows: &[&Workflow]) -> Vec<bool> {
    let mut plain = Vec::new();
    for flow in flows {
        for claim in w.claims_of(flow, &objects(&["a"])).await {
            plain.push(claim.plain_at == flow.definition.destinations);
        }
    }
    plain
}

pub(crate) async fn at_a_place_the_first_source_of_a_workflow_has_plain_names(w: World) {
    let (sources, destination) = ([w.source().await, w.source().await], w.destination().await);
    let same_place = w.destination().await;
    let elsewhere = w.connector_at("s3://elsewhere/").await;
    let flow = async |source, destination| {
        let definition = WorkflowDefinition {
            sources: vec![source],
            destinations: vec![destination],
            reprocess_all: true,
            ..definition("flow")
        };
        w.workflow(definition).await
    };
    let first = flow(sources[0], destination).await;
    let second = flow(sources[1], same_place).await;
    let third = flow(sources[0], destination).await;
    let other = flow(sources[1], elsewhere).await;
    // Names stay what they were, whoever runs when.
    assert_eq!(
        plainly(&w, &[&first, &second, &third, &other]).await,
        [true, false, false, true]
    );
    assert_eq!(
        plainly(&w, &[&other, &third, &second, &first]).await,
        [true, false, false, true]
    );
    // Made again, a workflow replaces what it wrote; others that have written keep their names.
    w.store.delete_workflow(w.workspace, first.id, NOW).await.unwrap();
    assert_eq!(plainly(&w, &[&third, &second]).await, [false, false]);
    let again = flow(sources[0], same_place).await;
    let stranger = flow(w.source().await, destination).await;
    assert_eq!(
        plainly(&w, &[&stranger, &again, &third, &again]).await,
        [false, true, false, true]
    );
}
