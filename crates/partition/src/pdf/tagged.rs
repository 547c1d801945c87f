//! Tables that the structure of a tagged file describes: their cells, with spans, and the text of each.
//!
//! The structure is believed where what it says fits what is drawn: rows follow each other downwards and
//! cells sideways, and nothing else stands among them. Many programs leave out the spans of cells, which
//! shows in rows of unequal length; what is drawn tells more then.

use std::collections::{BTreeMap, HashMap};

use super::engine::{TagKind, TaggedCell};
use super::line::{lines, union};
use super::segment::Segment;
use super::table::{Cell, Table};
use super::text::append_line;

/// Longest text of a cell on average, in characters; with more, a table lays out a page.
const MAX_CELL: usize = 240;
/// Space around the text of cells, in font sizes.
const PADDING: f32 = 0.5;
/// Rows times columns of one table.
const MAX_GRID: usize = 100_000;
/// Steps from row to row, and from cell to cell, of which at most one in so many may go backwards.
const BACKWARDS: usize = 10;

/// Builds the tables whose cells are given and takes their text out of `segments`.
pub(super) fn tagged_tables(cells: &[TaggedCell], segments: &mut Vec<Segment>) -> Vec<Table> {
    let mut by_table: BTreeMap<u32, Vec<&TaggedCell>> = BTreeMap::new();
    for cell in cells {
        by_table.entry(cell.table).or_default().push(cell);
    }
    let mut tables = Vec::new();
    for cells in by_table.into_values() {
        let mut texts = texts_of(&cells, segments);
        if let Some(table) = build(&cells, &mut texts, segments) {
            let own: HashMap<u32, ()> = cells.iter().map(|cell| (cell.element, ())).collect();
            segments.retain(|segment| !is_in(segment, &own));
            tables.push(table);
        }
    }
    tables
}

fn is_in(segment: &Segment, own: &HashMap<u32, ()>) -> bool {
    segment.table.is_none() && segment.tag.kind == TagKind::Cell && own.contains_key(&segment.tag.element)
}

/// The segments of each cell.
fn texts_of(cells: &[&TaggedCell], segments: &[Segment]) -> HashMap<u32, Vec<Segment>> {
    let mut texts: HashMap<u32, Vec<Segment>> = cells.iter().map(|cell| (cell.element, Vec::new())).collect();
    let tagged = segments
        .iter()
        .filter(|s| s.table.is_none() && s.tag.kind == TagKind::Cell);
    for segment in tagged {
        if let Some(text) = texts.get_mut(&segment.tag.element) {
            text.push(segment.clone());
        }
    }
    texts
}

fn build(cells: &[&TaggedCell], texts: &mut HashMap<u32, Vec<Segment>>, segments: &[Segment]) -> Option<Table> {
    let first = cells.iter().map(|cell| cell.row).min()?;
    let rows = cells.iter().map(|cell| cell.row + cell.row_span).max()? - first;
    let columns = cells.iter().map(|cell| cell.column + cell.column_span).max()?;
    let filled = texts.values().filter(|text| !text.is_empty()).count();
    let chars: usize = texts
        .values()
        .flatten()
        .map(|segment| segment.text.chars().count())
        .sum();
    if rows < 2 || columns < 2 || rows.checked_mul(columns)? > MAX_GRID || filled < 3 || chars > MAX_CELL * filled {
        return None;
    }
    let boxes: HashMap<u32, [f32; 4]> = texts
        .iter()
        .filter_map(|(element, text)| {
            let boxes = text.iter().map(|s| [s.x0, s.y0, s.x1, s.y1]);
            Some((*element, boxes.reduce(union)?))
        })
        .collect();
    let bbox = boxes.values().copied().reduce(union)?;
    let area: usize = cells.iter().map(|cell| cell.row_span * cell.column_span).sum();
    if area != rows * columns || !is_laid_out(cells, &boxes) || foreign(bbox, texts, segments) * 20 > chars {
        return None;
    }
    let size = texts.values().flatten().map(|segment| segment.size).fold(0.0, f32::max);
    let [x0, y0, x1, y1] = bbox;
    let padding = PADDING * size;
    let mut table = Table {
        rows,
        columns,
        cells: Vec::with_capacity(cells.len()),
        bbox: [x0 - padding, y0 - padding, x1 + padding, y1 + padding],
        separators: Vec::new(),
    };
    for cell in cells {
        let content = texts.remove(&cell.element).unwrap_or_default();
        let bold = cell.header || (!content.is_empty() && content.iter().all(|segment| segment.bold));
        let mut text = String::new();
        for line in lines(content) {
            append_line(&mut text, &line.text);
        }
        text.retain(|ch| ch != '\u{AD}');
        table.cells.push(Cell {
            row: cell.row - first,
            column: cell.column,
            row_span: cell.row_span,
            column_span: cell.column_span,
            text,
            bold,
            bbox: boxes.get(&cell.element).copied(),
            page: 0,
        });
    }
    table.cells.sort_by_key(|cell| (cell.row, cell.column));
    table.compact();
    (table.rows >= 2 && table.columns >= 2).then_some(table)
}

/// Whether rows follow each other downwards, and the cells of a row in one direction.
fn is_laid_out(cells: &[&TaggedCell], boxes: &HashMap<u32, [f32; 4]>) -> bool {
    let mut placed: Vec<(&TaggedCell, [f32; 4])> = cells
        .iter()
        .filter_map(|cell| Some((*cell, *boxes.get(&cell.element)?)))
        .collect();
    placed.sort_by_key(|(cell, _)| (cell.row, cell.column));
    let (mut steps, mut up, mut right, mut left) = (0, 0, 0, 0);
    for pair in placed.windows(2) {
        let [(a, a_box), (b, b_box)] = pair else { continue };
        if a.row == b.row {
            right += usize::from(b_box[0] > a_box[0]);
            left += usize::from(b_box[0] < a_box[0]);
        } else {
            steps += 1;
            // The top of a cell that spans rows may stand anywhere among them.
            let spans = a.row_span > 1 || b.row_span > 1;
            up += usize::from(!spans && b_box[3] < a_box[1]);
        }
    }
    up * BACKWARDS <= steps && left.min(right) * BACKWARDS <= left + right
}

/// Characters of other text that stands within a table.
fn foreign([x0, y0, x1, y1]: [f32; 4], texts: &HashMap<u32, Vec<Segment>>, segments: &[Segment]) -> usize {
    segments
        .iter()
        .filter(|s| s.tag.kind != TagKind::Cell || !texts.contains_key(&s.tag.element))
        .filter(|s| {
            let (x, y) = ((s.x0 + s.x1) / 2.0, (s.y0 + s.y1) / 2.0);
            (x0..=x1).contains(&x) && (y0..=y1).contains(&y)
        })
        .map(|s| s.text.chars().count())
        .sum()
}

#[cfg(test)]
mod tests {
    use docmill_model::settings::PartitionOptions;

    use super::super::testing::{PdfBuilder, partition, show};

    /// A page with four tagged cells, the first of which spans two columns; `places` are where they are
    /// drawn.
    fn html(places: [(f32, f32); 5], more: &str) -> Option<String> {
        html_of(places, more, "/A << /O /Table /ColSpan 2 >>")
    }

    /// The same with the attributes of the first cell given.
    fn html_of(places: [(f32, f32); 5], more: &str, first: &str) -> Option<String> {
        let mut content = String::new();
        let texts = ["Sales of the year", "North", "12 units", "South", "9 units"];
        for (index, ((x, y), text)) in places.into_iter().zip(texts).enumerate() {
            content += &format!("/TD << /MCID {index} >> BDC {} EMC\n", show('F', 10.0, x, y, text));
        }
        let content = content + more;
        let mut builder = PdfBuilder::new();
        // Objects: 5 the table, 6 to 8 its rows, 9 to 13 the cells, 14 the tree, 15 the parent tree.
        builder.object("<< /S /Table /P 14 0 R /K [6 0 R 7 0 R 8 0 R] >>");
        for kids in ["9 0 R", "10 0 R 11 0 R", "12 0 R 13 0 R"] {
            builder.object(format!("<< /S /TR /P 5 0 R /K [{kids}] >>"));
        }
        for (index, (row, kind)) in [(6, "TH"), (7, "TD"), (7, "TD"), (8, "TD"), (8, "TD")]
            .into_iter()
            .enumerate()
        {
            let span = if index == 0 { first } else { "" };
            builder.object(format!("<< /S /{kind} /P {row} 0 R /K {index} {span} >>"));
        }
        builder.object("<< /Type /StructTreeRoot /K 5 0 R /ParentTree 15 0 R >>");
        builder.object("<< /Nums [0 [9 0 R 10 0 R 11 0 R 12 0 R 13 0 R]] >>");
        let bytes = builder
            .page(&content, "/StructParents 0")
            .catalog("/StructTreeRoot 14 0 R")
            .build();
        let options = PartitionOptions {
            infer_table_structure: true,
            ..Default::default()
        };
        let document = partition(&bytes, &options).unwrap();
        document
            .elements
            .into_iter()
            .find_map(|element| element.metadata.text_as_html)
    }

    const PLACES: [(f32, f32); 5] = [
        (40.0, 500.0),
        (40.0, 480.0),
        (110.0, 480.0),
        (40.0, 460.0),
        (110.0, 460.0),
    ];

    #[test]
    fn tagged_cells_make_a_table_with_spans() {
        assert_eq!(
            html(PLACES, "").as_deref(),
            Some(
                "<table><thead><tr><th colspan=\"2\">Sales of the year</th></tr></thead><tbody>\
                 <tr><td>North</td><td>12 units</td></tr><tr><td>South</td><td>9 units</td></tr></tbody></table>"
            )
        );
    }

    #[test]
    fn tags_that_do_not_fit_the_page_are_not_believed() {
        let upside_down = [
            (40.0, 460.0),
            (40.0, 480.0),
            (110.0, 480.0),
            (40.0, 500.0),
            (110.0, 500.0),
        ];
        let spans = |html: Option<String>| html.is_some_and(|html| html.contains("colspan"));
        assert!(!spans(html(upside_down, "")));
        let foreign = show('F', 10.0, 60.0, 470.0, "text that is no part of the table at all");
        assert!(!spans(html(PLACES, &foreign)));
    }

    #[test]
    fn rows_of_unequal_length_lack_their_spans() {
        let table = html_of(PLACES, "", "");
        assert!(!table.is_some_and(|html| html.contains("<th>Sales")));
    }
}
