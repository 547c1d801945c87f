//! Tables whose rows stand between horizontal rules or bands of colour, without vertical rules.
//!
//! Rules of one width, one below the other, frame a table when text in columns stands between them.
//! How many there are does not matter: one above the heading, one below it and one at the end, one below
//! every row, or every other row shaded.

mod beyond;

use self::beyond::{beyond, heading_top, rows_below, split_at_headings};
use super::aligned::{are_aligned, is_filled, separators};
use super::engine::Rule;
use super::grid::{Stroke, strokes};
use super::line::{Line, lines};
use super::rows::{Drawn, Grouping, Rows, is_number};
use super::segment::Segment;
use super::table::Table;
use super::text::is_marker;

/// Shortest rule that frames a table, in points.
const MIN_WIDTH: f32 = 80.0;
/// How far the ends of the rules of one table may differ, in points.
const ENDS: f32 = 9.0;
/// Pieces of a rule under the cells of a row stand at most this far apart, in points.
const PIECE_GAP: f32 = 24.0;
/// How far text may reach beyond the rules, in points.
const OVERHANG: f32 = 8.0;
/// Tallest empty band within a table, in points.
const EMPTY_BAND: f32 = 30.0;
/// Longest label of a row, in characters, on average.
const MAX_LABEL: usize = 45;
/// Tables of one page.
const MAX_TABLES: usize = 100;
/// Lines of a heading above the first rule.
const MAX_BEYOND: usize = 4;
/// Share of the page's height between two rules that are all a table has.
const MAX_SINGLE_BAND: f32 = 0.7;
/// Rules on a page beyond which it is a drawing.
const MAX_RULES: usize = 2000;
/// Tallest coloured rectangle that may be a row, in points.
const MAX_SHADE: f32 = 90.0;
/// A longer text in one line of a cell is prose, unless rules part the rows.
const LONG_PART: usize = 64;
/// Longest text of a cell, in characters, on average, between rules.
const MAX_MEAN_CELL: usize = 110;

/// Finds such tables and takes their text out of `segments`; `fills` are `[x0, y0, x1, y1]`.
pub(super) fn banded_tables(
    rules: &[Rule],
    fills: &[[f32; 4]],
    height: f32,
    segments: &mut Vec<Segment>,
) -> Vec<Table> {
    let across = levels(rules, fills);
    let walls: Vec<Rule> = rules.iter().filter(|rule| !rule.is_horizontal()).copied().collect();
    let mut tables = Vec::new();
    if across.len() > MAX_RULES || segments.len() < 4 {
        return tables;
    }
    let mut frames: Vec<Vec<Stroke>> = Vec::new();
    for stroke in across.iter().filter(|stroke| stroke.to - stroke.from >= MIN_WIDTH) {
        let same = |frame: &&mut Vec<Stroke>| {
            frame
                .last()
                .is_some_and(|last| (last.from - stroke.from).abs() < ENDS && (last.to - stroke.to).abs() < ENDS)
        };
        match frames.iter_mut().rev().take(64).find(same) {
            Some(frame) => frame.push(*stroke),
            None => frames.push(vec![*stroke]),
        }
    }
    // Wide frames first: narrower rules within them belong to their headings.
    frames.retain(|frame| frame.len() >= 2);
    frames.sort_by(|a, b| width(b).total_cmp(&width(a)));
    for frame in frames {
        let chains = chains(&frame, segments);
        let parted = chains
            .iter()
            .flat_map(|chain| split_at_headings(chain, &across, segments));
        let parted: Vec<Vec<Stroke>> = parted.collect();
        for chain in parted {
            // Two rules far apart part the running heads from the page.
            let page_rules = chain.first().is_some_and(|stroke| stroke.at < 0.1 * height)
                && chain.last().is_some_and(|stroke| stroke.at > 0.9 * height);
            if tall(&chain) > MAX_SINGLE_BAND * height && (chain.len() == 2 || (chain.len() == 3 && page_rules)) {
                continue;
            }
            let Some((table, [from, top, to, bottom])) = table(&chain, &across, &walls, segments) else {
                continue;
            };
            let edge = |at| Stroke { at, from, to };
            segments.retain(|s| s.table.is_some() || !inside(s, &[edge(top), edge(bottom)]));
            tables.push(table);
            if tables.len() >= MAX_TABLES {
                return tables;
            }
        }
    }
    tables
}

fn tall(chain: &[Stroke]) -> f32 {
    match chain {
        [first, .., last] => last.at - first.at,
        _ => 0.0,
    }
}

fn width(frame: &[Stroke]) -> f32 {
    frame.first().map_or(0.0, |stroke| stroke.to - stroke.from)
}

/// Horizontal lines, with the pieces under the cells of a row joined, from top to bottom.
fn levels(rules: &[Rule], fills: &[[f32; 4]]) -> Vec<Stroke> {
    let shades = fills.iter().filter(|[_, y0, _, y1]| y1 - y0 < MAX_SHADE);
    let edges = shades.flat_map(|&[from, y0, to, y1]| [y0, y1].map(|at| Stroke { at, from, to }));
    let drawn = rules.iter().filter(|rule| rule.is_horizontal()).map(|rule| Stroke {
        at: rule.y0,
        from: rule.x0,
        to: rule.x1,
    });
    let mut joined: Vec<Stroke> = Vec::new();
    for stroke in strokes(drawn.chain(edges).take(4 * MAX_RULES)) {
        match joined.last_mut() {
            Some(last) if last.at == stroke.at && stroke.from - last.to < PIECE_GAP => last.to = last.to.max(stroke.to),
            _ => joined.push(stroke),
        }
    }
    joined
}

fn inside(segment: &Segment, chain: &[Stroke]) -> bool {
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        return false;
    };
    let middle = segment.base - 0.3 * segment.size;
    middle > first.at && middle < last.at && segment.x1 > first.from && segment.x0 < first.to
}

fn overhangs(segment: &Segment, stroke: &Stroke) -> bool {
    segment.x0 < stroke.from - OVERHANG || segment.x1 > stroke.to + OVERHANG
}

/// The stretches of a frame without prose or other breaks between its rules.
fn chains(frame: &[Stroke], segments: &[Segment]) -> Vec<Vec<Stroke>> {
    let mut out: Vec<Vec<Stroke>> = Vec::new();
    let mut chain: Vec<Stroke> = Vec::new();
    for stroke in frame {
        if let Some(last) = chain.last() {
            let band: Vec<Segment> = segments
                .iter()
                .filter(|segment| inside(segment, &[*last, *stroke]))
                .cloned()
                .collect();
            if breaks(&band, last, stroke) {
                out.push(std::mem::take(&mut chain));
            }
        }
        chain.push(*stroke);
    }
    out.push(chain);
    out.retain(|chain| chain.len() >= 2);
    out
}

/// Whether what stands between two rules of a frame is no part of a table.
fn breaks(band: &[Segment], above: &Stroke, below: &Stroke) -> bool {
    if band.is_empty() {
        return below.at - above.at > EMPTY_BAND;
    }
    if band
        .iter()
        .any(|segment| segment.table.is_some() || overhangs(segment, above))
    {
        return true;
    }
    let lines = lines(band.to_vec());
    let several = lines.iter().filter(|line| line.parts.len() > 1).count();
    let wide = lines
        .iter()
        .filter(|line| line.parts.len() == 1 && line.x1() - line.x0() > 0.62 * (above.to - above.from))
        .count();
    (several == 0 && lines.len() >= 4) || (wide >= 3 && wide > several)
}

fn table(chain: &[Stroke], across: &[Stroke], walls: &[Rule], segments: &[Segment]) -> Option<(Table, [f32; 4])> {
    let widened = with_labels(chain, segments);
    let chain = widened.as_deref().unwrap_or(chain);
    let (first, last) = (chain.first()?, chain.last()?);
    let within = lines(segments.iter().filter(|s| inside(s, chain)).cloned().collect());
    let wide: Vec<&Line> = within.iter().filter(|line| line.parts.len() > 1).collect();
    if wide.is_empty() {
        return None;
    }
    let size = wide.iter().map(|line| line.size).sum::<f32>() / wide.len() as f32;
    // Two rules with nothing but the heading between them leave the end of the table open.
    let numbers = within
        .iter()
        .flat_map(|line| &line.parts)
        .filter(|part| is_number(&part.text));
    let open = chain.len() == 2 && within.len() <= MAX_BEYOND && numbers.count() == 0;
    let rest = if open {
        rows_below(last, segments, size)
    } else {
        Vec::new()
    };
    let wide: Vec<&Line> = wide
        .into_iter()
        .chain(rest.iter().filter(|line| line.parts.len() > 1))
        .collect();
    let separators = separators(&wide, size);
    if wide.len() < 2 || open && (rest.is_empty() || !are_aligned(&wide, &separators, size)) {
        return None;
    }
    let code = within.iter().filter(|line| line.monospace).count() * 4 > within.len() * 3;
    if separators.is_empty() || is_text(&within, size, &separators) || code && chain.len() < 4 {
        return None;
    }
    let bands = bands(chain, &within);
    let few = bands.iter().filter(|&&n| n <= 4).count() * 10 >= bands.len() * 8;
    let grouping = if bands.len() >= 4 && few && !holds_rows(chain, &within, &separators) {
        Grouping::ByRules
    } else {
        // The heading stands above the first of three rules or more.
        let head = chain
            .get(1)
            .filter(|_| chain.len() >= 3 && bands.first().is_some_and(|&n| n <= 6));
        Grouping::ByLines {
            head: head.map(|stroke| stroke.at),
        }
    };
    let by_lines = matches!(grouping, Grouping::ByLines { .. });
    let long = within
        .iter()
        .flat_map(|line| &line.parts)
        .filter(|part| part.text.chars().count() > LONG_PART);
    if by_lines && (long.count() * 4 > within.len() || is_filled(&within) && goes_on(&within, &separators)) {
        return None;
    }
    // The heading may stand above the first rule, and the last row below the last.
    let above = match heading_top(first, across, segments, size) {
        Some(at) => lines(
            segments
                .iter()
                .filter(|s| inside(s, &[Stroke { at, ..*first }, *first]))
                .cloned()
                .collect(),
        ),
        None => beyond(chain, segments, &separators, (size, 0.0), false),
    };
    let below = if open {
        rest
    } else {
        beyond(chain, segments, &separators, (size, usual_step(&within)), true)
    };
    let grouping = match grouping {
        Grouping::ByLines { .. } if open => Grouping::ByLines { head: Some(last.at) },
        other => other,
    };
    let top = above.iter().map(|line| line.bbox[1]).fold(first.at, f32::min);
    let bottom = below.iter().map(|line| line.bbox[3]).fold(last.at, f32::max);
    let lines: Vec<Line> = above.into_iter().chain(within).chain(below).collect();
    let extent = first.to - first.from;
    let drawn: Vec<&Stroke> = across
        .iter()
        .filter(|s| s.at >= top - 1.0 && s.at < bottom && s.from >= first.from - ENDS && s.to <= first.to + ENDS)
        .collect();
    let bounds: Vec<f32> = drawn
        .iter()
        // Shorter rules part the levels of a heading.
        .filter(|s| {
            s.to - s.from > 0.9 * extent
                || (s.at <= chain.get(1).map_or(first.at, |s| s.at) && s.to - s.from > 0.1 * extent)
        })
        .map(|s| s.at)
        .collect();
    let under: Vec<Stroke> = drawn
        .iter()
        .filter(|s| s.to - s.from < 0.9 * extent)
        .map(|s| **s)
        .collect();
    let boxes = boxes(walls, [first.from, top, first.to, top + size]);
    let drawn = Drawn {
        bounds: &bounds,
        under: &under,
        boxes: &boxes,
    };
    let rows = Rows::new(&lines, separators, drawn, grouping);
    if rows.len() < 2
        || !rows.is_plausible(MAX_MEAN_CELL)
        || rows.is_list()
        || rows.is_contents()
        || rows.is_form()
        || rows.is_code()
    {
        return None;
    }
    let mut table = rows.into_table(&lines, drawn)?;
    let region = [first.from, top, first.to, bottom];
    table.bbox = super::line::union(table.bbox, region);
    Some((table, region))
}

/// The middle one of the steps between the lines that have several parts.
fn usual_step(lines: &[Line]) -> f32 {
    let bases: Vec<f32> = lines
        .iter()
        .filter(|line| line.parts.len() > 1)
        .map(|line| line.base)
        .collect();
    let mut steps: Vec<f32> = bases
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(b - a),
            _ => None,
        })
        .collect();
    steps.sort_by(f32::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

/// The boxes between the vertical rules that cross the top of a table.
fn boxes(walls: &[Rule], [left, top, right, bottom]: [f32; 4]) -> Vec<[f32; 4]> {
    let across = |wall: &&Rule| wall.y0 < bottom && wall.y1 > (top + bottom) / 2.0;
    let inside = |wall: &&Rule| wall.x0 > left - ENDS && wall.x0 < right + ENDS;
    let mut found: Vec<&Rule> = walls.iter().filter(across).filter(inside).collect();
    found.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    found
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some([a.x0, top - 1.0, b.x0, a.y1.min(b.y1)]),
            _ => None,
        })
        .collect()
}

/// The rules made longer to the left over a column of labels, where only the columns of figures are
/// ruled: most rows have a short text beside them.
fn with_labels(chain: &[Stroke], segments: &[Segment]) -> Option<Vec<Stroke>> {
    let (first, last) = (chain.first()?, chain.last()?);
    let extent = first.to - first.from;
    let rows = lines(segments.iter().filter(|s| inside(s, chain)).cloned().collect());
    let rows: Vec<&Line> = rows.iter().filter(|line| line.parts.len() > 1).collect();
    let labels: Vec<&Segment> = segments
        .iter()
        .filter(|s| s.table.is_none() && s.base > first.at && s.base < last.at)
        .filter(|s| s.x1 <= first.from + OVERHANG && s.x1 > first.from - 0.5 * extent)
        .collect();
    let beside = |row: &&&Line| {
        labels
            .iter()
            .any(|label| (label.base - row.base).abs() < 0.35 * row.size)
    };
    let matched = rows.iter().filter(beside).count();
    let chars: usize = labels.iter().map(|label| label.text.chars().count()).sum();
    let figures = rows
        .iter()
        .flat_map(|row| &row.parts)
        .filter(|part| !part.text.chars().any(char::is_alphabetic))
        .count();
    let parts: usize = rows.iter().map(|row| row.parts.len()).sum();
    let fits = matched >= 3
        && matched * 10 >= rows.len() * 6
        && labels.len() <= 3 * matched
        && chars <= MAX_LABEL * labels.len()
        && figures * 2 > parts;
    let from = labels.iter().map(|label| label.x0).fold(first.from, f32::min);
    fits.then(|| chain.iter().map(|stroke| Stroke { from, ..*stroke }).collect())
}

/// Whether there is a heading or a list among the lines.
fn is_text(lines: &[Line], size: f32, separators: &[f32]) -> bool {
    let edge = separators.first().copied().unwrap_or(0.0);
    let headings = lines
        .iter()
        .filter(|line| line.parts.len() == 1 && line.size > 1.2 * size && line.x0() < edge);
    let items = lines
        .iter()
        .filter(|line| line.is_item() || line.parts.first().is_some_and(|part| is_marker(&part.text)))
        .count();
    headings.count() > 0 || (items >= 2 && items * 8 > lines.len())
}

/// Whether many of the bands hold several rows each: lines with texts in the first and other columns
/// that do not go on in the middle of a sentence.
fn holds_rows(chain: &[Stroke], lines: &[Line], separators: &[f32]) -> bool {
    let edge = separators.first().copied().unwrap_or(0.0);
    let begins = |line: &&Line| {
        let first = line.parts.first();
        line.parts.len() > 1 && first.is_some_and(|part| part.x0 < edge && !part.text.starts_with(char::is_lowercase))
    };
    let (mut several, mut count) = (0, 0);
    for pair in chain.windows(2) {
        let [above, below] = pair else { continue };
        let within = |line: &&Line| (above.at..below.at).contains(&(line.base - 0.3 * line.size));
        let rows = lines.iter().filter(within).filter(begins).count();
        several += usize::from(rows > 1);
        count += usize::from(rows > 0);
    }
    several * 4 > count
}

/// Lines of text in each band that has some.
fn bands(chain: &[Stroke], lines: &[Line]) -> Vec<usize> {
    chain
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(
                lines
                    .iter()
                    .filter(|line| (a.at..b.at).contains(&(line.base - 0.3 * line.size)))
                    .count(),
            ),
            _ => None,
        })
        .filter(|count| *count > 0)
        .collect()
}

/// Whether lines go on from one to the next on both sides of the gaps, as columns of prose do.
fn goes_on(lines: &[Line], separators: &[f32]) -> bool {
    let edge = separators.first().copied().unwrap_or(0.0);
    let (mut first, mut others) = ((0usize, 0usize), (0usize, 0usize));
    for part in lines.iter().flat_map(|line| &line.parts) {
        if !part.text.chars().any(char::is_alphabetic) {
            continue;
        }
        let slot = if part.x0 < edge { &mut first } else { &mut others };
        slot.0 += usize::from(part.text.starts_with(char::is_lowercase));
        slot.1 += 1;
    }
    first.0 * 3 > first.1 && others.0 * 2 > others.1
}
