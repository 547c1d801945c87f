//! The reader as a whole, and its layout on made-up characters.

use std::sync::Arc;

use docmill_model::WarningCode;
use docmill_model::settings::PartitionOptions;
use proptest::prelude::*;

use super::block::blocks;
use super::engine::{Direction, Font, Glyph, PageContent, Rule};
use super::grid::ruled_tables;
use super::order::read_order;
use super::segment::segments;
use super::testing::{PdfBuilder, outline, partition, show, typeset};
use crate::error::PartitionError;

const PROSE: &str = "The committee met on Monday and agreed on the plan for";

/// Lines of prose from `y` downwards, y pointing up.
fn prose(x: f32, mut y: f32, lines: usize) -> String {
    let mut out = String::new();
    for _ in 0..lines {
        out += &show('F', 10.0, x, y, PROSE);
        y -= 12.0;
    }
    out
}

fn simple() -> Arc<Vec<u8>> {
    let content = show('B', 20.0, 40.0, 540.0, "Annual report")
        + &prose(40.0, 500.0, 3)
        + &show('F', 10.0, 40.0, 464.0, "the coming year.")
        + &show(
            'F',
            10.0,
            40.0,
            430.0,
            "\\225 a first point that is long enough to need another",
        )
        + &show('F', 10.0, 48.0, 418.0, "line below it")
        + &show('F', 10.0, 40.0, 404.0, "\\225 a second point");
    PdfBuilder::new().page(&content, "").build()
}

#[test]
fn a_file_of_several_pages_without_text_says_so() {
    let input = crate::Input {
        bytes: PdfBuilder::new().page("", "").page("", "").build(),
        filename: None,
        content_type: None,
    };
    let limits = docmill_model::limits::ParseLimits::default();
    let document = crate::partition(&input, &PartitionOptions::default(), &limits, &mut |_| {}).unwrap();
    let codes: Vec<WarningCode> = document.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!((document.elements.len(), codes), (0, vec![WarningCode::NoElements]));
}

#[test]
fn headings_paragraphs_and_lists_are_told_apart() {
    let document = partition(&simple(), &PartitionOptions::default()).unwrap();
    let found = outline(&document);
    assert_eq!(found[0], ("Title", "Annual report"));
    assert_eq!(document.elements[0].metadata.category_depth, Some(0));
    assert_eq!(found[1].0, "NarrativeText");
    assert!(found[1].1.ends_with("agreed on the plan for the coming year."));
    assert_eq!(
        found[2],
        (
            "ListItem",
            "a first point that is long enough to need another line below it"
        )
    );
    assert_eq!(found[3], ("ListItem", "a second point"));
    assert_eq!(found.len(), 4);
}

#[test]
fn coordinates_are_those_of_the_displayed_page() {
    let text = show('F', 10.0, 140.0, 560.0, "Here");
    let bbox = |extra: &str| {
        let document = partition(
            &PdfBuilder::new().page(&text, extra).build(),
            &PartitionOptions::default(),
        )
        .unwrap();
        let coordinates = document.elements[0].metadata.coordinates.clone().unwrap();
        (coordinates.bbox(), coordinates.layout_width, coordinates.layout_height)
    };
    let ([x0, y0, _, y1], width, height) = bbox("");
    assert_eq!((width, height), (400.0, 600.0));
    assert!((x0 - 140.0).abs() < 0.1 && y0 < 40.0 && 40.0 < y1);

    // A crop box moves the origin.
    let ([x0, _, _, y1], width, height) = bbox("/CropBox [100 100 400 590]");
    assert_eq!((width, height), (300.0, 490.0));
    assert!((x0 - 40.0).abs() < 0.1 && (30.0..33.0).contains(&y1));

    // Turned by 90 degrees clockwise, the text runs downwards near the right edge.
    let ([x0, y0, x1, y1], width, height) = bbox("/Rotate 90");
    assert_eq!((width, height), (600.0, 400.0));
    assert!(x0 > 550.0 && x1 < 570.0 && (y0 - 140.0).abs() < 0.1 && y1 > y0 + 15.0);
}

#[test]
fn repeated_lines_and_page_numbers_are_furniture() {
    let mut builder = PdfBuilder::new();
    for page in 1..=3 {
        let content = show('F', 9.0, 40.0, 570.0, "Report of the committee")
            + &prose(40.0, 500.0, 4)
            + &show('F', 9.0, 190.0, 20.0, &page.to_string());
        builder = builder.page(&content, "");
    }
    let options = PartitionOptions {
        include_page_breaks: true,
        starting_page_number: 7,
        ..Default::default()
    };
    let document = partition(&builder.build(), &options).unwrap();
    let kinds: Vec<&str> = outline(&document).iter().map(|(kind, _)| *kind).collect();
    let page = ["Header", "NarrativeText", "PageNumber"];
    assert_eq!(
        kinds,
        [&page[..], &["PageBreak"], &page, &["PageBreak"], &page].concat()
    );
    assert_eq!(document.elements[0].metadata.page_number, Some(7));
    assert_eq!(document.elements.last().unwrap().metadata.page_number, Some(9));
    assert_eq!(document.pages.len(), 3);
}

#[test]
fn position_alone_makes_no_header() {
    let content = show('F', 10.0, 40.0, 580.0, "A line at the very top.") + &prose(40.0, 300.0, 3);
    let document = partition(
        &PdfBuilder::new().page(&content, "").build(),
        &PartitionOptions::default(),
    )
    .unwrap();
    assert_ne!(outline(&document)[0].0, "Header");
}

#[test]
fn faults_have_their_errors() {
    let options = PartitionOptions::default();
    let error = |bytes: &[u8]| partition(&Arc::new(bytes.to_vec()), &options).unwrap_err();
    assert_eq!(error(b""), PartitionError::Empty("PDF"));
    assert!(matches!(
        error(b"%PDF-1.4 nothing at all"),
        PartitionError::Corrupt { format: "PDF", .. }
    ));
}

#[test]
fn a_password_is_asked_for_and_checked() {
    let mut builder = PdfBuilder::new();
    let zeros = "00".repeat(32);
    let encrypt = builder.object(format!(
        "<< /Filter /Standard /V 1 /R 2 /P -4 /O <{zeros}> /U <{zeros}> >>"
    ));
    let bytes = builder
        .page("", "")
        .trailer(&format!("/Encrypt {encrypt} 0 R /ID [<00><00>]"))
        .build();
    let with = |password: Option<&str>| {
        let options = PartitionOptions {
            password: password.map(str::to_owned),
            ..Default::default()
        };
        partition(&bytes, &options).unwrap_err()
    };
    assert_eq!(with(None), PartitionError::Encrypted("PDF"));
    assert_eq!(with(Some("guess")), PartitionError::WrongPassword("PDF"));
}

#[test]
fn a_lost_cross_reference_table_is_rebuilt() {
    let bytes = simple();
    let end = bytes.windows(4).rposition(|window| window == b"xref").unwrap() - 5;
    let cut = Arc::new(bytes[..end].to_vec());
    let document = partition(&cut, &PartitionOptions::default()).unwrap();
    assert_eq!(outline(&document)[0], ("Title", "Annual report"));
}

#[test]
fn pictures_without_text_ask_for_recognition() {
    let mut builder = PdfBuilder::new();
    let image = "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray \
                 /BitsPerComponent 8 /Length 1 >>\nstream\nx\nendstream";
    assert_eq!(builder.object(image), 5);
    let bytes = builder
        .page("q 400 0 0 600 0 0 cm /I Do Q", "")
        .page(&prose(40.0, 500.0, 2), "")
        .build();
    let document = partition(&bytes, &PartitionOptions::default()).unwrap();
    let warnings: Vec<_> = document.warnings.iter().map(|w| (w.code, w.page_number)).collect();
    assert_eq!(warnings, [(WarningCode::OcrNotDone, Some(1))]);
    assert_eq!(document.elements.last().unwrap().metadata.page_number, Some(2));
}

#[test]
fn an_unreadable_page_is_skipped_with_a_warning() {
    let mut builder = PdfBuilder::new();
    let broken = builder.object("<< /Length 4 /Filter /FlateDecode >>\nstream\nabcd\nendstream");
    let bytes = builder
        .page_of(&format!("{broken} 0 R"), "")
        .page(&prose(40.0, 500.0, 2), "")
        .build();
    let document = partition(&bytes, &PartitionOptions::default()).unwrap();
    assert_eq!(document.warnings[0].code, WarningCode::PartUnreadable);
    assert_eq!(document.warnings[0].page_number, Some(1));
    assert_eq!(document.pages.len(), 2);
    assert!(document.elements.last().unwrap().text.starts_with("The committee"));
}

#[test]
fn links_know_their_place_in_the_text() {
    let content = show('F', 10.0, 40.0, 500.0, "See the manual for details on this.");
    // Helvetica: "See the " is 37.8 points wide at size 10, "manual" 33.9.
    let link = "/Annots [<< /Type /Annot /Subtype /Link /Rect [77 497 111 508] \
                /A << /S /URI /URI (https://example.org/m) >> >>]";
    let document = partition(
        &PdfBuilder::new().page(&content, link).build(),
        &PartitionOptions::default(),
    )
    .unwrap();
    let links = &document.elements[0].metadata.links;
    assert_eq!(links.len(), 1);
    assert_eq!((links[0].text.as_str(), links[0].start_index), ("manual", 8));
    assert_eq!(links[0].url, "https://example.org/m");
}

#[test]
fn a_link_over_two_lines_covers_its_words_alone() {
    let content = show('F', 10.0, 40.0, 500.0, "The words before the long")
        + &show('F', 10.0, 40.0, 488.0, "name are no part of it.");
    // "The words before the " is 97.8 points wide at size 10, "name" 25.
    let link = "/Annots [<< /Type /Annot /Subtype /Link /Rect [40 486 160 508] \
                /QuadPoints [137 508 160 508 137 498 160 498 40 496 66 496 40 486 66 486] \
                /A << /S /URI /URI (https://example.org/n) >> >>]";
    let document = partition(
        &PdfBuilder::new().page(&content, link).build(),
        &PartitionOptions::default(),
    )
    .unwrap();
    let links = &document.elements[0].metadata.links;
    assert_eq!(links.len(), 1);
    assert_eq!((links[0].text.as_str(), links[0].start_index), ("long name", 21));
}

#[test]
fn ruled_tables_keep_spans_and_order() {
    let mut content = String::new();
    for y in [500, 480, 460, 440] {
        content += &format!("40 {y} m 240 {y} l S\n");
    }
    content += "40 500 m 40 440 l S 140 480 m 140 440 l S 240 500 m 240 440 l S\n";
    for (x, y, text) in [
        (50, 486, "Both"),
        (50, 466, "a"),
        (150, 466, "b"),
        (50, 446, "c"),
        (150, 446, "d"),
    ] {
        content += &show('F', 10.0, x as f32, y as f32, text);
    }
    let options = PartitionOptions {
        infer_table_structure: true,
        ..Default::default()
    };
    let document = partition(&PdfBuilder::new().page(&content, "").build(), &options).unwrap();
    assert_eq!(outline(&document), [("Table", "Both a b c d")]);
    let metadata = &document.elements[0].metadata;
    assert_eq!(
        metadata.text_as_html.as_deref(),
        Some(
            "<table><tbody><tr><td colspan=\"2\">Both</td></tr><tr><td>a</td><td>b</td></tr>\
             <tr><td>c</td><td>d</td></tr></tbody></table>"
        )
    );
    assert_eq!(metadata.table_extraction_method.as_deref(), Some("grid"));
}

fn texts(content: &PageContent) -> Vec<String> {
    let segments = segments(content, &[Font::default()], Direction::East);
    let regions = read_order(segments).into_iter();
    regions
        .flat_map(|region| blocks(region, &[]))
        .map(|block| block.text)
        .collect()
}

#[test]
fn columns_are_read_one_after_the_other() {
    let left = "left column words that fill a line";
    let right = "right column words of another line";
    let mut lines = vec![(100.0, 60.0, 18.0, "A title across the whole page")];
    for row in 0..6 {
        lines.push((50.0, 100.0 + 12.0 * row as f32, 10.0, left));
        lines.push((300.0, 103.0 + 12.0 * row as f32, 10.0, right));
    }
    let texts = texts(&typeset(&lines));
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].starts_with("A title"));
    assert!(texts[1].starts_with("left") && !texts[1].contains("right"));
    assert!(texts[2].starts_with("right"));
}

#[test]
fn rows_of_short_texts_are_a_table() {
    let mut lines = Vec::new();
    for (row, name) in ["North", "South", "East", "West"].into_iter().enumerate() {
        let y = 100.0 + 15.0 * row as f32;
        lines.extend([(50.0, y, 10.0, name), (150.0, y, 10.0, "12.5"), (250.0, y, 10.0, "99")]);
    }
    let segments = segments(&typeset(&lines), &[Font::default()], Direction::East);
    let regions = read_order(segments);
    assert_eq!(regions.len(), 1);
    let blocks = blocks(regions.into_iter().next().unwrap(), &[]);
    let table = blocks[0].table.as_ref().unwrap();
    assert_eq!((table.rows, table.columns), (4, 3));
    assert_eq!(table.text(), "North 12.5 99 South 12.5 99 East 12.5 99 West 12.5 99");
}

#[test]
fn text_drawn_twice_comes_once() {
    let mut content = typeset(&[(50.0, 100.0, 10.0, "Bold words")]);
    let again: Vec<Glyph> = content
        .glyphs
        .iter()
        .map(|glyph| Glyph {
            tag: 0,
            x: glyph.x + 0.4,
            ..*glyph
        })
        .collect();
    content.glyphs.extend(again);
    assert_eq!(texts(&content), ["Bold words"]);
}

#[test]
fn spaced_out_text_has_no_spaces_within_words() {
    let mut content = typeset(&[(50.0, 100.0, 10.0, "HEADING")]);
    for (index, glyph) in content.glyphs.iter_mut().enumerate() {
        glyph.x += 3.0 * index as f32;
    }
    assert_eq!(texts(&content), ["HEADING"]);
}

#[test]
fn an_initial_joins_its_line() {
    let lines = [
        (50.0, 124.0, 36.0, "O"),
        (70.0, 100.0, 10.0, "ver the past years much has changed in the"),
        (70.0, 112.0, 10.0, "ways of the world and nobody knows why it"),
        (70.0, 124.0, 10.0, "did so at all."),
    ];
    assert!(texts(&typeset(&lines))[0].starts_with("Over the past"));
}

/// Distinct characters: ideographs, which stay as they are.
fn glyphs() -> impl Strategy<Value = Vec<Glyph>> {
    let place = (-50.0f32..700.0, -50.0f32..900.0, 0.0f32..40.0, 0.1f32..60.0, 0usize..5);
    prop::collection::vec(place, 0..200).prop_map(|places| {
        let all = [
            Direction::East,
            Direction::South,
            Direction::West,
            Direction::North,
            Direction::Oblique,
        ];
        places
            .into_iter()
            .enumerate()
            .map(|(index, (x, y, advance, size, direction))| Glyph {
                tag: 0,
                ch: char::from_u32(0x4E00 + index as u32).unwrap(),
                x,
                y,
                advance,
                size,
                font: (index % 3) as u16,
                direction: all[direction],
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn every_character_comes_out_once(glyphs in glyphs(), rules in prop::collection::vec((0.0f32..600.0, 0.0f32..800.0, 0.0f32..300.0, any::<bool>()), 0..40)) {
        let mut expected: Vec<char> = glyphs.iter().map(|glyph| glyph.ch).collect();
        let rules = rules
            .into_iter()
            .map(|(x, y, length, flat)| {
                let (dx, dy) = if flat { (length, 0.0) } else { (0.0, length) };
                Rule { x0: x, y0: y, x1: x + dx, y1: y + dy }
            })
            .collect();
        let content = PageContent { width: 600.0, height: 800.0, glyphs, rules, ..Default::default() };
        let mut found = Vec::new();
        for direction in [Direction::East, Direction::South, Direction::West, Direction::North, Direction::Oblique] {
            let mut segments = segments(&content, &[], direction);
            for table in ruled_tables(&content.rules, &mut segments, &mut Vec::new()) {
                found.extend(table.text().chars().filter(|ch| *ch != ' ').collect::<Vec<_>>());
            }
            for region in read_order(segments) {
                for block in blocks(region, &[]) {
                    found.extend(block.text.chars().filter(|ch| *ch != ' '));
                }
            }
        }
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn extreme_numbers_do_no_harm(values in prop::collection::vec((any::<f32>(), any::<f32>(), any::<f32>(), any::<f32>()), 0..50)) {
        let glyphs = values
            .into_iter()
            .map(|(x, y, advance, size)| Glyph { ch: 'x', x, y, advance, size, font: 9, direction: Direction::East, tag: 0 })
            .collect();
        let content = PageContent { width: 600.0, height: 800.0, glyphs, ..Default::default() };
        for region in read_order(segments(&content, &[], Direction::East)) {
            blocks(region, &[]);
        }
    }
}
