//! Short words for tests of channels and what is sent to them.

use docmill_model::channel::{ChannelId, ChannelKind, ChannelScope};
use docmill_model::ids::{JobId, WorkflowId};
use docmill_model::job::EventType;
use docmill_model::time::{Micros, SECOND};

use super::World;
use super::world::{LEASE, NOW};
use crate::{
    Attempt, Channel, ChannelCreation, ChannelDefinition, ChannelRef, ChannelTarget, CodeHash, CodeIssue, CodeLimits,
    CodeTry, Delivery, DeliveryClaim, DeliveryFilter, DeliveryFinish, DeliveryOutcome, DeliveryQuery, InboxFilter,
    NewChannel, NewCode, Notification,
};

pub(crate) const LIMITS: CodeLimits = CodeLimits {
    lifetime: 600 * SECOND,
    tries: 5,
    cool_down: 60 * SECOND,
    codes_a_day: 10,
    workspace_codes_a_day: 200,
    wrong_a_day: 10,
};

/// Channels a scope may have in tests.
pub(crate) const MAX: u32 = 50;

/// A code that is told from others by a number.
pub(crate) fn code(n: u8) -> NewCode {
    NewCode {
        hash: hash(n),
        sealed: vec![n; 40],
    }
}

pub(crate) fn hash(n: u8) -> CodeHash {
    CodeHash([n; 32])
}

pub(crate) fn mail_to(recipient: &str, events: &[EventType]) -> ChannelDefinition {
    ChannelDefinition {
        description: Some("mail".into()),
        events: events.to_vec(),
        wanted: true,
        target: ChannelTarget::Email {
            recipient: recipient.into(),
            mailbox: recipient.to_lowercase(),
            cc: vec!["copy@example.org".into()],
            reply_to: Some("answers@example.org".into()),
        },
    }
}

pub(crate) fn hook_at(host: &str, events: &[EventType]) -> ChannelDefinition {
    ChannelDefinition {
        description: None,
        events: events.to_vec(),
        wanted: true,
        target: ChannelTarget::Webhook {
            url: format!("https://{host}/hook"),
            host: host.into(),
            secrets: Some(b"encrypted".to_vec()),
        },
    }
}

pub(crate) fn attempt(error: Option<&str>, status: u16) -> Attempt {
    Attempt {
        started_at: NOW,
        duration: 1_500,
        status: Some(status),
        response: Some("answer".into()),
        error: error.map(Into::into),
    }
}

pub(crate) fn query(lane: ChannelKind, max: u32) -> DeliveryQuery {
    DeliveryQuery {
        lane,
        max,
        max_retries: max,
        per_receiver: u32::MAX,
        lease_until: LEASE,
    }
}

impl World {
    pub(crate) fn in_workspace(&self) -> ChannelRef {
        ChannelRef {
            workspace: self.workspace,
            scope: ChannelScope::Workspace,
            id: ChannelId::new(),
        }
    }

    pub(crate) fn of_workflow(&self, workflow: WorkflowId) -> ChannelRef {
        ChannelRef {
            scope: ChannelScope::Workflow(workflow),
            ..self.in_workspace()
        }
    }

    pub(crate) async fn try_create(&self, channel: ChannelRef, definition: ChannelDefinition) -> ChannelCreation {
        let new = NewChannel {
            channel,
            definition,
            code: Some(code(1)),
        };
        self.store.create_channel(new, MAX, LIMITS, NOW).await.unwrap()
    }

    /// Creates a channel; its code is 1.
    pub(crate) async fn channel_at(&self, channel: ChannelRef, definition: ChannelDefinition) -> ChannelRef {
        match self.try_create(channel, definition).await {
            ChannelCreation::Created(created) => created.channel,
            refused => panic!("{refused:?}"),
        }
    }

    pub(crate) async fn hook(&self, host: &str, events: &[EventType]) -> ChannelRef {
        self.channel_at(self.in_workspace(), hook_at(host, events)).await
    }

    pub(crate) async fn unverified(&self, recipient: &str, events: &[EventType]) -> ChannelRef {
        self.channel_at(self.in_workspace(), mail_to(recipient, events)).await
    }

    /// A verified mail channel whose code's mail is out.
    pub(crate) async fn mail(&self, recipient: &str, events: &[EventType]) -> ChannelRef {
        let channel = self.unverified(recipient, events).await;
        assert_eq!(self.try_code(channel, 1, NOW).await, CodeTry::Verified);
        channel
    }

    pub(crate) async fn read_channel(&self, channel: ChannelRef) -> Channel {
        self.store.channel(channel).await.unwrap().unwrap()
    }

    pub(crate) async fn try_code(&self, channel: ChannelRef, n: u8, now: Micros) -> CodeTry {
        let tried = self.store.try_code(channel, hash(n), LIMITS, now).await;
        tried.unwrap().unwrap()
    }

    pub(crate) async fn issue(&self, channel: ChannelRef, n: u8, now: Micros) -> CodeIssue {
        let issued = self.store.issue_code(channel, code(n), LIMITS, now).await;
        issued.unwrap().unwrap()
    }

    /// Claims everything due in a lane.
    pub(crate) async fn to_send(&self, lane: ChannelKind) -> Vec<DeliveryClaim> {
        self.to_send_at(lane, NOW).await
    }

    pub(crate) async fn to_send_at(&self, lane: ChannelKind, now: Micros) -> Vec<DeliveryClaim> {
        self.store.claim_deliveries(query(lane, 1_000), now).await.unwrap()
    }

    pub(crate) async fn end(&self, claim: &DeliveryClaim, outcome: DeliveryOutcome) -> DeliveryFinish {
        let leases = [claim.lease];
        let error = (outcome != DeliveryOutcome::Delivered).then_some("it failed");
        let done = self
            .store
            .finish_deliveries(&leases, attempt(error, 200), outcome, None, NOW);
        done.await.unwrap()
    }

    /// Runs a job of one file to its end.
    pub(crate) async fn run_one(&self) -> JobId {
        let job = self.create(1).await;
        self.run_all().await;
        job
    }

    pub(crate) async fn log(&self, channel: ChannelRef) -> Vec<Delivery> {
        let filter = DeliveryFilter {
            limit: 100,
            ..DeliveryFilter::default()
        };
        self.store.deliveries(channel, filter).await.unwrap().unwrap()
    }

    pub(crate) async fn inbox(&self) -> Vec<Notification> {
        let filter = InboxFilter {
            limit: 1_000,
            ..InboxFilter::default()
        };
        self.store.notifications(self.workspace, &filter).await.unwrap()
    }
}
