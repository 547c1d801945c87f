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

/// The links whose first words lie in one of the boxes of a page, with their places in `text`.
pub(super) fn links_in(links: &[LinkedText], boxes: &[[f32; 4]], text: &str) -> Vec<Link> {
    let inside = |link: &LinkedText| {
        boxes
            .iter()
            .any(|[x0, y0, x1, y1]| (*x0..=*x1).contains(&link.middle.0) && (*y0..=*y1).contains(&link.middle.1))
    };
    let mut words: Option<Words> = None;
    let mut from = 0;
    links
        .iter()
        .filter(|link| inside(link))
        .map(|link| {
            let exact = text
                .get(from..)
                .and_then(|rest| rest.find(&link.text))
                .map(|at| at + from)
                .or_else(|| text.find(&link.text))
                .map(|at| (at, at + link.text.len()));
            let found = exact.or_else(|| words.get_or_insert_with(|| Words::new(text)).find(&link.text));
            if let Some((_, end)) = found {
                from = end;
            }
            let covered = found.and_then(|(start, end)| text.get(start..end));
            Link {
                text: covered.unwrap_or(&link.text).to_owned(),
                url: link.url.clone(),
                start_index: found
                    .and_then(|(start, _)| text.get(..start))
                    .map_or(-1, |before| before.chars().count() as i64),
            }
        })
        .collect()
}

/// A text without spaces, hyphens and the like, which lines joined or parted differently may not share.
struct Words {
    text: String,
    /// Per byte of `text`, where the character it belongs to stands in the original: start and end.
    places: Vec<(usize, usize)>,
}

impl Words {
    fn new(original: &str) -> Self {
        let mut words = Self {
            text: String::with_capacity(original.len()),
            places: Vec::with_capacity(original.len()),
        };
        for (at, ch) in original.char_indices().filter(|(_, ch)| ch.is_alphanumeric()) {
            words.text.push(ch);
            words.places.resize(words.text.len(), (at, at + ch.len_utf8()));
        }
        words
    }

    /// Start and end of a piece of text in the original.
    fn find(&self, piece: &str) -> Option<(usize, usize)> {
        let piece: String = piece.chars().filter(|ch| ch.is_alphanumeric()).collect();
        let start = self.text.find(&piece).filter(|_| !piece.is_empty())?;
        let last = start + piece.len() - 1;
        Some((self.places.get(start)?.0, self.places.get(last)?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> LinkedText {
        LinkedText {
            middle: (5.0, 5.0),
            text: text.to_owned(),
            url: "u".to_owned(),
        }
    }

    #[test]
    fn words_are_found_across_joined_lines() {
        let found = links_in(
            &[link("exam- ple site")],
            &[[0.0, 0.0, 9.0, 9.0]],
            "Über an example site here",
        );
        assert_eq!((found[0].text.as_str(), found[0].start_index), ("example site", 8));
        let found = links_in(
            &[link("elsewhere"), link("…")],
            &[[0.0, 0.0, 9.0, 9.0]],
            "no such thing",
        );
        assert_eq!((found[0].start_index, found[1].start_index), (-1, -1));
    }

    #[test]
    fn links_beside_the_boxes_are_others() {
        assert!(links_in(&[link("a")], &[[6.0, 0.0, 9.0, 9.0], [0.0, 6.0, 9.0, 9.0]], "a").is_empty());
    }
}
