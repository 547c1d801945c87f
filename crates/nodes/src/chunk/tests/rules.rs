//! Rules one by one.

use super::*;
use docmill_model::{Coordinates, Link};
use serde_json::json;

#[test]
fn raw_lengths_decide_what_fits() {
    // Once normalised both would fit one chunk.
    let chunks = run(&[prose("a        a"), prose("bbbb")], &by_character(14));
    assert_eq!(texts(&chunks), ["a a", "bbbb"]);
}

#[test]
fn by_page_never_crosses_a_page() {
    let mut options = by_character(500);
    options.strategy = ChunkStrategy::ByPage;
    let elements = [
        prose("a").on_page(1),
        title("b").on_page(1),
        prose("c").on_page(2),
        prose("d"),
        prose("e").on_page(1),
    ];
    assert_eq!(texts(&run(&elements, &options)), ["a\n\nb", "c\n\nd", "e"]);
    let unpaged_first = [prose("a"), prose("b").on_page(1), prose("c").on_page(2)];
    assert_eq!(texts(&run(&unpaged_first, &options)), ["a\n\nb", "c"]);
}

#[test]
fn a_title_also_turns_the_page() {
    let mut options = by_title(500);
    options.multipage_sections = false;
    options.combine_text_under_n_chars = 0;
    let elements = [prose("a").on_page(1), title("b").on_page(2), prose("c").on_page(2)];
    assert_eq!(texts(&run(&elements, &options)), ["a", "b\n\nc"]);
}

#[test]
fn combining_stops_at_its_threshold_and_at_tables() {
    let mut options = by_title(50);
    options.combine_text_under_n_chars = 4;
    let elements = [title("abcd"), title("ab"), title("cd"), table("t", ""), title("e")];
    assert_eq!(texts(&run(&elements, &options)), ["abcd", "ab\n\ncd", "t", "e"]);
}

#[test]
fn a_combined_section_loses_its_own_overlap() {
    let mut options = by_title(50);
    options.overlap = 3;
    options.overlap_all = true;
    let elements = [title("A"), prose("aaaa"), title("B"), prose("bbbb")];
    assert_eq!(texts(&run(&elements, &options)), ["A\n\naaaa\n\nB\n\nbbbb"]);
    options.combine_text_under_n_chars = 0;
    assert_eq!(texts(&run(&elements, &options)), ["A\n\naaaa", "aaa\n\nB\n\nbbbb"]);
}

#[test]
fn overlap_stops_at_isolated_tables() {
    let mut options = by_character(20);
    options.overlap = 3;
    options.overlap_all = true;
    let chunks = run(&[prose("aaaa"), table("tttt", ""), prose("bbbb")], &options);
    assert_eq!(texts(&chunks), ["aaaa", "tttt", "bbbb"]);
    options.isolate_table = false;
    options.new_after_n_chars = 0;
    let chunks = run(&[prose("aaaa"), table("tttt", ""), prose("bbbb")], &options);
    assert_eq!(texts(&chunks), ["aaaa", "aaa\ntttt", "bbbb"]);
}

#[test]
fn overlap_alone_makes_no_chunk() {
    let mut options = by_character(8);
    options.overlap = 4;
    options.overlap_all = true;
    let page_break = element(ElementType::PageBreak, "");
    let chunks = run(&[prose("aa bbbbb"), page_break, prose("cc")], &options);
    assert_eq!(texts(&chunks), ["aa bbbbb", "bbbb\n\ncc"]);
}

#[test]
fn nothing_visible_gives_nothing() {
    let blank = [
        element(ElementType::PageBreak, ""),
        prose(" \n "),
        table(" ", "<table></table>"),
    ];
    assert!(run(&blank, &by_character(10)).is_empty());
    assert!(run(&[], &by_title(10)).is_empty());
}

#[test]
fn elements_without_text_are_members() {
    let chunks = run(
        &[prose("a"), element(ElementType::Image, ""), prose("b")],
        &by_character(500),
    );
    assert_eq!(texts(&chunks), ["a\n\nb"]);
    assert_eq!(chunks[0].metadata.source_element_ids.len(), 3);
}

#[test]
fn metadata_is_consolidated_field_by_field() {
    let mut first = prose("a").with_depth(1).on_page(3);
    let m = &mut first.metadata;
    m.languages = vec!["eng".into(), "deu".into()];
    m.link_texts = vec!["x".into()];
    m.link_urls = vec!["http://x".into()];
    m.links = vec![Link {
        text: "x".into(),
        url: "http://x".into(),
        start_index: 0,
    }];
    m.parent_id = Some("p".into());
    m.sent_to = vec!["one".into()];
    m.image_base64 = Some("AAAA".into());
    m.enrichment_origins = json!({"text": [{"provider": "p"}]}).as_object().unwrap().clone();
    m.extra = json!({"custom": 1, "entities": {"items": [{"entity": "A"}, {"entity": "B"}], "relationships": []}})
        .as_object()
        .unwrap()
        .clone();
    let mut second = prose("b").on_page(4);
    let m = &mut second.metadata;
    m.filename = Some("f.pdf".into());
    m.languages = vec!["deu".into(), "fra".into()];
    m.link_texts = vec!["y".into()];
    m.link_urls = vec!["http://y".into()];
    m.sent_to = vec!["two".into()];
    m.enrichment_origins = json!({"text": [{"provider": "p"}, {"provider": "q"}], "x": [{"provider": "p"}]})
        .as_object()
        .unwrap()
        .clone();
    m.extra = json!({"table_as_cells": [{"x": 0}],
        "entities": {"items": [{"entity": "B"}, {"entity": "C"}], "relationships": [{"from": "B", "to": "C"}]}})
    .as_object()
    .unwrap()
    .clone();

    let mut options = by_character(500);
    options.include_orig_elements = false;
    let chunks = run(&[first, second], &options);
    let mut metadata = serde_json::to_value(&chunks[0].metadata).unwrap();
    metadata.as_object_mut().unwrap().remove("source_element_ids");
    assert_eq!(
        metadata,
        json!({
            "filename": "f.pdf",
            "languages": ["eng", "deu", "fra"],
            "page_number": 3,
            "link_texts": ["x", "y"],
            "link_urls": ["http://x", "http://y"],
            "sent_to": ["one"],
            "enrichment_origins": {"text": [{"provider": "p"}, {"provider": "q"}], "x": [{"provider": "p"}]},
            "page_spans": [{"page_number": 3}, {"page_number": 4}],
            "table_as_cells": [{"x": 0}],
            "entities": {"items": [{"entity": "A"}, {"entity": "B"}, {"entity": "C"}],
                         "relationships": [{"from": "B", "to": "C"}]},
        })
    );
}

#[test]
fn page_spans_unite_the_boxes_of_a_page() {
    let at = |page, bbox| {
        let mut element = prose("x").on_page(page);
        element.metadata.coordinates = Some(Coordinates::from_bbox(bbox, 100.0, 200.0));
        element
    };
    let elements = [
        at(2, [10.0, 20.0, 30.0, 40.0]),
        prose("no box").on_page(2),
        at(1, [1.0, 2.0, 3.0, 4.0]),
        at(2, [5.0, 30.0, 20.0, 50.0]),
        prose("no box").on_page(7),
        element(ElementType::PageBreak, "").on_page(8),
    ];
    let chunks = run(&elements, &by_character(500));
    assert_eq!(
        serde_json::to_value(&chunks[0].metadata.page_spans).unwrap(),
        json!([
            {"page_number": 1, "bbox": [1.0, 2.0, 3.0, 4.0]},
            {"page_number": 2, "bbox": [5.0, 20.0, 30.0, 50.0]},
            {"page_number": 7},
        ])
    );
}

#[test]
fn page_spans_have_y_pointing_down() {
    use docmill_model::metadata::CoordinateSystem::{PointSpace, RelativeCoordinateSystem};
    for (system, bbox) in [
        (PointSpace, [10.0, 150.0, 30.0, 180.0]),
        (RelativeCoordinateSystem, [0.1, 0.75, 0.3, 0.9]),
    ] {
        let mut element = prose("x").on_page(1);
        let mut coordinates = Coordinates::from_bbox(bbox, 100.0, 200.0);
        coordinates.system = system;
        element.metadata.coordinates = Some(coordinates);
        let span = run(&[element], &by_character(500))[0].metadata.page_spans[0]
            .bbox
            .unwrap();
        let expected = [10.0, 20.0, 30.0, 50.0];
        assert!(
            span.iter()
                .zip(expected)
                .all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-9),
            "{span:?}"
        );
    }
}

#[test]
fn chunks_have_content_ids() {
    let elements = [prose("Hello"), table("t", "")];
    let mut expected = [
        element(ElementType::CompositeElement, "Hello"),
        element(ElementType::Table, "t"),
    ];
    assign_element_ids(&mut expected);
    let chunks = run(&elements, &by_character(500));
    assert_eq!(chunks[0].element_id, expected[0].element_id);
    assert_eq!(chunks[1].element_id, expected[1].element_id);
}

#[test]
fn orig_elements_are_not_nested() {
    let mut source = prose("a");
    source.metadata.orig_elements = Some("earlier".into());
    let chunks = run(&[source], &by_character(500));
    let encoded = chunks[0].metadata.orig_elements.as_deref().unwrap();
    let decoded = docmill_model::orig_elements::decode(encoded, 1_000).unwrap();
    assert_eq!(decoded[0].metadata.orig_elements, None);
}

#[test]
fn repetition_of_orig_elements_is_bounded() {
    // Hardly compressible, so that orig_elements is about as large as the text.
    let mut state = 1u64;
    let mut digit = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 60) as u8)
    };
    let text: String = (0..400_000).map(|_| digit()).collect();
    let chunks = run(&[prose(&text)], &by_character(500));
    assert_eq!(chunks.len(), 800);
    let sizes = || {
        chunks
            .iter()
            .filter_map(|chunk| chunk.metadata.orig_elements.as_ref())
            .map(String::len)
    };
    assert!(chunks[0].metadata.orig_elements.is_some());
    assert!(sizes().count() < 800);
    assert!(sizes().sum::<usize>() <= (64 << 20) + 400_000);
}

#[test]
fn options_out_of_range_are_moved_into_it() {
    let mut options = by_character(0);
    options.overlap = 7;
    options.new_after_n_chars = 9;
    assert_eq!(texts(&run(&[prose("ab")], &options)), ["a", "b"]);
}

#[test]
fn by_similarity_a_chunk_begins_where_the_subject_changes() {
    let elements = ["cats", "kittens", "", "bonds", "shares"].map(prose);
    let vector = |x: f32, y: f32| Some(vec![x, y]);
    let vectors = [
        vector(1.0, 0.1),
        vector(2.0, 0.3),
        None,
        vector(0.1, 1.0),
        vector(0.0, 3.0),
    ];
    let run = |threshold: f64, max: usize| {
        let chunks = crate::chunk::chunk_by_similarity(elements.to_vec(), &vectors, &by_character(max), threshold, "s");
        texts(&chunks).join(" | ")
    };
    assert_eq!(run(0.5, 500), "cats\n\nkittens | bonds\n\nshares");
    assert_eq!(run(0.01, 500), "cats\n\nkittens\n\nbonds\n\nshares");
    assert_eq!(run(0.5, 13), "cats\n\nkittens | bonds\n\nshares");
    assert_eq!(run(0.5, 12), "cats | kittens | bonds | shares");
    let opposite = [vector(1.0, 0.0), vector(-1.0, 0.0)];
    let chunks = crate::chunk::chunk_by_similarity(elements[..2].to_vec(), &opposite, &by_character(500), 0.01, "s");
    assert_eq!(chunks.len(), 2);
}

#[test]
fn data_of_the_document_pass_in_front_of_the_chunks() {
    let mut data = element(ElementType::DocumentData, "");
    data.metadata
        .extra
        .insert("extracted_data".into(), serde_json::json!({"a": 1}));
    let chunks = run(&[data, prose("x"), prose("y")], &by_character(500));
    assert_eq!(texts(&chunks), ["", "x\n\ny"]);
    assert_eq!(chunks[0].kind, ElementType::DocumentData);
    assert_eq!(chunks[0].metadata.extra["extracted_data"]["a"], 1);
}

#[test]
fn lengths_are_in_tokens_with_a_tokenizer() {
    let options = ChunkOptions {
        tokenizer: Some(docmill_model::settings::Tokenizer::Cl100k),
        overlap: 1,
        ..by_character(4)
    };
    let chunks = run(
        &[prose("one two three four five six"), prose("seven"), prose("eight")],
        &options,
    );
    assert_eq!(
        texts(&chunks),
        ["one two three four", "four five six", "seven\n\neight"]
    );
    assert_eq!(chunks[1].metadata.is_continuation, Some(true));
    let html = "<table><tr><th>Name</th><th>Value</th></tr><tr><td>alpha</td><td>1</td></tr><tr><td>beta</td><td>2</td></tr></table>";
    let chunks = run(
        &[table("Name Value alpha 1 beta 2", html)],
        &ChunkOptions {
            overlap: 0,
            ..options.clone()
        },
    );
    assert_eq!(chunks.len(), 2);
    let rows = ChunkOptions {
        max_characters: 16,
        new_after_n_chars: 16,
        overlap: 0,
        ..options
    };
    let many = format!(
        "<table><tr><th>Name</th><th>Value</th></tr>{}</table>",
        "<tr><td>alpha beta</td><td>1</td></tr>".repeat(9)
    );
    let chunks = run(
        &[table(&format!("Name Value {}", "alpha beta 1 ".repeat(9)), &many)],
        &rows,
    );
    assert!(
        chunks.len() > 2 && chunks.iter().all(|chunk| chunk.metadata.text_as_html.is_some()),
        "{chunks:?}"
    );
}
