//! Tables as elements: text and HTML from the same cells.

use docmill_model::{Element, ElementType};

/// A cell that is shown; what a span covers is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Columns it covers; 0 and 1 mean one.
    pub(crate) colspan: u32,
    /// Rows it covers; 0 and 1 mean one.
    pub(crate) rowspan: u32,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            colspan: 1,
            rowspan: 1,
        }
    }
}

/// A row; leading header rows form the table's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) header: bool,
}

/// The element of a table, or `None` when no cell holds text.
pub(crate) fn element(rows: &[Row]) -> Option<Element> {
    let text = text(rows);
    if text.is_empty() {
        return None;
    }
    let mut element = Element::new(ElementType::Table, text);
    element.metadata.text_as_html = Some(html(rows));
    Some(element)
}

/// The texts of the cells that hold any, joined by single spaces.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut out = String::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        push_words(&mut out, &cell.text);
    }
    out
}

/// Appends the words of `text`, separated by single spaces from each other and from what is there.
pub(crate) fn push_words(out: &mut String, text: &str) {
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
}

fn html(rows: &[Row]) -> String {
    let mut out = String::from("<table>");
    let head = rows.iter().take_while(|row| row.header).count();
    if head > 0 {
        out.push_str("<thead>");
        rows[..head].iter().for_each(|row| push_row(&mut out, row, "th"));
        out.push_str("</thead>");
    }
    rows[head..].iter().for_each(|row| push_row(&mut out, row, "td"));
    out.push_str("</table>");
    out
}

fn push_row(out: &mut String, row: &Row, tag: &str) {
    out.push_str("<tr>");
    for cell in &row.cells {
        out.push('<');
        out.push_str(tag);
        if cell.colspan > 1 {
            out.push_str(&format!(" colspan=\"{}\"", cell.colspan));
        }
        if cell.rowspan > 1 {
            out.push_str(&format!(" rowspan=\"{}\"", cell.rowspan));
        }
        out.push('>');
        for (i, word) in cell.text.split_whitespace().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            escape(out, word);
        }
        out.push_str("</");
        out.push_str(tag);
        out.push('>');
    }
    out.push_str("</tr>");
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[&str], header: bool) -> Row {
        Row {
            cells: texts.iter().map(|t| Cell::new(*t)).collect(),
            header,
        }
    }

    #[test]
    fn text_and_html_hold_the_same_cells() {
        let mut rows = vec![row(&["A & B", ""], true), row(&["1\n 2", "<x>"], false)];
        rows[0].cells[0].colspan = 2;
        rows[1].cells[1].rowspan = 3;
        let element = element(&rows).unwrap();
        assert_eq!(element.text, "A & B 1 2 <x>");
        assert_eq!(
            element.metadata.text_as_html.as_deref(),
            Some(
                "<table><thead><tr><th colspan=\"2\">A &amp; B</th><th></th></tr></thead>\
                 <tr><td>1 2</td><td rowspan=\"3\">&lt;x&gt;</td></tr></table>"
            )
        );
    }

    #[test]
    fn a_table_without_text_is_none() {
        assert_eq!(element(&[row(&["", " "], false)]), None);
    }
}
