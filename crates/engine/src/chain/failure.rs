//! Why a node that calls a model came to nothing.

use docmill_model::Code;
use docmill_providers::{ProviderError, ProviderErrorKind};
use docmill_store::StoreError;

use crate::runner::RunFailure;

/// Why a node, and with it its file, failed.
#[derive(Debug)]
pub(crate) enum NodeFailure {
    /// With a stable code and a reason for people.
    Failed { code: Code, message: String },
    /// The store failed; another attempt may go better.
    Store(StoreError),
}

impl NodeFailure {
    pub(crate) fn new(code: Code, message: impl ToString) -> Self {
        Self::Failed {
            code,
            message: message.to_string(),
        }
    }

    /// The same, saying which node it was.
    pub(super) fn at(self, node: &str) -> Self {
        match self {
            Self::Failed { code, message } => Self::Failed {
                code,
                message: format!("node `{node}`: {message}"),
            },
            store => store,
        }
    }
}

impl From<StoreError> for NodeFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ProviderError> for NodeFailure {
    fn from(error: ProviderError) -> Self {
        Self::new(code(error.kind), error)
    }
}

impl From<NodeFailure> for RunFailure {
    fn from(failure: NodeFailure) -> Self {
        let (code, message, retryable) = match failure {
            NodeFailure::Failed { code, message } => (code, message, false),
            NodeFailure::Store(error) => (Code::StorageUnavailable, error.to_string(), true),
        };
        Self::Failed {
            code,
            message,
            retryable,
        }
    }
}

/// The code of a provider's failure.
pub(super) fn code(kind: ProviderErrorKind) -> Code {
    use ProviderErrorKind::{Auth, BadAnswer, Invalid, RateLimit, Server, Setup, Timeout, TooLarge, Unreachable};
    match kind {
        Auth | Setup => Code::ProviderRefused,
        Invalid | TooLarge => Code::ProviderInvalid,
        BadAnswer => Code::ProviderAnswerInvalid,
        RateLimit | Server | Timeout | Unreachable => Code::ProviderUnavailable,
    }
}

/// Whether no other call of the node can go better, so that none is made.
pub(super) fn is_final(kind: ProviderErrorKind) -> bool {
    matches!(kind, ProviderErrorKind::Auth | ProviderErrorKind::Setup)
}
