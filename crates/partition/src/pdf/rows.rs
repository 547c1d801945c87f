//! Lines of a table without borders to rows of cells.
//!
//! The columns are known. What has to be found out is which lines are rows and which go on with the
//! cells of the row above: wrapped labels, texts of several lines, and figures set at half the height
//! of their label.

use super::line::{Line, Part, union};
use super::table::{Cell, Table};
use super::text::{append_line, is_marker};

/// Baselines closer than this, in font sizes, are one row.
const SAME_ROW: f32 = 0.8;
/// Lines of one text stand at least this far apart, in font sizes.
const LEAST_LEADING: f32 = 0.95;
/// A step larger than this many of the smallest is one between rows, where such exist.
const ROW_STEP: f32 = 1.22;
/// Farthest line that may continue a cell, in font sizes.
const MAX_LEADING: f32 = 1.75;
/// Columns beyond which none are joined.
const MAX_JOINED: usize = 100;
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
}

/// Mostly digits, or a dash that stands for nothing.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let letters = text.chars().filter(|ch| ch.is_alphabetic()).count();
    digits > letters || (letters == 0 && matches!(text.trim(), "-" | "–" | "—" | "―" | "−"))
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
    /// Per row the content of the columns; `span` 0 where nothing begins.
    rows: Vec<Vec<Content>>,
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
    /// Puts lines into rows; no row goes on across one of the `bounds`, heights that rules are drawn at.
    pub(super) fn new(lines: &[Line], separators: Vec<f32>, bounds: &[f32], grouping: Grouping) -> Self {
        let mut rows = Self {
            columns: separators.len() + 1,
            separators,
            rows: Vec::new(),
        };
        let steps = Steps::new(lines, rows.separators.first().copied().unwrap_or(f32::INFINITY));
        let mut last: Option<&Line> = None;
        for line in lines {
            let cells = rows.cells(line);
            let continues = last.is_some_and(|last| {
                let ruled = bounds
                    .iter()
                    .any(|y| (last.base - 0.2 * last.size..line.base - 0.3 * line.size).contains(y));
                !ruled && rows.continues(line, &cells, line.base - last.base, &steps, grouping)
            });
            rows.add(cells, continues);
            last = Some(line);
        }
        rows.join_symbols();
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
            cell.bold = part.bold && (cell.bold || cell.text.is_empty());
            append_line(&mut cell.text, part.text.trim());
            cell.span = cell.span.max(count);
            cell.bbox = joined_boxes(cell.bbox, Some([part.x0, line.bbox[1], part.x1, line.bbox[3]]));
        }
        cells
    }

    fn continues(&self, line: &Line, cells: &[Content], step: f32, steps: &Steps, grouping: Grouping) -> bool {
        let Some(row) = self.rows.last() else { return false };
        if step < SAME_ROW * line.size {
            return true;
        }
        let pairs = || row.iter().zip(cells);
        let both_numbers =
            pairs().any(|(above, below)| above.is_number() && below.is_number() && !below.text.is_empty());
        // What spans columns heads a group of rows, or columns.
        let spans = pairs().any(|(a, b)| (a.span > 1) != (b.span > 1) && a.span > 0 && b.span > 0);
        match grouping {
            Grouping::ByRules => return !both_numbers,
            Grouping::ByLines { head: Some(y) } if line.base < y => return !both_numbers && !spans,
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
                if goes_on(start, first) {
                    return true;
                }
                steps.spaced
                    && tight
                    && (below < above || (above == 1 && below == 1 && self.columns > 1 && !start.text.ends_with(':')))
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
                texts && tight && (steps.spaced || lower || (under_text && below == 1 && self.columns > 1))
            }
        }
    }

    fn add(&mut self, cells: Vec<Content>, continues: bool) {
        match self.rows.last_mut() {
            Some(row) if continues => {
                for (cell, more) in row.iter_mut().zip(cells) {
                    if more.text.is_empty() {
                        continue;
                    }
                    cell.bold = more.bold && (cell.bold || cell.text.is_empty());
                    append_line(&mut cell.text, &more.text);
                    cell.span = cell.span.max(more.span);
                    cell.bbox = joined_boxes(cell.bbox, more.bbox);
                }
            }
            _ => self.rows.push(cells),
        }
    }

    /// Columns of nothing but currency signs go with the column after them, those of percent signs
    /// and closing brackets with the one before.
    fn join_symbols(&mut self) {
        let mut column = 0;
        while column < self.columns && (2..=MAX_JOINED).contains(&self.columns) {
            let all = |symbols: &[&str]| {
                let texts = || {
                    self.rows
                        .iter()
                        .filter_map(|row| row.get(column))
                        .map(|cell| cell.text.trim())
                };
                texts().any(|text| symbols.contains(&text))
                    && texts().all(|text| matches!(text, "" | "-" | "–" | "—" | "―") || symbols.contains(&text))
            };
            let before = all(&[
                "$", "¥", "€", "£", "₹", "US$", "R$", "Rs", "Rs.", "RM", "(", "±", "~", "<", ">",
            ]);
            let after = all(&["%", ")", ")%", "*", "**", "***", "†"]);
            if before && column + 1 < self.columns {
                self.join(column, " ");
            } else if after && column > 0 {
                self.join(column - 1, "");
            } else {
                column += 1;
            }
        }
    }

    /// Joins a column with the next.
    fn join(&mut self, column: usize, with: &str) {
        for row in &mut self.rows {
            if column + 1 >= row.len() {
                continue;
            }
            let next = row.remove(column + 1);
            if let Some(cell) = row.get_mut(column) {
                if !cell.text.is_empty() && !next.text.is_empty() {
                    cell.text.push_str(with);
                }
                cell.text.push_str(&next.text);
                cell.span = cell.span.max(next.span).min(1).max(cell.span.saturating_sub(1));
                cell.bold |= next.bold;
                cell.bbox = joined_boxes(cell.bbox, next.bbox);
            }
            for cell in row.iter_mut().take(column) {
                cell.span = cell.span.min(self.columns);
            }
        }
        if column < self.separators.len() {
            self.separators.remove(column);
        }
        self.columns -= 1;
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

    /// Justified text has gaps too. What tells it from a table is that its pieces go on in the middle
    /// of a sentence, in the first column as well as in the others.
    pub(super) fn is_prose(&self) -> bool {
        let share = |first: bool| {
            let mut counts = (0usize, 0usize);
            for row in &self.rows {
                for (column, cell) in row.iter().enumerate() {
                    if (column == 0) == first && cell.text.chars().any(char::is_alphabetic) {
                        counts.0 += usize::from(cell.text.starts_with(char::is_lowercase));
                        counts.1 += 1;
                    }
                }
            }
            counts
        };
        let ((low_first, first), (low_others, others)) = (share(true), share(false));
        low_first * 3 > first && low_others * 2 > others
    }

    /// Whether the first of two columns holds nothing but the markers of a list's items, or counts up
    /// beside sentences.
    pub(super) fn is_list(&self) -> bool {
        if self.columns != 2 {
            return false;
        }
        let first: Vec<&str> = self
            .rows
            .iter()
            .filter_map(|row| row.first())
            .map(|cell| cell.text.trim())
            .collect();
        let mut markers = first.iter().filter(|text| !text.is_empty());
        if markers.clone().all(|text| is_marker(text)) {
            return markers.next().is_some();
        }
        let numbers: Vec<u32> = markers.filter_map(|text| text.parse().ok()).collect();
        let counts_up = numbers.len() == first.len()
            && numbers
                .windows(2)
                .all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
        let second = self.rows.iter().filter_map(|row| row.get(1));
        let words: usize = second.map(|cell| cell.text.split_whitespace().count()).sum();
        counts_up && words > 5 * self.rows.len()
    }

    /// Whether the rows list the numbers of pages, which only grow, after titles.
    pub(super) fn is_contents(&self) -> bool {
        let last: Vec<u32> = self
            .rows
            .iter()
            .filter_map(|row| row.last())
            .filter_map(|cell| cell.text.trim().parse().ok())
            .collect();
        let grows = last
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a <= b && b - a < 400));
        let first = self.rows.iter().filter_map(|row| row.first());
        // Sections are numbered `1`, `1.2`, or their titles stand alone before the page.
        let numbered = first
            .clone()
            .filter(|cell| cell.text.starts_with(|ch: char| ch.is_ascii_digit()))
            .count();
        let titles = first
            .filter(|cell| cell.text.chars().filter(|ch| ch.is_alphabetic()).count() > 3)
            .count();
        let shape = match self.columns {
            2 => titles == self.rows.len() && numbered * 2 > self.rows.len(),
            3 => numbered * 10 >= self.rows.len() * 9,
            _ => false,
        };
        self.rows.len() >= 3 && last.len() == self.rows.len() && grows && shape
    }

    /// Whether the cells are fields of a form, each with its label.
    pub(super) fn is_form(&self) -> bool {
        let cells = || self.rows.iter().flatten().filter(|cell| !cell.text.is_empty());
        let labelled = cells().filter(|cell| cell.text.trim_end().contains(": ")).count();
        labelled >= 3 && labelled * 3 > cells().count()
    }

    /// Whether there is enough in the cells, and not too much, for a table.
    pub(super) fn is_plausible(&self, mean_cell: usize) -> bool {
        let cells = || self.rows.iter().flatten().filter(|cell| !cell.text.is_empty());
        let filled = cells().count();
        let chars: usize = cells().map(|cell| cell.text.chars().count()).sum();
        let alphanumeric = cells()
            .flat_map(|cell| cell.text.chars())
            .filter(|ch| ch.is_alphanumeric())
            .count();
        let wide = self.wide_rows();
        let total = self.rows.len() * self.columns;
        wide >= 2 && filled * 5 >= total * 2 && alphanumeric >= filled && chars <= mean_cell * filled
    }

    /// Rows with text in several columns.
    pub(super) fn wide_rows(&self) -> usize {
        let filled = |row: &&Vec<Content>| row.iter().filter(|cell| !cell.text.is_empty()).count() > 1;
        self.rows.iter().filter(filled).count()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The columns each text of the first row stands over, `(first, end)`, when it heads groups of the
    /// columns whose own headings stand in the second.
    fn heading_groups(&self) -> Option<Vec<(usize, usize)>> {
        let [first, second, rest @ ..] = self.rows.as_slice() else {
            return None;
        };
        let filled = |row: &[Content], column: usize| row.get(column).is_some_and(|cell| !cell.text.is_empty());
        let starts: Vec<usize> = (1..self.columns).filter(|&column| filled(first, column)).collect();
        let under = (1..self.columns).all(|column| filled(second, column));
        let labels = second
            .iter()
            .skip(1)
            .all(|cell| !cell.text.contains(['.', ',']) || !cell.is_number());
        let corner = filled(first, 0) != filled(second, 0) || !filled(first, 0);
        if rest.is_empty() || starts.is_empty() || starts.len() * 2 > self.columns - 1 || !under || !labels || !corner {
            return None;
        }
        let size = (self.columns - 1) / starts.len();
        let even = size * starts.len() == self.columns - 1
            && starts
                .iter()
                .enumerate()
                .all(|(group, start)| (start - 1) / size == group);
        let group = |index: usize, start: usize| {
            if even {
                (1 + index * size, 1 + (index + 1) * size)
            } else {
                (start, starts.get(index + 1).copied().unwrap_or(self.columns))
            }
        };
        Some(
            starts
                .iter()
                .enumerate()
                .map(|(index, &start)| group(index, start))
                .collect(),
        )
    }

    pub(super) fn into_table(self, lines: &[Line]) -> Option<Table> {
        let mut table = Table {
            rows: self.rows.len(),
            columns: self.columns,
            cells: Vec::new(),
            bbox: lines.first()?.bbox,
            separators: self.separators.clone(),
        };
        for line in lines {
            table.bbox = union(table.bbox, line.bbox);
        }
        let groups = self.heading_groups();
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
                table.cells.push(Cell {
                    row,
                    column: index,
                    row_span: 1,
                    column_span: span,
                    text: content.text,
                    bold: content.bold,
                    bbox: content.bbox,
                    page: 0,
                });
                column = index + span;
            }
        }
        if let Some(groups) = groups {
            table.set_heading(&groups);
        }
        Some(table)
    }
}
