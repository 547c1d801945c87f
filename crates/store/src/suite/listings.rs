//! Runs that find out their files: leases, pages, and how they end.

use docmill_model::ids::ConnectorId;
use docmill_model::job::{EventType, JobStatus, TaskState};
use docmill_model::time::SECOND;

use super::World;
use super::flows::{definition, object, objects, page, processed};
use super::world::{BOUNDS, LEASE, NOW, at_once, failed};
use crate::{FileAction, FileInput, FilePage, ListedPage, ListingOutcome, StoreError, WorkflowDefinition};

fn is_lost<T>(result: crate::Result<T>) -> bool {
    matches!(result, Err(StoreError::LeaseLost))
}

pub(crate) async fn a_started_run_is_listed_once(w: World) {
    let (flow, source) = w.workflow_with_source().await;
    assert!(w.claim_listings(9).await.is_empty());
    let run = w.run(&flow).await;
    let claim = w.claim_listing().await;
    assert_eq!(
        (claim.lease.job(), claim.workspace, claim.sources),
        (run, w.workspace, vec![source])
    );
    assert_eq!((claim.position, claim.attempt), ((0, None), 1));
    assert!(w.claim_listings(9).await.is_empty(), "leased");
    let expired = w.store.claim_listings(9, LEASE + SECOND, LEASE + 1).await.unwrap();
    assert_eq!((expired.len(), expired[0].attempt), (1, 2));
    let old = claim.lease;
    assert!(is_lost(w.store.add_listed(old, page(0, &objects(&["a"])), NOW).await));
    assert!(is_lost(w.store.backlog(old).await));
    assert!(is_lost(
        w.store.finish_listing(old, ListingOutcome::Complete, NOW).await
    ));
    let renewed = w.store.renew_listings(&[old, expired[0].lease], LEASE).await.unwrap();
    assert_eq!(renewed, [old]);
    w.store.release_listing(old).await.unwrap();
    assert!(
        w.store
            .renew_listings(&[expired[0].lease], LEASE)
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn listed_objects_become_files(w: World) {
    let destination = w.destination().await;
    let source = w.source().await;
    let flow = WorkflowDefinition {
        sources: vec![source],
        destinations: vec![destination],
        ..definition("x")
    };
    let flow = w.workflow(flow).await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    let found = [object("a", "1"), object("b", "")];
    assert_eq!(w.add_objects(listing.lease, &found).await, 2);
    let job = w.job(run).await;
    assert_eq!(
        (job.files_total, job.from_sources, job.status),
        (2, true, JobStatus::InProgress)
    );
    assert!(job.file_ids.is_empty() && job.outputs.is_empty());
    let claims = w.claim(9).await;
    assert_eq!(claims.len(), 2);
    for (claim, object) in claims.iter().zip(&found) {
        let expected = FileInput::Source {
            source,
            object: object.clone(),
            action: FileAction::Process,
        };
        assert_eq!(claim.input, expected);
        assert_eq!((claim.name.as_str(), claim.size), (object.name.as_str(), 11));
        assert_eq!(claim.content_type.as_deref(), Some("text/html"));
        assert_eq!((claim.workflow, &claim.destinations), (flow.id, &vec![destination]));
        assert_eq!(claim.known_hash, None);
    }
    assert_eq!(w.files(run).await[1].input, claims[1].input);
    assert_eq!(w.store.backlog(listing.lease).await.unwrap(), 0, "both run");
    w.finish(claims[0].lease, processed(&claims[0])).await;
    w.store.release(claims[1].lease).await.unwrap();
    assert_eq!(w.store.backlog(listing.lease).await.unwrap(), 1);
    assert!(w.job(run).await.outputs.is_empty());
}

pub(crate) async fn an_object_the_run_has_is_left_alone(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    assert_eq!(w.add_objects(listing.lease, &objects(&["a", "b", "a"])).await, 2);
    let claim = w.claim_one().await;
    w.finish(claim.lease, processed(&claim)).await;
    // A listing that starts over meets what was done meanwhile.
    assert_eq!(w.add_objects(listing.lease, &objects(&["b", "a", "c"])).await, 2);
    let job = w.job(run).await;
    assert_eq!((job.files_total, job.files_succeeded, job.files_unchanged), (3, 1, 0));
    let names: Vec<_> = w.files(run).await.into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["folder/a", "folder/b", "folder/c"]);
}

pub(crate) async fn a_listing_goes_on_where_it_was(mut w: World) {
    let sources = vec![w.source().await, w.source().await];
    let flow = WorkflowDefinition {
        sources: sources.clone(),
        ..definition("x")
    };
    let flow = w.workflow(flow).await;
    let run = w.run(&flow).await;
    let first = w.claim_listing().await;
    w.add_objects(first.lease, &objects(&["a", "b"])).await;
    w.store = w.backend.open_after_crash(BOUNDS).await;
    assert!(w.claim_listings(9).await.is_empty(), "leased still");
    w.store.recover(true, 3, NOW).await.unwrap();
    let second = w.claim_listing().await;
    assert_eq!((second.position, second.attempt), ((0, Some("b".into())), 1));
    assert!(is_lost(
        w.store.add_listed(first.lease, page(0, &objects(&["z"])), NOW).await
    ));
    let last = |source_index, locators: &[&str]| ListedPage {
        last_of_source: true,
        ..page(source_index, &objects(locators))
    };
    w.store.add_listed(second.lease, last(0, &[]), NOW).await.unwrap();
    w.store.release_listing(second.lease).await.unwrap();
    let third = w.claim_listing().await;
    assert_eq!(
        (third.position, third.attempt),
        ((1, None), 1),
        "what came further counts anew"
    );
    w.store
        .add_listed(third.lease, page(1, &objects(&["a"])), NOW)
        .await
        .unwrap();
    w.store.add_listed(third.lease, page(1, &[]), NOW).await.unwrap();
    w.store.release_listing(third.lease).await.unwrap();
    let fourth = w.claim_listing().await;
    assert_eq!(fourth.position, (1, Some("a".into())));
    assert!(
        w.store
            .add_listed(fourth.lease, page(2, &objects(&["b"])), NOW)
            .await
            .is_err()
    );
    w.end_listing(fourth.lease, ListingOutcome::Complete).await;
    let from: Vec<_> = w.claim(9).await.iter().map(|claim| source_of(&claim.input)).collect();
    assert_eq!(from, [sources[0], sources[0], sources[1]]);
    assert_eq!(w.job(run).await.files_total, 3);
}

fn source_of(input: &FileInput) -> ConnectorId {
    match input {
        FileInput::Source { source, .. } => *source,
        FileInput::Blob(_) => panic!("uploaded"),
    }
}

pub(crate) async fn a_listing_that_fails_for_now_waits(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    w.run(&flow).await;
    let claim = w.claim_listing().await;
    let later = NOW + 10 * SECOND;
    w.end_listing(claim.lease, ListingOutcome::Retry(later)).await;
    assert!(w.claim_listings(9).await.is_empty());
    assert!(is_lost(w.store.backlog(claim.lease).await));
    let claims = w.store.claim_listings(9, LEASE, later).await.unwrap();
    assert_eq!((claims.len(), claims[0].attempt), (1, 2));
    w.store.release_listing(claims[0].lease).await.unwrap();
    let again = w.store.claim_listings(9, LEASE, later).await.unwrap();
    assert_eq!(again[0].attempt, 2, "giving it back costs no attempt");
}

pub(crate) async fn a_run_does_not_end_while_it_is_listed(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    assert_eq!(w.store.settle(NOW).await.unwrap(), 0);
    w.add_objects(listing.lease, &objects(&["a"])).await;
    let claim = w.claim_one().await;
    w.finish(claim.lease, processed(&claim)).await;
    assert_eq!(w.store.settle(NOW).await.unwrap(), 0);
    assert_eq!(w.status(run).await, JobStatus::InProgress);
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let job = w.job(run).await;
    assert_eq!(
        (job.status, job.ended_at, job.message),
        (JobStatus::Completed, Some(NOW + SECOND), None)
    );
    use EventType::{JobCompleted, JobInProgress, JobScheduled};
    assert_eq!(w.events(run).await, [JobScheduled, JobInProgress, JobCompleted]);
    assert!(w.claim_listings(9).await.is_empty());
    assert!(is_lost(
        w.store
            .finish_listing(listing.lease, ListingOutcome::Complete, NOW)
            .await
    ));
}

pub(crate) async fn a_run_over_nothing_completes(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let (run, files) = w.run_over(&flow, &[]).await;
    assert!(files.is_empty());
    assert_eq!(w.status(run).await, JobStatus::Completed);
}

pub(crate) async fn the_last_file_ends_a_listed_run(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a", "b"])).await;
    w.end_listing(listing.lease, ListingOutcome::Complete).await;
    let claims = w.claim(9).await;
    w.finish(claims[0].lease, processed(&claims[0])).await;
    assert_eq!(w.status(run).await, JobStatus::InProgress);
    w.finish(claims[1].lease, failed("bad bytes")).await;
    let job = w.job(run).await;
    assert_eq!(
        (job.status, job.message.as_deref()),
        (JobStatus::Completed, Some("1 of 2 files failed"))
    );
    let bad = FilePage {
        failed_only: true,
        ..FilePage::ALL
    };
    let bad = w.store.job_files(w.workspace, run, bad).await.unwrap().unwrap();
    assert_eq!((bad.len(), bad[0].id), (1, claims[1].lease.file()));
}

/// Ends a run whose listing failed, after files that ended like this (`.` well, `x` not); its status and
/// message.
async fn run_with_failed_listing(w: &World, files: &str) -> (JobStatus, String) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    let found: Vec<_> = (0..files.len()).map(|n| object(&n.to_string(), "1")).collect();
    w.add_objects(listing.lease, &found).await;
    let claims = w.claim(9).await;
    w.end_listing(listing.lease, ListingOutcome::Failed("access denied".into()))
        .await;
    for (claim, how) in claims.iter().zip(files.chars()) {
        let outcome = if how == 'x' { failed("bad") } else { processed(claim) };
        w.finish(claim.lease, outcome).await;
    }
    let job = w.job(run).await;
    (job.status, job.message.unwrap())
}

pub(crate) async fn a_failed_listing_is_told(w: World) {
    let told = "the sources could not be listed to the end: access denied";
    assert_eq!(run_with_failed_listing(&w, "").await, (JobStatus::Failed, told.into()));
    assert_eq!(
        run_with_failed_listing(&w, "..").await,
        (JobStatus::Completed, told.into())
    );
    let (status, message) = run_with_failed_listing(&w, "x").await;
    assert_eq!(status, JobStatus::Failed);
    assert_eq!(message, format!("{told}; no file was processed: folder/0: bad"));
    let (status, message) = run_with_failed_listing(&w, ".x").await;
    assert_eq!(
        (status, message),
        (JobStatus::Completed, format!("{told}; 1 of 2 files failed"))
    );
}

pub(crate) async fn stopping_a_run_ends_its_listing(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let local = w.create(2).await;
    let listing = w.claim_listing().await;
    w.add_objects(listing.lease, &objects(&["a", "b", "c"])).await;
    let claims = w.claim(3).await;
    let mine: Vec<_> = claims.iter().filter(|claim| claim.job == run).collect();
    w.finish(mine[0].lease, processed(mine[0])).await;
    w.store.stop_job(w.workspace, run, NOW).await.unwrap();
    assert!(is_lost(
        w.store.add_listed(listing.lease, page(0, &objects(&["d"])), NOW).await
    ));
    assert!(is_lost(w.store.backlog(listing.lease).await));
    assert!(is_lost(
        w.store
            .finish_listing(listing.lease, ListingOutcome::Complete, NOW)
            .await
    ));
    assert_eq!(
        w.store.renew_listings(&[listing.lease], LEASE).await.unwrap(),
        [listing.lease]
    );
    use TaskState::{Stopped, Succeeded};
    assert_eq!(w.states(run).await, [Succeeded, Stopped, Stopped]);
    w.store.recover(true, 9, NOW).await.unwrap();
    w.run_all().await;
    assert_eq!(
        w.statuses(&[run, local]).await,
        [JobStatus::Stopped, JobStatus::Completed]
    );
    assert!(w.claim_listings(9).await.is_empty());
    w.store.delete_job(w.workspace, run).await.unwrap();
    let garbage = w.store.garbage(100).await.unwrap();
    assert!(garbage.is_empty(), "files of sources have no blob: {garbage:?}");
    w.store.delete_job(w.workspace, local).await.unwrap();
}

pub(crate) async fn listers_at_once_share_runs(w: World) {
    for _ in 0..5 {
        let (flow, _) = w.workflow_with_source().await;
        w.run(&flow).await;
    }
    let claims = at_once(12, |_| {
        let store = w.store.clone();
        async move { store.claim_listings(1, LEASE, NOW).await }
    });
    let claims = claims.await.into_iter().flat_map(Result::unwrap);
    let mut runs: Vec<_> = claims.map(|claim| claim.lease.job()).collect();
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), 5);
}

pub(crate) async fn files_and_pages_at_once_add_up(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    let lister = {
        let (store, lease) = (w.store.clone(), listing.lease);
        tokio::spawn(async move {
            for n in 0..20 {
                let found: Vec<_> = (n * 5..n * 5 + 7).map(|n| object(&n.to_string(), "1")).collect();
                store.add_listed(lease, page(0, &found), NOW).await.unwrap();
            }
            store
                .finish_listing(lease, ListingOutcome::Complete, NOW)
                .await
                .unwrap();
        })
    };
    let workers = at_once(4, |_| {
        let (store, workspace) = (w.store.clone(), w.workspace);
        async move {
            let mut done = 0;
            while !store.job(workspace, run).await?.unwrap().status.is_terminal() {
                for claim in store.claim(3, LEASE, NOW).await? {
                    store.finish(claim.lease, processed(&claim), NOW).await?;
                    done += 1;
                }
            }
            Ok(done)
        }
    });
    let done: u64 = workers.await.into_iter().map(Result::unwrap).sum();
    lister.await.unwrap();
    let job = w.job(run).await;
    assert_eq!((done, job.files_total, job.files_succeeded), (102, 102, 102));
    assert_eq!((job.status, job.files_unchanged), (JobStatus::Completed, 0));
}

pub(crate) async fn files_of_a_run_are_read_page_by_page(w: World) {
    let (flow, _) = w.workflow_with_source().await;
    let run = w.run(&flow).await;
    let listing = w.claim_listing().await;
    for n in 0..4 {
        let found: Vec<_> = (n * 3..n * 3 + 3).map(|n| object(&format!("{n:02}"), "1")).collect();
        w.add_objects(listing.lease, &found).await;
    }
    let read = async |offset, limit| {
        let page = FilePage {
            failed_only: false,
            offset,
            limit,
        };
        let files = w.store.job_files(w.workspace, run, page).await.unwrap().unwrap();
        files.into_iter().map(|file| file.name).collect::<Vec<_>>()
    };
    let all = read(0, 100).await;
    assert_eq!(
        (all.len(), all[0].as_str(), all[11].as_str()),
        (12, "folder/00", "folder/11")
    );
    assert_eq!(read(2, 5).await, all[2..7]);
    assert_eq!(read(10, 5).await, all[10..]);
    assert!(read(12, 5).await.is_empty());
}
