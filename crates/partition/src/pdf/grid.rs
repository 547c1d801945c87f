//! Ruled tables: a grid of lines and the text between them.
//!
//! Lines that touch form a component. Its distinct line positions cut the area into elementary
//! cells; where no line is drawn between two of them, they are parts of one spanning cell.

use super::aligned::aligned_rows;
use super::engine::Rule;
use super::line::{lines, union};
use super::rows::Drawn;
use super::segment::Segment;
use super::table::{Cell, Table};
use super::text::append_line;
use super::turned::Turned;

/// Line positions closer than this, in points, are one.
const SNAP: f32 = 3.0;
/// How far a line may fall short of one it meets, in points.
const REACH: f32 = 3.5;
/// Lines on a page beyond which it is a drawing; bounds the search for crossings.
const MAX_LINES: usize = 1500;
/// Tables of one page.
const MAX_TABLES: usize = 200;
/// Elementary cells of one table.
const MAX_CELLS: usize = 100_000;

/// A line by its fixed and its running coordinate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) at: f32,
    pub(super) from: f32,
    pub(super) to: f32,
}

/// Finds the ruled tables of a page and takes their text out of `segments`, and out of `turned` what runs
/// in other directions.
pub(super) fn ruled_tables(rules: &[Rule], segments: &mut Vec<Segment>, turned: &mut Vec<Turned>) -> Vec<Table> {
    let across = strokes(rules.iter().filter(|r| r.is_horizontal()).map(|r| Stroke {
        at: r.y0,
        from: r.x0,
        to: r.x1,
    }));
    let down = strokes(rules.iter().filter(|r| !r.is_horizontal()).map(|r| Stroke {
        at: r.x0,
        from: r.y0,
        to: r.y1,
    }));
    if across.len() < 2 || down.is_empty() || across.len() > MAX_LINES || down.len() > MAX_LINES {
        return Vec::new();
    }
    let mut tables = Vec::new();
    for (across, down) in components(&across, &down).into_iter().take(MAX_TABLES) {
        if let Some(grid) = Grid::new(&across, &down) {
            tables.extend(fill(&grid, segments, turned));
        }
    }
    tables
}

/// Joins pieces of one line, as dashes and cell borders draw them.
pub(super) fn strokes(pieces: impl Iterator<Item = Stroke>) -> Vec<Stroke> {
    let mut pieces: Vec<Stroke> = pieces.collect();
    pieces.sort_by(|a, b| a.at.total_cmp(&b.at));
    // Snap positions first, so that pieces of one line sort together.
    let mut anchor = f32::NEG_INFINITY;
    for piece in &mut pieces {
        if piece.at - anchor > SNAP {
            anchor = piece.at;
        }
        piece.at = anchor;
    }
    pieces.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.from.total_cmp(&b.from)));
    let mut joined: Vec<Stroke> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.at == piece.at && piece.from <= last.to + REACH => last.to = last.to.max(piece.to),
            _ => joined.push(piece),
        }
    }
    joined
}

/// Groups lines that meet.
fn components(across: &[Stroke], down: &[Stroke]) -> Vec<(Vec<Stroke>, Vec<Stroke>)> {
    let mut parent: Vec<usize> = (0..across.len() + down.len()).collect();
    fn root(parent: &mut [usize], mut i: usize) -> usize {
        while let Some(&up) = parent.get(i) {
            if up == i {
                break;
            }
            let above = parent.get(up).copied().unwrap_or(up);
            if let Some(slot) = parent.get_mut(i) {
                *slot = above;
            }
            i = above;
        }
        i
    }
    for (i, h) in across.iter().enumerate() {
        for (j, v) in down.iter().enumerate() {
            let meets =
                v.at >= h.from - REACH && v.at <= h.to + REACH && h.at >= v.from - REACH && h.at <= v.to + REACH;
            if meets {
                let (a, b) = (root(&mut parent, i), root(&mut parent, across.len() + j));
                if let Some(slot) = parent.get_mut(a) {
                    *slot = b;
                }
            }
        }
    }
    let mut groups: std::collections::BTreeMap<usize, (Vec<Stroke>, Vec<Stroke>)> = Default::default();
    for (i, h) in across.iter().enumerate() {
        groups.entry(root(&mut parent, i)).or_default().0.push(*h);
    }
    for (j, v) in down.iter().enumerate() {
        groups
            .entry(root(&mut parent, across.len() + j))
            .or_default()
            .1
            .push(*v);
    }
    groups
        .into_values()
        .filter(|(h, v)| h.len() >= 2 && !v.is_empty())
        .collect()
}

/// The grid of one component.
struct Grid {
    xs: Vec<f32>,
    ys: Vec<f32>,
    /// Row and column of the first elementary cell of the cell each elementary cell belongs to.
    owner: Vec<usize>,
}

impl Grid {
    fn new(across: &[Stroke], down: &[Stroke]) -> Option<Self> {
        let left = across.iter().map(|h| h.from).fold(f32::INFINITY, f32::min);
        let right = across.iter().map(|h| h.to).fold(f32::NEG_INFINITY, f32::max);
        let top = down.iter().map(|v| v.from).fold(f32::INFINITY, f32::min);
        let bottom = down.iter().map(|v| v.to).fold(f32::NEG_INFINITY, f32::max);
        // Tables are often open at the sides: the ends of the lines are their borders then.
        let xs = positions(down.iter().map(|v| v.at).chain([left, right]));
        let ys = positions(across.iter().map(|h| h.at).chain([top, bottom]));
        let (columns, rows) = (xs.len().checked_sub(1)?, ys.len().checked_sub(1)?);
        if columns == 0 || rows == 0 || columns * rows < 2 || columns.checked_mul(rows)? > MAX_CELLS {
            return None;
        }
        let mut grid = Self {
            xs,
            ys,
            owner: Vec::new(),
        };
        grid.owner = grid.merge(across, down, rows, columns);
        Some(grid)
    }

    fn columns(&self) -> usize {
        self.xs.len() - 1
    }

    fn rows(&self) -> usize {
        self.ys.len() - 1
    }

    /// Finds for every elementary cell the cell it belongs to. A cell grows to the right and down
    /// from its first elementary cell as long as no line is in the way, always as a rectangle.
    fn merge(&self, across: &[Stroke], down: &[Stroke], rows: usize, columns: usize) -> Vec<usize> {
        let wall_right = self.walls(down, &self.xs, &self.ys);
        let wall_below = self.walls(across, &self.ys, &self.xs);
        let none = usize::MAX;
        let mut owner = vec![none; rows * columns];
        let is_free = |owner: &[usize], r: usize, c: usize| owner.get(r * columns + c) == Some(&none);
        // `wall_right[c + 1][r]`: a line between (r, c) and (r, c + 1).
        let right = |r: usize, c: usize| wall_right.get(c + 1).and_then(|w| w.get(r)).copied().unwrap_or(true);
        let below = |r: usize, c: usize| wall_below.get(r + 1).and_then(|w| w.get(c)).copied().unwrap_or(true);
        for r in 0..rows {
            for c in 0..columns {
                if !is_free(&owner, r, c) {
                    continue;
                }
                let mut c1 = c;
                while c1 + 1 < columns && !right(r, c1) && is_free(&owner, r, c1 + 1) {
                    c1 += 1;
                }
                let mut r1 = r;
                while r1 + 1 < rows
                    && (c..=c1).all(|k| !below(r1, k) && is_free(&owner, r1 + 1, k))
                    && (c..c1).all(|k| !right(r1 + 1, k))
                    && (c1 + 1 == columns || right(r1 + 1, c1))
                {
                    r1 += 1;
                }
                for i in r..=r1 {
                    for k in c..=c1 {
                        if let Some(slot) = owner.get_mut(i * columns + k) {
                            *slot = r * columns + c;
                        }
                    }
                }
            }
        }
        owner
    }

    /// For each position of `ats` and each interval of `spans` whether a line is drawn there.
    fn walls(&self, lines: &[Stroke], ats: &[f32], spans: &[f32]) -> Vec<Vec<bool>> {
        let mut walls = vec![vec![false; spans.len().saturating_sub(1)]; ats.len()];
        for line in lines {
            let Some(row) = nearest(ats, line.at).and_then(|i| walls.get_mut(i)) else {
                continue;
            };
            for (pair, wall) in spans.windows(2).zip(row) {
                if let [a, b] = pair {
                    let middle = (a + b) / 2.0;
                    *wall |= line.from <= middle && line.to >= middle;
                }
            }
        }
        walls
    }

    fn cell_at(&self, x: f32, y: f32) -> Option<usize> {
        let c = interval(&self.xs, x)?;
        let r = interval(&self.ys, y)?;
        self.owner.get(r * self.columns() + c).copied()
    }

    /// The box of the cells from one elementary cell to another.
    fn area(&self, row: usize, column: usize, last_row: usize, last_column: usize) -> Option<[f32; 4]> {
        Some([
            *self.xs.get(column)?,
            *self.ys.get(row)?,
            *self.xs.get(last_column + 1)?,
            *self.ys.get(last_row + 1)?,
        ])
    }

    /// The boxes of the cells.
    fn boxes(&self) -> Vec<[f32; 4]> {
        let mut last: std::collections::BTreeMap<usize, usize> = Default::default();
        for (at, owner) in self.owner.iter().enumerate() {
            last.insert(*owner, at);
        }
        let columns = self.columns();
        let area = |(from, to): (usize, usize)| self.area(from / columns, from % columns, to / columns, to % columns);
        last.into_iter().filter_map(area).collect()
    }

    fn bbox(&self) -> [f32; 4] {
        let end = |v: &[f32]| v.last().copied().unwrap_or(0.0);
        let start = |v: &[f32]| v.first().copied().unwrap_or(0.0);
        [start(&self.xs), start(&self.ys), end(&self.xs), end(&self.ys)]
    }
}

fn positions(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.collect();
    values.sort_by(f32::total_cmp);
    let mut out: Vec<f32> = Vec::new();
    for value in values {
        match out.last() {
            Some(last) if value - last <= SNAP + 1.0 => {}
            _ => out.push(value),
        }
    }
    out
}

fn nearest(sorted: &[f32], value: f32) -> Option<usize> {
    let after = sorted.partition_point(|&v| v < value);
    let distance = |i: usize| sorted.get(i).map_or(f32::INFINITY, |v| (v - value).abs());
    let before = after.saturating_sub(1);
    let best = if distance(before) <= distance(after) {
        before
    } else {
        after
    };
    (best < sorted.len()).then_some(best)
}

/// The interval of sorted bounds a value falls into.
fn interval(sorted: &[f32], value: f32) -> Option<usize> {
    let after = sorted.partition_point(|&v| v <= value);
    (after > 0 && after < sorted.len()).then(|| after - 1)
}

/// Whether the rules leave out borders: in some row of the grid several cells hold as many short
/// lines as their neighbours, on the same baselines. Two lines among several rows that are ruled are
/// wrapped headings.
fn is_coarse(texts: &std::collections::BTreeMap<usize, Vec<Segment>>, columns: usize) -> bool {
    let mut by_row: std::collections::BTreeMap<usize, Vec<Vec<f32>>> = Default::default();
    let rows: std::collections::BTreeSet<usize> = texts.keys().map(|owner| owner / columns).collect();
    for (owner, segments) in texts {
        let lines = lines(segments.clone());
        let chars: usize = lines.iter().map(|line| line.text.chars().count()).sum();
        // Lines that go on in lower case are a wrapped text's.
        let wrapped = lines
            .iter()
            .skip(1)
            .filter(|line| line.text.starts_with(char::is_lowercase))
            .count();
        if lines.len() >= 2 && chars < 24 * lines.len() && wrapped * 6 < lines.len() {
            by_row
                .entry(owner / columns)
                .or_default()
                .push(lines.iter().map(|line| line.base).collect());
        }
    }
    by_row.into_iter().any(|(row, cells)| {
        let all = texts.keys().filter(|owner| *owner / columns == row).count();
        let Some(longest) = cells.iter().max_by_key(|cell| cell.len()) else {
            return false;
        };
        let on_its_lines = |cell: &&Vec<f32>| {
            let close = |base: f32| {
                nearest(longest, base)
                    .and_then(|i| longest.get(i))
                    .is_some_and(|l| (l - base).abs() < 2.0)
            };
            cell.len() * 2 >= longest.len() && cell.iter().all(|&base| close(base))
        };
        let same = cells.iter().filter(on_its_lines).count();
        same >= 2 && same * 3 > all * 2 && (longest.len() >= 3 || same >= 3 && rows.len() <= 3)
    })
}

/// The texts of cells that run in other directions than the table's, which are taken.
fn turned_texts(grid: &Grid, turned: &mut Vec<Turned>) -> std::collections::BTreeMap<usize, String> {
    let mut of_cells: std::collections::BTreeMap<(usize, usize), Vec<Segment>> = Default::default();
    turned.retain(|text| {
        let [x0, y0, x1, y1] = text.bbox;
        let owner = grid.cell_at((x0 + x1) / 2.0, (y0 + y1) / 2.0);
        if let Some(owner) = owner {
            of_cells
                .entry((owner, text.part))
                .or_default()
                .push(text.segment.clone());
        }
        owner.is_none()
    });
    let mut texts: std::collections::BTreeMap<usize, String> = Default::default();
    for ((owner, _), segments) in of_cells {
        let text = texts.entry(owner).or_default();
        for line in lines(segments) {
            append_line(text, &line.text);
        }
    }
    texts
}

/// Puts the text of a grid into cells; nothing when it turns out to be no table.
fn fill(grid: &Grid, segments: &mut Vec<Segment>, turned: &mut Vec<Turned>) -> Option<Table> {
    let (rows, columns) = (grid.rows(), grid.columns());
    let mut texts: std::collections::BTreeMap<usize, Vec<Segment>> = Default::default();
    let place = |s: &Segment| grid.cell_at((s.x0 + s.x1) / 2.0, s.base - 0.3 * s.size);
    for segment in segments.iter() {
        if let Some(owner) = place(segment) {
            texts.entry(owner).or_default().push(segment.clone());
        }
    }
    let owners: std::collections::BTreeSet<usize> = grid.owner.iter().copied().collect();
    // A frame around text, a form's box or a chart's axes are no tables.
    if owners.len() < 3 || texts.len() < 3 || texts.len() * 4 < owners.len() {
        return None;
    }
    let used_rows: std::collections::BTreeSet<usize> = texts.keys().map(|o| o / columns).collect();
    let used_columns: std::collections::BTreeSet<usize> = texts.keys().map(|o| o % columns).collect();
    if used_columns.len() < 2 || used_rows.len() < 2 {
        return None;
    }
    if is_coarse(&texts, columns) {
        let inside: Vec<Segment> = texts.values().flatten().cloned().collect();
        // The rules there are part the levels of the heading.
        let drawn = Drawn {
            bounds: grid.ys.get(1..rows).unwrap_or_default(),
            under: &[],
            boxes: &grid.boxes(),
        };
        if let Some(mut table) = aligned_rows(&lines(inside), drawn)
            && table.rows * table.columns > texts.len()
        {
            segments.retain(|segment| place(segment).is_none());
            table.bbox = union(table.bbox, grid.bbox());
            return Some(table);
        }
    }
    let mut table = Table {
        rows,
        columns,
        cells: Vec::new(),
        bbox: grid.bbox(),
        separators: grid.xs.get(1..columns).unwrap_or_default().to_vec(),
    };
    let mut turned_texts = turned_texts(grid, turned);
    for owner in owners {
        let span = |index: usize| (index / columns, index % columns);
        let (row, column) = span(owner);
        let (mut last_row, mut last_column) = (row, column);
        // Only the first row and column of a rectangle have to be followed.
        while last_column + 1 < columns && grid.owner.get(row * columns + last_column + 1) == Some(&owner) {
            last_column += 1;
        }
        while last_row + 1 < rows && grid.owner.get((last_row + 1) * columns + column) == Some(&owner) {
            last_row += 1;
        }
        let content = texts.remove(&owner).unwrap_or_default();
        let bold = !content.is_empty() && content.iter().all(|s| s.bold);
        let mut text = String::new();
        for line in lines(content) {
            append_line(&mut text, &line.text);
            table.bbox = union(table.bbox, line.bbox);
        }
        if let Some(turned) = turned_texts.remove(&owner) {
            append_line(&mut text, &turned);
        }
        text.retain(|ch| ch != '\u{AD}');
        table.cells.push(Cell {
            row,
            column,
            row_span: last_row - row + 1,
            column_span: last_column - column + 1,
            text,
            bold,
            bbox: grid.area(row, column, last_row, last_column),
            page: 0,
        });
    }
    segments.retain(|segment| place(segment).is_none());
    table.compact();
    Some(table)
}
