//! Segments to lines.

use super::engine::Tag;
use super::segment::{Segment, same_line};
use super::spacing::Break;
use super::text::{bullet_length, is_marker};

/// A gap within a line that is wider than this many font sizes separates cells.
const CELL_GAP: f32 = 1.5;
/// Texts of unlike size further apart than this many font sizes are not one line.
const FAR_GAP: f32 = 3.0;
/// A larger ratio of sizes is a change of style.
pub(super) const SIZE_CHANGE: f32 = 1.14;

/// One line of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) bbox: [f32; 4],
    pub(super) base: f32,
    pub(super) size: f32,
    pub(super) font: u16,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) monospace: bool,
    /// The parts that gaps separate.
    pub(super) parts: Vec<Part>,
    /// Number of parts that wide gaps separate.
    pub(super) cells: usize,
    /// What the file's structure says it is.
    pub(super) tag: Tag,
    /// Stands for a table of the page.
    pub(super) table: Option<usize>,
}

impl Line {
    pub(super) fn x0(&self) -> f32 {
        self.bbox[0]
    }

    pub(super) fn x1(&self) -> f32 {
        self.bbox[2]
    }

    /// Dots that lead the eye to a page number.
    pub(super) fn has_leaders(&self) -> bool {
        self.text.contains("....") || self.text.contains(". . . .") || self.text.contains("……")
    }

    pub(super) fn is_item(&self) -> bool {
        bullet_length(&self.text).is_some()
    }
}

/// A stretch of a line without a gap.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) bold: bool,
    /// Spaces within it that may separate cells of a tight table.
    pub(super) breaks: Vec<Break>,
}

/// Puts segments on common baselines together.
pub(super) fn lines(mut region: Vec<Segment>) -> Vec<Line> {
    region.sort_by(|a, b| a.base.total_cmp(&b.base));
    let mut lines = Vec::new();
    let mut row: Vec<Segment> = Vec::new();
    let (mut base, mut size) = (0.0, 0.0);
    for segment in region {
        let apart = segment.table.is_some() || row.last().is_some_and(|last| last.table.is_some());
        if !row.is_empty() && (apart || !same_line(base, size, segment.base, segment.size)) {
            lines.extend(split_row(std::mem::take(&mut row)));
            size = 0.0;
        }
        if segment.size > size {
            (base, size) = (segment.base, segment.size);
        }
        row.push(segment);
    }
    lines.extend(split_row(row));
    lines
}

/// Makes lines of the segments of one row: several where texts of unlike size stand far apart.
fn split_row(mut row: Vec<Segment>) -> Vec<Line> {
    row.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    let mut out = Vec::new();
    let mut group: Vec<Segment> = Vec::new();
    for segment in row {
        let apart = group.last().is_some_and(|last| {
            let size = last.size.max(segment.size);
            segment.x0 - last.x1 > FAR_GAP * size && size > SIZE_CHANGE * last.size.min(segment.size)
        });
        if apart {
            out.extend(line(std::mem::take(&mut group)));
        }
        group.push(segment);
    }
    out.extend(line(group));
    out
}

fn line(row: Vec<Segment>) -> Option<Line> {
    let main = row.iter().max_by_key(|segment| segment.text.len())?;
    let mut line = Line {
        text: String::new(),
        bbox: [main.x0, main.y0, main.x1, main.y1],
        base: main.base,
        size: main.size,
        font: main.font,
        bold: main.bold,
        italic: main.italic,
        monospace: main.monospace,
        parts: Vec::new(),
        cells: 0,
        tag: main.tag,
        table: main.table,
    };
    let total: usize = row.iter().map(|segment| segment.text.len()).sum();
    let bold: usize = row.iter().filter(|s| s.bold).map(|s| s.text.len()).sum();
    line.bold = bold * 10 > total * 8;
    let mut end = f32::NEG_INFINITY;
    for segment in &row {
        line.cells += usize::from(segment.x0 - end > CELL_GAP * line.size);
        line.parts.push(Part {
            text: segment.text.clone(),
            x0: segment.x0,
            x1: segment.x1,
            bold: segment.bold,
            breaks: segment.breaks.clone(),
        });
        if !line.text.is_empty() {
            line.text.push(' ');
        }
        line.text.push_str(&segment.text);
        end = end.max(segment.x1);
        line.bbox = union(line.bbox, [segment.x0, segment.y0, segment.x1, segment.y1]);
    }
    // A bullet or number set apart from its text makes no table row.
    if line.cells == 2 && row.first().is_some_and(|first| is_marker(&first.text)) {
        line.cells = 1;
    }
    Some(line)
}

pub(super) fn union(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}
