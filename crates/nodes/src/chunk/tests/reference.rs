//! Examples whose outcome is given by the specification.

use super::*;
use docmill_model::orig_elements;

const NUMBERS: &str = "one two three four five six seven";

#[test]
fn the_hard_maximum_may_be_filled_exactly() {
    let chunks = run(
        &[prose("aaaaaaaaa"), prose("bbbbbbbbb"), prose("ee")],
        &by_character(20),
    );
    assert_eq!(texts(&chunks), ["aaaaaaaaa\n\nbbbbbbbbb", "ee"]);
    assert_eq!(chunks[0].text.chars().count(), 20);
}

#[test]
fn the_soft_maximum_must_be_exceeded() {
    let mut options = by_character(40);
    options.new_after_n_chars = 9;
    let chunks = run(&[prose("aaaaaaaaa"), prose("bb"), prose("cc")], &options);
    assert_eq!(texts(&chunks), ["aaaaaaaaa\n\nbb", "cc"]);
}

#[test]
fn a_soft_maximum_of_zero_gives_one_element_a_chunk() {
    let mut options = by_character(40);
    options.new_after_n_chars = 0;
    let page_break = element(ElementType::PageBreak, "");
    let chunks = run(&[prose("a"), prose("b"), page_break, prose("c")], &options);
    assert_eq!(texts(&chunks), ["a", "b", "c"]);
    assert_eq!(chunks[2].metadata.source_element_ids.len(), 2);
}

#[test]
fn small_sections_are_combined() {
    let elements = [title("A"), prose("aaa"), title("B"), prose("bbb")];
    let mut options = by_title(50);
    assert_eq!(texts(&run(&elements, &options)), ["A\n\naaa\n\nB\n\nbbb"]);
    options.combine_text_under_n_chars = 0;
    assert_eq!(texts(&run(&elements, &options)), ["A\n\naaa", "B\n\nbbb"]);
}

#[test]
fn each_title_begins_a_section() {
    let mut options = by_title(50);
    options.combine_text_under_n_chars = 0;
    let chunks = run(&[title("A"), title("B"), prose("bbb")], &options);
    assert_eq!(texts(&chunks), ["A", "B\n\nbbb"]);
}

#[test]
fn combining_ignores_page_boundaries() {
    let elements = [prose("a").on_page(1), prose("b").on_page(2)];
    let mut options = by_title(50);
    options.multipage_sections = false;
    assert_eq!(texts(&run(&elements, &options)), ["a\n\nb"]);
    options.combine_text_under_n_chars = 0;
    assert_eq!(texts(&run(&elements, &options)), ["a", "b"]);
}

#[test]
fn white_space_is_normalised_but_in_code() {
    let code = element(ElementType::CodeSnippet, "x\n  y");
    let chunks = run(&[prose(" a \n  b\t c "), code], &by_character(500));
    assert_eq!(texts(&chunks), ["a b c\n\nx\n  y"]);
}

#[test]
fn long_texts_are_cut_at_spaces() {
    let chunks = run(&[prose(NUMBERS)], &by_character(12));
    assert_eq!(texts(&chunks), ["one two", "three four", "five six", "seven"]);
    let continuation: Vec<_> = chunks.iter().map(|chunk| chunk.metadata.is_continuation).collect();
    assert_eq!(continuation, [None, Some(true), Some(true), Some(true)]);
}

#[test]
fn overlap_repeats_the_end_of_the_piece_before() {
    let mut options = by_character(14);
    options.overlap = 5;
    let elements = [prose(NUMBERS), prose("yyyy zz")];
    assert_eq!(
        texts(&run(&elements, &options)),
        ["one two three", "hree four five", "five six seven", "yyyy zz"]
    );
    options.overlap_all = true;
    assert_eq!(texts(&run(&elements, &options))[3], "seven\n\nyyyy zz");
}

#[test]
fn a_text_without_spaces_is_cut_anywhere() {
    let mut options = by_character(10);
    options.overlap = 3;
    assert_eq!(
        texts(&run(&[prose("abcdefghijklmnopqrstuvwxyz")], &options)),
        ["abcdefghij", "hijklmnopq", "opqrstuvwx", "vwxyz"]
    );
}

#[test]
fn orig_elements_are_the_sources_of_every_part() {
    let mut source = [prose(NUMBERS)];
    assign_element_ids(&mut source);
    let chunks = run(&source, &by_character(12));
    for chunk in &chunks {
        let encoded = chunk.metadata.orig_elements.as_deref().unwrap();
        assert_eq!(orig_elements::decode(encoded, 10_000).unwrap(), source);
    }
}

#[test]
fn text_and_html_of_a_table_must_both_fit() {
    let html = "<table id=\"a\"><tr><td>a</td><td>b</td></tr></table>";
    assert_eq!(html.len(), 51);
    let chunks = run(&[table("a b", html)], &by_character(30));
    assert_eq!(texts(&chunks), ["a b"]);
    assert_eq!(chunks[0].kind, ElementType::TableChunk);
    assert_eq!(chunks[0].metadata.text_as_html, None);

    let chunks = run(&[table("a b", html)], &by_character(50));
    assert_eq!(chunks[0].kind, ElementType::Table);
    assert_eq!(htmls(&chunks), ["<table><tr><td>a</td><td>b</td></tr></table>"]);
}

/// A table with header "Name|Val" and six rows.
fn names() -> Element {
    let mut html = String::from("<table><thead><tr><th>Name</th><th>Val</th></tr></thead><tbody>");
    let mut text = String::from("Name Val");
    for n in 0..6 {
        html.push_str(&format!("<tr><td>row{n} alpha</td><td>{n} beta gamma</td></tr>"));
        text.push_str(&format!(" row{n} alpha {n} beta gamma"));
    }
    table(&text, &(html + "</tbody></table>"))
}

#[test]
fn rows_are_packed_and_headers_repeated() {
    let chunks = run(&[names()], &by_character(60));
    assert_eq!(
        texts(&chunks),
        [
            "Name Val row0 alpha 0 beta gamma row1 alpha 1 beta gamma",
            "Name Val row2 alpha 2 beta gamma row3 alpha 3 beta gamma",
            "Name Val row4 alpha 4 beta gamma row5 alpha 5 beta gamma",
        ]
    );
    let htmls = htmls(&chunks);
    assert_eq!(
        htmls[0],
        "<table><tr><td>Name</td><td>Val</td></tr><tr><td>row0 alpha</td><td>0 beta gamma</td></tr>\
         <tr><td>row1 alpha</td><td>1 beta gamma</td></tr></table>"
    );
    assert_eq!(
        htmls[1],
        "<table><thead><tr><th>Name</th><th>Val</th></tr></thead><tr><td>row2 alpha</td><td>2 beta gamma</td></tr>\
         <tr><td>row3 alpha</td><td>3 beta gamma</td></tr></table>"
    );
    for (index, chunk) in chunks.iter().enumerate() {
        let metadata = &chunk.metadata;
        assert_eq!(chunk.kind, ElementType::TableChunk);
        assert_eq!(metadata.chunk_index, u32::try_from(index).ok());
        assert_eq!(metadata.num_carried_over_header_rows, Some(u32::from(index > 0)));
        assert_eq!(metadata.is_continuation, (index > 0).then_some(true));
        assert_eq!(metadata.table_id, chunks[0].metadata.table_id);
        assert!(metadata.table_id.is_some() && metadata.orig_elements.is_some());
    }
}

#[test]
fn headers_are_repeated_on_demand_alone() {
    let mut options = by_character(60);
    options.repeat_table_headers = false;
    let chunks = run(&[names()], &options);
    assert_eq!(
        texts(&chunks),
        [
            "Name Val row0 alpha 0 beta gamma row1 alpha 1 beta gamma",
            "row2 alpha 2 beta gamma row3 alpha 3 beta gamma",
            "row4 alpha 4 beta gamma row5 alpha 5 beta gamma",
        ]
    );
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk.metadata.num_carried_over_header_rows == Some(0))
    );
}

#[test]
fn small_maxima_split_a_table_as_text() {
    let chunks = run(&[names()], &by_character(40));
    assert_eq!(chunks[0].text, "Name Val row0 alpha 0 beta gamma row1");
    assert!(chunks.iter().all(|chunk| chunk.kind == ElementType::TableChunk));
    assert!(chunks.iter().all(|chunk| chunk.metadata.text_as_html.is_none()));
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk.metadata.num_carried_over_header_rows == Some(0))
    );
}

#[test]
fn tables_that_are_not_isolated_join_text() {
    let mut options = by_character(500);
    options.isolate_table = false;
    let html = "<table class=\"x\"><tr><td>b</td></tr></table>";
    let chunks = run(&[prose("a"), table("b", html), table("c", html)], &options);
    assert_eq!(texts(&chunks), ["a\n\nb\n\nc"]);
    assert_eq!(chunks[0].kind, ElementType::CompositeElement);
    assert_eq!(htmls(&chunks), [format!("{html} {html}")]);
}
