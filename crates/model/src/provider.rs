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

    /// Whether it has embedding models that are spoken to.
    pub fn embeds(self) -> bool {
        !matches!(self, Self::Anthropic | Self::VertexAi)
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

/// A name that is no provider's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no provider; known are {known}", known = Provider::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownProvider {
    /// The name, fit to be shown.
    pub name: String,
}

impl std::str::FromStr for Provider {
    type Err = UnknownProvider;

    /// Also takes the names that nodes and people use beside [`Provider::as_str`].
    fn from_str(text: &str) -> Result<Self, UnknownProvider> {
        let plain = text.trim().to_ascii_lowercase();
        let known = match plain.as_str() {
            "openai_compatible" | "custom_openai_compatible" => Some(Self::Custom),
            "azure" => Some(Self::AzureOpenAi),
            "watsonx" => Some(Self::Ibm),
            name => Self::parse(name),
        };
        known.ok_or_else(|| UnknownProvider {
            name: text.chars().filter(|c| !c.is_control()).take(40).collect(),
        })
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

impl std::str::FromStr for ModelRef {
    type Err = String;

    /// Reads `provider/model`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text
            .trim()
            .split_once('/')
            .filter(|(_, model)| !model.trim().is_empty());
        let (provider, model) = parts.ok_or_else(|| format!("`{text}` is not `provider/model`"))?;
        let provider = provider.parse().map_err(|error: UnknownProvider| error.to_string())?;
        Ok(Self {
            provider,
            model: model.trim().to_owned(),
        })
    }
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
    fn names_are_read_as_they_are_written_and_by_their_other_names() {
        for provider in Provider::ALL {
            assert_eq!(provider.as_str().parse(), Ok(*provider));
        }
        assert_eq!("custom_openai_compatible".parse(), Ok(Provider::Custom));
        assert_eq!(" Watsonx".parse(), Ok(Provider::Ibm));
        let refusal = "nobody\u{7}".parse::<Provider>().unwrap_err().to_string();
        assert!(
            refusal.starts_with("`nobody` is no provider; known are openai,"),
            "{refusal}"
        );
        let model: ModelRef = "custom/BAAI/bge-m3".parse().unwrap();
        assert_eq!(
            (model.provider, model.model.as_str()),
            (Provider::Custom, "BAAI/bge-m3")
        );
        assert!("gpt-4o".parse::<ModelRef>().is_err() && "openai/ ".parse::<ModelRef>().is_err());
    }

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
