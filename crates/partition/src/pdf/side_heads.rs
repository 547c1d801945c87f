//! Headings in a margin of their own, beside the text that they head.
//!
//! To a cut at gutters they look like the first column of a table. What tells them is that they are set bold or
//! larger, few and far between, each level with a line of one wide column of prose. They are read before the text
//! that stands from there down to the next.

use super::segment::Segment;

/// Narrowest strip between the margin and the text, in font sizes.
const MIN_STRIP: f32 = 0.5;
/// Widest margin, as a share of the width of all.
const MARGIN: f32 = 0.36;
/// Texts as wide as this share of all may run across.
const ACROSS: f32 = 0.7;
/// Space between two lines of the margin, in font sizes, from which on they are of two headings.
const APART: f32 = 1.8;
/// How far from level a heading and its text may be, in font sizes.
const LEVEL: f32 = 0.35;
/// Headings there must be.
const MIN_HEADS: usize = 2;
/// Letters of a heading.
const MIN_LETTERS: usize = 4;
/// Percentage of the headings that must be set as such, and be level with text.
const MOST: usize = 75;
/// Lines of text for each heading, characters of such a line, and longest line of a heading, on average.
const LINES: usize = 3;
const LINE_CHARS: usize = 36;
const HEAD_CHARS: usize = 32;
/// Places looked at for the strip.
const MAX_STRIPS: usize = 8;

/// Splits a region, sorted by baseline, into headings in the margin and what each of them heads; none when it has no such headings.
pub(super) fn side_heads(region: &[Segment]) -> Option<Vec<Vec<Segment>>> {
    let left = region.iter().map(|s| s.x0).fold(f32::INFINITY, f32::min);
    let right = region.iter().map(|s| s.x1).fold(f32::NEG_INFINITY, f32::max);
    let width = right - left;
    let mut spans: Vec<(f32, f32)> = region
        .iter()
        .filter(|s| s.x1 - s.x0 < ACROSS * width)
        .map(|s| (s.x0, s.x1))
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let em = region.iter().map(|s| s.size).fold(0.0, f32::max).min(12.0);
    let mut end = f32::INFINITY;
    let mut strips = Vec::new();
    for (x0, x1) in spans {
        if x0 - end > MIN_STRIP * em {
            strips.push((end + x0) / 2.0);
        }
        end = if end.is_finite() { end.max(x1) } else { x1 };
    }
    strips
        .into_iter()
        .take(MAX_STRIPS)
        .take_while(|strip| strip - left < MARGIN * width)
        .find_map(|strip| split(region, strip))
}

/// A heading in the margin.
struct Head {
    top: f32,
    bottom: f32,
    size: f32,
    bold: bool,
    letters: usize,
}

fn split(region: &[Segment], strip: f32) -> Option<Vec<Vec<Segment>>> {
    let in_margin = |s: &Segment| s.x1 <= strip && s.table.is_none();
    let mut heads: Vec<Head> = Vec::new();
    let (mut lines, mut chars) = (0, 0);
    for s in region.iter().filter(|s| in_margin(s)) {
        chars += s.text.chars().count();
        let letters = s.text.chars().filter(|ch| ch.is_alphabetic()).count();
        match heads.last_mut() {
            Some(head) if s.base - head.bottom < APART * s.size.max(head.size) => {
                lines += usize::from(s.base - head.bottom > LEVEL * s.size);
                head.bottom = s.base;
                head.size = head.size.max(s.size);
                head.bold |= s.bold;
                head.letters += letters;
            }
            _ => {
                lines += 1;
                heads.push(Head {
                    top: s.base,
                    bottom: s.base,
                    size: s.size,
                    bold: s.bold,
                    letters,
                });
            }
        }
    }
    if heads.len() < MIN_HEADS || chars > HEAD_CHARS * lines || !is_headed(region, strip, &heads) {
        return None;
    }
    // For each heading, its own text and what it heads; before them what stands above all.
    let mut parts: Vec<[Vec<Segment>; 2]> = (0..=heads.len()).map(|_| [Vec::new(), Vec::new()]).collect();
    for s in region {
        let top = if s.table.is_some() { s.y0 + s.size } else { s.base };
        let index = heads.partition_point(|head| head.top <= top + LEVEL * s.size);
        if let Some([head, text]) = parts.get_mut(index) {
            if in_margin(s) { head } else { text }.push(s.clone());
        }
    }
    let parts: Vec<Vec<Segment>> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    Some(parts)
}

/// Whether what stands right of the margin is prose that the lines in it head.
fn is_headed(region: &[Segment], strip: f32, heads: &[Head]) -> bool {
    let Some(first) = heads.first() else { return false };
    let text: Vec<&Segment> = region
        .iter()
        .filter(|s| s.x0 >= strip && s.table.is_none() && s.base > first.top - s.size)
        .collect();
    let (mut lines, mut chars, mut bold) = (0, 0, 0);
    let mut last = f32::NEG_INFINITY;
    let mut bases = Vec::new();
    let mut sizes: Vec<f32> = Vec::with_capacity(text.len());
    for s in &text {
        let length = s.text.chars().count();
        chars += length;
        bold += if s.bold { length } else { 0 };
        sizes.push(s.size);
        if s.base - last > LEVEL * s.size {
            lines += 1;
            last = s.base;
            bases.push(s.base);
        }
    }
    if lines < LINES * heads.len() || chars < LINE_CHARS * lines || bold * 5 > chars || text.len() * 2 > lines * 3 {
        return false;
    }
    let middle = sizes.len() / 2;
    let usual = *sizes.select_nth_unstable_by(middle, f32::total_cmp).1;
    let level = |head: &&Head| {
        let start = bases.partition_point(|base| *base < head.top - LEVEL * head.size);
        bases
            .get(start)
            .is_some_and(|base| *base <= head.top + LEVEL * head.size)
    };
    // Numbers of sections have their headings beside them.
    let set = |head: &&Head| head.letters >= MIN_LETTERS && (head.bold || head.size > 1.12 * usual);
    let most = |count: usize| count * 100 >= heads.len() * MOST;
    most(heads.iter().filter(level).count()) && most(heads.iter().filter(set).count())
}

#[cfg(test)]
mod tests {
    use docmill_model::settings::PartitionOptions;

    use super::super::testing::{PdfBuilder, outline, partition, show};

    /// A page of text with lines in the margin, in a font of their own.
    fn page(font: char, heads: &[(f32, &str)], text: &str) -> Vec<(String, String)> {
        let mut content = String::new();
        for line in 0..20 {
            content += &show('F', 8.0, 130.0, 560.0 - 10.0 * line as f32, text);
        }
        for (y, head) in heads {
            content += &show(font, 8.0, 20.0, *y, head);
        }
        let bytes = PdfBuilder::new().page(&content, "").build();
        let document = partition(&bytes, &PartitionOptions::default()).unwrap();
        let owned = |(kind, text): (&str, &str)| (kind.to_owned(), text.to_owned());
        outline(&document).into_iter().map(owned).collect()
    }

    const TEXT: &str = "the committee met on Monday and agreed on the plan for the year";
    const HEADS: [(f32, &str); 5] = [
        (560.0, "Scope"),
        (500.0, "Duties of the"),
        (490.0, "committee"),
        (430.0, "3.1"),
        (420.0, "Plans"),
    ];

    #[test]
    fn headings_in_the_margin_stand_before_their_text() {
        let found = page('B', &HEADS, TEXT);
        let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["Title", "NarrativeText"].repeat(3), "{found:?}");
        assert_eq!(found[2].1, "Duties of the committee");
        assert_eq!(found[4].1, "3.1 Plans");
        assert!(
            found
                .iter()
                .skip(1)
                .step_by(2)
                .all(|(_, text)| text.starts_with("the committee met"))
        );
    }

    #[test]
    fn the_first_column_of_a_table_is_no_margin() {
        let found = page('B', &HEADS, "12 500 of them");
        assert!(found.iter().all(|(kind, _)| kind != "Title"), "{found:?}");
        let numbers = [(560.0, "1."), (500.0, "2."), (420.0, "3.")];
        let found = page('B', &numbers, TEXT);
        assert!(found.iter().all(|(kind, _)| kind != "Title"), "{found:?}");
        // Notes in the type of the text head nothing.
        let found = page('F', &HEADS, TEXT);
        assert!(found.iter().all(|(kind, _)| kind != "Title"), "{found:?}");
    }
}
