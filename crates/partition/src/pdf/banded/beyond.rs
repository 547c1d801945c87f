//! What belongs to a table above its first rule and below its last.

use std::collections::HashSet;

use super::super::grid::Stroke;
use super::super::line::{Line, lines};
use super::super::segment::Segment;
use super::{ENDS, LONG_PART, MAX_BEYOND, OVERHANG};

/// Lines of a table that rules are drawn around the heading of only.
const MAX_OPEN: usize = 120;
/// Farthest line of such, in font sizes.
const OPEN_STEP: f32 = 3.3;
/// Farthest row below the last rule, in font sizes.
const MAX_STEP: f32 = 2.4;
/// Levels of a heading with rules of their own.
const MAX_LEVELS: usize = 4;
/// Tallest level of a heading, in font sizes.
const LEVEL: f32 = 8.0;
/// Texts of a heading that tell one when it is there again.
const MIN_HEADING: usize = 3;
const MAX_HEADING: usize = 64;
/// Share of the table's width that the rules of a level cover at least.
const LEVEL_WIDTH: f32 = 0.2;

/// The lines below a heading up to the first that is prose, or set apart or in other type.
pub(super) fn rows_below(rule: &Stroke, segments: &[Segment], size: f32) -> Vec<Line> {
    let below = segments
        .iter()
        .filter(|s| s.x1 > rule.from && s.x0 < rule.to && s.base - 0.3 * s.size > rule.at);
    let mut at = rule.at;
    let mut taken: Vec<Line> = Vec::new();
    for line in lines(below.cloned().collect()).into_iter().take(MAX_OPEN) {
        let fits = line.table.is_none()
            && line.base - 0.3 * line.size - at < OPEN_STEP * size
            && (0.8..1.2).contains(&(line.size / size))
            && line.x0() > rule.from - OVERHANG
            && line.x1() < rule.to + OVERHANG
            && !line.is_item()
            && line.parts.iter().all(|part| part.text.chars().count() <= LONG_PART);
        if !fits {
            break;
        }
        at = line.base - 0.3 * line.size;
        taken.push(line);
    }
    let rows = taken
        .iter()
        .rposition(|line| line.parts.len() > 1)
        .map_or(0, |last| last + 1);
    // The last row may have more lines.
    let end = if rows == 0 { 0 } else { taken.len().min(rows + 3) };
    taken.truncate(end);
    taken
}

/// Lines right above or below the rules of a table that stand in its columns.
///
/// `step` is the usual one from row to row.
pub(super) fn beyond(
    chain: &[Stroke],
    segments: &[Segment],
    separators: &[f32],
    (size, step): (f32, f32),
    down: bool,
) -> Vec<Line> {
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        return Vec::new();
    };
    let edge = if down { last } else { first };
    let reach = MAX_BEYOND as f32 * MAX_STEP * size;
    let near = segments
        .iter()
        .filter(|s| s.x1 > edge.from && s.x0 < edge.to)
        .filter(|s| {
            let middle = s.base - 0.3 * s.size;
            if down {
                middle > edge.at && middle < edge.at + reach
            } else {
                middle < edge.at && middle > edge.at - reach
            }
        });
    let mut found = lines(near.cloned().collect());
    if !down {
        found.reverse();
    }
    let usual = if down { step.min(MAX_STEP * size) } else { 0.0 };
    let mut at = edge.at;
    let mut taken: Vec<Line> = Vec::new();
    for line in found.into_iter().take(MAX_BEYOND) {
        let step = (line.base - 0.3 * line.size - at).abs();
        // A heading of all columns may stand somewhat apart.
        let full = !down && line.parts.len() > separators.len().max(1);
        let fits = line.table.is_none()
            && step < (if full { 2.7 } else { 1.7 } * size).max(1.1 * usual)
            && (0.8..1.2).contains(&(line.size / size))
            && line.x0() > edge.from - OVERHANG
            && line.x1() < edge.to + OVERHANG
            && !line.is_item()
            && line.parts.iter().all(|part| part.text.chars().count() <= LONG_PART)
            && stands_in_columns(&line, separators, down);
        if !fits {
            break;
        }
        at = line.base - 0.3 * line.size;
        taken.push(line);
    }
    // What stands in one column alone is no heading and no row.
    let alone = |line: &Line| line.parts.len() < 2;
    if !down && taken.iter().all(alone) {
        taken.clear();
    }
    while down && taken.last().is_some_and(alone) {
        taken.pop();
    }
    if !down {
        taken.reverse();
    }
    taken
}

/// Whether the parts of a line stand in columns, none of them reaching over from the first.
fn stands_in_columns(line: &Line, separators: &[f32], down: bool) -> bool {
    let crossed = |x0: f32, x1: f32| separators.iter().filter(|x| (x0 + 2.0..x1 - 2.0).contains(*x)).count();
    let column = |x: f32| separators.partition_point(|s| *s < x);
    let mut columns: Vec<usize> = line
        .parts
        .iter()
        .map(|part| column((part.x0 + part.x1) / 2.0))
        .collect();
    columns.dedup();
    let apart = columns.len() == line.parts.len();
    let in_columns = line.parts.iter().all(|part| crossed(part.x0, part.x1) == 0);
    let later = line.parts.first().is_some_and(|part| column(part.x0) > 0);
    // Headings of groups stand over several columns.
    let within = line
        .parts
        .first()
        .is_some_and(|part| later || crossed(part.x0, part.x1) == 0);
    if down {
        apart && in_columns && line.parts.len() > 1
    } else {
        apart && (in_columns || within) && (line.parts.len() > 1 || later)
    }
}

/// Where the heading above the first rule of a table begins, when rules over some of the columns part its
/// levels: the highest of these rules.
pub(super) fn heading_top(first: &Stroke, across: &[Stroke], segments: &[Segment], size: f32) -> Option<f32> {
    let mut top = first.at;
    for _ in 0..MAX_LEVELS {
        let level = across
            .iter()
            .filter(|rule| rule.at < top - size && rule.at > top - LEVEL * size)
            .filter(|rule| rule.from > first.from - ENDS && rule.to < first.to + ENDS)
            .filter(|rule| {
                let length = rule.to - rule.from;
                let extent = first.to - first.from;
                length > LEVEL_WIDTH * extent && length < extent - ENDS
            })
            .max_by(|a, b| a.at.total_cmp(&b.at));
        let Some(level) = level else { break };
        let between = segments.iter().filter(|s| {
            let middle = s.base - 0.3 * s.size;
            middle > level.at && middle < top && s.x1 > first.from && s.x0 < first.to
        });
        let mut some = false;
        for segment in between {
            let fits = segment.table.is_none()
                && segment.x0 > first.from - OVERHANG
                && segment.x1 < first.to + OVERHANG
                && segment.size < 1.3 * size
                && segment.text.chars().count() <= LONG_PART;
            if !fits {
                return (top < first.at).then_some(top);
            }
            some = true;
        }
        if !some {
            break;
        }
        top = level.at;
    }
    (top < first.at).then(|| headed(top, first, across, segments, size))
}

/// The top of the headings that stand right above the rules at `top`, several of them, or one
/// in the middle of its rule; else `top`.
fn headed(top: f32, first: &Stroke, across: &[Stroke], segments: &[Segment], size: f32) -> f32 {
    let rules = || across.iter().filter(|rule| (rule.at - top).abs() < 1.0);
    let right_above = |s: &&Segment| {
        let middle = s.base - 0.3 * s.size;
        middle < top && middle > top - 1.6 * size && s.x1 > first.from && s.x0 < first.to
    };
    let right_above: Vec<&Segment> = segments.iter().filter(right_above).collect();
    let mut highest = top;
    for segment in &right_above {
        // A note of the unit stands alone, at the end of its rule.
        let within = rules().any(|rule| {
            let off = (segment.x0 + segment.x1 - rule.from - rule.to).abs() / 2.0;
            let inside = segment.x0 > rule.from - 2.0 && segment.x1 < rule.to + 2.0;
            inside && (off < 2.0 * size || right_above.len() > 1)
        });
        let fits = segment.table.is_none()
            && segment.size < 1.3 * size
            && segment.text.chars().count() <= LONG_PART / 2
            && !segment.text.starts_with(char::is_lowercase);
        if !within || !fits {
            return top;
        }
        highest = highest.min(segment.y0 - 1.0);
    }
    highest
}

/// Cuts the rules of tables of the same columns that stand one below the other where the heading is there
/// again.
pub(super) fn split_at_headings(chain: &[Stroke], across: &[Stroke], segments: &[Segment]) -> Vec<Vec<Stroke>> {
    let whole = || vec![chain.to_vec()];
    let [first, second, ..] = chain else { return whole() };
    let texts = |top: f32, bottom: f32| -> Vec<&Segment> {
        let inside = |s: &&Segment| {
            let middle = s.base - 0.3 * s.size;
            middle > top && middle < bottom && s.x1 > first.from && s.x0 < first.to && s.table.is_none()
        };
        segments.iter().filter(inside).collect()
    };
    let size = texts(first.at, second.at).iter().map(|s| s.size).fold(0.0, f32::max);
    // The heading stands above the first rule, with rules of its own, or below it.
    let top = heading_top(first, across, segments, size.max(6.0));
    let mut heading: Vec<&str> = match top {
        Some(top) => texts(top, first.at),
        None => texts(first.at, second.at),
    }
    .iter()
    .map(|s| s.text.trim())
    .filter(|text| text.chars().any(char::is_alphabetic))
    .collect();
    heading.sort_unstable();
    heading.dedup();
    heading.truncate(MAX_HEADING);
    if heading.len() < MIN_HEADING {
        return whole();
    }
    let mut parts: Vec<Vec<Stroke>> = vec![Vec::new()];
    for pair in chain.windows(2) {
        let [above, below] = pair else { continue };
        if let Some(part) = parts.last_mut() {
            part.push(*above);
        }
        let begun = parts.last().is_some_and(|part| part.len() > 1);
        let band: HashSet<&str> = texts(above.at, below.at).iter().map(|s| s.text.trim()).collect();
        let again = heading.iter().filter(|text| band.contains(**text)).count();
        if begun && again * 10 > heading.len() * 8 {
            match (top, parts.last_mut()) {
                (None, Some(part)) => {
                    // The rule above it begins the next table, and may end this one.
                    let alone = part.len() > 2
                        && part
                            .iter()
                            .rev()
                            .nth(1)
                            .is_some_and(|last| texts(last.at, above.at).is_empty());
                    if alone {
                        part.pop();
                    }
                    parts.push(vec![*above]);
                }
                _ => parts.push(Vec::new()),
            }
        }
    }
    if let (Some(part), Some(last)) = (parts.last_mut(), chain.last()) {
        part.push(*last);
    }
    parts.retain(|part| part.len() >= 2);
    parts
}
