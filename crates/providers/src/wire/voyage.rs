//! Voyage AI's embeddings.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::openai::{Item, in_order};
use super::{check_batch, checked_vectors, embedded, limits, url};
use crate::caller::{Answer, Call, Caller};
use crate::{EmbedLimits, Embedded, Embedder, Provider, Purpose, Result};

/// Where it is.
pub(crate) const BASE: &str = "https://api.voyageai.com/v1";
/// Most texts of a batch; the service takes a thousand.
const BATCH: usize = 128;
/// Most characters of a batch: fewer tokens than the 120,000 its largest models take at once.
const BATCH_CHARS: usize = 112_000;

/// A model of Voyage AI.
#[derive(Debug)]
pub(crate) struct VoyageEmbedder {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) base: String,
}

#[async_trait]
impl Embedder for VoyageEmbedder {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        limits(&self.caller, &self.model, BATCH, BATCH_CHARS)
    }

    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Embedded> {
        check_batch(&self.caller, self.limits(), texts)?;
        let (path, body) = self.ask(texts, purpose);
        let call = Call::new(url(&self.caller, &self.base, path)?, &body);
        let dims = self.limits().dims;
        let read = |answer: &Answer| read(answer, texts.len(), dims);
        let outcome = self.caller.call(&call, usize::MAX, read).await?;
        Ok(embedded(outcome, &self.model))
    }
}

impl VoyageEmbedder {
    /// A text that is too long is an error, never cut.
    fn ask(&self, texts: &[String], purpose: Purpose) -> (&'static str, Value) {
        let kind = match purpose {
            Purpose::Document => "document",
            Purpose::Query => "query",
        };
        if self.model.starts_with("voyage-multimodal") {
            let inputs: Vec<_> = texts
                .iter()
                .map(|text| json!({"content": [{"type": "text", "text": text}]}))
                .collect();
            let body = json!({"inputs": inputs, "model": self.model, "input_type": kind, "truncation": false});
            return ("/multimodalembeddings", body);
        }
        let body = json!({"input": texts, "model": self.model, "input_type": kind, "truncation": false});
        ("/embeddings", body)
    }
}

#[derive(Deserialize)]
struct Body {
    data: Vec<Item>,
    model: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    total_tokens: u64,
}

type Read = (Vec<Vec<f32>>, Option<String>, u64);

fn read(answer: &Answer, count: usize, dims: Option<usize>) -> std::result::Result<Read, String> {
    let body: Body = answer.json()?;
    let vectors = checked_vectors(in_order(body.data)?, count, dims)?;
    Ok((vectors, body.model, body.usage.map_or(0, |usage| usage.total_tokens)))
}
