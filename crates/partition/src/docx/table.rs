//! Tables of WordprocessingML: merged cells to spans.

use std::collections::BTreeMap;

use super::styles::on;
use crate::ooxml::table::{Cell, Row};
use crate::ooxml::xml::{Node, Ns};

/// Columns a cell may span; word processors stop at 63.
const MAX_SPAN: u32 = 1000;

/// The rows of a `w:tbl`, through content controls and insertions; rows marked as deleted are left out.
pub(super) fn rows(table: &Node) -> Vec<&Node> {
    let mut rows = Vec::new();
    table.walk(&mut |n| match (n.ns, &*n.name) {
        (Ns::W, "tr") => {
            if n.path(Ns::W, &["trPr", "del"]).is_none() {
                rows.push(n);
            }
            false
        }
        (Ns::W, "del" | "moveFrom" | "tblPr" | "tblGrid") => false,
        _ => true,
    });
    rows
}

/// The cells of a row.
pub(super) fn cells(row: &Node) -> Vec<&Node> {
    let mut cells = Vec::new();
    row.walk(&mut |n| match (n.ns, &*n.name) {
        (Ns::W, "tc") => {
            if n.path(Ns::W, &["tcPr", "cellDel"]).is_none() {
                cells.push(n);
            }
            false
        }
        (Ns::W, "trPr") => false,
        _ => true,
    });
    cells
}

/// The content of a table that is but a frame around it: its only cell.
pub(super) fn frame(table: &Node) -> Option<&Node> {
    match rows(table).as_slice() {
        [row] => match cells(row).as_slice() {
            [cell] => Some(cell),
            _ => None,
        },
        _ => None,
    }
}

/// Builds rows with spans while cells are added.
#[derive(Default)]
pub(super) struct Grid {
    pub(super) rows: Vec<Row>,
    /// By grid column: where the cell stands that grows downwards from there.
    growing: BTreeMap<u32, (usize, usize)>,
    column: u32,
}

/// How a cell takes part in merging.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// Stands for itself.
    None,
    /// The first of vertically merged cells.
    Start,
    /// Covered by the cell above.
    Above,
    /// Covered by the cell to the left.
    Left,
}

impl Grid {
    pub(super) fn start_row(&mut self, row: &Node) {
        let properties = row.child(Ns::W, "trPr");
        let header = properties.and_then(|p| p.child(Ns::W, "tblHeader")).is_some_and(on);
        let skipped = properties.and_then(|p| p.child(Ns::W, "gridBefore")).map_or(0, span_of);
        self.rows.push(Row {
            cells: Vec::new(),
            header,
        });
        self.column = 0;
        if skipped > 0 {
            self.add(String::new(), skipped, Merge::None);
        }
    }

    /// How `cell` is merged, and over how many columns.
    pub(super) fn merge_of(cell: &Node) -> (Merge, u32) {
        let Some(properties) = cell.child(Ns::W, "tcPr") else {
            return (Merge::None, 1);
        };
        let span = properties.child(Ns::W, "gridSpan").map_or(1, span_of).max(1);
        let value = |name: &str| {
            properties
                .child(Ns::W, name)
                .map(|n| n.attr("val").unwrap_or("continue"))
        };
        let merge = match (value("vMerge"), value("hMerge")) {
            (_, Some("continue")) => Merge::Left,
            (Some("restart"), _) => Merge::Start,
            (Some(_), _) => Merge::Above,
            _ => Merge::None,
        };
        (merge, span)
    }

    pub(super) fn add(&mut self, text: String, span: u32, merge: Merge) {
        let column = self.column;
        self.column = self.column.saturating_add(span);
        let row = self.rows.len().saturating_sub(1);
        if merge == Merge::Left
            && let Some(cell) = self.rows.last_mut().and_then(|r| r.cells.last_mut())
        {
            cell.colspan = cell.colspan.saturating_add(span).min(MAX_SPAN);
            return;
        }
        if merge == Merge::Above
            && let Some((r, c)) = self.growing.get(&column)
            && let Some(cell) = self.rows.get_mut(*r).and_then(|row| row.cells.get_mut(*c))
        {
            cell.rowspan = cell.rowspan.saturating_add(1);
            return;
        }
        let covered: Vec<u32> = self.growing.range(column..self.column).map(|(c, _)| *c).collect();
        covered.iter().for_each(|c| {
            self.growing.remove(c);
        });
        if let Some(current) = self.rows.last_mut() {
            if merge == Merge::Start {
                self.growing.insert(column, (row, current.cells.len()));
            }
            let mut cell = Cell::new(text);
            cell.colspan = span;
            current.cells.push(cell);
        }
    }
}

fn span_of(node: &Node) -> u32 {
    node.attr("val").and_then(|v| v.parse().ok()).unwrap_or(0).min(MAX_SPAN)
}
