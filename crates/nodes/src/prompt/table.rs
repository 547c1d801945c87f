//! Descriptions of tables, and their structure.

use docmill_model::schema::strict;
use docmill_model::{Element, ElementType};
use serde_json::{Value, json};

use crate::AnswerError;
use crate::answer::{clean, json, plain};
use crate::chat::{AnswerSchema, ChatRequest, GROUND_RULES, Picture, clip, material};
use crate::markup::grid::Grid;
use crate::markup::table::sanitize_table;

/// Code points of a table sent along.
const MAX_CHARS: usize = 100_000;

/// Code points of a summary.
const MAX_SUMMARY_CHARS: usize = 20_000;

const DESCRIBE: &str = "Summarise the table for a reader who can't see it and for search: what it is about, what its rows \
and columns are, its units, and its most telling values, in a few sentences of running text. Use only what the table says.";

const READ: &str = "Write the table as HTML: one `<table>` with `<thead>`, `<tbody>`, `<tr>`, `<th>`, `<td>`, and `colspan` \
or `rowspan` where a cell spans several columns or rows. No other tags and no other attributes. Keep every row, column and \
word as it is, in its place; an empty cell stays an empty cell. Do not correct, translate, compute or leave out anything.";

pub(super) fn describes(element: &Element) -> bool {
    element.kind == ElementType::Table && has_source(element)
}

fn has_source(element: &Element) -> bool {
    !element.text.trim().is_empty() || element.metadata.text_as_html.is_some() || Picture::of(element).is_some()
}

/// With `second_pass` only tables of which the engine found no good structure.
pub(super) fn reads(element: &Element, second_pass: bool) -> bool {
    describes(element) && !(second_pass && has_structure(element))
}

/// Whether the engine's HTML has rows and columns, and holds the words of the table.
fn has_structure(element: &Element) -> bool {
    let Some(html) = &element.metadata.text_as_html else {
        return false;
    };
    let grid = Grid::parse(html);
    let columns = |row: &crate::markup::grid::Row| row.cells.iter().map(|cell| cell.colspan as usize).sum::<usize>();
    let widths: Vec<_> = grid.rows.iter().map(columns).collect();
    let widest = widths.iter().copied().max().unwrap_or(0);
    let in_cells: usize = grid.rows.iter().map(|row| row.len).sum();
    // Half of the text outside of the structure, or rows of one cell, show that the structure was missed.
    let text = element.text.chars().count();
    grid.rows.len() >= 2 && widest >= 2 && in_cells * 2 >= text
}

pub(super) fn description_request(element: &Element) -> ChatRequest {
    ChatRequest {
        schema: Some(AnswerSchema {
            name: "table_description".into(),
            schema: strict(&json!({
                "type": "object",
                "properties": {"description": {"type": "string"}},
                "required": ["description"],
            })),
        }),
        ..ask(DESCRIBE, element, 2_048)
    }
}

pub(super) fn html_request(element: &Element) -> ChatRequest {
    // An answer repeats the table, with markup about as long as the text.
    let chars = element.text.chars().count().clamp(0, MAX_CHARS);
    let max_tokens = u32::try_from(4_096 + chars).unwrap_or(u32::MAX).min(16_000);
    ask(READ, element, max_tokens)
}

fn ask(task: &str, element: &Element, max_tokens: u32) -> ChatRequest {
    let mut user = format!("{task}\n\n");
    let html = element.metadata.text_as_html.as_deref().and_then(sanitize_table);
    let text = element.text.trim();
    if let Some(html) = html {
        user.push_str(&material(
            "The table as a program read it, maybe with errors",
            clip(&html, MAX_CHARS),
        ));
    } else if !text.is_empty() {
        user.push_str(&material(
            "The words of the table, without its structure",
            clip(text, MAX_CHARS),
        ));
    }
    let pictures: Vec<_> = Picture::of(element).into_iter().collect();
    if !pictures.is_empty() {
        user.push_str("The picture shows the table. Where both differ, the picture is right.\n");
    }
    ChatRequest {
        system: GROUND_RULES.into(),
        user,
        pictures,
        schema: None,
        max_tokens,
    }
}

/// A summary, in the object asked for or, from models that do not know schemas, as plain text.
pub(super) fn read_description(answer: &str) -> Result<String, AnswerError> {
    let text = plain(answer)?;
    let summary = match json(text) {
        Ok(Value::Object(map)) => match map.get("description") {
            Some(Value::String(text)) => text.clone(),
            _ => return Err(AnswerError::shape("`description` should be a text")),
        },
        Ok(Value::String(text)) => text,
        Ok(_) => return Err(AnswerError::shape("an object with `description` was asked for")),
        Err(error) if text.starts_with(['{', '[']) => return Err(error),
        Err(_) => text.to_owned(),
    };
    match clean(clip(&summary, MAX_SUMMARY_CHARS)) {
        text if text.is_empty() => Err(AnswerError::Empty),
        text => Ok(text),
    }
}

/// The table of an answer, rebuilt from its rows and cells alone.
pub(super) fn read_html(answer: &str) -> Result<String, AnswerError> {
    let text = plain(answer)?;
    let lower = text.to_ascii_lowercase();
    let start = lower
        .find("<table")
        .or_else(|| lower.find("<tr"))
        .ok_or(AnswerError::Nothing("table"))?;
    let end = lower.rfind("</table>").filter(|end| *end > start).unwrap_or(text.len());
    sanitize_table(&text[start..end]).ok_or(AnswerError::Nothing("table"))
}
