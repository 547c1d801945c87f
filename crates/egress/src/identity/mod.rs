//! Who docmill is to a cloud: signatures, temporary keys and access tokens, for everything that talks to
//! services of Amazon and Google.

pub mod aws;
mod exchange;
mod google;
mod kept;

pub use exchange::{secret_header, token_answer};
pub use google::GoogleAccount;
pub use kept::{Ending, Kept};

use crate::EgressError;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityErrorKind {
    /// Credentials that can't be used as they are written.
    Invalid,
    /// The service that gives keys or tokens refuses, or there are no credentials.
    Unauthorized,
    /// The egress guard forbids the address.
    Forbidden,
    /// The service that gives keys or tokens can't be reached or can't answer now.
    Unavailable,
    /// It asks for fewer requests.
    Throttled,
    /// An answer that makes no sense.
    Unexpected,
}

/// No key, token or signature. The message never holds a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct IdentityError {
    /// What kind of failure it is.
    pub kind: IdentityErrorKind,
    /// For people.
    pub message: String,
}

impl IdentityError {
    /// An error.
    pub fn new(kind: IdentityErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl From<EgressError> for IdentityError {
    fn from(error: EgressError) -> Self {
        let kind = match error {
            EgressError::Refused(_) => IdentityErrorKind::Forbidden,
            EgressError::Unresolved { .. } | EgressError::Unreachable { .. } => IdentityErrorKind::Unavailable,
            EgressError::Setup(_) => IdentityErrorKind::Unexpected,
        };
        Self::new(kind, error.to_string())
    }
}

/// Result of this module's functions.
pub type IdentityResult<T> = std::result::Result<T, IdentityError>;
