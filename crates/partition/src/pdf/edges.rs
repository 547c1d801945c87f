//! Running heads of documents too short for repetition to show them.
//!
//! On one or two pages nothing repeats. What gives a running head away there is that it stands alone
//! at the very edge of the page and carries a page number or is set smaller than the text.

use super::line::{Line, lines};
use super::segment::Segment;

/// The share of a page's height, at the top and at the bottom, where a running head stands.
const ZONE: f32 = 0.085;
/// Lines of a running head.
const MAX_LINES: usize = 4;
/// Space between a running head and the text, in font sizes, when it has a page number.
const GAP: f32 = 1.0;
/// The same when only its size speaks for it.
const WIDE_GAP: f32 = 1.8;
/// Words of a line with a page number.
const MAX_WORDS: usize = 18;

/// The lines of the running head at the top or the bottom of a page; empty when there is none. `numbers` are the
/// baselines of page numbers that have been found.
pub(super) fn edge_lines(
    segments: &[Segment],
    height: f32,
    bottom: bool,
    body_size: f32,
    numbers: &[f32],
) -> Vec<Line> {
    let in_zone = |s: &Segment| {
        if bottom {
            s.base > height * (1.0 - ZONE)
        } else {
            s.base < height * ZONE
        }
    };
    let mut found = lines(
        segments
            .iter()
            .filter(|s| s.table.is_none() && in_zone(s))
            .cloned()
            .collect(),
    );
    if bottom {
        found.reverse();
    }
    // From the edge of the page inwards as long as the lines stand close together.
    let mut taken = 0;
    while let Some(line) = found.get(taken) {
        let apart = taken > 0
            && found
                .get(taken - 1)
                .is_some_and(|outer| (line.base - outer.base).abs() > 1.7 * line.size.max(outer.size));
        if apart {
            break;
        }
        taken += 1;
    }
    let (Some(outer), Some(inner)) = (found.first(), taken.checked_sub(1).and_then(|last| found.get(last))) else {
        return Vec::new();
    };
    let (near, far) = if bottom {
        (inner.bbox[1], outer.bbox[3])
    } else {
        (inner.bbox[3], outer.bbox[1])
    };
    let gap = segments
        .iter()
        .filter(|s| if bottom { s.y1 < near + 1.0 } else { s.y0 > near - 1.0 })
        .map(|s| if bottom { near - s.y1 } else { s.y0 - near })
        .fold(f32::INFINITY, f32::min);
    let size = found.iter().take(taken).map(|line| line.size).fold(0.0, f32::max);
    let head = found.get(..taken).unwrap_or_default();
    let beside_number = |line: &Line| numbers.iter().any(|base| (base - line.base).abs() < 0.4 * line.size);
    let numbered = head.iter().any(|line| has_page_number(line) || beside_number(line)) && gap > GAP * size;
    let small = head
        .iter()
        .all(|line| line.size < 0.94 * body_size && !is_note(&line.text))
        && gap > WIDE_GAP * size;
    let alone = gap.is_finite() && (far - near).abs() < ZONE * height;
    if taken > MAX_LINES || size > 1.6 * body_size || !alone || !(numbered || small) {
        return Vec::new();
    }
    found.truncate(taken);
    found
}

/// A line that begins or ends with a number set beside some words: `12 Annual report`.
fn has_page_number(line: &Line) -> bool {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let number = |word: &&str| {
        let digits = word.trim_matches(['|', '-', '–', '•', '·']);
        !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let at_end = words.last().is_some_and(number)
        || words
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|w| number(w) && line.parts.len() > 2);
    let named = words.first().is_some_and(|word| word.eq_ignore_ascii_case("page")) && words.len() <= 5;
    let ends = line.text.ends_with(['.', ';', ',']);
    words.len() <= MAX_WORDS
        && !ends
        && (named || super::furniture::is_page_number(&line.text) || at_end || words.first().is_some_and(number))
}

/// `1 See page 3.`, `* By hand.`: a footnote.
fn is_note(text: &str) -> bool {
    text.starts_with(|ch: char| {
        ch.is_ascii_digit() || matches!(ch, '*' | '†' | '‡' | '§' | '(' | '[' | '¹' | '²' | '³')
    })
}

#[cfg(test)]
mod tests {
    use super::super::engine::Direction;
    use super::super::segment::segments;
    use super::super::testing::typeset;
    use super::*;

    fn edge(rows: &[(f32, f32, f32, &str)], bottom: bool) -> Vec<String> {
        edge_with(rows, bottom, &[])
    }

    fn edge_with(rows: &[(f32, f32, f32, &str)], bottom: bool, numbers: &[f32]) -> Vec<String> {
        let page = typeset(rows);
        let segments = segments(&page, &[], Direction::East);
        let lines = edge_lines(&segments, page.height, bottom, 10.0, numbers);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_number_beside_words_at_the_edge_is_a_running_head() {
        let body = (50.0, 120.0, 10.0, "The text of the page begins here");
        assert_eq!(
            edge(
                &[(50.0, 40.0, 10.0, "12"), (80.0, 40.0, 10.0, "Annual report"), body],
                false
            ),
            ["12 Annual report"]
        );
        // Close to the text it is a line of it.
        assert!(
            edge(
                &[(50.0, 52.0, 10.0, "in the year 1990"), (50.0, 64.0, 10.0, "it began")],
                false
            )
            .is_empty()
        );
        // Nothing but its place speaks for this one.
        assert!(edge(&[(50.0, 40.0, 10.0, "A line at the top"), body], false).is_empty());
    }

    #[test]
    fn what_stands_beside_a_page_number_is_a_running_head() {
        let page = [
            (250.0, 45.0, 15.0, "Responses"),
            (50.0, 120.0, 10.0, "The text of the page begins here"),
        ];
        assert_eq!(edge_with(&page, false, &[44.0]), ["Responses"]);
        assert!(edge_with(&page, false, &[60.0]).is_empty());
    }

    #[test]
    fn small_type_at_the_edge_is_a_running_head_but_a_footnote_is_not() {
        let body = (50.0, 600.0, 10.0, "The text of the page ends here");
        assert_eq!(
            edge(&[body, (50.0, 780.0, 8.0, "Printed by the press")], true),
            ["Printed by the press"]
        );
        assert!(edge(&[body, (50.0, 780.0, 8.0, "1 See the first part.")], true).is_empty());
    }
}
