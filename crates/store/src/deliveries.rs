//! Records of deliveries: what is sent to channels, and what came of it.

use docmill_model::channel::{ChannelKind, DeliveryKind, DeliveryState, NotificationType};
use docmill_model::ids::{DeliveryId, EventId, WorkflowId, WorkspaceId};
use docmill_model::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::channels::Channel;

/// Which deliveries to claim.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryQuery {
    /// The lane: deliveries of one kind of channel never wait for those of the other.
    pub lane: ChannelKind,
    /// At most this many.
    pub max: u32,
    /// Of them, at most this many that are not first attempts. First attempts come first.
    pub max_retries: u32,
    /// At most this many under way to one receiver (the host of a webhook, a mailbox), claimed before or
    /// now: so a dead receiver holds up only itself.
    pub per_receiver: u32,
    /// Until when they are leased.
    pub lease_until: Micros,
}

/// The right to make one attempt. Only claims make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryLease {
    pub(crate) id: DeliveryId,
    pub(crate) token: i64,
}

impl DeliveryLease {
    /// The delivery.
    pub fn delivery(&self) -> DeliveryId {
        self.id
    }
}

/// An event as it was when it was recorded.
#[derive(Clone, Debug)]
pub struct EventSnapshot {
    /// Id.
    pub id: EventId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The workflow it tells of; none for notices of channels of the whole workspace.
    pub workflow: Option<WorkflowId>,
    /// Position among its job's events, from 1; 0 for notices.
    pub sequence: i64,
    /// What it tells of.
    pub kind: NotificationType,
    /// The job then: `job_id`, `workflow_id`, `workflow_name`, `job_type`, `status`, `message`,
    /// `files_total`, `files_succeeded`, `files_failed`, `created_at`, `started_at`, `ended_at` (ISO 8601 or
    /// null), `processing_time_ms` (null until ended) and `at`. For a notice the channel: `channel_id`,
    /// `channel_type`, `description`, `reason`, `at`.
    pub payload: Value,
    /// The first files that failed, once the job has ended; none after the job's data was deleted.
    pub failed_files: Vec<FailedFile>,
    /// When.
    pub created_at: Micros,
}

/// A file that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedFile {
    /// Its name.
    pub name: String,
    /// Why, for people; cut when very long.
    pub reason: String,
}

/// A delivery to attempt.
#[derive(Clone, Debug)]
pub struct DeliveryClaim {
    /// The right to it; its id is what the receiver sees, the same over all attempts.
    pub lease: DeliveryLease,
    /// What it carries.
    pub kind: DeliveryKind,
    /// Where it goes, as of now.
    pub channel: Channel,
    /// The event, for [`DeliveryKind::Event`] and [`DeliveryKind::Notice`].
    pub event: Option<EventSnapshot>,
    /// The encrypted code, for [`DeliveryKind::Code`].
    pub sealed: Option<Vec<u8>>,
    /// Attempts since it was created or last replayed, with this one: where the retry schedule is.
    pub attempt: u32,
    /// When it was created.
    pub created_at: Micros,
}

/// An attempt that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub started_at: Micros,
    /// What it took, in microseconds.
    pub duration: Micros,
    /// Status of the answer (HTTP or SMTP), if there was one.
    pub status: Option<u16>,
    /// First characters of the answer.
    pub response: Option<String>,
    /// Why it failed, for people; none when it did not.
    pub error: Option<String>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver has it.
    Delivered,
    /// It is to be tried again, not before this instant.
    Retry {
        /// Earliest instant.
        not_before: Micros,
    },
    /// It is given up.
    Failed,
    /// It is given up, and its channel marked with the reason. An enabled channel is disabled, with a notice.
    Bounced {
        /// What the receiver said, for people.
        reason: String,
    },
}

/// What finishing did beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFinish {
    /// How many deliveries were ended or put back; those whose lease was lost are not among them.
    pub finished: u64,
    /// Whether a channel was disabled: notices may be on the way.
    pub disabled: bool,
}

/// A delivery as its channel's list shows it.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Place in the list: larger for later ones.
    pub seq: i64,
    /// Id, the same over all attempts.
    pub id: DeliveryId,
    /// What it carries.
    pub kind: DeliveryKind,
    /// The event, for [`DeliveryKind::Event`] and [`DeliveryKind::Notice`], with its type.
    pub event: Option<(EventId, NotificationType)>,
    /// Where it stands.
    pub state: DeliveryState,
    /// Attempts made in all.
    pub attempts: u32,
    /// The next attempt is not before this instant, while pending.
    pub not_before: Option<Micros>,
    /// Status of the last attempt's answer.
    pub last_status: Option<u16>,
    /// Why the last attempt failed, or why it was cancelled.
    pub last_error: Option<String>,
    /// The delivery it was sent together with, as one digest.
    pub digest_of: Option<DeliveryId>,
    /// When it was created.
    pub created_at: Micros,
    /// When it ended.
    pub ended_at: Option<Micros>,
}

/// Filters of [`crate::Store::deliveries`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryFilter {
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Those before this `seq`.
    pub before: Option<i64>,
    /// At most this many.
    pub limit: u32,
}

/// What became of a request to send a delivery again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// It is pending again, under the same id. (One that was pending already is due at once.)
    Replayed,
    /// There is no such delivery of the channel.
    NotFound,
    /// The channel is disabled or not verified.
    Disabled,
    /// It carried a code: those are never sent twice.
    NotReplayable,
}
