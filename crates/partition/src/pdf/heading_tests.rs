//! Headings and running heads, in whole files.

use docmill_model::Document;
use docmill_model::settings::PartitionOptions;

use super::testing::{PdfBuilder, outline, partition, show};

const PROSE: &str = "The committee met on Monday and agreed on the plan for";

fn read(builder: PdfBuilder) -> Document {
    partition(&builder.build(), &PartitionOptions::default()).unwrap()
}

fn prose(mut y: f32, lines: usize) -> String {
    let mut out = String::new();
    for _ in 0..lines {
        out += &show('F', 10.0, 40.0, y, PROSE);
        y -= 12.0;
    }
    out
}

fn titles(document: &Document) -> Vec<(&str, Option<u32>)> {
    let titles = document
        .elements
        .iter()
        .filter(|element| element.kind.as_str() == "Title");
    titles
        .map(|element| (element.text.as_str(), element.metadata.category_depth))
        .collect()
}

#[test]
fn a_number_set_apart_belongs_to_its_heading() {
    let content = show('B', 14.0, 40.0, 560.0, "2")
        + &show('B', 14.0, 90.0, 560.0, "Expanding addresses")
        + &show('B', 14.0, 90.0, 544.0, "and tables")
        + &prose(520.0, 3)
        + &show('B', 12.0, 40.0, 470.0, "2.1")
        + &show('B', 12.0, 90.0, 470.0, "5-Level paging")
        + &prose(450.0, 3);
    let document = read(PdfBuilder::new().page(&content, ""));
    assert_eq!(
        titles(&document),
        [
            ("2 Expanding addresses and tables", Some(0)),
            ("2.1 5-Level paging", Some(1))
        ]
    );
}

#[test]
fn entries_of_a_table_of_contents_are_no_headings() {
    let content = show('B', 10.0, 40.0, 560.0, "1")
        + &show('B', 10.0, 70.0, 560.0, "Introduction")
        + &show('B', 10.0, 340.0, 560.0, "4")
        + &show('B', 10.0, 40.0, 540.0, "2 Methods . . . . . . . . . . . . . . . . . 9")
        + &prose(400.0, 4);
    assert_eq!(titles(&read(PdfBuilder::new().page(&content, ""))), []);
}

#[test]
fn a_bold_line_is_parted_from_the_paragraph_that_shares_its_tag() {
    let tree = "/StructTreeRoot << /Type /StructTreeRoot /K << /S /P /K [0] /Pg 6 0 R >> >>";
    let content = format!(
        "/P << /MCID 0 >> BDC {}{} EMC",
        show('B', 10.0, 40.0, 560.0, "Boots nut"),
        prose(548.0, 3)
    );
    let document = read(PdfBuilder::new().page(&content, "").catalog(tree));
    assert_eq!(outline(&document)[0], ("Title", "Boots nut"));
    assert_eq!(outline(&document)[1].0, "NarrativeText");
}

#[test]
fn a_line_in_italics_above_its_paragraph_is_a_heading() {
    let mut builder = PdfBuilder::new();
    builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Times-Italic /Encoding /WinAnsiEncoding >>");
    let resources = "/Resources << /Font << /F 3 0 R /J 5 0 R >> >>";
    let content = show('J', 10.0, 40.0, 560.0, "Elastic Stop Nut") + &prose(548.0, 3);
    let document = read(builder.page_with(&content, resources));
    assert_eq!(outline(&document)[0], ("Title", "Elastic Stop Nut"));

    // The end of a quotation is none.
    let mut builder = PdfBuilder::new();
    builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Times-Italic /Encoding /WinAnsiEncoding >>");
    let content = show('J', 10.0, 40.0, 560.0, "as it was said in the book") + &prose(548.0, 3);
    assert_eq!(titles(&read(builder.page_with(&content, resources))), []);
}

#[test]
fn large_titles_of_pages_are_no_running_heads() {
    let mut builder = PdfBuilder::new();
    for page in 1..=5 {
        let content = show('F', 24.0, 40.0, 560.0, "The method")
            + &show('F', 8.0, 40.0, 20.0, "University")
            + &show(
                'F',
                10.0,
                40.0,
                300.0,
                &format!("The {page} step of it is explained on this very page."),
            );
        builder = builder.page(&content, "");
    }
    let document = read(builder);
    assert_eq!(titles(&document), [("The method", Some(0)); 5]);
    let footers = outline(&document)
        .into_iter()
        .filter(|(kind, _)| *kind == "Footer")
        .count();
    assert_eq!(footers, 5);
}
