//! Text that runs in another direction than most of the page, as headings of narrow columns do.

use super::engine::Direction;
use super::frame::Frame;
use super::segment::Segment;
use super::table::Table;

/// A segment and where it stands as the page's main frame has it.
pub(super) struct Turned {
    /// `[x0, y0, x1, y1]` in the main frame.
    pub(super) bbox: [f32; 4],
    /// Which of the page's parts it is from.
    pub(super) part: usize,
    /// The segment in the frame of its own direction.
    pub(super) segment: Segment,
}

/// Takes the segments out of all parts of a page but the first.
pub(super) fn take(parts: &mut [(Frame, Vec<Segment>)]) -> Vec<Turned> {
    let mut out = Vec::new();
    let Some(((main, _), others)) = parts.split_first_mut() else {
        return out;
    };
    for (index, (frame, segments)) in others.iter_mut().enumerate() {
        // Text at other angles lies over the page, as watermarks do.
        if frame.direction == Direction::Oblique {
            continue;
        }
        out.extend(segments.drain(..).map(|segment| Turned {
            bbox: main.map_box(frame.unmap([segment.x0, segment.y0, segment.x1, segment.y1])),
            part: index + 1,
            segment,
        }));
    }
    out
}

/// Puts what is left back.
pub(super) fn put_back(parts: &mut [(Frame, Vec<Segment>)], turned: Vec<Turned>) {
    for Turned { part, segment, .. } in turned {
        if let Some((_, segments)) = parts.get_mut(part) {
            segments.push(segment);
        }
    }
}

/// Puts the texts that run upwards or downwards in the heading of a table into the cells of its first row,
/// when these are empty.
pub(super) fn take_headings(table: &mut Table, turned: &mut Vec<Turned>) {
    if table.separators.len() + 1 != table.columns {
        return;
    }
    let bottom = table
        .cells
        .iter()
        .filter(|cell| cell.row > 0)
        .filter_map(|cell| cell.bbox);
    let bottom = bottom.map(|bbox| bbox[1]).fold(f32::INFINITY, f32::min);
    let [left, top, right, _] = table.bbox;
    turned.retain(|text| {
        let [x0, y0, x1, y1] = text.bbox;
        let (x, y) = ((x0 + x1) / 2.0, (y0 + y1) / 2.0);
        if !(left..right).contains(&x) || !(top..bottom).contains(&y) {
            return true;
        }
        let column = table.separators.partition_point(|separator| *separator < x);
        let cell = table
            .cells
            .iter_mut()
            .find(|cell| cell.row == 0 && cell.column == column);
        match cell {
            Some(cell) if cell.text.is_empty() => {
                cell.text.clone_from(&text.segment.text);
                cell.bold = text.segment.bold;
                cell.bbox = Some(text.bbox);
                false
            }
            _ => true,
        }
    });
}
