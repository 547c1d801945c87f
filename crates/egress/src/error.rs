//! Why no connection was made.

/// A connection that was not made.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The policy refuses the address, scheme or URL.
    #[error("{0}")]
    Refused(String),
    /// The name has no address.
    #[error("cannot resolve {host}: {reason}")]
    Unresolved {
        /// The name.
        host: String,
        /// Why.
        reason: String,
    },
    /// Nothing answers there.
    #[error("cannot connect to {host}: {reason}")]
    Unreachable {
        /// The name.
        host: String,
        /// Why.
        reason: String,
    },
    /// The client itself can't be set up.
    #[error("{0}")]
    Setup(String),
}
