//! Size and weight of the type of words, measured in the picture.

use crate::ink::{Ink, runs};
use crate::raster::Gray;

/// Shares of the font size that common typefaces agree on.
const CAP_HEIGHT: f32 = 0.70;
const ASCENDER: f32 = 0.73;
const X_HEIGHT: f32 = 0.50;
const DESCENDER: f32 = 0.21;
/// Small letters and marks that rise to the ascender.
const RISING: &str = "bdfhklßàáâãäåæèéêëìíîïòóôõöùúûüýñčďěňřšťůžłńśźżőűşğ()[]{}|/\\!?\"'бёйфўάέήίόύώΐΰβδζθλξφψϊϋ";
/// Small letters and marks that hang below the baseline.
const HANGING: &str = "gjpqyçşąęţ()[]{}|/,;руфцщдγζημξρςφχψβ";
/// East Asian characters nearly fill their square.
const SQUARE: f32 = 0.90;

/// The font size, in pixels, that a word's box suggests. `base` is where its baseline runs.
pub(crate) fn font_size(text: &str, [_, top, _, bottom]: [f32; 4], base: f32) -> f32 {
    let tall = text.chars().any(|ch| ch.is_uppercase() || ch.is_ascii_digit());
    let rises = text.chars().any(|ch| RISING.contains(ch));
    let hangs = text.chars().any(|ch| HANGING.contains(ch));
    if text.chars().any(is_square) {
        return (bottom - top) / SQUARE;
    }
    let latin = text.chars().any(|ch| ch.is_alphanumeric());
    if !latin {
        return 0.0;
    }
    let has_cases = text
        .chars()
        .any(|ch| ch.is_lowercase() || ch.is_uppercase() || ch.is_ascii_digit());
    if !has_cases {
        // Scripts without cases: letters stand between the baseline and some three quarters above.
        return (base - top).max(bottom - top - DESCENDER * (bottom - top)) / ASCENDER;
    }
    let above = if rises {
        ASCENDER
    } else if tall {
        CAP_HEIGHT
    } else if text.contains(['i', 't', 'j', 'і', 'ї', 'ı']) {
        0.66
    } else {
        X_HEIGHT
    };
    let upper = (base - top) / above;
    let whole = (bottom - top) / (above + if hangs { DESCENDER } else { 0.0 });
    // The baseline of a line is an estimate; the box is exact.
    if upper > 0.0 { (upper + whole) / 2.0 } else { whole }
}

/// Characters as high as their font is large.
pub(crate) fn is_square(ch: char) -> bool {
    matches!(ch, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}')
}

/// Mean thickness of a word's strokes in pixels; 0 when there is no ink.
///
/// A stroke of thickness t and length n has n times t pixels of ink and 2 n of outline.
pub(crate) fn stroke(page: &Gray, [x0, y0, x1, y1]: [i32; 4], threshold: u8) -> f32 {
    let clip = |value: i32, end: usize| usize::try_from(value).unwrap_or(0).min(end);
    let (x0, x1) = (clip(x0, page.width()), clip(x1, page.width()));
    let (y0, y1) = (clip(y0, page.height()), clip(y1, page.height()));
    // Grey edges count for their share, or thin strokes of small type would all measure alike.
    let span = f32::from(threshold).max(1.0) * 1.6;
    let ink = |value: u8| (1.0 - f32::from(value) / span).clamp(0.0, 1.0);
    let (mut area, mut outline) = (0.0f32, 0.0f32);
    let mut above: Vec<u8> = vec![255; x1.saturating_sub(x0)];
    for row in page.rows().take(y1).skip(y0) {
        let mut left = 255u8;
        for (value, up) in row.iter().take(x1).skip(x0).zip(&mut above) {
            area += ink(*value);
            outline += (ink(*value) - ink(left)).abs() + (ink(*value) - ink(*up)).abs();
            (left, *up) = (*value, *value);
        }
    }
    if outline < 1.0 { 0.0 } else { 2.5 * area / outline }
}

/// Heights of pieces of ink, in pixels, that letters may have.
const LETTERS: std::ops::RangeInclusive<usize> = 3..=60;
/// Fewer letters say nothing of the type of a page.
const FEW: usize = 60;
/// The middle height of a page's letters as a share of the font size: most have no part above or below.
const MIDDLE: f32 = 0.52;

/// The usual font size of a page, in pixels, by the pieces of ink on it, before anything has been read;
/// `None` when there are too few.
pub(crate) fn type_size(page: &Gray, threshold: u8) -> Option<f32> {
    let mut heights = letter_heights(&Ink::rows(page, threshold));
    if heights.len() < FEW {
        return None;
    }
    let middle = heights.len() / 2;
    Some(*heights.select_nth_unstable(middle).1 as f32 / MIDDLE)
}

/// A piece of ink while its rows are gathered.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The piece it has been joined to, or itself.
    parent: usize,
    top: usize,
    bottom: usize,
    left: usize,
    right: usize,
}

/// Heights of the pieces of ink that are shaped like letters.
fn letter_heights(ink: &Ink) -> Vec<usize> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut above: Vec<(usize, usize, usize)> = Vec::new();
    let mut here: Vec<(usize, usize, usize)> = Vec::new();
    for y in 0..ink.count() {
        here.clear();
        let mut first = 0;
        for (left, right) in runs(ink.line(y)) {
            while above.get(first).is_some_and(|(_, end, _)| *end < left) {
                first += 1;
            }
            let mut own = None;
            for (_, _, piece) in above.iter().skip(first).take_while(|(start, ..)| *start <= right) {
                let root = root(&mut pieces, *piece);
                own = Some(own.map_or(root, |own| join(&mut pieces, own, root)));
            }
            let own = own.unwrap_or(pieces.len());
            match pieces.get_mut(own) {
                Some(piece) => {
                    piece.bottom = y;
                    (piece.left, piece.right) = (piece.left.min(left), piece.right.max(right));
                }
                None => pieces.push(Piece {
                    parent: own,
                    top: y,
                    bottom: y,
                    left,
                    right,
                }),
            }
            here.push((left, right, own));
        }
        std::mem::swap(&mut above, &mut here);
    }
    let whole = pieces
        .iter()
        .enumerate()
        .filter(|(index, piece)| piece.parent == *index);
    whole
        .map(|(_, piece)| (piece.bottom + 1 - piece.top, piece.right - piece.left))
        .filter(|(height, width)| LETTERS.contains(height) && *width <= 3 * height && *height <= 6 * width)
        .map(|(height, _)| height)
        .collect()
}

/// The piece that a piece has been joined to in the end.
fn root(pieces: &mut [Piece], mut index: usize) -> usize {
    while let Some(parent) = pieces.get(index).map(|piece| piece.parent)
        && parent != index
    {
        // Halves the way for the next time.
        let next = pieces.get(parent).map_or(parent, |piece| piece.parent);
        if let Some(piece) = pieces.get_mut(index) {
            piece.parent = next;
        }
        index = next;
    }
    index
}

/// Joins two pieces into the older one.
fn join(pieces: &mut [Piece], a: usize, b: usize) -> usize {
    let (old, new) = (a.min(b), a.max(b));
    if let Some(gone) = pieces.get_mut(new).filter(|_| old != new) {
        gone.parent = old;
        let gone = *gone;
        if let Some(piece) = pieces.get_mut(old) {
            piece.top = piece.top.min(gone.top);
            piece.bottom = piece.bottom.max(gone.bottom);
            (piece.left, piece.right) = (piece.left.min(gone.left), piece.right.max(gone.right));
        }
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_of_a_line_suggest_the_same_size() {
        // Baseline at 100, font size 20.
        let size = |text, top: f32, bottom: f32| font_size(text, [0.0, top, 50.0, bottom], 100.0);
        for (text, top, bottom) in [
            ("Hand", 85.4, 100.0),
            ("sonne", 90.0, 100.0),
            ("gap", 90.0, 104.2),
            ("A1", 86.0, 100.0),
        ] {
            assert!(
                (size(text, top, bottom) - 20.0).abs() < 1.5,
                "{text}: {}",
                size(text, top, bottom)
            );
        }
    }

    #[test]
    fn the_size_of_type_shows_before_it_is_read() {
        // Rings, some of them with a stem, 8 pixels high without it, and a frame around all.
        let mut page = Gray::new(400, 200, Vec::new()).unwrap();
        let mut fill = |x: std::ops::Range<usize>, y: std::ops::Range<usize>| {
            for row in y {
                x.clone().for_each(|column| page.set(column, row, 0));
            }
        };
        fill(2..398, 2..4);
        fill(2..4, 2..198);
        for (index, (x, y)) in (10..380)
            .step_by(12)
            .flat_map(|x| (20..180).step_by(25).map(move |y| (x, y)))
            .enumerate()
        {
            fill(x..x + 2, y + if index % 4 == 0 { 0 } else { 4 }..y + 12);
            fill(x + 6..x + 8, y + 4..y + 12);
            fill(x..x + 8, y + 10..y + 12);
        }
        let size = type_size(&page, 128).unwrap();
        assert!((size - 8.0 / MIDDLE).abs() < 0.1, "{size}");
        assert_eq!(type_size(&Gray::new(300, 300, Vec::new()).unwrap(), 128), None);
    }

    #[test]
    fn thick_strokes_measure_thicker() {
        let page = |thick: usize| {
            let mut page = Gray::new(100, 40, Vec::new()).unwrap();
            for x in (10..90).filter(|x| x % 16 < thick) {
                for y in 10..30 {
                    page.set(x, y, 0);
                }
            }
            page
        };
        let measure = |thick| stroke(&page(thick), [0, 0, 100, 40], 128);
        assert!(measure(5) > 1.4 * measure(3));
        assert_eq!(
            stroke(&Gray::new(10, 10, Vec::new()).unwrap(), [0, 0, 10, 10], 128),
            0.0
        );
    }
}
