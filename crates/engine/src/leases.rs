//! Signs of life: what this process works on stays its own, and what a dead one left is taken up.

use crate::clock::now;
use crate::engine::{Engine, micros};

/// Extends the leases of the files and listings under way, and takes up files whose server is gone.
pub(crate) async fn lease_loop(engine: Engine) {
    let shared = &engine.shared;
    let mut tick = tokio::time::interval(shared.config.lease / 3);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = shared.stopped.cancelled() => return,
        }
        renew(&engine).await;
        match shared.store.recover(false, shared.config.max_attempts, now()).await {
            Ok(0) => {}
            Ok(files) => {
                tracing::warn!(files, "took up files whose lease had expired");
                shared.wake.notify_one();
                shared.notifications.wake();
            }
            Err(error) => tracing::error!(%error, "cannot look for expired leases"),
        }
        if let Err(error) = shared.store.settle(now()).await {
            tracing::error!(%error, "cannot end jobs without files left");
        }
        shared.connections.drop_idle();
    }
}

async fn renew(engine: &Engine) {
    let shared = &engine.shared;
    let leases = shared.running.leases();
    if !leases.is_empty() {
        match shared.store.renew(&leases, now() + micros(shared.config.lease)).await {
            Ok(lost) => lost.into_iter().for_each(|lease| shared.running.cancel_lease(lease)),
            Err(error) => tracing::error!(%error, "cannot renew leases"),
        }
    }
    let listings = shared.listings.leases();
    if !listings.is_empty() {
        let until = now() + micros(shared.config.lease);
        match shared.store.renew_listings(&listings, until).await {
            Ok(lost) => lost.into_iter().for_each(|lease| shared.listings.cancel_lease(lease)),
            Err(error) => tracing::error!(%error, "cannot renew the leases of listings"),
        }
    }
}
