//! Structured data of a whole document, by a chat model or by regular expressions.

mod llm;
mod regexes;
#[cfg(test)]
mod tests;

pub use llm::{DocumentTooLong, read, repair_request, request};
pub use regexes::match_patterns;

use docmill_model::element::assign_element_ids;
use docmill_model::provider::ModelRef;
use docmill_model::settings::OutputMode;
use docmill_model::{Element, ElementType};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an extractor yields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extracted {
    /// Elements, the first of which holds the data.
    Elements(Vec<Element>),
    /// The data alone.
    Data(Value),
}

/// Puts the data where the node's `output_mode` wants them: in a `DocumentData` element with an empty text in
/// front of the elements, or alone. `model` is who extracted them; `None` for regular expressions.
pub fn output(elements: Vec<Element>, data: Value, mode: OutputMode, model: Option<&ModelRef>) -> Extracted {
    if mode == OutputMode::DataOnly {
        return Extracted::Data(data);
    }
    let mut first = Element::new(ElementType::DocumentData, "");
    if let Some(element) = elements.first() {
        let of = &element.metadata;
        let metadata = &mut first.metadata;
        metadata.filename.clone_from(&of.filename);
        metadata.file_directory.clone_from(&of.file_directory);
        metadata.filetype.clone_from(&of.filetype);
        metadata.last_modified.clone_from(&of.last_modified);
        metadata.data_source.clone_from(&of.data_source);
        metadata.languages.clone_from(&of.languages);
    }
    first.metadata.extra.insert("extracted_data".into(), data);
    let task = if model.is_some() {
        "structured_data_extractor"
    } else {
        "regex"
    };
    crate::origin::note(&mut first.metadata, "extracted_data", task, model);
    assign_element_ids(std::slice::from_mut(&mut first));
    let mut all = vec![first];
    all.extend(elements);
    Extracted::Elements(all)
}
