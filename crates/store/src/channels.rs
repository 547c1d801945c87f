//! Records of channels, verification codes and the inbox.

use std::fmt;

use docmill_model::channel::{ChannelId, ChannelKind, ChannelScope, NotificationType};
use docmill_model::ids::{EventId, WorkflowId, WorkspaceId};
use docmill_model::job::EventType;
use docmill_model::time::{Micros, SECOND};
use serde_json::Value;

/// A channel as a request names it: one that exists under another workspace or scope is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelRef {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Whose jobs it tells of.
    pub scope: ChannelScope,
    /// Id.
    pub id: ChannelId,
}

/// Where a channel leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelTarget {
    /// A mailbox.
    Email {
        /// The address mail is sent to.
        recipient: String,
        /// The mailbox behind the address, one spelling for all of its addresses (lower case, without
        /// what follows a `+`): budgets and rates are counted by it.
        mailbox: String,
        /// Addresses that get copies.
        cc: Vec<String>,
        /// Where answers go.
        reply_to: Option<String>,
    },
    /// An HTTP endpoint.
    Webhook {
        /// Where requests go.
        url: String,
        /// Host and port of the URL: deliveries to the same one share a bound on how many are under way.
        host: String,
        /// Signing secrets, encrypted by the caller; none sends unsigned.
        secrets: Option<Vec<u8>>,
    },
}

impl ChannelTarget {
    /// How the channel tells.
    pub fn kind(&self) -> ChannelKind {
        match self {
            Self::Email { .. } => ChannelKind::Email,
            Self::Webhook { .. } => ChannelKind::Webhook,
        }
    }

    /// What stands for the receiver where deliveries are bounded by receiver: a mailbox, or a host.
    pub fn receiver(&self) -> &str {
        match self {
            Self::Email { mailbox, .. } => mailbox,
            Self::Webhook { host, .. } => host,
        }
    }
}

/// What a client says of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelDefinition {
    /// Free text.
    pub description: Option<String>,
    /// What it is told of.
    pub events: Vec<EventType>,
    /// Whether it is to be told at all.
    pub wanted: bool,
    /// Where it leads.
    pub target: ChannelTarget,
}

/// A channel to record.
#[derive(Clone, Debug)]
pub struct NewChannel {
    /// Id, workspace and scope.
    pub channel: ChannelRef,
    /// What the client says of it.
    pub definition: ChannelDefinition,
    /// The first code; needed for mail, ignored for webhooks.
    pub code: Option<NewCode>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Id, workspace and scope.
    pub channel: ChannelRef,
    /// What the client says of it.
    pub definition: ChannelDefinition,
    /// When its receiver proved to be reached; webhooks are verified when created.
    pub verified_at: Option<Micros>,
    /// Since when it was disabled by the server, and why. Cleared when it is wanted again.
    pub disabled: Option<(Micros, String)>,
    /// Since when its receiver refuses for good, and how. Cleared when it is wanted again, by a verified
    /// code, and by a delivery that arrives.
    pub bounced: Option<(Micros, String)>,
    /// The first failure since the last success.
    pub failing_since: Option<Micros>,
    /// When it was created.
    pub created_at: Micros,
    /// When a client last changed it; at first the same as `created_at`. Larger after each change.
    pub updated_at: Micros,
}

impl Channel {
    /// Whether events are sent to it: it is wanted and verified.
    pub fn enabled(&self) -> bool {
        self.definition.wanted && self.verified_at.is_some()
    }
}

/// What became of a request to create a channel. Unless it was created, nothing changed.
#[derive(Clone, Debug)]
pub enum ChannelCreation {
    /// It exists; for mail, its code is on the way.
    Created(Box<Channel>),
    /// Its scope has as many as it may.
    Full,
    /// No code may be sent now.
    Refused(CodeRefusal),
}

/// What became of a request to change a channel. Unless it was updated, nothing changed.
#[derive(Clone, Debug)]
pub enum ChannelUpdate {
    /// It is as the definition says. With another recipient it is unverified, and a code is on the way.
    Updated(Box<Channel>),
    /// There is none.
    NotFound,
    /// It is not verified, and may not be changed before it is.
    NotVerified,
    /// Its recipient was to change, but no code may be sent now.
    Refused(CodeRefusal),
}

/// Keyed hash of a verification code: HMAC-SHA256 over the channel's id and the code.
#[derive(Clone, Copy)]
pub struct CodeHash(pub [u8; 32]);

impl fmt::Debug for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeHash")
    }
}

/// A code to send. The store never sees the code itself.
#[derive(Clone)]
pub struct NewCode {
    /// What tries are compared with.
    pub hash: CodeHash,
    /// The code for its mail, encrypted by the caller. Wiped once the mail is out, and when the code is
    /// replaced, used or expired.
    pub sealed: Vec<u8>,
}

impl fmt::Debug for NewCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewCode")
    }
}

/// Bounds on codes and tries. Days begin with the first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLimits {
    /// How long a code is good for.
    pub lifetime: Micros,
    /// Wrong tries that end a code.
    pub tries: u32,
    /// Time between two codes of a channel.
    pub cool_down: Micros,
    /// Codes a day for a channel, and for a mailbox in a workspace.
    pub codes_a_day: u32,
    /// Codes a day for all mailboxes of a workspace.
    pub workspace_codes_a_day: u32,
    /// Wrong tries a day for a channel, and for a mailbox in a workspace.
    pub wrong_a_day: u32,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            lifetime: 600 * SECOND,
            tries: 5,
            cool_down: 60 * SECOND,
            codes_a_day: 10,
            workspace_codes_a_day: 200,
            wrong_a_day: 10,
        }
    }
}

/// Which bound forbids a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeBound {
    /// The last one was sent a moment ago.
    CoolDown,
    /// The channel was sent its codes for the day.
    Channel,
    /// The mailbox was sent its codes for the day.
    Mailbox,
    /// The workspace had its codes for the day sent.
    Workspace,
    /// Too many wrong codes were tried today for another to be of use.
    WrongTries,
}

/// Why no code may be sent, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRefusal {
    /// The bound.
    pub bound: CodeBound,
    /// How long it holds; at least 1.
    pub wait: Micros,
}

/// What became of a request for another code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeIssue {
    /// It is on the way, and the one before is void.
    Issued,
    /// The channel needs none.
    AlreadyVerified,
    /// Not now.
    Refused(CodeRefusal),
}

/// What became of a try of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeTry {
    /// It was right: the channel is verified, and the code used up.
    Verified,
    /// The channel was verified before; nothing was compared.
    AlreadyVerified,
    /// It was wrong.
    Wrong {
        /// Tries left.
        left: u32,
    },
    /// The channel has no code that is good now; nothing was compared.
    Expired,
    /// All tries are used up; nothing was compared.
    Exceeded {
        /// Until another code may be asked for: 0 unless the day's wrong tries are used up.
        wait: Micros,
    },
}

/// A place in a list of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxCursor {
    /// `created_at` of the last notification seen.
    pub created_at: Micros,
    /// Its id.
    pub id: EventId,
}

/// Filters of [`crate::Store::notifications`]; all given ones must hold.
#[derive(Clone, Debug, Default)]
pub struct InboxFilter {
    /// Of this workflow.
    pub workflow: Option<WorkflowId>,
    /// Of one of these types; empty: of any.
    pub types: Vec<NotificationType>,
    /// Created at this instant or later.
    pub since: Option<Micros>,
    /// Not marked as read.
    pub unread_only: bool,
    /// Those after this place.
    pub after: Option<InboxCursor>,
    /// At most this many.
    pub limit: u32,
}

/// Which notifications to mark as read.
#[derive(Clone, Debug)]
pub enum MarkRead {
    /// These.
    Ids(Vec<EventId>),
    /// All created up to an instant, of one workflow if given.
    Until {
        /// Of this workflow.
        workflow: Option<WorkflowId>,
        /// Created before this instant.
        before: Micros,
    },
}

/// A notification: an event as the inbox shows it.
#[derive(Clone, Debug)]
pub struct Notification {
    /// Id.
    pub id: EventId,
    /// What it tells of.
    pub kind: NotificationType,
    /// The workflow it tells of; none for notices of channels of the whole workspace.
    pub workflow: Option<WorkflowId>,
    /// The job or channel as it was then.
    pub payload: Value,
    /// When.
    pub created_at: Micros,
    /// When it was marked as read. Progress is recorded as read.
    pub read_at: Option<Micros>,
}
