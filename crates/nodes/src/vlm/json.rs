//! Elements from a page in JSON.

use docmill_model::schema::strict;
use docmill_model::{Element, ElementType};
use serde_json::{Value, json};

use super::html::table_element;
use super::{MAX_CHARS, MAX_ELEMENTS};
use crate::AnswerError;
use crate::answer::clean;
use crate::chat::{AnswerSchema, clip};
use crate::markup::grid::{Grid, push_escaped};

pub(super) const TASK: &str = "Answer with a JSON object {\"elements\": [...]}, one object per block of the page in reading order: \
`type`, `text`, `html` and `level`. `type` is one of Title, NarrativeText, ListItem, Table, Image, FigureCaption, Formula, \
Header, Footer, PageNumber, Address, EmailAddress, CodeSnippet, FormKeysValues, UncategorizedText. `text` is the block's text; \
for a formula its LaTeX, for an image what it shows and what is written in it. `html` is for a table its HTML with table, \
thead, tbody, tr, th, td, colspan and rowspan, every cell in its place, and null for everything else. `level` is for a title \
its level, 1 for the highest, for an item of a list the number of lists around it, and null for everything else. An empty \
page has no elements.";

/// Types that no page has.
const NOT_ON_PAGES: [ElementType; 4] = [
    ElementType::DocumentData,
    ElementType::CompositeElement,
    ElementType::TableChunk,
    ElementType::PageBreak,
];

pub(super) fn schema() -> AnswerSchema {
    let schema = json!({
        "type": "object",
        "properties": {"elements": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "text": {"type": "string"},
                "html": {"type": ["string", "null"]},
                "level": {"type": ["integer", "null"]},
            },
            "required": ["type", "text", "html", "level"],
        }}},
        "required": ["elements"],
    });
    AnswerSchema {
        name: "page".into(),
        schema: strict(&schema),
    }
}

pub(super) fn read(answer: &str, lines: bool) -> Result<Vec<Element>, AnswerError> {
    let answer = crate::answer::json(answer)?;
    let list = match &answer {
        Value::Array(list) => list,
        other => match other.get("elements") {
            Some(Value::Array(list)) => list,
            _ => return Err(AnswerError::shape("`elements` should be a list")),
        },
    };
    let mut elements = Vec::new();
    for (index, item) in list.iter().take(MAX_ELEMENTS).enumerate() {
        if !item.is_object() {
            return Err(AnswerError::shape(format!("`/elements/{index}` should be an object")));
        }
        elements.extend(element(item, lines));
    }
    Ok(elements)
}

/// One element; `None` if it has no text.
fn element(item: &Value, lines: bool) -> Option<Element> {
    let word = |key: &str| clip(item[key].as_str().unwrap_or_default(), MAX_CHARS);
    let kind = word("type")
        .parse::<ElementType>()
        .ok()
        .filter(|kind| !NOT_ON_PAGES.contains(kind));
    let kind = kind.unwrap_or(ElementType::UncategorizedText);
    if kind == ElementType::Table
        && let Some(table) = table_element(&Grid::parse(word("html")), lines)
    {
        return Some(table);
    }
    let text = clean(word("text"));
    if text.is_empty() && kind != ElementType::Image {
        return None;
    }
    let level = item["level"]
        .as_u64()
        .and_then(|level| u32::try_from(level).ok())
        .filter(|level| *level < 100);
    let (tag, depth) = match kind {
        ElementType::Title => {
            let depth = level.unwrap_or(1).clamp(1, 6) - 1;
            (["h1", "h2", "h3", "h4", "h5", "h6"][depth as usize % 6], Some(depth))
        }
        ElementType::ListItem => ("li", Some(level.unwrap_or(1).max(1))),
        ElementType::CodeSnippet => ("pre", None),
        ElementType::FigureCaption => ("figcaption", None),
        ElementType::Address => ("address", None),
        _ => ("p", None),
    };
    let mut escaped = String::new();
    push_escaped(&mut escaped, &text);
    let html = match kind {
        ElementType::Image => format!("<img alt=\"{}\">", escaped.replace('"', "&quot;")),
        _ => format!("<{tag}>{escaped}</{tag}>"),
    };
    let mut element = Element::new(kind, text);
    element.metadata.category_depth = depth;
    element.metadata.text_as_html = Some(html);
    Some(element)
}
