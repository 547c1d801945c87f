//! Lines of a table without borders to rows of cells.
//!
//! The columns are known. What has to be found out is which lines are rows and which go on with the
//! cells of the row above: wrapped labels, texts of several lines, and figures set at half the height
//! of their label.

mod checks;
mod heads;
mod places;
mod symbols;

use self::places::{are_parted, begin_together, extents, indents, settled, stands_below};
use super::grid::Stroke;
use super::line::{Line, Part, union};
use super::script::is_unspaced;
use super::table::{Cell, Table};
use super::text::{append_line, without_leaders};

/// Baselines closer than this, in font sizes, are one row.
const SAME_ROW: f32 = 0.8;
/// Lines of one text stand at least this far apart, in font sizes.
const LEAST_LEADING: f32 = 0.95;
/// A step larger than this many of the smallest is one between rows, where such exist.
const ROW_STEP: f32 = 1.22;
/// Farthest line that may continue a cell, in font sizes.
const MAX_LEADING: f32 = 1.75;
/// Space that a word further on a line needs beside its own, in font sizes.
const WORD_SPACE: f32 = 0.3;
/// Narrowest part that may stand in several columns, in points of overlap.
const SPAN_SLACK: f32 = 6.0;

#[derive(Default, Clone)]
struct Content {
    text: String,
    bold: bool,
    /// Columns it stands in.
    span: usize,
    /// Where its text stands.
    bbox: Option<[f32; 4]>,
}

fn joined_boxes(a: Option<[f32; 4]>, b: Option<[f32; 4]>) -> Option<[f32; 4]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(union(a, b)),
        (a, b) => a.or(b),
    }
}

impl Content {
    fn is_number(&self) -> bool {
        is_number(&self.text)
    }

    /// A number, not a dash.
    fn is_figure(&self) -> bool {
        self.is_number() && !is_dash(&self.text)
    }

    /// Adds the next line of the text.
    fn extend(&mut self, more: Self) {
        if more.text.is_empty() {
            return;
        }
        self.bold = more.bold && (self.bold || self.text.is_empty());
        append_line(&mut self.text, &more.text);
        self.span = self.span.max(more.span);
        self.bbox = joined_boxes(self.bbox, more.bbox);
    }

    /// Adds the lines before the text.
    fn prepend(&mut self, mut upper: Self) {
        if !upper.text.is_empty() {
            upper.extend(std::mem::take(self));
            *self = upper;
        }
    }

    fn into_cell(self, (row, column): (usize, usize), (row_span, column_span): (usize, usize)) -> Cell {
        Cell {
            row,
            column,
            row_span,
            column_span,
            text: self.text,
            bold: self.bold,
            bbox: self.bbox,
            page: 0,
        }
    }
}

/// Mostly digits, or a dash that stands for nothing.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let letters = text.chars().filter(|ch| ch.is_alphabetic()).count();
    digits > letters || is_dash(text)
}

/// A dash that stands for nothing.
fn is_dash(text: &str) -> bool {
    matches!(text.trim(), "-" | "–" | "—" | "―" | "−")
}

/// What is drawn among the lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drawn<'a> {
    /// Heights of the rules that no row goes on across.
    pub(super) bounds: &'a [f32],
    /// Rules that are shorter than the table, as under the headings of groups of columns.
    pub(super) under: &'a [Stroke],
    /// Boxes between rules, `[x0, y0, x1, y1]`.
    pub(super) boxes: &'a [[f32; 4]],
}

/// What tells rows apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grouping {
    /// The rules between them.
    ByRules,
    /// The lines themselves; those above `head` are the heading.
    ByLines { head: Option<f32> },
}

/// Rows being collected.
pub(super) struct Rows {
    separators: Vec<f32>,
    columns: usize,
    /// Usual font size.
    size: f32,
    /// Where the labels of rows begin that no label above can go on with.
    indents: Vec<f32>,
    /// Left and right of the texts of each column, but for the first line.
    extents: Vec<Option<(f32, f32)>>,
    /// Per row the content of the columns; `span` 0 where nothing begins.
    rows: Vec<Vec<Content>>,
}

/// From one line to the next.
struct Step<'a> {
    length: f32,
    /// The cells of the line above alone.
    above: &'a [Content],
}

/// How the lines of a table follow each other.
struct Steps {
    /// The smallest step from line to line.
    tight: f32,
    /// Rows stand further apart than the lines within them.
    spaced: bool,
    /// Many labels begin with a small letter, so that one tells nothing.
    lower: bool,
}

impl Steps {
    fn new(lines: &[Line], edge: f32) -> Self {
        let steps: Vec<f32> = lines
            .windows(2)
            .filter_map(|pair| match pair {
                [a, b] => Some(((b.base - a.base), a.size.max(b.size))),
                _ => None,
            })
            .filter(|(step, size)| *step > LEAST_LEADING * size)
            .map(|(step, _)| step)
            .collect();
        let tight = steps.iter().copied().fold(f32::INFINITY, f32::min);
        let wide = steps.iter().filter(|step| **step > ROW_STEP * tight).count();
        let labels = || lines.iter().filter(|line| line.x0() < edge);
        let lower = labels()
            .filter(|line| line.text.starts_with(char::is_lowercase))
            .count();
        Self {
            tight,
            lower: lower * 5 > labels().count() * 2,
            spaced: wide >= 2 || (wide == 1 && steps.len() <= 3),
        }
    }
}

impl Rows {
    /// Puts lines into rows.
    pub(super) fn new(lines: &[Line], separators: Vec<f32>, drawn: Drawn<'_>, grouping: Grouping) -> Self {
        let mut rows = Self {
            columns: separators.len() + 1,
            separators,
            size: lines.iter().map(|line| line.size).sum::<f32>() / lines.len().max(1) as f32,
            indents: Vec::new(),
            extents: Vec::new(),
            rows: Vec::new(),
        };
        rows.separators = settled(&rows.separators, lines);
        rows.join_symbols(lines);
        let cells: Vec<Vec<Content>> = lines.iter().map(|line| rows.cells(line)).collect();
        rows.extents = extents(&cells, rows.columns);
        rows.indents = indents(&cells, drawn.bounds);
        let steps = Steps::new(lines, rows.separators.first().copied().unwrap_or(f32::INFINITY));
        let mut last: Option<(&Line, Vec<Content>)> = None;
        for (line, cells) in lines.iter().zip(cells) {
            let continues = last.as_ref().is_some_and(|(last, above)| {
                let ruled = drawn
                    .bounds
                    .iter()
                    .any(|y| (last.base - 0.2 * last.size..line.base - 0.3 * line.size).contains(y));
                let step = Step {
                    length: line.base - last.base,
                    above,
                };
                // What stands half way between two rows of the others hides no rule between these.
                let parted = rows
                    .rows
                    .last()
                    .is_some_and(|row| are_parted(row, &cells, drawn.bounds, line.size));
                !ruled && !parted && rows.continues(line, &cells, &step, &steps, grouping, drawn)
            });
            last = Some((line, cells.clone()));
            rows.add(cells, continues);
        }
        rows.join_headings(drawn);
        rows
    }

    /// Columns a part stands in, `(first, count)`. What reaches a little into the next column does
    /// not stand in it.
    fn columns_of(&self, part: &Part) -> (usize, usize) {
        let slack = ((part.x1 - part.x0) * 0.1).min(SPAN_SLACK);
        let first = self.separators.partition_point(|&x| x < part.x0 + slack);
        let last = self.separators.partition_point(|&x| x < part.x1 - slack);
        (first, last.max(first) - first + 1)
    }

    fn cells(&self, line: &Line) -> Vec<Content> {
        let mut cells = vec![Content::default(); self.columns];
        for part in line.parts.iter().flat_map(|part| self.split(part)) {
            let (first, count) = self.columns_of(&part);
            let Some(cell) = cells.get_mut(first) else { continue };
            let led = part.text.contains("....").then(|| without_leaders(&part.text));
            let text = led.as_deref().unwrap_or(&part.text).trim();
            if text.is_empty() {
                continue;
            }
            cell.bold = part.bold && (cell.bold || cell.text.is_empty());
            if symbols::follows(text) || cell.text == "(" && text.starts_with(|ch: char| ch.is_ascii_digit()) {
                cell.text.push_str(text);
            } else {
                append_line(&mut cell.text, text);
            }
            cell.span = cell.span.max(count);
            cell.bbox = joined_boxes(cell.bbox, Some([part.x0, line.bbox[1], part.x1, line.bbox[3]]));
        }
        cells
    }

    fn continues(
        &self,
        line: &Line,
        cells: &[Content],
        step: &Step<'_>,
        steps: &Steps,
        grouping: Grouping,
        drawn: Drawn<'_>,
    ) -> bool {
        let Some(row) = self.rows.last() else { return false };
        let above_line = step.above;
        let step = step.length;
        if step < SAME_ROW * line.size {
            return true;
        }
        let pairs = || row.iter().zip(cells);
        let both_numbers =
            pairs().any(|(above, below)| above.is_number() && below.is_number() && !below.text.is_empty());
        // What spans columns heads a group of rows, or columns.
        let spans = pairs().any(|(a, b)| (a.span > 1) != (b.span > 1) && a.span > 0 && b.span > 0);
        match grouping {
            Grouping::ByRules => return !both_numbers && !self.heads_section(row, above_line, cells),
            Grouping::ByLines { head: Some(y) } if line.base < y => {
                return !both_numbers && !spans && self.groups(row, cells, drawn).is_none();
            }
            Grouping::ByLines { .. } => {}
        }
        if both_numbers || spans || step > MAX_LEADING * line.size {
            return false;
        }
        let tight = step <= ROW_STEP * steps.tight;
        let filled = |cells: &[Content]| cells.iter().filter(|cell| !cell.text.is_empty()).count();
        let (above, below) = (filled(row), filled(cells));
        if above == self.columns && below == self.columns && self.columns > 2 {
            return false;
        }
        let goes_on = |above: &Content, below: &Content| {
            (below.text.starts_with(char::is_lowercase) && !steps.lower)
                || above.text.ends_with(['-', ',', '(', '/', '&'])
        };
        let first = cells.first().filter(|cell| !cell.text.is_empty());
        match (first, row.first()) {
            (Some(first), Some(start)) if !start.text.is_empty() => {
                if goes_on(start, first) && stands_below(start, first, line.size) {
                    return true;
                }
                // Lines of a text over several columns, or of a label.
                let alone = above == 1 && below == 1 && self.columns > 1;
                let note = alone && start.span > 1 && first.span > 1 && begin_together(start, first, line.size);
                if note && tight && self.is_set_in(first) {
                    return true;
                }
                let wrapped = alone
                    && !start.text.ends_with(':')
                    && !self.has_room(above_line, cells)
                    && !self.is_deeper(above_line, cells);
                steps.spaced && tight && (below < above || note || wrapped)
            }
            (Some(_), _) => steps.spaced && tight && below < above,
            _ => {
                // Nothing in the first column: the rest of cells above, when those are texts.
                let texts = cells
                    .iter()
                    .filter(|cell| !cell.text.is_empty())
                    .all(|cell| !cell.is_number());
                let under_text = pairs().all(|(a, b)| b.text.is_empty() || !a.text.is_empty());
                let lower = pairs().all(|(a, b)| b.text.is_empty() || goes_on(a, b));
                let partly = pairs().any(|(a, b)| !b.text.is_empty() && goes_on(a, b));
                let rest = under_text && self.columns > 1 && (below == 1 || partly);
                texts && tight && (steps.spaced || lower || rest)
            }
        }
    }

    /// Whether the row so far is a label alone that heads the rows below: the first word of the next line
    /// had room beside it.
    fn heads_section(&self, row: &[Content], above: &[Content], cells: &[Content]) -> bool {
        let alone = row.iter().skip(1).all(|cell| cell.text.is_empty());
        let upper = |cell: &Content| cell.text.starts_with(|ch: char| ch.is_uppercase() || is_unspaced(ch));
        alone && cells.first().is_some_and(upper) && (self.has_room(above, cells) || self.is_deeper(above, cells))
    }

    /// Whether a label is set in under the one above, as far as labels of other rows are.
    fn is_deeper(&self, above: &[Content], below: &[Content]) -> bool {
        let left = |cells: &[Content]| cells.first().and_then(|cell| cell.bbox).map(|bbox| bbox[0]);
        let (Some(above), Some(below)) = (left(above), left(below)) else {
            return false;
        };
        let level = self.indents.iter().any(|x| (x - below).abs() < 0.3 * self.size);
        below > above + 0.5 * self.size && level
    }

    /// Whether the first word of a label would have had room on the line above, so that the label begins
    /// there instead of going on.
    fn has_room(&self, above: &[Content], below: &[Content]) -> bool {
        let (Some(above), Some(below)) = (above.first(), below.first()) else {
            return false;
        };
        let (Some(a), Some(b), Some(Some((_, right)))) = (above.bbox, below.bbox, self.extents.first()) else {
            return false;
        };
        let length = below.text.chars().count().max(1);
        let word = match below.text.chars().next() {
            Some(ch) if is_unspaced(ch) => 1,
            _ => below
                .text
                .split_whitespace()
                .next()
                .map_or(0, |word| word.chars().count()),
        };
        let width = (b[2] - b[0]) * word as f32 / length as f32;
        above.span <= 1 && a[2] + width + WORD_SPACE * self.size < *right
    }

    /// Whether a text begins to the right of where the first column does.
    fn is_set_in(&self, cell: &Content) -> bool {
        let left = self.extents.first().copied().flatten().map(|(left, _)| left);
        let begins = cell.bbox.map(|bbox| bbox[0]);
        left.zip(begins).is_some_and(|(left, x)| x > left + 0.7 * self.size)
    }

    fn add(&mut self, cells: Vec<Content>, continues: bool) {
        match self.rows.last_mut() {
            Some(row) if continues => {
                for (cell, more) in row.iter_mut().zip(cells) {
                    cell.extend(more);
                }
            }
            _ => self.rows.push(cells),
        }
    }

    /// Splits a part at the wide spaces that stand where columns end.
    fn split(&self, part: &Part) -> Vec<Part> {
        let mut out = Vec::new();
        let (mut from, mut x0) = (0, part.x0);
        let slack = 2.0;
        let piece = |from: usize, to: usize, x0: f32, x1: f32| Part {
            text: part.text.get(from..to).unwrap_or_default().to_owned(),
            x0,
            x1,
            bold: part.bold,
            breaks: Vec::new(),
        };
        for space in &part.breaks {
            let next = self.separators.partition_point(|&x| x < space.x0 - slack);
            if self.separators.get(next).is_some_and(|&x| x <= space.x1 + slack) {
                out.push(piece(from, space.at, x0, space.x0));
                (from, x0) = (space.at, space.x1);
            }
        }
        out.push(piece(from, part.text.len(), x0, part.x1));
        out
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn into_table(mut self, lines: &[Line], drawn: Drawn<'_>) -> Option<Table> {
        let (cells, heading) = self.take_heading(drawn);
        self.span_sections();
        let mut table = Table {
            rows: heading + self.rows.len(),
            columns: self.columns,
            cells,
            bbox: lines.first()?.bbox,
            separators: self.separators,
        };
        for line in lines {
            table.bbox = union(table.bbox, line.bbox);
        }
        for (row, contents) in self.rows.into_iter().enumerate() {
            let mut column = 0;
            let mut contents = contents.into_iter().enumerate().peekable();
            while let Some((index, content)) = contents.next() {
                if index < column {
                    continue;
                }
                // A span ends where the next text begins.
                let mut span = 1;
                while span < content.span && contents.peek().is_some_and(|(_, next)| next.text.is_empty()) {
                    contents.next();
                    span += 1;
                }
                table.cells.push(content.into_cell((heading + row, index), (1, span)));
                column = index + span;
            }
        }
        Some(table)
    }
}
