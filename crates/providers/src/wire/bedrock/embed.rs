//! InvokeModel of the models that embed: each family has a language of its own.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{check_batch, checked_vectors, encode, limits, url};
use crate::caller::{Answer, Call, Caller};
use crate::{EmbedLimits, Embedded, Embedder, Provider, Purpose, Result, Usage};

/// A model of Bedrock that embeds.
#[derive(Debug)]
pub(crate) struct BedrockEmbedder {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) base: String,
    pub(crate) family: Family,
}

/// Whose model it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Amazon's Titan for text, version 1.
    TitanV1,
    /// Amazon's Titan for text, version 2.
    TitanV2,
    /// Amazon's Titan for text and images.
    TitanImage,
    /// Cohere's Embed, version 3.
    Cohere,
}

impl Family {
    /// The family of a model, which may be named by an inference profile.
    pub(crate) fn of(model: &str) -> Option<Self> {
        let known = [
            ("amazon.titan-embed-text-v2", Self::TitanV2),
            ("amazon.titan-embed-text-v1", Self::TitanV1),
            ("amazon.titan-embed-g1-text", Self::TitanV1),
            ("amazon.titan-embed-image", Self::TitanImage),
            ("cohere.embed-english-v3", Self::Cohere),
            ("cohere.embed-multilingual-v3", Self::Cohere),
        ];
        known
            .into_iter()
            .find_map(|(part, family)| model.contains(part).then_some(family))
    }

    fn body(self, texts: &[String], purpose: Purpose) -> Value {
        // All but Cohere's take one text at a time.
        let text = texts.first().map_or("", String::as_str);
        match self {
            Self::TitanV1 => json!({"inputText": text}),
            Self::TitanV2 => json!({"inputText": text, "dimensions": 1024, "normalize": true}),
            Self::TitanImage => json!({"inputText": text, "embeddingConfig": {"outputEmbeddingLength": 1024}}),
            Self::Cohere => {
                let kind = match purpose {
                    Purpose::Document => "search_document",
                    Purpose::Query => "search_query",
                };
                json!({"texts": texts, "input_type": kind, "truncate": "NONE"})
            }
        }
    }
}

#[async_trait]
impl Embedder for BedrockEmbedder {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        let most = if self.family == Family::Cohere { 96 } else { 1 };
        limits(&self.caller, &self.model, most, 100_000)
    }

    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Embedded> {
        check_batch(&self.caller, self.limits(), texts)?;
        let path = format!("/model/{}/invoke", encode(&self.model, ""));
        let body = self.family.body(texts, purpose);
        let call = Call::new(url(&self.caller, &self.base, &path)?, &body);
        let dims = self.limits().dims;
        let read = |answer: &Answer| self.read(answer, texts.len(), dims);
        let outcome = self.caller.call(&call, usize::MAX, read).await?;
        let (vectors, tokens_in) = outcome.value;
        Ok(Embedded {
            vectors,
            model: self.model.clone(),
            request_ids: outcome.request_id.into_iter().collect(),
            usage: Usage {
                tokens_in,
                ..outcome.usage
            },
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Titan {
    embedding: Vec<f32>,
    input_text_token_count: Option<u64>,
}

#[derive(Deserialize)]
struct Cohere {
    embeddings: Vec<Vec<f32>>,
}

impl BedrockEmbedder {
    fn read(
        &self,
        answer: &Answer,
        count: usize,
        dims: Option<usize>,
    ) -> std::result::Result<(Vec<Vec<f32>>, u64), String> {
        let (vectors, tokens) = match self.family {
            Family::Cohere => (answer.json::<Cohere>()?.embeddings, None),
            _ => {
                let body: Titan = answer.json()?;
                (vec![body.embedding], body.input_text_token_count)
            }
        };
        let counted = || {
            let header = answer.headers.get("x-amzn-bedrock-input-token-count")?;
            header.to_str().ok()?.parse().ok()
        };
        let tokens = tokens.or_else(counted).unwrap_or_default();
        Ok((checked_vectors(vectors, count, dims)?, tokens))
    }
}
