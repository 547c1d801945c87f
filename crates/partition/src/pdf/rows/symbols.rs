//! Signs of currencies and percents that stand in columns of their own beside their figures.

use super::super::line::Line;
use super::{Content, Rows, is_dash};

/// Columns beyond which none are joined.
const MAX_JOINED: usize = 100;
/// Signs before figures.
const BEFORE: [&str; 19] = [
    "$", "¥", "€", "£", "₹", "₩", "₽", "US$", "C$", "A$", "R$", "Rs", "Rs.", "RM", "(", "±", "~", "<", ">",
];
/// Signs behind figures.
const AFTER: [&str; 9] = ["%", ")", ")%", "%)", "*", "**", "***", "†", "‡"];

/// Whether a text is a sign that goes with the figure before it.
pub(super) fn follows(text: &str) -> bool {
    AFTER.contains(&text.trim())
}

impl Rows {
    /// Makes columns of nothing but signs one with that of their figures: the next, or the one before.
    pub(super) fn join_symbols(&mut self, lines: &[Line]) {
        let mut column = 0;
        let mut cells: Vec<Vec<Content>> = lines.iter().map(|line| self.cells(line)).collect();
        while column < self.columns && (2..=MAX_JOINED).contains(&self.columns) {
            let separator = if signs(&cells, column, column + 1, &BEFORE) {
                column
            } else if let Some(before) = column.checked_sub(1).filter(|&to| signs(&cells, column, to, &AFTER)) {
                before
            } else {
                column += 1;
                continue;
            };
            if separator >= self.separators.len() {
                column += 1;
                continue;
            }
            self.separators.remove(separator);
            self.columns -= 1;
            cells = lines.iter().map(|line| self.cells(line)).collect();
        }
    }
}

/// Whether a column holds signs that belong to the texts of another one, next to it. Headings may begin
/// above the signs; figures too long for their column may too.
fn signs(cells: &[Vec<Content>], column: usize, of: usize, signs: &[&str]) -> bool {
    let mut seen = false;
    for row in cells {
        let (Some(cell), Some(other)) = (row.get(column), row.get(of)) else {
            return false;
        };
        let text = cell.text.trim();
        if text.is_empty() {
            continue;
        }
        if signs.contains(&text) {
            seen = true;
            continue;
        }
        let heads = other.text.is_empty() && (!cell.is_number() || cell.span > 1);
        if !(heads && (!seen || cell.span > 1)) && !is_dash(text) {
            return false;
        }
    }
    seen
}
