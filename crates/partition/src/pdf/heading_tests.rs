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

fn title_texts(document: &Document) -> Vec<&str> {
    titles(document).into_iter().map(|(text, _)| text).collect()
}

#[test]
fn authors_below_a_title_are_no_headings() {
    let paper = |authors: &str, below: &str| {
        let content = show('F', 18.0, 40.0, 560.0, "A study of the plan")
            + &show('F', 12.0, 40.0, 535.0, authors)
            + &show('F', 10.0, 40.0, 515.0, below)
            + &prose(480.0, 4);
        read(PdfBuilder::new().page(&content, ""))
    };
    for authors in [
        "N Hirsch",
        "Miller, A.H.; Le Grand, E.-J.",
        "Ann Miller, Joe Smith and Li Wei",
    ] {
        assert_eq!(
            title_texts(&paper(authors, "2004")),
            ["A study of the plan"],
            "{authors}"
        );
    }
    // One name alone could be any subtitle, unless an address follows.
    assert_eq!(title_texts(&paper("Maria Gomez", "maria@example.org")).len(), 1);
    assert_eq!(title_texts(&paper("Annual Review", "2004")).len(), 2);
}

#[test]
fn a_label_and_its_value_are_no_headings_however_large() {
    let content = show('F', 12.0, 40.0, 560.0, "Published in:")
        + &show('F', 12.0, 40.0, 547.0, "Congress of Bees and Orchards")
        + &prose(500.0, 4);
    assert_eq!(title_texts(&read(PdfBuilder::new().page(&content, ""))), [""; 0]);
}

#[test]
fn a_size_that_running_text_has_makes_no_heading() {
    let lead = |text: &str| {
        let mut content = show('F', 12.0, 40.0, 560.0, text);
        for (line, y) in [530.0, 515.0, 500.0].into_iter().enumerate() {
            let words = "The summary of what was said in the room on that day and";
            content += &show('F', 12.0, 40.0, y, &words[line..]);
        }
        content += &prose(460.0, 12);
        read(PdfBuilder::new().page(&content, ""))
    };
    assert_eq!(title_texts(&lead("A word before it")), [""; 0]);
    assert_eq!(title_texts(&lead("A WORD BEFORE IT")), ["A WORD BEFORE IT"]);
}

#[test]
fn a_label_in_capitals_above_a_heading_is_one() {
    let page = |label: &str, below: char| {
        let content =
            show('B', 10.0, 40.0, 560.0, label) + &show(below, 10.0, 40.0, 540.0, "Letters Welcome") + &prose(526.0, 4);
        read(PdfBuilder::new().page(&content, ""))
    };
    let found = page("SUNDRY REMARKS:", 'B');
    assert_eq!(title_texts(&found), ["SUNDRY REMARKS:", "Letters Welcome"]);
    assert_eq!(title_texts(&page("SUNDRY REMARKS:", 'F')), [""; 0]);
    assert_eq!(title_texts(&page("Sundry remarks:", 'B')), ["Letters Welcome"]);
}

#[test]
fn a_bold_line_heads_small_print() {
    let page = |size: f32| {
        let mut content = prose(560.0, 12) + &show('B', 7.5, 40.0, 300.0, "About the office");
        for line in 0..3 {
            content += &show('F', size, 40.0, 290.0 - 9.0 * line as f32, PROSE);
        }
        read(PdfBuilder::new().page(&content, ""))
    };
    assert_eq!(title_texts(&page(7.0)), ["About the office"]);
    assert_eq!(title_texts(&page(10.0)), [""; 0]);
}

/// A page with two tagged headings, text, and a bold line that is tagged as given.
fn tagged(kind: &str, bold: char, catalog: &str) -> Document {
    let mut content = String::new();
    let lines = [
        ("H1", 'B', "The plan"),
        ("P", 'F', PROSE),
        ("H2", 'B', "The budget"),
        ("P", 'F', PROSE),
        (kind, bold, "Before you begin"),
        ("P", 'F', PROSE),
    ];
    let mut tree = String::new();
    for (id, (kind, font, text)) in lines.into_iter().enumerate() {
        let y = 560.0 - 30.0 * id as f32;
        content += &format!("/P << /MCID {id} >> BDC {} EMC\n", show(font, 10.0, 40.0, y, text));
        tree += &format!("<< /S /{kind} /K [{id}] /Pg 6 0 R >> ");
    }
    let root = format!("/StructTreeRoot << /Type /StructTreeRoot /K << /S /Document /K [{tree}] >> >> {catalog}");
    read(PdfBuilder::new().page(&content, "").catalog(&root))
}

#[test]
fn what_trusted_tags_leave_out_is_no_heading() {
    for kind in ["P", "Div", "NonStruct"] {
        assert_eq!(
            title_texts(&tagged(kind, 'B', "")),
            ["The plan", "The budget"],
            "{kind}"
        );
    }
    assert_eq!(title_texts(&tagged("H3", 'B', "")).len(), 3);
}

#[test]
fn bookmarks_make_no_headings_of_tagged_text_in_the_type_of_the_body() {
    let outline = "/Outlines << /First << /Title (Before you begin) >> >>";
    assert_eq!(title_texts(&tagged("P", 'F', outline)), ["The plan", "The budget"]);
    assert_eq!(title_texts(&tagged("P", 'B', outline)).len(), 3);
}

#[test]
fn a_section_number_and_a_date_above_the_words_belong_to_the_heading() {
    let page = |number: &str| {
        let content = show('F', 10.0, 40.0, 560.0, number)
            + &show('F', 10.0, 40.0, 548.0, "(03-11-1998)")
            + &show('B', 10.0, 40.0, 536.0, "Terms of it")
            + &show('B', 10.0, 40.0, 524.0, "and Words")
            + &prose(500.0, 4);
        read(PdfBuilder::new().page(&content, ""))
    };
    assert_eq!(
        title_texts(&page("4.7.31.2")),
        ["4.7.31.2 (03-11-1998) Terms of it and Words"]
    );
    assert_eq!(title_texts(&page("2,300")), ["Terms of it and Words"]);
}

#[test]
fn tags_that_make_headings_of_everything_are_not_believed() {
    let page = |lines: usize| {
        let mut content = String::new();
        let mut tree = String::new();
        for id in 0..lines {
            let text = format!("So it is in {id} that {PROSE}");
            let line = show('F', 10.0, 40.0, 540.0 - 22.0 * id as f32, &text);
            content += &format!("/H1 << /MCID {id} >> BDC {line} EMC\n");
            tree += &format!("<< /S /H1 /K [{id}] /Pg 6 0 R >> ");
        }
        let root = format!("/StructTreeRoot << /Type /StructTreeRoot /K [{tree}] >>");
        title_texts(&read(PdfBuilder::new().page(&content, "").catalog(&root))).len()
    };
    assert_eq!(page(22), 0);
    assert_eq!(page(2), 2);
}

#[test]
fn a_broken_word_joins_the_lines_of_a_title() {
    let content = show('F', 18.0, 40.0, 560.0, "The synthesis of ether com-")
        + &show('F', 18.0, 40.0, 520.0, "pounds")
        + &show('F', 12.0, 40.0, 480.0, "Maria Gomez")
        + &show('F', 10.0, 40.0, 465.0, "Institute of Chemistry, Faro")
        + &show('B', 10.0, 40.0, 440.0, "Scheme 1. Ways to the compounds")
        + &prose(420.0, 4);
    let document = read(PdfBuilder::new().page(&content, ""));
    assert_eq!(title_texts(&document), ["The synthesis of ether compounds"]);
}

#[test]
fn a_page_of_larger_text_is_no_page_of_headings() {
    let sentence = "The plaintiff has said on the day of it that the sum is due.";
    let mut letter = show('B', 12.0, 20.0, 560.0, "Complaint");
    for line in 0..12 {
        letter += &show('F', 12.0, 20.0, 530.0 - 40.0 * line as f32, sentence);
    }
    let mut builder = PdfBuilder::new().page(&letter, "");
    for _ in 0..3 {
        let mut small = String::new();
        for line in 0..60 {
            small += &show('F', 7.0, 40.0, 570.0 - 8.5 * line as f32, PROSE);
        }
        builder = builder.page(&small, "");
    }
    assert_eq!(title_texts(&read(builder)), ["Complaint"]);
}

#[test]
fn a_broken_word_joins_a_title_that_is_wider_than_its_rest() {
    let mut content = show('B', 14.0, 30.0, 560.0, "The synthesis of the many ethers and com-")
        + &show('B', 14.0, 30.0, 543.0, "pounds of it");
    for line in 0..12 {
        let text = "and a line of the column here";
        let y = 500.0 - 12.0 * line as f32;
        content += &(show('F', 9.0, 30.0, y, text) + &show('F', 9.0, 210.0, y + 40.0, text));
    }
    let found = read(PdfBuilder::new().page(&content, ""));
    assert_eq!(
        title_texts(&found),
        ["The synthesis of the many ethers and compounds of it"]
    );
}

#[test]
fn roman_numbers_make_headings_of_capitals_and_of_their_kin() {
    let page = |first: &str| {
        let content = show('B', 16.0, 40.0, 570.0, "The plan of the year")
            + &show('B', 12.0, 40.0, 550.0, "Its summary")
            + &prose(530.0, 3)
            + &show('F', 10.0, 150.0, 480.0, first)
            + &prose(460.0, 3)
            + &show('F', 10.0, 150.0, 410.0, "II. RESULTS")
            + &prose(390.0, 3)
            + &show('F', 10.0, 150.0, 340.0, "REFERENCES")
            + &prose(320.0, 3);
        read(PdfBuilder::new().page(&content, ""))
    };
    let found = page("I. METHODS");
    let texts = title_texts(&found);
    assert_eq!(texts[2..], ["I. METHODS", "II. RESULTS", "REFERENCES"]);
    assert_eq!(title_texts(&page("METHODS AND ALL"))[2..], ["II. RESULTS"]);
}
