//! Sizes of recognised type.
//!
//! Text recognition gives every word a size of its own, measured from letters with and without ascenders. Most
//! text behind scans is invisible and known by it; some is drawn and then covered by the picture, and is known by
//! sizes that change from word to word.

use super::engine::PageContent;
use super::script::is_blank;
use super::segment::Segment;

/// Sizes within these ratios to the median are made one.
const NEAR: std::ops::Range<f32> = 0.65..1.5;
/// Ratio of the sizes of two words from which on they differ.
const DIFFERENT: f32 = 1.015;
/// Pairs of words from which on they tell anything.
const MIN_PAIRS: usize = 40;
/// Percentage of the pairs of words that differ in measured type.
const MEASURED: usize = 30;

/// Makes the sizes around the median one where they were measured.
pub(super) fn even_sizes(segments: &mut [Segment], content: &PageContent) {
    let hidden = content.hidden * 2 > content.glyphs.len();
    let mut sizes: Vec<f32> = segments.iter().map(|segment| segment.size).collect();
    if sizes.is_empty() || !(hidden || is_measured(content)) {
        return;
    }
    let middle = sizes.len() / 2;
    let usual = *sizes.select_nth_unstable_by(middle, f32::total_cmp).1;
    for segment in segments {
        if NEAR.contains(&(segment.size / usual)) {
            segment.size = usual;
        }
        segment.bold = false;
    }
}

/// Whether sizes change from word to word.
fn is_measured(content: &PageContent) -> bool {
    let (mut pairs, mut different) = (0, 0);
    let mut last = None;
    let mut space = false;
    for glyph in &content.glyphs {
        if is_blank(glyph.ch) {
            space = true;
            continue;
        }
        if let Some((x, y, size)) = last.replace((glyph.x + glyph.advance, glyph.y, glyph.size)) {
            let near = (glyph.y - y).abs() < 0.3 * size && (glyph.x - x).abs() < 2.0 * size;
            let parted = space || glyph.x - x > 0.15 * size;
            let ratio = glyph.size.max(size) / glyph.size.min(size).max(0.1);
            if near && parted && NEAR.contains(&ratio) {
                pairs += 1;
                different += usize::from(ratio > DIFFERENT);
            }
        }
        space = false;
    }
    pairs >= MIN_PAIRS && different * 100 > pairs * MEASURED
}

#[cfg(test)]
mod tests {
    use super::super::engine::{Direction, PageContent};
    use super::super::segment::segments;
    use super::super::testing::typeset;
    use super::*;

    /// The sizes of lines after evening. Of each line's words, the size of one is its own and that of the others
    /// `shrink` of it.
    fn evened(sizes: &[f32], shrink: f32, hidden: bool) -> Vec<f32> {
        let mut rows = Vec::new();
        for (row, size) in sizes.iter().enumerate() {
            let mut x = 50.0;
            for (word, text) in ["every", "word", "of", "the", "line"].into_iter().enumerate() {
                let size = if word % 2 == 0 { *size } else { size * shrink };
                rows.push((x, 40.0 + 40.0 * row as f32, size, text));
                x += text.len() as f32 * size / 2.0 + 0.3 * size;
            }
        }
        let mut content: PageContent = typeset(&rows);
        content.hidden = if hidden { content.glyphs.len() } else { 0 };
        let mut segments = segments(&content, &[], Direction::East);
        even_sizes(&mut segments, &content);
        segments.iter().map(|segment| segment.size).collect()
    }

    const SIZES: [f32; 12] = [24.0, 10.0, 11.3, 9.4, 12.1, 10.4, 8.8, 11.7, 9.7, 10.9, 12.6, 9.1];

    #[test]
    fn measured_sizes_are_made_one() {
        for even in [evened(&SIZES, 0.95, false), evened(&SIZES, 1.0, true)] {
            assert_eq!(even[0], 24.0);
            assert!(even[1..].iter().all(|size| *size == even[1]), "{even:?}");
        }
    }

    #[test]
    fn sizes_that_are_set_stay() {
        assert_eq!(evened(&SIZES, 1.0, false), SIZES);
        // Too few words to tell.
        assert_eq!(evened(&SIZES[..4], 0.95, false), SIZES[..4]);
    }
}
