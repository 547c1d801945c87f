//! Claims files, runs them, has what came out stored or delivered.

mod delivery;
mod input;
mod paid;
mod patience;

use std::sync::Arc;
use std::time::{Duration, Instant};

use docmill_connectors::ConnectorError;
use docmill_model::Code;
use docmill_model::chain::NodeChain;
use docmill_model::ids::ConnectorId;
use docmill_store::blob::output_key;
use docmill_store::{Claim, FileAction, FileInput, FileOutcome, StoreError};
use futures_util::future::try_join_all;

use crate::budget::Budget;
use crate::clock::now;
use crate::engine::{Engine, micros};
use crate::runner::{RunFailure, RunOutput};
use crate::running::Cancel;
use delivery::Delivery;
use input::{Input, Start};
pub use patience::patiently;

/// Longest time between two looks for files to claim, should a wake-up get lost.
const POLL: Duration = Duration::from_secs(1);

/// Files claimed for each slot: while one runs, others' outputs are being stored and inputs read.
const CLAIMS_PER_SLOT: usize = 4;

/// Pause before a file whose child crashed is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Attempts of a file whose child process crashes.
const CRASH_ATTEMPTS: u32 = 2;

/// Bytes of outputs for each slot that may wait to be stored before no more files are started.
const OUTPUT_BYTES_PER_SLOT: u64 = 64 << 20;

/// What files under way share.
struct Room {
    /// Bytes of inputs: as many as one file of the greatest size for each slot, and one read ahead.
    inputs: Budget,
    /// Bytes of outputs.
    outputs: Budget,
    delivery: Delivery,
}

/// Claims whatever there is room for, until the engine stops.
pub(crate) async fn claim_loop(engine: Engine) {
    let shared = &engine.shared;
    let slots = shared.runner.slots();
    let most = slots * CLAIMS_PER_SLOT;
    let room = Arc::new(Room {
        inputs: Budget::new(shared.config.max_file_bytes.saturating_mul(slots as u64 + 1)),
        outputs: Budget::new(OUTPUT_BYTES_PER_SLOT.saturating_mul(slots as u64)),
        delivery: Delivery::default(),
    });
    loop {
        let free = most.saturating_sub(shared.running.len());
        if free > 0 && !shared.stopping.is_cancelled() {
            let lease_until = now() + micros(shared.config.lease);
            match shared.store.claim(free, lease_until, now()).await {
                Ok(claims) => {
                    if !claims.is_empty() {
                        // Jobs may have started.
                        shared.notifications.wake();
                    }
                    for claim in claims {
                        let cancel = shared.running.start(claim.job, claim.lease);
                        shared
                            .tasks
                            .spawn(run_claim(engine.clone(), claim, cancel, room.clone()));
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

async fn run_claim(engine: Engine, claim: Claim, cancel: Cancel, room: Arc<Room>) {
    let shared = &engine.shared;
    let started = Instant::now();
    let task = Task {
        engine: &engine,
        claim: &claim,
        cancel: &cancel,
        room: &room,
    };
    let outcome = task.process().await;
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
    shared.notifications.wake();
}

/// One claimed file.
struct Task<'a> {
    engine: &'a Engine,
    claim: &'a Claim,
    cancel: &'a Cancel,
    room: &'a Room,
}

impl Task<'_> {
    /// The outcome to record, or `None` when the file was stopped.
    async fn process(&self) -> Option<FileOutcome> {
        if let FileInput::Source {
            action: FileAction::Delete,
            ..
        } = &self.claim.input
        {
            return self.unless_stopped(self.remove()).await;
        }
        let Input { bytes, share, hash } = match self.unless_stopped(self.start()).await? {
            Start::Run(input) => input,
            Start::End(outcome) => return Some(outcome),
        };
        // While outputs fill the memory, nothing is started that makes more of them.
        self.unless_stopped(self.room.outputs.take(1)).await??;
        if self.claim.chain.free() < self.claim.chain.nodes().len() {
            return self.process_paid(Input { bytes, share, hash }).await;
        }
        let result = self.run(bytes, self.claim.chain.clone()).await;
        drop(share);
        match result {
            Ok(output) => self.unless_stopped(self.keep(output, hash)).await,
            Err(failure) => self.run_failed(failure),
        }
    }

    /// The outcome of a file whose child process failed; `None` when it was stopped.
    fn run_failed(&self, failure: RunFailure) -> Option<FileOutcome> {
        match failure {
            RunFailure::Cancelled => None,
            RunFailure::Failed {
                code,
                message,
                retryable: true,
            } => Some(self.retry_or_fail(CRASH_ATTEMPTS, code, message)),
            RunFailure::Failed {
                code,
                message,
                retryable: false,
            } => Some(FileOutcome::Failed { code, message }),
        }
    }

    /// Work that is dropped when the file is stopped.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.cancel.token.cancelled() => None,
            done = work => Some(done),
        }
    }

    async fn run(&self, input: bytes::Bytes, chain: NodeChain) -> Result<RunOutput, RunFailure> {
        let shared = &self.engine.shared;
        let request = input::request(self.claim, chain, &shared.config.parse_limits);
        let (running, file) = (shared.running.clone(), self.claim.lease.file());
        let progress = move |now| running.update(file, |progress| *progress = now);
        shared
            .runner
            .run(request, input, self.cancel.flag.clone(), progress)
            .await
    }

    /// Stores or delivers what came out.
    async fn keep(&self, run: RunOutput, content_hash: Option<String>) -> FileOutcome {
        let bytes: usize = run.outputs.iter().map(bytes::Bytes::len).sum();
        let _share = self.room.outputs.take(bytes as u64).await;
        let (elements, pages) = (run.elements, run.pages);
        let outputs = if self.claim.destinations.is_empty() {
            match self.store_outputs(run.outputs).await {
                Ok(outputs) => outputs,
                Err(error) => return self.storage_failed(&error),
            }
        } else {
            // Only the chain's end goes out.
            let last = run.outputs.into_iter().next_back().unwrap_or_default();
            if let Err((destination, error)) = self.room.delivery.put(self.engine, self.claim, last).await {
                return self.connector_failed(destination, error);
            }
            Vec::new()
        };
        FileOutcome::Succeeded {
            outputs,
            warnings: run.warnings,
            elements,
            pages,
            routes: run.routes,
            content_hash,
        }
    }

    async fn store_outputs(
        &self,
        outputs: Vec<bytes::Bytes>,
    ) -> docmill_store::Result<Vec<(docmill_model::ids::NodeId, u32, String, u64)>> {
        let (claim, blobs) = (self.claim, &self.engine.shared.blobs);
        let nodes = claim.chain.nodes().iter().zip(outputs).zip(0u32..);
        let puts = nodes.map(|((node, bytes), index)| async move {
            let (file, token) = (claim.lease.file(), claim.lease.token());
            let key = output_key(claim.workspace, claim.job, file, token, index);
            let size = bytes.len() as u64;
            blobs.put(&key, bytes).await?;
            docmill_store::Result::Ok((node.id, index, key, size))
        });
        try_join_all(puts).await
    }

    /// Removes a document that is gone from its source from every destination.
    async fn remove(&self) -> FileOutcome {
        match self.room.delivery.delete(self.engine, self.claim).await {
            Ok(()) => FileOutcome::Succeeded {
                outputs: Vec::new(),
                warnings: Vec::new(),
                elements: 0,
                pages: 0,
                routes: Vec::new(),
                content_hash: None,
            },
            Err((destination, error)) => self.connector_failed(destination, error),
        }
    }

    fn connector_failed(&self, connector: ConnectorId, error: ConnectorError) -> FileOutcome {
        tracing::debug!(job.id = %self.claim.job, file.id = %self.claim.lease.file(), connector.id = %connector,
            %error, "a connector failed for a file");
        FileOutcome::Failed {
            code: error.code(),
            message: error.message,
        }
    }

    fn storage_failed(&self, error: &StoreError) -> FileOutcome {
        self.retry_or_fail(u32::MAX, Code::StorageUnavailable, error.to_string())
    }

    fn retry_or_fail(&self, attempts: u32, code: Code, message: String) -> FileOutcome {
        let claim = self.claim;
        if claim.attempt < attempts {
            tracing::warn!(job.id = %claim.job, file.id = %claim.lease.file(), %code, message, "the file will be tried again");
            FileOutcome::Retry {
                not_before: now() + micros(RETRY_PAUSE),
            }
        } else {
            FileOutcome::Failed { code, message }
        }
    }
}
