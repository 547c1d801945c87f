//! A table found on a page.

use super::text::append_line;

/// Rows of a heading that is repeated where a table goes on.
const MAX_REPEATED: usize = 3;

/// A table's cells, in row order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) cells: Vec<Cell>,
    /// `[x0, y0, x1, y1]`.
    pub(super) bbox: [f32; 4],
    /// Where the columns part, if that is known of all of them.
    pub(super) separators: Vec<f32>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) row_span: usize,
    pub(super) column_span: usize,
    pub(super) text: String,
    pub(super) bold: bool,
    /// `[x0, y0, x1, y1]` of the cell between its rules, or of its text where it has none.
    pub(super) bbox: Option<[f32; 4]>,
    /// Pages after the one the table begins on.
    pub(super) page: usize,
}

impl Table {
    /// Removes rows and columns in which no cell with text begins.
    pub(super) fn compact(&mut self) {
        let mut used_rows = vec![false; self.rows];
        let mut used_columns = vec![false; self.columns];
        for cell in self.cells.iter().filter(|cell| !cell.text.is_empty()) {
            if let Some(used) = used_rows.get_mut(cell.row) {
                *used = true;
            }
            if let Some(used) = used_columns.get_mut(cell.column) {
                *used = true;
            }
        }
        let before = |used: &[bool]| {
            let mut sum = 0;
            let mut counts = vec![0];
            for &u in used {
                sum += usize::from(u);
                counts.push(sum);
            }
            counts
        };
        let (rows, columns) = (before(&used_rows), before(&used_columns));
        let at = |counts: &[usize], index: usize| counts.get(index).or(counts.last()).copied().unwrap_or(0);
        for cell in &mut self.cells {
            let (row_end, column_end) = (cell.row + cell.row_span, cell.column + cell.column_span);
            cell.row = at(&rows, cell.row);
            cell.column = at(&columns, cell.column);
            cell.row_span = at(&rows, row_end) - cell.row;
            cell.column_span = at(&columns, column_end) - cell.column;
        }
        self.cells.retain(|cell| cell.row_span > 0 && cell.column_span > 0);
        if used_columns.contains(&false) {
            self.separators.clear();
        }
        self.rows = at(&rows, self.rows);
        self.columns = at(&columns, self.columns);
    }

    /// Adds the rows of a table that continues this one, `pages` pages later. A heading that is repeated is left out, and a
    /// row that was broken is made one.
    pub(super) fn append(&mut self, mut more: Self, pages: usize) {
        let row = |table: &Self, row: usize| -> Vec<(usize, String)> {
            let cells = table
                .cells
                .iter()
                .filter(|cell| cell.row == row && !cell.text.is_empty());
            cells.map(|cell| (cell.column, cell.text.clone())).collect()
        };
        let mut skip = 0;
        while skip < MAX_REPEATED.min(more.rows).min(self.rows)
            && row(self, skip) == row(&more, skip)
            && !row(self, skip).is_empty()
        {
            skip += 1;
        }
        let last = self.rows.saturating_sub(1);
        if skip == 0 {
            let first = row(&more, 0);
            let lower = |(_, text): &(usize, String)| text.starts_with(char::is_lowercase);
            let in_first = first.first().is_some_and(|(column, _)| *column == 0);
            let broken = !first.is_empty()
                && if in_first {
                    first.iter().all(lower)
                } else {
                    first.iter().any(lower)
                };
            if broken {
                for (column, text) in first {
                    let above = self.cells.iter_mut().rfind(|cell| {
                        cell.column <= column
                            && column < cell.column + cell.column_span
                            && cell.row + cell.row_span > last
                    });
                    if let Some(cell) = above {
                        append_line(&mut cell.text, &text);
                    }
                }
                skip = 1;
            }
        }
        more.cells.retain(|cell| cell.row >= skip);
        for mut cell in more.cells {
            cell.row = cell.row - skip + self.rows;
            cell.page += pages;
            self.cells.push(cell);
        }
        self.rows += more.rows - skip;
    }

    /// Whether the first rows have the same texts, as a heading that is repeated.
    pub(super) fn begins_like(&self, other: &Self) -> bool {
        let first = |table: &Self| -> Vec<(usize, String)> {
            let cells = table.cells.iter().take_while(|cell| cell.row == 0);
            cells.map(|cell| (cell.column, cell.text.clone())).collect()
        };
        first(self) == first(other)
    }

    /// The cell texts, joined by spaces in reading order.
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self
            .cells
            .iter()
            .map(|c| c.text.as_str())
            .filter(|t| !t.is_empty())
            .collect();
        texts.join(" ")
    }

    /// Rows at the top that are headings of the columns: bold where the rows below are not.
    fn header_rows(&self) -> usize {
        let bold_row = |row: usize| {
            let mut texts = self
                .cells
                .iter()
                .filter(|c| c.row == row && !c.text.is_empty())
                .peekable();
            texts.peek().is_some() && texts.all(|c| c.bold)
        };
        let count = (0..self.rows.min(4)).take_while(|&row| bold_row(row)).count();
        let plain_below = (count..self.rows).any(|row| !bold_row(row));
        if count < self.rows && plain_below { count } else { 0 }
    }

    /// `<table>` with `<thead>` for heading rows; spans as attributes.
    pub(super) fn html(&self) -> String {
        let header = self.header_rows();
        let mut html = String::from("<table>");
        let mut cells = self.cells.iter().peekable();
        for row in 0..self.rows {
            if row == 0 && header > 0 {
                html.push_str("<thead>");
            }
            if row == header {
                html.push_str("<tbody>");
            }
            let tag = if row < header { "th" } else { "td" };
            html.push_str("<tr>");
            while let Some(cell) = cells.next_if(|cell| cell.row == row) {
                html.push('<');
                html.push_str(tag);
                if cell.row_span > 1 {
                    html.push_str(&format!(" rowspan=\"{}\"", cell.row_span));
                }
                if cell.column_span > 1 {
                    html.push_str(&format!(" colspan=\"{}\"", cell.column_span));
                }
                html.push('>');
                escape(&cell.text, &mut html);
                html.push_str("</");
                html.push_str(tag);
                html.push('>');
            }
            html.push_str("</tr>");
            if header > 0 && row + 1 == header {
                html.push_str("</thead>");
            }
        }
        if header < self.rows {
            html.push_str("</tbody>");
        }
        html.push_str("</table>");
        html
    }
}

fn escape(text: &str, out: &mut String) {
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(ch),
        }
    }
}
