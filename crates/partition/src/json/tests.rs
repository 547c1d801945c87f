use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use proptest::prelude::*;

use super::*;

fn read(text: &str, lines: bool) -> Result<Vec<Element>, PartitionError> {
    let (options, limits) = (PartitionOptions::default(), ParseLimits::default());
    let mut progress = |_| {};
    let mut cx = Context::new(None, &options, &limits, &mut progress);
    match lines {
        true => partition_lines(text.as_bytes(), &mut cx)?,
        false => partition(text.as_bytes(), &mut cx)?,
    }
    Ok(cx.into_document().elements)
}

fn texts(text: &str) -> Vec<String> {
    read(text, false).unwrap().into_iter().map(|e| e.text).collect()
}

#[test]
fn one_element_for_each_item_of_an_array() {
    assert_eq!(
        texts("[{\"a\": 1, \"b\": [\"x\", {}]}, 12345678901234567890123, \"caf\\u00e9\", []]"),
        [
            "{\n  \"a\": 1,\n  \"b\": [\n    \"x\",\n    {}\n  ]\n}",
            "12345678901234567890123",
            "\"café\"",
            "[]"
        ]
    );
    assert_eq!(texts("{\"a\": [1, 2]}"), ["{\n  \"a\": [\n    1,\n    2\n  ]\n}"]);
    assert!(texts("[]").is_empty());
}

#[test]
fn brackets_in_strings_are_text() {
    assert_eq!(texts("[\"a ] , \\\" [\", 2]"), ["\"a ] , \\\" [\"", "2"]);
}

#[test]
fn elements_come_back() {
    let file = r#"[{"type":"Title","element_id":"x","text":"Hi","metadata":{"page_number":2,"mine":{"a":1}}},
        {"type":"Section-header","text":"There","metadata":{}}]"#;
    let elements = read(file, false).unwrap();
    assert_eq!(elements[0].kind, ElementType::Title);
    assert_eq!(elements[0].metadata.page_number, Some(2));
    assert_eq!(elements[0].metadata.extra["mine"]["a"], 1);
    assert_eq!(elements[1].kind, ElementType::Title);
}

#[test]
fn an_unknown_type_is_named() {
    let error = read(r#"[{"type":"Bogus","element_id":"x","text":"Hi"}]"#, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a readable JSON file: item 0: unknown element type `Bogus`"
    );
}

#[test]
fn depth_is_limited_and_errors_say_where() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    assert_eq!(
        read(&deep, false).unwrap_err(),
        PartitionError::limit("max_depth", 512, "levels of nesting")
    );
    let fair = "[".repeat(400) + &"]".repeat(400);
    assert_eq!(read(&fair, false).unwrap().len(), 1);
    assert!(
        read("{\"a\": }", false)
            .unwrap_err()
            .to_string()
            .contains("line 1 column 7")
    );
    assert!(read("{}\n{]\n", true).unwrap_err().to_string().contains("line 2"));
}

#[test]
fn control_characters_between_tokens_are_an_error() {
    assert!(read("[1,\u{c}2]", false).is_err());
    assert!(read("[1,\u{c}2]", true).is_err());
}

#[test]
fn lines_are_values_of_their_own() {
    let found = read("{\"a\":1}\n\n[2]\r\n", true).unwrap();
    assert_eq!(
        found.iter().map(|e| e.text.as_str()).collect::<Vec<_>>(),
        ["{\n  \"a\": 1\n}", "[\n  2\n]"]
    );
}

proptest! {
    #[test]
    fn any_value_survives_indenting(text in "[\\[\\]{},:\" \\\\a-z0-9.é-]{0,80}") {
        let _ = pretty::array_items(&text);
        let indented = pretty::indent(&text);
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&indented).unwrap(), value);
        }
    }

    #[test]
    fn elements_round_trip(
        kinds in proptest::collection::vec((0..ElementType::ALL.len(), "\\PC{0,40}", proptest::option::of(0u32..9)), 1..8),
    ) {
        let elements: Vec<Element> = kinds
            .into_iter()
            .enumerate()
            .map(|(i, (kind, text, page))| {
                let mut element = Element::new(ElementType::ALL[kind], text);
                element.element_id = i.to_string();
                element.metadata.page_number = page;
                element.metadata.languages = vec!["eng".into()];
                element
            })
            .collect();
        let file = serde_json::to_string(&elements).unwrap();
        prop_assert_eq!(read(&file, false).unwrap(), elements);
    }
}
