//! JSON Schema in the dialects of providers.

use serde_json::{Map, Value, json};

/// Deepest nesting of a schema that is translated.
const DEEPEST: usize = 24;
/// Most schemas within a schema once references are followed: they may multiply.
const MOST: usize = 10_000;

/// A JSON Schema in the part of OpenAPI 3.0 that Google's models take: no references, no list of types, no
/// keywords beside the known ones.
///
/// # Errors
/// What can't be said in that part.
pub(crate) fn google(schema: &Value) -> Result<Value, String> {
    let mut left = MOST;
    translate(schema, schema, 0, &mut left)
}

fn translate(schema: &Value, root: &Value, depth: usize, left: &mut usize) -> Result<Value, String> {
    *left = left.checked_sub(1).ok_or("the schema is too large")?;
    if depth > DEEPEST {
        return Err("the schema is nested too deeply, or refers to itself".into());
    }
    let Some(schema) = schema.as_object() else {
        return Err("a schema within the schema is no object".into());
    };
    if let Some(reference) = schema.get("$ref") {
        let place = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        let target = place.and_then(|place| root.pointer(place));
        let target = target.ok_or("a $ref of the schema leads nowhere in it")?;
        return translate(target, root, depth + 1, left);
    }
    let mut made = Map::new();
    types(schema, &mut made)?;
    for (key, value) in schema {
        match key.as_str() {
            "title" | "description" | "format" | "enum" | "required" | "minItems" | "maxItems" | "minimum"
            | "maximum" | "minLength" | "maxLength" | "pattern" | "nullable" => {
                made.insert(key.clone(), value.clone());
            }
            "const" => {
                made.insert("enum".into(), json!([value]));
            }
            "items" => {
                made.insert(key.clone(), translate(value, root, depth + 1, left)?);
            }
            "properties" => {
                let properties = value.as_object().ok_or("`properties` is no object")?;
                let mut inner = Map::new();
                for (name, value) in properties {
                    inner.insert(name.clone(), translate(value, root, depth + 1, left)?);
                }
                let order: Vec<_> = inner.keys().cloned().collect();
                made.insert("propertyOrdering".into(), order.into());
                made.insert(key.clone(), inner.into());
            }
            "anyOf" | "oneOf" => any_of(value, root, depth, left, &mut made)?,
            _ => {}
        }
    }
    Ok(made.into())
}

/// `anyOf` with a place for null becomes `nullable`.
fn any_of(
    value: &Value,
    root: &Value,
    depth: usize,
    left: &mut usize,
    made: &mut Map<String, Value>,
) -> Result<(), String> {
    let choices = value.as_array().ok_or("`anyOf` is no list")?;
    let mut kept = Vec::new();
    for choice in choices {
        if choice.get("type").and_then(Value::as_str) == Some("null") {
            made.insert("nullable".into(), true.into());
        } else {
            kept.push(translate(choice, root, depth + 1, left)?);
        }
    }
    match <[Value; 1]>::try_from(kept) {
        Ok([Value::Object(only)]) => made.extend(only),
        Ok([other]) => return Err(format!("{other} is no schema")),
        Err(kept) => {
            made.insert("anyOf".into(), kept.into());
        }
    }
    Ok(())
}

fn types(schema: &Map<String, Value>, made: &mut Map<String, Value>) -> Result<(), String> {
    let Some(kind) = schema.get("type") else { return Ok(()) };
    let several;
    let names: &[Value] = match kind {
        Value::Array(names) => names,
        single => {
            several = [single.clone()];
            &several
        }
    };
    let mut found = Vec::new();
    for name in names {
        match name.as_str() {
            Some("null") => {
                made.insert("nullable".into(), true.into());
            }
            Some(name) => found.push(name.to_ascii_uppercase()),
            None => return Err("a `type` of the schema is no text".into()),
        }
    }
    match found.as_slice() {
        [] => {}
        [one] => {
            made.insert("type".into(), one.as_str().into());
        }
        many => {
            let choices: Vec<_> = many.iter().map(|name| json!({"type": name})).collect();
            made.insert("anyOf".into(), choices.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_google_does_not_know_is_said_otherwise() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false, "required": ["b"],
            "properties": {
                "b": {"type": ["string", "null"], "description": "d"},
                "a": {"$ref": "#/$defs/A"},
                "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "d": {"const": "x", "type": "string"},
                "e": {"type": ["string", "number"]}
            },
            "$defs": {"A": {"type": "array", "items": {"type": "number"}}}
        });
        let expected = json!({
            "type": "OBJECT", "required": ["b"],
            "propertyOrdering": ["b", "a", "c", "d", "e"],
            "properties": {
                "b": {"nullable": true, "type": "STRING", "description": "d"},
                "a": {"type": "ARRAY", "items": {"type": "NUMBER"}},
                "c": {"nullable": true, "type": "INTEGER"},
                "d": {"type": "STRING", "enum": ["x"]},
                "e": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}
            }
        });
        assert_eq!(google(&schema).unwrap(), expected);
    }

    #[test]
    fn schemas_without_end_are_refused() {
        let circle = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        assert!(google(&circle).unwrap_err().contains("too deeply"));
        // Each level twice in the next: a million million schemas when spelled out.
        let mut definitions = Map::new();
        for level in 0..20 {
            let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
            let both = json!({"properties": {"a": next, "b": next}});
            definitions.insert(level.to_string(), both);
        }
        definitions.insert("20".into(), json!({"type": "string"}));
        let bomb = json!({"$ref": "#/$defs/0", "$defs": definitions});
        assert!(google(&bomb).is_err());
        for wrong in [
            json!(1),
            json!({"type": 1}),
            json!({"$ref": "http://x"}),
            json!({"items": []}),
        ] {
            assert!(google(&wrong).is_err(), "{wrong}");
        }
    }
}
