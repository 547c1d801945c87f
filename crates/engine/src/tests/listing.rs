//! Listings that are long, slow, broken or cut short.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use docmill_connectors::ErrorKind;
use docmill_model::ids::ConnectorId;
use docmill_model::job::JobStatus;

use super::world::{FakeSource, World, config, until};
use crate::EngineConfig;

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_without_end_starts_work_at_once_waits_for_it_and_is_bounded() {
    let world = World::with(EngineConfig {
        max_files_per_run: Some(1_000),
        ..config()
    })
    .await;
    world.engine.start().await.unwrap();
    world.source.endless.store(true, Ordering::SeqCst);
    let workflow = world.workflow(|_| ()).await;
    // Nothing is delivered for now, so that the files pile up.
    world.destination.put_hangs.store(true, Ordering::SeqCst);
    let started = Instant::now();
    let job = world
        .engine
        .run_workflow(&world.principal, &workflow, Vec::new())
        .await
        .unwrap();
    until("the first file", async || {
        (world.source.fetches.load(Ordering::SeqCst) > 0).then_some(())
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    tokio::time::sleep(Duration::from_millis(700)).await;
    let pulled = world.source.pulled.load(Ordering::SeqCst);
    assert!(pulled < 500, "{pulled} objects were listed while nothing was done");

    world.engine.stop_job(world.principal.workspace, job.id).await.unwrap();
    until("the listing to end", async || {
        world.engine.shared.listings.leases().is_empty().then_some(())
    })
    .await;
    world.destination.put_hangs.store(false, Ordering::SeqCst);
    let job = world.run(&workflow).await;
    assert_eq!(job.status, JobStatus::Completed);
    let message = job.message.unwrap();
    assert!(
        message.contains("limits.max_files_per_run") && message.contains("1000"),
        "{message}"
    );
    assert!((1_000..1_300).contains(&job.files_succeeded), "{}", job.files_succeeded);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_breaks_goes_on_where_it_was() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let workflow = world.workflow(|_| ()).await;
    for n in 0..50 {
        world.source.put(&format!("{n:02}"), "text", None);
    }
    *world.source.list_failures.lock().unwrap() = vec![ErrorKind::Unavailable];
    let job = world.run(&workflow).await;
    assert_eq!((job.status, job.files_succeeded), (JobStatus::Completed, 50));
    assert_eq!(world.source.listings.load(Ordering::SeqCst), 2);
    assert_eq!(world.source.fetches.load(Ordering::SeqCst), 50);

    // What will never work is not tried again; with nothing processed, the run has failed.
    *world.source.list_failures.lock().unwrap() = vec![ErrorKind::Unauthorized];
    world.source.objects.lock().unwrap().clear();
    let job = world.run(&workflow).await;
    assert_eq!(
        (job.status, job.message.as_deref()),
        (
            JobStatus::Failed,
            Some("the sources could not be listed to the end: made to fail")
        )
    );
    assert_eq!(world.source.listings.load(Ordering::SeqCst), 3);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_sources_are_listed_one_after_the_other() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let second = Arc::new(FakeSource::default());
    let second_id = world.add_source(second.clone()).await;
    world.source.put("same", "1", Some("1"));
    second.put("same", "2", Some("1"));
    let workflow = world.workflow(|definition| definition.sources.push(second_id)).await;
    assert_eq!(world.run(&workflow).await.files_succeeded, 2);
    assert_eq!(world.destination.names(), ["same", "same"]);
    world.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_gives_its_listing_back_and_the_next_goes_on() {
    let world = World::new().await;
    world.source.silent.store(true, Ordering::SeqCst);
    for n in 0..30 {
        world.source.put(&format!("{n:02}"), "text", Some("1"));
    }
    let workflow = world.workflow(|_| ()).await;
    world.engine.start().await.unwrap();
    let job = world
        .engine
        .run_workflow(&world.principal, &workflow, Vec::new())
        .await
        .unwrap();
    until("the files", async || {
        (world.job(job.id).await.files_succeeded >= 16).then_some(())
    })
    .await;
    world.engine.stop().await;
    assert!(!world.job(job.id).await.status.is_terminal());
    world.source.silent.store(false, Ordering::SeqCst);

    let next = world.next_server();
    next.start().await.unwrap();
    let job = world.end_of(job.id).await;
    assert_eq!((job.status, job.files_succeeded), (JobStatus::Completed, 30));
    assert_eq!(world.destination.puts.load(Ordering::SeqCst), 30);
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_a_connector_that_can_not_be_opened_fails_with_the_reason() {
    let world = World::new().await;
    world.engine.start().await.unwrap();
    let workflow = world.workflow(|_| ()).await;
    // Its type is none of this version's.
    world.engine.shared.connections.forget(world.source_id);
    let job = world.run(&workflow).await;
    assert_eq!(job.status, JobStatus::Failed);
    assert!(
        job.message.as_ref().is_some_and(|message| message.contains("`fake`")),
        "{:?}",
        job.message
    );
    let gone =
        world
            .engine
            .shared
            .connections
            .source(world.engine.store(), world.principal.workspace, ConnectorId::new());
    assert_eq!(gone.await.err().map(|error| error.kind), Some(ErrorKind::Missing));
    world.engine.stop().await;
}
