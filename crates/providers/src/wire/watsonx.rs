//! Embeddings of IBM watsonx.ai; its chat is OpenAI's with other names.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::openai::Shape;
use super::{check_batch, checked_vectors, embedded, limits};
use crate::caller::{Answer, Call, Caller};
use crate::{EmbedLimits, Embedded, Embedder, Provider, Purpose, Result};

/// Where keys are exchanged for tokens.
pub(crate) const IAM: &str = "https://iam.cloud.ibm.com/identity/token";
/// Where it is, unless another region is set.
pub(crate) const BASE: &str = "https://us-south.ml.cloud.ibm.com";
/// Most characters of a batch.
const BATCH_CHARS: usize = 100_000;

/// A model of watsonx.ai.
#[derive(Debug)]
pub(crate) struct WatsonxEmbedder {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) shape: Shape,
}

#[async_trait]
impl Embedder for WatsonxEmbedder {
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
        body.insert("inputs".into(), texts.into());
        let call = Call::new(self.shape.embeddings.clone(), &Value::Object(body));
        let dims = self.limits().dims;
        let read = |answer: &Answer| read(answer, texts.len(), dims);
        let outcome = self.caller.call(&call, usize::MAX, read).await?;
        Ok(embedded(outcome, &self.model))
    }
}

#[derive(Deserialize)]
struct Body {
    model_id: Option<String>,
    results: Vec<Vector>,
    #[serde(default)]
    input_token_count: u64,
}

#[derive(Deserialize)]
struct Vector {
    embedding: Vec<f32>,
}

type Read = (Vec<Vec<f32>>, Option<String>, u64);

fn read(answer: &Answer, count: usize, dims: Option<usize>) -> std::result::Result<Read, String> {
    let body: Body = answer.json()?;
    let vectors = body.results.into_iter().map(|vector| vector.embedding).collect();
    let vectors = checked_vectors(vectors, count, dims)?;
    Ok((vectors, body.model_id, body.input_token_count))
}
