use docmill_model::ElementType::{self, *};
use docmill_model::limits::ParseLimits;
use docmill_model::{Document, WarningCode};
use proptest::prelude::*;

use super::*;
use crate::ooxml::testing::{P, brief, mutate, rels, run, zip};

/// A shape at (`left`, `top`) that fills a placeholder (attributes) or none.
fn shape(placeholder: &str, left: i64, top: i64, body: &str) -> String {
    let holder = match placeholder {
        "" => String::new(),
        attributes => format!("<p:ph {attributes}/>"),
    };
    format!(
        r#"<p:sp><p:nvSpPr><p:nvPr>{holder}</p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="{left}" y="{top}"/></a:xfrm></p:spPr><p:txBody>{body}</p:txBody></p:sp>"#
    )
}

fn para(properties: &str, text: &str) -> String {
    format!("<a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p>")
}

/// A deck of slides with these shapes; the first slide has `links` and `more` parts.
fn deck(slides: &[&str], links: &[(&str, &str, &str)], more: &[(&str, &str)]) -> Vec<u8> {
    let ids: String = (0..slides.len())
        .map(|i| format!(r#"<p:sldId id="{i}" r:id="s{i}"/>"#))
        .collect();
    let presentation = format!(
        r#"<p:presentation {P}><p:sldIdLst>{ids}</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/></p:presentation>"#
    );
    let names: Vec<(String, String)> = (0..slides.len())
        .map(|i| (format!("s{i}"), format!("slides/slide{i}.xml")))
        .collect();
    let mut own: Vec<(&str, &str, &str)> = names
        .iter()
        .map(|(id, part)| (id.as_str(), "slide", part.as_str()))
        .collect();
    own.push(("a", "commentAuthors", "authors.xml"));
    let own = rels(&own);
    let master = format!(
        r#"<p:sldMaster {P}><p:cSld><p:spTree/></p:cSld><p:txStyles><p:bodyStyle><a:lvl1pPr><a:buChar char="•"/></a:lvl1pPr><a:lvl2pPr><a:buChar char="-"/></a:lvl2pPr></p:bodyStyle></p:txStyles></p:sldMaster>"#
    );
    let layout = format!(
        r#"<p:sldLayout {P}><p:cSld><p:spTree>{}{}</p:spTree></p:cSld></p:sldLayout>"#,
        shape(
            r#"type="body" idx="7""#,
            0,
            0,
            "<a:lstStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></a:lstStyle>"
        ),
        shape(r#"type="body" idx="8""#, 0, 5_000_000, ""),
    );
    let mut first = vec![("l", "slideLayout", "../slideLayouts/l.xml")];
    first.extend(links);
    let (first, layout_rels) = (rels(&first), rels(&[("m", "slideMaster", "../slideMasters/m.xml")]));
    let texts: Vec<(String, String)> = slides
        .iter()
        .enumerate()
        .map(|(i, shapes)| {
            (
                format!("ppt/slides/slide{i}.xml"),
                format!("<p:sld {P}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"),
            )
        })
        .collect();
    let mut parts = vec![
        ("ppt/presentation.xml", presentation.as_str()),
        ("ppt/_rels/presentation.xml.rels", &own),
        ("ppt/slides/_rels/slide0.xml.rels", &first),
        ("ppt/slideLayouts/l.xml", &layout),
        ("ppt/slideLayouts/_rels/l.xml.rels", &layout_rels),
        ("ppt/slideMasters/m.xml", &master),
    ];
    parts.extend(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    parts.extend(more);
    zip(&parts)
}

fn read(slides: &[&str]) -> Document {
    run(partition, &deck(slides, &[], &[]), &ParseLimits::default()).unwrap()
}

fn shown(document: &Document) -> Vec<(ElementType, Option<u32>, &str)> {
    document
        .elements
        .iter()
        .map(|e| (e.kind, e.metadata.category_depth, e.text.as_str()))
        .collect()
}

#[test]
fn the_title_comes_first_then_shapes_by_place() {
    let group = r#"<p:grpSp><p:grpSpPr><a:xfrm><a:off x="0" y="3000000"/><a:ext cx="10" cy="10"/><a:chOff x="0" y="0"/><a:chExt cx="10" cy="10"/></a:xfrm></p:grpSpPr>"#;
    let slide = [
        shape("", 0, 2_000_000, &para("", "below")),
        shape("", 500_000, 1_000_001, &para("", "left")),
        // A hair above its neighbour: still the same line.
        shape("", 900_000, 1_000_000, &para("", "right")),
        format!("{group}{}</p:grpSp>", shape("", 0, 0, &para("", "grouped"))),
        shape(r#"type="title""#, 0, 4_000_000, &(para("", "The") + &para("", "title"))),
    ]
    .concat();
    let document = read(&[&slide, &shape("", 0, 0, &para("", "two"))]);
    let texts: Vec<&str> = document.elements.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(texts, ["The\ntitle", "left", "right", "below", "grouped", "", "two"]);
    assert_eq!(
        (document.elements[0].kind, document.elements[5].kind),
        (Title, PageBreak)
    );
    assert_eq!(document.elements[6].metadata.page_number, Some(2));
    assert_eq!(document.pages[0].width, Some(720.0));
}

#[test]
fn bullets_are_inherited_and_numbers_counted() {
    let number = r#"<a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>"#;
    let body = [
        para("", "inherited"),
        para(r#"<a:pPr lvl="1"/>"#, "deeper"),
        para("<a:pPr><a:buNone/></a:pPr>", "plain"),
        para(number, "first"),
        para(number, "second"),
    ]
    .concat();
    let slide = shape(r#"type="body" idx="8""#, 0, 1, &body)
        + &shape(r#"type="body" idx="7""#, 0, 2_000_000, &para("", "layout says none"));
    assert_eq!(
        shown(&read(&[&slide])),
        [
            (ListItem, Some(0), "inherited"),
            (ListItem, Some(1), "deeper"),
            (UncategorizedText, None, "plain"),
            (ListItem, Some(0), "1. first"),
            (ListItem, Some(0), "2. second"),
            (NarrativeText, None, "layout says none"),
        ]
    );
}

#[test]
fn tables_have_spans() {
    let cell =
        |attributes: &str, text: &str| format!("<a:tc {attributes}><a:txBody>{}</a:txBody></a:tc>", para("", text));
    let slide = format!(
        r#"<p:graphicFrame><p:nvGraphicFramePr/><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow="1"/><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"#,
        cell(r#"gridSpan="2""#, "head"),
        cell(r#"hMerge="1""#, ""),
        cell(r#"rowSpan="2""#, "tall"),
        cell("", "a"),
        cell(r#"vMerge="1""#, ""),
        cell("", "b"),
    );
    let document = read(&[&slide]);
    assert_eq!(brief(&document.elements), [(Table, "head tall a b")]);
    assert_eq!(
        document.elements[0].metadata.text_as_html.as_deref(),
        Some(
            "<table><thead><tr><th colspan=\"2\">head</th></tr></thead><tr><td rowspan=\"2\">tall</td><td>a</td></tr><tr><td>b</td></tr></table>"
        )
    );
}

#[test]
fn furniture_links_and_emphasis() {
    let linked = r#"<a:p><a:r><a:t>see </a:t></a:r><a:r><a:rPr b="1"><a:hlinkClick r:id="h"/></a:rPr><a:t>this</a:t></a:r></a:p>"#;
    let slide = [
        shape("", 0, 0, linked),
        shape(r#"type="ftr""#, 0, 2_000_000, &para("", "foot")),
        shape(
            r#"type="sldNum""#,
            0,
            3_000_000,
            r#"<a:p><a:fld type="slidenum"><a:t>4</a:t></a:fld></a:p>"#,
        ),
    ]
    .concat();
    let bytes = deck(&[&slide], &[("h", "hyperlink", "http://x.org/")], &[]);
    let document = run(partition, &bytes, &ParseLimits::default()).unwrap();
    assert_eq!(
        brief(&document.elements),
        [(UncategorizedText, "see this"), (Footer, "foot"), (PageNumber, "4")]
    );
    let metadata = &document.elements[0].metadata;
    assert_eq!(
        (metadata.links[0].start_index, metadata.links[0].url.as_str()),
        (4, "http://x.org/")
    );
    assert_eq!(metadata.emphasized_text_contents, ["this"]);
}

#[test]
fn notes_comments_and_diagrams_are_read() {
    let frame = r#"<p:graphicFrame><a:graphic><a:graphicData><dgm:relIds r:dm="d"/></a:graphicData></a:graphic></p:graphicFrame>"#;
    let notes = format!(
        "<p:notes {P}><p:cSld><p:spTree>{}{}</p:spTree></p:cSld></p:notes>",
        shape(r#"type="sldNum""#, 0, 0, &para("", "1")),
        shape(r#"type="body""#, 0, 0, &para("", "say this"))
    );
    let comments = format!(r#"<p:cmLst {P}><p:cm authorId="0" dt="2026-01-01"><p:text>why?</p:text></p:cm></p:cmLst>"#);
    let authors = format!(r#"<p:cmAuthorLst {P}><p:cmAuthor id="0" name="Ann" initials="A"/></p:cmAuthorLst>"#);
    let point = |id: &str, text: &str| format!(r#"<dgm:pt modelId="{id}"><dgm:t>{}</dgm:t></dgm:pt>"#, para("", text));
    let data = format!(
        r#"<dgm:dataModel {P}><dgm:ptLst><dgm:pt modelId="0" type="doc"/>{}{}{}<dgm:pt modelId="9" type="pres"><dgm:t>{}</dgm:t></dgm:pt></dgm:ptLst>
        <dgm:cxnLst><dgm:cxn srcId="0" destId="2" srcOrd="1"/><dgm:cxn srcId="0" destId="1" srcOrd="0"/><dgm:cxn srcId="1" destId="3" srcOrd="0"/><dgm:cxn srcId="3" destId="1" srcOrd="0"/></dgm:cxnLst></dgm:dataModel>"#,
        point("2", "second"),
        point("1", "first"),
        point("3", "under first"),
        para("", "drawn")
    );
    let bytes = deck(
        &[frame],
        &[
            ("d", "diagramData", "../d.xml"),
            ("n", "notesSlide", "../n.xml"),
            ("c", "comments", "../c.xml"),
        ],
        &[
            ("ppt/d.xml", &data),
            ("ppt/n.xml", &notes),
            ("ppt/c.xml", &comments),
            ("ppt/authors.xml", &authors),
        ],
    );
    let document = run(partition, &bytes, &ParseLimits::default()).unwrap();
    assert_eq!(
        shown(&document),
        [
            (NarrativeText, None, "say this"),
            (ListItem, Some(0), "first"),
            (ListItem, Some(1), "under first"),
            (ListItem, Some(0), "second"),
            (UncategorizedText, None, "Comment by Ann (A), 2026-01-01: why?"),
        ]
    );
}

#[test]
fn a_slide_that_is_missing_is_a_warning() {
    let mut parts = deck(&["", &shape("", 0, 0, &para("", "x"))], &[], &[]);
    // Renames the first slide in both headers.
    let name = b"ppt/slides/slide0.xml";
    let found: Vec<usize> = parts
        .windows(name.len())
        .enumerate()
        .filter(|(_, w)| w == name)
        .map(|(i, _)| i)
        .collect();
    found.iter().for_each(|at| parts[*at + 16] = b'9');
    let document = run(partition, &parts, &ParseLimits::default()).unwrap();
    assert!(
        document
            .warnings
            .iter()
            .any(|w| w.code == WarningCode::PartUnreadable && w.page_number == Some(1))
    );
    assert_eq!(document.elements.last().unwrap().text, "x");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_change_of_a_file_makes_it_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..8)) {
        let _ = run(partition, &mutate(&deck(&[&shape("", 0, 0, &para("", "x"))], &[], &[]), &edits), &ParseLimits::default());
    }

    #[test]
    fn no_slide_makes_it_panic(picks in prop::collection::vec(0usize..10, 0..30)) {
        const PIECES: [&str; 10] = [
            "<p:sp>", "</p:sp>", "<p:txBody><a:p><a:r><a:t> é</a:t></a:r></a:p></p:txBody>", "<p:grpSp><p:grpSpPr><a:xfrm><a:off x=\"1e308\" y=\"nan\"/></a:xfrm></p:grpSpPr>",
            "</p:grpSp>", "<p:spPr><a:xfrm><a:off x=\"inf\" y=\"-9\"/></a:xfrm></p:spPr>", "<a:pPr lvl=\"99\"/>", "<p:graphicFrame><a:graphic><a:graphicData>",
            "</a:graphicData></a:graphic></p:graphicFrame>", "<a:tbl><a:tr><a:tc rowSpan=\"4000000000\"/></a:tr></a:tbl>",
        ];
        let slide: String = picks.iter().map(|i| PIECES[*i]).collect();
        let _ = run(partition, &deck(&[&slide], &[], &[]), &ParseLimits::default());
    }
}
