//! Model providers: who a paid node calls.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::words::text_enum;

text_enum! {
    /// A provider of chat or embedding models.
    Provider {
        /// OpenAI.
        OpenAi = "openai",
        /// OpenAI models hosted by Azure.
        AzureOpenAi = "azure_openai",
        /// Anthropic.
        Anthropic = "anthropic",
        /// AWS Bedrock.
        Bedrock = "bedrock",
        /// Google Vertex AI.
        VertexAi = "vertexai",
        /// Voyage AI; embeddings alone.
        VoyageAi = "voyageai",
        /// Together AI.
        TogetherAi = "togetherai",
        /// IBM watsonx.
        Ibm = "ibm",
        /// Any server that speaks the wire format of OpenAI.
        Custom = "custom",
        /// A model in a directory of this machine; embeddings alone.
        Local = "local",
    }
}

impl Provider {
    /// Whether it has chat models. Those that have take pictures too.
    pub fn chats(self) -> bool {
        !matches!(self, Self::VoyageAi | Self::Local)
    }

    /// Whether it has embedding models.
    pub fn embeds(self) -> bool {
        self != Self::Anthropic
    }

    /// The chat model taken when a node names none; `None` where the model's name is the user's own.
    pub fn default_chat_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("gpt-4o"),
            Self::Anthropic => Some("claude-sonnet-4-20250514"),
            Self::Bedrock => Some("us.anthropic.claude-sonnet-4-20250514-v1:0"),
            Self::VertexAi => Some("gemini-2.0-flash-001"),
            _ => None,
        }
    }
}

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelRef {
    /// Who has it.
    pub provider: Provider,
    /// Its name there.
    pub model: String,
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// The providers that have credentials (or, for `local`, a model), so that nodes can call them, with the
/// model each should use where a node leaves it open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Available {
    providers: BTreeSet<&'static str>,
    chat_model: Option<ModelRef>,
    embedder: Option<ModelRef>,
}

impl Available {
    /// No provider at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// These providers.
    pub fn of(providers: impl IntoIterator<Item = Provider>) -> Self {
        Self {
            providers: providers.into_iter().map(Provider::as_str).collect(),
            ..Self::default()
        }
    }

    /// The same, with the chat model taken where a node can't name one.
    pub fn with_chat_model(mut self, model: ModelRef) -> Self {
        self.chat_model = Some(model);
        self
    }

    /// The same, with the embedding model that chunking by similarity uses.
    pub fn with_embedder(mut self, model: ModelRef) -> Self {
        self.embedder = Some(model);
        self
    }

    /// Whether nodes can call `provider`.
    pub fn has(&self, provider: Provider) -> bool {
        self.providers.contains(provider.as_str())
    }

    /// The chat model for nodes that can't name one: the one set, else the default model of the first
    /// provider there is.
    pub fn chat_model(&self) -> Option<ModelRef> {
        self.chat_model.clone().or_else(|| {
            Provider::ALL
                .iter()
                .filter(|provider| self.has(**provider))
                .find_map(|provider| {
                    Some(ModelRef {
                        provider: *provider,
                        model: provider.default_chat_model()?.to_owned(),
                    })
                })
        })
    }

    /// The embedding model for chunking by similarity: the one set, else the local one, else OpenAI's small
    /// one.
    pub fn embedder(&self) -> Option<ModelRef> {
        let of = |provider: Provider, model: &str| {
            self.has(provider).then(|| ModelRef {
                provider,
                model: model.to_owned(),
            })
        };
        self.embedder
            .clone()
            .or_else(|| of(Provider::Local, "default"))
            .or_else(|| of(Provider::OpenAi, "text-embedding-3-small"))
            .or_else(|| of(Provider::VoyageAi, "voyage-3-lite"))
            .or_else(|| of(Provider::Bedrock, "amazon.titan-embed-text-v2:0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_for_open_nodes_is_the_one_set_or_the_first_there_is() {
        assert_eq!(Available::none().chat_model(), None);
        let some = Available::of([Provider::VertexAi, Provider::VoyageAi, Provider::Custom]);
        assert_eq!(some.chat_model().unwrap().to_string(), "vertexai/gemini-2.0-flash-001");
        assert_eq!(some.embedder().unwrap().provider, Provider::VoyageAi);
        let own = ModelRef {
            provider: Provider::Custom,
            model: "m".into(),
        };
        assert_eq!(some.with_chat_model(own.clone()).chat_model(), Some(own));
    }
}
