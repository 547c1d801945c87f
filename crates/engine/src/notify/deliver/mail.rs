//! Deliveries by mail.

use docmill_model::channel::{ChannelKind, DeliveryKind};
use docmill_model::ids::DeliveryId;
use docmill_model::time::{Micros, SECOND};
use docmill_notify::{Addressing, DisabledChannel, Mail, Mailbox, Message, SendError, Sent, Stage};
use docmill_store::{Attempt, ChannelTarget, DeliveryClaim, DeliveryLease, DeliveryOutcome, EventSnapshot, Result};

use super::report::{job_report, noticed_channel};
use super::webhook::failed;
use super::{Ended, again, finish};
use crate::clock::now;
use crate::engine::{Engine, micros};
use crate::notify::{codes, unsubscribe};

/// The span in which mails are counted.
const MINUTE: Micros = 60 * SECOND;

/// Most events of one digest. Those beyond come with the next.
const MOST_IN_DIGEST: u32 = 500;

/// What to do with the event that was claimed.
enum Plan {
    /// Its mailbox was sent enough for now.
    Wait { until: Micros },
    /// A mail of its own.
    Alone,
    /// A mail with whatever else waits for the mailbox.
    Digest,
}

/// Makes one attempt and records it, or puts it off when the mailbox was sent enough for now.
pub(super) async fn deliver(engine: &Engine, claim: DeliveryClaim) {
    if claim.kind != DeliveryKind::Event {
        let ended = attempt(engine, &claim, mail(engine, &claim).await).await;
        return finish(engine, ChannelKind::Email, &[claim.lease], claim.created_at, ended).await;
    }
    if let Err(error) = deliver_event(engine, &claim).await {
        // Its lease runs out, and it is attempted again.
        tracing::error!(%error, "cannot read or write what is to be mailed");
    }
}

async fn deliver_event(engine: &Engine, claim: &DeliveryClaim) -> Result<()> {
    let others = match plan(engine, claim).await? {
        Plan::Wait { until } => return put_off(engine, claim, until).await,
        Plan::Alone => Vec::new(),
        Plan::Digest => siblings(engine, claim).await?,
    };
    let leases: Vec<DeliveryLease> = std::iter::once(claim).chain(&others).map(|claim| claim.lease).collect();
    others
        .iter()
        .for_each(|other| engine.shared.notifications.underway.start(ChannelKind::Email, other));
    let ended = attempt(engine, claim, events_mail(engine, claim, &others)).await;
    finish(engine, ChannelKind::Email, &leases, claim.created_at, ended).await;
    others
        .iter()
        .for_each(|other| engine.shared.notifications.underway.end(other.lease));
    Ok(())
}

/// The last mail that a mailbox may get in a minute tells of all that waits for it.
async fn plan(engine: &Engine, claim: &DeliveryClaim) -> Result<Plan> {
    let limit = u64::from(engine.shared.notifications.config.mails_a_minute.max(1));
    let workspace = claim.channel.channel.workspace;
    let mailbox = claim.channel.definition.target.receiver();
    let at = now();
    let sent = engine.store().mails_since(workspace, mailbox, at - MINUTE).await?;
    if sent + 1 < limit {
        return Ok(Plan::Alone);
    }
    if sent < limit {
        return Ok(Plan::Digest);
    }
    // Until enough of those are a minute old.
    for wait in [5, 10, 15, 20, 30, 40, 50].map(|seconds| seconds * SECOND) {
        if engine
            .store()
            .mails_since(workspace, mailbox, at - MINUTE + wait)
            .await?
            < limit
        {
            return Ok(Plan::Wait { until: at + wait });
        }
    }
    Ok(Plan::Wait { until: at + MINUTE })
}

/// Hands back the event and all others that wait for its mailbox.
async fn put_off(engine: &Engine, claim: &DeliveryClaim, until: Micros) -> Result<()> {
    loop {
        let others = claim_others(engine, claim).await?;
        let leases: Vec<DeliveryLease> = others.iter().map(|other| other.lease).collect();
        if leases.is_empty() {
            return engine.store().defer_deliveries(&[claim.lease], until).await;
        }
        engine.store().defer_deliveries(&leases, until).await?;
    }
}

/// What else waits for the mailbox and goes to the same people. The rest is handed back: whoever gets copies
/// of one channel's mails is to see no other's.
async fn siblings(engine: &Engine, claim: &DeliveryClaim) -> Result<Vec<DeliveryClaim>> {
    let others = claim_others(engine, claim).await?;
    let target = &claim.channel.definition.target;
    let (same, rest): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|other| other.channel.definition.target == *target);
    if !rest.is_empty() {
        let rest: Vec<DeliveryLease> = rest.iter().map(|other| other.lease).collect();
        engine.store().defer_deliveries(&rest, 0).await?;
    }
    Ok(same)
}

async fn claim_others(engine: &Engine, claim: &DeliveryClaim) -> Result<Vec<DeliveryClaim>> {
    let at = now();
    let until = at + micros(engine.shared.notifications.config.lease);
    engine
        .store()
        .claim_siblings(claim.lease, MOST_IN_DIGEST - 1, until, at)
        .await
}

/// The link that stops a channel's mails, when the server knows its own address.
fn unsubscribe_link(engine: &Engine, claim: &DeliveryClaim) -> Option<String> {
    let public_url = engine.shared.notifications.config.public_url.as_deref()?;
    Some(unsubscribe::link(engine.vault(), public_url, claim.channel.channel))
}

/// The mail about one event, or about several.
fn events_mail(engine: &Engine, claim: &DeliveryClaim, others: &[DeliveryClaim]) -> Option<Mail> {
    let public_url = engine.shared.notifications.config.public_url.as_deref();
    let report = |claim: &DeliveryClaim| job_report(claim.event.as_ref()?, public_url);
    let reports: Vec<_> = std::iter::once(claim).chain(others).filter_map(report).collect();
    let unsubscribe = unsubscribe_link(engine, claim);
    match reports.as_slice() {
        [] => None,
        [report] => Some(Mail::job(report, unsubscribe.as_deref())),
        reports => Some(Mail::digest(reports, 0, unsubscribe.as_deref())),
    }
}

/// The mail of what is no job's event; `None` when there is nothing to tell.
async fn mail(engine: &Engine, claim: &DeliveryClaim) -> Option<Mail> {
    let config = &engine.shared.notifications.config;
    let channel = &claim.channel;
    let unsubscribe = unsubscribe_link(engine, claim);
    match claim.kind {
        DeliveryKind::Code => {
            let code = codes::open(engine.vault(), channel.channel.id, claim.sealed.as_deref()?)?;
            let minutes = u32::try_from(config.codes.lifetime / MINUTE).unwrap_or(u32::MAX);
            Some(Mail::verification(&code, minutes, config.public_url.as_deref()))
        }
        DeliveryKind::Test => {
            let description = channel.definition.description.as_deref();
            Some(Mail::test(description, unsubscribe.as_deref()))
        }
        DeliveryKind::Notice => notice(engine, claim.event.as_ref()?, unsubscribe.as_deref()).await,
        DeliveryKind::Event => None,
    }
}

async fn notice(engine: &Engine, event: &EventSnapshot, unsubscribe: Option<&str>) -> Option<Mail> {
    let told = noticed_channel(event)?;
    let text = |name: &str| event.payload.get(name).and_then(serde_json::Value::as_str);
    // It may have been deleted since; then its id stands for where it led.
    let channel = engine.store().channel(told).await.ok().flatten();
    let id = told.id.to_string();
    let target = match channel.as_ref().map(|channel| &channel.definition.target) {
        Some(ChannelTarget::Email { recipient, .. }) => recipient,
        Some(ChannelTarget::Webhook { url, .. }) => url,
        None => &id,
    };
    let disabled = DisabledChannel {
        description: text("description"),
        target,
        since: channel
            .as_ref()
            .and_then(|channel| channel.failing_since)
            .unwrap_or(event.created_at),
        failures: None,
        last_error: text("reason").unwrap_or_default(),
    };
    Some(Mail::disabled(&disabled, unsubscribe))
}

/// Addresses a mail and sends it.
async fn attempt(engine: &Engine, claim: &DeliveryClaim, mail: Option<Mail>) -> Ended {
    let started_at = now();
    let Some(mail) = mail else {
        let why = match claim.kind {
            DeliveryKind::Code => "the code can't be decrypted: it was stored under another key",
            _ => "there is nothing to tell",
        };
        return failed(started_at, why, DeliveryOutcome::Failed);
    };
    let message = match message(engine, claim, &mail) {
        Ok(message) => message,
        Err(why) => return failed(started_at, &why, DeliveryOutcome::Failed),
    };
    let sent = engine.shared.notifications.config.mailer.send(&message).await;
    let (status, response, error, outcome) = match sent {
        Ok(sent) => (None, Some(answer(sent)), None, DeliveryOutcome::Delivered),
        Err(error) => refused(claim, error),
    };
    Ended {
        attempt: Attempt {
            started_at,
            duration: now().saturating_sub(started_at).max(0),
            status,
            response,
            error,
        },
        outcome,
    }
}

fn message(engine: &Engine, claim: &DeliveryClaim, mail: &Mail) -> std::result::Result<Message, String> {
    let ChannelTarget::Email {
        recipient,
        cc,
        reply_to,
        ..
    } = &claim.channel.definition.target
    else {
        return Err("the channel has no address".into());
    };
    let read = |text: &String| Mailbox::parse(text).map_err(|error| error.to_string());
    let to = read(recipient)?;
    // A code goes to nobody but the mailbox that is to be verified.
    let alone = claim.kind == DeliveryKind::Code;
    let cc = cc
        .iter()
        .filter(|_| !alone)
        .map(read)
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let reply_to = reply_to.as_ref().filter(|_| !alone).map(read).transpose()?;
    let id: DeliveryId = claim.lease.delivery();
    let addressing = Addressing {
        delivery_id: &id.to_string(),
        date: claim.event.as_ref().map_or(claim.created_at, |event| event.created_at),
        from: &engine.shared.notifications.config.from,
        to: &to,
        cc: &cc,
        reply_to: reply_to.as_ref(),
    };
    mail.address(&addressing).map_err(|error| error.to_string())
}

/// What the server said, with those in copy whom it refused.
fn answer(sent: Sent) -> String {
    let mut answer = sent.answer;
    for refusal in sent.refused {
        answer.push_str(&format!(
            "; no copy to {}: {} {}",
            refusal.address, refusal.smtp_code, refusal.message
        ));
    }
    answer
}

fn refused(claim: &DeliveryClaim, error: SendError) -> (Option<u16>, Option<String>, Option<String>, DeliveryOutcome) {
    let reason = error.message;
    let outcome = match (error.permanent, error.stage) {
        (true, Stage::Recipient) => DeliveryOutcome::Bounced { reason: reason.clone() },
        // It is this mail the server will not have, which says nothing about the address.
        (true, _) => DeliveryOutcome::Failed,
        (false, _) => again(claim, None),
    };
    (error.smtp_code, None, Some(reason), outcome)
}
