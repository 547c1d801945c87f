//! Tables without rules: lines whose parts stand in common columns.

use super::line::{Line, Part, union};
use super::table::{Cell, Table};
use super::text::{append_line, is_marker};

/// Lines with several parts that a table has at least.
const MIN_ROWS: usize = 3;
/// Narrowest strip between columns, in font sizes.
const MIN_STRIP: f32 = 0.35;
/// Longest text of a cell, in characters, on average: longer ones are columns of prose.
const MAX_MEAN_CELL: usize = 45;
/// Share of the usual step between rows below which a line continues the row above.
const CONTINUES: f32 = 0.85;
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
    while let (Some(last), Some(line)) = (lines.get(end - 1), lines.get(end)) {
        let tight = line.base - last.base < 1.3 * line.size && same_size(last, line);
        let inside = line.bbox[0] > last.bbox[0] + line.size && line.bbox[2] < last.bbox[2] + 4.0 * line.size;
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
        if line.table.is_some() || line.has_leaders() || line.is_item() {
            return None;
        }
        if line.parts.len() > 1 {
            let above = lines.get(start..index).unwrap_or_default();
            let set_in = above.iter().all(|upper| upper.bbox[0] > line.bbox[0] + line.size);
            return set_in.then_some(index);
        }
        let next = lines.get(index + 1)?;
        if next.base - line.base > 1.3 * line.size || !same_size(line, next) {
            return None;
        }
    }
    None
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
    if line.table.is_some() || line.has_leaders() || line.is_item() || !same_size(last, line) || step > 4.5 * line.size
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
    let step = usual_step(&rows);
    let mut builder = Builder {
        separators,
        columns,
        rows: Vec::new(),
    };
    let mut last: Option<&Line> = None;
    for line in lines {
        let continues = last.is_some_and(|last| builder.continues(line, line.base - last.base, step));
        builder.add(line, continues);
        last = Some(line);
    }
    builder.finish(lines)
}

/// The middles of the strips that hardly any row crosses.
fn separators(rows: &[&Line], size: f32) -> Vec<f32> {
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
    let mut strip: Option<usize> = None;
    for (bin, d) in delta.iter().enumerate() {
        sum += d;
        if sum <= allowed {
            strip.get_or_insert(bin);
        } else if let Some(start) = strip.take() {
            let width = (bin - start) as f32 * step;
            if start > 0 && width >= MIN_STRIP * size {
                out.push(left + (start + bin) as f32 / 2.0 * step);
            }
        }
    }
    out
}

/// The stretches of a part between its wide spaces.
fn pieces(part: &Part) -> impl Iterator<Item = (f32, f32)> + '_ {
    let starts = std::iter::once(part.x0).chain(part.breaks.iter().map(|b| b.x1));
    let ends = part.breaks.iter().map(|b| b.x0).chain(std::iter::once(part.x1));
    starts.zip(ends)
}

/// The median step from row to row.
fn usual_step(rows: &[&Line]) -> f32 {
    let mut steps: Vec<f32> = rows
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] => Some(b.base - a.base),
            _ => None,
        })
        .collect();
    if steps.is_empty() {
        return f32::INFINITY;
    }
    let middle = steps.len() / 2;
    *steps.select_nth_unstable_by(middle, f32::total_cmp).1
}

/// Whether the rows are filled with text from edge to edge, as in a paragraph.
fn is_filled(lines: &[Line]) -> bool {
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

#[derive(Default, Clone)]
struct Content {
    text: String,
    bold: bool,
    span: usize,
}

struct Builder {
    separators: Vec<f32>,
    columns: usize,
    /// Per row the content of the columns; `span` 0 where nothing begins.
    rows: Vec<Vec<Content>>,
}

impl Builder {
    /// Columns a part stands in, `(first, count)`. What reaches a little into the next column does
    /// not stand in it.
    fn columns_of(&self, part: &Part) -> (usize, usize) {
        let slack = ((part.x1 - part.x0) * 0.1).min(6.0);
        let first = self.separators.partition_point(|&x| x < part.x0 + slack);
        let last = self.separators.partition_point(|&x| x < part.x1 - slack);
        (first, last.max(first) - first + 1)
    }

    fn continues(&self, line: &Line, step: f32, usual: f32) -> bool {
        if step < CONTINUES * usual {
            return true;
        }
        // A lone text in a later column can only be the rest of the cell above.
        match line.parts.as_slice() {
            [part] => self.columns_of(part).0 > 0 && step < 1.4 * line.size,
            _ => false,
        }
    }

    fn add(&mut self, line: &Line, continues: bool) {
        if !continues || self.rows.is_empty() {
            self.rows.push(vec![Content::default(); self.columns]);
        }
        let parts: Vec<Part> = line.parts.iter().flat_map(|part| self.split(part)).collect();
        let placed: Vec<(usize, usize)> = parts.iter().map(|part| self.columns_of(part)).collect();
        let Some(row) = self.rows.last_mut() else { return };
        for (part, (first, count)) in parts.iter().zip(placed) {
            let Some(cell) = row.get_mut(first) else { continue };
            if cell.text.is_empty() {
                cell.bold = part.bold;
            } else {
                cell.bold &= part.bold;
            }
            append_line(&mut cell.text, part.text.trim());
            cell.span = cell.span.max(count);
        }
    }

    /// Splits a part at the wide spaces that stand where columns end.
    fn split(&self, part: &Part) -> Vec<Part> {
        let mut out = Vec::new();
        let (mut from, mut x0) = (0, part.x0);
        let slack = 2.0;
        let piece = |from: usize, to: usize, x0: f32, x1: f32| Part {
            text: part.text.get(from..to).unwrap_or_default().to_owned(),
            x0,
            x1,
            bold: part.bold,
            breaks: Vec::new(),
        };
        for space in &part.breaks {
            let next = self.separators.partition_point(|&x| x < space.x0 - slack);
            if self.separators.get(next).is_some_and(|&x| x <= space.x1 + slack) {
                out.push(piece(from, space.at, x0, space.x0));
                (from, x0) = (space.at, space.x1);
            }
        }
        out.push(piece(from, part.text.len(), x0, part.x1));
        out
    }

    /// Justified text has gaps too. What tells it from a table is that its pieces go on in the middle
    /// of a sentence, in the first column as well as in the others.
    fn is_prose(&self) -> bool {
        let share = |first: bool| {
            let mut counts = (0usize, 0usize);
            for row in &self.rows {
                for (column, cell) in row.iter().enumerate() {
                    if (column == 0) == first && cell.text.chars().any(char::is_alphabetic) {
                        counts.0 += usize::from(cell.text.starts_with(char::is_lowercase));
                        counts.1 += 1;
                    }
                }
            }
            counts
        };
        let ((low_first, first), (low_others, others)) = (share(true), share(false));
        low_first * 3 > first && low_others * 2 > others
    }

    /// Whether the first of two columns holds nothing but the markers of a list's items, or counts up
    /// beside sentences.
    fn is_list(&self) -> bool {
        if self.columns != 2 {
            return false;
        }
        let first: Vec<&str> = self
            .rows
            .iter()
            .filter_map(|row| row.first())
            .map(|cell| cell.text.trim())
            .collect();
        let mut markers = first.iter().filter(|text| !text.is_empty());
        if markers.clone().all(|text| is_marker(text)) {
            return markers.next().is_some();
        }
        let numbers: Vec<u32> = markers.filter_map(|text| text.parse().ok()).collect();
        let counts_up = numbers.len() == first.len()
            && numbers
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
        let second = self.rows.iter().filter_map(|row| row.get(1));
        let words: usize = second.map(|cell| cell.text.split_whitespace().count()).sum();
        counts_up && words > 5 * self.rows.len()
    }

    fn finish(self, lines: &[Line]) -> Option<Table> {
        let filled: usize = self.rows.iter().flatten().filter(|cell| !cell.text.is_empty()).count();
        let chars: usize = self.rows.iter().flatten().map(|cell| cell.text.chars().count()).sum();
        let alphanumeric = self
            .rows
            .iter()
            .flatten()
            .flat_map(|cell| cell.text.chars())
            .filter(|ch| ch.is_alphanumeric())
            .count();
        let wide_rows = self
            .rows
            .iter()
            .filter(|row| row.iter().filter(|c| !c.text.is_empty()).count() > 1)
            .count();
        let total = self.rows.len() * self.columns;
        if wide_rows < 2 || filled * 5 < total * 2 || alphanumeric < filled || chars > MAX_MEAN_CELL * filled {
            return None;
        }
        if is_filled(lines) && self.is_prose() || self.is_list() {
            return None;
        }
        let mut table = Table {
            rows: self.rows.len(),
            columns: self.columns,
            cells: Vec::new(),
            bbox: lines.first()?.bbox,
        };
        for line in lines {
            table.bbox = union(table.bbox, line.bbox);
        }
        for (row, contents) in self.rows.into_iter().enumerate() {
            let mut column = 0;
            let mut contents = contents.into_iter().enumerate().peekable();
            while let Some((index, content)) = contents.next() {
                if index < column {
                    continue;
                }
                // A span ends where the next text begins.
                let mut span = 1;
                while span < content.span && contents.peek().is_some_and(|(_, next)| next.text.is_empty()) {
                    contents.next();
                    span += 1;
                }
                table.cells.push(Cell {
                    row,
                    column: index,
                    row_span: 1,
                    column_span: span,
                    text: content.text,
                    bold: content.bold,
                });
                column = index + span;
            }
        }
        Some(table)
    }
}
