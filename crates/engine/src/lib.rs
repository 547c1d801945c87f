//! The heart: jobs are accepted, their files are run through their chains in child processes, outputs
//! are stored, and nothing acknowledged is lost on the way.
//!
//! [`Engine`] is what the HTTP edge and the command line call. It knows nothing of HTTP.

pub mod access;
mod clock;
mod engine;
pub mod protocol;
mod runner;
mod running;
mod upkeep;
mod worker;

pub use clock::now;
pub use engine::{Engine, EngineConfig, RetryError, Submission, SubmittedFile};
pub use runner::{RunFailure, RunOutput, Runner};
pub use running::{FileProgress, RunningFiles};
