//! Marked content that is open while a page is drawn, and the words a tagged file gives in place of what is
//! drawn there: `/ActualText` for characters, `/Alt` for pictures.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_interpret::hayro_syntax::object::{Dict, String as PdfString};

use super::super::engine::{Direction, Glyph};
use super::super::script::is_blank;
use super::super::text::{bullet_length, text_string};

/// Characters drawn and given that are replaced at most; longer text is a description of a whole part.
const MAX_REPLACED: usize = 256;
/// How far apart baselines of replaced characters may be, in font sizes: raised characters may be among them.
const BASELINE: f32 = 0.6;

/// What the structure tree says of the marked content of a page, by its identifier.
#[derive(Clone, Debug, Default)]
pub(in crate::pdf) struct Words {
    /// Text in place of what is drawn.
    pub(in crate::pdf) actual: HashMap<u32, Rc<str>>,
    /// Descriptions of figures.
    pub(in crate::pdf) described: HashMap<u32, Rc<str>>,
}

/// Marked content that has begun.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// Index into the tags of the page.
    pub(super) tag: u32,
    /// Text in place of the characters drawn.
    pub(super) actual: Option<Rc<str>>,
    /// Description of the figure drawn; that of the mark around it when it has none.
    pub(super) described: Option<Rc<str>>,
    /// Where its characters begin.
    pub(super) first: usize,
}

/// The words a dictionary has under a key.
pub(in crate::pdf) fn words_of(dict: &Dict<'_>, key: &[u8]) -> Option<Rc<str>> {
    let words = text_string(dict.get::<PdfString<'_>>(key)?.as_bytes());
    (!words.trim().is_empty()).then(|| Rc::from(words))
}

/// The characters of `text` in the place of those drawn; none when they do not stand on one line.
pub(super) fn replaced(drawn: &[Glyph], text: &str) -> Option<Vec<Glyph>> {
    let first = *drawn.first()?;
    let count = text.chars().count();
    // For a bullet programs give the letter that has its place in other fonts.
    let is_bullet = first.ch != '-' && bullet_length(first.ch.encode_utf8(&mut [0; 4])).is_some();
    if drawn.len() == 1 && is_bullet {
        return None;
    }
    // A blank beside a symbol may have the letter that the symbol is encoded as; nobody sees it.
    if drawn.iter().all(|glyph| is_blank(glyph.ch)) {
        return None;
    }
    if count == 0 || drawn.len().max(count) > MAX_REPLACED || text.trim().is_empty() {
        return None;
    }
    let flat = match first.direction {
        Direction::East | Direction::West => true,
        Direction::South | Direction::North => false,
        Direction::Oblique => return None,
    };
    let along = |glyph: &Glyph| if flat { glyph.x } else { glyph.y };
    let across = |glyph: &Glyph| if flat { glyph.y } else { glyph.x };
    let sign = match first.direction {
        Direction::West | Direction::North => -1.0,
        _ => 1.0,
    };
    let on_line = |glyph: &Glyph| {
        glyph.direction == first.direction && (across(glyph) - across(&first)).abs() <= BASELINE * first.size
    };
    if !drawn.iter().all(on_line) {
        return None;
    }
    let start = drawn.iter().map(|g| sign * along(g)).fold(f32::INFINITY, f32::min);
    let ends = drawn.iter().map(|g| sign * along(g) + g.advance);
    let end = ends.fold(f32::NEG_INFINITY, f32::max);
    let share = (end - start) / count as f32;
    let largest = drawn.iter().copied().max_by(|a, b| a.size.total_cmp(&b.size))?;
    Some(
        text.chars()
            .enumerate()
            .map(|(index, ch)| {
                let at = sign * (start + share * index as f32);
                let (x, y) = if flat { (at, largest.y) } else { (largest.x, at) };
                Glyph {
                    ch,
                    x,
                    y,
                    advance: share,
                    ..largest
                }
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::typeset;
    use super::*;

    #[test]
    fn text_takes_the_place_of_what_is_drawn() {
        let drawn = typeset(&[(50.0, 100.0, 10.0, "(c)")]).glyphs;
        let copyright = replaced(&drawn, "\u{A9}").unwrap();
        assert_eq!(copyright.len(), 1);
        assert_eq!(
            (copyright[0].ch, copyright[0].x, copyright[0].advance),
            ('\u{A9}', 50.0, 15.0)
        );
        let drawn = typeset(&[(50.0, 100.0, 10.0, "ab")]).glyphs;
        let longer = replaced(&drawn, "wxyz").unwrap();
        assert_eq!(longer.iter().map(|g| g.x).collect::<Vec<_>>(), [50.0, 52.5, 55.0, 57.5]);
    }

    #[test]
    fn text_over_several_lines_stays() {
        let drawn = typeset(&[(50.0, 100.0, 10.0, "ab"), (50.0, 112.0, 10.0, "cd")]).glyphs;
        assert_eq!(replaced(&drawn, "abcd"), None);
        assert_eq!(replaced(&drawn[..2], "  "), None);
        let bullet = typeset(&[(50.0, 100.0, 10.0, "\u{F0A2}")]).glyphs;
        assert_eq!(replaced(&bullet, "h"), None);
        let blank = typeset(&[(50.0, 100.0, 10.0, " ")]).glyphs;
        assert_eq!(replaced(&blank, "h"), None);
        assert_eq!(replaced(&[], "x"), None);
    }
}
