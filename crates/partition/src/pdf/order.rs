//! Reading order: a recursive cut of the page at gutters and gaps.
//!
//! A gutter is a vertical strip free of text with several lines on both sides. Lines that run across
//! it (titles, figures over both columns) cut the page into bands, within which the columns are read
//! one after the other. Rows of a table look like columns too; what gives them away is that the short
//! texts on both sides stand on common baselines, and such are read row by row.

use super::segment::Segment;

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
    if region.len() < 2 * MIN_LINES {
        return None;
    }
    let em = median_size(region);
    let left = region.iter().map(|s| s.x0).fold(f32::INFINITY, f32::min);
    let right = region.iter().map(|s| s.x1).fold(f32::NEG_INFINITY, f32::max);
    let step = (em / 8.0).max((right - left) / MAX_BINS as f32).max(0.1);
    let bins = (((right - left) / step).ceil() as usize).min(MAX_BINS) + 1;
    let coverage = coverage(region, left, step, bins);

    let mut best: Option<(f32, Gutter)> = None;
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
            if let Some(score) = score(region, gutter, em)
                && best.is_none_or(|(known, _)| score > known)
            {
                best = Some((score, gutter));
            }
        }
        start = end;
    }
    best.map(|(_, gutter)| gutter)
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

/// How good a gutter is; none when it is not one.
fn score(region: &[Segment], gutter: Gutter, em: f32) -> Option<f32> {
    let sides: Vec<Side> = region.iter().map(|segment| gutter.side(segment)).collect();
    let across = sides.iter().filter(|&&side| side == Side::Across).count();
    let mut fewest = 0;
    let mut band: (Vec<&Segment>, Vec<&Segment>) = Default::default();
    let mut tabular = (0usize, 0usize);
    let mut close = |band: &mut (Vec<&Segment>, Vec<&Segment>)| {
        let lines = band.0.len().min(band.1.len());
        if lines > 0 && faces(&band.0, &band.1) {
            if is_tabular(&band.0, &band.1, em) {
                tabular.0 += lines;
            } else {
                tabular.1 += lines;
                fewest = fewest.max(lines);
            }
        }
        band.0.clear();
        band.1.clear();
    };
    for (segment, side) in region.iter().zip(&sides) {
        match side {
            Side::Left => band.0.push(segment),
            Side::Right => band.1.push(segment),
            Side::Across => close(&mut band),
        }
    }
    close(&mut band);
    if fewest < MIN_LINES || tabular.0 > tabular.1 || across > 2 * tabular.1 {
        return None;
    }
    let width = ((gutter.x1 - gutter.x0) / em).min(3.0);
    Some(tabular.1 as f32 * width / (1.0 + across as f32))
}

/// Whether two columns stand side by side rather than one above the other.
fn faces(left: &[&Segment], right: &[&Segment]) -> bool {
    let range = |side: &[&Segment]| {
        side.iter()
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(top, bottom), s| {
                (top.min(s.y0), bottom.max(s.y1))
            })
    };
    let (a, b) = (range(left), range(right));
    let common = a.1.min(b.1) - a.0.max(b.0);
    common > 0.5 * (a.1 - a.0).min(b.1 - b.0)
}

/// Whether the lines of two columns are cells of common rows.
fn is_tabular(left: &[&Segment], right: &[&Segment], em: f32) -> bool {
    let mean = |side: &[&Segment]| side.iter().map(|s| s.text.chars().count()).sum::<usize>() / side.len().max(1);
    if mean(left).min(mean(right)) >= TABLE_CELL {
        return false;
    }
    let (few, many) = if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    };
    let aligned = few
        .iter()
        .filter(|s| {
            let start = many.partition_point(|other| other.base < s.base - 0.25 * em);
            many.get(start).is_some_and(|other| other.base <= s.base + 0.25 * em)
        })
        .count();
    aligned * 4 >= few.len() * 3
}
