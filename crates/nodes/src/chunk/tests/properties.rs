//! Properties that hold for all elements and options.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::chunk::{Measure, chunk_by_similarity};
use docmill_model::settings::Tokenizer;

fn visible(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !c.is_whitespace())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zäß€ \n\t&<>]{0,30}",
        "([a-z]{1,8} ){0,40}",
        "[a-z]{0,200}",
        "( |\n|\u{3000}|a){0,80}",
    ]
}

#[derive(Clone, Debug)]
struct AnyCell {
    text: String,
    header: bool,
    colspan: u32,
    rowspan: u32,
}

fn any_cell(max_span: u32) -> impl Strategy<Value = AnyCell> {
    let text = prop_oneof![3 => "[a-z&<> ]{0,12}", 1 => any_text()];
    (text, any::<bool>(), 1..=max_span, 0..=max_span).prop_map(|(text, header, colspan, rowspan)| AnyCell {
        text,
        header,
        colspan,
        rowspan,
    })
}

/// A table whose text is that of its cells; `max_span` 0 gives one without HTML.
fn any_table(max_span: u32) -> impl Strategy<Value = Element> {
    prop::collection::vec(prop::collection::vec(any_cell(max_span.max(1)), 0..5), 0..12).prop_map(move |rows| {
        let mut text = String::new();
        let mut html = String::from("<table>");
        for row in rows {
            html.push_str("<tr>");
            for cell in row {
                let tag = if cell.header { "th" } else { "td" };
                let rowspan = if max_span == 1 { 1 } else { cell.rowspan };
                let escaped = cell.text.replace('&', "&amp;").replace('<', "&lt;");
                html.push_str(&format!(
                    "<{tag} colspan={} rowspan={rowspan}>{escaped}</{tag}>",
                    cell.colspan
                ));
                text.push_str(&cell.text);
                text.push(' ');
            }
            html.push_str("</tr>");
        }
        html.push_str("</table>");
        let mut table = table(&text, &html);
        if max_span == 0 {
            table.metadata.text_as_html = None;
        }
        table
    })
}

fn any_element(max_span: u32) -> impl Strategy<Value = Element> {
    let kind = prop::sample::select(vec![
        ElementType::Title,
        ElementType::NarrativeText,
        ElementType::CodeSnippet,
        ElementType::Image,
        ElementType::ListItem,
    ]);
    let page = prop::option::of(1u32..4);
    let body = prop_oneof![
        5 => (kind, any_text()).prop_map(|(kind, text)| element(kind, &text)),
        1 => Just(element(ElementType::PageBreak, "")),
        1 => any_table(max_span),
        1 => any_table(0),
    ];
    (body, page).prop_map(|(mut element, page)| {
        element.metadata.page_number = page;
        element
    })
}

fn any_elements(max_span: u32) -> impl Strategy<Value = Vec<Element>> {
    prop::collection::vec(any_element(max_span), 0..14)
}

fn any_options() -> impl Strategy<Value = ChunkOptions> {
    let strategy = prop::sample::select(vec![
        ChunkStrategy::ByCharacter,
        ChunkStrategy::ByTitle,
        ChunkStrategy::ByPage,
    ]);
    let max = prop_oneof![1usize..10, 10usize..200, Just(usize::MAX)];
    let lengths = max.prop_flat_map(|max| (Just(max), 0..=max, 0..=max, 0..max.min(300)));
    (strategy, lengths, any::<[bool; 6]>()).prop_map(|(strategy, (max, soft, combine, overlap), flags)| ChunkOptions {
        strategy,
        max_characters: max,
        new_after_n_chars: soft,
        overlap,
        overlap_all: flags[0],
        include_orig_elements: flags[1],
        repeat_table_headers: flags[2],
        skip_table_chunking: flags[3] && flags[4],
        isolate_table: flags[4],
        combine_text_under_n_chars: combine,
        multipage_sections: flags[5],
        ..ChunkOptions::new(strategy)
    })
}

proptest! {
    #[test]
    fn no_chunk_is_too_long(elements in any_elements(4), mut options in any_options()) {
        options.skip_table_chunking = false;
        for chunk in run(&elements, &options) {
            prop_assert!(chunk.text.chars().count() <= options.max_characters, "{:?}", chunk.text);
            prop_assert!(!chunk.text.trim().is_empty());
        }
    }

    #[test]
    fn nothing_is_lost_or_repeated_without_overlap(elements in any_elements(1), mut options in any_options()) {
        options.overlap = 0;
        options.isolate_table = true;
        options.repeat_table_headers = false;
        let chunks = run(&elements, &options);
        let before: String = elements.iter().flat_map(|element| visible(&element.text)).collect();
        let after: String = chunks.iter().flat_map(|chunk| visible(&chunk.text)).collect();
        prop_assert_eq!(before, after);
    }

    #[test]
    fn every_cell_of_a_split_table_appears(table in any_table(4), max in 50usize..120, repeat in any::<bool>()) {
        let mut options = by_character(max);
        options.repeat_table_headers = repeat;
        let chunks = run(std::slice::from_ref(&table), &options);
        // Cells may be cut, and repeated, but their text stays in order.
        let all: String = chunks.iter().flat_map(|chunk| visible(&chunk.text)).collect();
        let mut rest = all.chars();
        for c in visible(&table.text) {
            prop_assert!(rest.any(|other| other == c), "{} is not within {}", table.text, all);
        }
        for (index, chunk) in (0u32..).zip(&chunks).filter(|(_, chunk)| chunk.kind == ElementType::TableChunk) {
            prop_assert_eq!(chunk.metadata.chunk_index, Some(index));
            prop_assert_eq!(chunk.metadata.is_continuation.is_some(), index > 0);
            prop_assert!(chunk.metadata.num_carried_over_header_rows.is_some());
        }
    }

    #[test]
    fn every_text_has_a_chunk_that_names_it(elements in any_elements(4), mut options in any_options()) {
        options.skip_table_chunking = false;
        let mut elements = elements;
        assign_element_ids(&mut elements);
        let chunks = chunk(elements.clone(), &options, "scope");
        let named: HashSet<_> = chunks.iter().flat_map(|chunk| &chunk.metadata.source_element_ids).collect();
        for element in elements.iter().filter(|element| !element.text.trim().is_empty()) {
            prop_assert!(named.contains(&element.element_id), "{:?}", element.text);
        }
    }

    #[test]
    fn equal_input_gives_equal_bytes(elements in any_elements(4), options in any_options()) {
        let json = || serde_json::to_string(&run(&elements, &options)).unwrap();
        prop_assert_eq!(json(), json());
    }

    #[test]
    fn hostile_html_is_read_to_the_end(
        html in "(<|>|/|table|tr|td|th|thead|tbody|caption| |a|=|\"|'|&|amp;|#x|;|9|rowspan|colspan|<!--|-->|é){0,60}",
        max in 1usize..120,
    ) {
        let text = "some words ".repeat(20);
        let chunks = run(&[table(&text, &html)], &by_character(max));
        prop_assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= max));
    }

    #[test]
    fn in_tokens_no_chunk_is_too_long_and_nothing_is_lost(
        elements in any_elements(4),
        mut options in any_options(),
        tokenizer in prop::sample::select(Tokenizer::ALL.to_vec()),
    ) {
        options.tokenizer = Some(tokenizer);
        options.skip_table_chunking = false;
        let measure = Measure::of(&options);
        let chunks = run(&elements, &options);
        for chunk in &chunks {
            let fits = measure.len(&chunk.text) <= options.max_characters || chunk.text.chars().count() == 1;
            prop_assert!(fits, "{:?}", chunk.text);
            prop_assert!(!chunk.text.trim().is_empty());
        }
        let after: String = chunks.iter().flat_map(|chunk| visible(&chunk.text)).collect();
        let mut rest = after.chars();
        for c in elements.iter().flat_map(|element| visible(&element.text)) {
            prop_assert!(rest.any(|other| other == c), "{c} is missing in {after}");
        }
    }

    #[test]
    fn an_overlap_in_tokens_is_the_end_of_the_piece_before(
        text in "([a-zä]{1,12} ){0,60}",
        max in 2usize..30,
        overlap in 1usize..12,
    ) {
        let overlap = overlap.min(max - 1);
        let options = ChunkOptions { tokenizer: Some(Tokenizer::O200k), ..by_character(max) };
        let measure = Measure::of(&options);
        let pieces = measure.split(&text, max, overlap);
        let words: Vec<_> = text.split_whitespace().collect();
        let mut rebuilt = String::new();
        let mut before = String::new();
        for piece in pieces {
            let tail = measure.tail(&before, overlap);
            prop_assert!(measure.len(tail) <= overlap && before.ends_with(tail));
            let new = piece.strip_prefix(&format!("{tail} ")).unwrap_or(&piece);
            rebuilt.push_str(&new.replace(' ', ""));
            before = piece;
        }
        prop_assert_eq!(rebuilt, words.concat());
    }

    #[test]
    fn by_similarity_keeps_everything_in_order_and_within_the_maximum(
        elements in any_elements(1),
        vectors in prop::collection::vec(prop::option::of(prop::collection::vec(-1.0f32..1.0, 0..4)), 0..14),
        max in 1usize..200,
        threshold in 0.01f64..0.99,
    ) {
        let mut options = by_character(max);
        options.repeat_table_headers = false;
        let chunks = chunk_by_similarity(elements.clone(), &vectors, &options, threshold, "scope");
        prop_assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= max));
        let before: String = elements.iter().flat_map(|element| visible(&element.text)).collect();
        let after: String = chunks.iter().flat_map(|chunk| visible(&chunk.text)).collect();
        prop_assert_eq!(before, after);
    }
}
