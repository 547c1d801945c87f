//! What becomes of the files of runs.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use docmill_connectors::ErrorKind;
use docmill_model::Code;
use docmill_model::document::WarningCode;
use docmill_model::ids::FileId;
use docmill_model::job::JobStatus;
use docmill_model::workflow::WorkflowState;
use docmill_store::blob::input_key;

use super::world::{World, until};
use crate::{RetryError, RunError, SubmittedFile, record_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_delivers_each_file_once_and_the_next_one_only_what_changed() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let workflow = world.workflow(|_| ()).await;
    world.source.put("in/a.txt", "alpha", Some("1"));
    world.source.put("b.txt", "beta", None);

    let job = world.run(&workflow).await;
    assert_eq!(
        (job.status, job.files_succeeded, job.files_unchanged),
        (JobStatus::Completed, 2, 0)
    );
    assert_eq!(world.destination.names(), ["b.txt", "in/a.txt"]);
    let (_, elements) = world.destination.held().remove(1);
    let elements: serde_json::Value = serde_json::from_str(&elements).unwrap();
    let id = record_id(workflow.id, world.source_id, "loc:in/a.txt");
    assert_eq!(elements[0]["scope"], *id);
    assert_eq!(
        (&elements[0]["filename"], &elements[0]["folder"]),
        (&"a.txt".into(), &"in".into())
    );
    assert_eq!(elements[0]["data_source"]["url"], "fake://in/a.txt");
    assert!(elements[0]["data_source"]["date_processed"].is_string());
    assert!(world.destination.documents.lock().unwrap().contains_key(&id));

    // One has a version and is not even fetched, one has none and turns out the same.
    let (fetches, puts) = (world.source.fetches.load(Ordering::SeqCst), 2);
    let job = world.run(&workflow).await;
    assert_eq!(
        (job.files_total, job.files_unchanged, job.status),
        (1, 1, JobStatus::Completed)
    );
    let files = world.files(job.id).await;
    assert_eq!(files[0].warnings[0].code, WarningCode::Unchanged);
    assert_eq!(world.source.fetches.load(Ordering::SeqCst), fetches + 1);
    assert_eq!(world.destination.puts.load(Ordering::SeqCst), puts);

    world.source.put("in/a.txt", "alpha 2", Some("2"));
    world.source.put("b.txt", "beta 2", None);
    world.source.put("c.txt", "gamma", Some("1"));
    let job = world.run(&workflow).await;
    assert_eq!(job.files_succeeded, 3);
    assert_eq!(world.destination.names(), ["b.txt", "c.txt", "in/a.txt"]);
    assert!(world.destination.held()[2].1.contains("alpha 2"));
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_from_the_source_goes_from_the_destination_when_asked_for() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let keeping = world.workflow(|_| ()).await;
    let removing = world.workflow(|definition| definition.delete_removed = true).await;
    world.source.put("a", "1", Some("1"));
    world.source.put("b", "2", Some("1"));
    world.run(&keeping).await;
    world.run(&removing).await;
    assert_eq!(world.destination.names(), ["a", "a", "b", "b"]);
    world.source.remove("a");
    assert_eq!(world.run(&keeping).await.status, JobStatus::Completed);
    assert_eq!(world.destination.names(), ["a", "a", "b", "b"]);
    assert_eq!(world.run(&removing).await.status, JobStatus::Completed);
    assert_eq!(world.destination.names(), ["a", "b", "b"]);
    // It is not removed again and again.
    assert_eq!(world.run(&removing).await.files_total, 0);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_fails_does_not_stop_the_run_and_is_taken_up_by_a_retry() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let workflow = world.workflow(|_| ()).await;
    world.source.put("good", "1", Some("1"));
    world.source.put("huge", &"x".repeat(1_001), Some("1"));
    let job = world.run(&workflow).await;
    assert_eq!(
        (job.status, job.files_succeeded, job.files_failed),
        (JobStatus::Completed, 1, 1)
    );
    let failed = world
        .files(job.id)
        .await
        .into_iter()
        .find(|file| file.error.is_some())
        .unwrap();
    assert_eq!(
        (failed.name.as_str(), failed.error.unwrap().0),
        ("huge", Code::FileTooLarge)
    );

    world.source.put("huge", "small now", Some("2"));
    let retry = world.engine.retry_job(&world.principal, job.id).await.unwrap();
    assert_eq!((retry.workflow, retry.from_sources), (workflow.id, true));
    let retry = world.end_of(retry.id).await;
    assert_eq!((retry.files_succeeded, retry.files_failed), (1, 0));
    assert_eq!(world.destination.names(), ["good", "huge"]);
    let again = world.engine.retry_job(&world.principal, retry.id).await;
    assert!(matches!(again, Err(RetryError::NothingFailed)));
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_tried_again_and_what_may_not_fails_with_the_reason() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let workflow = world.workflow(|_| ()).await;
    world.source.put("a", "1", Some("1"));
    *world.source.fetch_failures.lock().unwrap() = vec![ErrorKind::Unavailable];
    *world.destination.put_failures.lock().unwrap() = vec![ErrorKind::Throttled];
    let job = world.run(&workflow).await;
    assert_eq!(
        (job.files_succeeded, world.source.fetches.load(Ordering::SeqCst)),
        (1, 2)
    );

    world.source.put("a", "2", Some("2"));
    *world.destination.put_failures.lock().unwrap() = vec![ErrorKind::Unauthorized];
    let job = world.run(&workflow).await;
    assert_eq!((job.status, job.files_failed), (JobStatus::Failed, 1));
    let error = world.files(job.id).await.remove(0).error.unwrap();
    assert_eq!(error, (Code::ConnectorRefused, "made to fail".into()));
    // It left no record, so the next run takes it up.
    assert_eq!(world.run(&workflow).await.files_succeeded, 1);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_fetches_and_deliveries_at_once() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let workflow = world.workflow(|_| ()).await;
    world.source.put("a", "1", Some("1"));
    for hang in [&world.source.fetch_hangs, &world.destination.put_hangs] {
        let started = (
            world.source.fetches.load(Ordering::SeqCst),
            world.destination.puts.load(Ordering::SeqCst),
        );
        hang.store(true, Ordering::SeqCst);
        let job = world
            .engine
            .run_workflow(&world.principal, &workflow, Vec::new())
            .await
            .unwrap();
        let fetching = std::ptr::eq(hang, &world.source.fetch_hangs);
        until("it to hang", async || {
            let now = (
                world.source.fetches.load(Ordering::SeqCst),
                world.destination.puts.load(Ordering::SeqCst),
            );
            (if fetching { now.0 > started.0 } else { now.1 > started.1 }).then_some(())
        })
        .await;
        let stopped = Instant::now();
        world.engine.stop_job(world.principal.workspace, job.id).await.unwrap();
        until("the work to end", async || {
            (world.engine.running().len() == 0).then_some(())
        })
        .await;
        assert!(stopped.elapsed() < Duration::from_secs(1));
        assert_eq!(world.job(job.id).await.status, JobStatus::Stopped);
        hang.store(false, Ordering::SeqCst);
    }
    assert_eq!(world.run(&workflow).await.files_succeeded, 1);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploaded_files_of_a_workflow_go_to_its_destinations_or_are_kept() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let delivering = world.workflow(|definition| definition.sources.clear()).await;
    let keeping = world
        .workflow(|definition| {
            definition.sources.clear();
            definition.destinations.clear();
        })
        .await;
    let mut jobs = Vec::new();
    for workflow in [&delivering, &keeping] {
        let id = FileId::new();
        let blob_key = input_key(world.principal.workspace, id);
        world.engine.blobs().put(&blob_key, "text".into()).await.unwrap();
        let file = SubmittedFile {
            id,
            name: "same.txt".into(),
            content_type: None,
            size: 4,
            blob_key,
        };
        let job = world
            .engine
            .run_workflow(&world.principal, workflow, vec![file])
            .await
            .unwrap();
        let job = world.end_of(job.id).await;
        assert_eq!((job.files_succeeded, job.workflow), (1, workflow.id));
        jobs.push((job, id));
    }
    assert_eq!(world.destination.names(), [format!("{}/same.txt", jobs[0].1)]);
    assert!(jobs[0].0.outputs.is_empty());
    assert_eq!(jobs[1].0.outputs.len(), 1);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_refused_where_they_can_not_be() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    world.source.silent.store(true, Ordering::SeqCst);
    let workflow = world.workflow(|_| ()).await;
    let run = |workflow: docmill_store::Workflow, files: Vec<SubmittedFile>| {
        let (engine, principal) = (world.engine.clone(), world.principal);
        async move { engine.run_workflow(&principal, &workflow, files).await }
    };
    let file = SubmittedFile {
        id: FileId::new(),
        name: "n".into(),
        content_type: None,
        size: 0,
        blob_key: "in/x".into(),
    };
    assert!(matches!(
        run(workflow.clone(), vec![file]).await,
        Err(RunError::TakesNoFiles)
    ));
    let first = run(workflow.clone(), Vec::new()).await.unwrap();
    assert!(matches!(run(workflow.clone(), Vec::new()).await, Err(RunError::Active(id)) if id == first.id));

    let inactive = world
        .workflow(|definition| definition.state = WorkflowState::Inactive)
        .await;
    assert!(matches!(run(inactive, Vec::new()).await, Err(RunError::Inactive)));
    let broken = world
        .workflow(|definition| definition.nodes[0].subtype = "of_another_time".into())
        .await;
    assert!(matches!(run(broken, Vec::new()).await, Err(RunError::ChainInvalid(problems)) if !problems.is_empty()));

    // Deleting a workflow stops its run, though its source never ends.
    assert!(
        world
            .engine
            .delete_workflow(world.principal.workspace, workflow.id)
            .await
            .unwrap()
    );
    assert_eq!(world.end_of(first.id).await.status, JobStatus::Stopped);
    assert!(matches!(
        run(workflow.clone(), Vec::new()).await,
        Err(RunError::NotFound)
    ));
    assert!(
        !world
            .engine
            .delete_workflow(world.principal.workspace, workflow.id)
            .await
            .unwrap()
    );
    world.engine.stop().await;
}
