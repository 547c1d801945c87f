//! Size and weight of the type of words, measured in the picture.

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
