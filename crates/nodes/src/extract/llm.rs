//! Extraction by a chat model.

use docmill_model::schema::{strict, violations};
use docmill_model::settings::LlmExtraction;
use docmill_model::{Element, ElementType};
use serde_json::Value;

use crate::AnswerError;
use crate::answer::json;
use crate::chat::{AnswerSchema, ChatRequest, GROUND_RULES, clip, material};
use crate::markup::table::sanitize_table;

/// Code points of a document. More than the largest context of today's models holds.
const MAX_DOCUMENT_CHARS: usize = 3_000_000;

/// Code points of a wrong answer shown to the model that gave it.
const MAX_ANSWER_CHARS: usize = 50_000;

/// Violations told to a model at once.
const MAX_TOLD: usize = 20;

const TASK: &str = "Extract data from the document into one JSON object. Use only what the document says, spelled as it is \
there; where it does not say something, use null, or an empty list, or leave the key out if the schema lets you. Never make \
up a value.";

/// A document longer than any model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document has more than {MAX_DOCUMENT_CHARS} characters, too many to extract data from in one call")]
pub struct DocumentTooLong;

/// The question: what to extract, and the document. The schema that binds the model is part of the
/// instructions too, for models that know no schemas.
///
/// # Errors
/// The document is too long.
pub fn request(extraction: &LlmExtraction, elements: &[Element]) -> Result<ChatRequest, DocumentTooLong> {
    let document = document_text(elements)?;
    let mut system = format!("{GROUND_RULES}\n\n{TASK}");
    if let Some(guidance) = &extraction.guidance {
        system.push_str(&format!(
            "\n\nWhat to look for, from the user of the program:\n{guidance}"
        ));
    }
    if let Some(schema) = &extraction.schema {
        system.push_str(&format!("\n\nThe object should be as this JSON Schema says:\n{schema}"));
    }
    Ok(ChatRequest {
        system,
        user: material("The document", &document),
        pictures: Vec::new(),
        schema: extraction.schema.as_ref().map(|schema| AnswerSchema {
            name: "extracted_data".into(),
            schema: strict(schema),
        }),
        max_tokens: 16_000,
    })
}

/// The texts of the elements, tables with their structure.
fn document_text(elements: &[Element]) -> Result<String, DocumentTooLong> {
    let mut text = String::new();
    let mut chars = 0;
    for element in elements
        .iter()
        .filter(|element| element.kind != ElementType::DocumentData)
    {
        let html = element
            .metadata
            .text_as_html
            .as_deref()
            .filter(|_| element.kind.is_table());
        let html = html.and_then(sanitize_table);
        let part = html.as_deref().unwrap_or(&element.text).trim();
        if part.is_empty() {
            continue;
        }
        chars += part.chars().count() + 2;
        if chars > MAX_DOCUMENT_CHARS {
            return Err(DocumentTooLong);
        }
        text.push_str(part);
        text.push_str("\n\n");
    }
    Ok(text)
}

/// The data in an answer.
///
/// # Errors
/// The answer is no JSON object, or not as the schema says. One more try with [`repair_request`] may help.
pub fn read(extraction: &LlmExtraction, answer: &str) -> Result<Value, AnswerError> {
    let data = json(answer)?;
    if !data.is_object() {
        return Err(AnswerError::shape("an object was asked for"));
    }
    let Some(schema) = &extraction.schema else {
        return Ok(data);
    };
    let wrong = violations(schema, &data);
    match wrong.is_empty() {
        true => Ok(data),
        false => Err(AnswerError::WrongShape(wrong.iter().map(ToString::to_string).collect())),
    }
}

/// The question asked again, with the answer that could not be used and why.
pub fn repair_request(request: &ChatRequest, answer: &str, error: &AnswerError) -> ChatRequest {
    let mut again = request.clone();
    let problems = match error {
        AnswerError::WrongShape(problems) => problems
            .iter()
            .take(MAX_TOLD)
            .map(|problem| format!("- {problem}\n"))
            .collect(),
        other => format!("- {other}\n"),
    };
    again.user.push_str(&format!(
        "\n{}\nThe previous answer can't be used:\n{problems}Answer again with the whole corrected JSON object.\n",
        material("Previous answer", clip(answer, MAX_ANSWER_CHARS))
    ));
    again
}
