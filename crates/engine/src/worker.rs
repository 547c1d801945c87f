//! Claims files, runs them, stores what came out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_model::Code;
use docmill_sandbox::CancelFlag;
use docmill_store::blob::output_key;
use docmill_store::{Claim, FileOutcome, StoreError};
use futures_util::future::try_join_all;
use tokio::sync::Semaphore;

use crate::clock::now;
use crate::engine::{Engine, micros};
use crate::protocol::TaskRequest;
use crate::runner::{RunFailure, RunOutput};

/// Longest time between two looks for files to claim, should a wake-up get lost.
const POLL: Duration = Duration::from_secs(1);

/// Files claimed for each slot: while one runs, others' outputs are being stored and inputs read.
const CLAIMS_PER_SLOT: usize = 4;

/// Pause before a file whose child crashed is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Attempts of a file whose child process crashes.
const CRASH_ATTEMPTS: u32 = 2;

/// Claims whatever there is room for, until the engine stops.
pub(crate) async fn claim_loop(engine: Engine) {
    let shared = &engine.shared;
    let room = shared.runner.slots() * CLAIMS_PER_SLOT;
    // Inputs in memory at once: one for each slot, and one read ahead.
    let inputs = Arc::new(Semaphore::new(shared.runner.slots() + 1));
    loop {
        let free = room.saturating_sub(shared.running.len());
        if free > 0 && !shared.stopping.is_cancelled() {
            let lease_until = now() + micros(shared.config.lease);
            match shared.store.claim(free, lease_until, now()).await {
                Ok(claims) => {
                    for claim in claims {
                        let cancel = shared.running.start(claim.job, claim.lease);
                        shared
                            .tasks
                            .spawn(run_claim(engine.clone(), claim, cancel, inputs.clone()));
                    }
                }
                Err(error) => tracing::error!(%error, "cannot claim files"),
            }
        }
        tokio::select! {
            () = shared.wake.notified() => {}
            () = tokio::time::sleep(POLL) => {}
            () = shared.stopping.cancelled() => return,
        }
    }
}

/// Extends the leases of the files under way, and takes up those whose server is gone.
pub(crate) async fn lease_loop(engine: Engine) {
    let shared = &engine.shared;
    let mut tick = tokio::time::interval(shared.config.lease / 3);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = shared.stopped.cancelled() => return,
        }
        let leases = shared.running.leases();
        if !leases.is_empty() {
            match shared.store.renew(&leases, now() + micros(shared.config.lease)).await {
                Ok(lost) => {
                    for lease in lost {
                        shared.running.cancel_lease(lease);
                    }
                }
                Err(error) => tracing::error!(%error, "cannot renew leases"),
            }
        }
        match shared.store.recover(false, shared.config.max_attempts, now()).await {
            Ok(0) => {}
            Ok(files) => {
                tracing::warn!(files, "took up files whose lease had expired");
                shared.wake.notify_one();
            }
            Err(error) => tracing::error!(%error, "cannot look for expired leases"),
        }
        if let Err(error) = shared.store.settle(now()).await {
            tracing::error!(%error, "cannot end jobs without files left");
        }
    }
}

async fn run_claim(engine: Engine, claim: Claim, cancel: CancelFlag, inputs: Arc<Semaphore>) {
    let shared = &engine.shared;
    let started = Instant::now();
    let outcome = process(&engine, &claim, &cancel, &inputs).await;
    let label = match &outcome {
        Some(FileOutcome::Succeeded { .. }) => "succeeded",
        Some(FileOutcome::Failed { .. }) => "failed",
        Some(FileOutcome::Retry { .. }) => "retried",
        None => "stopped",
    };
    let result = match outcome {
        Some(outcome) => shared.store.finish(claim.lease, outcome, now()).await,
        // Either the job was stopped, and this changes nothing, or the server is stopping.
        None => shared.store.release(claim.lease).await,
    };
    match result {
        Ok(()) => {
            metrics::counter!("docmill_files_total", "outcome" => label).increment(1);
            metrics::histogram!("docmill_file_seconds").record(started.elapsed().as_secs_f64());
            tracing::debug!(job.id = %claim.job, file.id = %claim.lease.file(), outcome = label,
                duration_ms = started.elapsed().as_millis() as u64, "file ended");
        }
        Err(StoreError::LeaseLost) => {
            metrics::counter!("docmill_lease_losses_total").increment(1);
            tracing::info!(job.id = %claim.job, file.id = %claim.lease.file(), "result dropped: the file is not ours any more");
        }
        // The lease expires, and the file is run again.
        Err(error) => {
            tracing::error!(%error, job.id = %claim.job, file.id = %claim.lease.file(), "cannot record a file's end")
        }
    }
    shared.running.end(claim.lease);
    shared.wake.notify_one();
}

/// The outcome to record, or `None` when the file was stopped.
async fn process(engine: &Engine, claim: &Claim, cancel: &CancelFlag, inputs: &Semaphore) -> Option<FileOutcome> {
    let shared = &engine.shared;
    let result = {
        let _permit = inputs.acquire().await.ok()?;
        if cancel.is_cancelled() {
            return None;
        }
        let input = match shared.blobs.get(&claim.blob_key).await {
            Ok(input) => input,
            Err(StoreError::BlobMissing(_)) => {
                return Some(FileOutcome::Failed {
                    code: Code::Internal,
                    message: "the uploaded file is not in the blob store any more".into(),
                });
            }
            Err(error) => {
                return Some(retry_or_fail(
                    claim,
                    u32::MAX,
                    Code::StorageUnavailable,
                    error.to_string(),
                ));
            }
        };
        let request = TaskRequest {
            filename: Some(claim.name.clone()),
            content_type: claim.content_type.clone(),
            chain: claim.chain.clone(),
            limits: shared.config.parse_limits.clone(),
            scope: claim.lease.file().to_string(),
            last_modified: None,
            file_directory: None,
        };
        let (running, file) = (shared.running.clone(), claim.lease.file());
        let progress = move |now| running.update(file, |progress| *progress = now);
        shared.runner.run(request, input, cancel.clone(), progress).await
    };
    match result {
        Ok(output) => match store_outputs(engine, claim, output).await {
            Ok(outcome) => Some(outcome),
            Err(error) => Some(retry_or_fail(
                claim,
                u32::MAX,
                Code::StorageUnavailable,
                error.to_string(),
            )),
        },
        Err(RunFailure::Cancelled) => None,
        Err(RunFailure::Failed {
            code,
            message,
            retryable: true,
        }) => Some(retry_or_fail(claim, CRASH_ATTEMPTS, code, message)),
        Err(RunFailure::Failed {
            code,
            message,
            retryable: false,
        }) => Some(FileOutcome::Failed { code, message }),
    }
}

fn retry_or_fail(claim: &Claim, attempts: u32, code: Code, message: String) -> FileOutcome {
    if claim.attempt < attempts {
        tracing::warn!(job.id = %claim.job, file.id = %claim.lease.file(), %code, message, "the file will be tried again");
        FileOutcome::Retry {
            not_before: now() + micros(RETRY_PAUSE),
        }
    } else {
        FileOutcome::Failed { code, message }
    }
}

async fn store_outputs(engine: &Engine, claim: &Claim, run: RunOutput) -> docmill_store::Result<FileOutcome> {
    let blobs = &engine.shared.blobs;
    let nodes = claim.chain.nodes().iter().zip(run.outputs).zip(0u32..);
    let puts = nodes.map(|((node, bytes), index)| async move {
        let key = output_key(
            claim.workspace,
            claim.job,
            claim.lease.file(),
            claim.lease.token(),
            index,
        );
        let size = bytes.len() as u64;
        blobs.put(&key, bytes).await?;
        docmill_store::Result::Ok((node.id, index, key, size))
    });
    let outputs = try_join_all(puts).await?;
    Ok(FileOutcome::Succeeded {
        outputs,
        warnings: run.warnings,
        elements: run.elements,
        pages: run.pages,
    })
}
