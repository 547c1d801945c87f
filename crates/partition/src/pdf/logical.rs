//! The order in which the structure tree of a tagged file has the text of a page, in place of the order that the
//! layout suggests.
//!
//! Programs write trees of any quality. One is followed where it has nearly all text and its order is one in
//! which a page can be read: not up again within a column, and not to and fro between columns. What stands beside
//! the text, as boxes and figures, many trees have before it or after it as it was drawn; so it is only followed
//! where a good part of the text stands elsewhere in the tree than in the layout.

use std::collections::BTreeMap;

use super::engine::TagKind;
use super::order::read_order;
use super::segment::Segment;

/// Percentage of the text that must be in the tree.
const COVERED: usize = 95;
/// A step up by more than this many font sizes begins the next column.
const COLUMN_STEP: f32 = 3.0;
/// A step up by less than this many font sizes is none: raised characters.
const STEP_UP: f32 = 0.7;
/// Steps from line to line, of which at most one in so many may lead up within a column.
const BACKWARDS: usize = 8;
/// Times that a column is left and come back to, on average.
const MAX_RETURNS: usize = 2;

/// Percentage of the text up to which what stands elsewhere in the tree is taken for something beside the text.
const MOVED: usize = 20;

/// A segment in the reading order that the layout suggests.
struct Placed {
    segment: Segment,
    /// The group that the layout has it in.
    region: usize,
    order: u32,
}

/// Splits segments into groups to be read one after the other, each from top to bottom: as the structure tree has
/// them where it can be followed, else as they are laid out.
pub(super) fn reading_order(segments: Vec<Segment>) -> Vec<Vec<Segment>> {
    let covered = is_covered(&segments);
    let regions = read_order(segments);
    if !covered {
        return regions;
    }
    let mut placed = place(regions);
    // The sort is stable: text of one order stays as it is laid out.
    let mut in_tree: Vec<&Placed> = placed.iter().collect();
    in_tree.sort_by_key(|placed| placed.order);
    if moved(&placed) <= MOVED || !is_readable(&in_tree) {
        return grouped(placed, false);
    }
    placed.sort_by_key(|placed| placed.order);
    grouped(placed, true)
}

/// Whether the tree has nearly all text.
fn is_covered(segments: &[Segment]) -> bool {
    let (mut all, mut known, mut first, mut last) = (0, 0, u32::MAX, 0);
    for segment in segments.iter().filter(|segment| segment.table.is_none()) {
        all += segment.text.len();
        if segment.tag.order > 0 {
            known += segment.text.len();
            (first, last) = (first.min(segment.tag.order), last.max(segment.tag.order));
        }
    }
    last > first && known * 100 >= all * COVERED
}

/// The segments as they are laid out. What the tree does not have goes with what stands before it.
fn place(regions: Vec<Vec<Segment>>) -> Vec<Placed> {
    let mut placed = Vec::new();
    for (region, mut segments) in regions.into_iter().enumerate() {
        segments.sort_by(|a, b| a.base.total_cmp(&b.base).then(a.x0.total_cmp(&b.x0)));
        placed.extend(segments.into_iter().map(|segment| Placed {
            region,
            order: segment.tag.order,
            segment,
        }));
    }
    let mut last = 0;
    for item in &mut placed {
        if item.order == 0 {
            item.order = last;
        }
        last = item.order;
    }
    placed
}

/// The percentage of the text that has to move for the order of the layout to be that of the tree.
fn moved(placed: &[Placed]) -> usize {
    // By the last place in the tree, the most text that is in order up to there; both rise.
    let mut best: BTreeMap<u32, usize> = BTreeMap::new();
    let mut all = 0;
    for Placed { segment, order, .. } in placed {
        all += segment.text.len();
        let before = best.range(..=*order).next_back().map_or(0, |(_, text)| *text);
        let here = before + segment.text.len();
        while let Some((&next, &text)) = best.range(*order..).next()
            && text <= here
        {
            best.remove(&next);
        }
        best.insert(*order, here);
    }
    let kept = best.last_key_value().map_or(0, |(_, text)| *text);
    (all - kept) * 100 / all.max(1)
}

/// Whether the tree's order is one that a page can be read in.
fn is_readable(placed: &[&Placed]) -> bool {
    let (mut steps, mut backwards, mut changes) = (0, 0, 0);
    let (mut inner_steps, mut inner_backwards) = (0, 0);
    for pair in placed.windows(2) {
        let [a, b] = pair else { continue };
        changes += usize::from(a.region != b.region);
        if a.order == b.order {
            continue;
        }
        let (a, b) = (&a.segment, &b.segment);
        let up = b.base < a.base - STEP_UP * a.size.max(b.size);
        let down = b.base > a.base + STEP_UP * a.size.max(b.size);
        let above = up && a.x0.max(b.x0) < a.x1.min(b.x1);
        steps += usize::from(up || down);
        backwards += usize::from(above);
        if a.tag.element > 0 && a.tag.element == b.tag.element && a.tag.kind != TagKind::Cell {
            inner_steps += usize::from(up || down);
            inner_backwards += usize::from(above);
        }
    }
    let regions = placed
        .iter()
        .map(|placed| placed.region)
        .max()
        .map_or(0, |last| last + 1);
    backwards * BACKWARDS <= steps && inner_backwards * BACKWARDS <= inner_steps && changes <= MAX_RETURNS * regions
}

/// Groups what belongs to one region in a row; with `columns`, a group ends where the order goes up to the top of
/// the next column.
fn grouped(placed: Vec<Placed>, columns: bool) -> Vec<Vec<Segment>> {
    let mut groups: Vec<Vec<Segment>> = Vec::new();
    let mut open: Option<Group> = None;
    for Placed { segment, region, .. } in placed {
        let goes_on = open
            .as_ref()
            .is_some_and(|group| group.region == region && !(columns && group.is_left_for(&segment)));
        if !goes_on {
            groups.push(Vec::new());
            open = None;
        }
        open = Some(Group::with(open, region, &segment));
        if let Some(group) = groups.last_mut() {
            group.push(segment);
        }
    }
    groups
}

/// How far a group reaches.
struct Group {
    region: usize,
    base: f32,
    x0: f32,
    x1: f32,
}

impl Group {
    fn with(open: Option<Self>, region: usize, segment: &Segment) -> Self {
        let reach = |group: Self| Self {
            region,
            base: group.base.max(segment.base),
            x0: group.x0.min(segment.x0),
            x1: group.x1.max(segment.x1),
        };
        let alone = Self {
            region,
            base: segment.base,
            x0: segment.x0,
            x1: segment.x1,
        };
        open.map_or(alone, reach)
    }

    /// Whether a segment stands at the top of another column.
    fn is_left_for(&self, segment: &Segment) -> bool {
        segment.tag.kind != TagKind::Cell
            && segment.table.is_none()
            && segment.base < self.base - COLUMN_STEP * segment.size
            && (segment.x0 >= self.x1 || segment.x1 <= self.x0)
    }
}
