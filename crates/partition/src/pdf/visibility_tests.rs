//! Text that nobody sees, in whole files.

use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, WarningCode};

use super::testing::{PdfBuilder, outline, partition, show};

/// A page with a line of text everybody sees, then `content`.
fn read(content: &str) -> Document {
    let content = show('F', 10.0, 40.0, 560.0, "Plain to see.") + content;
    let bytes = PdfBuilder::new().page(&content, "").build();
    partition(&bytes, &PartitionOptions::default()).unwrap()
}

fn texts(document: &Document) -> Vec<&str> {
    outline(document).into_iter().map(|(_, text)| text).collect()
}

fn hidden(document: &Document) -> Vec<&str> {
    let found = document.warnings.iter().filter(|w| w.code == WarningCode::TextHidden);
    found.map(|warning| warning.message.as_str()).collect()
}

#[test]
fn text_outside_the_page_is_reported_and_left_out() {
    let document = read(&(show('F', 10.0, 700.0, 300.0, "crop mark") + &show('F', 10.0, 40.0, -90.0, "slug")));
    assert_eq!(texts(&document), ["Plain to see."]);
    assert_eq!(hidden(&document).len(), 1);
    assert!(
        hidden(&document)[0].contains("12 outside the page"),
        "{:?}",
        hidden(&document)
    );
    assert_eq!(document.warnings[0].page_number, Some(1));
}

#[test]
fn white_text_is_hidden_on_white_and_seen_on_a_colour() {
    let white = format!("1 1 1 rg {} 0 g\n", show('F', 10.0, 40.0, 300.0, "Ghost"));
    let document = read(&white);
    assert_eq!(texts(&document), ["Plain to see."]);
    assert!(hidden(&document)[0].contains("5 white on white"));

    let banner = format!("0 0 0.5 rg 30 290 200 30 re f {white}");
    let document = read(&banner);
    assert_eq!(texts(&document), ["Plain to see.", "Ghost"]);
    assert!(hidden(&document).is_empty());
}

#[test]
fn white_letters_with_an_outline_are_seen() {
    let document = read(&format!(
        "1 g 0 G 2 Tr {} 0 Tr 0 g\n",
        show('F', 10.0, 40.0, 300.0, "Outlined")
    ));
    assert_eq!(texts(&document), ["Plain to see.", "Outlined"]);
}

#[test]
fn invisible_text_needs_a_picture_behind_it() {
    let invisible = format!("3 Tr {} 0 Tr\n", show('F', 10.0, 40.0, 300.0, "keywords"));
    let document = read(&invisible);
    assert_eq!(texts(&document), ["Plain to see."]);
    assert!(hidden(&document)[0].contains("8 invisible"));

    // Letters drawn as shapes, and their text for searching.
    let document = read(&format!("40 298 m 80 298 l 80 310 l 40 310 l f {invisible}"));
    assert_eq!(texts(&document), ["Plain to see.", "keywords"]);
}

#[test]
fn clipped_text_is_hidden() {
    let line = show('F', 10.0, 40.0, 300.0, "Shown and cut");
    // Helvetica: "Shown" is 29.5 points wide at size 10.
    let document = read(&format!(
        "q 30 290 40 30 re W n {line} Q {}",
        show('F', 10.0, 40.0, 200.0, "After")
    ));
    assert_eq!(texts(&document), ["Plain to see.", "Shown", "After"]);
    assert!(
        hidden(&document)[0].contains("6 outside the area that is shown"),
        "{:?}",
        hidden(&document)
    );
}

#[test]
fn a_page_with_nothing_but_hidden_text_keeps_it() {
    let content = format!("3 Tr {}", show('F', 10.0, 40.0, 300.0, "All there is"));
    let bytes = PdfBuilder::new().page(&content, "").build();
    let document = partition(&bytes, &PartitionOptions::default()).unwrap();
    assert_eq!(texts(&document), ["All there is"]);
    assert!(hidden(&document)[0].ends_with("they were kept because the page has no other text"));
}

#[test]
fn drawings_without_text_are_reported() {
    let mut content = String::new();
    for step in 0..40 {
        content += &format!("{0} 100 m {0} 200 {1} 200 {1} 100 c S\n", 5 * step, 5 * step + 4);
    }
    let bytes = PdfBuilder::new()
        .page(&content, "")
        .page(&show('F', 10.0, 40.0, 300.0, "Text"), "")
        .build();
    let document = partition(&bytes, &PartitionOptions::default()).unwrap();
    let found: Vec<_> = document.warnings.iter().map(|w| (w.code, w.page_number)).collect();
    assert_eq!(found, [(WarningCode::OcrNotDone, Some(1))]);
}
