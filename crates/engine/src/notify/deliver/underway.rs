//! Deliveries under way in this process, and signs of life for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use docmill_model::channel::ChannelKind;
use docmill_store::{DeliveryClaim, DeliveryLease};

use crate::clock::now;
use crate::engine::{Engine, micros};

/// The deliveries under way.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    claims: Mutex<HashMap<DeliveryLease, Entry>>,
}

#[derive(Debug)]
struct Entry {
    lane: ChannelKind,
    retry: bool,
}

impl Underway {
    fn lock(&self) -> MutexGuard<'_, HashMap<DeliveryLease, Entry>> {
        // The map is valid between any two statements that touch it, so a panic elsewhere does no harm.
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(&self, lane: ChannelKind, claim: &DeliveryClaim) {
        let retry = claim.attempt > 1;
        self.lock().insert(claim.lease, Entry { lane, retry });
    }

    pub(super) fn end(&self, lease: DeliveryLease) {
        self.lock().remove(&lease);
    }

    /// How many of a lane are not first attempts.
    pub(super) fn retries(&self, lane: ChannelKind) -> u32 {
        let claims = self.lock();
        let retries = claims.values().filter(|entry| entry.retry && entry.lane == lane);
        u32::try_from(retries.count()).unwrap_or(u32::MAX)
    }

    /// Lets all leases run out, as if the process had died; how many.
    #[cfg(test)]
    pub(crate) fn forget_all(&self) -> usize {
        let mut claims = self.lock();
        let count = claims.len();
        claims.clear();
        count
    }

    fn leases(&self) -> Vec<DeliveryLease> {
        self.lock().keys().copied().collect()
    }
}

/// Extends the leases of deliveries under way, takes up those whose server is gone, and wipes codes that
/// have expired.
pub(crate) async fn delivery_lease_loop(engine: Engine) {
    let shared = &engine.shared;
    let lease = shared.notifications.config.lease;
    let mut tick = tokio::time::interval(lease / 3);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = shared.stopped.cancelled() => return,
        }
        let leases = shared.notifications.underway.leases();
        if !leases.is_empty() {
            match shared.store.renew_deliveries(&leases, now() + micros(lease)).await {
                // Its attempt can't be taken back; what comes of it is refused when it ends.
                Ok(lost) => lost
                    .iter()
                    .for_each(|lost| tracing::debug!(delivery.id = %lost.delivery(), "a delivery's lease is lost")),
                Err(error) => tracing::error!(%error, "cannot renew the leases of deliveries"),
            }
        }
        match shared.store.recover_deliveries(false, now()).await {
            Ok(0) => {}
            Ok(deliveries) => {
                tracing::warn!(deliveries, "took up deliveries whose lease had expired");
                shared.notifications.wake();
            }
            Err(error) => tracing::error!(%error, "cannot look for expired leases of deliveries"),
        }
        if let Err(error) = shared.store.expire_codes(now()).await {
            tracing::error!(%error, "cannot wipe expired codes");
        }
    }
}
