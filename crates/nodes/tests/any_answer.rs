//! Answers of models may be anything: none panics, and one that can't be used changes nothing.

use docmill_model::provider::{ModelRef, Provider};
use docmill_model::settings::{ContextOptions, LlmExtraction, OutputMode, Pattern};
use docmill_model::{Element, ElementType, python_regex, schema};
use docmill_nodes::{contextual, extract, merge};
use proptest::prelude::*;
use serde_json::{Value, json};

fn model() -> ModelRef {
    ModelRef {
        provider: Provider::OpenAi,
        model: "m".into(),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "(merge|confidence|high|low|a|é|\u{0}| ){0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let key = "merge|confidence|type|properties|items|a|b";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

fn any_table() -> impl Strategy<Value = Element> {
    (
        "[a-c]{0,3}",
        prop::option::of("(<tr>|<td>|<th>|<table>|</table>|a|b| ){0,12}"),
        1u32..4,
    )
        .prop_map(|(text, html, page)| {
            let mut table = Element::new(ElementType::Table, text).on_page(page);
            table.metadata.text_as_html = html;
            table
        })
}

proptest! {
    #[test]
    fn answers_of_any_shape_are_read(value in any_json(), cut in 0usize..200) {
        let text = value.to_string();
        let cut: String = text.chars().take(cut).collect();
        let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}, "required": ["a"]});
        let extraction = LlmExtraction { model: model(), schema: Some(schema.clone()), guidance: None };
        for answer in [&text, &cut] {
            let _ = merge::read(answer);
            if let Ok(data) = extract::read(&extraction, answer) {
                prop_assert!(data["a"].is_array());
                prop_assert!(schema::violations(&schema, &data).is_empty());
            }
            let options = ContextOptions { model: model(), context_char_limit: 10, user_prompt: None };
            let mut chunk = Element::new(ElementType::CompositeElement, "x");
            match contextual::apply(&options, &mut chunk, answer) {
                Ok(()) => prop_assert!(chunk.text.starts_with("Prefix: ") && chunk.text.ends_with("; Original: x")),
                Err(_) => prop_assert_eq!(&chunk.text, "x"),
            }
        }
    }

    #[test]
    fn any_schema_is_checked_and_a_good_one_stays_good_in_strict_form(value in any_json()) {
        if schema::check(&value).is_ok() {
            prop_assert!(schema::check(&schema::strict(&value)).is_ok(), "{value}");
            let _ = schema::violations(&value, &value);
        }
    }

    #[test]
    fn merging_any_pairs_keeps_order_and_loses_no_element_but_tables(
        tables in prop::collection::vec(any_table(), 0..6),
        pairs in prop::collection::vec((0usize..7, 0usize..7), 0..8),
    ) {
        let mut elements = Vec::new();
        for (index, table) in tables.into_iter().enumerate() {
            elements.push(table);
            elements.push(Element::new(ElementType::NarrativeText, format!("n{index}")));
        }
        let kept = |elements: &[Element]| -> Vec<String> {
            let prose = elements.iter().filter(|element| element.kind == ElementType::NarrativeText);
            prose.map(|element| element.text.clone()).collect()
        };
        let candidates = merge::candidates(&elements);
        let good = pairs.iter().filter(|pair| candidates.contains(pair)).collect::<std::collections::HashSet<_>>().len();
        let before = elements.len();
        let merged = merge::merge(elements.clone(), &pairs, &model());
        prop_assert_eq!(kept(&merged), kept(&elements));
        prop_assert_eq!(merged.len(), before - good);
    }

    #[test]
    fn patterns_find_what_is_there(words in prop::collection::vec("[a-z]{1,9}", 0..50)) {
        let translated = python_regex::translate(r"\b[a-m]\w*\b").unwrap();
        let pattern = Pattern { name: "p".into(), pattern: String::new(), translated };
        let element = Element::new(ElementType::NarrativeText, words.join(" "));
        let data = extract::match_patterns(&[pattern], std::slice::from_ref(&element)).unwrap();
        let expected: Vec<_> = words.iter().filter(|word| word.as_str() < "n").collect();
        prop_assert_eq!(&data["p"], &json!(expected));
        let out = extract::output(vec![element], data.clone(), OutputMode::DataOnly, None);
        prop_assert_eq!(out, extract::Extracted::Data(data));
    }
}
