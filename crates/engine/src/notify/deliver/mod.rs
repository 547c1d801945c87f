//! The deliverer: sends what the outbox holds, mails and webhooks in lanes of their own.
//!
//! A delivery is claimed under a lease and attempted; what came of it is recorded with the lease's token.
//! A server that dies in between leaves a lease that runs out, and the delivery is attempted again under
//! the same id, by which receivers know it.

mod mail;
mod report;
mod underway;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use docmill_model::channel::{ChannelKind, DeliveryKind};
use docmill_model::time::Micros;
use docmill_notify::retry_delay;
use docmill_store::{Attempt, DeliveryClaim, DeliveryLease, DeliveryOutcome, DeliveryQuery, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
pub(crate) use underway::{Underway, delivery_lease_loop};

use crate::clock::now;
use crate::engine::{Engine, micros};

/// Longest time without a look at the outbox, which others may have filled.
const POLL: Duration = Duration::from_millis(500);

/// Shortest time between two looks when the first found nothing: whatever may have recorded an event wakes
/// the lanes, and files can end by the hundred in a second.
const CALM: Duration = Duration::from_millis(5);

/// What one attempt came to, for one delivery or for all of a digest.
struct Ended {
    attempt: Attempt,
    outcome: DeliveryOutcome,
}

/// Sends one lane's deliveries until the server stops.
pub(crate) async fn lane_loop(engine: Engine, lane: ChannelKind) {
    let notifications = &engine.shared.notifications;
    let config = &notifications.config;
    let (slots, per_receiver) = match lane {
        // One at a time to a mailbox, so that what waits meanwhile can be counted and told together.
        ChannelKind::Email => (config.mails_at_once, 1),
        ChannelKind::Webhook => (config.webhooks_at_once, config.webhooks_per_host),
    };
    let lane = Lane {
        kind: lane,
        slots: Arc::new(Semaphore::new(slots as usize)),
        // Retries never hold all slots, so that there is one for a first attempt.
        most_retries: (slots / 2).max(1),
        per_receiver,
    };
    while !engine.shared.stopping.is_cancelled() {
        let pause = match lane.claim(&engine).await {
            Ok(Some(pause)) => pause,
            Ok(None) => continue,
            Err(error) => {
                tracing::error!(%error, lane = lane.kind.as_str(), "cannot claim deliveries");
                POLL
            }
        };
        tokio::select! {
            () = notifications.lane_wake(lane.kind).notified() => tokio::time::sleep(CALM.min(pause)).await,
            () = tokio::time::sleep(pause) => {}
            () = engine.shared.stopping.cancelled() => {}
        }
    }
}

struct Lane {
    kind: ChannelKind,
    slots: Arc<Semaphore>,
    most_retries: u32,
    per_receiver: u32,
}

impl Lane {
    /// Claims what is due and starts to send it; how long to wait for more, or `None` when there may be more
    /// now.
    async fn claim(&self, engine: &Engine) -> docmill_store::Result<Option<Duration>> {
        let shared = &engine.shared;
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        if free == 0 {
            return Ok(Some(POLL));
        }
        // A look costs less than a claim, which is a write.
        let at = now();
        match shared.store.next_delivery(self.kind).await? {
            None => return Ok(Some(POLL)),
            Some(next) if next > at => {
                let wait = Duration::from_micros(next.abs_diff(at));
                return Ok(Some(wait.min(POLL)));
            }
            Some(_) => {}
        }
        let query = DeliveryQuery {
            lane: self.kind,
            max: free,
            max_retries: self
                .most_retries
                .saturating_sub(shared.notifications.underway.retries(self.kind)),
            per_receiver: self.per_receiver,
            lease_until: at + micros(shared.notifications.config.lease),
        };
        let claims = shared.store.claim_deliveries(query, at).await?;
        if claims.is_empty() {
            // What is due waits for another delivery to its receiver to end, which wakes this loop.
            return Ok(Some(POLL));
        }
        for claim in claims {
            // There are as many permits as were asked for, as only this loop takes them.
            let Ok(permit) = self.slots.clone().acquire_owned().await else {
                return Ok(Some(POLL));
            };
            shared.notifications.underway.start(self.kind, &claim);
            shared.tasks.spawn(deliver(engine.clone(), self.kind, claim, permit));
        }
        Ok(None)
    }
}

/// Makes one attempt and records it.
async fn deliver(engine: Engine, lane: ChannelKind, claim: DeliveryClaim, permit: OwnedSemaphorePermit) {
    let notifications = &engine.shared.notifications;
    let lease = claim.lease;
    let work = async {
        match lane {
            ChannelKind::Email => mail::deliver(&engine, claim).await,
            ChannelKind::Webhook => webhook::deliver(&engine, claim).await,
        }
    };
    tokio::select! {
        () = work => {}
        // Handed back, to be attempted again under the same id. Whether it has arrived nobody knows.
        () = engine.shared.stopped.cancelled() => {
            if let Err(error) = engine.store().defer_deliveries(&[lease], 0).await {
                tracing::warn!(%error, delivery.id = %lease.delivery(), "cannot hand a delivery back now");
            }
        }
    }
    notifications.underway.end(lease);
    drop(permit);
    notifications.lane_wake(lane).notify_one();
}

/// Records what an attempt came to.
async fn finish(engine: &Engine, lane: ChannelKind, leases: &[DeliveryLease], created_at: Micros, ended: Ended) {
    let config = &engine.shared.notifications.config;
    let at = now();
    let label = match &ended.outcome {
        DeliveryOutcome::Delivered => "delivered",
        DeliveryOutcome::Retry { .. } => "retry",
        DeliveryOutcome::Failed => "failed",
        DeliveryOutcome::Bounced { .. } => "bounced",
    };
    metrics::counter!("docmill_delivery_attempts_total", "lane" => lane.as_str(), "outcome" => label).increment(1);
    if ended.outcome == DeliveryOutcome::Delivered {
        let took = at.saturating_sub(created_at).max(0) as f64 / 1e6;
        metrics::histogram!("docmill_delivery_seconds", "lane" => lane.as_str()).record(took);
    } else if let Some(lease) = leases.first() {
        tracing::info!(delivery.id = %lease.delivery(), lane = lane.as_str(), outcome = label,
            status = ended.attempt.status, reason = ended.attempt.error.as_deref(), "a delivery did not get through");
    }
    let disable_after = (lane == ChannelKind::Webhook).then(|| micros(config.disable_after));
    let finished = engine
        .store()
        .finish_deliveries(leases, ended.attempt, ended.outcome, disable_after, at);
    match finished.await {
        Ok(done) if done.disabled => {
            tracing::warn!(
                lane = lane.as_str(),
                "a channel was disabled as nothing gets through to it"
            );
            engine.shared.notifications.wake();
        }
        Ok(_) => {}
        Err(StoreError::LeaseLost) => {
            tracing::debug!("a delivery that took long was given to another, or cancelled");
        }
        // It is attempted again once its lease is over, under the same id.
        Err(error) => tracing::error!(%error, "cannot record what came of a delivery"),
    }
}

/// What a failed attempt means for its delivery: it is tried again by the schedule, not before `asked` (a
/// wait that the receiver asked for) is over, until the schedule ends.
fn again(claim: &DeliveryClaim, asked: Option<Duration>) -> DeliveryOutcome {
    /// A person waits for a code.
    const CODE_GAP: Duration = Duration::from_secs(20);
    let scheduled = match claim.kind {
        // Whoever asked for a test looks at what comes of it, and may ask for another.
        DeliveryKind::Test => None,
        DeliveryKind::Code => retry_delay(claim.attempt.min(2), rand::random()).map(|delay| delay.min(CODE_GAP)),
        DeliveryKind::Event | DeliveryKind::Notice => retry_delay(claim.attempt, rand::random()),
    };
    match scheduled {
        Some(delay) => DeliveryOutcome::Retry {
            not_before: now() + micros(delay.max(asked.unwrap_or_default())),
        },
        None => DeliveryOutcome::Failed,
    }
}
