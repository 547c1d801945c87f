//! The nodes that work on elements rather than on bytes: pure functions, no I/O, no clock.
//!
//! [`chunk`] groups and splits elements into chunks of a bounded size. The other modules are the two halves
//! of nodes that ask a model: what to ask ([`chat::ChatRequest`]), and how the answer, which is never
//! trusted, changes the elements. What lies between, the call, is the caller's.

mod answer;
pub mod chat;
pub mod chunk;
pub mod contextual;
pub mod embed;
pub mod extract;
mod markup;
pub mod merge;
mod origin;
pub mod prompt;
pub mod vlm;

pub use answer::AnswerError;
