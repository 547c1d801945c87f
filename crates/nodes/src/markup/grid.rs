//! A table's rows and cells, read from HTML and written back in compact form.

use super::scan::{StartTag, Token, tokens};
use crate::chunk::Measure;
use crate::chunk::text;

/// Largest spans of the HTML standard.
const MAX_COLSPAN: u32 = 1_000;
const MAX_ROWSPAN: u32 = 65_534;

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// White space normalised.
    pub(crate) text: String,
    /// Code points (or tokens) in `text`.
    pub(crate) len: usize,
    /// At least 1.
    pub(crate) colspan: u32,
    /// At least 1; never beyond the section of the table.
    pub(crate) rowspan: u32,
}

impl Cell {
    pub(crate) fn new(text: String) -> Self {
        Self {
            len: text::len(&text),
            text,
            colspan: 1,
            rowspan: 1,
        }
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Length of the texts of the cells that have one, joined by spaces.
    pub(crate) len: usize,
}

impl Row {
    pub(crate) fn new(cells: Vec<Cell>) -> Self {
        let texts = || cells.iter().filter(|cell| cell.len > 0);
        let len = texts().map(|cell| cell.len).sum::<usize>() + texts().count().saturating_sub(1);
        Self { cells, len }
    }
}

/// A table.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pub(crate) rows: Vec<Row>,
    /// How many rows at the start are its header.
    pub(crate) header_rows: usize,
}

impl Grid {
    /// Reads the table in `tokens`. Several tables are read as one, a table within a cell as text of that
    /// cell. Text outside the cells becomes a row, which for a caption counts as a header.
    pub(crate) fn read<'h>(tokens: impl IntoIterator<Item = Token<'h>>) -> Self {
        let mut reader = Reader::default();
        for token in tokens {
            reader.read(token);
        }
        reader.finish()
    }

    /// Reads the table in `html`.
    pub(crate) fn parse(html: &str) -> Self {
        Self::read(tokens(html))
    }

    /// The same grid with the lengths of cells counted by `measure`.
    pub(crate) fn measured(mut self, measure: Measure) -> Self {
        if measure.in_tokens() {
            for row in &mut self.rows {
                for cell in &mut row.cells {
                    cell.len = measure.len(&cell.text);
                }
                *row = Row::new(std::mem::take(&mut row.cells));
            }
        }
        self
    }

    /// Whether any cell has text.
    pub(crate) fn has_text(&self) -> bool {
        self.rows.iter().any(|row| row.len > 0)
    }

    /// The whole table in compact form: rows and cells alone, without attributes other than spans.
    pub(crate) fn to_html(&self) -> String {
        let mut html = String::from("<table>");
        push_rows(&mut html, &self.rows, "td");
        html.push_str("</table>");
        html
    }
}

/// Writes rows with cells of kind `tag`; no cell spans more rows than are written.
pub(crate) fn push_rows<'r, I>(html: &mut String, rows: I, tag: &str)
where
    I: IntoIterator<Item = &'r Row, IntoIter: ExactSizeIterator>,
{
    let rows = rows.into_iter();
    let mut below = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    for row in rows {
        html.push_str("<tr>");
        for cell in &row.cells {
            html.push('<');
            html.push_str(tag);
            push_span(html, "colspan", cell.colspan);
            push_span(html, "rowspan", cell.rowspan.min(below));
            html.push('>');
            push_escaped(html, &cell.text);
            html.push_str("</");
            html.push_str(tag);
            html.push('>');
        }
        html.push_str("</tr>");
        below = below.saturating_sub(1);
    }
}

fn push_span(html: &mut String, name: &str, span: u32) {
    if span > 1 {
        html.push_str(&format!(" {name}=\"{span}\""));
    }
}

pub(crate) fn push_escaped(html: &mut String, text: &str) {
    for c in text.chars() {
        match escape(c) {
            Some(reference) => html.push_str(reference),
            None => html.push(c),
        }
    }
}

fn escape(c: char) -> Option<&'static str> {
    match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        _ => None,
    }
}

/// Length of `c` as written in HTML.
pub(crate) fn escaped_len(c: char) -> usize {
    escape(c).map_or(1, str::len)
}

/// Appends the texts of rows, joined by spaces.
pub(crate) fn push_text<'r>(text: &mut String, rows: impl IntoIterator<Item = &'r Row>) {
    for cell in rows.into_iter().flat_map(|row| &row.cells) {
        text::push_joined(text, &cell.text, " ");
    }
}

/// Builds a grid from tokens.
#[derive(Default)]
struct Reader {
    rows: Vec<ReadRow>,
    /// The row being read.
    row: Option<ReadRow>,
    /// The cell being read; there is a row then.
    cell: Option<ReadCell>,
    /// Tables open within the cell.
    nested: usize,
    in_head: bool,
    section: usize,
}

#[derive(Default)]
struct ReadRow {
    cells: Vec<Cell>,
    /// Whether it stands in a head section, or is a caption.
    in_head: bool,
    /// Whether all cells so far are header cells or blank, as the corner of a table is.
    only_header_cells: bool,
    /// Whether the last cell is a header cell.
    ends_in_header_cell: bool,
    /// Rowspans end at the section's end.
    section: usize,
}

#[derive(Default)]
struct ReadCell {
    text: String,
    tag: StartTag,
    /// Text outside the cells.
    stray: bool,
}

impl Reader {
    fn read(&mut self, token: Token<'_>) {
        match token {
            Token::Text(text) => self.text(&text),
            Token::Start(tag) => self.start(tag),
            Token::End(name) => self.end(&name),
        }
    }

    fn text(&mut self, text: &str) {
        if self.cell.is_none() && !text.trim().is_empty() {
            self.open_cell(StartTag::default(), true);
        }
        if let Some(cell) = &mut self.cell {
            cell.text.push_str(text);
        }
    }

    fn start(&mut self, tag: StartTag) {
        let in_cell = self.cell.as_ref().is_some_and(|cell| !cell.stray);
        if tag.name == "table" && in_cell {
            self.nested += 1;
        }
        if self.nested > 0 {
            return self.word_boundary(&tag.name);
        }
        match tag.name.as_str() {
            "td" | "th" => self.open_cell(tag, false),
            "tr" => {
                self.close_row();
                self.open_row(self.in_head);
            }
            "table" | "thead" | "tbody" | "tfoot" => self.open_section(tag.name == "thead"),
            "caption" => {
                self.close_row();
                self.open_row(true);
                self.open_cell(tag, false);
            }
            name => self.word_boundary(name),
        }
    }

    fn end(&mut self, name: &str) {
        if self.nested > 0 {
            self.nested -= usize::from(name == "table");
            return self.word_boundary(name);
        }
        match name {
            "td" | "th" => self.close_cell(),
            "tr" | "caption" => self.close_row(),
            "table" | "thead" | "tbody" | "tfoot" => self.open_section(false),
            name => self.word_boundary(name),
        }
    }

    fn word_boundary(&mut self, tag_name: &str) {
        if let Some(cell) = &mut self.cell
            && separates_words(tag_name)
        {
            cell.text.push(' ');
        }
    }

    fn open_section(&mut self, is_head: bool) {
        self.close_row();
        self.section += 1;
        self.in_head = is_head;
    }

    fn open_row(&mut self, in_head: bool) {
        self.row = Some(ReadRow {
            in_head,
            only_header_cells: true,
            section: self.section,
            ..ReadRow::default()
        });
    }

    fn open_cell(&mut self, tag: StartTag, stray: bool) {
        self.close_cell();
        if self.row.is_none() {
            self.open_row(self.in_head);
        }
        self.cell = Some(ReadCell {
            tag,
            stray,
            ..ReadCell::default()
        });
    }

    fn close_cell(&mut self) {
        let (Some(read), Some(row)) = (self.cell.take(), &mut self.row) else {
            return;
        };
        let mut cell = Cell::new(text::normalize(&read.text));
        cell.colspan = read.tag.colspan.unwrap_or(1).clamp(1, MAX_COLSPAN);
        cell.rowspan = read.tag.rowspan.unwrap_or(1).min(MAX_ROWSPAN);
        row.ends_in_header_cell = read.tag.name == "th";
        row.only_header_cells &= row.ends_in_header_cell || cell.len == 0;
        row.cells.push(cell);
    }

    fn close_row(&mut self) {
        self.close_cell();
        self.nested = 0;
        self.rows.extend(self.row.take());
    }

    fn finish(mut self) -> Grid {
        self.close_row();
        let is_header = |row: &&ReadRow| row.in_head || (row.only_header_cells && row.ends_in_header_cell);
        let header_rows = self.rows.iter().take_while(is_header).count();
        let mut section = 0;
        let mut below = 0;
        for row in self.rows.iter_mut().rev() {
            below = if row.section == section { below + 1 } else { 1 };
            section = row.section;
            for cell in &mut row.cells {
                // Zero stands for all rows to the end of the section.
                cell.rowspan = if cell.rowspan == 0 {
                    below
                } else {
                    cell.rowspan.min(below)
                };
            }
        }
        let rows = self.rows.into_iter().map(|row| Row::new(row.cells));
        Grid {
            rows: rows.collect(),
            header_rows,
        }
    }
}

/// Whether the words before and after a tag of this name are two, as with a line break.
fn separates_words(tag_name: &str) -> bool {
    const BLOCKS: &[&str] = &[
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "caption",
        "center",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    BLOCKS.binary_search(&tag_name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(html: &str) -> String {
        Grid::parse(html).to_html()
    }

    #[test]
    fn keeps_rows_cells_and_spans_alone() {
        let html = "<table class='x'>\n <thead><tr><th colspan=2 style='y'>A &amp; B</th></tr></thead>\n\
                    <tbody><tr><td rowspan='2'> a\n b </td><td><b>c</b>d<br/>e</td></tr><tr><td>f</td></tr></tbody></table>";
        assert_eq!(
            compact(html),
            "<table><tr><td colspan=\"2\">A &amp; B</td></tr>\
             <tr><td rowspan=\"2\">a b</td><td>cd e</td></tr><tr><td>f</td></tr></table>"
        );
    }

    #[test]
    fn compact_form_is_stable() {
        let html = "<table><tr><td>a &lt; b</td><td></td></tr></table>";
        assert_eq!(compact(html), html);
    }

    #[test]
    fn nested_tables_become_text() {
        assert_eq!(
            compact("<table><tr><td>a<table><tr><td>b</td><td>c</td></tr></table>d</td><td>e</td></tr></table>"),
            "<table><tr><td>a b c d</td><td>e</td></tr></table>"
        );
    }

    #[test]
    fn missing_tags_are_supplied() {
        assert_eq!(
            compact("<tr><td>a<td>b<tr><td>c"),
            "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"
        );
        assert_eq!(compact("<td>a"), "<table><tr><td>a</td></tr></table>");
        assert!(Grid::parse(" <table> </table> ").rows.is_empty());
    }

    #[test]
    fn text_outside_cells_is_kept() {
        assert_eq!(
            compact("<div>x</div><table><caption>y</caption><tr>z<td>a</td></tr></table>"),
            "<table><tr><td>x</td></tr><tr><td>y</td></tr><tr><td>z</td><td>a</td></tr></table>"
        );
    }

    #[test]
    fn header_rows_lead() {
        let header_rows = |html: &str| Grid::parse(html).header_rows;
        assert_eq!(
            header_rows("<thead><tr><td>a</td></tr><tr><td>b</td></tr></thead><tr><td>c</td></tr>"),
            2
        );
        assert_eq!(
            header_rows("<tr><td></td><th>a</th><td> </td><th>b</th></tr><tr><th>c</th><td>d</td></tr>"),
            1
        );
        assert_eq!(header_rows("<tr><th>a</th><td></td></tr>"), 0);
        assert_eq!(header_rows("<tr><td>a</td></tr><tr><th>b</th></tr>"), 0);
        assert_eq!(header_rows("<tr></tr><tr><th>b</th></tr>"), 0);
    }

    #[test]
    fn rowspans_end_with_their_section() {
        let grid = Grid::parse(
            "<thead><tr><th rowspan=5>a</th></tr></thead><tbody><tr><td rowspan=0>b</td></tr><tr></tr><tr></tr></tbody>",
        );
        assert_eq!(grid.rows[0].cells[0].rowspan, 1);
        assert_eq!(grid.rows[1].cells[0].rowspan, 3);
    }

    #[test]
    fn block_names_are_sorted_for_the_search() {
        assert!(separates_words("address") && separates_words("br") && separates_words("ul") && separates_words("p"));
        assert!(!separates_words("b") && !separates_words("span"));
    }

    #[test]
    fn deep_nesting_is_flat() {
        let deep = "<table><tr><td>x".repeat(100_000);
        assert_eq!(Grid::parse(&deep).rows.len(), 1);
    }
}
