//! Tables without rules: lines whose parts stand in common columns.

use super::line::{Line, Part};
use super::rows::{Drawn, Grouping, Rows, is_number};
use super::table::Table;

/// Lines with several parts that a table has at least.
const MIN_ROWS: usize = 3;
/// Lines of headings over groups of columns.
const MAX_GROUP_LEVELS: usize = 2;
/// How far the texts of a column may stand from each other's line, in font sizes.
const ALIGNED: f32 = 0.8;
/// Narrowest strip between columns, in font sizes.
const MIN_STRIP: f32 = 0.35;
/// Longest text of a cell, in characters, on average: longer ones are columns of prose.
const MAX_MEAN_CELL: usize = 45;
/// Strips the width of a table is divided into at most.
const MAX_BINS: usize = 4000;

/// The end of the run of table lines that starts at `start`; `start` when there is none.
pub(super) fn run_end(lines: &[Line], start: usize) -> usize {
    let Some(first_row) = first_row(lines, start) else {
        return start;
    };
    let mut rows = 1;
    let mut end = first_row + 1;
    let mut least = f32::INFINITY;
    for (index, line) in lines.iter().enumerate().skip(first_row + 1) {
        let Some(last) = lines.get(index - 1) else { break };
        let step = line.base - last.base;
        let row = lines.get(end - 1).unwrap_or(last);
        if ends_table(last, line, step, least) || index - end > 3 {
            break;
        }
        // After a wide gap only a row of the same columns goes on with the table.
        if step > 2.6 * least && !same_columns(row, line) {
            break;
        }
        least = least.min(step);
        if line.parts.len() > 1 {
            rows += 1;
            end = index + 1;
        }
    }
    // The lines right below the last row may be the rest of its cells.
    let run = lines.get(first_row..end).unwrap_or_default();
    let left = run.iter().map(Line::x0).fold(f32::INFINITY, f32::min);
    let right = run.iter().map(Line::x1).fold(f32::NEG_INFINITY, f32::max);
    while let (Some(last), Some(line)) = (lines.get(end - 1), lines.get(end)) {
        let step = line.base - last.base;
        let tight = (step < 1.3 * line.size || step < 1.05 * least) && same_size(last, line);
        let inside = line.x0() > left + line.size && line.x1() < (last.x1() + 4.0 * line.size).max(right + line.size);
        if !(tight && inside && line.parts.len() == 1) || line.is_item() || line.table.is_some() {
            break;
        }
        end += 1;
    }
    if rows >= MIN_ROWS { end } else { start }
}

/// The first line with several parts at or soon after `start`. What stands above it, as the upper
/// lines of a heading, must be close and not at the left edge, where a paragraph would stand.
fn first_row(lines: &[Line], start: usize) -> Option<usize> {
    for (index, line) in lines.iter().enumerate().skip(start).take(4) {
        if line.table.is_some() || is_contents_entry(line) || line.is_item() {
            return None;
        }
        if line.parts.len() > 1 {
            let above = lines.get(start..index).unwrap_or_default();
            // The lowest line of a heading may be the first that has a text in the first column.
            let below = lines.get(index..lines.len().min(index + 3)).unwrap_or_default();
            let left = below.iter().map(Line::x0).fold(line.x0(), f32::min);
            let set_in = above.iter().all(|upper| upper.x0() > left + line.size);
            return set_in.then_some(index);
        }
        let next = lines.get(index + 1)?;
        if next.base - line.base > 1.3 * line.size || !same_size(line, next) {
            return None;
        }
    }
    None
}

/// Whether dots lead to a page number. Several figures behind the dots, and amounts, are a table's.
fn is_contents_entry(line: &Line) -> bool {
    let figures = || line.parts.iter().skip(1).filter(|part| is_number(&part.text));
    line.has_leaders() && figures().count() < 2 && !figures().any(|part| is_amount(&part.text))
}

/// Whether a figure has two decimals.
fn is_amount(text: &str) -> bool {
    let digits = |part: &str| part.chars().filter(char::is_ascii_digit).count();
    let parts = text.trim().rsplit_once(['.', ',']);
    parts.is_some_and(|(whole, decimals)| digits(whole) > 0 && digits(decimals) == 2 && decimals.len() < 6)
}

/// Whether two rows have as many parts, each below its counterpart.
fn same_columns(above: &Line, below: &Line) -> bool {
    above.parts.len() == below.parts.len()
        && above
            .parts
            .iter()
            .zip(&below.parts)
            .all(|(a, b)| a.x0 < b.x1 && b.x0 < a.x1)
}

fn same_size(a: &Line, b: &Line) -> bool {
    a.size.max(b.size) < 1.14 * a.size.min(b.size)
}

/// Whether a table does not go on to `line`; `least` is the smallest step between its lines.
fn ends_table(last: &Line, line: &Line, step: f32, least: f32) -> bool {
    if line.table.is_some()
        || is_contents_entry(line)
        || line.is_item()
        || !same_size(last, line)
        || step > 4.5 * line.size
    {
        return true;
    }
    if line.parts.len() > 1 {
        return false;
    }
    let long = line.text.chars().count() > 70;
    long || step > 1.6 * least || (line.bold && !last.bold && step > 1.2 * least)
}

/// Makes a table of lines, if their parts stand in columns.
pub(super) fn aligned_table(lines: &[Line]) -> Option<Table> {
    aligned_rows(lines, Drawn::default())
}

/// The same with what is drawn among the lines.
pub(super) fn aligned_rows(lines: &[Line], drawn: Drawn<'_>) -> Option<Table> {
    let rows: Vec<&Line> = lines.iter().filter(|line| line.parts.len() > 1).collect();
    if rows.len() < MIN_ROWS {
        return None;
    }
    let size = rows.iter().map(|line| line.size).sum::<f32>() / rows.len() as f32;
    let separators = separators(&rows, size);
    let columns = separators.len() + 1;
    if columns < 2 {
        return None;
    }
    let code = lines.iter().filter(|line| line.monospace).count() * 4 > lines.len() * 3;
    if !are_aligned(&rows, &separators, size) || code && !figures(&rows) {
        return None;
    }
    let rows = Rows::new(lines, separators, drawn, Grouping::ByLines { head: None });
    if !rows.is_plausible(MAX_MEAN_CELL)
        || is_filled(lines) && rows.is_prose()
        || rows.is_list()
        || rows.is_contents()
        || rows.is_form()
        || rows.is_code()
        || rows.is_annotated()
    {
        return None;
    }
    rows.into_table(lines, drawn)
}

/// The middles of the strips that hardly any row crosses.
pub(super) fn separators(rows: &[&Line], size: f32) -> Vec<f32> {
    let found = strips(rows, size);
    // A heading over a group of columns may stand over the gap between them, where nothing else does.
    let most = rows.iter().map(|line| line.parts.len()).max().unwrap_or(0);
    let mut below = rows;
    while let [first, rest @ ..] = below
        && rows.len() - rest.len() <= MAX_GROUP_LEVELS
        && rest.len() >= MIN_ROWS
        && first.parts.len() < most
    {
        below = rest;
    }
    let others = if below.len() < rows.len() && has_empty_column(below, &found) {
        strips(below, size)
    } else {
        Vec::new()
    };
    if !others.is_empty() && others.len() < found.len() {
        others
    } else {
        found
    }
}

/// Whether a column other than the first has no text in the rows.
fn has_empty_column(rows: &[&Line], separators: &[f32]) -> bool {
    let mut used = vec![false; separators.len() + 1];
    for (x0, x1) in rows.iter().flat_map(|line| &line.parts).flat_map(pieces) {
        let column = separators.partition_point(|x| *x < (x0 + x1) / 2.0);
        if let Some(used) = used.get_mut(column) {
            *used = true;
        }
    }
    used.iter().skip(1).any(|used| !used)
}

fn strips(rows: &[&Line], size: f32) -> Vec<f32> {
    let left = rows.iter().map(|line| line.bbox[0]).fold(f32::INFINITY, f32::min);
    let right = rows.iter().map(|line| line.bbox[2]).fold(f32::NEG_INFINITY, f32::max);
    let step = (size / 8.0).max((right - left) / MAX_BINS as f32).max(0.1);
    let bins = (((right - left) / step).ceil() as usize).min(MAX_BINS) + 1;
    let mut delta = vec![0i32; bins + 1];
    for (x0, x1) in rows.iter().flat_map(|line| &line.parts).flat_map(pieces) {
        let first = (((x0 - left) / step).round() as usize).min(bins);
        let last = (((x1 - left) / step).round() as usize).clamp(first, bins);
        if let Some(d) = delta.get_mut(first) {
            *d += 1;
        }
        if let Some(d) = delta.get_mut(last) {
            *d -= 1;
        }
    }
    let allowed = (rows.len() / 8) as i32;
    let mut out = Vec::new();
    let mut sum = 0;
    let mut strip: Option<Strip> = None;
    for (bin, d) in delta.iter().enumerate() {
        sum += d;
        if sum <= allowed {
            strip.get_or_insert(Strip::new(bin)).add(bin, sum);
        } else if let Some(strip) = strip.take() {
            let width = (bin - strip.start) as f32 * step;
            if strip.start > 0 && width >= MIN_STRIP * size {
                out.push(left + strip.middle() * step);
            }
        }
    }
    without_word_gaps(out, rows)
}

/// A strip that hardly any row crosses, being gone through from left to right.
struct Strip {
    start: usize,
    /// Rows that cross the run of bins being gone through, its first and last bin.
    run: (i32, usize, usize),
    /// The widest run of those that the fewest rows cross.
    best: (i32, usize, usize),
}

impl Strip {
    fn new(start: usize) -> Self {
        let none = (i32::MAX, start, start);
        Self {
            start,
            run: none,
            best: none,
        }
    }

    fn add(&mut self, bin: usize, crossed: i32) {
        self.run = match self.run {
            (same, first, _) if same == crossed => (crossed, first, bin),
            _ => (crossed, bin, bin),
        };
        let wide = |(_, first, last): (i32, usize, usize)| last - first;
        if crossed < self.best.0 || crossed == self.best.0 && wide(self.run) > wide(self.best) {
            self.best = self.run;
        }
    }

    fn middle(&self) -> f32 {
        (self.best.1 + self.best.2 + 1) as f32 / 2.0
    }
}

/// Leaves out what only the space between two words of a single row speaks for.
fn without_word_gaps(separators: Vec<f32>, rows: &[&Line]) -> Vec<f32> {
    // Texts that begin in the column after each separator: set apart, or after a wide space.
    let mut begins = vec![(0usize, 0usize); separators.len()];
    for part in rows.iter().flat_map(|line| &line.parts) {
        for (index, (x0, _)) in pieces(part).enumerate() {
            let column = separators.partition_point(|x| *x < x0);
            if let Some((apart, spaced)) = column.checked_sub(1).and_then(|i| begins.get_mut(i)) {
                *apart += usize::from(index == 0);
                *spaced += usize::from(index > 0);
            }
        }
    }
    let kept = separators.into_iter().zip(begins);
    kept.filter(|(_, (apart, spaced))| *apart > 0 || *spaced > 1)
        .map(|(x, _)| x)
        .collect()
}

/// Whether most texts after the first of a row are figures, as in typewritten tables.
fn figures(rows: &[&Line]) -> bool {
    let later = || rows.iter().flat_map(|line| line.parts.iter().skip(1));
    later().filter(|part| is_number(&part.text)).count() * 2 > later().count()
}

/// Whether the texts of most columns begin, end or are centred at a common place. Gaps in badly spaced
/// prose fall anywhere.
pub(super) fn are_aligned(rows: &[&Line], separators: &[f32], size: f32) -> bool {
    let mut columns: Vec<Vec<(f32, f32)>> = vec![Vec::new(); separators.len() + 1];
    for (x0, x1) in rows.iter().flat_map(|line| &line.parts).flat_map(pieces) {
        let column = separators.partition_point(|x| *x < (x0 + x1) / 2.0);
        if let Some(places) = columns.get_mut(column) {
            places.push((x0, x1));
        }
    }
    let (mut aligned, mut count) = (0, 0);
    for places in columns.iter().skip(1).filter(|places| places.len() > 1) {
        let share = |place: fn(&(f32, f32)) -> f32| {
            let mut places: Vec<f32> = places.iter().map(place).collect();
            places.sort_by(f32::total_cmp);
            most_within(&places, ALIGNED * size)
        };
        let best = share(|p| p.0).max(share(|p| p.1)).max(share(|p| (p.0 + p.1) / 2.0));
        aligned += usize::from(best * 10 >= places.len() * 6);
        count += 1;
    }
    aligned * 3 >= count * 2
}

/// The most of the sorted values that lie within a stretch of some length.
fn most_within(sorted: &[f32], length: f32) -> usize {
    let (mut start, mut best) = (0, 0);
    for (end, value) in sorted.iter().enumerate() {
        while sorted.get(start).is_some_and(|first| value - first > length) {
            start += 1;
        }
        best = best.max(end + 1 - start);
    }
    best
}

/// The stretches of a part between its wide spaces.
fn pieces(part: &Part) -> impl Iterator<Item = (f32, f32)> + '_ {
    let starts = std::iter::once(part.x0).chain(part.breaks.iter().map(|b| b.x1));
    let ends = part.breaks.iter().map(|b| b.x0).chain(std::iter::once(part.x1));
    starts.zip(ends)
}

/// Whether the rows are filled with text from edge to edge, as in a paragraph.
pub(super) fn is_filled(lines: &[Line]) -> bool {
    let left = lines.iter().map(|line| line.bbox[0]).fold(f32::INFINITY, f32::min);
    let right = lines.iter().map(|line| line.bbox[2]).fold(f32::NEG_INFINITY, f32::max);
    let rows = lines.iter().filter(|line| line.parts.len() > 1);
    let (text, count) = rows.fold((0.0, 0.0), |(text, count), line| {
        (
            text + line.parts.iter().map(|part| part.x1 - part.x0).sum::<f32>(),
            count + 1.0,
        )
    });
    text > 0.72 * count * (right - left)
}
