//! Tables that go on in the next column or on the next page.

use super::line::{Line, lines};
use super::rows::{Drawn, Grouping, Rows};
use super::segment::Segment;
use super::table::Table;

/// How far the sides of the parts of a table may differ, in points.
const SIDES: f32 = 14.0;
/// How much of its width a part may be narrower or wider.
const WIDTHS: f32 = 0.06;
/// Tables of a page that are looked at.
const MAX_TABLES: usize = 32;
/// Lines at the top of a page that are tried as rows.
const MAX_LINES: usize = 80;
/// Longest text of a row's cell at the top of a page, in characters.
const MAX_CELL: usize = 48;

/// A page whose text is to be laid out.
pub(super) struct Leaf<'p> {
    pub(super) segments: &'p mut Vec<Segment>,
    pub(super) tables: &'p mut Vec<Table>,
}

/// Joins what stands apart on the pages but is one table. The later parts leave the pages.
pub(super) fn join_tables(leaves: &mut [Leaf<'_>]) {
    for leaf in leaves.iter_mut() {
        join_columns(leaf);
    }
    // From the last page on, so that a table over several pages is gathered on its first.
    for index in (1..leaves.len()).rev() {
        let (before, after) = leaves.split_at_mut(index);
        if let (Some(page), Some(next)) = (before.last_mut(), after.first_mut()) {
            join_pages(page, next);
        }
    }
}

/// Tables of one page, in the order of their places: those whose part of the page ends with them.
fn last_tables(leaf: &Leaf<'_>) -> Vec<usize> {
    let ends = |index: usize, table: &Table| {
        let placed = leaf.segments.iter().any(|s| s.table == Some(index));
        let below = |s: &&Segment| s.y0 > table.bbox[3] - 1.0 && s.x1 > table.bbox[0] && s.x0 < table.bbox[2];
        placed && leaf.segments.iter().find(below).is_none()
    };
    let tables = leaf.tables.iter().enumerate().take(MAX_TABLES);
    tables
        .filter(|(index, table)| ends(*index, table))
        .map(|(index, _)| index)
        .collect()
}

fn same_shape(a: &Table, b: &Table) -> bool {
    let width = |table: &Table| table.bbox[2] - table.bbox[0];
    a.columns == b.columns && (width(a) - width(b)).abs() < WIDTHS * width(a) && a.columns > 1
}

/// Joins tables at the foot of a column with those at the head of the next.
fn join_columns(leaf: &mut Leaf<'_>) {
    let mut ending = last_tables(leaf);
    ending.sort_by(|a, b| {
        let x = |i: &usize| leaf.tables.get(*i).map_or(0.0, |table: &Table| table.bbox[0]);
        x(b).total_cmp(&x(a))
    });
    for index in ending {
        let Some(table) = leaf.tables.get(index) else { continue };
        let next = leaf
            .tables
            .iter()
            .enumerate()
            .take(MAX_TABLES)
            .position(|(other, candidate)| {
                let placed = leaf.segments.iter().any(|s| s.table == Some(other));
                let above = |s: &Segment| {
                    s.table != Some(other)
                        && s.y1 < candidate.bbox[1] + 1.0
                        && s.x0 > table.bbox[2]
                        && s.x0 < candidate.bbox[2]
                };
                other != index
                    && placed
                    && candidate.bbox[0] > table.bbox[2]
                    && candidate.bbox[1] < table.bbox[3]
                    && same_shape(table, candidate)
                    && (candidate.bbox[1] < table.bbox[1] - SIDES || table.begins_like(candidate))
                    && !leaf.segments.iter().any(above)
            });
        if let Some(next) = next {
            let more = leaf.tables.get(next).cloned();
            if let (Some(table), Some(more)) = (leaf.tables.get_mut(index), more) {
                table.append(more, 0);
                leaf.segments.retain(|s| s.table != Some(next));
            }
        }
    }
}

fn join_pages(page: &mut Leaf<'_>, next: &mut Leaf<'_>) {
    let Some(index) = last_tables(page).into_iter().max_by(|a, b| {
        let bottom = |i: &usize| page.tables.get(*i).map_or(0.0, |table: &Table| table.bbox[3]);
        bottom(a).total_cmp(&bottom(b))
    }) else {
        return;
    };
    let Some(table) = page.tables.get_mut(index) else {
        return;
    };
    let in_range = |s: &&Segment| s.x1 > table.bbox[0] - SIDES && s.x0 < table.bbox[2] + SIDES;
    let top = next
        .segments
        .iter()
        .filter(in_range)
        .min_by(|a, b| a.y0.total_cmp(&b.y0));
    let continued = top.and_then(|s| s.table);
    if let Some(more) = continued.and_then(|index| next.tables.get(index)) {
        let beside = (more.bbox[0] - table.bbox[0]).abs() < SIDES;
        if beside && same_shape(table, more) {
            table.append(more.clone(), 1);
            next.segments.retain(|s| s.table != continued);
        }
    } else if let Some((more, bottom)) = rows_at_top(table, next.segments) {
        table.append(more, 1);
        let [x0, _, x1, _] = table.bbox;
        next.segments
            .retain(|s| s.table.is_some() || s.y1 > bottom + 0.5 || s.x1 < x0 - SIDES || s.x0 > x1 + SIDES);
    }
}

/// The lines at the top of a page that stand in the columns of a table, and where they end.
fn rows_at_top(table: &Table, segments: &[Segment]) -> Option<(Table, f32)> {
    if table.separators.len() + 1 != table.columns {
        return None;
    }
    let [x0, _, x1, _] = table.bbox;
    let mut near: Vec<Segment> = segments
        .iter()
        .filter(|s| s.x1 > x0 - SIDES && s.x0 < x1 + SIDES)
        .cloned()
        .collect();
    near.sort_by(|a, b| a.base.total_cmp(&b.base));
    near.truncate(MAX_LINES * table.columns);
    let mut taken: Vec<Line> = Vec::new();
    for line in lines(near) {
        let fits = line.table.is_none()
            && line.x0() > x0 - SIDES
            && line.x1() < x1 + SIDES
            && taken.last().is_none_or(|last| {
                line.base - last.base < 2.4 * line.size && (0.85..1.18).contains(&(line.size / last.size))
            })
            && line
                .parts
                .iter()
                .all(|part| fits_column(part.x0, part.x1, &table.separators))
            && line.parts.iter().all(|part| part.text.chars().count() < MAX_CELL)
            && (line.parts.len() > 1 || line.text.starts_with(char::is_lowercase));
        if !fits || taken.len() >= MAX_LINES {
            break;
        }
        taken.push(line);
    }
    let filled = taken.iter().filter(|line| line.parts.len() * 2 > table.columns).count();
    if filled == 0 {
        return None;
    }
    let bottom = taken.iter().map(|line| line.bbox[3]).fold(0.0, f32::max);
    let (separators, drawn) = (table.separators.clone(), Drawn::default());
    let rows = Rows::new(&taken, separators, drawn, Grouping::ByLines { head: None });
    Some((rows.into_table(&taken, drawn)?, bottom)).filter(|(more, _)| more.columns == table.columns)
}

fn fits_column(x0: f32, x1: f32, separators: &[f32]) -> bool {
    !separators.iter().any(|x| (x0 + 2.0..x1 - 2.0).contains(x))
}
