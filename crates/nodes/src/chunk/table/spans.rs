//! Cells that reach from one row into those below.

use std::borrow::Cow;

use crate::markup::grid::{Cell, Row};

/// Most cells from above that are kept. More of them are no table of this world, and would be repeated
/// on every chunk.
const MAX_OPEN: usize = 64;

/// The cells open at a row while walking down the rows of a group.
#[derive(Default)]
pub(super) struct Spans<'g> {
    /// Cells from rows above that reach into the current row, by column.
    open: Vec<Span<'g>>,
    /// Cells of the current row.
    own: Vec<Span<'g>>,
}

#[derive(Clone, Copy)]
struct Span<'g> {
    cell: &'g Cell,
    /// Grid columns, the end exclusive.
    start: u64,
    end: u64,
    /// Rows the cell reaches over, from the current one.
    rows: u32,
}

impl<'g> Spans<'g> {
    /// Moves down to `row`, placing its cells in the columns left free from above.
    pub(super) fn enter(&mut self, row: &'g Row) {
        self.open.append(&mut self.own);
        for span in &mut self.open {
            span.rows = span.rows.saturating_sub(1);
        }
        self.open.retain(|span| span.rows > 0);
        self.open.sort_by_key(|span| span.start);
        self.open.truncate(MAX_OPEN);

        let mut above = self.open.iter().peekable();
        let mut column = 0;
        for cell in &row.cells {
            while let Some(span) = above.next_if(|span| span.start <= column) {
                column = column.max(span.end);
            }
            let end = column + u64::from(cell.colspan);
            self.own.push(Span {
                cell,
                start: column,
                end,
                rows: cell.rowspan,
            });
            column = end;
        }
    }

    /// The current row with the cells from above in their places, for the start of a chunk whose text may
    /// have length `limit`. Their text is repeated as far as it fits; otherwise they are blank.
    pub(super) fn complete(&self, row: &'g Row, limit: usize) -> Cow<'g, Row> {
        if self.open.is_empty() {
            return Cow::Borrowed(row);
        }
        let mut room = limit.saturating_sub(row.len);
        let mut spans: Vec<(Span<'g>, bool)> = self.own.iter().map(|&span| (span, true)).collect();
        for &span in &self.open {
            let repeated = span.cell.len < room;
            if repeated {
                room -= span.cell.len + 1;
            }
            spans.push((span, repeated));
        }
        spans.sort_by_key(|(span, _)| span.start);
        let cells = spans.into_iter().map(|(span, with_text)| {
            let mut cell = if with_text {
                span.cell.clone()
            } else {
                Cell::new(String::new())
            };
            cell.colspan = span.cell.colspan;
            cell.rowspan = span.rows;
            cell
        });
        Cow::Owned(Row::new(cells.collect()))
    }
}
