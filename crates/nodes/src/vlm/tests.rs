use docmill_model::ElementType;
use docmill_model::provider::{ModelRef, Provider};
use proptest::prelude::*;

use super::*;

fn options(format: PageFormat) -> VlmOptions {
    VlmOptions {
        is_dynamic: false,
        allow_fast: true,
        model: Some(ModelRef {
            provider: Provider::Anthropic,
            model: "m".into(),
        }),
        output_format: format,
        format_html: false,
    }
}

fn shape(elements: &[Element]) -> Vec<(ElementType, &str, Option<u32>)> {
    let one = |element: &'_ Element| (element.kind, element.metadata.category_depth);
    elements
        .iter()
        .map(|element| (one(element).0, element.text.as_str(), one(element).1))
        .collect()
}

const PAGE: &str = "```html\n<html><head><title>x</title></head><body><header>ACME <b>Ltd</b></header><h1>Report</h1>\
<p>It &amp; that<br>rose.</p><ul><li>one<ul><li><p>inner</p></li></ul></li><li>two</li></ul>\
<table onclick=x><thead><tr><th>A</th></tr></thead><tr><td>1<script>x</script></td></tr></table>\
<img src=javascript:x alt='A \"map\"'><figcaption>Fig. 1</figcaption><pre>\nfn a() {\n  b\n}\n</pre><formula>x^2</formula>\
<form><p>Name: Bo</p></form><checkbox alt=checked>Yes</checkbox>stray<footer><p>private</p><pagenumber>7</pagenumber></footer></body></html>\n```";

#[test]
fn a_page_in_html_becomes_typed_elements() {
    use ElementType::*;
    let mut elements = read(&options(PageFormat::Html), PAGE, 3).unwrap();
    assert_eq!(
        shape(&elements),
        [
            (Header, "ACME Ltd", None),
            (Title, "Report", Some(0)),
            (NarrativeText, "It & that rose.", None),
            (ListItem, "one", Some(1)),
            (ListItem, "inner", Some(2)),
            (ListItem, "two", Some(1)),
            (Table, "A 1", None),
            (Image, "A \"map\"", None),
            (FigureCaption, "Fig. 1", None),
            (CodeSnippet, "fn a() {\n  b\n}", None),
            (Formula, "x^2", None),
            (FormKeysValues, "Name: Bo", None),
            (CheckBox, "Yes", None),
            (UncategorizedText, "stray", None),
            (Footer, "private", None),
            (PageNumber, "7", None),
        ]
    );
    finish(&mut elements);
    assert_eq!(elements[2].metadata.parent_id.as_ref(), Some(&elements[1].element_id));
    for element in &elements {
        assert_eq!(element.metadata.extra["partitioner_type"], "vlm_partition");
        assert_eq!(element.metadata.page_number, Some(3));
        let html = element.metadata.text_as_html.as_deref().unwrap();
        assert!(
            !html.contains("onclick") && !html.contains("javascript") && !html.contains("script"),
            "{html}"
        );
    }
    assert_eq!(
        elements[6].metadata.text_as_html.as_deref(),
        Some("<table><thead><tr><th>A</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>")
    );
    assert_eq!(
        elements[7].metadata.text_as_html.as_deref(),
        Some("<img alt=\"A &quot;map&quot;\">")
    );
}

#[test]
fn a_page_in_json_becomes_typed_elements() {
    use ElementType::*;
    let answer = r#"{"elements": [
        {"type": "Title", "text": "Report", "html": null, "level": 2},
        {"type": "Section-header", "text": "Part", "html": null, "level": null},
        {"type": "Table", "text": "x", "html": "<table><tr><td>a<td>b</table>", "level": null},
        {"type": "Table", "text": "no structure", "html": null, "level": null},
        {"type": "DocumentData", "text": "<b>t</b>", "html": "<script>", "level": null},
        {"type": "NarrativeText", "text": " ", "html": null, "level": null}]}"#;
    let elements = read(&options(PageFormat::Json), answer, 1).unwrap();
    assert_eq!(
        shape(&elements),
        [
            (Title, "Report", Some(1)),
            (Title, "Part", Some(0)),
            (Table, "a b", None),
            (Table, "no structure", None),
            (UncategorizedText, "<b>t</b>", None),
        ]
    );
    assert_eq!(
        elements[4].metadata.text_as_html.as_deref(),
        Some("<p>&lt;b&gt;t&lt;/b&gt;</p>")
    );
    for wrong in ["{}", "7", r#"{"elements": [1]}"#, "sorry"] {
        assert!(read(&options(PageFormat::Json), wrong, 1).is_err(), "{wrong}");
    }
}

#[test]
fn an_empty_page_is_no_error_and_a_refusal_is() {
    assert_eq!(read(&options(PageFormat::Html), "<p></p>", 1), Ok(Vec::new()));
    assert_eq!(
        read(&options(PageFormat::Json), "{\"elements\": []}", 1),
        Ok(Vec::new())
    );
    assert_eq!(
        read(&options(PageFormat::Html), "I can't read this.", 1),
        Err(AnswerError::Nothing("HTML"))
    );
    assert_eq!(read(&options(PageFormat::Html), "", 1), Err(AnswerError::Empty));
}

#[test]
fn deep_nesting_costs_nothing() {
    let deep = "<div><ul><li><table><tr><td>".repeat(50_000) + "x";
    assert!(read(&options(PageFormat::Html), &deep, 1).is_ok());
    assert!(read(&options(PageFormat::Json), &"[".repeat(200_000), 1).is_err());
}

proptest! {
    #[test]
    fn any_answer_is_read_to_the_end(
        answer in "(<|>|/|h1|p|li|ul|table|tr|td|img|alt|=|\"|header|form|checkbox|&amp;|```|\\{|\\}|\\[|\\]|:|,|elements|type|text|\n| |é|x){0,60}",
    ) {
        for format in [PageFormat::Html, PageFormat::Json] {
            if let Ok(elements) = read(&options(format), &answer, 1) {
                for element in elements {
                    prop_assert!(element.kind == ElementType::Image || !element.text.is_empty());
                }
            }
        }
    }
}
