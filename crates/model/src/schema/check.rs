//! Whether a schema is in the subset.

use serde_json::{Map, Value};

use super::{MAX_ENUM_VALUES, MAX_NESTING, MAX_PROPERTIES, resolve, types};

/// What is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at `{path}`)")]
pub struct SchemaProblem {
    /// JSON pointer to the place, `/` for the whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

const KEYWORDS: &[&str] = &[
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// Checks that `schema` is in the subset: an object at the top, at most [`MAX_NESTING`] levels deep, known
/// keywords, references within the document.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(schema: &Value) -> Result<(), SchemaProblem> {
    let mut checker = Checker {
        root: schema,
        properties: 0,
        enum_values: 0,
    };
    let top = resolve(schema, schema);
    if !top.is_some_and(|top| types(top) == ["object"] && top.get("anyOf").is_none()) {
        return problem("", "the schema should be of `\"type\": \"object\"` at the top");
    }
    checker.check(schema, "", 0, 0)
}

fn problem<T>(path: &str, message: impl Into<String>) -> Result<T, SchemaProblem> {
    Err(SchemaProblem {
        path: if path.is_empty() { "/".into() } else { clip(path) },
        message: message.into(),
    })
}

fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}

struct Checker<'s> {
    root: &'s Value,
    properties: usize,
    enum_values: usize,
}

impl Checker<'_> {
    /// `depth` counts levels of objects and arrays, `steps` all levels of the schema's own JSON.
    fn check(&mut self, schema: &Value, path: &str, depth: usize, steps: usize) -> Result<(), SchemaProblem> {
        let Value::Object(map) = schema else {
            return problem(path, "a schema should be an object");
        };
        if let Some(key) = map.keys().find(|key| !KEYWORDS.contains(&key.as_str())) {
            return problem(path, format!("the keyword `{}` is not supported", clip(key)));
        }
        if let Some(reference) = map.get("$ref")
            && resolve(self.root, schema).is_none()
        {
            let reference = clip(&reference.to_string());
            return problem(
                path,
                format!("the reference {reference} should lead to a definition in this schema, such as `#/$defs/name`"),
            );
        }
        self.check_type(map, path)?;
        let nests = map.contains_key("properties") || map.contains_key("items");
        let depth = depth + usize::from(nests);
        if depth > MAX_NESTING || steps > 4 * MAX_NESTING {
            return problem(
                path,
                format!("objects and arrays nest deeper than {MAX_NESTING} levels"),
            );
        }
        self.check_enum(map, path)?;
        self.check_properties(map, path, depth, steps)?;
        if let Some(items) = map.get("items") {
            self.check(items, &format!("{path}/items"), depth, steps + 1)?;
        }
        self.check_any_of(map, path, depth, steps)?;
        self.check_facets(map, path)?;
        for name in ["$defs", "definitions"] {
            let Some(definitions) = map.get(name) else { continue };
            let Value::Object(definitions) = definitions else {
                return problem(path, format!("`{name}` should be an object"));
            };
            for (key, definition) in definitions {
                self.check(definition, &format!("{path}/{name}/{key}"), 0, steps + 1)?;
            }
        }
        Ok(())
    }

    fn check_type(&self, map: &Map<String, Value>, path: &str) -> Result<(), SchemaProblem> {
        let names = match map.get("type") {
            None => {
                let says_otherwise = ["$ref", "anyOf", "enum", "const"]
                    .iter()
                    .any(|key| map.contains_key(*key));
                return match says_otherwise {
                    true => Ok(()),
                    false => problem(path, "`type` is missing"),
                };
            }
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) if !names.is_empty() && names.iter().all(Value::is_string) => {
                names.iter().filter_map(Value::as_str).collect()
            }
            Some(_) => return problem(path, "`type` should be a name or a list of names"),
        };
        match names.iter().find(|name| !TYPES.contains(name)) {
            Some(name) => problem(
                path,
                format!("unknown type `{}`; known are {}", clip(name), TYPES.join(", ")),
            ),
            None if names.contains(&"array") && !map.contains_key("items") => problem(path, "an array needs `items`"),
            None => Ok(()),
        }
    }

    fn check_enum(&mut self, map: &Map<String, Value>, path: &str) -> Result<(), SchemaProblem> {
        match map.get("enum") {
            None => Ok(()),
            Some(Value::Array(values)) if !values.is_empty() => {
                self.enum_values += values.len();
                match self.enum_values > MAX_ENUM_VALUES {
                    true => problem(path, format!("more than {MAX_ENUM_VALUES} values of enumerations")),
                    false => Ok(()),
                }
            }
            Some(_) => problem(path, "`enum` should be a list with at least one value"),
        }
    }

    fn check_properties(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        depth: usize,
        steps: usize,
    ) -> Result<(), SchemaProblem> {
        let none = Map::new();
        let properties = match map.get("properties") {
            None => &none,
            Some(Value::Object(properties)) => properties,
            Some(_) => return problem(path, "`properties` should be an object"),
        };
        self.properties += properties.len();
        if self.properties > MAX_PROPERTIES {
            return problem(path, format!("more than {MAX_PROPERTIES} properties"));
        }
        match map.get("required") {
            None => {}
            Some(Value::Array(names)) => {
                let unknown = names
                    .iter()
                    .find(|name| name.as_str().is_none_or(|name| !properties.contains_key(name)));
                if let Some(name) = unknown {
                    return problem(
                        path,
                        format!(
                            "`required` names {}, which is not among the properties",
                            clip(&name.to_string())
                        ),
                    );
                }
            }
            Some(_) => return problem(path, "`required` should be a list of names"),
        }
        if map.get("additionalProperties").is_some_and(|value| !value.is_boolean()) {
            return problem(path, "`additionalProperties` should be true or false");
        }
        for (name, property) in properties {
            self.check(property, &format!("{path}/properties/{name}"), depth, steps + 1)?;
        }
        Ok(())
    }

    fn check_any_of(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        depth: usize,
        steps: usize,
    ) -> Result<(), SchemaProblem> {
        match map.get("anyOf") {
            None => Ok(()),
            Some(Value::Array(choices)) if !choices.is_empty() => {
                for (index, choice) in choices.iter().enumerate() {
                    self.check(choice, &format!("{path}/anyOf/{index}"), depth, steps + 1)?;
                }
                Ok(())
            }
            Some(_) => problem(path, "`anyOf` should be a list with at least one schema"),
        }
    }

    fn check_facets(&self, map: &Map<String, Value>, path: &str) -> Result<(), SchemaProblem> {
        for name in [
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ] {
            if map.get(name).is_some_and(|value| !value.is_number()) {
                return problem(path, format!("`{name}` should be a number"));
            }
        }
        for name in ["minItems", "maxItems", "minLength", "maxLength"] {
            if map.get(name).is_some_and(|value| value.as_u64().is_none()) {
                return problem(path, format!("`{name}` should be a whole number"));
            }
        }
        match map.get("pattern") {
            None => Ok(()),
            Some(Value::String(pattern)) => match crate::python_regex::translate(pattern) {
                Ok(_) => Ok(()),
                Err(error) => problem(path, format!("`pattern`: {error}")),
            },
            Some(_) => problem(path, "`pattern` should be a string"),
        }
    }
}
