//! From cells to elements: areas set apart by empty rows, titles and notes around tables, tables.

use std::collections::HashMap;

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

/// Finds the elements of a sheet. Rows without an empty row between them belong together, whatever
/// columns they use; of such an area the rows at the start and end that hold one cell are texts, such
/// as titles and remarks, and what is between is a table.
pub(super) fn elements(sheet: &Sheet, max_table_cells: u64) -> Found {
    let merged: HashMap<(u32, u32), Area> = sheet.merged.iter().map(|a| ((a.top, a.left), *a)).collect();
    let rows: Vec<&[Cell]> = sheet.cells.chunk_by(|a, b| a.row == b.row).collect();
    let mut found = Found {
        elements: Vec::new(),
        without_html: 0,
    };
    for area in areas(&rows, &merged) {
        let single = |row: &&&[Cell]| row.len() == 1;
        let before = area.iter().take_while(single).count();
        let after = area[before..].iter().rev().take_while(single).count();
        let (head, rest) = area.split_at(before);
        let (core, tail) = rest.split_at(rest.len() - after);
        found.elements.extend(head.iter().flat_map(|row| *row).map(text));
        if !core.is_empty() {
            found.table(core, &merged, max_table_cells);
        }
        found.elements.extend(tail.iter().flat_map(|row| *row).map(text));
    }
    found
}

fn text(cell: &Cell) -> Element {
    let (kind, text) = classify(cell.text.trim());
    Element::new(kind, text)
}

/// Splits rows where at least one row is empty, which a merged area is not.
fn areas<'a, 'c>(rows: &'a [&'c [Cell]], merged: &HashMap<(u32, u32), Area>) -> Vec<&'a [&'c [Cell]]> {
    let mut areas = Vec::new();
    let mut start = 0;
    let mut reach = 0;
    for (i, row) in rows.iter().enumerate() {
        let Some(first) = row.first() else { continue };
        if i > start && first.row > reach + 1 {
            areas.push(&rows[start..i]);
            start = i;
        }
        let bottom = |cell: &Cell| merged.get(&(cell.row, cell.column)).map_or(cell.row, |a| a.bottom);
        reach = row.iter().map(bottom).max().unwrap_or(first.row).max(reach);
    }
    if start < rows.len() {
        areas.push(&rows[start..]);
    }
    areas
}

impl Found {
    fn table(&mut self, rows: &[&[Cell]], merged: &HashMap<(u32, u32), Area>, max_cells: u64) {
        // Columns and rows without any text are left out.
        let mut columns: Vec<u32> = rows.iter().flat_map(|row| row.iter().map(|c| c.column)).collect();
        columns.sort_unstable();
        columns.dedup();
        if (columns.len() as u64).saturating_mul(rows.len() as u64) > max_cells {
            let texts = rows.iter().flat_map(|row| *row).map(|cell| table::Cell::new(&*cell.text));
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
        self.elements.extend(table::element(&grid(rows, &columns, merged)));
    }
}

/// The rows of a table with all their cells; what a merged area covers is left out.
fn grid(rows: &[&[Cell]], columns: &[u32], merged: &HashMap<(u32, u32), Area>) -> Vec<Row> {
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
                width = free_from[j..].iter().take(wanted).take_while(|free| **free <= i).count().max(1);
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
