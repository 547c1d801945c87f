//! Descriptions of pictures.

use docmill_model::schema::{strict, violations};
use docmill_model::{Element, ElementType};
use serde_json::{Map, Value, json};

use crate::AnswerError;
use crate::answer::{clean, json};
use crate::chat::{AnswerSchema, ChatRequest, GROUND_RULES, Picture, clip, material};
use crate::markup::table::sanitize_table;

/// Code points of each text in a description.
const MAX_CHARS: usize = 20_000;

/// Texts and tables told of one picture.
const MAX_ITEMS: usize = 500;

const TASK: &str = "Describe the picture for a reader who can't see it and for search. `type`: what kind of picture it \
is, in one to three words, such as photograph, diagram, graph, technical drawing, map, screenshot, logo, handwriting. \
`description.description`: what it shows and what it says, in a few sentences; for a graph its axes, series and main \
values. `description.texts`: the words visible in it, in reading order, each label as one item, spelled as they are. \
`description.tables`: each table in it as an HTML table. Use empty lists where there is no text or no table. Do not guess \
who people are, and leave out what can't be seen.";

pub(super) fn applies(element: &Element) -> bool {
    element.kind == ElementType::Image && Picture::of(element).is_some()
}

pub(super) fn request(element: &Element) -> ChatRequest {
    let mut user = TASK.to_owned();
    let known = element.text.trim();
    if !known.is_empty() {
        user.push_str("\n\n");
        user.push_str(&material(
            "Text already recognised in the picture, maybe with errors",
            clip(known, MAX_CHARS),
        ));
    }
    ChatRequest {
        system: GROUND_RULES.into(),
        user,
        pictures: Picture::of(element).into_iter().collect(),
        schema: Some(AnswerSchema {
            name: "image_description".into(),
            schema: strict(&schema()),
        }),
        max_tokens: 4_096,
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "description": {
                "type": "object",
                "properties": {
                    "texts": {"type": "array", "items": {"type": "string"}},
                    "tables": {"type": "array", "items": {"type": "string"}},
                    "description": {"type": "string"},
                },
                "required": ["texts", "tables", "description"],
            },
        },
        "required": ["type", "description"],
    })
}

/// The text of the element: the answer in its own form, written anew. `description` is an object when the
/// picture holds text or tables, otherwise a text.
pub(super) fn read(answer: &str) -> Result<String, AnswerError> {
    let answer = json(answer)?;
    let shape = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "description": {"anyOf": [{"type": "string"}, {
                "type": "object",
                "properties": {
                    "texts": {"type": "array", "items": {"type": "string"}},
                    "tables": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                    "description": {"type": "string"},
                },
                "required": ["description"],
            }]},
        },
        "required": ["type", "description"],
    });
    let wrong = violations(&shape, &answer);
    if !wrong.is_empty() {
        return Err(AnswerError::WrongShape(wrong.iter().map(ToString::to_string).collect()));
    }
    let given = &answer["description"];
    let said = clean(clip(
        given.as_str().or(given["description"].as_str()).unwrap_or_default(),
        MAX_CHARS,
    ));
    let texts = strings(&given["texts"], |text| Some(clean(text)));
    let tables = strings(&given["tables"], sanitize_table);
    if said.is_empty() && texts.is_empty() && tables.is_empty() {
        return Err(AnswerError::Nothing("description"));
    }
    let description = match texts.is_empty() && tables.is_empty() {
        true => Value::String(said),
        false => {
            let mut parts = Map::new();
            parts.insert("texts".into(), texts.into());
            parts.insert("tables".into(), tables.into());
            parts.insert("description".into(), said.into());
            Value::Object(parts)
        }
    };
    let kind = clean(clip(answer["type"].as_str().unwrap_or_default(), 100));
    Ok(json!({"type": kind, "description": description}).to_string())
}

/// The strings of a list, or a single one, as `read` makes them; empty ones are left out.
fn strings(value: &Value, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        other => std::slice::from_ref(other),
    };
    let texts = items.iter().filter_map(Value::as_str).take(MAX_ITEMS);
    texts
        .filter_map(|text| read(clip(text, MAX_CHARS)))
        .filter(|text| !text.is_empty())
        .collect()
}
