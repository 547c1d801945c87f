//! Embeddings.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::super::{check_batch, checked_vectors, embedded, limits};
use super::Shape;
use crate::caller::{Answer, Call, Caller};
use crate::{EmbedLimits, Embedded, Embedder, Provider, Purpose, Result};

/// Most characters of a batch: far fewer tokens than the 300,000 that OpenAI takes at once.
const BATCH_CHARS: usize = 200_000;

/// A model behind OpenAI's embeddings.
#[derive(Debug)]
pub(crate) struct OpenAiEmbedder {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) shape: Shape,
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        limits(&self.caller, &self.model, self.shape.max_texts, BATCH_CHARS)
    }

    async fn embed(&self, texts: &[String], _: Purpose) -> Result<Embedded> {
        check_batch(&self.caller, self.limits(), texts)?;
        let mut body = self.shape.fixed.clone();
        body.insert("input".into(), texts.into());
        body.insert("encoding_format".into(), "float".into());
        let call = Call::new(self.shape.embeddings.clone(), &Value::Object(body));
        let dims = self.limits().dims;
        let read = |answer: &Answer| read(answer, texts.len(), dims);
        let outcome = self.caller.call(&call, usize::MAX, read).await?;
        Ok(embedded(outcome, &self.model))
    }
}

#[derive(Deserialize)]
struct Body {
    data: Vec<Item>,
    model: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(crate) struct Item {
    /// Where it belongs; some servers leave it out and keep the order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// OpenAI counts the prompt's tokens, others only all of them.
#[derive(Default, Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

type Read = (Vec<Vec<f32>>, Option<String>, u64);

fn read(answer: &Answer, count: usize, dims: Option<usize>) -> std::result::Result<Read, String> {
    let body: Body = answer.json()?;
    let vectors = checked_vectors(in_order(body.data)?, count, dims)?;
    let tokens = body.usage.unwrap_or_default();
    let tokens = tokens.prompt_tokens.or(tokens.total_tokens).unwrap_or_default();
    Ok((vectors, body.model, tokens))
}

/// The vectors in the order of the texts.
pub(crate) fn in_order(items: Vec<Item>) -> std::result::Result<Vec<Vec<f32>>, String> {
    let mut placed: Vec<_> = items
        .into_iter()
        .enumerate()
        .map(|(place, item)| (item.index.unwrap_or(place), item.embedding))
        .collect();
    placed.sort_by_key(|(index, _)| *index);
    let whole = placed.iter().enumerate().all(|(place, (index, _))| place == *index);
    if !whole {
        return Err("its vectors are not numbered from 0 without a gap".into());
    }
    Ok(placed.into_iter().map(|(_, vector)| vector).collect())
}
