//! Packing a table's rows into chunks.

use std::borrow::Cow;

use docmill_model::settings::ChunkOptions;

use super::Part;
use super::spans::Spans;
use crate::chunk::Measure;
use crate::chunk::split::Splitter;
use crate::markup::grid::{Cell, Grid, Row, escaped_len, push_rows, push_text};

/// Length of the markup around the text of a chunk that is one cell.
const CELL_MARKUP: usize = "<table><tr><td></td></tr></table>".len();

/// The same in tokens.
const CELL_MARKUP_TOKENS: usize = 12;

/// Packs the rows of `grid` into chunks whose texts have at most `max_characters`. Rows bound together by
/// a rowspan stay together if they fit one chunk.
pub(super) fn pack(grid: &Grid, options: &ChunkOptions) -> Vec<Part> {
    let mut packer = Packer {
        max: options.max_characters,
        overlap: options.overlap,
        measure: Measure::of(options),
        header: Header::of(grid, options),
        parts: Vec::new(),
        held: Vec::new(),
        held_len: 0,
    };
    let mut group_start = 0;
    let mut group_end = 0;
    for (index, row) in grid.rows.iter().enumerate() {
        let reach = row.cells.iter().map(|cell| cell.rowspan as usize).max().unwrap_or(1);
        group_end = group_end.max(index + reach);
        if index + 1 >= group_end {
            packer.add_group(&grid.rows[group_start..=index]);
            group_start = index + 1;
        }
    }
    packer.flush();
    packer.parts
}

/// Header rows as repeated on continuation chunks.
struct Header {
    rows: u32,
    text: String,
    len: usize,
    html: String,
}

impl Header {
    /// The header to repeat; `None` if there is none, or if it would take too much of each chunk.
    fn of(grid: &Grid, options: &ChunkOptions) -> Option<Self> {
        let (rows, body) = grid
            .rows
            .split_at_checked(grid.header_rows)
            .filter(|(rows, _)| !rows.is_empty())?;
        let max = options.max_characters;
        let largest = rows.iter().map(|row| row.len).max().unwrap_or(0);
        if !options.repeat_table_headers || largest > max.div_ceil(2) {
            return None;
        }
        let mut text = String::new();
        push_text(&mut text, rows);
        let measure = Measure::of(options);
        let len = measure.len(&text);
        // A header that does not stand on the first chunk as a whole can't be repeated on the second.
        if len == 0 || len > max.saturating_mul(3) / 4 || len + rows.len() > max {
            return None;
        }
        let mut html = String::from("<thead>");
        push_rows(&mut html, rows, "th");
        html.push_str("</thead>");
        if measure.len(&html) > max.saturating_mul(4) {
            return None;
        }
        let room = max.saturating_sub(len + 1);
        // Pieces of a cell would be of one character.
        let cuts_cells = || body.iter().flat_map(|row| &row.cells).any(|cell| cell.len > room);
        let markup = if measure.in_tokens() {
            CELL_MARKUP_TOKENS
        } else {
            CELL_MARKUP
        };
        if room < markup + 2 && cuts_cells() {
            return None;
        }
        Some(Self {
            rows: u32::try_from(rows.len()).ok()?,
            text,
            len,
            html,
        })
    }
}

struct Packer<'g> {
    max: usize,
    overlap: usize,
    measure: Measure,
    header: Option<Header>,
    parts: Vec<Part>,
    /// Rows of the chunk being filled.
    held: Vec<Cow<'g, Row>>,
    /// Total length of their texts.
    held_len: usize,
}

impl<'g> Packer<'g> {
    /// How long the text of the rows in the chunk being filled may become.
    fn limit(&self) -> usize {
        match &self.header {
            Some(header) if !self.parts.is_empty() => self.max.saturating_sub(header.len + 1),
            _ => self.max,
        }
    }

    /// Whether rows whose joined texts have length `len` fit the chunk being filled.
    fn fits(&self, len: usize) -> bool {
        len + self.held.len() + self.held_len <= self.limit()
    }

    fn hold(&mut self, row: Cow<'g, Row>) {
        self.held_len += row.len;
        self.held.push(row);
    }

    /// Ends the chunk being filled. Rows without any text make no chunk.
    fn flush(&mut self) {
        let rows = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.held_len) > 0 {
            self.emit(&rows);
        }
    }

    fn emit(&mut self, rows: &[Cow<'_, Row>]) {
        let header = self.header.as_ref().filter(|_| !self.parts.is_empty());
        let mut text = header.map(|header| header.text.clone()).unwrap_or_default();
        push_text(&mut text, rows.iter().map(AsRef::as_ref));
        let mut html = String::from("<table>");
        html.push_str(header.map_or("", |header| &header.html));
        push_rows(&mut html, rows.iter().map(AsRef::as_ref), "td");
        html.push_str("</table>");
        self.parts.push(Part {
            text,
            html: Some(html),
            carried_header_rows: header.map_or(0, |header| header.rows),
        });
    }

    /// Adds rows that belong together.
    fn add_group(&mut self, rows: &'g [Row]) {
        let texts = || rows.iter().filter(|row| row.len > 0);
        let len = texts().map(|row| row.len).sum::<usize>() + texts().count().saturating_sub(1);
        if !self.fits(len) {
            self.flush();
        }
        match rows {
            _ if self.fits(len) => rows.iter().for_each(|row| self.hold(Cow::Borrowed(row))),
            [row] => self.add_cells(&row.cells),
            _ => self.add_spanned(rows),
        }
    }

    /// Adds rows bound by a rowspan that do not fit one chunk: row by row, each chunk beginning with the
    /// cells that reach into it from above.
    fn add_spanned(&mut self, rows: &'g [Row]) {
        let mut spans = Spans::default();
        for row in rows {
            spans.enter(row);
            if !self.fits(row.len) {
                self.flush();
            }
            if !self.fits(row.len) {
                self.add_cells(&row.cells);
            } else if self.held.is_empty() {
                self.hold(spans.complete(row, self.limit()));
            } else {
                self.hold(Cow::Borrowed(row));
            }
        }
    }

    /// Adds a row that is too long for one chunk: as many whole cells on each as fit.
    fn add_cells(&mut self, cells: &[Cell]) {
        let mut held = Vec::new();
        let mut held_len = 0;
        for cell in cells {
            if cell.len + held.len() + held_len > self.limit() {
                self.emit_cells(std::mem::take(&mut held));
                held_len = 0;
            }
            if cell.len > self.limit() {
                self.add_cell_pieces(&cell.text);
            } else {
                held_len += cell.len;
                held.push(cell.clone());
            }
        }
        self.emit_cells(held);
    }

    fn emit_cells(&mut self, cells: Vec<Cell>) {
        let row = Row::new(cells);
        if row.len > 0 {
            self.emit(&[Cow::Owned(row)]);
        }
    }

    /// Splits a text that is too long for one chunk into cells of their own, such that the markup of each
    /// fits the limit too.
    fn add_cell_pieces(&mut self, text: &str) {
        if self.measure.in_tokens() {
            let room = self.limit().saturating_sub(CELL_MARKUP_TOKENS).max(1);
            for piece in self.measure.split(text, room, self.overlap.min(room / 2)) {
                self.emit_cells(vec![Cell::new(piece)]);
            }
            return;
        }
        let mut splitter = Splitter::new(text);
        loop {
            let room = self.limit().saturating_sub(CELL_MARKUP);
            let mut used = 0;
            let fitting = splitter.remaining().take_while(|&c| {
                used += escaped_len(c);
                used <= room
            });
            let max = fitting.count().max(1);
            // The room may be much less than a chunk's, so that the whole overlap would fill it.
            let Some(piece) = splitter.next_piece(max, self.overlap.min(max / 2)) else {
                return;
            };
            self.emit_cells(vec![Cell::new(piece)]);
        }
    }
}
