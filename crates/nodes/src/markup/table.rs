//! Safe HTML of a table.

use super::grid::{Grid, push_rows};

/// The table in `html` as rows and cells alone, with header cells in `thead`; `None` if it has no text.
/// Nothing else of the markup is kept, so nothing in it can be executed or fetched.
pub(crate) fn sanitize_table(html: &str) -> Option<String> {
    let grid = Grid::parse(html);
    grid.has_text().then(|| write_table(&grid, false))
}

/// Writes a table; with `lines` each row on a line of its own.
pub(crate) fn write_table(grid: &Grid, lines: bool) -> String {
    let (header, body) = grid.rows.split_at(grid.header_rows.min(grid.rows.len()));
    let mut html = String::from("<table>");
    for (rows, section, cell) in [(header, "thead", "th"), (body, "tbody", "td")] {
        if !rows.is_empty() {
            html.push_str(&format!("<{section}>"));
            push_rows(&mut html, rows, cell);
            html.push_str(&format!("</{section}>"));
        }
    }
    html.push_str("</table>");
    match lines {
        true => html
            .replace("<tr>", "\n<tr>")
            .replace("</thead>", "\n</thead>")
            .replace("</tbody>", "\n</tbody>"),
        false => html,
    }
}

/// The texts of a table's cells, joined by spaces.
pub(crate) fn table_text(grid: &Grid) -> String {
    let mut text = String::new();
    super::grid::push_text(&mut text, &grid.rows);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_cells_and_spans_are_kept() {
        let html = "<table onclick=x()><thead><tr><th style=y>A<script>alert(1)</script></th><th>B</th></tr></thead>\
                    <tr><td colspan=2><a href='javascript:x'>c &lt;</a><img src=x onerror=y></td></tr></table>";
        assert_eq!(
            sanitize_table(html).unwrap(),
            "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td colspan=\"2\">c &lt;</td></tr></tbody></table>"
        );
        assert_eq!(sanitize_table("<table><tr><td> </td></tr></table>"), None);
        let safe = sanitize_table(html).unwrap();
        assert_eq!(sanitize_table(&safe).as_ref(), Some(&safe));
    }
}
