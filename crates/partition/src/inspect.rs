//! A page of HTML that shows what was found on every page of a document: the picture of the page, the boxes
//! of its elements over it, their types and their reading order, and the cells of tables.
//!
//! The file stands alone: pictures are within it, and it has neither scripts nor addresses to load from.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docmill_model::limits::ParseLimits;
use docmill_model::metadata::Coordinates;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, Element, ElementType};
use serde_json::Value;

use crate::{Input, PartitionError, Tools, draw_pages};

/// Longest side of the pictures, in pixels, and their quality.
const LONG_SIDE: u32 = 1_300;
const QUALITY: u8 = 75;
/// Pages shown.
const MAX_PAGES: u32 = 200;
/// Characters of an element's text that are shown.
const MAX_TEXT: usize = 400;

/// Styles of the page. Colours of types follow.
const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:1.5em;color:#222;background:#f4f4f4}\
    h1{font-size:1.4em}h2{font-size:1.1em;margin:2em 0 .5em}h2 small{font-weight:normal;color:#666}\
    .page{display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap}\
    .sheet{position:relative;flex:0 0 auto;width:min(850px,100%);background:#fff;box-shadow:0 1px 5px #0004}\
    .sheet img{display:block;width:100%}.sheet svg{position:absolute;inset:0;width:100%;height:100%}\
    ol{flex:1 1 22em;margin:0;padding-left:2.5em;max-width:60em}li{margin-bottom:.3em}\
    b.t{font-weight:600;padding:0 .35em;border-radius:3px;color:#fff}.legend b{margin-right:.6em}\
    rect{fill-opacity:.10;stroke-width:1.5;vector-effect:non-scaling-stroke}\
    rect.cell{fill:none;stroke:#0a0;stroke-width:.8;stroke-dasharray:3 2}\
    path{fill:none;stroke:#888;stroke-width:1;stroke-opacity:.6;vector-effect:non-scaling-stroke}\
    text{font:600 10px system-ui,sans-serif;paint-order:stroke;stroke:#fff;stroke-width:2px}";

/// Colours by type; the others are grey.
const COLOURS: &[(ElementType, &str)] = &[
    (ElementType::Title, "#c0392b"),
    (ElementType::NarrativeText, "#1f6fb2"),
    (ElementType::ListItem, "#7d3c98"),
    (ElementType::Table, "#117a3d"),
    (ElementType::Image, "#b9770e"),
    (ElementType::FigureCaption, "#8a5a00"),
    (ElementType::Header, "#607d8b"),
    (ElementType::Footer, "#607d8b"),
    (ElementType::PageNumber, "#607d8b"),
    (ElementType::Formula, "#ad1457"),
    (ElementType::CodeSnippet, "#00695c"),
    (ElementType::UncategorizedText, "#424242"),
];
const OTHER: &str = "#757575";

/// Shows a document that was made of `input` with `options`, coordinates among them; `None` when it has no
/// pages that can be drawn.
///
/// # Errors
/// The file can't be opened again.
pub fn inspect(
    input: &Input,
    document: &Document,
    options: &PartitionOptions,
    (limits, tools): (&ParseLimits, &Tools<'_>),
) -> Result<Option<String>, PartitionError> {
    let name = input.filename.as_deref().unwrap_or("document");
    let mut html = String::new();
    head(&mut html, name, document);
    let mut shown = 0;
    let password = options.password.as_deref();
    draw_pages(
        input,
        password,
        (limits, tools),
        (MAX_PAGES, LONG_SIDE),
        &mut |index, picture| {
            shown += 1;
            let number = options.starting_page_number.saturating_add(index);
            page(
                &mut html,
                document,
                number,
                picture.map(|picture| picture.jpeg(QUALITY)),
            );
        },
    )?;
    if document.pages.len() > MAX_PAGES as usize {
        html.push_str("<p>Further pages are not shown.</p>");
    }
    html.push_str("</body></html>\n");
    Ok((shown > 0).then_some(html))
}

fn head(html: &mut String, name: &str, document: &Document) {
    let name = escaped(name);
    let _ = write!(
        html,
        "<!doctype html><html><head><meta charset=\"utf-8\"><title>{name}</title><style>{STYLE}</style></head>\
         <body><h1>{name}</h1><p class=\"legend\">"
    );
    for (kind, colour) in COLOURS {
        let count = document.elements.iter().filter(|element| element.kind == *kind).count();
        if count > 0 {
            let _ = write!(
                html,
                "<b class=\"t\" style=\"background:{colour}\">{kind} {count}</b>",
                kind = kind.as_str()
            );
        }
    }
    html.push_str("</p>");
    for warning in &document.warnings {
        let _ = write!(html, "<p>&#9888; {}</p>", escaped(&warning.message));
    }
}

/// A page: its picture with the boxes over it, and the list of its elements.
fn page(html: &mut String, document: &Document, number: u32, picture: Option<Vec<u8>>) {
    let elements: Vec<(usize, &Element)> = document
        .elements
        .iter()
        .filter(|element| element.metadata.page_number == Some(number) && element.kind != ElementType::PageBreak)
        .enumerate()
        .map(|(index, element)| (index + 1, element))
        .collect();
    let _ = write!(
        html,
        "<h2>Page {number} <small>{}</small></h2>",
        route(document, number)
    );
    let size = elements
        .iter()
        .find_map(|(_, element)| element.metadata.coordinates.as_ref());
    let (width, height) = size.map_or((612.0, 792.0), |place| (place.layout_width, place.layout_height));
    html.push_str("<div class=\"page\"><div class=\"sheet\">");
    match &picture {
        Some(jpeg) => {
            let _ = write!(
                html,
                "<img alt=\"\" src=\"data:image/jpeg;base64,{}\">",
                STANDARD.encode(jpeg)
            );
        }
        None => html.push_str("<p>This page cannot be drawn.</p>"),
    }
    let _ = write!(
        html,
        "<svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\">"
    );
    order(html, &elements);
    for (index, element) in &elements {
        boxes(html, *index, element, width, number);
    }
    html.push_str("</svg></div><ol>");
    for (_, element) in &elements {
        item(html, element);
    }
    html.push_str("</ol></div>");
}

/// How a page was read, in words.
fn route(document: &Document, number: u32) -> String {
    let Some(route) = document.routes.iter().find(|route| route.page_number == number) else {
        return String::new();
    };
    let name = serde_json::to_value(route.route).ok();
    let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("{name}, {:.0} ms", route.ms);
    if let Some(confidence) = route.confidence {
        let _ = write!(text, ", recognised with {confidence:.0} % confidence");
    }
    if !route.languages.is_empty() {
        let _ = write!(text, " in {}", route.languages.join(", "));
    }
    escaped(&text)
}

/// A line from element to element in the order they are read.
fn order(html: &mut String, elements: &[(usize, &Element)]) {
    let middles = elements.iter().filter_map(|(_, element)| {
        let [x0, y0, x1, y1] = element.metadata.coordinates.as_ref()?.bbox();
        Some(((x0 + x1) / 2.0, (y0 + y1) / 2.0))
    });
    let mut path = String::new();
    for (x, y) in middles {
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
    }
    if !path.is_empty() {
        let _ = write!(html, "<path d=\"{path}\"/>");
    }
}

/// The box of an element with its number, and those of its cells.
fn boxes(html: &mut String, index: usize, element: &Element, page_width: f64, number: u32) {
    let Some(place) = element.metadata.coordinates.as_ref().map(Coordinates::bbox) else {
        return;
    };
    let rect = |html: &mut String, attributes: &str, [x0, y0, x1, y1]: [f64; 4], title: &str| {
        let _ = write!(
            html,
            "<rect {attributes} x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{title}</title></rect>",
            (x1 - x0).max(0.0),
            (y1 - y0).max(0.0)
        );
    };
    let colour = colour(element.kind);
    let title = format!("{index} {}: {}", element.kind.as_str(), escaped(&short(&element.text)));
    rect(html, &format!("fill=\"{colour}\" stroke=\"{colour}\""), place, &title);
    let cells = element.metadata.extra.get("table_as_cells").and_then(Value::as_array);
    for cell in cells.into_iter().flatten() {
        let bbox: Vec<f64> = cell
            .get("bbox")
            .and_then(Value::as_array)
            .map(|bbox| bbox.iter().filter_map(Value::as_f64).collect())
            .unwrap_or_default();
        let is_here = cell.get("page_number").is_none_or(|page| *page == number);
        let text = cell.get("content").and_then(Value::as_str).unwrap_or_default();
        if let Ok(bbox) = <[f64; 4]>::try_from(bbox)
            && is_here
        {
            rect(html, "class=\"cell\"", bbox, &escaped(&short(text)));
        }
    }
    let _ = write!(
        html,
        "<text fill=\"{colour}\" transform=\"translate({:.1} {:.1}) scale({:.3})\">{index}</text>",
        place[0],
        place[1],
        page_width / 600.0
    );
}

fn item(html: &mut String, element: &Element) {
    let metadata = &element.metadata;
    let _ = write!(
        html,
        "<li><b class=\"t\" style=\"background:{}\">{}</b> ",
        colour(element.kind),
        element.kind.as_str()
    );
    if let Some(depth) = metadata.category_depth {
        let _ = write!(html, "<small>depth {depth}</small> ");
    }
    if let Some(confidence) = metadata.extra.get("ocr_confidence").and_then(Value::as_u64) {
        let _ = write!(html, "<small>{confidence} %</small> ");
    }
    let _ = write!(html, "{}</li>", escaped(&short(&element.text)));
}

fn colour(kind: ElementType) -> &'static str {
    let known = COLOURS.iter().find(|(known, _)| *known == kind);
    known.map_or(OTHER, |(_, colour)| colour)
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_TEXT).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        short.push('…');
    }
    short
}

/// Text in HTML: what it means there is taken from it, and characters that no page may hold are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            ch if ch.is_control() => {}
            ch => out.push(ch),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::partition;

    use super::*;

    /// A page of 400 by 600 points with a ruled table of two columns and a line of text below.
    fn pdf(line: &str) -> Input {
        let mut content = String::new();
        for y in [500, 530, 560] {
            content += &format!("40 {y} m 340 {y} l S ");
        }
        for x in [40, 190, 340] {
            content += &format!("{x} 500 m {x} 560 l S ");
        }
        for (x, y, text) in [
            (50, 540, "Year"),
            (200, 540, "Rain"),
            (50, 510, "1871"),
            (200, 510, "12"),
            (40, 400, line),
        ] {
            content += &format!("BT /F 11 Tf {x} {y} Td ({text}) Tj ET ");
        }
        let bytes = crate::pdf::one_page(&content);
        Input {
            bytes,
            filename: Some("a <b>.pdf".into()),
            content_type: None,
        }
    }

    fn shown(input: &Input) -> Option<String> {
        let options = PartitionOptions {
            coordinates: true,
            infer_table_structure: true,
            ..PartitionOptions::default()
        };
        let limits = ParseLimits::default();
        let document = partition(input, &options, &limits, &mut |_| {}).unwrap();
        inspect(input, &document, &options, (&limits, &Tools::default())).unwrap()
    }

    #[test]
    fn pages_are_shown_with_boxes_cells_and_order() {
        let html = shown(&pdf("The rain was measured every day.")).unwrap();
        assert!(html.contains("viewBox=\"0 0 400 600\""));
        assert!(html.contains("src=\"data:image/jpeg;base64,/9j/"));
        assert_eq!(html.matches("class=\"cell\"").count(), 4);
        assert_eq!(html.matches("<text ").count(), 2);
        assert!(html.contains(">Table 1</b>") && html.contains("The rain was measured every day.</li>"));
        assert!(html.contains("<path d=\"M190.0 "));
    }

    #[test]
    fn text_of_the_document_stays_text() {
        let html = shown(&pdf("<script>alert\\(1\\)</script> & \"quotes\"")).unwrap();
        assert!(!html.contains("<script") && !html.contains("a <b>"));
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quotes&quot;"));
        assert!(html.contains("<title>a &lt;b&gt;.pdf</title>"));
    }

    #[test]
    fn formats_without_pages_have_nothing_to_show() {
        let text = Input {
            bytes: Arc::new(b"Some text.".to_vec()),
            filename: Some("a.txt".into()),
            content_type: None,
        };
        assert_eq!(shown(&text), None);
    }
}
