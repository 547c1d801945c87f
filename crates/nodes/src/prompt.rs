//! Enrichments: one question per element, one answer into the element.
//!
//! | task | elements | what the answer changes |
//! |---|---|---|
//! | image description | `Image` with a picture | `text`: a JSON text with `type` and `description` |
//! | table description | `Table` | `text`: the summary |
//! | table to HTML | `Table` | `text_as_html` |
//! | named entities | those with words | `entities`: `{items, relationships}` |
//! | OCR | with a picture, of the types asked for | `text`: what is read |
//!
//! Each change is noted in `enrichment_origins`. When an answer can't be used the element stays as it is.
//!
//! ```
//! use docmill_model::provider::{ModelRef, Provider};
//! use docmill_model::settings::{PromptOptions, PromptTask};
//! use docmill_model::{Element, ElementType};
//! use docmill_nodes::prompt;
//!
//! let options = PromptOptions {
//!     task: PromptTask::Ner,
//!     model: Some(ModelRef { provider: Provider::OpenAi, model: "gpt-4o".into() }),
//!     second_pass: false,
//!     user_prompt: None,
//!     block_types: Vec::new(),
//! };
//! let mut element = Element::new(ElementType::NarrativeText, "Ann works in Paris.");
//! let question = prompt::request(&options, &element).expect("the text has words");
//! assert!(question.user.contains("Ann works in Paris."));
//! // The caller sends the question; this came back:
//! let answer = r#"{"items": [{"entity": "Ann", "type": "PERSON"}], "relationships": []}"#;
//! prompt::apply(&options, &mut element, answer)?;
//! assert_eq!(element.metadata.extra["entities"]["items"][0]["entity"], "Ann");
//! # Ok::<(), docmill_nodes::AnswerError>(())
//! ```

mod entities;
mod image;
mod ocr;
mod table;
#[cfg(test)]
mod tests;

use docmill_model::settings::{PromptOptions, PromptTask};
use docmill_model::{Element, ElementType};

use crate::AnswerError;
use crate::chat::ChatRequest;

/// Whether the node has something to do with this element. [`request`] is `None` otherwise.
pub fn applies(options: &PromptOptions, element: &Element) -> bool {
    match options.task {
        PromptTask::ImageDescription => image::applies(element),
        PromptTask::TableDescription => table::describes(element),
        PromptTask::Table2Html => table::reads(element, options.second_pass),
        PromptTask::Ner => entities::applies(element),
        PromptTask::Ocr => ocr::applies(element, &options.block_types),
    }
}

/// The question about an element; `None` if the task does not apply to it.
pub fn request(options: &PromptOptions, element: &Element) -> Option<ChatRequest> {
    if !applies(options, element) {
        return None;
    }
    Some(match options.task {
        PromptTask::ImageDescription => image::request(element),
        PromptTask::TableDescription => table::description_request(element),
        PromptTask::Table2Html => table::html_request(element),
        PromptTask::Ner => entities::request(element, options.user_prompt.as_deref()),
        PromptTask::Ocr => ocr::request(element),
    })
}

/// Reads an answer into its element.
///
/// # Errors
/// The answer can't be used; the element is as it was.
pub fn apply(options: &PromptOptions, element: &mut Element, answer: &str) -> Result<(), AnswerError> {
    let field = match options.task {
        PromptTask::ImageDescription => {
            element.text = image::read(answer)?;
            "text"
        }
        PromptTask::TableDescription => {
            element.text = table::read_description(answer)?;
            "text"
        }
        PromptTask::Table2Html => {
            element.metadata.text_as_html = Some(table::read_html(answer)?);
            "text_as_html"
        }
        PromptTask::Ner => {
            let entities = entities::read(answer)?;
            element.metadata.extra.insert("entities".into(), entities);
            "entities"
        }
        PromptTask::Ocr => {
            element.text = ocr::read(answer)?;
            "text"
        }
    };
    crate::origin::note(
        &mut element.metadata,
        field,
        options.task.as_str(),
        options.model.as_ref(),
    );
    Ok(())
}

/// Whether `name`, in lower case, is the element type `kind` or a label that maps to it.
fn names(name: &str, kind: ElementType) -> bool {
    if name.eq_ignore_ascii_case(kind.as_str()) {
        return true;
    }
    let mut letters = name.chars();
    let label: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect();
    label.parse::<ElementType>().ok() == Some(kind)
}
