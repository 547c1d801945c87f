//! Tables without rules: lines whose parts stand in common columns.

use super::block::{Line, Part, append_line, union};
use super::table::{Cell, Table};

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
    let mut end = start;
    let mut rows = 0;
    let mut index = start;
    while let Some(line) = lines.get(index) {
        if line.table.is_some() || line.has_leaders() || line.is_item() {
            break;
        }
        if index > start {
            let Some(last) = lines.get(index - 1) else { break };
            let step = (line.base - last.base) / line.size.max(last.size);
            if step > 4.0 {
                break;
            }
        }
        if line.parts.len() > 1 {
            rows += 1;
            end = index + 1;
        } else if index + 1 - end > 3 || rows == 0 && index > start + 2 || line.parts.first().is_some_and(|p| p.text.chars().count() > 70) {
            break;
        }
        index += 1;
    }
    // The lines right below the last row may be the rest of its cells.
    while let (Some(last), Some(line)) = (lines.get(end.wrapping_sub(1)), lines.get(end)) {
        let tight = (line.base - last.base) < 1.3 * line.size;
        let inside = line.parts.len() == 1 && line.bbox[0] > last.bbox[0] + line.size && line.bbox[2] < last.bbox[2] + 4.0 * line.size;
        if end > start && tight && inside && !line.is_item() && line.table.is_none() {
            end += 1;
        } else {
            break;
        }
    }
    if rows >= MIN_ROWS { end } else { start }
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
    let mut builder = Builder { separators, columns, rows: Vec::new() };
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
    for part in rows.iter().flat_map(|line| &line.parts) {
        let first = (((part.x0 - left) / step).round() as usize).min(bins);
        let last = (((part.x1 - left) / step).round() as usize).clamp(first, bins);
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
        let placed: Vec<(usize, usize)> = line.parts.iter().map(|part| self.columns_of(part)).collect();
        let Some(row) = self.rows.last_mut() else { return };
        for (part, (first, count)) in line.parts.iter().zip(placed) {
            let Some(cell) = row.get_mut(first) else { continue };
            if cell.text.is_empty() {
                cell.bold = part.bold;
            } else {
                cell.bold &= part.bold;
            }
            append_line(&mut cell.text, &part.text);
            cell.span = cell.span.max(count);
        }
    }

    fn finish(self, lines: &[Line]) -> Option<Table> {
        let filled: usize = self.rows.iter().flatten().filter(|cell| !cell.text.is_empty()).count();
        let chars: usize = self.rows.iter().flatten().map(|cell| cell.text.chars().count()).sum();
        let wide_rows = self.rows.iter().filter(|row| row.iter().filter(|c| !c.text.is_empty()).count() > 1).count();
        let total = self.rows.len() * self.columns;
        if wide_rows < 2 || filled * 5 < total * 2 || chars > MAX_MEAN_CELL * filled {
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
