//! One small file, or a few, for each thing the reader promises: what comes out of it, as a whole.

use std::fmt::Write;
use std::sync::Arc;

use docmill_model::settings::PartitionOptions;

use super::testing::{PdfBuilder, partition, show};

const PROSE: [&str; 4] = [
    "The committee met on Monday and agreed on the plan for",
    "the coming year, which all members had read before and",
    "which the chair had sent them in the week before that",
    "meeting took place.",
];

/// The elements, one a line: type, depth where there is one, text.
fn read(bytes: &Arc<Vec<u8>>) -> String {
    let document = partition(bytes, &PartitionOptions::default()).unwrap();
    let mut out = String::new();
    for element in &document.elements {
        let depth = element.metadata.category_depth;
        let depth = depth.map(|depth| format!(" {depth}")).unwrap_or_default();
        writeln!(out, "{}{depth}: {}", element.kind.as_str(), element.text).unwrap();
    }
    out
}

fn read_page(content: &str) -> String {
    read(&PdfBuilder::new().page(content, "").build())
}

/// Lines one below the other, 12 points apart, of 10 points.
fn lines(texts: &[&str], x: f32, mut y: f32) -> String {
    let mut out = String::new();
    for text in texts {
        out += &show('F', 10.0, x, y, text);
        y -= 12.0;
    }
    out
}

/// Text in a font without a program whose codes are the characters; each is 1 em wide.
fn unicode_page(content: &str) -> Arc<Vec<u8>> {
    let mut builder = PdfBuilder::new();
    let map = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def /CMapType 2 def \
               1 begincodespacerange <0000> <FFFF> endcodespacerange \
               1 beginbfrange <0000> <FFFF> <0000> endbfrange endcmap end end";
    let unicode = builder.object(format!("<< /Length {} >>\nstream\n{map}\nendstream", map.len()));
    let descriptor = builder.object(
        "<< /Type /FontDescriptor /FontName /Any /Flags 4 /FontBBox [0 -120 1000 880] /ItalicAngle 0 \
         /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80 >>",
    );
    let cid = builder.object(format!(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /FontDescriptor {descriptor} 0 R /DW 500 \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
    ));
    let font = builder.object(format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /ToUnicode {unicode} 0 R \
         /DescendantFonts [{cid} 0 R] >>"
    ));
    let resources = format!("/Resources << /Font << /U {font} 0 R /F 3 0 R /B 4 0 R >> >>");
    builder.page_with(content, &resources).build()
}

fn codes(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("{unit:04X}")).collect()
}

#[test]
fn words_lines_and_hyphens() {
    // Words moved apart without a space, and a word parted at the line's end.
    let content = "BT /F 10 Tf 40 500 Td [(The) -300 (society) -300 (met) -300 (in) -300 (the) -300 (new) -300 \
                   (build-)] TJ ET\n"
        .to_owned()
        + &lines(&["ing of the town, in the old", "part of the city."], 40.0, 488.0);
    assert_eq!(
        read_page(&content),
        "NarrativeText: The society met in the new building of the town, in the old part of the city.\n"
    );
}

#[test]
fn ligatures_and_presentation_forms_are_letters() {
    let content = format!(
        "BT /U 10 Tf 40 500 Td <{}> Tj ET",
        codes("the o\u{FB03}ce of \u{FB01}nance")
    );
    assert_eq!(
        read(&unicode_page(&content)),
        "UncategorizedText: the office of finance\n"
    );
}

#[test]
fn bold_faked_by_drawing_twice_and_outlined_text_come_once() {
    let content = show('F', 12.0, 40.0, 500.0, "Drawn twice over")
        + &show('F', 12.0, 40.4, 500.0, "Drawn twice over")
        + "BT 2 Tr /F 12 Tf 40 450 Td (Filled and outlined) Tj ET\n";
    assert_eq!(
        read_page(&content).matches("Drawn").count() + read_page(&content).matches("Filled").count(),
        2
    );
}

#[test]
fn right_to_left_text_is_in_logical_order_with_its_numbers() {
    // Drawn from left to right, as it is displayed: the last word first, its letters backwards.
    let visual: String = "שלום 1948 עולם".chars().rev().collect();
    let visual = visual.replace("8491", "1948");
    let content = format!("BT /U 10 Tf 40 500 Td <{}> Tj ET", codes(&visual));
    assert_eq!(read(&unicode_page(&content)), "UncategorizedText: שלום 1948 עולם\n");
}

#[test]
fn east_asian_lines_join_without_spaces() {
    let line = |y: u32, text: &str| format!("BT /U 20 Tf 40 {y} Td <{}> Tj ET\n", codes(text));
    let content = line(500, "委员会星期一开会并通过了明年的计划所有成员") + &line(474, "都事先读过这份计划。");
    assert_eq!(
        read(&unicode_page(&content)),
        "NarrativeText: 委员会星期一开会并通过了明年的计划所有成员都事先读过这份计划。\n"
    );
}

#[test]
fn turned_text_and_turned_pages() {
    let turned = "BT /F 10 Tf 0 1 -1 0 380 100 Tm (Printed along the margin) Tj ET\n";
    let found = read_page(&(lines(&PROSE, 40.0, 500.0) + turned));
    assert!(found.starts_with("NarrativeText: The committee met"), "{found}");
    assert!(
        found.ends_with("UncategorizedText: Printed along the margin\n"),
        "{found}"
    );
    // A page stored on its side and turned for display.
    let side = |text: &str, x: u32| format!("BT /F 10 Tf 0 1 -1 0 {x} 40 Tm ({text}) Tj ET\n");
    let content: String = PROSE
        .iter()
        .zip(0u32..)
        .map(|(text, n)| side(text, 100 + 12 * n))
        .collect();
    let bytes = PdfBuilder::new().page(&content, "/Rotate 90").build();
    assert_eq!(read(&bytes), format!("NarrativeText: {}\n", PROSE.join(" ")));
}

#[test]
fn raised_digits_are_no_digits_of_the_number() {
    let content = "BT /F 10 Tf 40 500 Td (About 10) Tj /F 6 Tf 4 Ts (6) Tj /F 10 Tf 0 Ts ( cells, and H) Tj \
                   /F 6 Tf -2 Ts (2) Tj /F 10 Tf 0 Ts (O as the rest.) Tj ET";
    assert_eq!(
        read_page(content),
        "NarrativeText: About 10⁶ cells, and H2O as the rest.\n"
    );
}

#[test]
fn text_given_in_place_of_what_is_drawn() {
    let content = format!(
        "BT /F 10 Tf 40 500 Td (All rights reserved ) Tj /Span << /ActualText <FEFF00A9> >> BDC [(\\(c\\))] TJ EMC \
         ( by the town) Tj ET\n{}",
        "/Span << /ActualText () >> BDC BT /F 10 Tf 40 440 Td (Kept) Tj ET EMC"
    );
    assert_eq!(
        read_page(&content),
        "UncategorizedText: All rights reserved \u{A9} by the town\nUncategorizedText: Kept\n"
    );
}

#[test]
fn values_of_form_fields_stand_where_the_fields_are() {
    let mut builder = PdfBuilder::new();
    let field = builder.object(
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /Rect [100 495 300 510] \
         /DA (/F 10 Tf) >>",
    );
    let page = show('F', 10.0, 40.0, 500.0, "Applicant:");
    let bytes = builder.page(&page, &format!("/Annots [{field} 0 R]")).build();
    let found = read(&bytes);
    assert!(found.contains("Applicant: Ada Lovelace"), "{found}");
}

#[test]
fn columns_below_a_heading_over_all_of_them() {
    let column = |x: f32, words: &str| {
        let mut out = String::new();
        for line in 0..8 {
            out += &show(
                'F',
                8.0,
                x,
                500.0 - 10.0 * line as f32,
                &format!("{words} column line {line}"),
            );
        }
        out
    };
    let heading = show('B', 18.0, 40.0, 540.0, "News of the town and its people");
    for count in 1..=4 {
        let step = 350.0 / count as f32;
        let names = ["first", "second", "third", "fourth"];
        // Drawn line by line over all columns at once would be no test; drawn in the wrong order it is.
        let mut content = String::new();
        for index in (0..count).rev() {
            content += &column(30.0 + step * index as f32, names[index]);
        }
        let found = read_page(&(heading.clone() + &content));
        let places: Vec<usize> = names
            .iter()
            .take(count)
            .map(|name| found.find(&format!("{name} column line 0")).unwrap())
            .collect();
        assert!(found.starts_with("Title 0: News of the town"), "{found}");
        assert!(places.is_sorted(), "{count} columns: {found}");
        for name in names.iter().take(count) {
            let run = format!("{name} column line 6 {name} column line 7");
            assert!(found.contains(&run), "{count} columns: {found}");
        }
    }
}

#[test]
fn headings_numbered_and_in_sizes_have_levels_and_children() {
    let content = show('B', 20.0, 40.0, 560.0, "Report of the year")
        + &show('B', 14.0, 40.0, 520.0, "1 Scope")
        + &lines(&PROSE, 40.0, 500.0)
        + &show('B', 12.0, 40.0, 430.0, "1.1 Words used")
        + &lines(&PROSE, 40.0, 410.0)
        + &show('B', 14.0, 40.0, 340.0, "2 Findings")
        + &lines(&PROSE, 40.0, 320.0);
    let prose = PROSE.join(" ");
    assert_eq!(
        read_page(&content),
        format!(
            "Title 0: Report of the year\nTitle 1: 1 Scope\nNarrativeText: {prose}\n\
             Title 2: 1.1 Words used\nNarrativeText: {prose}\nTitle 1: 2 Findings\nNarrativeText: {prose}\n"
        )
    );
}

#[test]
fn lists_have_depths_and_go_on_over_lines() {
    let content = show(
        'F',
        10.0,
        40.0,
        500.0,
        "\\225 bread from the baker, as long as there is any",
    ) + &show('F', 10.0, 48.0, 488.0, "left on that day")
        + &show('F', 10.0, 60.0, 474.0, "\\225 brown bread")
        + &show('F', 10.0, 40.0, 460.0, "\\225 milk")
        + &show('F', 10.0, 40.0, 440.0, "1. wash the pots")
        + &show('F', 10.0, 40.0, 426.0, "2. dry them");
    assert_eq!(
        read_page(&content),
        "ListItem 0: bread from the baker, as long as there is any left on that day\n\
         ListItem 1: brown bread\nListItem 0: milk\nListItem 0: 1. wash the pots\nListItem 0: 2. dry them\n"
    );
}

#[test]
fn captions_addresses_and_code() {
    let content = lines(&PROSE, 40.0, 560.0)
        + &show('F', 9.0, 40.0, 480.0, "Figure 2: Sales by year and region")
        + &show('F', 10.0, 40.0, 440.0, "Springfield, IL 62704")
        + &show('F', 10.0, 40.0, 410.0, "office@example.org")
        + "BT /C 10 Tf 40 380 Td (fn main\\(\\) {) Tj 0 -12 Td (    run\\(\\);) Tj 0 -12 Td (}) Tj ET\n";
    let mut builder = PdfBuilder::new();
    let courier = builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>");
    let bytes = builder
        .page_with(
            &content,
            &format!("/Resources << /Font << /F 3 0 R /C {courier} 0 R >> >>"),
        )
        .build();
    assert_eq!(
        read(&bytes),
        format!(
            "NarrativeText: {}\nFigureCaption: Figure 2: Sales by year and region\n\
             Address: Springfield, IL 62704\nEmailAddress: office@example.org\n\
             CodeSnippet: fn main() {{\n    run();\n}}\n",
            PROSE.join(" ")
        )
    );
}

/// A ruled grid with its left bottom corner at `(40, y)`, cells of 80 by 20.
fn grid(y: f32, rows: &[&[&str]]) -> String {
    let columns = rows[0].len();
    let (right, top) = (40.0 + 80.0 * columns as f32, y + 20.0 * rows.len() as f32);
    let mut out = String::new();
    for row in 0..=rows.len() {
        let at = y + 20.0 * row as f32;
        writeln!(out, "40 {at} m {right} {at} l S").unwrap();
    }
    for column in 0..=columns {
        let at = 40.0 + 80.0 * column as f32;
        writeln!(out, "{at} {y} m {at} {top} l S").unwrap();
    }
    for (row, cells) in rows.iter().enumerate() {
        for (column, text) in cells.iter().enumerate() {
            let (x, base) = (44.0 + 80.0 * column as f32, top - 20.0 * row as f32 - 14.0);
            out += &show('F', 10.0, x, base, text);
        }
    }
    out
}

fn tables(bytes: &Arc<Vec<u8>>) -> Vec<String> {
    let options = PartitionOptions {
        infer_table_structure: true,
        ..PartitionOptions::default()
    };
    let document = partition(bytes, &options).unwrap();
    let html = document.elements.iter().map(|e| e.metadata.text_as_html.clone());
    html.flatten().collect()
}

#[test]
fn a_ruled_table_goes_on_over_the_page() {
    let first = grid(20.0, &[&["Town", "Year"], &["Bern", "1191"]]);
    let second = grid(520.0, &[&["Town", "Year"], &["Rome", "753"]]);
    let bytes = PdfBuilder::new().page(&first, "").page(&second, "").build();
    let found = tables(&bytes);
    assert_eq!(found.len(), 1, "{found:?}");
    for text in ["Bern", "1191", "Rome", "753"] {
        assert_eq!(found[0].matches(text).count(), 1);
    }
    assert_eq!(found[0].matches("Town").count(), 1, "{found:?}");
}

#[test]
fn a_table_on_a_turned_page_reads_as_displayed() {
    let upright = grid(300.0, &[&["Town", "Year"], &["Bern", "1191"]]);
    let expected = tables(&PdfBuilder::new().page(&upright, "").build());
    assert_eq!(expected.len(), 1);
    let turned = format!("q 0 1 -1 0 400 0 cm {upright} Q");
    let bytes = PdfBuilder::new().page(&turned, "/Rotate 90").build();
    assert_eq!(tables(&bytes), expected);
}

#[test]
fn two_columns_of_prose_are_no_table() {
    let column = |x: f32| {
        let mut out = String::new();
        for line in 0..12 {
            out += &show(
                'F',
                8.0,
                x,
                500.0 - 10.0 * line as f32,
                "words that go on from line to line",
            );
        }
        out
    };
    let bytes = PdfBuilder::new().page(&(column(30.0) + &column(220.0)), "").build();
    assert!(tables(&bytes).is_empty());
}

#[test]
fn a_figure_has_the_words_of_the_structure_tree() {
    let mut builder = PdfBuilder::new();
    let picture = builder.object(
        "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray \
         /Length 1 >>\nstream\n0\nendstream",
    );
    assert_eq!(picture, 5);
    let content = lines(&PROSE, 40.0, 560.0) + "/Figure << /MCID 0 >> BDC q 200 0 0 100 40 300 cm /I Do Q EMC";
    let builder = builder.page(&content, "/StructParents 0");
    let mut builder = builder;
    // The next objects are the figure and its root.
    let figure = builder.object("<< /S /Figure /P 9 0 R /K 0 /Alt (Sales rose from year to year) >>");
    let root = builder.object(format!(
        "<< /Type /StructTreeRoot /K [{figure} 0 R] /ParentTree << /Nums [0 [{figure} 0 R]] >> >>"
    ));
    let found = read(&builder.catalog(&format!("/StructTreeRoot {root} 0 R")).build());
    assert!(found.ends_with("Image: Sales rose from year to year\n"), "{found}");
}

#[test]
fn parents_are_the_headings_above() {
    let content = show('B', 20.0, 40.0, 560.0, "Report of the year")
        + &show('B', 14.0, 40.0, 520.0, "Scope")
        + &lines(&PROSE, 40.0, 500.0)
        + &lines(&["\\225 an item of the list", "\\225 another of them"], 40.0, 430.0);
    let document = crate::partition(
        &crate::Input {
            bytes: PdfBuilder::new().page(&content, "").build(),
            filename: Some("a.pdf".into()),
            content_type: None,
        },
        &PartitionOptions::default(),
        &docmill_model::limits::ParseLimits::default(),
        &mut |_| {},
    )
    .unwrap();
    let ids: Vec<_> = document.elements.iter().map(|e| e.element_id.clone()).collect();
    let parents: Vec<_> = document.elements.iter().map(|e| e.metadata.parent_id.clone()).collect();
    assert_eq!(parents[0], None);
    assert_eq!(parents[1].as_ref(), Some(&ids[0]));
    for parent in &parents[2..] {
        assert_eq!(parent.as_ref(), Some(&ids[1]));
    }
}
