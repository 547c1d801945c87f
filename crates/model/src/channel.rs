//! Notification channels: where people and programs hear of job events.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::ids::WorkflowId;
use crate::job::EventType;
use crate::words::text_enum;

text_enum! {
    /// How a channel tells.
    ChannelKind {
        /// By mail to a verified address.
        Email = "email",
        /// By a signed HTTP request.
        Webhook = "webhook",
    }
}

text_enum! {
    /// State of a delivery.
    DeliveryState {
        /// Waiting for its first or its next attempt, or under way.
        Pending = "pending",
        /// Accepted by the receiver.
        Delivered = "delivered",
        /// Given up.
        Failed = "failed",
        /// Not sent: its channel was disabled, changed or deleted first, or its code was replaced or expired.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// What a delivery carries.
    DeliveryKind {
        /// A job event.
        Event = "event",
        /// A verification code: the only thing an unverified channel is sent.
        Code = "code",
        /// A test asked for by the channel's owner.
        Test = "test",
        /// News of another channel of the workspace that was disabled.
        Notice = "notice",
    }
}

text_enum! {
    /// What the inbox tells beside job events. Channels can't select these.
    NoticeType {
        /// A channel was disabled after nothing but failures for long.
        ChannelDisabled = "channel.disabled",
        /// A channel's receiver refused for good, and nothing more is sent to it.
        ChannelBounced = "channel.bounced",
    }
}

/// What a notification in the inbox tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationType {
    /// A job.
    Job(EventType),
    /// A channel.
    Notice(NoticeType),
}

impl NotificationType {
    /// The type as stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job(event) => event.as_str(),
            Self::Notice(notice) => notice.as_str(),
        }
    }

    /// The type a stored or sent text stands for.
    pub fn parse(text: &str) -> Option<Self> {
        let notice = || NoticeType::parse(text).map(Self::Notice);
        EventType::parse(text).map(Self::Job).or_else(notice)
    }
}

impl fmt::Display for NotificationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whose jobs a channel tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelScope {
    /// All jobs of the workspace, those over uploaded files too.
    Workspace,
    /// The jobs of one workflow.
    Workflow(WorkflowId),
}

impl ChannelScope {
    /// The workflow it is bound to.
    pub fn workflow(self) -> Option<WorkflowId> {
        match self {
            Self::Workspace => None,
            Self::Workflow(workflow) => Some(workflow),
        }
    }
}

/// What all channel ids begin with.
const PREFIX: &str = "ep_";

/// Characters of a channel id after the prefix: 166 random bits, beyond guessing.
const LENGTH: usize = 28;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A channel: `ep_` and 28 of `0-9A-Za-z`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelId([u8; LENGTH]);

impl ChannelId {
    /// A new random id.
    #[allow(clippy::new_without_default, reason = "an id is not a default value")]
    pub fn new() -> Self {
        /// Bytes below this are spread evenly over the characters.
        const EVEN: u8 = (256 / 62 * 62) as u8;
        let mut id = [0; LENGTH];
        let mut empty = id.iter_mut();
        loop {
            // Two bytes of a random UUID hold its version and variant.
            for (place, byte) in Uuid::new_v4().into_bytes().into_iter().enumerate() {
                let random = place != 6 && place != 8 && byte < EVEN;
                let Some(character) = BASE62.get(usize::from(byte) % BASE62.len()).filter(|_| random) else {
                    continue;
                };
                match empty.next() {
                    Some(slot) => *slot = *character,
                    None => return Self(id),
                }
            }
        }
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl fmt::Debug for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelId({self})")
    }
}

/// The text is no channel id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a channel id is `ep_` and 28 letters or digits")]
pub struct InvalidChannelId;

impl FromStr for ChannelId {
    type Err = InvalidChannelId;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix(PREFIX).ok_or(InvalidChannelId)?.as_bytes();
        let id: [u8; LENGTH] = id.try_into().map_err(|_| InvalidChannelId)?;
        let valid = id.iter().all(u8::is_ascii_alphanumeric);
        valid.then_some(Self(id)).ok_or(InvalidChannelId)
    }
}

impl Serialize for ChannelId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChannelId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_random_and_read_back() {
        let ids: Vec<ChannelId> = (0..1_000).map(|_| ChannelId::new()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        let mut seen = HashSet::new();
        for id in &ids {
            let text = id.to_string();
            assert_eq!((text.len(), text.get(..3)), (31, Some("ep_")));
            assert_eq!(text.parse(), Ok(*id));
            assert_eq!(
                serde_json::from_str::<ChannelId>(&serde_json::to_string(id).unwrap()).unwrap(),
                *id
            );
            seen.extend(text.bytes().skip(3));
        }
        assert_eq!(seen.len(), 62, "every character occurs");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let good = "ep_0a1B2c3D4e5F6g7H8i9J0k1L2m3N";
        assert!(good.parse::<ChannelId>().is_ok());
        let long = format!("{good}x");
        let accent = good.replace("2m", "ä");
        for bad in [
            "",
            "ep_",
            &good[1..],
            &good[..30],
            &long,
            &accent,
            &good.replace('B', "-"),
        ] {
            assert_eq!(bad.parse::<ChannelId>(), Err(InvalidChannelId), "{bad}");
        }
    }

    #[test]
    fn types_of_notifications_read_back() {
        let events = EventType::ALL.iter().map(|event| NotificationType::Job(*event));
        let notices = NoticeType::ALL.iter().map(|notice| NotificationType::Notice(*notice));
        for kind in events.chain(notices) {
            assert_eq!(NotificationType::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(NotificationType::parse("job.unknown"), None);
    }
}
