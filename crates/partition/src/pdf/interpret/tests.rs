//! Content streams on small files.

use super::super::engine::PageContent;
use super::super::engine::PageSource;
use super::super::hayro::{HayroSource, open};
use super::super::testing::{PdfBuilder, show};

/// The first page of a file.
fn read(file: PdfBuilder) -> PageContent {
    let pdf = open(&file.build(), None).unwrap().pdf;
    HayroSource::new(&pdf).read_page(0).unwrap()
}

fn text(content: &PageContent) -> String {
    content.glyphs.iter().map(|glyph| glyph.ch).collect()
}

fn stream(dict: &str, content: &str) -> String {
    format!("<< {dict} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A file whose `/I` is a form.
fn with_form(entries: &str, form: &str) -> PdfBuilder {
    let mut file = PdfBuilder::new();
    let entries = format!("/Type /XObject /Subtype /Form /BBox [0 0 400 600] {entries}");
    assert_eq!(file.object(stream(&entries, form)), 5);
    file
}

const FONTS: &str = "/Resources << /Font << /F 3 0 R /B 4 0 R >> >>";

#[test]
fn spaces_and_scaling_move_text_on() {
    let content = "BT /F 10 Tf 1 0 0 1 50 500 Tm 2 Tc 5 Tw (a b) Tj ET \
                   BT /F 10 Tf 50 Tz 50 400 Td (mm) Tj ET \
                   BT /F 10 Tf 100 Tz 0 Tc 0 Tw 50 300 Td [(m) -1000 (m)] TJ 4 Ts (x) Tj ET";
    let page = read(PdfBuilder::new().page(content, ""));
    assert_eq!(text(&page), "a bmmmmx");
    let x: Vec<f32> = page.glyphs.iter().map(|glyph| glyph.x).collect();
    // Helvetica: a 556, space 278, m 833 thousandths.
    let expected = [50.0, 57.56, 67.34, 50.0, 55.165, 50.0, 68.33, 76.66];
    for (x, expected) in x.iter().zip(expected) {
        assert!((x - expected).abs() < 0.01, "{x} is not {expected}");
    }
    // What is squeezed is as high as before, and half as wide.
    assert_eq!(page.glyphs[3].size, 10.0);
    assert!((page.glyphs[3].advance - 4.165).abs() < 0.01);
    assert_eq!((page.glyphs[6].y, page.glyphs[7].y), (300.0, 296.0));
}

#[test]
fn strings_with_escapes_are_shown_like_plain_ones() {
    let shown =
        |array: &str| read(PdfBuilder::new().page(&format!("BT /F 10 Tf 50 500 Td [{array}] TJ ET"), "")).glyphs;
    let plain = shown("(f(x)) -250 (y) 80.5 (z)");
    assert_eq!(plain.len(), 6);
    assert_eq!(shown("(f\\(x\\)) -250 <79> 80.5 (\\172)"), plain);
    assert_eq!(shown("/odd (f(x)) -250 (y) 80.5 (z)"), plain);
}

#[test]
fn lines_go_on_below_each_other() {
    let content = "BT /F 10 Tf 12 TL 50 500 Td (a) Tj T* (b) Tj (c) ' 0 0 (d) \" 0 -20 TD (e) Tj T* (f) Tj ET";
    let page = read(PdfBuilder::new().page(content, ""));
    let y: Vec<f32> = page.glyphs.iter().map(|glyph| glyph.y).collect();
    assert_eq!(y, [100.0, 112.0, 124.0, 136.0, 156.0, 176.0]);
    assert!(page.glyphs.iter().all(|glyph| glyph.x == 50.0));
}

#[test]
fn forms_stand_where_their_matrix_puts_them_and_leave_no_state() {
    let form = show('F', 10.0, 10.0, 20.0, "form") + "1 g q q";
    let content = "q 2 0 0 2 100 100 cm /I Do Q ".to_owned() + &show('B', 10.0, 50.0, 500.0, "page");
    let page = read(with_form(&format!("/Matrix [1 0 0 1 5 0] {FONTS}"), &form).page(&content, ""));
    assert_eq!(text(&page), "formpage");
    let first = page.glyphs[0];
    assert_eq!((first.x, first.y, first.size), (130.0, 460.0, 20.0));
    assert_eq!((page.glyphs[4].x, page.glyphs[4].size), (50.0, 10.0));
    assert_ne!(page.glyphs[4].font, first.font);
}

#[test]
fn forms_that_draw_themselves_end() {
    let form = show('F', 10.0, 10.0, 20.0, "x") + "/I Do";
    let resources = "/Resources << /Font << /F 3 0 R >> /XObject << /I 5 0 R >> >>";
    let page = read(with_form(resources, &form).page("/I Do", ""));
    assert!((1..=super::MAX_DEPTH).contains(&page.glyphs.len()));
}

#[test]
fn forms_within_forms_are_followed_so_deep() {
    let mut file = PdfBuilder::new();
    for number in 5..70 {
        let entries = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 400 600] \
             /Resources << /Font << /F 3 0 R >> /XObject << /I {} 0 R >> >>",
            number + 1
        );
        let content = show('F', 10.0, 10.0 + number as f32, 20.0, "x") + "/I Do";
        assert_eq!(file.object(stream(&entries, &content)), number);
    }
    assert_eq!(read(file.page("/I Do", "")).glyphs.len(), super::MAX_DEPTH);
}

#[test]
fn what_is_in_a_layer_that_is_off_is_not_shown() {
    let mut file = PdfBuilder::new();
    let layer = file.object("<< /Type /OCG /Name (notes) >>");
    let other = file.object("<< /Type /OCG /Name (text) >>");
    let both = file.object(format!("<< /Type /OCMD /OCGs [{layer} 0 R {other} 0 R] /P /AllOn >>"));
    let inside = |layer: &str, text: &str| format!("/OC /{layer} BDC {} EMC ", show('F', 10.0, 50.0, 500.0, text));
    let content = inside("Off", "off")
        + &inside("On", "on")
        + &inside("Both", "both")
        + "/OC /On BDC "
        + &inside("Off", "nested")
        + &show('F', 10.0, 50.0, 400.0, "end")
        + "EMC";
    let resources = format!(
        "/Resources << /Font << /F 3 0 R >> /Properties << /Off {layer} 0 R /On {other} 0 R /Both {both} 0 R >> >>"
    );
    let catalog = format!("/OCProperties << /OCGs [{layer} 0 R {other} 0 R] /D << /OFF [{layer} 0 R] >> >>");
    let page = read(file.page_with(&content, &resources).catalog(&catalog));
    assert_eq!(text(&page), "onend");
}

#[test]
fn colours_of_profiles_are_told_from_white() {
    let mut file = PdfBuilder::new();
    let profile = file.object(stream("/N 3", ""));
    let content = "/C cs 1 0 0 sc ".to_owned()
        + &show('F', 10.0, 50.0, 500.0, "red")
        + "1 1 1 sc "
        + &show('F', 10.0, 50.0, 400.0, "white")
        + "0 g "
        + &show('F', 10.0, 50.0, 300.0, "black");
    let resources = format!("/Resources << /Font << /F 3 0 R >> /ColorSpace << /C [/ICCBased {profile} 0 R] >> >>");
    let page = read(file.page_with(&content, &resources));
    assert_eq!(text(&page), "redblack");
    assert_eq!(page.unseen.white, 5);
}

#[test]
fn text_can_clip_what_comes_after_it() {
    let clipped = "q BT /F 10 Tf 7 Tr 50 500 Td (mmmm) Tj ET ".to_owned();
    let inside = "BT 0 Tr /F 10 Tf 55 500 Td (in) Tj ET ";
    let outside = "BT 0 Tr /F 10 Tf 55 300 Td (out) Tj ET Q ";
    let page = read(PdfBuilder::new().page(&(clipped + inside + outside), ""));
    assert_eq!(text(&page), "in");
    assert_eq!(page.unseen.clipped, 3);
    assert_eq!(page.unseen.invisible, 4);
}

#[test]
fn appearances_fill_the_rectangles_of_their_annotations() {
    let mut file = PdfBuilder::new();
    let form = stream(
        &format!("/Type /XObject /Subtype /Form /BBox [0 0 100 50] {FONTS}"),
        &show('F', 10.0, 0.0, 0.0, "note"),
    );
    let form = file.object(form);
    let annotation = |entries: &str| {
        format!("<< /Type /Annot /Subtype /Stamp /Rect [100 200 300 300] /AP << /N {form} 0 R >> {entries} >>")
    };
    let (shown, hidden) = (file.object(annotation("")), file.object(annotation("/F 2")));
    let page = read(file.page("", &format!("/Annots [{shown} 0 R {hidden} 0 R]")));
    assert_eq!(text(&page), "note");
    let first = page.glyphs[0];
    assert_eq!((first.x, first.y, first.size), (100.0, 400.0, 20.0));
}

#[test]
fn paths_are_rules_shades_and_shapes() {
    let content = "10 10 m 100 10 l S 10 100 50 40 re f 10 200 m 60 200 l 60 240 l 10 240 l h f \
                   10 300 m 30 350 90 350 100 300 c S q 5 500 m 90 500 l W n 0 0 300 0.5 re f Q \
                   0 0 m 5 5 l 10 10 m 10 10 l n";
    let page = read(PdfBuilder::new().page(content, ""));
    assert_eq!(page.fills, [[10.0, 460.0, 60.0, 500.0], [10.0, 360.0, 60.0, 400.0]]);
    assert_eq!(page.shapes.len(), 1);
    let rules: Vec<[f32; 4]> = page
        .rules
        .iter()
        .map(|rule| [rule.x0, rule.y0, rule.x1, rule.y1])
        .collect();
    assert_eq!(rules, [[10.0, 590.0, 100.0, 590.0], [0.0, 599.75, 300.0, 599.75]]);
}

const OPERATORS: &[&str] = &[
    "q", "Q", "cm", "gs", "Do", "BT", "ET", "Tf", "Tm", "Td", "TD", "T*", "Tj", "TJ", "'", "\"", "Tc", "Tw", "Tz",
    "TL", "Ts", "Tr", "m", "l", "c", "v", "y", "re", "h", "f", "f*", "S", "s", "B", "b", "n", "W", "W*", "cs", "CS",
    "sc", "SCN", "scn", "g", "rg", "K", "sh", "BDC", "BMC", "EMC", "BI", "ID", "EI", "d0",
];
const OPERANDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.001",
    "250",
    "-1000",
    "99999999999999",
    "1e5",
    "/F",
    "/I",
    "/Pattern",
    "/DeviceCMYK",
    "(text)",
    "(\\101\\()",
    "<41>",
    "[(a) -200 (b)]",
    "[(a) /x [(b)] 5]",
    "<< /MCID 0 >>",
    "<< /OC /F >>",
    "true",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn operators_in_any_order_do_no_harm(
        words in proptest::collection::vec(
            (proptest::collection::vec(0..OPERANDS.len(), 0..7), 0..OPERATORS.len()),
            0..60,
        )
    ) {
        let mut content = String::from("BT /F 10 Tf 1 0 0 1 50 500 Tm (first) Tj ET ");
        for (operands, operator) in &words {
            operands.iter().for_each(|operand| content += &format!("{} ", OPERANDS[*operand]));
            content += &format!("{} ", OPERATORS[*operator]);
        }
        let form = content.clone() + "/I Do";
        let file = with_form("/Resources << /Font << /F 3 0 R >> /XObject << /I 5 0 R >> >>", &form);
        let page = read(file.page(&content, ""));
        proptest::prop_assert!(text(&page).starts_with("first"));
        proptest::prop_assert!(page.glyphs.iter().all(|glyph| glyph.x.is_finite() && glyph.size > 0.0));
    }
}
