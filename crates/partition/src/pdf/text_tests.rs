//! Paragraphs, headings, lists and code, on small files and made-up characters.

use std::sync::Arc;

use docmill_model::settings::PartitionOptions;

use super::block::blocks;
use super::engine::{Direction, Font, PageContent, PageSource};
use super::hayro::{HayroSource, open};
use super::segment::segments;
use super::testing::{PdfBuilder, outline, partition, show, typeset};

const PROSE: &str = "The committee met on Monday and agreed on the plan for";

fn lines_of(texts: &[&str], x: f32, mut y: f32) -> String {
    let mut out = String::new();
    for text in texts {
        out += &show('F', 10.0, x, y, text);
        y -= 12.0;
    }
    out
}

fn elements(bytes: &Arc<Vec<u8>>) -> Vec<(String, String)> {
    let document = partition(bytes, &PartitionOptions::default()).unwrap();
    let found = outline(&document).into_iter();
    found.map(|(kind, text)| (kind.to_owned(), text.to_owned())).collect()
}

fn texts(page: &PageContent, fonts: &[Font]) -> Vec<String> {
    let blocks = blocks(segments(page, fonts, Direction::East), &[]);
    blocks.into_iter().map(|block| block.text).collect()
}

#[test]
fn a_paragraph_runs_over_the_page_break() {
    let first = lines_of(&[PROSE, PROSE, "the coming year, which would"], 40.0, 400.0);
    let second = lines_of(
        &[
            "be harder than any before. Nobody knew what it would",
            "bring to the town.",
        ],
        40.0,
        500.0,
    );
    let found = elements(&PdfBuilder::new().page(&first, "").page(&second, "").build());
    assert_eq!(
        found.iter().filter(|(kind, _)| kind == "NarrativeText").count(),
        1,
        "{found:?}"
    );
    assert!(found[0].1.contains("which would be harder"));
    // A new sentence is a new paragraph.
    let second = lines_of(
        &["Harder than any before it was the year that followed,", "by far."],
        40.0,
        500.0,
    );
    let found = elements(&PdfBuilder::new().page(&first, "").page(&second, "").build());
    assert_eq!(found.iter().filter(|(kind, _)| kind == "NarrativeText").count(), 2);
}

#[test]
fn small_letters_and_labels_begin_no_heading() {
    let large = |text: &str, rest: &str| {
        let content = show('F', 12.0, 40.0, 400.0, text) + &lines_of(&[rest, PROSE, PROSE, PROSE], 40.0, 370.0);
        elements(&PdfBuilder::new().page(&content, "").build())[0].0.clone()
    };
    assert_eq!(large("Of the river", PROSE), "Title");
    assert_ne!(large("of the river", PROSE), "Title");
    // Between two paragraphs, with room around, they do.
    let between = |above: &str, y: f32| {
        let content = lines_of(&[PROSE, PROSE, above], 40.0, 500.0)
            + &show('B', 12.0, 40.0, y, "lighthouses")
            + &lines_of(&[PROSE, PROSE, PROSE], 40.0, 400.0);
        let found = elements(&PdfBuilder::new().page(&content, "").build());
        found
            .iter()
            .any(|(kind, text)| kind == "Title" && text == "lighthouses")
    };
    assert!(between("It ends here.", 435.0));
    assert!(!between("It does not end with", 435.0));
    let label =
        show('B', 10.0, 40.0, 400.0, "Published in the year 1990 by:") + &lines_of(&[PROSE, PROSE, PROSE], 40.0, 380.0);
    assert_ne!(elements(&PdfBuilder::new().page(&label, "").build())[0].0, "Title");
}

#[test]
fn a_number_above_a_heading_is_one_too() {
    let content = show('B', 18.0, 40.0, 500.0, "2")
        + &show('B', 18.0, 40.0, 460.0, "The lost land")
        + &lines_of(&[PROSE, PROSE, PROSE], 40.0, 420.0);
    let found = elements(&PdfBuilder::new().page(&content, "").build());
    assert_eq!(found[0], ("Title".to_owned(), "2".to_owned()));
    assert_eq!(found[1].0, "Title");
}

#[test]
fn a_large_numeral_with_a_dot_is_no_page_number() {
    let content = show('B', 14.0, 40.0, 580.0, "III.") + &lines_of(&[PROSE, PROSE, PROSE], 40.0, 550.0);
    assert_eq!(elements(&PdfBuilder::new().page(&content, "").build())[0].0, "Title");
}

#[test]
fn code_keeps_its_lines() {
    let page = typeset(&[
        (50.0, 100.0, 10.0, "fn add(a) {"),
        (70.0, 112.0, 10.0, "a + 1"),
        (50.0, 124.0, 10.0, "}"),
        (50.0, 148.0, 10.0, "add(2)"),
    ]);
    let mut words = page.clone();
    for glyph in &mut words.glyphs {
        glyph.y += 100.0;
        glyph.font = 1;
    }
    for y in [250.0, 262.0] {
        for mut glyph in typeset(&[(50.0, y, 10.0, PROSE)]).glyphs {
            glyph.font = 1;
            words.glyphs.push(glyph);
        }
    }
    let mut all = page;
    all.glyphs
        .extend(words.glyphs.into_iter().filter(|glyph| glyph.y > 240.0));
    let fonts = [
        Font {
            monospace: true,
            ..Font::default()
        },
        Font::default(),
    ];
    let blocks = blocks(segments(&all, &fonts, Direction::East), &[]);
    assert_eq!(blocks[0].code, "fn add(a) {\n    a + 1\n}\n\nadd(2)");
}

#[test]
fn items_go_on_where_their_text_is_set_in() {
    let page = typeset(&[
        (50.0, 100.0, 10.0, "• Timely work."),
        (
            60.0,
            112.0,
            10.0,
            "It was said before that it takes long and that nobody knows",
        ),
        (50.0, 130.0, 10.0, "• Another point"),
    ]);
    assert_eq!(texts(&page, &[]).len(), 2);
    // Only the first line is set in; the others are full.
    let page = typeset(&[
        (
            60.0,
            100.0,
            10.0,
            "• Mail: The department of transport and of all other things",
        ),
        (
            50.0,
            112.0,
            10.0,
            "Room 12, Main Street, where it is open in the morning of each",
        ),
        (50.0, 124.0, 10.0, "working day."),
    ]);
    assert_eq!(texts(&page, &[]).len(), 1);
}

#[test]
fn lines_of_boxes_to_tick_stand_alone() {
    let page = typeset(&[
        (
            50.0,
            100.0,
            10.0,
            "Was it needed in the last year to state the figures again",
        ),
        (50.0, 112.0, 10.0, "□ yes √ no"),
        (50.0, 124.0, 10.0, "The reasons have to be given below"),
    ]);
    assert_eq!(texts(&page, &[]).len(), 3);
}

#[test]
fn narrow_spaces_show_between_letters_set_side_by_side() {
    let mut page = typeset(&[(50.0, 100.0, 10.0, "Thesetofdataforit")]);
    for (index, glyph) in page.glyphs.iter_mut().enumerate() {
        let spaces = [3, 6, 8, 12, 15].iter().filter(|&&at| index >= at).count();
        glyph.x += 1.3 * spaces as f32;
    }
    assert_eq!(texts(&page, &[]), ["The set of data for it"]);
}

/// One page with two pieces of marked content and a tree that says what they are.
fn tagged(first: &str, second: &str, parents: bool) -> Arc<Vec<u8>> {
    let content = format!(
        "/Span << /MCID 0 >> BDC {} EMC /Span << /MCID 1 >> BDC {} EMC {}",
        show('F', 10.0, 40.0, 400.0, "On the state of things"),
        lines_of(&[PROSE, PROSE, PROSE], 40.0, 370.0),
        "/Artifact BMC ".to_owned() + &show('F', 10.0, 40.0, 590.0, "Draft of the report") + " EMC",
    );
    let mut builder = PdfBuilder::new().page(&content, "/StructParents 3");
    // The page is object 6; the elements are 7 and 8, their parent 9.
    let one = builder.object(format!("<< /S /{first} /P 9 0 R /Pg 6 0 R /K 0 >>"));
    let two = builder.object(format!("<< /S /{second} /P 9 0 R /Pg 6 0 R /K [1] >>"));
    let parents = if parents {
        format!("/ParentTree << /Kids [<< /Limits [3 3] /Nums [3 [{one} 0 R {two} 0 R]] >>] >>")
    } else {
        String::new()
    };
    let root = builder.object(format!(
        "<< /Type /StructTreeRoot /K [{one} 0 R {two} 0 R] {parents} /RoleMap << /Chapter /H2 /Text /P >> >>"
    ));
    builder.catalog(&format!("/StructTreeRoot {root} 0 R")).build()
}

#[test]
fn the_structure_tree_names_headings_and_running_heads() {
    for parents in [true, false] {
        let document = partition(&tagged("Chapter", "Text", parents), &PartitionOptions::default()).unwrap();
        let found = outline(&document);
        assert_eq!(found[0], ("Header", "Draft of the report"));
        assert_eq!(found[1], ("Title", "On the state of things"));
        assert_eq!(document.elements[1].metadata.category_depth, Some(1));
        assert_eq!(found[2].0, "NarrativeText");
    }
    let found = elements(&tagged("LI", "P", true));
    assert_eq!(found[1].0, "ListItem");
}

#[test]
fn a_structure_tree_that_runs_in_circles_ends() {
    let content = format!("/P << /MCID 0 >> BDC {} EMC", lines_of(&[PROSE], 40.0, 400.0));
    let mut builder = PdfBuilder::new().page(&content, "/StructParents 0");
    // Object 7 is the root, object 8 its own parent and the parent tree its own kid.
    let root = builder.object("<< /Type /StructTreeRoot /ParentTree 9 0 R >>");
    builder.object("<< /S /Span /P 8 0 R /K 0 >>");
    builder.object("<< /Kids [9 0 R 9 0 R] /Nums [0 [8 0 R null 7]] >>");
    let bytes = builder.catalog(&format!("/StructTreeRoot {root} 0 R")).build();
    assert_eq!(elements(&bytes).len(), 1);
}

/// Objects of a vertical font without a program whose codes are the characters; the number of the last.
fn vertical_font(builder: &mut PdfBuilder) -> usize {
    let map = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /T def /CMapType 2 def \
               1 begincodespacerange <0000> <FFFF> endcodespacerange \
               1 beginbfrange <0000> <FFFF> <0000> endbfrange endcmap end end";
    let unicode = builder.object(format!("<< /Length {} >>\nstream\n{map}\nendstream", map.len()));
    let descriptor = builder.object(
        "<< /Type /FontDescriptor /FontName /Mincho /Flags 4 /FontBBox [0 -120 1000 880] /ItalicAngle 0 \
         /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80 >>",
    );
    let cid = builder.object(format!(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Mincho /FontDescriptor {descriptor} 0 R /DW 1000 \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
    ));
    builder.object(format!(
        "<< /Type /Font /Subtype /Type0 /BaseFont /Mincho /Encoding /Identity-V /ToUnicode {unicode} 0 R \
         /DescendantFonts [{cid} 0 R] >>"
    ))
}

#[test]
fn vertical_lines_are_read_from_right_to_left() {
    let mut builder = PdfBuilder::new();
    let font = vertical_font(&mut builder);
    let code = |text: &str| {
        text.encode_utf16()
            .map(|unit| format!("{unit:04X}"))
            .collect::<String>()
    };
    let line = |x: f32, text: &str| format!("BT /V 20 Tf {x} 500 Td <{}> Tj ET\n", code(text));
    // Latin letters within a line lie on their side, from where the characters above them end.
    let content = line(300.0, "吾輩は猫である")
        + &line(270.0, "名前は")
        + "BT /F 20 Tf 0 -1 1 0 263 440 Tm (PDF) Tj ET\n"
        + &format!("BT /V 20 Tf 270 400 Td <{}> Tj ET\n", code("と言う"));
    let bytes = builder
        .page_with(
            &content,
            &format!("/Resources << /Font << /V {font} 0 R /F 3 0 R >> >>"),
        )
        .build();
    let found: Vec<String> = elements(&bytes).into_iter().map(|(_, text)| text).collect();
    assert_eq!(found.join("|"), "吾輩は猫である名前はPDFと言う");
}

#[test]
fn files_with_fonts_without_end_are_read_to_the_end() {
    let mut file = PdfBuilder::new();
    for page in 0..150 {
        let bold = if page % 2 == 0 { "-Bold" } else { "" };
        let font = file.object(format!(
            "<< /Type /Font /Subtype /Type1 /BaseFont /Courier{bold} /Encoding /WinAnsiEncoding /Number {page} >>"
        ));
        let content = show('F', 10.0, 40.0, 300.0, &format!("Words of page {page}."));
        file = file.page_with(&content, &format!("/Resources << /Font << /F {font} 0 R >> >>"));
    }
    let pdf = open(&file.build(), None).unwrap().pdf;
    let mut source = HayroSource::new(&pdf);
    for page in 0..150 {
        let content = source.read_page(page).unwrap();
        let text: String = content.glyphs.iter().map(|glyph| glyph.ch).collect();
        assert_eq!(text, format!("Words of page {page}."));
        let font = &source.fonts()[usize::from(content.glyphs[0].font)];
        assert_eq!((font.bold, font.monospace), (page % 2 == 0, true));
    }
    // The one nothing is known of, and the two there are.
    assert_eq!(source.fonts().len(), 3);
}
