//! Ruled tables whose heading stands above the rules, and tables with a frame alone.

use super::aligned::aligned_table;
use super::grid::Stroke;
use super::line::{Line, lines, union};
use super::rows::is_number;
use super::segment::Segment;
use super::table::{Cell, Table};

/// How far above the rules a heading stands, in font sizes.
const NEAR: f32 = 1.3;
/// How far text may reach beyond the rules, in points.
const OVERHANG: f32 = 4.0;
/// Columns, and lines, of what is a table for its frame alone.
const MIN_COLUMNS: usize = 3;
const MIN_LINES: usize = 5;

/// Takes the line above a ruled table as its heading: a text in most columns, none of them a figure, above
/// columns of which some begin with one.
pub(super) fn take_heading(table: &mut Table, segments: &mut Vec<Segment>) {
    let [left, top, right, _] = table.bbox;
    if table.columns < MIN_COLUMNS || table.separators.len() + 1 != table.columns {
        return;
    }
    let near = |s: &&Segment| {
        s.table.is_none() && s.base < top + 0.3 * s.size && s.base > top - NEAR * s.size && s.x1 > left && s.x0 < right
    };
    let above = lines(segments.iter().filter(near).cloned().collect());
    let Some(line) = above
        .last()
        .filter(|line| line.x0() > left - OVERHANG && line.x1() < right + OVERHANG)
    else {
        return;
    };
    let Some(cells) = heading(line, table) else { return };
    let [x0, y0, x1, y1] = line.bbox;
    segments.retain(|s| s.table.is_some() || (s.base - line.base).abs() > 0.1 || s.x0 < x0 - 0.1 || s.x1 > x1 + 0.1);
    for cell in &mut table.cells {
        cell.row += 1;
    }
    table.cells.splice(0..0, cells);
    table.rows += 1;
    table.bbox = union(table.bbox, [x0, y0, x1, y1]);
}

/// The cells of a heading whose texts stand one in a column.
fn heading(line: &Line, table: &Table) -> Option<Vec<Cell>> {
    let mut texts: Vec<Option<Cell>> = vec![None; table.columns];
    for part in &line.parts {
        let column = |x: f32| table.separators.partition_point(|s| *s < x);
        let (first, last) = (column(part.x0 + 2.0), column(part.x1 - 2.0));
        let slot = texts.get_mut(first).filter(|slot| slot.is_none() && first == last)?;
        *slot = Some(Cell {
            row: 0,
            column: first,
            row_span: 1,
            column_span: 1,
            text: part.text.clone(),
            bold: part.bold,
            bbox: Some([part.x0, line.bbox[1], part.x1, line.bbox[3]]),
            page: 0,
        });
    }
    let filled = texts.iter().flatten().count();
    let labels = texts.iter().flatten().all(|cell| !is_number(&cell.text));
    let figures = table
        .cells
        .iter()
        .take_while(|cell| cell.row == 0)
        .any(|cell| is_number(&cell.text));
    if filled * 3 < table.columns * 2 || filled < MIN_COLUMNS || !labels || !figures {
        return None;
    }
    let empty = |column: usize| Cell {
        row: 0,
        column,
        row_span: 1,
        column_span: 1,
        text: String::new(),
        bold: false,
        bbox: None,
        page: 0,
    };
    Some(
        texts
            .into_iter()
            .enumerate()
            .map(|(column, cell)| cell.unwrap_or_else(|| empty(column)))
            .collect(),
    )
}

/// The table in a frame of four rules, if nearly all its lines are rows.
pub(super) fn framed(across: &[Stroke], down: &[Stroke], segments: &mut Vec<Segment>) -> Option<Table> {
    let ([top, bottom], [left, right]) = (across, down) else {
        return None;
    };
    let [x0, x1] = [left.at.min(right.at), left.at.max(right.at)];
    let [y0, y1] = [top.at.min(bottom.at), top.at.max(bottom.at)];
    let inside = |s: &Segment| {
        let middle = s.base - 0.3 * s.size;
        s.table.is_none() && s.x0 > x0 - OVERHANG && s.x1 < x1 + OVERHANG && middle > y0 && middle < y1
    };
    let lines = lines(segments.iter().filter(|s| inside(s)).cloned().collect());
    let rows = lines.iter().filter(|line| line.parts.len() >= MIN_COLUMNS).count();
    if lines.len() < MIN_LINES || rows * 10 < lines.len() * 9 {
        return None;
    }
    let mut table = aligned_table(&lines).filter(|table| table.columns >= MIN_COLUMNS)?;
    segments.retain(|segment| !inside(segment));
    table.bbox = union(table.bbox, [x0, y0, x1, y1]);
    Some(table)
}
