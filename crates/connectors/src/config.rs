//! Settings of connectors: one table per type, from which validation, JSON Schema and masking come.

use docmill_model::chain::Problem;
use serde_json::{Map, Value, json};

/// What stands for a secret in everything that is sent out.
pub const MASK: &str = "**********";

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldKind {
    /// A string that is not empty.
    Text,
    /// A string that is stored encrypted and never returned.
    Secret,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number: default (if any), least, greatest.
    Integer(Option<i64>, i64, i64),
    /// A list of strings.
    TextList,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether it must be given.
    pub required: bool,
    /// Default of a text.
    pub default: Option<&'static str>,
    /// Whether it says where the secrets are sent.
    pub directs: bool,
    /// What it is for, one sentence.
    pub doc: &'static str,
}

impl Field {
    /// An optional setting.
    pub const fn new(name: &'static str, kind: FieldKind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            default: None,
            directs: false,
            doc,
        }
    }

    /// It must be given.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// It says where the secrets are sent: with another value they must be given again.
    pub const fn directs(mut self) -> Self {
        self.directs = true;
        self
    }

    /// The text when it is not given.
    pub const fn default_text(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }
}

/// Checks settings against a table and adds every default. Settings docmill does not know are refused by
/// name: a setting that is silently ignored is a mistake nobody finds.
///
/// # Errors
/// All problems, each at `loc` and the setting's name.
pub fn validate(fields: &[Field], config: &Value, loc: &[Value]) -> Result<Map<String, Value>, Vec<Problem>> {
    let Some(given) = config.as_object() else {
        return Err(vec![Problem::new(loc, "dict_type", "input should be an object")]);
    };
    let mut problems = Vec::new();
    let mut valid = Map::new();
    let at = |name: &str| [loc, &[json!(name)]].concat();
    for name in given
        .keys()
        .filter(|name| fields.iter().all(|field| field.name != **name))
    {
        let known: Vec<_> = fields.iter().map(|field| field.name).collect();
        let name: String = name.chars().take(64).collect();
        problems.push(Problem::new(
            &at(&name),
            "extra_forbidden",
            format!("there is no such setting; there are {}", known.join(", ")),
        ));
    }
    for field in fields {
        match given.get(field.name).filter(|value| !value.is_null()) {
            None if field.required => problems.push(Problem::new(&at(field.name), "missing", "field required")),
            None => {
                if let Some(value) = field.default_value() {
                    valid.insert(field.name.into(), value);
                }
            }
            Some(value) => match field.check(value) {
                Ok(Some(value)) => {
                    valid.insert(field.name.into(), value);
                }
                Ok(None) => {}
                Err((kind, msg)) => problems.push(Problem::new(&at(field.name), kind, msg)),
            },
        }
    }
    if problems.is_empty() { Ok(valid) } else { Err(problems) }
}

impl Field {
    /// What the setting is when it is not given.
    fn default_value(&self) -> Option<Value> {
        match self.kind {
            FieldKind::Bool(default) => Some(default.into()),
            FieldKind::Integer(default, ..) => default.map(Value::from),
            FieldKind::TextList => Some(json!([])),
            FieldKind::Text | FieldKind::Secret => self.default.map(Value::from),
        }
    }

    /// The value to keep; `None` for an empty text, which is as good as none.
    fn check(&self, value: &Value) -> Result<Option<Value>, (&'static str, String)> {
        /// Longest text, in bytes: a service account's key file with room to spare.
        const LONGEST: usize = 65_536;
        let text = |value: &Value| match value {
            Value::String(text) if text.len() > LONGEST => {
                Err(("string_too_long", format!("longer than {LONGEST} bytes")))
            }
            Value::String(text) if text.contains('\0') => Err(("value_error", "holds a NUL character".into())),
            Value::String(text) => Ok(text.clone()),
            _ => Err(("string_type", "input should be a string".into())),
        };
        match self.kind {
            FieldKind::Text | FieldKind::Secret => {
                let text = text(value)?;
                if text.trim().is_empty() {
                    return if self.required {
                        Err(("string_too_short", "must not be empty".into()))
                    } else {
                        Ok(self.default_value())
                    };
                }
                Ok(Some(text.into()))
            }
            FieldKind::Bool(_) => match value {
                Value::Bool(_) => Ok(Some(value.clone())),
                _ => Err(("bool_type", "input should be true or false".into())),
            },
            FieldKind::Integer(_, least, greatest) => match value.as_i64() {
                Some(number) if (least..=greatest).contains(&number) => Ok(Some(number.into())),
                Some(_) => Err(("value_error", format!("must be from {least} to {greatest}"))),
                None => Err(("int_type", "input should be a whole number".into())),
            },
            FieldKind::TextList => {
                let Some(items) = value.as_array() else {
                    return Err(("list_type", "input should be a list of strings".into()));
                };
                if items.is_empty() && self.required {
                    return Err(("too_short", "must not be empty".into()));
                }
                items.iter().try_for_each(|item| text(item).map(drop))?;
                Ok(Some(value.clone()))
            }
        }
    }
}

/// Puts the stored secrets in where an update sends the mask back. They stay with the place they were given
/// for: whoever may change where a connector leads, but never saw its secrets, must not have them sent to
/// a server of their own.
///
/// # Errors
/// A problem for each masked secret, when a setting that says where secrets are sent is changed.
pub fn unmask(
    fields: &[Field],
    config: &mut Value,
    stored: &Map<String, Value>,
    loc: &[Value],
) -> Result<(), Vec<Problem>> {
    let Some(config) = config.as_object_mut() else {
        return Ok(());
    };
    let value_of = |config: &Map<String, Value>, field: &Field| {
        let given = config.get(field.name).filter(|value| !value.is_null() && *value != "");
        let given = given.filter(|value| *value != MASK).or_else(|| {
            let kept = given.and_then(|_| stored.get(field.name));
            kept.filter(|_| field.kind == FieldKind::Secret)
        });
        given.cloned().or_else(|| field.default_value())
    };
    let moved = fields
        .iter()
        .filter(|field| field.directs)
        .find(|field| value_of(config, field) != value_of(stored, field));
    let mut problems = Vec::new();
    for field in fields.iter().filter(|field| field.kind == FieldKind::Secret) {
        if config.get(field.name).is_none_or(|value| value != MASK) {
            continue;
        }
        match (stored.get(field.name), moved) {
            (None, _) => {
                config.remove(field.name);
            }
            (Some(secret), None) => {
                config.insert(field.name.into(), secret.clone());
            }
            (Some(_), Some(moved)) => problems.push(Problem::new(
                &[loc, &[json!(field.name)]].concat(),
                "value_error",
                format!("{} changes, so {} must be given again", moved.name, field.name),
            )),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The table as JSON Schema (2020-12).
pub fn schema(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut property = match field.kind {
            FieldKind::Text => json!({"type": "string"}),
            FieldKind::Secret => json!({"type": "string", "writeOnly": true}),
            FieldKind::Bool(_) => json!({"type": "boolean"}),
            FieldKind::Integer(_, least, greatest) => json!({"type": "integer", "minimum": least, "maximum": greatest}),
            FieldKind::TextList => json!({"type": "array", "items": {"type": "string"}}),
        };
        property["description"] = field.doc.into();
        if let Some(default) = field.default_value() {
            property["default"] = default;
        }
        properties.insert(field.name.into(), property);
    }
    let required: Vec<_> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field] = &[
        Field::new("url", FieldKind::Text, "Where.").required().directs(),
        Field::new("token", FieldKind::Secret, "Who."),
        Field::new("recursive", FieldKind::Bool(true), "How deep."),
        Field::new("batch_size", FieldKind::Integer(Some(50), 1, 1_000), "How many."),
        Field::new("hosts", FieldKind::TextList, "Which."),
    ];

    #[test]
    fn defaults_are_added_and_problems_are_named() {
        let valid = validate(FIELDS, &json!({"url": "x", "token": ""}), &[]).unwrap();
        assert_eq!(
            Value::Object(valid),
            json!({"url": "x", "recursive": true, "batch_size": 50, "hosts": []})
        );
        let wrong = json!({"token": 1, "recursive": "yes", "batch_size": 0, "hosts": [1], "nope": 1});
        let problems = validate(FIELDS, &wrong, &[json!("body"), json!("config")]).unwrap_err();
        let places: Vec<_> = problems
            .iter()
            .map(|p| p.loc.last().unwrap().as_str().unwrap())
            .collect();
        assert_eq!(places, ["nope", "url", "token", "recursive", "batch_size", "hosts"]);
    }

    #[test]
    fn a_mask_sent_back_means_the_stored_secret() {
        let stored = validate(FIELDS, &json!({"url": "x", "token": "t"}), &[]).unwrap();
        let mut update = json!({"url": "x", "token": MASK, "recursive": false});
        unmask(FIELDS, &mut update, &stored, &[]).unwrap();
        assert_eq!(update, json!({"url": "x", "token": "t", "recursive": false}));
    }

    #[test]
    fn a_stored_secret_is_not_sent_to_another_place() {
        let stored = validate(FIELDS, &json!({"url": "x", "token": "t"}), &[]).unwrap();
        for update in [json!({"url": "y", "token": MASK}), json!({"token": MASK})] {
            let problems = unmask(FIELDS, &mut update.clone(), &stored, &[json!("config")]).unwrap_err();
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].loc, [json!("config"), json!("token")]);
        }
        let mut update = json!({"url": "y", "token": "new"});
        unmask(FIELDS, &mut update, &stored, &[]).unwrap();
        assert_eq!(update, json!({"url": "y", "token": "new"}));
    }
}
