//! Texts to vectors.

use std::fmt;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{Provider, ProviderError, ProviderErrorKind, Result, Usage};

/// Most batches of one call of [`embed_all`] that wait for a free place at once.
const BATCHES_AT_ONCE: usize = 64;

/// A model that turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Who runs the model.
    fn provider(&self) -> Provider;

    /// The model's name.
    fn model(&self) -> &str;

    /// What the model and a request can take.
    fn limits(&self) -> EmbedLimits;

    /// Embeds one batch in one request, with retries: as many vectors as texts, in their order, all of the
    /// same length and with finite numbers. Dropping the future ends the call.
    ///
    /// # Errors
    /// What the last try met, and what the call cost.
    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Embedded>;
}

/// What the vectors are for: some models embed what is searched otherwise than what is searched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Parts of documents, to be found.
    #[default]
    Document,
    /// A question.
    Query,
}

/// What a model and a request can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedLimits {
    /// Numbers of a vector; `None` for models that are not known here.
    pub dims: Option<usize>,
    /// Most characters of a text; `None` for models that are not known here.
    pub max_chars: Option<usize>,
    /// Most texts of a batch.
    pub max_texts: usize,
    /// Most characters of a batch of several texts.
    pub max_batch_chars: usize,
}

/// Vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// One for each text, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// The model as the provider names it; empty where there were no texts.
    pub model: String,
    /// The provider's own ids of the exchanges.
    pub request_ids: Vec<String>,
    /// What it cost.
    pub usage: Usage,
}

/// Checks texts before anything is paid.
///
/// # Errors
/// [`ProviderErrorKind::Invalid`] naming the first text that is empty or too long, by its place from 0.
pub fn check_texts(embedder: &dyn Embedder, texts: &[String]) -> Result<()> {
    let most = embedder.limits().max_chars;
    let wrong = |message| ProviderError::new(embedder.provider(), ProviderErrorKind::Invalid, message);
    for (place, text) in texts.iter().enumerate() {
        if text.trim().is_empty() {
            return Err(wrong(format!("text {place} is empty: an empty text can't be embedded")));
        }
        // Bytes are never fewer than characters.
        let Some(most) = most.filter(|most| text.len() > *most) else {
            continue;
        };
        let length = text.chars().count();
        if length > most {
            return Err(wrong(format!(
                "text {place} has {length} characters; model {} takes at most {most}: use smaller chunks",
                embedder.model()
            )));
        }
    }
    Ok(())
}

/// Embeds any number of texts: checked first, then in batches as large as the limits allow, several at once.
///
/// # Errors
/// As [`check_texts`], or the first batch that fails, with the cost of all that was done.
pub async fn embed_all(embedder: &dyn Embedder, texts: &[String], purpose: Purpose) -> Result<Embedded> {
    check_texts(embedder, texts)?;
    let mut all = Embedded {
        vectors: Vec::new(),
        model: String::new(),
        request_ids: Vec::new(),
        usage: Usage::default(),
    };
    let batches = stream::iter(batches(texts, embedder.limits()));
    let mut answers = batches
        .map(|batch| embedder.embed(batch, purpose))
        .buffered(BATCHES_AT_ONCE);
    loop {
        match answers.try_next().await {
            Ok(Some(answer)) => {
                all.usage += answer.usage;
                all.model = answer.model;
                all.request_ids.extend(answer.request_ids);
                all.vectors.extend(answer.vectors);
            }
            Ok(None) => return one_length(embedder, all),
            Err(mut error) => {
                *error.usage += all.usage;
                return Err(error);
            }
        }
    }
}

fn one_length(embedder: &dyn Embedder, all: Embedded) -> Result<Embedded> {
    let first = all.vectors.first().map(Vec::len);
    if all.vectors.iter().all(|vector| Some(vector.len()) == first) {
        return Ok(all);
    }
    let message = "its vectors differ in length from one batch to the next";
    let mut error = ProviderError::new(embedder.provider(), ProviderErrorKind::BadAnswer, message);
    *error.usage = all.usage;
    Err(error)
}

/// Consecutive texts, as many at a time as the limits allow and at least one.
fn batches(texts: &[String], limits: EmbedLimits) -> Vec<&[String]> {
    let mut batches = Vec::new();
    let (mut start, mut chars) = (0, 0_usize);
    for (place, text) in texts.iter().enumerate() {
        let length = text.chars().count();
        let full = place - start >= limits.max_texts.max(1) || chars.saturating_add(length) > limits.max_batch_chars;
        if full && place > start {
            batches.extend(texts.get(start..place));
            (start, chars) = (place, 0);
        }
        chars = chars.saturating_add(length);
    }
    batches.extend(texts.get(start..).filter(|rest| !rest.is_empty()));
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_both_limits_and_lose_nothing() {
        let texts: Vec<String> = ["aaaa", "é", "b", "", "cccccccccc", "d", "e"].map(String::from).into();
        let lengths = |max_texts, max_batch_chars| {
            let limits = EmbedLimits {
                dims: None,
                max_chars: None,
                max_texts,
                max_batch_chars,
            };
            let batches = batches(&texts, limits);
            assert_eq!(batches.concat(), texts);
            batches.iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(100, 100), [7]);
        assert_eq!(lengths(2, 100), [2, 2, 2, 1]);
        assert_eq!(lengths(100, 5), [2, 2, 1, 2]);
        assert_eq!(lengths(0, 0), [1; 7]);
        assert!(
            batches(
                &[],
                EmbedLimits {
                    dims: None,
                    max_chars: None,
                    max_texts: 1,
                    max_batch_chars: 1
                }
            )
            .is_empty()
        );
    }
}
