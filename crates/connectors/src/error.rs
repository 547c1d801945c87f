//! What can go wrong with a connector.

use docmill_egress::EgressError;
use docmill_egress::identity::{IdentityError, IdentityErrorKind};
use docmill_model::Code;

/// Result of a connector's method.
pub type Result<T> = std::result::Result<T, ConnectorError>;

/// What kind of failure it is, which decides what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Settings that can't work.
    Invalid,
    /// The other side refuses the credentials, or they don't allow the operation.
    Unauthorized,
    /// The bucket, table, index, directory or object is not there.
    Missing,
    /// More bytes than allowed.
    TooLarge,
    /// The egress guard or a setting of the server forbids it.
    Forbidden,
    /// Nothing answers, or the connection broke, or the other side says it can't now.
    Unavailable,
    /// The other side asks for fewer requests.
    Throttled,
    /// An answer that makes no sense.
    Unexpected,
}

/// A failed operation. The message says what, where and what to do; it never holds a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// For people.
    pub message: String,
}

impl ConnectorError {
    /// An error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Whether the same operation may work later.
    pub fn retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Throttled)
    }

    /// The code of a file that failed by this error.
    pub fn code(&self) -> Code {
        match self.kind {
            ErrorKind::TooLarge => Code::FileTooLarge,
            ErrorKind::Missing => Code::ConnectorObjectMissing,
            ErrorKind::Unauthorized | ErrorKind::Forbidden => Code::ConnectorRefused,
            ErrorKind::Invalid => Code::ConnectorInvalid,
            ErrorKind::Unavailable | ErrorKind::Throttled | ErrorKind::Unexpected => Code::ConnectorUnavailable,
        }
    }
}

impl From<IdentityError> for ConnectorError {
    fn from(error: IdentityError) -> Self {
        let kind = match error.kind {
            IdentityErrorKind::Invalid => ErrorKind::Invalid,
            IdentityErrorKind::Unauthorized => ErrorKind::Unauthorized,
            IdentityErrorKind::Forbidden => ErrorKind::Forbidden,
            IdentityErrorKind::Unavailable => ErrorKind::Unavailable,
            IdentityErrorKind::Throttled => ErrorKind::Throttled,
            IdentityErrorKind::Unexpected => ErrorKind::Unexpected,
        };
        Self::new(kind, error.message)
    }
}

impl From<EgressError> for ConnectorError {
    fn from(error: EgressError) -> Self {
        let kind = match error {
            EgressError::Refused(_) => ErrorKind::Forbidden,
            EgressError::Unresolved { .. } | EgressError::Unreachable { .. } => ErrorKind::Unavailable,
            EgressError::Setup(_) => ErrorKind::Unexpected,
        };
        Self::new(kind, error.to_string())
    }
}
