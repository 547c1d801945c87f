//! From cells to elements: areas set apart by empty rows, titles and notes around tables, tables.

use std::collections::{HashMap, HashSet};

use docmill_model::Element;

use super::sheet::{Area, Cell, Sheet};
use crate::classify::classify;
use crate::ooxml::table::{self, Row};

/// Elements of one sheet.
pub(super) struct Found {
    pub(super) elements: Vec<Element>,
    /// Tables too sparse to be written out as HTML.
    pub(super) without_html: usize,
}

/// Merged areas by the place of their first cell.
type Merged = HashMap<(u32, u32), Area>;

/// What a sheet says besides its cells.
#[derive(Clone, Copy)]
struct Surroundings<'s> {
    merged: &'s Merged,
    heads: &'s HashSet<u32>,
}

/// Finds the elements of a sheet.
///
/// Rows without an empty row between them belong together, whatever columns they use, unless an empty
/// column parts tables that begin or end on clearly different rows. Of such a block the rows at the
/// start and end that hold one cell are texts, such as titles and remarks, and what is between is a
/// table.
pub(super) fn elements(sheet: &Sheet, max_table_cells: u64) -> Found {
    let merged: Merged = sheet.merged.iter().map(|a| ((a.top, a.left), *a)).collect();
    let surroundings = Surroundings {
        merged: &merged,
        heads: &sheet.heads,
    };
    let rows: Vec<&[Cell]> = sheet.cells.chunk_by(|a, b| a.row == b.row).collect();
    let mut found = Found {
        elements: Vec::new(),
        without_html: 0,
    };
    for block in blocks(&rows, &merged) {
        let parts = side_by_side(block, &merged);
        if parts.len() < 2 {
            found.block(block, &surroundings, max_table_cells);
            continue;
        }
        for part in &parts {
            let rows: Vec<&[Cell]> = part.chunk_by(|a, b| a.row == b.row).collect();
            found.block(&rows, &surroundings, max_table_cells);
        }
    }
    found
}

fn text(cell: &Cell) -> Element {
    let (kind, text) = classify(cell.text.trim());
    Element::new(kind, text)
}

/// Splits rows where at least one row is empty, which a merged area is not.
fn blocks<'a, 'c>(rows: &'a [&'c [Cell]], merged: &Merged) -> Vec<&'a [&'c [Cell]]> {
    let mut blocks = Vec::new();
    let mut start = 0;
    let mut reach = 0;
    for (i, row) in rows.iter().enumerate() {
        let Some(first) = row.first() else { continue };
        if i > start && first.row > reach + 1 {
            blocks.push(&rows[start..i]);
            start = i;
        }
        reach = reach.max(bottom(row, merged));
    }
    if start < rows.len() {
        blocks.push(&rows[start..]);
    }
    blocks
}

/// The last row that the cells of a row reach into.
fn bottom(row: &[Cell], merged: &Merged) -> u32 {
    let of_cell = |cell: &Cell| merged.get(&(cell.row, cell.column)).map_or(cell.row, |a| a.bottom);
    row.iter().map(of_cell).max().unwrap_or(0)
}

/// Splits a block at empty columns, when each part has at least two columns and two rows, and some two
/// begin or end more than a row apart. Parts of equal height are more likely one table with a gap, whose
/// rows would lose their meaning.
fn side_by_side(block: &[&[Cell]], merged: &Merged) -> Vec<Vec<Cell>> {
    let right = |c: &Cell| merged.get(&(c.row, c.column)).map_or(c.column, |a| a.right);
    let mut spans: Vec<(u32, u32)> = block
        .iter()
        .flat_map(|row| row.iter().map(|c| (c.column, right(c))))
        .collect();
    spans.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (from, to) in spans {
        match ranges.last_mut() {
            Some(last) if from <= last.1 + 1 => last.1 = last.1.max(to),
            _ => ranges.push((from, to)),
        }
    }
    if ranges.len() < 2 || ranges.iter().any(|(from, to)| from == to) {
        return Vec::new();
    }
    let mut parts = vec![Vec::new(); ranges.len()];
    for cell in block.iter().flat_map(|row| *row) {
        let part = ranges.partition_point(|(from, _)| *from <= cell.column);
        if let Some(part) = part.checked_sub(1).and_then(|i| parts.get_mut(i)) {
            part.push(cell.clone());
        }
    }
    let rows = |part: &Vec<Cell>| Some((part.first()?.row, part.last()?.row));
    let heights: Vec<(u32, u32)> = parts.iter().filter_map(rows).collect();
    let spread = |get: fn(&(u32, u32)) -> u32| {
        let (low, high) = (heights.iter().map(get).min(), heights.iter().map(get).max());
        high.unwrap_or(0) - low.unwrap_or(0)
    };
    let tall = heights.iter().all(|(top, bottom)| top < bottom);
    if tall && (spread(|h| h.0) > 1 || spread(|h| h.1) > 1) {
        parts
    } else {
        Vec::new()
    }
}

impl Found {
    fn block(&mut self, rows: &[&[Cell]], sheet: &Surroundings, max_cells: u64) {
        // A row that an area from above reaches into is part of a table, as is the row the area is in.
        let mut reach = 0;
        let alone: Vec<bool> = rows
            .iter()
            .map(|row| {
                let number = row.first().map_or(0, |c| c.row);
                let own = bottom(row, sheet.merged);
                let covered = reach > number;
                reach = reach.max(own + 1);
                row.len() == 1 && own == number && !covered
            })
            .collect();
        let before = alone.iter().take_while(|a| **a).count();
        let after = alone[before..].iter().rev().take_while(|a| **a).count();
        let (head, rest) = rows.split_at(before);
        let (core, tail) = rest.split_at(rest.len() - after);
        self.elements.extend(head.iter().flat_map(|row| *row).map(text));
        // What spans rows without anything beside it is no table either.
        if core.iter().map(|row| row.len()).sum::<usize>() == 1 {
            self.elements.extend(core.iter().flat_map(|row| *row).map(text));
        } else if !core.is_empty() {
            self.table(core, sheet, max_cells);
        }
        self.elements.extend(tail.iter().flat_map(|row| *row).map(text));
    }

    fn table(&mut self, rows: &[&[Cell]], sheet: &Surroundings, max_cells: u64) {
        // Columns and rows without any text are left out.
        let mut columns: Vec<u32> = rows.iter().flat_map(|row| row.iter().map(|c| c.column)).collect();
        columns.sort_unstable();
        columns.dedup();
        if (columns.len() as u64).saturating_mul(rows.len() as u64) > max_cells {
            let texts = rows
                .iter()
                .flat_map(|row| *row)
                .map(|cell| table::Cell::new(&*cell.text));
            let row = Row {
                cells: texts.collect(),
                header: false,
            };
            if let Some(mut element) = table::element(&[row]) {
                element.metadata.text_as_html = None;
                self.elements.push(element);
                self.without_html += 1;
            }
            return;
        }
        let mut out = grid(rows, &columns, sheet.merged);
        if let ([first, ..], [head, _, ..]) = (rows, out.as_mut_slice()) {
            head.header = first.first().is_some_and(|cell| sheet.heads.contains(&cell.row));
        }
        self.elements.extend(table::element(&out));
    }
}

/// The rows of a table with all their cells; what a merged area covers is left out.
fn grid(rows: &[&[Cell]], columns: &[u32], merged: &Merged) -> Vec<Row> {
    let numbers: Vec<u32> = rows.iter().filter_map(|row| row.first()).map(|c| c.row).collect();
    let count = |sorted: &[u32], from: u32, to: u32| {
        let covered = sorted.partition_point(|n| *n <= to) - sorted.partition_point(|n| *n < from);
        covered.max(1)
    };
    // By column: the first row not covered by an area from above.
    let mut free_from = vec![0usize; columns.len()];
    let mut result = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let mut cells = Vec::new();
        let mut filled = row.iter().peekable();
        let mut j = 0;
        while j < columns.len() {
            while filled.next_if(|c| c.column < columns[j]).is_some() {}
            if free_from[j] > i {
                j += 1;
                continue;
            }
            let Some(cell) = filled.next_if(|c| c.column == columns[j]) else {
                cells.push(table::Cell::new(""));
                j += 1;
                continue;
            };
            let mut out = table::Cell::new(&*cell.text);
            let mut width = 1;
            if let Some(area) = merged.get(&(cell.row, cell.column)) {
                let wanted = count(columns, area.left, area.right);
                width = free_from[j..]
                    .iter()
                    .take(wanted)
                    .take_while(|free| **free <= i)
                    .count()
                    .max(1);
                let height = count(&numbers, area.top, area.bottom);
                free_from[j..j + width].iter_mut().for_each(|free| *free = i + height);
                out.colspan = u32::try_from(width).unwrap_or(1);
                out.rowspan = u32::try_from(height).unwrap_or(1);
            }
            cells.push(out);
            j += width;
        }
        result.push(Row { cells, header: false });
    }
    result
}
