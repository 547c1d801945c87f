//! Pages read by a vision model: what to ask, and elements from the answer.

mod html;
mod json;
#[cfg(test)]
mod tests;

use docmill_model::element::assign_element_ids;
use docmill_model::hierarchy::assign_parents;
use docmill_model::settings::{PageFormat, VlmOptions};
use docmill_model::{Element, Route};
use serde_json::Value;

use crate::AnswerError;
use crate::answer::plain;
use crate::chat::{ChatRequest, GROUND_RULES, Picture};

/// `partitioner_type` of elements that a vision model read.
const PARTITIONER: &str = "vlm_partition";

/// Elements a page may have.
const MAX_ELEMENTS: usize = 10_000;

/// Code points of one element.
const MAX_CHARS: usize = 200_000;

const TASK: &str = "Transcribe the page in the picture: everything on it, in reading order, word for word, in its own language. \
In columns, read one column to its end before the next. Do not summarise, translate, correct or leave anything out, and add \
nothing that is not there.";

const HTML: &str = "Answer in HTML with these tags alone: h1 to h6 for the title and headings by their level; p for running text; \
ul, ol and li for lists, nested as on the page, with the number or letter of an item as its first characters; table, thead, \
tbody, tr, th, td (with colspan and rowspan) for tables, every cell in its place; pre for program code; formula for formulas \
of their own line, in LaTeX; img with alt for pictures, where alt says what the picture shows and what is written in it; \
figcaption for captions of pictures and tables; address for postal addresses; header and footer for what stands above and \
below the page's content on every page; pagenumber for the printed page number; form for a form, with each label and its value \
in a p; checkbox for check boxes, with its label, and the attribute alt=\"checked\" if it is. If the page is empty, answer <p></p>.";

/// The question about one page, shown as `picture`.
pub fn request(options: &VlmOptions, picture: Picture) -> ChatRequest {
    let (form, schema) = match options.output_format {
        PageFormat::Html => (HTML, None),
        PageFormat::Json => (json::TASK, Some(json::schema())),
    };
    ChatRequest {
        system: GROUND_RULES.into(),
        user: format!("{TASK}\n\n{form}"),
        pictures: vec![picture],
        schema,
        max_tokens: 16_000,
    }
}

/// The question asked again, as the answer could not be read.
pub fn repair_request(question: &ChatRequest, error: &AnswerError) -> ChatRequest {
    let mut again = question.clone();
    again.user.push_str(&format!(
        "\n\nAn earlier answer could not be used: {error}. Answer again, with the whole page, in the form asked for and \
         nothing else."
    ));
    again
}

/// The elements of an answer, on page `page_number`: types, texts, depths, `text_as_html` and
/// `partitioner_type`. An empty page has none. [`finish`] makes a document of all pages.
///
/// # Errors
/// The answer is not in the form asked for.
pub fn read(options: &VlmOptions, answer: &str, page_number: u32) -> Result<Vec<Element>, AnswerError> {
    let mut elements = match options.output_format {
        PageFormat::Html => html::read(plain(answer)?, options.format_html)?,
        PageFormat::Json => json::read(answer, options.format_html)?,
    };
    elements.truncate(MAX_ELEMENTS);
    for element in &mut elements {
        let metadata = &mut element.metadata;
        metadata.page_number = Some(page_number);
        metadata.routing = Some(Route::Vlm.as_str().into());
        metadata
            .extra
            .insert("partitioner_type".into(), Value::String(PARTITIONER.into()));
        if element.kind == docmill_model::ElementType::Table {
            metadata.table_extraction_method = Some("vlm".into());
        }
    }
    Ok(elements)
}

/// Gives the elements of all pages, in order, their ids and parents. To be called when file name and the
/// like are set, as ids depend on them; `make_ids_unique` may follow.
pub fn finish(elements: &mut [Element]) {
    assign_element_ids(elements);
    assign_parents(elements);
}
