//! What can go wrong.

use std::fmt;
use std::time::Duration;

use docmill_egress::identity::{IdentityError, IdentityErrorKind};

use crate::{Provider, Usage};

/// Result of a call.
pub type Result<T> = std::result::Result<T, ProviderError>;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// The key is wrong, or it may not do this. Never tried again.
    Auth,
    /// Too many requests or tokens, or no credit left.
    RateLimit,
    /// The provider failed or is overloaded.
    Server,
    /// The provider does not take the request: no such model, a parameter it doesn't know, a text too long.
    Invalid,
    /// No answer in time.
    Timeout,
    /// A request or an answer of more bytes than allowed.
    TooLarge,
    /// An answer that is not what the provider's reference says.
    BadAnswer,
    /// No connection, or it broke before the answer was whole.
    Unreachable,
    /// Settings that can't work, or an address the egress guard refuses.
    Setup,
}

impl ProviderErrorKind {
    /// A word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Server => "server",
            Self::Invalid => "invalid",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::BadAnswer => "bad_answer",
            Self::Unreachable => "unreachable",
            Self::Setup => "setup",
        }
    }
}

/// A failed call, after its retries. Holds no key and no text of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderError {
    /// Who was asked.
    pub provider: Provider,
    /// What kind of failure it is.
    pub kind: ProviderErrorKind,
    /// Status of the last answer, where there was one.
    pub status: Option<u16>,
    /// The provider's own id of the last exchange, to be told to its support.
    pub request_id: Option<String>,
    /// For people: one line, at most a few hundred characters.
    pub message: String,
    /// How long the provider wants to be left alone, where that is longer than a call waits.
    pub retry_after: Option<Duration>,
    /// What the call cost all the same.
    pub usage: Box<Usage>,
}

impl ProviderError {
    pub(crate) fn new(provider: Provider, kind: ProviderErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            provider,
            kind,
            status: None,
            request_id: None,
            message: plain(message.as_ref()),
            retry_after: None,
            usage: Box::default(),
        }
    }

    pub(crate) fn identity(provider: Provider, error: &IdentityError) -> Self {
        let kind = match error.kind {
            IdentityErrorKind::Unauthorized => ProviderErrorKind::Auth,
            IdentityErrorKind::Invalid | IdentityErrorKind::Forbidden => ProviderErrorKind::Setup,
            IdentityErrorKind::Unavailable => ProviderErrorKind::Unreachable,
            IdentityErrorKind::Throttled => ProviderErrorKind::RateLimit,
            IdentityErrorKind::Unexpected => ProviderErrorKind::BadAnswer,
        };
        Self::new(provider, kind, &error.message)
    }

    /// Whether the same call may work later.
    pub fn retryable(&self) -> bool {
        use ProviderErrorKind::{BadAnswer, RateLimit, Server, Timeout, Unreachable};
        matches!(self.kind, RateLimit | Server | Timeout | BadAnswer | Unreachable)
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.provider, self.message)?;
        match (self.status, &self.request_id) {
            (Some(status), Some(id)) => write!(f, " (status {status}, request id {id})"),
            (Some(status), None) => write!(f, " (status {status})"),
            (None, Some(id)) => write!(f, " (request id {id})"),
            (None, None) => Ok(()),
        }
    }
}

impl std::error::Error for ProviderError {}

/// One line without control characters, not long.
pub(crate) fn plain(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(400).collect()
}
