//! Runs workflows when their schedule says so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use docmill_model::ids::WorkflowId;
use docmill_model::job::JobType;
use docmill_model::time::Micros;
use docmill_store::{DueWorkflow, Firing, ScheduledRun, StoreError};

use crate::clock::now;
use crate::engine::Engine;
use crate::schedule::{ScheduleError, Timetable};
use crate::workflows::run_of;

/// Longest time between two looks at the wall clock, which somebody may set.
const STEP: Duration = Duration::from_secs(1);

/// Workflows fired between two looks.
const BATCH: u32 = 100;

/// Time for which a workflow that can't be fired is left alone, so that others get their turn.
const PENALTY: Duration = Duration::from_secs(30);

/// Fires workflows that are due, until the engine stops.
pub(crate) async fn firing_loop(engine: Engine) {
    let shared = &engine.shared;
    let mut set_aside = HashMap::new();
    loop {
        set_aside.retain(|_, until: &mut Instant| *until > Instant::now());
        let pause = match fire_due(&engine, &mut set_aside, now()).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => until_next(&engine).await,
            Err(error) => {
                tracing::error!(%error, "cannot look for workflows that are due");
                STEP
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.clock_wake.notified() => {}
            () = shared.stopping.cancelled() => return,
        }
    }
}

/// Time to sleep: until the next workflow is due, and never long.
async fn until_next(engine: &Engine) -> Duration {
    match engine.store().next_due().await {
        Ok(Some(at)) => match u64::try_from(at - now()) {
            Ok(wait) if wait > 0 => Duration::from_micros(wait).min(STEP),
            // Only ones that are set aside.
            _ => STEP,
        },
        _ => STEP,
    }
}

/// Fires workflows that are due; whether there may be more.
pub(crate) async fn fire_due(
    engine: &Engine,
    set_aside: &mut HashMap<WorkflowId, Instant>,
    at: Micros,
) -> docmill_store::Result<bool> {
    let max = BATCH.saturating_add(u32::try_from(set_aside.len()).unwrap_or(u32::MAX));
    let due = engine.store().due_workflows(at, max).await?;
    let full = due.len() >= max as usize;
    for due in due
        .into_iter()
        .filter(|due| !set_aside.contains_key(&due.workflow.id))
        .collect::<Vec<_>>()
    {
        let id = due.workflow.id;
        let label = match fire(engine, &due, at).await {
            Ok(Firing::Started) => {
                tracing::info!(workflow.id = %id, "started a run by schedule");
                engine.shared.listing_wake.notify_one();
                engine.shared.wake.notify_one();
                "started"
            }
            Ok(Firing::Skipped) => {
                tracing::info!(workflow.id = %id, "skipped a scheduled run: the last one has not ended");
                "skipped"
            }
            // Changed or fired since it was read: the next look reads it anew.
            Ok(Firing::Stale) => {
                set_aside.insert(id, Instant::now() + STEP);
                "stale"
            }
            Err(error) => {
                tracing::error!(workflow.id = %id, workflow.name = due.workflow.definition.name, "cannot run a workflow that is due: {error}");
                set_aside.insert(id, Instant::now() + PENALTY);
                "failed"
            }
        };
        metrics::counter!("docmill_firings_total", "outcome" => label).increment(1);
    }
    Ok(full)
}

/// Why a workflow that is due is not run.
#[derive(Debug, thiserror::Error)]
enum FireError {
    #[error("its schedule can't be read: {0}")]
    Schedule(#[from] ScheduleError),
    #[error("its nodes can't be run by this version ({0}); it is passed over until its next time")]
    Chain(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Fires one workflow: once for all instants of its schedule that were missed.
async fn fire(engine: &Engine, due: &DueWorkflow, at: Micros) -> Result<Firing, FireError> {
    let (workflow, definition) = (&due.workflow, &due.workflow.definition);
    let (Some(schedule), Some(planned)) = (&definition.schedule, definition.next_fire_at) else {
        return Ok(Firing::Stale);
    };
    let timetable = Timetable::of(schedule)?;
    let next_fire_at = timetable.next_after(at);
    let run = match run_of(engine, &due.principal, workflow, JobType::Scheduled) {
        Ok(job) => ScheduledRun {
            fire_at: timetable.latest_due(planned.saturating_sub(1), at).unwrap_or(planned),
            seen: workflow.updated_at,
            next_fire_at,
            job,
        },
        Err(problems) => {
            // Its time is moved on all the same: it would be due for ever.
            let mut definition = definition.clone();
            definition.next_fire_at = next_fire_at;
            engine
                .store()
                .update_workflow(
                    due.principal.workspace,
                    workflow.id,
                    definition,
                    workflow.updated_at,
                    now(),
                )
                .await?;
            let reasons: Vec<_> = problems.into_iter().map(|problem| problem.msg).collect();
            return Err(FireError::Chain(reasons.join("; ")));
        }
    };
    let firing = engine.store().fire(run, at).await?;
    engine.shared.notifications.wake();
    Ok(firing)
}
