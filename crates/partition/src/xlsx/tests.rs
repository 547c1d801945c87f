use docmill_model::ElementType::*;
use docmill_model::limits::ParseLimits;
use docmill_model::{Document, WarningCode};
use proptest::prelude::*;

use super::*;
use crate::ooxml::testing::{S, brief, mutate, rels, run, zip};

const STYLES: &str = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/></numFmts>
<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="22"/></cellXfs></styleSheet>"#;
const STRINGS: &str = r#"<sst><si><t>Name</t></si><si><r><t>Da</t></r><r><t>te</t></r><rPh><t>x</t></rPh></si><si><t>a &amp; b</t></si></sst>"#;

/// A workbook of one sheet, with further parts.
fn book(data: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let workbook = format!(
        r#"<workbook {S}><sheets><sheet name="First" sheetId="1" state="hidden" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!("<worksheet {S}>{data}</worksheet>");
    let root = rels(&[("r", "officeDocument", "xl/workbook.xml")]);
    let own = rels(&[
        ("r1", "worksheet", "worksheets/sheet1.xml"),
        ("r2", "styles", "styles.xml"),
        ("r3", "sharedStrings", "sharedStrings.xml"),
        ("r4", "person", "persons/person.xml"),
    ]);
    let mut parts = vec![
        ("_rels/.rels", root.as_str()),
        ("xl/workbook.xml", &workbook),
        ("xl/_rels/workbook.xml.rels", &own),
        ("xl/worksheets/sheet1.xml", &sheet),
        ("xl/styles.xml", STYLES),
        ("xl/sharedStrings.xml", STRINGS),
    ];
    parts.extend(more);
    zip(&parts)
}

fn read(data: &str, more: &[(&str, &str)]) -> Document {
    let mut document = run(partition, &book(data, more), &ParseLimits::default()).unwrap();
    // The names of people are missing from most of these files.
    document.warnings.retain(|w| !w.message.contains("person.xml"));
    document
}

fn cells(rows: &[&[&str]]) -> String {
    let row = |row: &&[&str]| {
        let cells: String = row
            .iter()
            .map(|t| match *t {
                "" => "<c/>".to_owned(),
                text => format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#),
            })
            .collect();
        format!("<row>{cells}</row>")
    };
    format!("<sheetData>{}</sheetData>", rows.iter().map(row).collect::<String>())
}

fn html(document: &Document, index: usize) -> &str {
    document.elements[index]
        .metadata
        .text_as_html
        .as_deref()
        .unwrap_or_default()
}

#[test]
fn values_are_shown_as_the_user_sees_them() {
    let document = read(
        r#"<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v></c></row>
        <row r="2"><c r="A2"><v>1.0</v></c><c r="B2" s="1"><v>45688</v></c><c r="C2" s="2"><v>45688</v></c></row>
        <row r="3"><c r="A3"><v>0.30000000000000004</v></c><c r="B3" t="b"><v>1</v></c><c r="C3" t="e"><v>#N/A</v></c></row>
        <row r="4"><c r="A4" t="str"><f>A1</f><v>x</v></c><c r="B4" t="d"><v>2025-01-31T00:00:00</v></c><c r="C4" t="s"><v>99</v></c></row></sheetData>"#,
        &[],
    );
    assert_eq!(
        html(&document, 0),
        "<table><tr><td>Name</td><td>Date</td><td>a &amp; b</td></tr>\
         <tr><td>1</td><td>2025-01-31</td><td>2025-01-31 00:00</td></tr>\
         <tr><td>0.3</td><td>TRUE</td><td>#N/A</td></tr>\
         <tr><td>x</td><td>2025-01-31</td><td></td></tr></table>"
    );
    let metadata = &document.elements[0].metadata;
    assert_eq!(
        (metadata.page_number, metadata.page_name.as_deref()),
        (Some(1), Some("First"))
    );
    assert_eq!(
        document.elements[0].text,
        "Name Date a & b 1 2025-01-31 2025-01-31 00:00 0.3 TRUE #N/A x 2025-01-31"
    );
}

#[test]
fn titles_and_remarks_around_a_table_are_text() {
    let document = read(
        &cells(&[&["About"], &["a", "b"], &["1", "2"], &["Note"], &[], &["c", "", "d"]]),
        &[],
    );
    let texts: Vec<&str> = document.elements.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(texts, ["About", "a b 1 2", "Note", "c d"]);
    assert_eq!((document.elements[1].kind, document.elements[3].kind), (Table, Table));
    assert_ne!(document.elements[0].kind, Table);
}

#[test]
fn merged_areas_become_spans() {
    let merges = r#"<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/><mergeCell ref="B4:C5"/></mergeCells>"#;
    let data = cells(&[
        &["k", "wide"],
        &["", "x", "y"],
        &["1", "2", "3"],
        &["4", "both"],
        &["5"],
    ]) + merges;
    assert_eq!(
        html(&read(&data, &[]), 0),
        "<table><tr><td rowspan=\"2\">k</td><td colspan=\"2\">wide</td></tr><tr><td>x</td><td>y</td></tr>\
         <tr><td>1</td><td>2</td><td>3</td></tr><tr><td>4</td><td colspan=\"2\" rowspan=\"2\">both</td></tr>\
         <tr><td>5</td></tr></table>"
    );
}

#[test]
fn tables_beside_each_other_are_parted_when_they_start_on_different_rows() {
    let uneven = cells(&[
        &["a", "b"],
        &["1", "2"],
        &["3", "4", "", "x", "y"],
        &["5", "6", "", "7", "8"],
    ]);
    let document = read(&uneven, &[]);
    assert_eq!(
        brief(&document.elements),
        [(Table, "a b 1 2 3 4 5 6"), (Table, "x y 7 8")]
    );
    let even = cells(&[&["a", "b", "", "x", "y"], &["1", "2", "", "3", "4"]]);
    assert_eq!(read(&even, &[]).elements.len(), 1);
}

#[test]
fn rows_the_file_calls_heads_form_the_head() {
    let rows = cells(&[&["a", "b"], &["1", "2"]]);
    let head = "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td>1</td><td>2</td></tr></table>";
    let filtered = rows.clone() + r#"<autoFilter ref="A1:B2"/>"#;
    assert_eq!(html(&read(&filtered, &[]), 0), head);
    let own = rels(&[("t", "table", "../tables/t.xml")]);
    let table = format!(r#"<table {S} ref="A1:B2"/>"#);
    let parts = [
        ("xl/worksheets/_rels/sheet1.xml.rels", own.as_str()),
        ("xl/tables/t.xml", &table),
    ];
    assert_eq!(html(&read(&rows, &parts), 0), head);
}

#[test]
fn two_cells_at_the_ends_of_the_grid_cost_nothing() {
    let document = read(
        r#"<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row>
        <row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>
        <mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>"#,
        &[],
    );
    let texts: String = document.elements.iter().map(|e| e.text.as_str()).collect();
    assert!(texts.contains('1'));
}

#[test]
fn a_sparse_staircase_keeps_its_text_and_loses_the_grid() {
    let rows: String = (0..50)
        .map(|i| {
            let name = |n: usize| char::from(b'A' + u8::try_from(n % 26).unwrap());
            format!(
                r#"<row r="{0}"><c r="{1}{0}"><v>1</v></c><c r="A{2}{0}"><v>2</v></c></row>"#,
                i + 1,
                name(i),
                name(i)
            )
        })
        .collect();
    let limits = ParseLimits {
        max_table_cells: 500,
        ..ParseLimits::default()
    };
    let document = run(
        partition,
        &book(&format!("<sheetData>{rows}</sheetData>"), &[]),
        &limits,
    )
    .unwrap();
    assert_eq!(document.elements.len(), 1);
    assert!(document.elements[0].metadata.text_as_html.is_none());
    assert_eq!(document.elements[0].text.split(' ').count(), 100);
    assert!(document.warnings.iter().any(|w| w.code == WarningCode::Truncated));
    let limits = ParseLimits {
        max_table_cells: 99,
        ..limits
    };
    let error = run(
        partition,
        &book(&format!("<sheetData>{rows}</sheetData>"), &[]),
        &limits,
    )
    .unwrap_err();
    assert!(matches!(
        error,
        PartitionError::Limit {
            setting: "max_table_cells",
            ..
        }
    ));
}

#[test]
fn a_shared_string_used_again_and_again_is_bounded() {
    let strings = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(10_000));
    let rows: String = (1..=300)
        .map(|r| format!(r#"<row r="{r}"><c r="A{r}" t="s"><v>0</v></c></row>"#))
        .collect();
    let sheet = format!("<worksheet {S}><sheetData>{rows}</sheetData></worksheet>");
    let workbook = format!(r#"<workbook {S}><sheets><sheet name="a" r:id="r1"/></sheets></workbook>"#);
    let own = rels(&[("r1", "worksheet", "s.xml"), ("r3", "sharedStrings", "t.xml")]);
    let bytes = zip(&[
        ("xl/workbook.xml", &workbook),
        ("xl/_rels/workbook.xml.rels", &own),
        ("xl/s.xml", &sheet),
        ("xl/t.xml", &strings),
    ]);
    let limits = ParseLimits {
        max_expanded_bytes: 1_000_000,
        ..ParseLimits::default()
    };
    let error = run(partition, &bytes, &limits).unwrap_err();
    assert!(
        matches!(
            error,
            PartitionError::Limit {
                setting: "max_expanded_bytes",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn comments_name_cell_and_author_and_threads_replace_their_notes() {
    let rels = rels(&[("c", "comments", "../c.xml"), ("t", "threadedComment", "../t.xml")]);
    let notes = r#"<comments><authors><author>Ann</author></authors><commentList>
        <comment ref="A1" authorId="0"><text><r><t>Ann:</t></r><r><t>
why?</t></r></text></comment>
        <comment ref="B2" authorId="0"><text><t>[Threaded comment] see elsewhere</t></text></comment></commentList></comments>"#;
    let threads = r#"<ThreadedComments><threadedComment ref="B2" dT="2026-01-02T03:04:05" personId="{1}"><text>because</text></threadedComment></ThreadedComments>"#;
    let document = read(
        &cells(&[&["x"]]),
        &[
            ("xl/worksheets/_rels/sheet1.xml.rels", &rels),
            ("xl/c.xml", notes),
            ("xl/t.xml", threads),
            (
                "xl/persons/person.xml",
                r#"<personList><person displayName="Bob" id="{1}"/></personList>"#,
            ),
        ],
    );
    assert_eq!(
        brief(&document.elements[1..]),
        [
            (UncategorizedText, "Comment on A1 by Ann: why?"),
            (UncategorizedText, "Comment on B2 by Bob, 2026-01-02T03:04:05: because"),
        ]
    );
}

#[test]
fn charts_and_shapes_of_a_sheet_are_read() {
    let sheet_rels = rels(&[("d", "drawing", "../drawings/d.xml")]);
    let drawing_rels = rels(&[("c1", "chart", "../charts/c.xml")]);
    let drawing = r#"<xdr:wsDr xmlns:xdr="http://x" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"
        xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
        <xdr:sp><xdr:txBody><a:p><a:r><a:t>Look here</a:t></a:r></a:p></xdr:txBody></xdr:sp><c:chart r:id="c1"/></xdr:wsDr>"#;
    let chart = r#"<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">
        <c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Ducks</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart>
        <c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>Wild</c:v></c:pt></c:strCache></c:strRef></c:tx>
        <c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>2019</c:v></c:pt><c:pt idx="1"><c:v>2020</c:v></c:pt></c:strCache></c:strRef></c:cat>
        <c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>7</c:v></c:pt><c:pt idx="1"><c:v>9</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>
        </c:barChart></c:plotArea></c:chart></c:chartSpace>"#;
    let document = read(
        "",
        &[
            ("xl/worksheets/_rels/sheet1.xml.rels", &sheet_rels),
            ("xl/drawings/d.xml", drawing),
            ("xl/drawings/_rels/d.xml.rels", &drawing_rels),
            ("xl/charts/c.xml", chart),
        ],
    );
    assert_eq!(document.elements[0].text, "Look here");
    assert_eq!(
        brief(&document.elements[1..]),
        [(FigureCaption, "Ducks"), (Table, "Wild 2019 7 2020 9")]
    );
    assert_eq!(
        html(&document, 2),
        "<table><thead><tr><th></th><th>Wild</th></tr></thead><tr><td>2019</td><td>7</td></tr><tr><td>2020</td><td>9</td></tr></table>"
    );
}

#[test]
fn a_workbook_without_its_main_part_is_corrupt() {
    let bytes = zip(&[("xl/styles.xml", STYLES)]);
    let error = run(partition, &bytes, &ParseLimits::default()).unwrap_err();
    assert!(matches!(error, PartitionError::Corrupt { .. }));
}

#[test]
fn a_broken_sheet_is_a_warning_beside_a_good_one_and_an_error_alone() {
    let read = |first: &str, second: &str| {
        let workbook = format!(
            r#"<workbook {S}><sheets><sheet name="a" r:id="r1"/><sheet name="b" r:id="r2"/></sheets></workbook>"#
        );
        let own = rels(&[("r1", "worksheet", "a.xml"), ("r2", "worksheet", "b.xml")]);
        let bytes = zip(&[
            ("xl/workbook.xml", &workbook),
            ("xl/_rels/workbook.xml.rels", &own),
            ("xl/a.xml", first),
            ("xl/b.xml", second),
        ]);
        run(partition, &bytes, &ParseLimits::default())
    };
    let good =
        format!(r#"<worksheet {S}><sheetData><row><c t="str"><v>x&#xD800;</v></c></row></sheetData></worksheet>"#);
    let document = read("<worksheet><a></b>", &good).unwrap();
    assert_eq!(document.elements[0].text, "x\u{fffd}");
    assert_eq!(document.warnings[0].page_number, Some(1));
    let error = read("<worksheet><a></b>", "<worksheet><a></b>").unwrap_err();
    assert!(matches!(error, PartitionError::Corrupt { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_change_of_a_file_makes_it_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..8)) {
        let bytes = mutate(&book(&cells(&[&["a", "b"], &["1", "2"]]), &[]), &edits);
        let _ = run(partition, &bytes, &ParseLimits::default());
    }

    #[test]
    fn no_sheet_makes_it_panic(
        places in prop::collection::vec((0u32..6, 0u32..6), 0..20),
        areas in prop::collection::vec((1u32..7, 0u8..6, 1u32..7, 0u8..6), 0..6),
    ) {
        let name = |c: u32| char::from(b'A' + u8::try_from(c).unwrap());
        let rows: String = places.iter().map(|(r, c)| format!(r#"<row r="{0}"><c r="{1}{0}"><v>1</v></c></row>"#, r + 1, name(*c))).collect();
        let merges: String = areas.iter()
            .map(|(t, l, b, r)| format!(r#"<mergeCell ref="{}{t}:{}{b}"/>"#, name((*l).into()), name((*r).into())))
            .collect();
        let data = format!("<sheetData>{rows}</sheetData><mergeCells>{merges}</mergeCells>");
        let document = run(partition, &book(&data, &[]), &ParseLimits::default()).unwrap();
        let distinct: std::collections::HashSet<_> = places.iter().collect();
        // Nothing is shown twice; only what a merged area hides may be missing.
        let shown: usize = document.elements.iter().map(|e| e.text.split(' ').count()).sum();
        prop_assert!(shown <= distinct.len());
        prop_assert!(!areas.is_empty() || shown == distinct.len());
    }
}
