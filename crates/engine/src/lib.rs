//! The heart: jobs are accepted, their files are run through their chains in child processes, outputs
//! are stored, and nothing acknowledged is lost on the way.
//!
//! [`Engine`] is what the HTTP edge and the command line call. It knows nothing of HTTP.

pub mod access;
mod budget;
mod chain;
mod clock;
mod connections;
mod connectors;
mod engine;
mod firing;
mod leases;
mod listing;
mod notify;
pub mod protocol;
mod records;
mod retry;
mod runner;
mod running;
pub mod schedule;
#[cfg(test)]
mod tests;
mod upkeep;
mod vault;
mod worker;
mod workflows;

pub use chain::{LocalChain, ModelConfig, Models};
pub use clock::now;
pub use connectors::{ConnectorRefused, ConnectorSettings};
pub use engine::{Engine, EngineConfig, Submission, SubmittedFile};
pub use notify::{
    ChannelCreated, ChannelPatch, ChannelRefused, ChannelRequest, EmailPatch, NotificationConfig, SecretPatch,
    TargetRequest, TestSend, UNSUBSCRIBE_PATH,
};
pub use records::{record_id, record_id_of};
pub use retry::RetryError;
pub use runner::{RunFailure, RunOutput, Runner};
pub use running::{FileProgress, RunningFiles};
pub use vault::{Vault, VaultError, masked};
pub use worker::patiently;
pub use workflows::{RunError, next_runs};
