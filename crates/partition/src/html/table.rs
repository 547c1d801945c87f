//! Tables: rows and cells out of the tree, `text` and `text_as_html` out of those.

use docmill_model::{Element, ElementType};

use super::inline::{Inline, Run, is_dropped};
use super::node::{Dom, Id};
use crate::error::PartitionError;

/// Bounds HTML sets on spans.
const MAX_COLSPAN: usize = 1000;
const MAX_ROWSPAN: usize = 65_534;

struct Cell {
    header: bool,
    colspan: usize,
    rowspan: usize,
    run: Run,
}

struct Row {
    in_head: bool,
    cells: Vec<Cell>,
}

/// Appends `text` to `html` with the characters of markup escaped.
pub(crate) fn push_escaped(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\n' => html.push(' '),
            c => html.push(c),
        }
    }
}

/// The table's own rows, without those of tables inside its cells; true when in `thead`.
fn own_rows(dom: &Dom, table: Id) -> Vec<(Id, bool)> {
    let mut rows = Vec::new();
    for child in dom.children(table).filter(|id| !is_dropped(dom, *id)) {
        match dom.name(child) {
            "tr" => rows.push((child, false)),
            section @ ("thead" | "tbody" | "tfoot") => {
                let in_section = dom
                    .children(child)
                    .filter(|id| dom.name(*id) == "tr" && !is_dropped(dom, *id));
                rows.extend(in_section.map(|row| (row, section == "thead")));
            }
            _ => {}
        }
    }
    rows
}

fn own_cells(dom: &Dom, row: Id) -> impl Iterator<Item = Id> {
    dom.children(row)
        .filter(|id| matches!(dom.name(*id), "td" | "th") && !is_dropped(dom, *id))
}

fn has_content(dom: &Dom, top: Id) -> bool {
    dom.descendants(top)
        .any(|id| dom.text(id).is_some_and(|text| !text.trim().is_empty()) || dom.name(id) == "img")
}

/// Whether a table only arranges blocks on the page: it says so (`role`), or no row has more than one
/// cell with content and it is a single row or holds another table.
pub(super) fn is_layout(dom: &Dom, table: Id) -> bool {
    if matches!(dom.attribute(table, "role"), Some("presentation" | "none")) {
        return true;
    }
    let rows = own_rows(dom, table);
    let single_column = rows.iter().all(|(row, _)| {
        own_cells(dom, *row)
            .filter(|cell| has_content(dom, *cell))
            .take(2)
            .count()
            < 2
    });
    single_column && (rows.len() <= 1 || dom.descendants(table).any(|id| dom.name(id) == "table"))
}

/// The caption of a table, if it has one.
pub(super) fn caption(dom: &Dom, table: Id) -> Option<Run> {
    let caption = dom
        .children(table)
        .find(|id| dom.name(*id) == "caption" && !is_dropped(dom, *id))?;
    Some(collect(dom, caption)).filter(|run| !run.text.is_empty())
}

/// The table as an element; `None` when it has no text. `cells_left` is what the document may still
/// have of cells.
pub(super) fn extract(dom: &Dom, table: Id, max_cells: u64) -> Result<Option<Element>, PartitionError> {
    let mut rows = Vec::new();
    let mut count = 0u64;
    for (row, in_head) in own_rows(dom, table) {
        let cells: Vec<Cell> = own_cells(dom, row).map(|cell| read_cell(dom, cell)).collect();
        count += cells.len() as u64;
        if count > max_cells {
            return Err(PartitionError::limit("max_table_cells", max_cells, "table cells"));
        }
        rows.push(Row { in_head, cells });
    }
    let rows = without_spacer_rows(rows);
    let mut text = String::new();
    for cell in rows
        .iter()
        .flat_map(|row| &row.cells)
        .filter(|cell| !cell.run.text.is_empty())
    {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&cell.run.text);
    }
    if text.is_empty() {
        return Ok(None);
    }
    let mut element = Element::new(ElementType::Table, text);
    element.metadata.text_as_html = Some(render(&rows));
    for cell in rows.into_iter().flat_map(|row| row.cells) {
        cell.run.annotate(&mut element.metadata);
    }
    Ok(Some(element))
}

fn read_cell(dom: &Dom, cell: Id) -> Cell {
    let span = |name: &str, max: usize| {
        let value = dom.attribute(cell, name).unwrap_or_default().trim();
        value.parse::<usize>().unwrap_or(1).min(max)
    };
    Cell {
        header: dom.name(cell) == "th",
        colspan: span("colspan", MAX_COLSPAN).max(1),
        rowspan: span("rowspan", MAX_ROWSPAN),
        run: collect(dom, cell),
    }
}

/// The text below `top` on one line: every element that is not inline is a word boundary.
fn collect(dom: &Dom, top: Id) -> Run {
    let mut inline = Inline::default();
    let mut open: Vec<Id> = Vec::new();
    let mut at = dom.first_child(top);
    while let Some(id) = at {
        while open.last().is_some_and(|last| dom.parent(id) != Some(*last)) {
            if let Some(done) = open.pop() {
                inline.leave(dom, done);
                if !is_phrasing(dom.name(done)) {
                    inline.push_space();
                }
            }
        }
        let visit = match dom.text(id) {
            Some(text) => {
                inline.push(text);
                false
            }
            None if is_dropped(dom, id) => false,
            None => {
                if !is_phrasing(dom.name(id)) {
                    inline.push_space();
                }
                // On one line, only a mark shows where an item starts.
                if dom.name(id) == "li" && starts_with_text(dom, id) {
                    inline.push("- ");
                }
                inline.enter(dom, id)
            }
        };
        if visit && dom.first_child(id).is_some() {
            open.push(id);
        }
        at = dom.following(id, top, visit);
    }
    while let Some(done) = open.pop() {
        inline.leave(dom, done);
    }
    inline.take()
}

/// Whether an item has text of its own before any further item.
fn starts_with_text(dom: &Dom, item: Id) -> bool {
    dom.descendants(item)
        .take_while(|id| dom.name(*id) != "li")
        .any(|id| dom.text(id).is_some_and(|text| !text.trim().is_empty()))
}

/// Elements that stand within a line of text.
fn is_phrasing(name: &str) -> bool {
    matches!(
        name,
        "" | "a"
            | "abbr"
            | "acronym"
            | "b"
            | "bdi"
            | "bdo"
            | "big"
            | "cite"
            | "code"
            | "data"
            | "del"
            | "dfn"
            | "em"
            | "font"
            | "i"
            | "ins"
            | "kbd"
            | "mark"
            | "math"
            | "q"
            | "rb"
            | "rt"
            | "ruby"
            | "s"
            | "samp"
            | "small"
            | "span"
            | "strike"
            | "strong"
            | "sub"
            | "sup"
            | "time"
            | "tt"
            | "u"
            | "var"
            | "wbr"
    )
}

/// Drops rows that draw nothing of their own and shortens the spans that run across them: rows
/// without cells, and rows of which every cell goes on below while the next row fills the rest. The
/// cells of the latter move down to the start of the next row.
fn without_spacer_rows(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        for cell in &mut row.cells {
            // rowspan=0: down to the end.
            if cell.rowspan == 0 {
                cell.rowspan = MAX_ROWSPAN;
            }
        }
    }
    let total = rows.len();
    let dropped: Vec<bool> = (0..total).map(|i| is_spacer(&rows, i)).collect();
    // kept_before[i]: rows kept among the first i.
    let mut kept_before = Vec::with_capacity(total + 1);
    kept_before.push(0usize);
    for (i, is_dropped) in dropped.iter().enumerate() {
        kept_before.push(kept_before[i] + usize::from(!is_dropped));
    }
    let mut kept: Vec<Row> = Vec::with_capacity(total);
    let mut carried: Vec<Cell> = Vec::new();
    for (i, mut row) in rows.into_iter().enumerate() {
        for cell in &mut row.cells {
            let end = (i + cell.rowspan).min(total);
            cell.rowspan = (kept_before[end] - kept_before[i]).max(1);
        }
        if dropped[i] {
            carried.append(&mut row.cells);
        } else {
            carried.append(&mut row.cells);
            row.cells = std::mem::take(&mut carried);
            kept.push(row);
        }
    }
    kept
}

fn is_spacer(rows: &[Row], index: usize) -> bool {
    let Some(row) = rows.get(index) else { return false };
    if row.cells.is_empty() {
        return true;
    }
    let width = |row: &Row| row.cells.iter().map(|cell| cell.colspan).sum::<usize>();
    let widest = rows.first().map_or(0, width);
    rows.get(index + 1)
        .is_some_and(|next| !next.cells.is_empty() && next.in_head == row.in_head)
        && row.cells.iter().all(|cell| cell.rowspan > 1)
        && width(row) < widest
}

fn render(rows: &[Row]) -> String {
    let mut html = String::from("<table>");
    let has_head = rows.iter().any(|row| row.in_head);
    let mut section = None;
    for row in rows {
        if has_head && section != Some(row.in_head) {
            html.push_str(match section {
                None => "",
                Some(true) => "</thead>",
                Some(false) => "</tbody>",
            });
            html.push_str(if row.in_head { "<thead>" } else { "<tbody>" });
            section = Some(row.in_head);
        }
        html.push_str("<tr>");
        row.cells.iter().for_each(|cell| render_cell(&mut html, cell));
        html.push_str("</tr>");
    }
    html.push_str(match section {
        None => "",
        Some(true) => "</thead>",
        Some(false) => "</tbody>",
    });
    html.push_str("</table>");
    html
}

fn render_cell(html: &mut String, cell: &Cell) {
    let tag = if cell.header { "th" } else { "td" };
    html.push('<');
    html.push_str(tag);
    for (name, span) in [("colspan", cell.colspan), ("rowspan", cell.rowspan)] {
        if span > 1 {
            html.push_str(&format!(" {name}=\"{span}\""));
        }
    }
    html.push('>');
    push_escaped(html, &cell.run.text);
    html.push_str("</");
    html.push_str(tag);
    html.push('>');
}
