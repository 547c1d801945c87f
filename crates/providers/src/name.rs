//! Who is asked.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    /// OpenAI, or a server that speaks its language where the base URL is another.
    OpenAi,
    /// Models of OpenAI deployed at Azure.
    #[serde(rename = "azure_openai")]
    AzureOpenAi,
    /// Anthropic.
    Anthropic,
    /// Amazon Bedrock.
    Bedrock,
    /// Google: Vertex AI, or the Gemini API.
    VertexAi,
    /// Voyage AI (embeddings only).
    VoyageAi,
    /// Together AI.
    TogetherAi,
    /// IBM watsonx.ai.
    Ibm,
    /// Any server that speaks OpenAI's language: vLLM, Ollama, TEI, LiteLLM.
    Custom,
    /// Models run by docmill itself (embeddings only), where it was built with them.
    Local,
}

impl ProviderName {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::OpenAi,
        Self::AzureOpenAi,
        Self::Anthropic,
        Self::Bedrock,
        Self::VertexAi,
        Self::VoyageAi,
        Self::TogetherAi,
        Self::Ibm,
        Self::Custom,
        Self::Local,
    ];

    /// The name in settings and nodes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::AzureOpenAi => "azure_openai",
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::VertexAi => "vertexai",
            Self::VoyageAi => "voyageai",
            Self::TogetherAi => "togetherai",
            Self::Ibm => "ibm",
            Self::Custom => "custom",
            Self::Local => "local",
        }
    }

    /// Whether it has models to chat with.
    pub const fn chats(self) -> bool {
        !matches!(self, Self::VoyageAi | Self::Local)
    }

    /// Whether it has models that embed and are spoken to here.
    pub const fn embeds(self) -> bool {
        !matches!(self, Self::Anthropic | Self::VertexAi)
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProviderName {
    type Err = String;

    /// Also takes the names that nodes use beside [`ProviderName::as_str`].
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let plain = text.trim().to_ascii_lowercase();
        let known = match plain.as_str() {
            "openai_compatible" | "custom_openai_compatible" => Some(Self::Custom),
            "azure" => Some(Self::AzureOpenAi),
            "watsonx" => Some(Self::Ibm),
            name => Self::ALL.into_iter().find(|known| known.as_str() == name),
        };
        known.ok_or_else(|| {
            let shown: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
            let all: Vec<_> = Self::ALL.iter().map(|name| name.as_str()).collect();
            format!("`{shown}` is no provider; known are {}", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ProviderName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert_eq!(serde_json::to_value(name).unwrap(), name.as_str());
        }
        assert_eq!("custom_openai_compatible".parse(), Ok(ProviderName::Custom));
        assert_eq!("watsonx".parse(), Ok(ProviderName::Ibm));
        let refusal = "nobody\u{7}".parse::<ProviderName>().unwrap_err();
        assert!(refusal.starts_with("`nobody` is no provider"), "{refusal}");
    }
}
