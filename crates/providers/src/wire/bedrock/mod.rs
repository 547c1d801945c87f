//! Amazon Bedrock: Converse for chat, InvokeModel for embeddings.

mod chat;
mod embed;

pub(crate) use self::chat::BedrockChat;
pub(crate) use self::embed::{BedrockEmbedder, Family};
