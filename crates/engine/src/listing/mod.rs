//! Finds out the files of runs: sources are listed page by page, no faster than the files are worked on.

mod lister;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use docmill_model::ids::JobId;
use docmill_model::time::{Micros, SECOND};
use docmill_store::{ListingClaim, ListingLease, ListingOutcome, StoreError};
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::engine::{Engine, micros};
use lister::{End, Lister};

/// Longest time between two looks for runs to list, should a wake-up get lost.
const POLL: Duration = Duration::from_secs(1);

/// Runs listed at once. Each costs a page of objects and an open request; most of the time it waits.
const AT_ONCE: usize = 64;

/// Pauses before a listing that could not go on is tried again. After the last it has failed.
const PAUSES: [Micros; 3] = [SECOND, 5 * SECOND, 20 * SECOND];

/// The runs being listed by this process.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    runs: Mutex<HashMap<JobId, (ListingLease, CancellationToken)>>,
}

impl Listings {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, (ListingLease, CancellationToken)>> {
        // The map is valid between any two statements that touch it, so a panic elsewhere does no harm.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, lease: ListingLease) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.lock().insert(lease.job(), (lease, cancel.clone()));
        cancel
    }

    fn end(&self, lease: ListingLease) {
        let mut runs = self.lock();
        if runs.get(&lease.job()).is_some_and(|(held, _)| *held == lease) {
            runs.remove(&lease.job());
        }
    }

    pub(crate) fn cancel(&self, job: JobId) {
        if let Some((_, cancel)) = self.lock().get(&job) {
            cancel.cancel();
        }
    }

    pub(crate) fn cancel_lease(&self, lease: ListingLease) {
        if let Some((_, cancel)) = self.lock().get(&lease.job()).filter(|(held, _)| *held == lease) {
            cancel.cancel();
        }
    }

    pub(crate) fn leases(&self) -> Vec<ListingLease> {
        self.lock().values().map(|(lease, _)| *lease).collect()
    }

    fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Claims runs to list, until the engine stops.
pub(crate) async fn listing_loop(engine: Engine) {
    let shared = &engine.shared;
    loop {
        let free = AT_ONCE.saturating_sub(shared.listings.len());
        if free > 0 && !shared.stopping.is_cancelled() {
            let lease_until = now() + micros(shared.config.lease);
            match shared.store.claim_listings(free, lease_until, now()).await {
                Ok(claims) => {
                    for claim in claims {
                        let cancel = shared.listings.start(claim.lease);
                        shared.tasks.spawn(list_run(engine.clone(), claim, cancel));
                    }
                }
                Err(error) => tracing::error!(%error, "cannot claim runs to list"),
            }
        }
        tokio::select! {
            () = shared.listing_wake.notified() => {}
            () = tokio::time::sleep(POLL) => {}
            () = shared.stopping.cancelled() => return,
        }
    }
}

async fn list_run(engine: Engine, claim: ListingClaim, cancel: CancellationToken) {
    let shared = &engine.shared;
    let (lease, job) = (claim.lease, claim.lease.job());
    let mut lister = Lister::new(&engine, &claim);
    let end = tokio::select! {
        end = lister.run() => Some(end),
        // The job was stopped, or the server stops.
        () = cancel.cancelled() => None,
        () = shared.stopping.cancelled() => None,
    };
    // What was tried in vain before the listing came further does not count against it.
    let attempt = if lister.came_further() { 1 } else { claim.attempt };
    let outcome = match end {
        None | Some(Err(End::Lost)) => None,
        Some(Ok(())) => Some(ListingOutcome::Complete),
        Some(Err(End::Failed(reason))) => Some(ListingOutcome::Failed(reason)),
        Some(Err(End::Broken(reason))) => {
            let pause = usize::try_from(attempt)
                .ok()
                .and_then(|n| PAUSES.get(n.saturating_sub(1)));
            Some(match pause {
                Some(pause) => {
                    tracing::warn!(job.id = %job, attempt, reason, "a listing broke off and will be tried again");
                    ListingOutcome::Retry(now() + pause)
                }
                None => ListingOutcome::Failed(reason),
            })
        }
    };
    let label = match &outcome {
        None => "released",
        Some(ListingOutcome::Complete) => "complete",
        Some(ListingOutcome::Retry(_)) => "retried",
        Some(ListingOutcome::Failed(reason)) => {
            tracing::warn!(job.id = %job, reason, "the sources of a run could not be listed to the end");
            "failed"
        }
    };
    metrics::counter!("docmill_listings_total", "outcome" => label).increment(1);
    let result = match outcome {
        Some(outcome) => shared.store.finish_listing(lease, outcome, now()).await,
        // Either the job was stopped, and this changes nothing, or the next start goes on.
        None => shared.store.release_listing(lease).await,
    };
    match result {
        Ok(()) => tracing::debug!(job.id = %job, outcome = label, listed = lister.listed(), "listing ended"),
        Err(StoreError::LeaseLost) => tracing::debug!(job.id = %job, "the listing is not ours any more"),
        // The lease expires, and the listing goes on.
        Err(error) => tracing::error!(%error, job.id = %job, "cannot record a listing's end"),
    }
    shared.listings.end(lease);
    // Files to remove may have been added, and there is room for another listing.
    shared.wake.notify_one();
    shared.listing_wake.notify_one();
    shared.notifications.wake();
}
