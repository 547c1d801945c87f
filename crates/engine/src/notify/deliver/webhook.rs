//! Deliveries to webhooks.

use std::time::Duration;

use docmill_model::channel::{ChannelKind, DeliveryKind};
use docmill_model::time::{Micros, SECOND};
use docmill_notify::{Outcome, WebhookSecret, payload};
use docmill_store::{Attempt, ChannelTarget, DeliveryClaim, DeliveryOutcome};

use super::report::{job_report, notice_payload, test_payload};
use super::{Ended, again, finish};
use crate::clock::now;
use crate::engine::{Engine, micros};
use crate::notify::secrets;

/// Makes one attempt and records it.
pub(super) async fn deliver(engine: &Engine, claim: DeliveryClaim) {
    let ended = attempt(engine, &claim).await;
    finish(engine, ChannelKind::Webhook, &[claim.lease], claim.created_at, ended).await;
}

async fn attempt(engine: &Engine, claim: &DeliveryClaim) -> Ended {
    let started_at = now();
    let ChannelTarget::Webhook { url, secrets, .. } = &claim.channel.definition.target else {
        return failed(started_at, "the channel is no webhook", DeliveryOutcome::Failed);
    };
    let Some(body) = body(engine, claim) else {
        return failed(started_at, "there is nothing to tell", DeliveryOutcome::Failed);
    };
    // What the operator can repair is tried again: a lost key, certificates that can't be read.
    let secrets = match secrets {
        Some(sealed) => secrets::open(engine.vault(), claim.channel.channel.id, sealed, started_at),
        None => Ok(Vec::new()),
    };
    let secrets = match secrets {
        Ok(secrets) => secrets,
        Err(error) => return failed(started_at, &error.to_string(), again(claim, None)),
    };
    let sender = match engine.shared.notifications.webhook_sender() {
        Ok(sender) => sender,
        Err(error) => return failed(started_at, &error.to_string(), again(claim, None)),
    };
    let secrets: Vec<&WebhookSecret> = secrets.iter().collect();
    let id = claim.lease.delivery().to_string();
    let sent = sender.send(url, &id, started_at / SECOND, body.into(), &secrets).await;
    let (error, outcome) = match sent.outcome {
        Outcome::Delivered => (None, DeliveryOutcome::Delivered),
        Outcome::Retry { reason, after } => (Some(reason), again(claim, after)),
        Outcome::Final { reason, gone: true } => (Some(reason.clone()), DeliveryOutcome::Bounced { reason }),
        Outcome::Final { reason, gone: false } => (Some(reason), DeliveryOutcome::Failed),
    };
    Ended {
        attempt: Attempt {
            started_at,
            duration: micros(sent.duration),
            status: sent.status,
            response: Some(sent.first_bytes).filter(|text| !text.is_empty()),
            error,
        },
        outcome,
    }
}

fn body(engine: &Engine, claim: &DeliveryClaim) -> Option<Vec<u8>> {
    let public_url = engine.shared.notifications.config.public_url.as_deref();
    match claim.kind {
        DeliveryKind::Event => Some(payload(&job_report(claim.event.as_ref()?, public_url)?)),
        DeliveryKind::Notice => Some(notice_payload(claim.event.as_ref()?)),
        DeliveryKind::Test => Some(test_payload(claim.channel.channel, claim.created_at)),
        DeliveryKind::Code => None,
    }
}

/// An attempt that never reached the network.
pub(super) fn failed(started_at: Micros, error: &str, outcome: DeliveryOutcome) -> Ended {
    Ended {
        attempt: Attempt {
            started_at,
            duration: micros(Duration::ZERO),
            status: None,
            response: None,
            error: Some(error.to_owned()),
        },
        outcome,
    }
}
