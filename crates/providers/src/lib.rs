//! Models of others: chat with text and images, and embeddings, behind two traits.
//!
//! [`Providers`] is made once from the server's settings; [`Providers::chat`] and [`Providers::embedder`]
//! give a [`Chat`] or an [`Embedder`] for a provider and a model. What they share lies in one caller: time
//! limits, retries that heed `Retry-After`, a bound on concurrent requests for each provider, a cap on
//! answers, typed errors. Everything goes through the egress guard; keys appear in no error and no debug
//! text; whatever an answer holds is data from a stranger.

mod caller;
mod chat;
mod embed;
mod error;
#[cfg(feature = "local-models")]
mod local;
mod models;
mod providers;
mod schema;
mod settings;
mod usage;
mod wire;

pub use chat::{Chat, ChatAnswer, ChatRequest, Finish, Image, ImageType, JsonSchema, Message, Part, Role};
pub use docmill_model::provider::Provider;
pub use embed::{EmbedLimits, Embedded, Embedder, Purpose, check_texts, embed_all};
pub use error::{ProviderError, ProviderErrorKind, Result};
pub use models::{EMBEDDING_MODELS, EmbeddingModel, embedding_model};
pub use providers::{Missing, Providers};
pub use settings::{Price, ProviderSettings, Secret};
pub use usage::Usage;
