//! Whether a value is what a schema describes.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::{resolve, types};
use crate::python_regex;

/// Violations told at most.
const MAX_VIOLATIONS: usize = 20;

/// One thing in a value that is not as its schema says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}`: {message}")]
pub struct Violation {
    /// JSON pointer into the value, `/` for the whole.
    pub path: String,
    /// What should be there.
    pub message: String,
}

/// What in `value` is not as `schema` says, which [`super::check`] let pass; at most 20 things. An optional
/// property may be null, as the strict form has it.
pub fn violations(schema: &Value, value: &Value) -> Vec<Violation> {
    let mut validator = Validator {
        root: schema,
        patterns: &RefCell::default(),
        found: Vec::new(),
        steps: 0,
    };
    validator.value(schema, value, "");
    validator.found
}

/// Steps taken in one validation: choices within choices could multiply without end.
const MAX_STEPS: usize = 2_000_000;

struct Validator<'s> {
    root: &'s Value,
    /// Patterns compiled so far; `None` for one that can't be.
    patterns: &'s RefCell<HashMap<String, Option<Regex>>>,
    found: Vec<Violation>,
    steps: usize,
}

impl Validator<'_> {
    fn violation(&mut self, path: &str, message: impl Into<String>) {
        if self.found.len() < MAX_VIOLATIONS {
            self.found.push(Violation {
                path: if path.is_empty() {
                    "/".into()
                } else {
                    path.chars().take(200).collect()
                },
                message: message.into(),
            });
        }
    }

    /// Goes as deep as the value, which was read with a bound on its depth.
    fn value(&mut self, schema: &Value, value: &Value, path: &str) {
        self.steps += 1;
        if self.found.len() >= MAX_VIOLATIONS || self.steps > MAX_STEPS {
            return;
        }
        let Some(schema) = resolve(self.root, schema) else {
            return self.violation(path, "the schema's reference leads nowhere");
        };
        let names = types(schema);
        if !names.is_empty() && !names.iter().any(|name| is_of(value, name)) {
            return self.violation(path, format!("should be of type {}", names.join(" or ")));
        }
        if let Some(Value::Array(values)) = schema.get("enum")
            && !values.iter().any(|one| equal(one, value))
        {
            let list = Value::Array(values.iter().take(20).cloned().collect());
            self.violation(path, format!("should be one of {list}"));
        }
        if let Some(constant) = schema.get("const")
            && !equal(constant, value)
        {
            self.violation(path, format!("should be {constant}"));
        }
        if let Some(Value::Array(choices)) = schema.get("anyOf") {
            self.any_of(choices, value, path);
        }
        match value {
            Value::Object(map) => self.object(schema, map, path),
            Value::Array(items) => self.array(schema, items, path),
            Value::String(text) => self.text(schema, text, path),
            Value::Number(_) => self.number(schema, value, path),
            _ => {}
        }
    }

    fn any_of(&mut self, choices: &[Value], value: &Value, path: &str) {
        let fits = choices.iter().any(|choice| {
            let mut one = Validator {
                root: self.root,
                patterns: self.patterns,
                found: Vec::new(),
                steps: self.steps,
            };
            one.value(choice, value, path);
            self.steps = one.steps;
            one.found.is_empty()
        });
        if !fits {
            self.violation(path, "should be as one of the schemas of `anyOf` says");
        }
    }

    fn object(&mut self, schema: &Value, map: &Map<String, Value>, path: &str) {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for name in required.iter().filter_map(Value::as_str) {
            if !map.contains_key(name) {
                self.violation(&format!("{path}/{name}"), "is required");
            }
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, value) in map {
            let at = format!("{path}/{name}");
            match properties.get(name) {
                Some(_) if value.is_null() && !required.iter().any(|one| one == name) => {}
                Some(property) => self.value(property, value, &at),
                None if closed => self.violation(&at, "is not a property of the schema"),
                None => {}
            }
        }
    }

    fn array(&mut self, schema: &Value, items: &[Value], path: &str) {
        let count = items.len() as u64;
        if schema
            .get("minItems")
            .and_then(Value::as_u64)
            .is_some_and(|min| count < min)
        {
            self.violation(path, "has too few items");
        }
        if schema
            .get("maxItems")
            .and_then(Value::as_u64)
            .is_some_and(|max| count > max)
        {
            self.violation(path, "has too many items");
        }
        if let Some(of_items) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.value(of_items, item, &format!("{path}/{index}"));
            }
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &str) {
        let len = text.chars().count() as u64;
        if schema
            .get("minLength")
            .and_then(Value::as_u64)
            .is_some_and(|min| len < min)
        {
            self.violation(path, "is too short");
        }
        if schema
            .get("maxLength")
            .and_then(Value::as_u64)
            .is_some_and(|max| len > max)
        {
            self.violation(path, "is too long");
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !self.matches(pattern, text)
        {
            self.violation(path, format!("should match `{pattern}`"));
        }
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        let mut patterns = self.patterns.borrow_mut();
        let compiled = patterns.entry(pattern.to_owned()).or_insert_with(|| {
            let translated = python_regex::translate(pattern).ok()?;
            python_regex::compile(&translated).ok()
        });
        compiled.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    fn number(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(number) = value.as_f64() else { return };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        let out_of_range = bound("minimum").is_some_and(|min| number < min)
            || bound("maximum").is_some_and(|max| number > max)
            || bound("exclusiveMinimum").is_some_and(|min| number <= min)
            || bound("exclusiveMaximum").is_some_and(|max| number >= max);
        if out_of_range {
            self.violation(path, "is out of range");
        }
        if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
            let quotient = number / step;
            if (quotient - quotient.round()).abs() > 1e-9 * quotient.abs().max(1.0) {
                self.violation(path, format!("should be a multiple of {step}"));
            }
        }
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.as_i64().is_some() || value.as_u64().is_some() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
        }
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// Equality of JSON values, in which 1 and 1.0 are the same number.
fn equal(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && b.is_number() && a.as_f64() == b.as_f64())
}
