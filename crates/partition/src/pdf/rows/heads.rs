//! Headings of several levels: texts over groups of columns, and headings of several lines.

use super::super::grid::Stroke;
use super::super::table::Cell;
use super::{Content, Drawn, Rows};

/// Levels of headings above that of the columns.
const MAX_LEVELS: usize = 3;
/// Boxes between rules that are looked at.
const MAX_BOXES: usize = 500;
/// How far the middle of a heading may be from that of its columns, in font sizes.
const CENTRED: f32 = 0.8;
/// The same where it stands over a single column.
const OWN_COLUMN: f32 = 0.6;
/// Space between the lines of one heading, in font sizes.
const WRAPPED: f32 = 0.75;

/// Columns `(first, end)` that a heading stands over, and the column its text begins in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) at: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

fn is_filled(row: &[Content], column: usize) -> bool {
    row.get(column).is_some_and(|cell| !cell.text.is_empty())
}

/// Whether texts may be headings of columns rather than figures.
fn are_labels(row: &[Content]) -> bool {
    row.iter()
        .skip(1)
        .all(|cell| !cell.text.contains(['.', ',', '%']) || !cell.is_number())
}

/// Whether some text is there twice, as `first half` and `second half` under each year.
fn repeats(row: &[Content]) -> bool {
    let mut texts: Vec<&str> = row.iter().skip(1).map(|cell| cell.text.as_str()).collect();
    texts.retain(|text| !text.is_empty());
    let count = texts.len();
    texts.sort_unstable();
    texts.dedup();
    texts.len() < count
}

fn middle(bbox: [f32; 4]) -> f32 {
    (bbox[0] + bbox[2]) / 2.0
}

impl Rows {
    /// The groups of columns that the texts of `above` stand over, when those of `below` are the headings
    /// of the columns themselves.
    pub(super) fn groups(&self, above: &[Content], below: &[Content], drawn: Drawn<'_>) -> Option<Vec<Group>> {
        let texts: Vec<(usize, &Content)> = above
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, cell)| !cell.text.is_empty())
            .collect();
        let under = (1..self.columns).filter(|&column| is_filled(below, column)).count();
        let corner = !(is_filled(above, 0) && is_filled(below, 0));
        if texts.is_empty() || under <= texts.len() || !are_labels(below) || !corner {
            return None;
        }
        let repeated = repeats(below);
        let even = self.evenly(&texts);
        let is_plain = drawn.under.is_empty() && drawn.boxes.is_empty();
        if let Some(even) = even.as_ref().filter(|_| repeated && is_plain) {
            return Some(even.clone());
        }
        let mut groups: Vec<Group> = Vec::new();
        for (index, (at, cell)) in texts.iter().enumerate() {
            let first = groups.last().map_or(1, |group| group.to);
            let end = texts.get(index + 1).map_or(self.columns, |(next, _)| *next);
            let range = self
                .ruled(cell, below, first, end, drawn.under)
                .or_else(|| self.boxed(cell, above, first, end, drawn.boxes))
                .or_else(|| self.own(*at, cell, below).filter(|_| !repeated))
                .or_else(|| self.centred(*at, cell, first, end));
            let Some((from, to)) = range else {
                return even.or_else(|| self.up_to_next(&texts));
            };
            groups.push(Group { at: *at, from, to });
        }
        let several = groups.iter().any(|group| group.to - group.from > 1);
        several.then_some(groups).or(even.filter(|_| repeated))
    }

    /// The one column a heading stands over, beginning or ending with the heading below it.
    fn own(&self, at: usize, cell: &Content, below: &[Content]) -> Option<(usize, usize)> {
        let bbox = cell.bbox.filter(|_| cell.span <= 1)?;
        let near = |x: f32, y: f32| (x - y).abs() < OWN_COLUMN * self.size;
        let lower = below.get(at).and_then(|cell| cell.bbox);
        let aligned = lower.is_some_and(|lower| {
            near(bbox[0], lower[0]) || near(bbox[2], lower[2]) || near(middle(bbox), middle(lower))
        });
        let centred = self.centre(at, at + 1).is_some_and(|centre| near(centre, middle(bbox)));
        (aligned || centred).then_some((at, at + 1))
    }

    /// The columns above a short rule that is drawn under a heading.
    fn ruled(
        &self,
        cell: &Content,
        below: &[Content],
        first: usize,
        end: usize,
        rules: &[Stroke],
    ) -> Option<(usize, usize)> {
        let bbox = cell.bbox?;
        let lower = below
            .iter()
            .filter_map(|cell| cell.bbox)
            .map(|bbox| bbox[3])
            .fold(bbox[3], f32::max);
        let rule = rules.iter().find(|rule| {
            rule.at > (bbox[1] + bbox[3]) / 2.0 && rule.at < lower && (rule.from..rule.to).contains(&middle(bbox))
        })?;
        self.within(rule.from, rule.to, first, end)
            .filter(|(from, to)| to > from)
    }

    /// The columns between the rules around a heading that stands alone there.
    fn boxed(
        &self,
        cell: &Content,
        above: &[Content],
        first: usize,
        end: usize,
        boxes: &[[f32; 4]],
    ) -> Option<(usize, usize)> {
        let place = |cell: &Content| cell.bbox.map(|bbox| (middle(bbox), (bbox[1] + bbox[3]) / 2.0));
        let (x, y) = place(cell)?;
        let inside = |[x0, y0, x1, y1]: &[f32; 4], (x, y): (f32, f32)| (x0..x1).contains(&&x) && (y0..y1).contains(&&y);
        let around = boxes.iter().take(MAX_BOXES).find(|bbox| inside(bbox, (x, y)))?;
        let alone = above
            .iter()
            .filter_map(place)
            .filter(|place| inside(around, *place))
            .count()
            == 1;
        let range = self.within(around[0], around[2], first, end);
        range.filter(|(from, to)| alone && to > from)
    }

    /// The columns whose middles are in a stretch.
    fn within(&self, x0: f32, x1: f32, first: usize, end: usize) -> Option<(usize, usize)> {
        let inside = |column: usize| {
            let extent = self.extents.get(column).copied().flatten();
            extent.is_some_and(|(from, to)| ((from + to) / 2.0) > x0 && ((from + to) / 2.0) < x1)
        };
        let from = (first..end).find(|&column| inside(column))?;
        let to = (from..end).take_while(|&column| inside(column)).last()? + 1;
        Some((from, to))
    }

    fn centre(&self, from: usize, to: usize) -> Option<f32> {
        let extents = || self.extents.get(from..to).unwrap_or_default().iter().flatten();
        let left = extents().map(|extent| extent.0).fold(f32::INFINITY, f32::min);
        let right = extents().map(|extent| extent.1).fold(f32::NEG_INFINITY, f32::max);
        (left < right).then_some((left + right) / 2.0)
    }

    /// The columns in the middle of which a heading stands.
    fn centred(&self, at: usize, cell: &Content, first: usize, end: usize) -> Option<(usize, usize)> {
        let x = middle(cell.bbox?);
        let last = (at + cell.span.max(1)).min(end).max(at + 1);
        let mut best: Option<(f32, (usize, usize))> = None;
        for from in first..=at {
            for to in last..=end {
                let off = self.centre(from, to).map(|centre| (centre - x).abs());
                let Some(off) = off.filter(|off| *off < CENTRED * self.size) else {
                    continue;
                };
                let wide = |(from, to): (usize, usize)| to - from;
                let better = best.is_none_or(|(least, range)| {
                    off < least - 0.3 * self.size || (off < least + 0.3 * self.size && wide((from, to)) > wide(range))
                });
                if better {
                    best = Some((off, (from, to)));
                }
            }
        }
        best.map(|(_, range)| range)
    }

    /// Groups of one size.
    fn evenly(&self, texts: &[(usize, &Content)]) -> Option<Vec<Group>> {
        let (count, columns) = (texts.len(), self.columns - 1);
        let size = columns.checked_div(count).filter(|size| *size > 1)?;
        let even = size * count == columns
            && texts
                .iter()
                .enumerate()
                .all(|(group, (at, _))| (at - 1) / size == group);
        let group = |(index, (at, _)): (usize, &(usize, &Content))| Group {
            at: *at,
            from: 1 + index * size,
            to: 1 + (index + 1) * size,
        };
        even.then(|| texts.iter().enumerate().map(group).collect())
    }

    /// Each group up to the next heading.
    fn up_to_next(&self, texts: &[(usize, &Content)]) -> Option<Vec<Group>> {
        let group = |(index, (at, _)): (usize, &(usize, &Content))| Group {
            at: *at,
            from: *at,
            to: texts.get(index + 1).map_or(self.columns, |(next, _)| *next),
        };
        (texts.len() * 2 < self.columns).then(|| texts.iter().enumerate().map(group).collect())
    }

    /// Makes the lines of headings that stand above each other one row: from the first row with a text in
    /// the first column upwards.
    pub(super) fn join_headings(&mut self, drawn: Drawn<'_>) {
        self.join_corner();
        let Some(mut base) = self.rows.iter().take(MAX_LEVELS + 1).position(|row| is_filled(row, 0)) else {
            return;
        };
        while base > 0 {
            let (Some(above), Some(below), Some(next)) =
                (self.rows.get(base - 1), self.rows.get(base), self.rows.get(base + 1))
            else {
                return;
            };
            if !self.is_wrapped(above, below, next, drawn) {
                return;
            }
            base -= 1;
            let above = self.rows.remove(base);
            let Some(row) = self.rows.get_mut(base) else { return };
            for (cell, upper) in row.iter_mut().zip(above) {
                cell.prepend(upper);
            }
        }
    }

    /// The heading of the first column may stand half way between two rows of headings of the others.
    fn join_corner(&mut self) {
        for index in 1..=MAX_LEVELS {
            let (Some(row), Some(below)) = (self.rows.get(index), self.rows.get(index + 1)) else {
                return;
            };
            let alone = is_filled(row, 0) && (1..self.columns).all(|column| !is_filled(row, column));
            let top = below
                .iter()
                .filter_map(|cell| cell.bbox)
                .map(|bbox| bbox[1])
                .reduce(f32::min);
            let bottom = row.first().and_then(|cell| cell.bbox).map(|bbox| bbox[3]);
            let beside = top
                .zip(bottom)
                .is_some_and(|(top, bottom)| top < bottom - 0.1 * self.size);
            if alone && beside && !is_filled(below, 0) {
                let corner = self.rows.remove(index).into_iter().next();
                let cell = self.rows.get_mut(index).and_then(|row| row.first_mut());
                if let (Some(cell), Some(corner)) = (cell, corner) {
                    *cell = corner;
                }
                return;
            }
        }
    }

    /// Whether the first row is the upper lines of headings that end in the second.
    fn is_wrapped(&self, above: &[Content], below: &[Content], next: &[Content], drawn: Drawn<'_>) -> bool {
        let columns = || (0..self.columns).filter(|&column| is_filled(above, column));
        let labels = |row: &[Content]| row.iter().all(|cell| cell.text.is_empty() || !cell.is_number());
        let fewer = columns().count() < (0..self.columns).filter(|&column| is_filled(below, column)).count();
        let end = |row: &[Content]| {
            row.iter()
                .filter_map(|cell| cell.bbox)
                .map(|bbox| bbox[3])
                .reduce(f32::max)
        };
        let start = |row: &[Content]| {
            row.iter()
                .filter_map(|cell| cell.bbox)
                .map(|bbox| bbox[1])
                .reduce(f32::min)
        };
        let gap = |above: &[Content], below: &[Content]| match (end(above), start(below)) {
            (Some(end), Some(start)) => start - end,
            _ => f32::INFINITY,
        };
        let step = gap(above, below);
        let between = match (end(above), start(below)) {
            (Some(end), Some(start)) => drawn.bounds.iter().any(|y| (end - 1.0..start + 1.0).contains(y)),
            _ => true,
        };
        let aligned = |column: usize| {
            let (Some(a), Some(b)) = (above.get(column), below.get(column)) else {
                return false;
            };
            let (Some(a_box), Some(b_box)) = (a.bbox, b.bbox) else {
                return false;
            };
            let near = |x: f32, y: f32| (x - y).abs() < OWN_COLUMN * self.size;
            a.span <= 1 && (near(a_box[0], b_box[0]) || near(a_box[2], b_box[2]) || near(middle(a_box), middle(b_box)))
        };
        let figures = (1..self.columns).any(|column| next.get(column).is_some_and(Content::is_figure));
        !is_filled(above, 0)
            && is_filled(below, 0)
            && fewer
            && !between
            && labels(above)
            && labels(below)
            && step < WRAPPED * self.size
            && (figures || gap(below, next) > step + 0.2 * self.size)
            && columns().all(aligned)
            && self.groups(above, below, drawn).is_none()
    }

    /// The levels of headings above that of the columns, the topmost first; none where there is but one.
    fn levels(&self, drawn: Drawn<'_>) -> Vec<Vec<Group>> {
        for base in 1..=MAX_LEVELS.min(self.rows.len().saturating_sub(2)) {
            let Some(row) = self.rows.get(base) else { break };
            let upper = self.rows.get(..base).unwrap_or_default();
            let corners = upper.iter().filter(|above| is_filled(above, 0)).count() + usize::from(is_filled(row, 0));
            if corners > 1 || !(1..self.columns).all(|column| is_filled(row, column)) {
                continue;
            }
            let levels: Option<Vec<Vec<Group>>> = upper.iter().map(|above| self.groups(above, row, drawn)).collect();
            if let Some(levels) = levels {
                return levels;
            }
        }
        Vec::new()
    }

    /// The cells of a heading of several levels, row by row, and how many rows it has; takes those rows.
    pub(super) fn take_heading(&mut self, drawn: Drawn<'_>) -> (Vec<Cell>, usize) {
        let levels = self.levels(drawn);
        if levels.is_empty() {
            return (Vec::new(), 0);
        }
        let base = levels.len();
        let mut rows: Vec<Vec<Content>> = self.rows.drain(..(base + 1).min(self.rows.len())).collect();
        let mut cells = Vec::new();
        for (row, groups) in levels.iter().enumerate() {
            for group in groups {
                let content = rows
                    .get_mut(row)
                    .and_then(|cells| cells.get_mut(group.at))
                    .map(std::mem::take);
                cells.push(
                    content
                        .unwrap_or_default()
                        .into_cell((row, group.from), (1, group.to - group.from)),
                );
            }
        }
        for column in 0..self.columns {
            let covers = |row: usize| {
                let groups = levels.get(row).map(Vec::as_slice).unwrap_or_default();
                groups.iter().any(|group| (group.from..group.to).contains(&column))
            };
            // A heading without a group above it reaches up.
            let top = (0..base).rev().take_while(|&row| !covers(row)).last().unwrap_or(base);
            let mut content = Content::default();
            for row in rows.iter_mut().filter_map(|cells| cells.get_mut(column)) {
                content.extend(std::mem::take(row));
            }
            cells.push(content.into_cell((top, column), (base + 1 - top, 1)));
            let empty = (0..top).filter(|&row| !covers(row));
            cells.extend(empty.map(|row| Content::default().into_cell((row, column), (1, 1))));
        }
        cells.sort_by_key(|cell| (cell.row, cell.column));
        (cells, base + 1)
    }

    /// Makes a text that stands alone in its row and over several columns span the row.
    pub(super) fn span_sections(&mut self) {
        let (mut left, mut right) = (f32::INFINITY, f32::NEG_INFINITY);
        for (x0, x1) in self.extents.iter().flatten() {
            left = left.min(*x0);
            right = right.max(*x1);
        }
        for row in &mut self.rows {
            let mut filled = row.iter().enumerate().filter(|(_, cell)| !cell.text.is_empty());
            let (Some((at, cell)), None) = (filled.next(), filled.next()) else {
                continue;
            };
            let centred = cell
                .bbox
                .is_some_and(|bbox| (middle(bbox) - (left + right) / 2.0).abs() < 2.0 * self.size);
            let spans = cell.span > 1 && (at == 0 || centred);
            if spans {
                row.swap(0, at);
                if let Some(first) = row.first_mut() {
                    first.span = self.columns;
                }
            }
        }
    }
}
