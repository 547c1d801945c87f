//! Identifiers, one type per kind of thing, so that a job id can't be passed where a file id is due.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta] $name:ident),+ $(,)?) => {$(
        #[$doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id: UUID version 7, so ids made later sort later.
            #[allow(clippy::new_without_default, reason = "an id is not a default value")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Uuid {
                id.0
            }
        }
    )+};
}

id! {
    /// An account: what limits on running jobs and creation rate are counted against.
    AccountId,
    /// A workspace of an account: what an API key opens.
    WorkspaceId,
    /// An API key's record (not the secret).
    KeyId,
    /// A workflow; local-file jobs have a hidden temporary one.
    WorkflowId,
    /// A job: one run of a chain over some files.
    JobId,
    /// An input file of a job. The same id names the file's output at every node.
    FileId,
    /// A node of a chain.
    NodeId,
    /// A recorded event.
    EventId,
    /// A source or destination connector.
    ConnectorId,
    /// A check of a connector's connection.
    CheckId,
    /// A delivery of something to a channel, the same over all attempts.
    DeliveryId,
}
