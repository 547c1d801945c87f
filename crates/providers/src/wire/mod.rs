//! The languages providers speak. One module each: it writes requests and takes answers apart, and does no
//! more.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod gemini;
pub(crate) mod openai;
pub(crate) mod voyage;
pub(crate) mod watsonx;

use std::fmt::Write as _;

use url::Url;

use crate::caller::{Caller, Outcome};
use crate::{ChatRequest, EmbedLimits, Embedded, Image, Part, ProviderErrorKind, Result, Usage, embedding_model};

/// Most bytes of an answer to a chat: far more than any model writes.
pub(crate) const CHAT_BYTES: usize = 8 << 20;

/// Longest name of a model (an ARN of Amazon's).
const LONGEST_MODEL: usize = 2_048;

/// Percent-encodes what RFC 3986 does not call unreserved, except the characters of `keep`.
pub(crate) fn encode(text: &str, keep: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The URL of `path` below a base.
pub(crate) fn url(caller: &Caller, base: &str, path: &str) -> Result<Url> {
    Url::parse(&format!("{base}{path}"))
        .map_err(|error| caller.error(ProviderErrorKind::Setup, format!("base_url is no URL: {error}")))
}

/// Checks the name of a model, which may become part of a path.
pub(crate) fn checked_model(caller: &Caller, model: &str) -> Result<String> {
    let model = model.trim();
    let wrong = model.is_empty()
        || model.len() > LONGEST_MODEL
        || model.chars().any(|c| c.is_control() || c.is_whitespace())
        || model.chars().all(|c| c == '.');
    if wrong {
        return Err(caller.error(ProviderErrorKind::Setup, "the model's name is empty or can't be one"));
    }
    Ok(model.to_owned())
}

/// Checks what can be checked of a request before anything is paid. `largest`: most bytes of an image.
pub(crate) fn check_chat(caller: &Caller, request: &ChatRequest, largest: usize) -> Result<()> {
    let wrong = |message: String| Err(caller.error(ProviderErrorKind::Invalid, message));
    if request.messages.is_empty() {
        return wrong("there is no message to answer".into());
    }
    if request.max_tokens == 0 {
        return wrong("an answer of no tokens is asked for".into());
    }
    if let Some(image) = images(request).find(|image| image.bytes() > largest) {
        return wrong(format!(
            "an image has {} bytes; {} takes at most {largest}",
            image.bytes(),
            caller.provider
        ));
    }
    Ok(())
}

fn images(request: &ChatRequest) -> impl Iterator<Item = &Image> {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| match part {
        Part::Image(image) => Some(image),
        Part::Text(_) => None,
    })
}

/// The limits of a model and of a provider's batches.
pub(crate) fn limits(caller: &Caller, model: &str, max_texts: usize, max_batch_chars: usize) -> EmbedLimits {
    let known = embedding_model(caller.provider, model);
    EmbedLimits {
        dims: known.map(|known| known.dims),
        max_chars: known.map(|known| known.max_chars),
        max_texts,
        max_batch_chars,
    }
}

/// Checks that a batch is one.
pub(crate) fn check_batch(caller: &Caller, limits: EmbedLimits, texts: &[String]) -> Result<()> {
    if texts.is_empty() || texts.len() > limits.max_texts {
        let message = format!(
            "a batch of {} texts; one to {} go at once",
            texts.len(),
            limits.max_texts
        );
        return Err(caller.error(ProviderErrorKind::Invalid, message));
    }
    Ok(())
}

/// What a batch gave: its vectors, the model that the answer names if it names one, else the one `asked`, and
/// the tokens of the texts.
pub(crate) fn embedded(outcome: Outcome<(Vec<Vec<f32>>, Option<String>, u64)>, asked: &str) -> Embedded {
    let (vectors, model, tokens_in) = outcome.value;
    Embedded {
        vectors,
        model: model.unwrap_or_else(|| asked.to_owned()),
        request_ids: outcome.request_id.into_iter().collect(),
        usage: Usage {
            tokens_in,
            ..outcome.usage
        },
    }
}

/// Checks the vectors of an answer.
pub(crate) fn checked_vectors(
    vectors: Vec<Vec<f32>>,
    count: usize,
    dims: Option<usize>,
) -> std::result::Result<Vec<Vec<f32>>, String> {
    if vectors.len() != count {
        return Err(format!("{} vectors for {count} texts", vectors.len()));
    }
    let length = dims.or_else(|| vectors.first().map(Vec::len)).unwrap_or_default();
    for vector in &vectors {
        if vector.is_empty() || vector.len() != length {
            return Err(format!("a vector of {} numbers instead of {length}", vector.len()));
        }
        if vector.iter().any(|number| !number.is_finite()) {
            return Err("a vector holds a number that is none".into());
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_that_do_not_fit_are_refused() {
        let check = |vectors: &[&[f32]], count, dims| {
            checked_vectors(vectors.iter().map(|vector| vector.to_vec()).collect(), count, dims).is_ok()
        };
        assert!(check(&[&[1.0, 2.0], &[3.0, 4.0]], 2, Some(2)));
        assert!(check(&[&[1.0, 2.0]], 1, None));
        assert!(check(&[], 0, None));
        assert!(!check(&[&[1.0]], 2, None));
        assert!(!check(&[&[1.0], &[1.0, 2.0]], 2, None));
        assert!(!check(&[&[1.0]], 1, Some(2)));
        assert!(!check(&[&[]], 1, None));
        assert!(!check(&[&[f32::INFINITY]], 1, None));
    }

    #[test]
    fn names_become_one_segment() {
        assert_eq!(encode("us.a-v1:0/x%é", ""), "us.a-v1%3A0%2Fx%25%C3%A9");
        assert_eq!(encode("/model/a%3A0/x", "/"), "/model/a%253A0/x");
    }
}
