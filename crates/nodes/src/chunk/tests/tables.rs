//! Tables in parts.

use super::*;

fn rows(rows: &[&[&str]]) -> String {
    let cells = |row: &&[&str]| row.iter().map(|text| format!("<td>{text}</td>")).collect::<String>();
    let rows = rows.iter().map(|row| format!("<tr>{}</tr>", cells(row)));
    format!("<table>{}</table>", rows.collect::<String>())
}

/// A table that does not fit one chunk whatever its HTML is.
fn long_table(html: &str) -> Element {
    table(&"x".repeat(2_000), html)
}

#[test]
fn skipped_tables_pass_through_unchanged() {
    let mut options = by_character(50);
    options.skip_table_chunking = true;
    let mut source = [prose("a"), long_table("<table class='x'></table>").on_page(2)];
    assign_element_ids(&mut source);
    let chunks = run(&source, &options);
    assert_eq!(chunks[1], source[1]);
}

#[test]
fn table_ids_depend_on_scope_and_table() {
    let options = by_character(60);
    let id = |elements: &[Element], scope: &str, at: usize| {
        chunk(elements.to_vec(), &options, scope)[at]
            .metadata
            .table_id
            .clone()
            .unwrap()
    };
    let mut two = [long_table(""), long_table("")];
    assign_element_ids(&mut two);
    let last = chunk(two.to_vec(), &options, "s").len() - 1;
    assert_eq!(id(&two, "s", 0), id(&two, "s", 0));
    assert_ne!(id(&two, "s", 0), id(&two, "s", last));
    assert_ne!(id(&two, "s", 0), id(&two, "t", 0));
    assert_eq!(id(&two, "s", 0).len(), 36);
    // Also when a careless producer gave both the same id.
    two[1].element_id = two[0].element_id.clone();
    assert_ne!(id(&two, "s", 0), id(&two, "s", last));
}

#[test]
fn a_row_too_long_is_cut_between_cells() {
    let (a, b, c) = ("a".repeat(30), "b".repeat(30), "c".repeat(29));
    let chunks = run(&[long_table(&rows(&[&[&a, "", &b, &c]]))], &by_character(60));
    assert_eq!(texts(&chunks), [a.clone(), format!("{b} {c}")]);
    assert_eq!(
        htmls(&chunks),
        [
            format!("<table><tr><td>{a}</td><td></td></tr></table>"),
            format!("<table><tr><td>{b}</td><td>{c}</td></tr></table>"),
        ]
    );
}

#[test]
fn a_cell_too_long_is_cut_so_that_its_html_fits() {
    let long = "&amp;".repeat(20) + &" word".repeat(20);
    let chunks = run(&[long_table(&rows(&[&["x", &long, "y"]]))], &by_character(60));
    assert_eq!(chunks[0].text, "x");
    assert_eq!(chunks[1].text, "&&&&&");
    assert_eq!(
        htmls(&chunks)[1],
        "<table><tr><td>&amp;&amp;&amp;&amp;&amp;</td></tr></table>"
    );
    assert!(htmls(&chunks).iter().all(|html| html.len() <= 60));
    let letters: String = texts(&chunks).concat().split_whitespace().collect();
    assert_eq!(letters, format!("x{}{}y", "&".repeat(20), "word".repeat(20)));
}

#[test]
fn rows_bound_by_a_rowspan_stay_together() {
    let fill = "f".repeat(40);
    let html = format!(
        "<table><tr><td colspan=2>{fill}</td></tr><tr><td rowspan=2>s</td><td>{}</td></tr><tr><td>c</td></tr></table>",
        "b".repeat(10)
    );
    let chunks = run(&[long_table(&html)], &by_character(54));
    assert_eq!(texts(&chunks), [fill.as_str(), "s bbbbbbbbbb c"]);
    assert!(htmls(&chunks)[1].starts_with("<table><tr><td rowspan=\"2\">s</td>"));
}

#[test]
fn a_rowspan_too_long_is_cut_with_its_cell_repeated() {
    let (b, c, d) = ("b".repeat(30), "c".repeat(30), "d".repeat(49));
    let html = format!(
        "<table><tr><td>{b}</td><td rowspan=3 colspan=2>s</td></tr><tr><td>{c}</td></tr><tr><td>{d}</td></tr></table>"
    );
    let chunks = run(&[long_table(&html)], &by_character(50));
    assert_eq!(texts(&chunks), [format!("{b} s"), format!("{c} s"), d.clone()]);
    assert_eq!(
        htmls(&chunks),
        [
            format!("<table><tr><td>{b}</td><td colspan=\"2\">s</td></tr></table>"),
            format!("<table><tr><td>{c}</td><td colspan=\"2\">s</td></tr></table>"),
            // Here its text would not fit.
            format!("<table><tr><td>{d}</td><td colspan=\"2\"></td></tr></table>"),
        ]
    );
}

#[test]
fn a_repeated_cell_stands_in_its_column() {
    let (b, c) = ("b".repeat(30), "c".repeat(30));
    let html =
        format!("<table><tr><td>1</td><td rowspan=2>s</td><td>{b}</td></tr><tr><td>2</td><td>{c}</td></tr></table>");
    let chunks = run(&[long_table(&html)], &by_character(50));
    assert_eq!(texts(&chunks), [format!("1 s {b}"), format!("2 s {c}")]);
}

/// A header of the given cells over ten rows of 20 characters.
fn with_header(header: &str) -> Element {
    let row = format!("<tr><td>{}</td></tr>", "r".repeat(20));
    long_table(&format!("<table><tr><th>{header}</th></tr>{}</table>", row.repeat(10)))
}

#[test]
fn a_header_is_repeated_unless_it_takes_too_much_room() {
    let carried = |header: &str, max| {
        let chunks = run(&[with_header(header)], &by_character(max));
        assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= max));
        chunks[1].metadata.num_carried_over_header_rows
    };
    assert_eq!(carried(&"h".repeat(50), 100), Some(1));
    assert_eq!(carried(&"h".repeat(51), 100), Some(0));
    let rows_of = |count: usize, len: usize| vec!["h".repeat(len); count].join("</th></tr><tr><th>");
    assert_eq!(carried(&rows_of(3, 24), 100), Some(3));
    assert_eq!(carried(&rows_of(3, 25), 100), Some(0));
    // Little text in much markup.
    assert_eq!(carried(&rows_of(21, 1), 100), Some(0));
}

#[test]
fn a_header_is_not_repeated_when_cells_would_fall_to_pieces() {
    let html = |long: &str| {
        format!(
            "<table><tr><th>{}</th></tr><tr><td>{long}</td></tr></table>",
            "h".repeat(30)
        )
    };
    let carried = |len: usize| {
        let chunks = run(&[long_table(&html(&"b".repeat(len)))], &by_character(60));
        chunks[1].metadata.num_carried_over_header_rows
    };
    assert_eq!(carried(30), Some(0));
    let chunks = run(&[with_header(&"h".repeat(30))], &by_character(60));
    assert_eq!(chunks[1].metadata.num_carried_over_header_rows, Some(1));
}

#[test]
fn html_without_text_is_split_as_text() {
    let chunks = run(&[long_table(&rows(&[&["", ""]]))], &by_character(60));
    assert_eq!(chunks.len(), 34);
    assert!(chunks.iter().all(|chunk| chunk.metadata.text_as_html.is_none()));
}

#[test]
fn many_rowspans_over_many_rows_do_not_multiply() {
    let html = format!(
        "<table><tr>{}</tr>{}</table>",
        "<td rowspan=65534>a</td>".repeat(5_000),
        "<tr><td>b</td></tr>".repeat(5_000)
    );
    let chunks = run(&[long_table(&html)], &by_character(50));
    let size: usize = htmls(&chunks).iter().map(|html| html.len()).sum();
    assert!(size < 20 * html.len(), "{size}");
}
