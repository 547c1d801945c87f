//! Named entities.

use std::collections::HashSet;

use docmill_model::schema::{strict, violations};
use docmill_model::{Element, ElementType};
use serde_json::{Map, Value, json};

use crate::AnswerError;
use crate::answer::{clean, json};
use crate::chat::{AnswerSchema, ChatRequest, GROUND_RULES, clip, material};

/// Code points of an element's text sent along.
const MAX_CHARS: usize = 100_000;

/// Code points of a name.
const MAX_NAME_CHARS: usize = 1_000;

/// Entities, and relationships, of one element.
const MAX_ITEMS: usize = 2_000;

/// Where the text goes in a user's prompt.
const TEXT_PLACE: &str = "{{text}}";

const TASK: &str = "Find the named entities in the text and how they relate.\n\
`items`: each entity once, `entity` spelled as in the text, `type` one of PERSON, ORGANIZATION, LOCATION, DATE, TIME, \
EVENT, MONEY, PERCENT, FACILITY, PRODUCT, ROLE, DOCUMENT, DATASET.\n\
`relationships`: what the text says about two of these entities, `from` and `to` spelled as in `items`, `relationship` in \
snake case, such as works_for, based_in, has_role, dated, located_in, part_of, owned_by, published_by.\n\
Use only what the text says; use empty lists where there is nothing.";

const FORM: &str = "Answer with a JSON object {\"items\": [{\"entity\": ..., \"type\": ...}], \"relationships\": [{\"from\": ..., \
\"relationship\": ..., \"to\": ...}]}.";

pub(super) fn applies(element: &Element) -> bool {
    let no_words = [
        ElementType::PageBreak,
        ElementType::PageNumber,
        ElementType::DocumentData,
    ];
    !no_words.contains(&element.kind) && element.text.chars().any(char::is_alphanumeric)
}

pub(super) fn request(element: &Element, user_prompt: Option<&str>) -> ChatRequest {
    let text = clip(element.text.trim(), MAX_CHARS);
    let user = match user_prompt {
        Some(prompt) => format!("{}\n\n{FORM}", prompt.replace(TEXT_PLACE, &material("Text", text))),
        None => format!("{TASK}\n\n{FORM}\n\n{}", material("Text", text)),
    };
    ChatRequest {
        system: GROUND_RULES.into(),
        user,
        pictures: Vec::new(),
        schema: Some(AnswerSchema {
            name: "named_entities".into(),
            schema: strict(&schema()),
        }),
        max_tokens: 4_096,
    }
}

fn schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {
                "type": "object",
                "properties": {"entity": text, "type": text},
                "required": ["entity", "type"],
            }},
            "relationships": {"type": "array", "items": {
                "type": "object",
                "properties": {"from": text, "relationship": text, "to": text},
                "required": ["from", "relationship", "to"],
            }},
        },
        "required": ["items"],
    })
}

/// `{items, relationships}` with known keys alone and each entry once.
pub(super) fn read(answer: &str) -> Result<Value, AnswerError> {
    let answer = match json(answer)? {
        // A list alone is the list of entities.
        Value::Array(items) => json!({"items": items}),
        other => other,
    };
    let wrong = violations(&schema(), &answer);
    if !wrong.is_empty() {
        return Err(AnswerError::WrongShape(wrong.iter().map(ToString::to_string).collect()));
    }
    Ok(json!({
        "items": entries(&answer["items"], &["entity", "type"]),
        "relationships": entries(&answer["relationships"], &["from", "relationship", "to"]),
    }))
}

fn entries(list: &Value, keys: &[&str]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let mut entries = Vec::new();
    for entry in list.as_array().into_iter().flatten() {
        let value = |key: &&str| clean(clip(entry[*key].as_str().unwrap_or_default(), MAX_NAME_CHARS));
        let values: Vec<_> = keys.iter().map(value).collect();
        if values.iter().all(|value| !value.is_empty()) && seen.insert(values.clone()) {
            let pairs = keys
                .iter()
                .map(|key| (*key).to_owned())
                .zip(values.into_iter().map(Value::String));
            entries.push(Value::Object(pairs.collect::<Map<_, _>>()));
        }
        if entries.len() >= MAX_ITEMS {
            break;
        }
    }
    entries
}
