//! Text of characters in a row: where the spaces are.

use super::engine::{Font, Glyph, UNKNOWN};
use super::frame::Frame;
use super::script::{is_east_asian, is_mark, is_right_to_left, push_clean, to_logical};

/// A space wider than this many font sizes is noted: it may separate cells.
const BREAK_GAP: f32 = 0.36;

/// Largest size of a raised character, in sizes of the line, and how far it stands above.
const RAISED_SIZE: f32 = 0.85;
const RAISED_FROM: f32 = 0.2;
const RAISED_TO: f32 = 0.7;

/// Gap between letters, in font sizes, that is none.
const TIGHT: f32 = 0.02;
/// A space between such letters.
const NARROW_SPACE: f32 = 0.11;

/// A wide space within a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Break {
    /// Where the text goes on after the space, in bytes.
    pub(super) at: usize,
    /// Where the space begins on the page.
    pub(super) x0: f32,
    /// Where it ends.
    pub(super) x1: f32,
}

/// The text of characters given from left to right, with spaces where the gaps say so.
pub(super) fn text_of(parts: &[(&Glyph, bool)], frame: &Frame, fonts: &[Font]) -> (String, Vec<Break>) {
    let places: Vec<(f32, f32)> = parts.iter().map(|(glyph, _)| frame.map(glyph.x, glyph.y)).collect();
    let threshold = space_threshold(parts, &places);
    let rtl = parts.iter().any(|(glyph, _)| is_right_to_left(glyph.ch));
    let mut text = String::with_capacity(parts.len() + parts.len() / 4);
    let mut visual = Vec::new();
    let mut breaks = Vec::new();
    let mut end = f32::NEG_INFINITY;
    let mut last: Option<&Glyph> = None;
    let mut raised = Raised::default();
    for (&(glyph, space), &(x, base)) in parts.iter().zip(&places) {
        let is_raised = raised.is_raised(glyph, base);
        if let Some(previous) = last {
            let size = previous.size.max(glyph.size);
            let gap = x - end;
            let wide = if is_east_asian(previous.ch) && is_east_asian(glyph.ch) {
                gap > (threshold + 0.2) * size
            } else {
                gap > threshold * size
            };
            if (space || wide) && !is_mark(glyph.ch) {
                if rtl {
                    visual.push(' ');
                } else {
                    text.push(' ');
                    if gap > BREAK_GAP * size {
                        breaks.push(Break {
                            at: text.len(),
                            x0: end,
                            x1: x,
                        });
                    }
                }
            }
        }
        if glyph.ch == UNKNOWN {
            // At the start and set apart it is most likely a bullet; elsewhere nothing is known.
            if last.is_none() && parts.len() < 2 || last.is_none() && is_set_apart(parts, frame) {
                text.push('\u{2022}');
                visual.push('\u{2022}');
            }
        } else if rtl {
            visual.push(glyph.ch);
        } else if fonts.get(usize::from(glyph.font)).is_some_and(|font| font.dingbats) {
            text.push('\u{2022}');
        } else {
            // Plain digits would be digits of the number before them.
            let superscript = superscript(glyph.ch).filter(|_| is_raised && text.ends_with(char::is_alphanumeric));
            match superscript {
                Some(ch) => text.push(ch),
                None => push_clean(&mut text, glyph.ch),
            }
        }
        end = end.max(x + glyph.advance);
        last = Some(glyph);
    }
    if rtl {
        to_logical(&visual).into_iter().for_each(|ch| push_clean(&mut text, ch));
    }
    (text, breaks)
}

/// Tells small characters above the line from those on it.
#[derive(Default)]
struct Raised {
    /// Baseline and size of the last character on the line.
    line: Option<(f32, f32)>,
}

impl Raised {
    fn is_raised(&mut self, glyph: &Glyph, base: f32) -> bool {
        let raised = self.line.is_some_and(|(line, size)| {
            glyph.size < RAISED_SIZE * size && (RAISED_FROM * size..RAISED_TO * size).contains(&(line - base))
        });
        if !raised {
            self.line = Some((base, glyph.size));
        }
        raised
    }
}

/// The superscript form of a digit or sign.
fn superscript(ch: char) -> Option<char> {
    Some(match ch {
        '0' => '\u{2070}',
        '1' => '\u{B9}',
        '2' => '\u{B2}',
        '3' => '\u{B3}',
        '4'..='9' => char::from_u32(0x2070 + (ch as u32 - '0' as u32))?,
        '+' => '\u{207A}',
        '-' | '\u{2212}' => '\u{207B}',
        _ => return None,
    })
}

/// Whether the first character is followed by a gap.
fn is_set_apart(parts: &[(&Glyph, bool)], frame: &Frame) -> bool {
    match parts {
        [(a, _), (b, space), ..] => *space || frame.map(b.x, b.y).0 - frame.map(a.x, a.y).0 - a.advance > 0.2 * a.size,
        _ => false,
    }
}

/// How wide a gap, in font sizes, stands for a space. Spaced-out text has gaps everywhere; there
/// only those count that are clearly wider than the usual.
fn space_threshold(parts: &[(&Glyph, bool)], places: &[(f32, f32)]) -> f32 {
    let explicit = parts.iter().any(|&(_, space)| space);
    let least = if explicit { 0.22 } else { 0.15 };
    if parts.len() < 6 {
        return least;
    }
    let (mut between, mut spaces) = (0, 0);
    let pairs = parts.windows(2).zip(places.windows(2));
    let mut gaps: Vec<i32> = pairs
        .filter_map(|pair| match pair {
            ([(a, _), (b, _)], [(from, _), (to, _)]) => {
                let gap = (to - from - a.advance) / a.size.max(b.size);
                between += usize::from((TIGHT..NARROW_SPACE).contains(&gap));
                spaces += usize::from(gap >= NARROW_SPACE);
                Some(ordered(gap))
            }
            _ => None,
        })
        .collect();
    let (quartile, most) = (gaps.len() / 4, gaps.len() * 6 / 10);
    let (_, usual, above) = gaps.select_nth_unstable(quartile);
    let usual = from_ordered(*usual);
    // Where letters stand exactly side by side, narrower spaces show.
    let level = match most.checked_sub(quartile + 1) {
        Some(rank) if rank < above.len() => from_ordered(*above.select_nth_unstable(rank).1),
        _ => usual,
    };
    let tight = level.abs() < TIGHT;
    let least = if !explicit && tight && between == 0 && spaces * 4 > parts.len() / 2 {
        NARROW_SPACE
    } else {
        least
    };
    // Letters set closer than their widths, or widths that are wrong, make spaces narrower too.
    least + usual.clamp(-0.1, 1.0)
}

/// A number that is in the same order among others as a float is: comparing it takes half as long.
fn ordered(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

/// The float of such a number.
fn from_ordered(bits: i32) -> f32 {
    f32::from_bits((bits ^ (((bits >> 31) as u32) >> 1) as i32) as u32)
}

#[cfg(test)]
mod tests {
    use super::super::engine::Direction;
    use super::*;

    #[test]
    fn numbers_in_place_of_floats_keep_their_order() {
        let floats = [
            f32::NEG_INFINITY,
            -2.5,
            -1e-30,
            -0.0,
            0.0,
            1e-30,
            0.11,
            2.5,
            f32::INFINITY,
        ];
        assert!(floats.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert!(
            floats
                .iter()
                .all(|float| from_ordered(ordered(*float)).to_bits() == float.to_bits())
        );
    }

    #[test]
    fn a_wide_gap_is_a_space_where_letters_are_spaced_out() {
        let glyph = |x: f32| Glyph {
            ch: 'a',
            x,
            y: 0.0,
            advance: 5.0,
            size: 10.0,
            font: 0,
            direction: Direction::East,
            tag: 0,
        };
        let text = |steps: &[f32]| {
            let mut x = 0.0;
            let glyphs: Vec<Glyph> = std::iter::once(&0.0)
                .chain(steps)
                .map(|step| {
                    x += step;
                    glyph(x)
                })
                .collect();
            let parts: Vec<(&Glyph, bool)> = glyphs.iter().map(|glyph| (glyph, false)).collect();
            text_of(&parts, &Frame::new(Direction::East, 400.0, 600.0), &[]).0
        };
        assert_eq!(text(&[5.0, 5.0, 7.0, 5.0, 5.0, 5.0, 5.0]), "aaa aaaaa");
        assert_eq!(text(&[8.0, 8.0, 13.0, 8.0, 8.0, 8.0, 8.0]), "aaa aaaaa");
        assert_eq!(text(&[5.0, 5.0, 6.3, 5.0, 5.0, 6.3, 5.0, 5.0]), "aaa aaa aaa");
    }
}
