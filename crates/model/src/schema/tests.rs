use serde_json::{Value, json};

use super::*;

fn invoice() -> Value {
    json!({
        "type": "object",
        "properties": {
            "number": {"type": "string", "pattern": "^[A-Z]{2}\\d+$"},
            "total": {"type": "number", "minimum": 0},
            "currency": {"enum": ["EUR", "USD"]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "maxItems": 3}
        },
        "required": ["number", "lines"],
        "additionalProperties": false,
        "$defs": {"line": {"type": "object", "properties": {"text": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}}, "required": ["text"]}}
    })
}

#[test]
fn a_schema_of_the_subset_passes_and_others_say_why() {
    assert_eq!(check(&invoice()), Ok(()));
    for (schema, why) in [
        (json!({"type": "array", "items": {"type": "string"}}), "object"),
        (json!({"type": "object", "properties": {"a": {}}}), "`type` is missing"),
        (
            json!({"type": "object", "properties": {"a": {"type": "text"}}}),
            "unknown type `text`",
        ),
        (json!({"type": "object", "oneOf": []}), "`oneOf`"),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}),
            "reference",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#/$defs/b"}}}),
            "reference",
        ),
        (json!({"type": "object", "required": ["b"]}), "`required`"),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            "`items`",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)"}}}),
            "look-ahead",
        ),
        (json!([]), "object"),
    ] {
        let problem = check(&schema).unwrap_err();
        assert!(problem.message.contains(why), "{schema}: {problem}");
    }
}

#[test]
fn nesting_ends_at_its_limit() {
    let nest = |levels: usize| {
        (0..levels).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "object", "properties": {"a": inner}}),
        )
    };
    assert_eq!(check(&nest(MAX_NESTING)), Ok(()));
    assert!(check(&nest(MAX_NESTING + 1)).unwrap_err().message.contains("deeper"));
    let choices = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"anyOf": [inner]}));
    assert!(check(&json!({"type": "object", "properties": {"a": choices}})).is_err());
}

#[test]
fn answers_are_checked_in_every_place() {
    let good =
        json!({"number": "AB1", "total": null, "lines": [{"text": "x", "lines": [{"text": "y"}]}], "currency": "EUR"});
    assert_eq!(violations(&invoice(), &good), []);
    let bad = json!({"number": "1", "total": -1, "currency": "GBP", "more": 1, "lines": [{"lines": [{"text": 1}]}]});
    let paths: Vec<_> = violations(&invoice(), &bad).into_iter().map(|one| one.path).collect();
    assert_eq!(
        paths,
        [
            "/number",
            "/total",
            "/currency",
            "/more",
            "/lines/0/text",
            "/lines/0/lines/0/text"
        ]
    );
    assert_eq!(violations(&invoice(), &json!([]))[0].path, "/");
    let many = json!({"number": "AB1", "lines": vec![json!(1); 1_000]});
    assert_eq!(violations(&invoice(), &many).len(), 20);
}

#[test]
fn the_strict_form_requires_everything_and_lets_optional_values_be_null() {
    let schema = strict(&invoice());
    assert_eq!(schema["required"], json!(["number", "total", "currency", "lines"]));
    assert_eq!(schema["properties"]["total"]["type"], json!(["number", "null"]));
    assert_eq!(schema["properties"]["currency"]["anyOf"][1], json!({"type": "null"}));
    assert_eq!(schema["properties"]["number"]["type"], "string");
    assert_eq!(schema["$defs"]["line"]["additionalProperties"], false);
    assert_eq!(check(&schema), Ok(()));
}
