//! Schemas as providers want them.

use serde_json::{Map, Value, json};

/// The same schema in the strict form of structured outputs: no object has further properties, every
/// property is required, and those that were optional may be null. Expects what [`super::check`] let pass.
pub fn strict(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(strict_object(map)),
        other => other.clone(),
    }
}

fn strict_object(map: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in map {
        let value = match (key.as_str(), value) {
            ("$schema" | "$id" | "default" | "examples", _) => continue,
            ("$defs" | "definitions", Value::Object(definitions)) => definitions
                .iter()
                .map(|(name, one)| (name.clone(), strict(one)))
                .collect(),
            ("items", items) => strict(items),
            ("anyOf", Value::Array(choices)) => choices.iter().map(strict).collect(),
            ("properties", Value::Object(properties)) => strict_properties(properties, map.get("required")),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if super::types(&Value::Object(map.clone())).contains(&"object") {
        let names = map.get("properties").and_then(Value::as_object);
        let names: Vec<_> = names.into_iter().flat_map(Map::keys).collect();
        out.insert("required".into(), json!(names));
        out.insert("additionalProperties".into(), json!(false));
        out.entry("properties").or_insert_with(|| json!({}));
    }
    out
}

fn strict_properties(properties: &Map<String, Value>, required: Option<&Value>) -> Value {
    let required = |name: &str| {
        let names = required.and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|one| one == name))
    };
    let property = |(name, schema): (&String, &Value)| {
        let schema = strict(schema);
        let schema = if required(name) { schema } else { nullable(schema) };
        (name.clone(), schema)
    };
    properties.iter().map(property).collect()
}

fn nullable(mut schema: Value) -> Value {
    let names = super::types(&schema);
    if names.contains(&"null") {
        return schema;
    }
    if names.is_empty() || schema.get("enum").is_some() || schema.get("const").is_some() {
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    let mut names = json!(names);
    if let Value::Array(names) = &mut names {
        names.push("null".into());
    }
    if let Value::Object(map) = &mut schema {
        map.insert("type".into(), names);
    }
    schema
}
