use docmill_model::ElementType::{self, *};
use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, Element};

use super::*;

fn read_with(html: &[u8], limits: &ParseLimits) -> Result<Document, PartitionError> {
    let options = PartitionOptions::default();
    let mut progress = |_| {};
    let mut cx = Context::new(None, &options, limits, &mut progress);
    partition(html, &mut cx)?;
    Ok(cx.into_document())
}

fn elements(html: &str) -> Vec<Element> {
    read_with(html.as_bytes(), &ParseLimits::default()).unwrap().elements
}

fn kinds(html: &str) -> Vec<(ElementType, String)> {
    elements(html).into_iter().map(|e| (e.kind, e.text)).collect()
}

fn texts(html: &str) -> Vec<String> {
    elements(html).into_iter().map(|e| e.text).collect()
}

fn depths(html: &str) -> Vec<(String, Option<u32>)> {
    elements(html)
        .into_iter()
        .map(|e| (e.text, e.metadata.category_depth))
        .collect()
}

fn table(html: &str) -> String {
    elements(html)
        .into_iter()
        .find_map(|e| e.metadata.text_as_html)
        .unwrap()
}

#[test]
fn headings_have_depths_and_paragraphs_are_judged_by_text() {
    assert_eq!(
        depths("<h1>A</h1><h3>B <i>c</i></h3><div role=heading aria-level=4>D</div>"),
        [("A".into(), Some(0)), ("B c".into(), Some(2)), ("D".into(), Some(3))]
    );
    assert_eq!(
        kinds("<p>This is a sentence.</p><p>Short line</p><p>• bullet</p><p>x@example.org</p><p>7</p>"),
        [
            (NarrativeText, "This is a sentence.".into()),
            (UncategorizedText, "Short line".into()),
            (ListItem, "bullet".into()),
            (EmailAddress, "x@example.org".into()),
            (UncategorizedText, "7".into()),
        ]
    );
}

#[test]
fn inline_elements_do_not_split_words_and_breaks_do() {
    assert_eq!(
        texts("<p>H<sub>2</sub>O and\n <b>bo</b>ld<span> </span>text</p>"),
        ["H2O and bold text"]
    );
    assert_eq!(texts("<p>one<br>two</p>"), ["one\ntwo"]);
    assert_eq!(
        texts("<div>first one<br>\n<br>second one</div>"),
        ["first one", "second one"]
    );
    assert_eq!(
        texts("<div>own text<p>paragraph</p>tail</div>"),
        ["own text", "paragraph", "tail"]
    );
}

#[test]
fn lists_nest_and_keep_paragraphs_of_an_item_together() {
    assert_eq!(
        depths("<ul><li>a<ol><li><p>b</p><p>c</p></li></ol></li><li>d</li></ul>"),
        [("a".into(), Some(1)), ("b\nc".into(), Some(2)), ("d".into(), Some(1))]
    );
    assert_eq!(
        depths("<dl><dt>Term</dt><dd>Said of it<dl><dt>Inner</dt></dl></dd></dl>"),
        [
            ("Term".into(), Some(1)),
            ("Said of it".into(), Some(2)),
            ("Inner".into(), Some(2))
        ]
    );
}

#[test]
fn links_and_emphasis() {
    let element =
        &elements("<p>See <a href='/x'>the <b>page</b></a> or <a href='javascript:f()'>run</a> <i><b>now</b></i></p>")
            [0];
    assert_eq!(element.metadata.link_texts, ["the page"]);
    assert_eq!(element.metadata.link_urls, ["/x"]);
    assert_eq!(element.metadata.emphasized_text_contents, ["page", "now"]);
    assert_eq!(element.metadata.emphasized_text_tags, ["b", "bi"]);
}

#[test]
fn a_link_around_blocks_is_on_each() {
    let found = elements("<a href=u><h2>Head</h2><p>text</p></a>");
    assert_eq!(
        found.iter().map(|e| e.metadata.link_texts.join("")).collect::<Vec<_>>(),
        ["Head", "text"]
    );
}

#[test]
fn what_is_not_shown_is_left_out() {
    assert_eq!(
        texts(
            "<head><title>t</title></head><nav>n</nav><script>s</script><style>s</style><template>t</template>\
             <p hidden>h</p><p style='color:red; display: none'>d</p><button>b</button><noscript>n</noscript>\
             <svg><text>s</text></svg><header>Top</header><footer>Bottom</footer>"
        ),
        ["Top", "Bottom"]
    );
}

#[test]
fn figures_details_and_forms_are_kept() {
    assert_eq!(
        kinds(
            "<figure><img src=a.png alt='A chart'><figcaption>Chart 1</figcaption></figure><details><summary>More</summary><p>Told here.</p></details>"
        ),
        [
            (Image, "A chart".into()),
            (FigureCaption, "Chart 1".into()),
            (UncategorizedText, "More".into()),
            (UncategorizedText, "Told here.".into()),
        ]
    );
    assert_eq!(
        texts(
            "<form><label>Name</label><input value='Ada'><input type=password value=p><p><input type=checkbox checked>Yes</p><select><option>A<option selected>B</select></form>"
        ),
        ["Name Ada", "[x] Yes", "B"]
    );
}

#[test]
fn pictures_follow_the_text_around_them() {
    let found = elements(
        "<p>before <img src=x.png alt=Pic> after</p><img src=y.png><img src='data:image/png;base64,xx' alt=Inline>",
    );
    let kinds: Vec<_> = found
        .iter()
        .map(|e| (e.text.as_str(), e.metadata.image_url.as_deref()))
        .collect();
    assert_eq!(
        kinds,
        [("before after", None), ("Pic", Some("x.png")), ("Inline", None)]
    );
}

#[test]
fn code_keeps_its_white_space() {
    assert_eq!(
        kinds("<pre><code>\nfn x() {\n    y\n}\n</code></pre>"),
        [(CodeSnippet, "fn x() {\n    y\n}".into())]
    );
}

#[test]
fn formulas() {
    let math = "<math><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation></math>";
    assert_eq!(kinds(&format!("<p>{math}</p>")), [(Formula, "x^2".into())]);
    assert_eq!(texts(&format!("<p>where {math} holds</p>")), ["where x^2 holds"]);
    assert_eq!(texts("<p><math><mi>a</mi><mo>+</mo><mn>1</mn></math></p>"), ["a + 1"]);
}

#[test]
fn tables_keep_heads_and_spans() {
    let html = "<table><caption>Cap</caption><thead><tr><th>A<th style='x' colspan=2>B &amp; C</thead>\
                <tr><td rowspan=2>1<td><p>2</p><p>3</p><td>4<tr><td>5<td>6</table>";
    assert_eq!(
        table(html),
        "<table><thead><tr><th>A</th><th colspan=\"2\">B &amp; C</th></tr></thead><tbody><tr><td rowspan=\"2\">1</td>\
         <td>2 3</td><td>4</td></tr><tr><td>5</td><td>6</td></tr></tbody></table>"
    );
    assert_eq!(kinds(html)[0], (FigureCaption, "Cap".into()));
    assert_eq!(kinds(html)[1], (Table, "A B & C 1 2 3 4 5 6".into()));
}

#[test]
fn nested_tables_are_flattened_and_spacer_rows_merged() {
    assert_eq!(
        table("<table><tr><td>a<td><table><tr><td>b<td>c</table></table>"),
        "<table><tr><td>a</td><td>b c</td></tr></table>"
    );
    assert_eq!(
        table("<table><tr><td>Y<td>M<tr><th rowspan=3>2025<tr><td>Jan<tr><td>Feb</table>"),
        "<table><tr><td>Y</td><td>M</td></tr><tr><th rowspan=\"2\">2025</th><td>Jan</td></tr><tr><td>Feb</td></tr></table>"
    );
}

#[test]
fn items_in_a_cell_are_marked() {
    assert_eq!(
        table("<table><tr><td>x<td>Before<ul><li>one<li><ul><li>two</ul></ul></table>"),
        "<table><tr><td>x</td><td>Before - one - two</td></tr></table>"
    );
}

#[test]
fn absurd_spans_are_cut_to_the_table() {
    assert_eq!(
        table("<table><tr><td rowspan=99999999999999999999>a<td rowspan=70000>b<td>c<tr><td>d</table>"),
        "<table><tr><td>a</td><td rowspan=\"2\">b</td><td>c</td></tr><tr><td>d</td></tr></table>"
    );
}

#[test]
fn tables_for_layout_are_no_tables() {
    assert_eq!(
        kinds("<table role=presentation><tr><td><h1>Hi</h1></td><td><p>There you are.</p></td></tr></table>"),
        [(Title, "Hi".into()), (NarrativeText, "There you are.".into())]
    );
    assert_eq!(
        kinds(
            "<table><tr><td></td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr><tr><td>end of it</td></tr></table>"
        ),
        [(Table, "a b".into()), (UncategorizedText, "end of it".into())]
    );
}

#[test]
fn pages_are_numbered() {
    let found = elements("<div data-page-number=3><p>three</p></div>");
    assert_eq!(found[0].metadata.page_number, Some(3));
}

#[test]
fn declared_charset_is_used() {
    let page = b"<html><head><meta http-equiv=Content-Type content='text/html; charset=windows-1251'></head><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>";
    let document = read_with(page, &ParseLimits::default()).unwrap();
    assert_eq!(document.elements[0].text, "Привет");
}

#[test]
fn hostile_depth_and_size_end() {
    let start = std::time::Instant::now();
    for html in [
        format!("{}deep text{}", "<div>".repeat(200_000), "</div>".repeat(200_000)),
        "<ul><li>x".repeat(5000),
        "<b><p>".repeat(20_000),
        "<table><tr><td>".repeat(20_000),
        "<a href=x><table>".repeat(20_000),
        "<p>x".repeat(50_000),
        "</p>".repeat(100_000),
        (0..20_000).map(|i| format!("<font c{i}><p>")).collect(),
        "<svg><math>".repeat(20_000),
        "<html a=1>".repeat(50_000),
        "<!--".repeat(50_000),
        "<script>".repeat(20_000),
    ] {
        let _ = read_with(html.as_bytes(), &ParseLimits::default());
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert_eq!(texts(&format!("{}deep text", "<div>".repeat(3000))), ["deep text"]);
}

#[test]
fn limits_are_named() {
    let tag = format!("<p {}>", (0..5000).map(|i| format!("a{i}=1 ")).collect::<String>());
    assert!(matches!(
        read_with(tag.as_bytes(), &ParseLimits::default()),
        Err(PartitionError::Corrupt { format: "HTML", .. })
    ));
    let limits = ParseLimits {
        max_table_cells: 3,
        max_elements: 100,
        ..ParseLimits::default()
    };
    let cells = b"<table><tr><td>1<td>2<td>3<td>4</table>";
    assert!(matches!(
        read_with(cells, &limits),
        Err(PartitionError::Limit {
            setting: "max_table_cells",
            ..
        })
    ));
    let many = "<p>x</p>".repeat(1000);
    assert!(matches!(
        read_with(many.as_bytes(), &limits),
        Err(PartitionError::Limit {
            setting: "max_elements",
            ..
        })
    ));
}

#[test]
fn quoted_brackets_in_attributes_do_not_confuse_the_attribute_count() {
    let html = format!(
        "<p title='{}'>x</p><script>if (a<b {}</script>",
        "a > b ".repeat(5000),
        "c ".repeat(5000)
    );
    assert_eq!(texts(&html), ["x"]);
}
