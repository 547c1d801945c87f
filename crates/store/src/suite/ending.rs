//! How jobs end, and the events that tell of it.

use docmill_model::ids::{FileId, JobId};
use docmill_model::job::JobStatus::{Completed, Failed, InProgress, Scheduled, Stopped};
use docmill_model::job::{EventType, JobStatus, TaskState};
use docmill_model::time::SECOND;
use docmill_model::{Code, PageCall, PageRoute, Route, RouteReason, Warning, WarningCode};

use super::World;
use super::world::{LEASE, NOW, failed, output_keys, retried, succeeded};
use crate::{FileOutcome, StoreError};

impl World {
    async fn stop(&self, job: JobId) -> Option<JobStatus> {
        self.store.stop_job(self.workspace, job, NOW + SECOND).await.unwrap()
    }

    /// Runs a new job whose files fail where the pattern has an `x`.
    async fn run_job(&self, pattern: &str) -> JobId {
        let job = self.create(pattern.len()).await;
        for (claim, outcome) in self.claim(pattern.len()).await.iter().zip(pattern.chars()) {
            let outcome = match outcome {
                'x' => failed(&format!("reason {}", claim.name)),
                _ => succeeded(claim),
            };
            self.finish(claim.lease, outcome).await;
        }
        job
    }
}

pub(crate) async fn a_job_ends_with_its_last_file(w: World) {
    let job = w.create(3).await;
    for (ended, claim) in w.claim(3).await.iter().enumerate() {
        let now = w.job(job).await;
        assert_eq!(
            (now.status, now.files_succeeded, now.ended_at),
            (InProgress, ended as u64, None)
        );
        w.finish(claim.lease, succeeded(claim)).await;
    }
    let ended = w.job(job).await;
    assert_eq!((ended.status, ended.message), (Completed, None));
    assert_eq!((ended.started_at, ended.ended_at), (Some(NOW), Some(NOW + SECOND)));
    assert_eq!(
        (ended.files_total, ended.files_succeeded, ended.files_failed),
        (3, 3, 0)
    );
}

pub(crate) async fn some_failures_complete_with_a_message(w: World) {
    let job = w.run_job("x.x").await;
    let job = w.job(job).await;
    assert_eq!((job.status, job.files_succeeded, job.files_failed), (Completed, 1, 2));
    assert_eq!(job.message.as_deref(), Some("2 of 3 files failed"));
}

pub(crate) async fn all_failures_fail_with_the_reasons(w: World) {
    let job = w.run_job("xx").await;
    let job = w.job(job).await;
    assert_eq!((job.status, job.files_succeeded, job.files_failed), (Failed, 0, 2));
    let expected = "no file was processed: 0.txt: reason 0.txt; 1.txt: reason 1.txt";
    assert_eq!(job.message.as_deref(), Some(expected));
}

pub(crate) async fn many_reasons_are_cut(w: World) {
    let job = w.run_job("xxxxx").await;
    let message = w.job(job).await.message.unwrap();
    assert!(
        message.contains("2.txt: reason") && !message.contains("3.txt"),
        "{message}"
    );
    assert!(message.ends_with("; and 2 more"), "{message}");
}

fn route(page_number: u32) -> PageRoute {
    PageRoute {
        page_number,
        route: Route::Vlm,
        reason: RouteReason::LowConfidence,
        ms: 12.5,
        characters: 7,
        unmapped: 0,
        confidence: None,
        languages: Vec::new(),
        call: Some(PageCall {
            model: "openai/gpt-4o".into(),
            calls: 1,
            tokens_in: 1_000,
            tokens_out: 200,
            price: Some(4_500),
            ..PageCall::default()
        }),
    }
}

pub(crate) async fn routes_of_pages_are_kept_and_go_with_the_job(w: World) {
    let job = w.create(3).await;
    let claims = w.claim(3).await;
    for (claim, pages) in claims.iter().zip([3, 0, 5]) {
        let outcome = FileOutcome::Succeeded {
            outputs: output_keys(claim),
            warnings: Vec::new(),
            elements: 1,
            pages: 9,
            routes: (1..=pages).map(route).collect(),
            content_hash: None,
        };
        w.finish(claim.lease, outcome).await;
    }
    let files: Vec<_> = claims.iter().map(|claim| claim.lease.file()).collect();
    let told = async |workspace, files: &[FileId], max| {
        let found = w.store.page_routes(workspace, job, files, max).await.unwrap();
        found
            .into_iter()
            .map(|(file, routes)| (file, routes.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told(w.workspace, &files, 100).await,
        [(files[0], 3), (files[2], 5)],
        "the second has no pages"
    );
    let backwards = [files[2], files[0]];
    assert_eq!(told(w.workspace, &backwards, 6).await, [(files[2], 5), (files[0], 1)]);
    assert_eq!(told(w.workspace, &backwards, 5).await, [(files[2], 5)]);
    let other = w.another_workspace("other").await;
    assert!(told(other, &files, 100).await.is_empty());
    w.store.delete_job(w.workspace, job).await.unwrap();
    assert!(told(w.workspace, &files, 100).await.is_empty());
}

pub(crate) async fn outcomes_are_kept(w: World) {
    let job = w.create(2).await;
    let claims = w.claim(2).await;
    let warning = Warning::on_page(WarningCode::PartUnreadable, 4, "what was not done");
    let outcome = FileOutcome::Succeeded {
        outputs: output_keys(&claims[0]),
        warnings: vec![warning.clone()],
        elements: 12,
        pages: 4,
        routes: (1..=4).map(route).collect(),
        content_hash: None,
    };
    w.finish(claims[0].lease, outcome).await;
    w.finish(claims[1].lease, failed("no text")).await;
    let files = w.files(job).await;
    assert_eq!(files[0].state, TaskState::Succeeded);
    assert_eq!(
        (files[0].elements, files[0].pages, files[0].nodes_done),
        (Some(12), Some(4), 2)
    );
    assert_eq!((&files[0].warnings, &files[0].error), (&vec![warning], &None));
    assert_eq!(
        (files[0].started_at, files[0].ended_at),
        (Some(NOW), Some(NOW + SECOND))
    );
    let kept = w.store.page_routes(w.workspace, job, &[files[0].id], 10).await.unwrap();
    assert_eq!(kept, [(files[0].id, (1..=4).map(route).collect::<Vec<_>>())]);
    assert_eq!(files[1].state, TaskState::Failed);
    assert_eq!(files[1].error, Some((Code::AttemptsExhausted, "no text".into())));
    assert_eq!((files[1].elements, files[1].nodes_done), (None, 0));
}

pub(crate) async fn each_transition_has_one_event(w: World) {
    use EventType::{JobCompleted, JobFailed, JobInProgress, JobScheduled, JobStopped};
    let good = w.run_job(".").await;
    let bad = w.run_job("x").await;
    let stopped = w.create(1).await;
    let retried_first = w.create(1).await;
    assert_eq!(w.stop(stopped).await, Some(InProgress));
    let claim = w.claim_one().await;
    w.finish(claim.lease, retried(NOW)).await;
    w.claim_one().await;
    w.store.recover(true, 9, NOW).await.unwrap();
    w.store.settle(NOW).await.unwrap();
    w.run_all().await;
    assert_eq!(w.events(good).await, [JobScheduled, JobInProgress, JobCompleted]);
    assert_eq!(w.events(bad).await, [JobScheduled, JobInProgress, JobFailed]);
    assert_eq!(w.events(stopped).await, [JobScheduled, JobInProgress, JobStopped]);
    assert_eq!(
        w.events(retried_first).await,
        [JobScheduled, JobInProgress, JobCompleted]
    );
}

pub(crate) async fn events_after_a_sequence(w: World) {
    let job = w.run_job(".x").await;
    let events = w.store.events(w.workspace, job, 0).await.unwrap();
    let last = w.store.events(w.workspace, job, 2).await.unwrap();
    assert_eq!((events.len(), last.len()), (3, 1));
    assert_eq!((last[0].id, last[0].sequence), (events[2].id, 3));
    assert!(w.store.events(w.workspace, job, 3).await.unwrap().is_empty());
    let payload = &last[0].payload;
    assert_eq!(payload["job_id"], job.to_string());
    assert_eq!(
        (&payload["status"], &payload["files_total"]),
        (&"COMPLETED".into(), &2.into())
    );
    assert_eq!(
        (&payload["files_succeeded"], &payload["files_failed"]),
        (&1.into(), &1.into())
    );
    assert_eq!(events[0].payload["status"], "SCHEDULED");
    assert_eq!(last[0].created_at, NOW + SECOND);
}

pub(crate) async fn stop_ends_what_has_not_ended(w: World) {
    let job = w.create(3).await;
    let claims = w.claim(2).await;
    w.finish(claims[0].lease, succeeded(&claims[0])).await;
    assert_eq!(w.stop(job).await, Some(InProgress));
    let stopped = w.job(job).await;
    assert_eq!((stopped.status, stopped.ended_at), (Stopped, Some(NOW + SECOND)));
    assert_eq!(stopped.message.as_deref(), Some("cancelled on request"));
    let expected = [TaskState::Succeeded, TaskState::Stopped, TaskState::Stopped];
    assert_eq!(w.states(job).await, expected);
    assert_eq!(stopped.outputs.len(), 2, "what was done stays");
    assert!(w.claim(10).await.is_empty());
    assert_eq!(w.store.recover(true, 9, LEASE).await.unwrap(), 0);
}

pub(crate) async fn stop_in_each_state(w: World) {
    let w = w.with_limit(1).await;
    let running = w.create(1).await;
    let waiting = w.create(1).await;
    assert_eq!(w.stop(waiting).await, Some(Scheduled));
    assert_eq!(w.stop(running).await, Some(InProgress));
    assert_eq!(w.stop(running).await, Some(Stopped), "again changes nothing");
    let completed = w.run_job(".").await;
    assert_eq!(w.stop(completed).await, Some(Completed));
    let failed = w.run_job("x").await;
    assert_eq!(w.stop(failed).await, Some(Failed));
    let empty = w.create(0).await;
    assert_eq!(w.stop(empty).await, Some(InProgress));
    assert_eq!(w.store.settle(NOW).await.unwrap(), 0);
    assert_eq!(w.stop(JobId::new()).await, None);
    let expected = [Stopped, Stopped, Completed, Failed, Stopped];
    assert_eq!(
        w.statuses(&[waiting, running, completed, failed, empty]).await,
        expected
    );
}

pub(crate) async fn ended_jobs_never_change(w: World) {
    let jobs = [w.run_job(".").await, w.run_job("x").await, w.create(1).await];
    let held = w.claim_one().await;
    w.stop(jobs[2]).await;
    let snapshot = async || {
        let mut all = String::new();
        for job in jobs {
            all += &format!(
                "{:?} {:?} {:?}",
                w.job(job).await,
                w.files(job).await,
                w.events(job).await
            );
        }
        all
    };
    let before = snapshot().await;
    for job in jobs {
        w.stop(job).await;
    }
    assert!(w.claim(10).await.is_empty());
    w.store.recover(true, 1, LEASE + 1).await.unwrap();
    w.store.settle(NOW).await.unwrap();
    w.store.release(held.lease).await.unwrap();
    assert_eq!(w.store.renew(&[held.lease], LEASE).await.unwrap(), [held.lease]);
    assert!(w.store.finish(held.lease, retried(NOW), NOW).await.is_err());
    assert_eq!(snapshot().await, before);
}

pub(crate) async fn finishing_a_stopped_file_is_refused(w: World) {
    let job = w.create(1).await;
    let claim = w.claim_one().await;
    w.stop(job).await;
    for outcome in [succeeded(&claim), failed("late"), retried(NOW)] {
        let result = w.store.finish(claim.lease, outcome, NOW).await;
        assert!(matches!(result, Err(StoreError::LeaseLost)));
    }
    assert!(w.job(job).await.outputs.is_empty(), "no output after the stop");
    assert_eq!(w.events(job).await.len(), 3);
}
