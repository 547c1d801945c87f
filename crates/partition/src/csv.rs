//! Reader of delimited text: CSV and TSV.
//!
//! The whole file is one `Table` element. The delimiter is worked out from the file, rows may differ
//! in length (short ones are filled up with empty cells), quoted cells follow RFC 4180.

mod sniff;

use docmill_model::{Element, ElementType};

use crate::charset;
use crate::context::Context;
use crate::error::PartitionError;
use crate::filetype::FileType;
use crate::html::push_escaped;

pub(crate) use sniff::looks_delimited;

/// Filling up short rows may at most double a table.
const MAX_FILL_RATIO: usize = 2;

pub(crate) fn partition(bytes: &[u8], kind: FileType, cx: &mut Context) -> Result<(), PartitionError> {
    let text = charset::decode_file(bytes, None, cx)?;
    let preferred = if kind == FileType::Tsv { b'\t' } else { b',' };
    let (delimiter, body) = match sniff::declared_delimiter(&text) {
        Some((delimiter, body)) => (delimiter, body),
        None => (sniff::delimiter(&text, preferred), &*text),
    };
    let extent = Extent::measure(body, delimiter, cx.limits.max_table_cells)?;
    if extent.cells == 0 {
        return Ok(());
    }
    let mut element = render(body, delimiter, &extent);
    if element.text.is_empty() {
        return Ok(());
    }
    element.kind = ElementType::Table;
    cx.push(element)
}

/// How large a table is.
struct Extent {
    width: usize,
    cells: usize,
    rows: usize,
}

impl Extent {
    fn measure(body: &str, delimiter: u8, max_cells: u64) -> Result<Self, PartitionError> {
        let mut extent = Self {
            width: 0,
            cells: 0,
            rows: 0,
        };
        let mut reader = reader(body, delimiter);
        let mut record = csv::ByteRecord::new();
        while read(&mut reader, &mut record)? {
            extent.rows += 1;
            extent.cells += record.len();
            extent.width = extent.width.max(record.len());
            if extent.cells as u64 > max_cells {
                return Err(PartitionError::limit("max_table_cells", max_cells, "table cells"));
            }
        }
        Ok(extent)
    }

    /// The length every row is filled up to.
    fn filled_width(&self) -> usize {
        match self.width.checked_mul(self.rows) {
            Some(filled) if filled <= self.cells.saturating_mul(MAX_FILL_RATIO) => self.width,
            _ => 0,
        }
    }
}

fn reader(body: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(body.as_bytes())
}

fn read(reader: &mut csv::Reader<&[u8]>, record: &mut csv::ByteRecord) -> Result<bool, PartitionError> {
    reader
        .read_byte_record(record)
        .map_err(|error| PartitionError::corrupt("CSV", error))
}

fn render(body: &str, delimiter: u8, extent: &Extent) -> Element {
    let mut text = String::with_capacity(body.len());
    let mut html = String::with_capacity(body.len() + extent.cells.saturating_mul(9));
    let width = extent.filled_width();
    let mut reader = reader(body, delimiter);
    let mut record = csv::ByteRecord::new();
    html.push_str("<table>");
    // The first pass over the same bytes went through, so this one does too.
    while matches!(reader.read_byte_record(&mut record), Ok(true)) {
        html.push_str("<tr>");
        for cell in &record {
            let cell = String::from_utf8_lossy(cell);
            let mut words = cell.split_whitespace().peekable();
            if !text.is_empty() && words.peek().is_some() {
                text.push(' ');
            }
            html.push_str("<td>");
            while let Some(word) = words.next() {
                text.push_str(word);
                push_escaped(&mut html, word);
                if words.peek().is_some() {
                    text.push(' ');
                    html.push(' ');
                }
            }
            html.push_str("</td>");
        }
        for _ in record.len()..width {
            html.push_str("<td></td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    let mut element = Element::new(ElementType::Table, text);
    element.metadata.text_as_html = Some(html);
    element
}

#[cfg(test)]
mod tests {
    use docmill_model::limits::ParseLimits;
    use docmill_model::settings::PartitionOptions;

    use super::*;

    fn html_of(bytes: &[u8], kind: FileType) -> String {
        table(bytes, kind).unwrap().metadata.text_as_html.unwrap()
    }

    fn table(bytes: &[u8], kind: FileType) -> Result<Element, PartitionError> {
        let (options, limits) = (PartitionOptions::default(), ParseLimits::default());
        let mut progress = |_| {};
        let mut cx = Context::new(None, &options, &limits, &mut progress);
        partition(bytes, kind, &mut cx)?;
        Ok(cx.into_document().elements.remove(0))
    }

    #[test]
    fn cells_are_joined_in_text_and_escaped_in_html() {
        let element = table(b"name,note\nA & B,\"x, <y>\"\n", FileType::Csv).unwrap();
        assert_eq!(element.text, "name note A & B x, <y>");
        assert_eq!(
            element.metadata.text_as_html.unwrap(),
            "<table><tr><td>name</td><td>note</td></tr><tr><td>A &amp; B</td><td>x, &lt;y&gt;</td></tr></table>"
        );
    }

    #[test]
    fn short_rows_are_filled_up() {
        assert_eq!(
            html_of(b"1,2\na,b,c\na,b,c\n", FileType::Csv),
            "<table><tr><td>1</td><td>2</td><td></td></tr><tr><td>a</td><td>b</td><td>c</td></tr>\
             <tr><td>a</td><td>b</td><td>c</td></tr></table>"
        );
    }

    #[test]
    fn one_long_row_does_not_blow_up_the_others() {
        let mut file = "x\n".repeat(2000);
        file.push_str(&"y,".repeat(2000));
        let html = html_of(file.as_bytes(), FileType::Csv);
        assert!(html.len() < 100_000, "{}", html.len());
    }

    #[test]
    fn other_delimiters_and_charsets() {
        let wanted = "<table><tr><td>a</td><td>b</td></tr><tr><td>1,5</td><td>2,5</td></tr></table>";
        assert_eq!(html_of(b"a;b\n1,5;2,5\n", FileType::Csv), wanted);
        assert_eq!(html_of(b"a\tb\n1,5\t2,5\n", FileType::Tsv), wanted);
        assert_eq!(html_of(b"sep=|\na|b\n1,5|2,5\n", FileType::Csv), wanted);
        let utf16: Vec<u8> = "\u{feff}a;b\n1,5;2,5\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(html_of(&utf16, FileType::Csv), wanted);
    }

    #[test]
    fn too_many_cells_are_refused() {
        let (options, mut limits) = (PartitionOptions::default(), ParseLimits::default());
        limits.max_table_cells = 5;
        let mut progress = |_| {};
        let mut cx = Context::new(None, &options, &limits, &mut progress);
        let error = partition(b"1,2,3\n4,5,6\n", FileType::Csv, &mut cx).unwrap_err();
        assert_eq!(error, PartitionError::limit("max_table_cells", 5, "table cells"));
    }
}
