//! Whether rows are those of a table, or text that only looks like one.

use super::super::text::is_marker;
use super::{Content, Rows};

/// A longer text of one line is prose, in characters.
const LONG_LINE: usize = 55;

impl Rows {
    /// Justified text has gaps too. What tells it from a table is that its pieces go on in the middle
    /// of a sentence, in the first column as well as in the others.
    pub(in crate::pdf) fn is_prose(&self) -> bool {
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
    pub(in crate::pdf) fn is_list(&self) -> bool {
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
    pub(in crate::pdf) fn is_contents(&self) -> bool {
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

    /// Whether the rows are statements of a program.
    pub(in crate::pdf) fn is_code(&self) -> bool {
        let ends = self.rows.iter().filter(|row| {
            let last = row.iter().rfind(|cell| !cell.text.is_empty());
            last.is_some_and(|cell| cell.text.ends_with([';', '{', '}']) || cell.text.ends_with("*/"))
        });
        ends.count() * 3 > self.rows.len()
    }

    /// Whether a column holds prose beside notes in the margin: most of its texts are full lines, which go on
    /// in the middle of sentences.
    pub(in crate::pdf) fn is_annotated(&self) -> bool {
        (1..self.columns).any(|column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let texts: Vec<&Content> = cells.filter(|cell| !cell.text.is_empty()).collect();
            let right = self.extents.get(column).copied().flatten();
            let full = |cell: &&&Content| {
                let (Some(bbox), Some((left, right))) = (cell.bbox, right) else {
                    return false;
                };
                let one_line = bbox[3] - bbox[1] < 1.6 * self.size;
                one_line && bbox[2] > right - 0.15 * (right - left) && cell.text.chars().count() > LONG_LINE
            };
            let on = texts
                .iter()
                .filter(|cell| cell.text.starts_with(char::is_lowercase))
                .count();
            let full = texts.iter().filter(full).count();
            texts.len() >= 4 && full * 10 > texts.len() * 6 && on * 3 > texts.len()
        })
    }

    /// Whether the cells are fields of a form, each with its label or left blank.
    pub(in crate::pdf) fn is_form(&self) -> bool {
        let cells = || self.rows.iter().flatten().filter(|cell| !cell.text.is_empty());
        let labelled = cells().filter(|cell| cell.text.trim_end().contains(": ")).count();
        let is_blank = |text: &str| text.chars().filter(|ch| *ch == '_').count() >= 4;
        let blank = cells().filter(|cell| is_blank(&cell.text)).count();
        labelled >= 3 && labelled * 3 > cells().count() || blank >= 2 && blank * 4 > cells().count()
    }

    /// Whether there is enough in the cells, and not too much, for a table.
    pub(in crate::pdf) fn is_plausible(&self, mean_cell: usize) -> bool {
        let cells = || self.rows.iter().flatten().filter(|cell| !cell.text.is_empty());
        let filled = cells().count();
        let chars: usize = cells().map(|cell| cell.text.chars().count() / cell.span.max(1)).sum();
        let alphanumeric = cells()
            .flat_map(|cell| cell.text.chars())
            .filter(|ch| ch.is_alphanumeric())
            .count();
        let wide = self.wide_rows();
        let total = self.rows.len() * self.columns;
        wide >= 2 && filled * 5 >= total * 2 && alphanumeric >= filled && chars <= mean_cell * filled
    }

    /// Rows with text in several columns.
    pub(in crate::pdf) fn wide_rows(&self) -> usize {
        let filled = |row: &&Vec<Content>| row.iter().filter(|cell| !cell.text.is_empty()).count() > 1;
        self.rows.iter().filter(filled).count()
    }
}
