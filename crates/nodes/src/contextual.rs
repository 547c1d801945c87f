//! Context in front of chunks: a sentence or two that say where in the document a chunk belongs.

use docmill_model::Element;
use docmill_model::settings::ContextOptions;

use crate::AnswerError;
use crate::answer::{clean, plain};
use crate::chat::{ChatRequest, GROUND_RULES, clip, material};

/// Code points of a context.
const MAX_CONTEXT_CHARS: usize = 2_000;

const TASK: &str = "The chunk below is part of the document. Write one or two short sentences that say where in the document \
it belongs and what it is about, naming what it only refers to (the company, the product, the year, the section), so that \
the chunk can be found and understood by itself. Do not repeat the chunk and do not judge it. Answer with these sentences \
alone, in the language of the chunk.";

/// The document whose chunks get context.
#[derive(Clone, Debug)]
pub struct Document {
    material: String,
}

impl Document {
    /// The document that `chunks` were made of; `None` if it is longer than `context_char_limit`, in which
    /// case its chunks stay as they are.
    pub fn of(chunks: &[Element], options: &ContextOptions) -> Option<Self> {
        let mut text = String::new();
        let mut chars = 0;
        for chunk in chunks.iter().filter(|chunk| applies(chunk)) {
            chars += chunk.text.chars().count() + 2;
            if chars > options.context_char_limit.saturating_add(2) {
                return None;
            }
            text.push_str(&chunk.text);
            text.push_str("\n\n");
        }
        Some(Self {
            material: material("The document", text.trim_end()),
        })
    }
}

/// Whether a chunk gets context: whether it has words.
pub fn applies(chunk: &Element) -> bool {
    chunk.text.chars().any(char::is_alphanumeric)
}

/// The question about one chunk. All requests of a document begin alike, so that providers can reuse what
/// they made of that part.
pub fn request(options: &ContextOptions, document: &Document, chunk: &Element) -> ChatRequest {
    let task = options.user_prompt.as_deref().unwrap_or(TASK);
    ChatRequest {
        system: GROUND_RULES.into(),
        user: format!(
            "{}\n{task}\n\n{}",
            document.material,
            material("The chunk", &chunk.text)
        ),
        pictures: Vec::new(),
        schema: None,
        max_tokens: 512,
    }
}

/// Puts the context in front of the chunk's text: `Prefix: <context>; Original: <text>`. Its id stays.
///
/// # Errors
/// The answer can't be used; the chunk is as it was.
pub fn apply(options: &ContextOptions, chunk: &mut Element, answer: &str) -> Result<(), AnswerError> {
    let words: Vec<_> = plain(answer)?.split_whitespace().collect();
    let context = clean(clip(&words.join(" "), MAX_CONTEXT_CHARS));
    if context.is_empty() {
        return Err(AnswerError::Empty);
    }
    chunk.text = format!("Prefix: {context}; Original: {}", chunk.text);
    crate::origin::note(&mut chunk.metadata, "text", "contextual_chunking", Some(&options.model));
    Ok(())
}

#[cfg(test)]
mod tests {
    use docmill_model::ElementType;
    use docmill_model::provider::{ModelRef, Provider};

    use super::*;

    fn options(limit: usize) -> ContextOptions {
        ContextOptions {
            model: ModelRef {
                provider: Provider::OpenAi,
                model: "gpt-4o".into(),
            },
            context_char_limit: limit,
            user_prompt: None,
        }
    }

    #[test]
    fn context_stands_in_front_and_the_id_stays() {
        let mut chunk = Element::new(ElementType::CompositeElement, "It rose by 3 %.");
        chunk.element_id = "x".into();
        apply(&options(100), &mut chunk, " From ACME's\n report. ").unwrap();
        assert_eq!(chunk.text, "Prefix: From ACME's report.; Original: It rose by 3 %.");
        assert_eq!(chunk.element_id, "x");
        assert_eq!(chunk.metadata.enrichment_origins["text"][0]["provider"], "openai");
        let before = chunk.clone();
        assert_eq!(apply(&options(100), &mut chunk, " \n"), Err(AnswerError::Empty));
        assert_eq!(chunk, before);
    }

    #[test]
    fn a_document_over_the_limit_is_left_alone() {
        let chunks = ["abcde", "fghij", "--"].map(|text| Element::new(ElementType::CompositeElement, text));
        assert!(Document::of(&chunks, &options(11)).is_none());
        let document = Document::of(&chunks, &options(12)).unwrap();
        let request = request(&options(12), &document, &chunks[1]);
        assert!(request.user.starts_with(&document.material) && request.user.contains("\nfghij\n"));
        assert!(!applies(&chunks[2]));
    }
}
