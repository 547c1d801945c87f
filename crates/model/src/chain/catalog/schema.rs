//! Settings as JSON Schema.

use serde_json::{Map, Value, json};

use super::{NodeEntry, ObjectOf, Setting, Takes};
use crate::element::ElementType;
use crate::python_regex::MAX_PATTERN_CHARS;

impl NodeEntry {
    /// The JSON Schema (draft 2020-12) of the node's `settings`.
    pub fn json_schema(&self) -> Value {
        let property = |setting: &Setting| (setting.name.to_owned(), of_setting(setting));
        let properties: Map<String, Value> = self.settings.iter().map(property).collect();
        let required: Vec<_> = self
            .settings
            .iter()
            .filter(|one| one.required)
            .map(|one| one.name)
            .collect();
        let mut schema = json!({
            "type": "object",
            "title": format!("{} settings", self.subtype),
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

fn of_setting(setting: &Setting) -> Value {
    let mut schema = match setting.value {
        Takes::Boolean => json!({"type": "boolean"}),
        Takes::Count(min) => json!({"type": "integer", "minimum": min}),
        Takes::Between(low, high) => json!({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}),
        Takes::Text => json!({"type": "string"}),
        Takes::Word(words) => json!({"type": "string", "enum": words}),
        Takes::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Takes::ElementTypes => {
            let known: Vec<_> = ElementType::ALL.iter().map(|kind| kind.as_str()).collect();
            json!({"type": "array", "items": {"type": "string", "examples": known}})
        }
        Takes::Object(of) => of_object(of),
        Takes::Ignored => json!({"deprecated": true}),
    };
    schema["description"] = setting.description.into();
    if !setting.default.is_null() {
        schema["default"] = setting.default.clone();
    }
    schema
}

fn of_object(of: ObjectOf) -> Value {
    match of {
        ObjectOf::PromptOverrides => json!({
            "type": "object",
            "properties": {"prompt": {
                "type": "object",
                "properties": {"user": {"type": "string"}},
                "required": ["user"],
                "additionalProperties": false,
            }},
            "required": ["prompt"],
            "additionalProperties": false,
        }),
        ObjectOf::SchemaToExtract => json!({
            "type": "object",
            "properties": {
                "json_schema": {"anyOf": [{"type": "string"}, {"type": "object"}]},
                "extraction_guidance": {"type": "string"},
            },
            "minProperties": 1,
            "additionalProperties": false,
        }),
        ObjectOf::Patterns => json!({
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "pattern": {"type": "string", "maxLength": MAX_PATTERN_CHARS},
                },
                "required": ["name", "pattern"],
                "additionalProperties": false,
            },
        }),
    }
}
