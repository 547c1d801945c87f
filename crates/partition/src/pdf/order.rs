//! Reading order: a recursive cut of the page at gutters and gaps.
//!
//! A gutter is a vertical strip free of text with several lines on both sides. Lines that run across
//! it (titles, figures over both columns) cut the page into bands, within which the columns are read
//! one after the other. Rows of a table look like columns too; what gives them away is that the short
//! texts on both sides stand on common baselines, and such are read row by row.

use super::segment::Segment;
use super::side_heads::side_heads;

/// Times the page is cut again; deeper structure is read from top to bottom.
const MAX_DEPTH: usize = 24;
/// Lines there must be on both sides of a gutter.
const MIN_LINES: usize = 3;
/// Narrowest gutter, in font sizes.
const MIN_GUTTER: f32 = 0.6;
/// Vertical gap between bands, in font sizes.
const BAND_GAP: f32 = 1.0;
/// Columns of shorter lines (in characters, on average) on common baselines are a table's.
const TABLE_CELL: usize = 18;
/// Gutters looked at per region.
const MAX_CANDIDATES: usize = 24;
/// Strips the width of a region is divided into at most.
const MAX_BINS: usize = 4000;

/// Splits segments into groups to be read one after the other, each from top to bottom.
pub(super) fn read_order(segments: Vec<Segment>) -> Vec<Vec<Segment>> {
    let mut done = Vec::new();
    let mut todo = vec![(segments, 0)];
    while let Some((region, depth)) = todo.pop() {
        if region.is_empty() {
            continue;
        }
        match if depth < MAX_DEPTH {
            cut(region)
        } else {
            Cut::Whole(region)
        } {
            Cut::Whole(region) => done.push(region),
            Cut::Parts(parts) => {
                for part in parts.into_iter().rev() {
                    todo.push((part, depth + 1));
                }
            }
        }
    }
    done
}

enum Cut {
    Whole(Vec<Segment>),
    Parts(Vec<Vec<Segment>>),
}

fn cut(mut region: Vec<Segment>) -> Cut {
    region.sort_by(|a, b| a.base.total_cmp(&b.base).then(a.x0.total_cmp(&b.x0)));
    if let Some(gutter) = find_gutter(&region) {
        return Cut::Parts(cut_at(region, gutter));
    }
    if let Some(parts) = side_heads(&region).filter(|parts| parts.len() > 1) {
        return Cut::Parts(parts);
    }
    cut_bands(region)
}

/// Splits at the wide vertical gaps where that uncovers a gutter.
fn cut_bands(region: Vec<Segment>) -> Cut {
    let em = median_size(&region);
    let mut bands: Vec<Vec<Segment>> = Vec::new();
    let mut bottom = f32::NEG_INFINITY;
    for segment in region {
        let gap = segment.y0 - bottom;
        bottom = bottom.max(segment.y1);
        match bands.last_mut() {
            Some(band) if gap <= BAND_GAP * em => band.push(segment),
            _ => bands.push(vec![segment]),
        }
    }
    let mut parts: Vec<(Vec<Segment>, bool)> = Vec::new();
    for band in bands {
        let columns = find_gutter(&band).is_some();
        match parts.last_mut() {
            Some((part, false)) if !columns => part.extend(band),
            _ => parts.push((band, columns)),
        }
    }
    if parts.len() == 1 {
        return Cut::Whole(parts.pop().map(|(part, _)| part).unwrap_or_default());
    }
    Cut::Parts(parts.into_iter().map(|(part, _)| part).collect())
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Gutter {
    x0: f32,
    x1: f32,
}

impl Gutter {
    fn side(&self, segment: &Segment) -> Side {
        let middle = (self.x0 + self.x1) / 2.0;
        if segment.x1 <= middle {
            Side::Left
        } else if segment.x0 >= middle {
            Side::Right
        } else {
            Side::Across
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Across,
}

fn cut_at(region: Vec<Segment>, gutter: Gutter) -> Vec<Vec<Segment>> {
    let mut parts: Vec<Vec<Segment>> = Vec::new();
    let (mut left, mut right, mut across) = (Vec::new(), Vec::new(), Vec::new());
    for segment in region {
        match gutter.side(&segment) {
            Side::Across => {
                parts.push(std::mem::take(&mut left));
                parts.push(std::mem::take(&mut right));
                across.push(segment);
            }
            side => {
                parts.push(std::mem::take(&mut across));
                if side == Side::Left { &mut left } else { &mut right }.push(segment);
            }
        }
    }
    parts.extend([across, left, right]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn median_size(region: &[Segment]) -> f32 {
    let mut sizes: Vec<f32> = region.iter().map(|segment| segment.size).collect();
    if sizes.is_empty() {
        return 10.0;
    }
    let middle = sizes.len() / 2;
    *sizes.select_nth_unstable_by(middle, f32::total_cmp).1
}

/// The best gutter of a region whose segments are sorted by baseline.
fn find_gutter(region: &[Segment]) -> Option<Gutter> {
    if region.len() < 2 {
        return None;
    }
    let em = median_size(region);
    let left = region.iter().map(|s| s.x0).fold(f32::INFINITY, f32::min);
    let right = region.iter().map(|s| s.x1).fold(f32::NEG_INFINITY, f32::max);
    let step = (em / 8.0).max((right - left) / MAX_BINS as f32).max(0.1);
    let bins = (((right - left) / step).ceil() as usize).min(MAX_BINS) + 1;
    let coverage = coverage(region, left, step, bins);

    let mut candidates: Vec<(i32, Gutter)> = Vec::new();
    let mut start = 0;
    while start < bins {
        let level = coverage.get(start).copied().unwrap_or(0);
        let mut end = start + 1;
        while end < bins && coverage.get(end).copied() == Some(level) {
            end += 1;
        }
        let lower_left = start > 0 && coverage.get(start - 1).is_some_and(|&c| c > level);
        let lower_right = coverage.get(end).is_some_and(|&c| c > level);
        if lower_left && lower_right && (end - start) as f32 * step >= MIN_GUTTER * em {
            let gutter = Gutter {
                x0: left + start as f32 * step,
                x1: left + end as f32 * step,
            };
            candidates.push((level, gutter));
        }
        start = end;
    }
    // The emptiest and widest are looked at more closely.
    let width = |gutter: &Gutter| gutter.x1 - gutter.x0;
    candidates.sort_by(|a, b| a.0.cmp(&b.0).then(width(&b.1).total_cmp(&width(&a.1))));
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter_map(|(_, gutter)| Some((score(region, gutter, em)?, gutter)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, gutter)| gutter)
}

/// For each vertical strip the number of segments that touch it.
fn coverage(region: &[Segment], left: f32, step: f32, bins: usize) -> Vec<i32> {
    let mut delta = vec![0i32; bins + 1];
    for segment in region {
        let first = (((segment.x0 - left) / step).floor() as usize).min(bins);
        let last = (((segment.x1 - left) / step).ceil() as usize).clamp(first, bins);
        if let Some(d) = delta.get_mut(first) {
            *d += 1;
        }
        if let Some(d) = delta.get_mut(last) {
            *d -= 1;
        }
    }
    let mut sum = 0;
    delta.truncate(bins);
    for d in &mut delta {
        sum += *d;
        *d = sum;
    }
    delta
}

/// A line on one side of a gutter.
#[derive(Clone, Copy)]
struct Row {
    base: f32,
    chars: usize,
    letters: usize,
    /// Lines it counts for: a table is many.
    weight: f32,
}

/// The lines of one side within one band, from top to bottom.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn push(&mut self, segment: &Segment, em: f32) {
        let chars = segment.text.chars().count();
        let letters = segment.text.chars().filter(|ch| ch.is_alphabetic()).count();
        match self.0.last_mut() {
            Some(row) if segment.table.is_none() && segment.base - row.base < 0.4 * em => {
                row.chars += chars;
                row.letters += letters;
            }
            _ => self.0.push(Row {
                base: segment.base,
                chars,
                letters,
                weight: if segment.table.is_some() {
                    ((segment.y1 - segment.y0) / (1.3 * em)).clamp(1.0, 100.0)
                } else {
                    1.0
                },
            }),
        }
    }

    /// The part that stands beside the other side.
    fn beside(&self, other: &Self, em: f32) -> &[Row] {
        let (Some(first), Some(last)) = (other.0.first(), other.0.last()) else {
            return &[];
        };
        let start = self.0.partition_point(|row| row.base < first.base - em * first.weight);
        let end = self.0.partition_point(|row| row.base <= last.base + em * last.weight);
        self.0.get(start..end).unwrap_or_default()
    }
}

/// How good a gutter is; none when it is not one.
fn score(region: &[Segment], gutter: Gutter, em: f32) -> Option<f32> {
    let mut tally = Tally::default();
    let (mut left, mut right) = (Rows::default(), Rows::default());
    let (mut across, mut conflicts) = (0.0f32, 0.0f32);
    let mut last: Option<(Side, f32)> = None;
    for segment in region {
        let side = gutter.side(segment);
        // What runs across a gutter between columns has the row to itself.
        if last.is_some_and(|(before, base)| {
            (before == Side::Across) != (side == Side::Across) && segment.base - base < 0.6 * em
        }) {
            conflicts += 1.0;
        }
        last = Some((side, segment.base));
        match side {
            Side::Left => left.push(segment, em),
            Side::Right => right.push(segment, em),
            Side::Across => {
                across += 1.0;
                tally.add(&left, &right, em);
                left.0.clear();
                right.0.clear();
            }
        }
    }
    tally.add(&left, &right, em);
    if tally.best < MIN_LINES as f32
        || tally.tabular > tally.prose
        || across > 2.0 * tally.prose
        || (conflicts >= 2.0 && conflicts > 0.25 * across)
    {
        return None;
    }
    let width = ((gutter.x1 - gutter.x0) / em).min(3.0);
    Some(tally.prose * width / (1.0 + across))
}

/// Lines that face each other across a gutter, over all bands.
#[derive(Default)]
struct Tally {
    prose: f32,
    tabular: f32,
    /// Most lines of prose in one band.
    best: f32,
}

impl Tally {
    fn add(&mut self, left: &Rows, right: &Rows, em: f32) {
        let (left, right) = (left.beside(right, em), right.beside(left, em));
        let weight = |rows: &[Row]| rows.iter().map(|row| row.weight).sum::<f32>();
        let lines = weight(left).min(weight(right));
        if lines == 0.0 {
            return;
        }
        if is_tabular(left, right, em) {
            self.tabular += lines;
        } else {
            self.prose += lines;
            self.best = self.best.max(lines);
        }
    }
}

/// Whether the lines of two columns are cells of common rows.
fn is_tabular(left: &[Row], right: &[Row], em: f32) -> bool {
    let mean = |rows: &[Row]| rows.iter().map(|row| row.chars).sum::<usize>() / rows.len().max(1);
    if mean(left).min(mean(right)) >= TABLE_CELL {
        return false;
    }
    // Figures are never read down the column.
    let figures = |rows: &[Row]| rows.iter().filter(|row| row.letters * 3 < row.chars).count() * 10 > rows.len() * 7;
    if figures(left) || figures(right) {
        return true;
    }
    let (few, many) = if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    };
    let aligned = few
        .iter()
        .filter(|row| {
            let start = many.partition_point(|other| other.base < row.base - 0.25 * em);
            many.get(start).is_some_and(|other| other.base <= row.base + 0.25 * em)
        })
        .count();
    aligned * 4 >= few.len() * 3
}
