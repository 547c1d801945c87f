//! Where the texts of rows and columns stand.

use super::super::line::Line;
use super::Content;

/// Places where labels begin that are kept.
const MAX_INDENTS: usize = 200;

/// Separators moved to the right of texts that end between them and the next column.
pub(super) fn settled(separators: &[f32], lines: &[Line]) -> Vec<f32> {
    let move_right = |(index, &x): (usize, &f32)| {
        let end = separators.get(index + 1).copied().unwrap_or(f32::INFINITY);
        let parts = |least: usize| {
            lines
                .iter()
                .filter(move |line| line.parts.len() >= least)
                .flat_map(|line| &line.parts)
        };
        let next = parts(2)
            .map(|part| part.x0)
            .filter(|x0| *x0 >= x && *x0 < end)
            .fold(f32::INFINITY, f32::min);
        let over = parts(1)
            .filter(|part| part.x0 < x && part.x1 < next - 1.0)
            .map(|part| part.x1);
        let right = over.fold(f32::NEG_INFINITY, f32::max);
        if next.is_finite() && right > x {
            (right + next) / 2.0
        } else {
            x
        }
    };
    separators.iter().enumerate().map(move_right).collect()
}

/// Whether two texts begin below each other.
pub(super) fn begin_together(above: &Content, below: &Content, size: f32) -> bool {
    let boxes = above.bbox.zip(below.bbox);
    boxes.is_some_and(|(a, b)| (a[0] - b[0]).abs() < 0.3 * size)
}

/// Whether a text follows another without lines of other columns between them.
pub(super) fn stands_below(above: &Content, below: &Content, size: f32) -> bool {
    let boxes = above.bbox.zip(below.bbox);
    boxes.is_none_or(|(a, b)| b[1] - a[3] < 0.9 * size)
}

/// Where the texts of columns stand, but for those of the first line.
pub(super) fn extents(lines: &[Vec<Content>], columns: usize) -> Vec<Option<(f32, f32)>> {
    let mut extents: Vec<Option<(f32, f32)>> = vec![None; columns];
    let skip = usize::from(lines.len() > 3);
    for cells in lines.iter().skip(skip) {
        let single = cells.iter().zip(&mut extents).filter(|(cell, _)| cell.span == 1);
        for (cell, extent) in single {
            if let Some([x0, _, x1, _]) = cell.bbox {
                let (left, right) = extent.unwrap_or((x0, x1));
                *extent = Some((left.min(x0), right.max(x1)));
            }
        }
    }
    extents
}

/// Where labels begin in lines that cannot go on with another: first below a rule, or below a line with
/// figures of its own.
pub(super) fn indents(lines: &[Vec<Content>], bounds: &[f32]) -> Vec<f32> {
    let bottom = |cells: &[Content]| {
        cells
            .iter()
            .filter_map(|cell| cell.bbox)
            .map(|bbox| bbox[3])
            .reduce(f32::max)
    };
    let top = |cells: &[Content]| {
        cells
            .iter()
            .filter_map(|cell| cell.bbox)
            .map(|bbox| bbox[1])
            .reduce(f32::min)
    };
    let mut found: Vec<f32> = Vec::new();
    for pair in lines.windows(2) {
        let [above, below] = pair else { continue };
        let begins = below.first().and_then(|cell| cell.bbox).map(|bbox| bbox[0]);
        let (Some(x), Some(end), Some(start)) = (begins, bottom(above), top(below)) else {
            continue;
        };
        let ruled = || bounds.iter().any(|y| *y > end - 2.0 && *y < start + 2.0);
        let figures =
            above.first().is_some_and(|cell| !cell.text.is_empty()) && above.iter().skip(1).any(Content::is_number);
        if found.last() != Some(&x) && found.len() < MAX_INDENTS && (figures || ruled()) {
            found.push(x);
        }
    }
    found
}

/// Whether a rule is drawn between the texts that some column has in two rows.
pub(super) fn are_parted(above: &[Content], below: &[Content], bounds: &[f32], size: f32) -> bool {
    let boxes = || above.iter().zip(below).filter_map(|(a, b)| a.bbox.zip(b.bbox));
    let between = |y: &f32| boxes().any(|(a, b)| *y > a[3] - 0.25 * size && *y < b[1] + 0.25 * size);
    bounds.iter().any(between)
}
