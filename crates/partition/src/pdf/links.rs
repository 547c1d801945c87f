//! Link annotations: the text they cover, and where it stands in an element.

use docmill_model::metadata::Link;

use super::engine::{Direction, Font, Glyph, PageContent};
use super::frame::Frame;
use super::spacing::text_of;

/// A link with the text it covers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkedText {
    /// Middle of the covered area on the page.
    pub(super) middle: (f32, f32),
    pub(super) text: String,
    pub(super) url: String,
}

/// Finds the upright text under the links of a page.
pub(super) fn linked_texts(content: &PageContent, fonts: &[Font]) -> Vec<LinkedText> {
    if content.links.is_empty() {
        return Vec::new();
    }
    let frame = Frame::new(Direction::East, content.width, content.height);
    let upright = content.glyphs.iter().filter(|glyph| glyph.direction == Direction::East);
    let mut by_height: Vec<&Glyph> = upright.collect();
    // Stable, so that the characters of one line stay in the order they are drawn.
    by_height.sort_by(|a, b| a.y.total_cmp(&b.y));
    content
        .links
        .iter()
        .filter_map(|link| {
            let texts: Vec<String> = link
                .boxes
                .iter()
                .map(|bbox| text_under(&by_height, *bbox, &frame, fonts))
                .filter(|text| !text.is_empty())
                .collect();
            let [x0, y0, x1, y1] = *link.boxes.first()?;
            (!texts.is_empty()).then(|| LinkedText {
                middle: ((x0 + x1) / 2.0, (y0 + y1) / 2.0),
                text: texts.join(" "),
                url: link.url.clone(),
            })
        })
        .collect()
}

/// The text in a box; `by_height` holds the characters of the page from top to bottom.
fn text_under(by_height: &[&Glyph], [x0, y0, x1, y1]: [f32; 4], frame: &Frame, fonts: &[Font]) -> String {
    let first = by_height.partition_point(|glyph| glyph.y < y0);
    let mut under: Vec<(&Glyph, bool)> = by_height
        .iter()
        .skip(first)
        .take_while(|glyph| glyph.y - 0.35 * glyph.size <= y1)
        .filter(|glyph| (x0..=x1).contains(&(glyph.x + glyph.advance / 2.0)) && glyph.y - 0.35 * glyph.size >= y0)
        .map(|glyph| (*glyph, false))
        .collect();
    under.sort_by(|(a, _), (b, _)| {
        let line = |glyph: &Glyph| (glyph.y / glyph.size.max(1.0)).round();
        line(a).total_cmp(&line(b)).then(a.x.total_cmp(&b.x))
    });
    text_of(&spaced(under), frame, fonts).0
}

/// Turns space characters and new lines into marks on the character after them.
fn spaced(glyphs: Vec<(&Glyph, bool)>) -> Vec<(&Glyph, bool)> {
    let mut out: Vec<(&Glyph, bool)> = Vec::with_capacity(glyphs.len());
    let mut space = false;
    for (glyph, _) in glyphs {
        if super::script::is_blank(glyph.ch) {
            space = true;
            continue;
        }
        let new_line = out.last().is_some_and(|(last, _)| glyph.x < last.x);
        out.push((glyph, (space || new_line) && !out.is_empty()));
        space = false;
    }
    out
}

/// The links within a box of the page, with their places in `text`.
pub(super) fn links_in(links: &[LinkedText], bbox: [f32; 4], text: &str) -> Vec<Link> {
    let [x0, y0, x1, y1] = bbox;
    let mut from = 0;
    links
        .iter()
        .filter(|link| (x0..=x1).contains(&link.middle.0) && (y0..=y1).contains(&link.middle.1))
        .map(|link| {
            let found = text
                .get(from..)
                .and_then(|rest| rest.find(&link.text))
                .map(|at| at + from)
                .or_else(|| text.find(&link.text));
            if let Some(at) = found {
                from = at + link.text.len();
            }
            Link {
                text: link.text.clone(),
                url: link.url.clone(),
                start_index: found
                    .and_then(|at| text.get(..at))
                    .map_or(-1, |before| before.chars().count() as i64),
            }
        })
        .collect()
}
