use docmill_model::ElementType::{self, *};
use docmill_model::limits::ParseLimits;
use docmill_model::{Document, Element};
use proptest::prelude::*;

use super::*;
use crate::ooxml::testing::{W, brief, mutate, rels, run, zip};

const STYLES: &str = r#"<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="2"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
<w:style w:type="paragraph" w:styleId="Cap"><w:name w:val="caption"/></w:style>
<w:style w:type="character" w:styleId="Strong"><w:name w:val="Strong"/><w:rPr><w:b/></w:rPr></w:style>"#;
const NUMBERING: &str = r#"<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%2)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num>"#;

/// A document with this body, and further parts with the relationship kinds they have.
fn file(body: &str, more: &[(&str, &str, &str)]) -> Vec<u8> {
    let document = format!("<w:document {W}><w:body>{body}</w:body></w:document>");
    let styles = format!("<w:styles {W}>{STYLES}</w:styles>");
    let numbering = format!("<w:numbering {W}>{NUMBERING}</w:numbering>");
    let mut links = vec![
        ("s", "styles", "styles.xml"),
        ("n", "numbering", "numbering.xml"),
        ("link", "hyperlink", "http://x.org/"),
    ];
    links.extend(more.iter().map(|(name, kind, _)| (*name, *kind, *name)));
    let own = rels(&links);
    let names: Vec<String> = more.iter().map(|(name, _, _)| format!("word/{name}")).collect();
    let mut parts = vec![
        ("word/document.xml", document.as_str()),
        ("word/_rels/document.xml.rels", &own),
        ("word/styles.xml", &styles),
        ("word/numbering.xml", &numbering),
    ];
    parts.extend(
        names
            .iter()
            .zip(more)
            .map(|(name, (_, _, content))| (name.as_str(), *content)),
    );
    zip(&parts)
}

fn read_with(body: &str, more: &[(&str, &str, &str)]) -> Document {
    run(partition, &file(body, more), &ParseLimits::default()).unwrap()
}

fn read(body: &str) -> Vec<Element> {
    read_with(body, &[]).elements
}

fn p(text: &str) -> String {
    format!(r#"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"#)
}

fn styled(properties: &str, text: &str) -> String {
    format!(r#"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#)
}

fn item(number: u32, level: u32, text: &str) -> String {
    let properties = format!(r#"<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>"#);
    styled(&properties, text)
}

fn shown(elements: &[Element]) -> Vec<(ElementType, Option<u32>, &str)> {
    elements
        .iter()
        .map(|e| (e.kind, e.metadata.category_depth, e.text.as_str()))
        .collect()
}

#[test]
fn headings_lists_captions_and_code_by_style() {
    let body = [
        styled(r#"<w:pStyle w:val="H1"/>"#, "Top"),
        styled(r#"<w:pStyle w:val="H2"/>"#, "Scope"),
        styled(r#"<w:outlineLvl w:val="2"/>"#, "Outlined"),
        item(1, 0, "one"),
        item(1, 1, "inner"),
        item(1, 0, "two"),
        item(3, 0, "dot"),
        styled(r#"<w:pStyle w:val="Cap"/>"#, "Figure 1"),
        styled(r#"<w:pStyle w:val="Code"/>"#, "if x:"),
        r#"<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr><w:r><w:t xml:space="preserve">  y</w:t><w:br/><w:t>z</w:t></w:r></w:p>"#.into(),
        p(""),
    ]
    .concat();
    assert_eq!(
        shown(&read(&body)),
        [
            (Title, Some(0), "Top"),
            (Title, Some(1), "1.1 Scope"),
            (Title, Some(2), "Outlined"),
            (ListItem, Some(0), "1. one"),
            (ListItem, Some(1), "a) inner"),
            (ListItem, Some(0), "2. two"),
            (ListItem, Some(0), "dot"),
            (FigureCaption, None, "Figure 1"),
            (CodeSnippet, None, "if x:\n  y\nz"),
        ]
    );
}

#[test]
fn runs_revisions_fields_and_special_characters() {
    let body = r#"<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:noBreakHyphen/><w:softHyphen/><w:sym w:font="Symbol" w:char="F061"/></w:r>
        <w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>
        <w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>
        <w:r><w:fldChar w:fldCharType="begin"/><w:instrText>PAGE</w:instrText><w:fldChar w:fldCharType="separate"/><w:t>7</w:t><w:fldChar w:fldCharType="end"/></w:r>
        <w:smartTag><w:sdt><w:sdtContent><w:r><w:t>tag</w:t></w:r></w:sdtContent></w:sdt></w:smartTag></w:p>"#;
    assert_eq!(read(body)[0].text, "a\tb\u{2011}αnew7tag");
}

#[test]
fn links_and_emphasis_have_their_places() {
    let body = r#"<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>
        <w:r><w:t xml:space="preserve">  é see </w:t></w:r><w:hyperlink r:id="link"><w:r><w:t xml:space="preserve">here </w:t></w:r></w:hyperlink>
        <w:r><w:rPr><w:b/><w:i/></w:rPr><w:t>x</w:t></w:r><w:r><w:rPr><w:b/><w:i w:val="1"/></w:rPr><w:t>y</w:t></w:r>
        <w:r><w:rPr><w:rStyle w:val="Strong"/></w:rPr><w:t>z</w:t></w:r>
        <w:r><w:fldChar w:fldCharType="begin"/><w:instrText>HYPERLINK \l "mark"</w:instrText><w:fldChar w:fldCharType="separate"/></w:r>
        <w:r><w:t>there</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>"#;
    let elements = read(body);
    let element = &elements[0];
    assert_eq!(element.text, "1. é see here xyzthere");
    assert_eq!(element.metadata.link_urls, ["http://x.org/", "#mark"]);
    assert_eq!(element.metadata.link_texts, ["here", "there"]);
    for link in &element.metadata.links {
        let start = usize::try_from(link.start_index).unwrap();
        let found: String = element
            .text
            .chars()
            .skip(start)
            .take(link.text.chars().count())
            .collect();
        assert_eq!(found, link.text);
    }
    assert_eq!(element.metadata.emphasized_text_contents, ["xy", "z"]);
    assert_eq!(element.metadata.emphasized_text_tags, ["bi", "b"]);
}

#[test]
fn tables_have_spans_heads_and_flat_nested_tables() {
    let cell = |properties: &str, inner: &str| format!("<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>");
    let nested = format!(
        "<w:tbl><w:tr>{}{}</w:tr></w:tbl>",
        cell("", &p("n1")),
        cell("", &p("n2"))
    );
    let body = format!(
        "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>{}{}</w:tr><w:tr>{}{}{}</w:tr><w:tr>{}{}{}</w:tr></w:tbl>",
        cell(r#"<w:gridSpan w:val="2"/>"#, &p("wide")),
        cell("", &p("h")),
        cell(r#"<w:vMerge w:val="restart"/>"#, &p("tall")),
        cell("", &(p("a") + &p("&lt;b&gt;"))),
        cell("", &nested),
        cell("<w:vMerge/>", &p("")),
        cell("", &item(1, 0, "c")),
        cell("", &p("")),
    );
    let elements = read(&body);
    assert_eq!(brief(&elements), [(Table, "wide h tall a <b> n1 n2 1. c")]);
    assert_eq!(
        elements[0].metadata.text_as_html.as_deref(),
        Some(
            "<table><thead><tr><th colspan=\"2\">wide</th><th>h</th></tr></thead>\
             <tr><td rowspan=\"2\">tall</td><td>a &lt;b&gt;</td><td>n1 n2</td></tr>\
             <tr><td>1. c</td><td></td></tr></table>"
        )
    );
}

#[test]
fn a_table_of_one_cell_is_a_frame() {
    let body = format!(
        "<w:tbl><w:tr><w:tc>{}{}</w:tc></w:tr></w:tbl>",
        p("in a box"),
        item(3, 0, "dot")
    );
    assert_eq!(
        brief(&read(&body)),
        [(UncategorizedText, "in a box"), (ListItem, "dot")]
    );
}

#[test]
fn text_boxes_are_read_once_and_content_controls_are_transparent() {
    let content = p("boxed");
    let body = format!(
        "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt><w:p><w:r><w:t>anchor</w:t></w:r><w:r><mc:AlternateContent>\
         <mc:Choice Requires=\"wps\"><w:drawing><wps:txbx><w:txbxContent>{content}</w:txbxContent></wps:txbx></w:drawing></mc:Choice>\
         <mc:Fallback><w:pict><v:textbox><w:txbxContent>{content}</w:txbxContent></v:textbox></w:pict></mc:Fallback>\
         </mc:AlternateContent></w:r></w:p>",
        p("controlled")
    );
    let elements = read(&body);
    let texts: Vec<&str> = elements.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(texts, ["controlled", "anchor", "boxed"]);
}

#[test]
fn notes_follow_their_paragraph_and_comments_go_to_metadata() {
    let note = format!(
        r#"<w:footnotes {W}><w:footnote w:type="separator" w:id="0">{}</w:footnote><w:footnote w:id="2">{}</w:footnote></w:footnotes>"#,
        p("---"),
        p("the note")
    );
    let comment = format!(
        r#"<w:comments {W}><w:comment w:id="5" w:author="Ann">{}</w:comment></w:comments>"#,
        p("why?")
    );
    let body = format!(
        r#"<w:p><w:r><w:t>text</w:t><w:footnoteReference w:id="2"/></w:r><w:r><w:commentReference w:id="5"/><w:footnoteReference w:id="2"/></w:r></w:p>{}"#,
        p("next")
    );
    let document = read_with(&body, &[("f.xml", "footnotes", &note), ("c.xml", "comments", &comment)]);
    let texts: Vec<&str> = document.elements.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(texts, ["text", "the note", "next"]);
    let comments = &document.elements[0].metadata.extra["comments"];
    assert_eq!(comments, &serde_json::json!([{"author": "Ann", "text": "why?"}]));
}

#[test]
fn headers_open_and_footers_close_their_section() {
    let part = |name: &str, text: &str| format!("<w:{name} {W}>{}</w:{name}>", p(text));
    let (first, second, foot) = (part("hdr", "one"), part("hdr", "two"), part("ftr", "foot"));
    let body = format!(
        r#"<w:p><w:pPr><w:sectPr><w:headerReference w:type="default" r:id="h1"/><w:headerReference w:type="first" r:id="h2"/>
        <w:footerReference w:type="even" r:id="f1"/></w:sectPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>{}
        <w:sectPr><w:headerReference w:type="first" r:id="h2"/><w:footerReference w:type="default" r:id="f1"/><w:titlePg/></w:sectPr>"#,
        p("b")
    );
    let document = read_with(
        &body,
        &[
            ("h1", "header", &first),
            ("h2", "header", &second),
            ("f1", "footer", &foot),
        ],
    );
    let kinds = brief(&document.elements);
    assert_eq!(
        kinds,
        [
            (Header, "one"),
            (UncategorizedText, "a"),
            (Header, "two"),
            (UncategorizedText, "b"),
            (Footer, "foot")
        ]
    );
    let types: Vec<_> = document
        .elements
        .iter()
        .filter_map(|e| e.metadata.header_footer_type.as_deref())
        .collect();
    assert_eq!(types, ["primary", "first_page", "primary"]);
}

#[test]
fn pages_are_numbered_when_the_file_tells_them() {
    let plain = r#"<w:p><w:r><w:t>a</w:t><w:br w:type="page"/></w:r></w:p>"#;
    assert!(
        read(plain)
            .iter()
            .all(|e| e.metadata.page_number.is_none() && e.kind != PageBreak)
    );
    let marked = format!(
        r#"{plain}<w:p><w:r><w:lastRenderedPageBreak/><w:t>b</w:t></w:r></w:p>
        <w:p><w:r><w:t>c</w:t><w:lastRenderedPageBreak/><w:t>d</w:t></w:r></w:p>{}"#,
        p("e")
    );
    let document = read_with(&marked, &[]);
    let pages: Vec<_> = document
        .elements
        .iter()
        .map(|e| (e.text.as_str(), e.metadata.page_number.unwrap()))
        .collect();
    assert_eq!(pages, [("a", 1), ("", 1), ("b", 2), ("cd", 2), ("", 2), ("e", 3)]);
    assert_eq!(document.pages.len(), 3);
}

#[test]
fn formulas_alone_are_formulas_and_inline_ones_are_text() {
    let math = |t: &str| format!("<m:oMath><m:r><m:t>{t}</m:t></m:r></m:oMath>");
    let body = format!(
        "<w:p>{}{}</w:p><w:p><w:r><w:t xml:space=\"preserve\">if </w:t></w:r>{}</w:p>",
        math("a=b"),
        math("c"),
        math("d")
    );
    assert_eq!(
        brief(&read(&body)),
        [(Formula, "$$a=b$$"), (Formula, "$$c$$"), (UncategorizedText, "if $d$")]
    );
}

#[test]
fn broken_side_parts_are_warnings_and_a_broken_body_is_an_error() {
    let bytes = file(&p("x"), &[("f.xml", "footnotes", "<broken")]);
    let document = run(partition, &bytes, &ParseLimits::default()).unwrap();
    assert_eq!(document.elements.len(), 1);
    assert_eq!(document.warnings[0].code, WarningCode::PartUnreadable);
    let error = run(partition, &file("<w:p>", &[]), &ParseLimits::default()).unwrap_err();
    assert!(matches!(error, PartitionError::Corrupt { .. }));
}

#[test]
fn deep_nesting_ends_at_the_limit_and_the_limit_fits_the_stack() {
    let nest = |n: usize, open: &str, close: &str| open.repeat(n) + &p("deep") + &close.repeat(n);
    let (open, close) = ("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>");
    let error = run(partition, &file(&nest(3000, open, close), &[]), &ParseLimits::default()).unwrap_err();
    assert!(
        matches!(
            error,
            PartitionError::Limit {
                setting: "max_depth",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(read(&nest(250, open, close))[0].text, "deep");
    let (open, close) = (
        "<w:p><w:r><w:pict><w:txbxContent>",
        "</w:txbxContent></w:pict></w:r></w:p>",
    );
    assert_eq!(read(&nest(120, open, close))[0].text, "deep");
    let (open, close) = ("<w:tbl><w:tr><w:tc><w:p/></w:tc><w:tc>", "</w:tc></w:tr></w:tbl>");
    assert_eq!(read(&nest(160, open, close))[0].text, "deep");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_change_of_a_file_makes_it_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..8)) {
        let _ = run(partition, &mutate(&file(&(item(1, 0, "a") + &p("b")), &[]), &edits), &ParseLimits::default());
    }

    /// Text is changed before it is compressed, so that the changes reach the XML.
    #[test]
    fn no_body_makes_it_panic(picks in prop::collection::vec(0usize..14, 0..40)) {
        const PIECES: [&str; 14] = [
            "<w:p>", "</w:p>", "<w:r>", "</w:r>", "<w:t>é x</w:t>", "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>",
            "<w:fldChar w:fldCharType=\"begin\"/>", "<w:fldChar w:fldCharType=\"end\"/>", "<w:lastRenderedPageBreak/>",
            "<w:hyperlink w:anchor=\"a\">", "</w:hyperlink>", "<w:tcPr><w:vMerge/><w:gridSpan w:val=\"9999999999\"/></w:tcPr>",
            "<w:br w:type=\"page\"/>",
        ];
        let body: String = picks.iter().map(|i| PIECES[*i]).collect();
        let _ = run(partition, &file(&body, &[]), &ParseLimits::default());
    }
}
