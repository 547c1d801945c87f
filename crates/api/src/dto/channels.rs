//! Notification channels, and what was sent to them.

use docmill_model::channel::ChannelKind;
use docmill_model::time::iso8601;
use docmill_store::{Attempt, Channel, ChannelTarget, Delivery};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A notification channel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelInformation {
    /// Id: `ep_` and 28 letters or digits.
    id: String,
    /// `email` or `webhook`.
    channel_type: String,
    /// Free text.
    description: Option<String>,
    /// What it is told of.
    event_types: Vec<String>,
    /// Whether it is told: it is wanted, and its mailbox is verified. False until a new mail channel is verified.
    enabled: bool,
    /// Whether its mailbox is verified; a webhook is from the start.
    verified: bool,
    /// A mail channel's addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    email_config: Option<EmailInformation>,
    /// A webhook's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Whether a webhook's requests are signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed: Option<bool>,
    /// Only in the answer that creates a webhook without a secret of its own: the one that was made. It can't be
    /// read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// Why the server disabled it; null unless it did.
    disabled_reason: Option<String>,
    /// When the server disabled it.
    #[schema(format = "date-time")]
    disabled_at: Option<String>,
    /// How its receiver refused for good; null unless it did.
    bounced_reason: Option<String>,
    /// When its receiver refused for good.
    #[schema(format = "date-time")]
    bounced_at: Option<String>,
    /// Since when nothing got through; null when the last attempt did.
    #[schema(format = "date-time")]
    failing_since: Option<String>,
    /// When it was created.
    #[schema(format = "date-time")]
    created_at: String,
    /// When it was last changed.
    #[schema(format = "date-time")]
    updated_at: String,
}

/// Addresses of a mail channel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmailInformation {
    /// Whom mails go to.
    recipient_email: String,
    /// What mails leave by: `smtp`, or `file` while no mail server is set. Read-only.
    provider: &'static str,
    /// Who gets copies of mails about events.
    cc: Vec<String>,
    /// Where answers go.
    reply_to: Option<String>,
}

impl ChannelInformation {
    /// The channel as clients see it.
    pub(crate) fn new(channel: Channel, mails_are_files: bool) -> Self {
        let enabled = channel.enabled();
        let definition = channel.definition;
        let kind = definition.target.kind();
        let (email_config, url, signed) = match definition.target {
            ChannelTarget::Email {
                recipient,
                cc,
                reply_to,
                ..
            } => {
                let email = EmailInformation {
                    recipient_email: recipient,
                    provider: if mails_are_files { "file" } else { "smtp" },
                    cc,
                    reply_to,
                };
                (Some(email), None, None)
            }
            ChannelTarget::Webhook { url, secrets, .. } => (None, Some(url), Some(secrets.is_some())),
        };
        let (disabled_at, disabled_reason) = channel.disabled.unzip();
        let (bounced_at, bounced_reason) = channel.bounced.unzip();
        Self {
            id: channel.channel.id.to_string(),
            channel_type: kind.to_string(),
            description: definition.description,
            event_types: definition.events.iter().map(ToString::to_string).collect(),
            enabled,
            verified: channel.verified_at.is_some(),
            email_config,
            url,
            signed,
            secret: None,
            disabled_reason,
            disabled_at: disabled_at.map(iso8601),
            bounced_reason,
            bounced_at: bounced_at.map(iso8601),
            failing_since: channel.failing_since.map(iso8601),
            created_at: iso8601(channel.created_at),
            updated_at: iso8601(channel.updated_at),
        }
    }

    /// The same with a secret to be shown this once.
    pub(crate) fn with_secret(self, secret: Option<String>) -> Self {
        Self { secret, ..self }
    }
}

/// The channels of a scope.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelList {
    /// All of them, oldest first.
    pub(crate) items: Vec<ChannelInformation>,
}

/// A channel to create. `email_config` belongs to mail channels; `url` and `secret` to webhooks.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({
    "channel_type": "email", "description": "People on call", "event_types": ["job.completed", "job.failed"],
    "email_config": {"recipient_email": "ana@example.org"},
})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct CreateChannel {
    /// `email` or `webhook`.
    #[schema(value_type = String)]
    channel_type: ChannelKind,
    /// Free text of at most 255 characters.
    #[schema(max_length = 255)]
    description: Option<String>,
    /// At least one of `job.scheduled`, `job.in_progress`, `job.progress`, `job.completed`, `job.stopped` and
    /// `job.failed`.
    #[schema(min_items = 1)]
    event_types: Vec<String>,
    /// Whether it is to be told; true by default. A mail channel is told nothing before it is verified all the same.
    enabled: Option<bool>,
    /// Addresses; needed for mail channels.
    email_config: Option<EmailConfig>,
    /// An `https` URL; needed for webhooks.
    url: Option<String>,
    /// What requests are signed with: 24 to 75 bytes. One is made, and shown this once, when it is absent.
    secret: Option<String>,
}

/// Addresses of a mail channel, as sent.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct EmailConfig {
    /// One bare address. The verification code goes there and nowhere else.
    #[schema(format = "email")]
    recipient_email: String,
    /// At most 10 addresses that get copies of mails about events.
    #[schema(max_items = 10)]
    cc: Option<Vec<String>>,
    /// Where answers go.
    #[schema(format = "email")]
    reply_to: Option<String>,
}

/// What is to change of a channel; what is absent stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({"event_types": ["job.failed"], "enabled": true})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct UpdateChannel {
    /// Can't change; may be sent as it is.
    #[schema(value_type = Option<String>)]
    channel_type: Option<ChannelKind>,
    /// Free text of at most 255 characters; null removes it.
    #[schema(max_length = 255)]
    description: Option<String>,
    /// All events it is to be told of from now on.
    #[schema(min_items = 1)]
    event_types: Option<Vec<String>>,
    /// Whether it is told.
    enabled: Option<bool>,
    /// A mail channel's addresses. With another `recipient_email` it has to be verified again.
    email_config: Option<UpdateEmailConfig>,
    /// A webhook's URL.
    url: Option<String>,
    /// What a webhook's requests are signed with from now on; an empty text: nothing.
    secret: Option<String>,
}

/// What is to change of a mail channel's addresses; what is absent stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct UpdateEmailConfig {
    /// Another address is sent a code, and the channel is told nothing before it comes back.
    #[schema(format = "email")]
    recipient_email: Option<String>,
    /// All addresses that get copies from now on; null: none.
    #[schema(max_items = 10)]
    cc: Option<Vec<String>>,
    /// Where answers go; null: to nobody.
    #[schema(format = "email")]
    reply_to: Option<String>,
}

/// The code that a mailbox was sent.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({"code": "042117"})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct VerifyChannel {
    /// Six digits. `verification_code` is another name of this field.
    #[schema(pattern = r"^\d{6}$")]
    code: String,
}

/// A secret to use from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct RotateSecret {
    /// 24 to 75 bytes; one is made when it is absent.
    secret: Option<String>,
}

/// A webhook's new secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedSecret {
    /// It can't be read again.
    pub(crate) secret: String,
}

/// A test that is on its way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestSent {
    /// The delivery to look for in the channel's list.
    #[schema(format = "uuid")]
    pub(crate) delivery_id: String,
}

/// Something that was sent to a channel, or is to be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryInformation {
    /// Id: what receivers see as `webhook-id` or in `Message-ID`, the same over all attempts.
    #[schema(format = "uuid")]
    id: String,
    /// What it carries: `event`, `code`, `test` or `notice`.
    kind: String,
    /// The event it tells of.
    event_type: Option<String>,
    /// The notification in the inbox that tells the same.
    #[schema(format = "uuid")]
    notification_id: Option<String>,
    /// `pending`, `delivered`, `failed` or `cancelled`.
    state: String,
    /// Attempts so far.
    attempts: u32,
    /// When it is tried next, while pending.
    #[schema(format = "date-time")]
    next_attempt_at: Option<String>,
    /// Status of the last attempt's answer, of HTTP or SMTP.
    last_status: Option<u16>,
    /// Why the last attempt failed, or why it was cancelled.
    last_error: Option<String>,
    /// The delivery whose mail told of this one too.
    #[schema(format = "uuid")]
    digest_of: Option<String>,
    /// When it was created.
    #[schema(format = "date-time")]
    created_at: String,
    /// When it was delivered or given up.
    #[schema(format = "date-time")]
    ended_at: Option<String>,
}

impl From<Delivery> for DeliveryInformation {
    fn from(delivery: Delivery) -> Self {
        let (notification, event) = delivery.event.unzip();
        Self {
            id: delivery.id.to_string(),
            kind: delivery.kind.to_string(),
            event_type: event.map(|event| event.to_string()),
            notification_id: notification.map(|id| id.to_string()),
            state: delivery.state.to_string(),
            attempts: delivery.attempts,
            next_attempt_at: delivery.not_before.map(iso8601),
            last_status: delivery.last_status,
            last_error: delivery.last_error,
            digest_of: delivery.digest_of.map(|id| id.to_string()),
            created_at: iso8601(delivery.created_at),
            ended_at: delivery.ended_at.map(iso8601),
        }
    }
}

/// A page of a channel's deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    /// Newest first.
    pub(crate) deliveries: Vec<DeliveryInformation>,
    /// What to send as `cursor` for the next page; null on the last.
    pub(crate) next_cursor: Option<String>,
}

/// An attempt to deliver.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptInformation {
    /// When it began.
    #[schema(format = "date-time")]
    started_at: String,
    /// What it took, in milliseconds.
    duration_ms: i64,
    /// Status of the answer, of HTTP or SMTP.
    status: Option<u16>,
    /// The answer's first characters.
    response: Option<String>,
    /// Why it failed; null when it did not.
    error: Option<String>,
}

impl From<Attempt> for AttemptInformation {
    fn from(attempt: Attempt) -> Self {
        Self {
            started_at: iso8601(attempt.started_at),
            duration_ms: attempt.duration / 1_000,
            status: attempt.status,
            response: attempt.response,
            error: attempt.error,
        }
    }
}

/// The attempts of a delivery.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptList {
    /// The latest 100, in order.
    pub(crate) attempts: Vec<AttemptInformation>,
}

/// From when on what failed is to be sent again.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({"since": "2026-06-22T00:00:00Z"})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct ReplayFailed {
    /// Those created at this instant or later (ISO 8601; UTC unless it says otherwise).
    #[schema(format = "date-time")]
    since: String,
}

/// What is sent again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Replayed {
    /// How many deliveries.
    pub(crate) replayed_count: u64,
}
