//! Every provider's language against a double that takes what the public reference defines and refuses
//! anything else, and every way a stranger's answer can be wrong.

#![allow(clippy::unwrap_used, missing_docs)]

mod anthropic;
mod bedrock;
mod double;
mod gemini;
mod hostile;
#[cfg(feature = "local-models")]
mod local;
mod openai;
mod settings;
mod voyage;
mod watsonx;
