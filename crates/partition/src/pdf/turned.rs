//! Text that runs in another direction than most of the page, as headings of narrow columns do.

use super::engine::Direction;
use super::frame::Frame;
use super::segment::Segment;

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
