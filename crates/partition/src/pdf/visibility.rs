//! Text that is on a page but that nobody sees: outside the page, clipped away, invisible or white on
//! white with nothing behind it.

use super::engine::Direction;

/// Bands and cells the page is divided into to know where something is painted.
const CELLS: usize = 128;
/// How far from a clip's edge the middle of a character may lie, in points.
const CLIP_MARGIN: f32 = 1.0;
/// Nesting of clips that is followed; deeper ones narrow nothing.
const MAX_CLIPS: usize = 4096;

/// Characters nobody sees, counted by reason. Blanks are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hidden {
    /// Drawn outside the page; never among the characters of a page.
    pub(super) outside: usize,
    /// Drawn outside the clip that held.
    pub(super) clipped: usize,
    /// Drawn white where nothing else is painted.
    pub(super) white: usize,
    /// Drawn invisibly where there is no picture they could be the text of.
    pub(super) invisible: usize,
    /// Whether they were kept all the same, as the page has no other text.
    pub(super) kept: bool,
}

impl Hidden {
    /// All of them.
    pub(super) fn total(&self) -> usize {
        self.outside + self.clipped + self.white + self.invisible
    }
}

/// Why a character may not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    White,
    Invisible,
}

/// Where something that is not white is painted on a page: a coarse raster.
pub(super) struct Painted {
    rows: Box<[u128; CELLS]>,
    width: f32,
    height: f32,
}

impl Painted {
    pub(super) fn new(width: f32, height: f32) -> Self {
        Self {
            rows: Box::new([0; CELLS]),
            width: width.max(1.0),
            height: height.max(1.0),
        }
    }

    /// Marks all cells that `[x0, y0, x1, y1]` touches.
    pub(super) fn add(&mut self, [x0, y0, x1, y1]: [f32; 4]) {
        if !(x1 >= 0.0 && y1 >= 0.0 && x0 <= self.width && y0 <= self.height) {
            return;
        }
        let (left, right) = (cell(x0, self.width), cell(x1, self.width));
        let (top, bottom) = (cell(y0, self.height), cell(y1, self.height));
        let mask = (u128::MAX << left) & (u128::MAX >> (CELLS - 1 - right));
        for row in self.rows.iter_mut().take(bottom + 1).skip(top) {
            *row |= mask;
        }
    }

    /// Whether something is painted at a place.
    pub(super) fn covers(&self, x: f32, y: f32) -> bool {
        let row = self.rows.get(cell(y, self.height)).copied().unwrap_or(0);
        row & (1 << cell(x, self.width)) != 0
    }
}

/// The cell of a coordinate; places outside the page belong to the cells at its edge.
fn cell(at: f32, size: f32) -> usize {
    // A float too large, too small or not a number ends at a bound.
    ((at / size * CELLS as f32) as usize).min(CELLS - 1)
}

/// The clips that hold while a page is drawn.
#[derive(Default)]
pub(super) struct Clips {
    boxes: Vec<[f32; 4]>,
    /// Clips pushed beyond what is followed.
    deeper: usize,
}

impl Clips {
    pub(super) fn push(&mut self, [x0, y0, x1, y1]: [f32; 4]) {
        if self.boxes.len() >= MAX_CLIPS {
            self.deeper += 1;
            return;
        }
        let [a0, b0, a1, b1] =
            self.boxes
                .last()
                .copied()
                .unwrap_or([f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::INFINITY]);
        self.boxes.push([x0.max(a0), y0.max(b0), x1.min(a1), y1.min(b1)]);
    }

    pub(super) fn pop(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.boxes.pop();
        }
    }

    /// Whether a place lies outside the clips.
    pub(super) fn exclude(&self, x: f32, y: f32) -> bool {
        self.boxes.last().is_some_and(|[x0, y0, x1, y1]| {
            x < x0 - CLIP_MARGIN || x > x1 + CLIP_MARGIN || y < y0 - CLIP_MARGIN || y > y1 + CLIP_MARGIN
        })
    }
}

/// The middle of a character, given by its origin, its advance and its size.
pub(super) fn middle(x: f32, y: f32, advance: f32, size: f32, direction: Direction) -> (f32, f32) {
    let (along, up) = (advance / 2.0, 0.3 * size);
    match direction {
        Direction::East => (x + along, y - up),
        Direction::West => (x - along, y + up),
        Direction::South => (x + up, y + along),
        Direction::North => (x - up, y - along),
        Direction::Oblique => (x, y),
    }
}

/// What of a colour matters to being seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shade {
    White,
    Clear,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_paints_the_cells_it_touches() {
        let mut painted = Painted::new(128.0, 256.0);
        painted.add([10.0, 20.0, 12.0, 30.0]);
        assert!(painted.covers(10.5, 20.5) && painted.covers(12.5, 30.9));
        assert!(!painted.covers(9.5, 25.0) && !painted.covers(13.5, 25.0) && !painted.covers(11.0, 33.0));
        painted.add([f32::NAN, 0.0, 5.0, 5.0]);
        painted.add([-50.0, -50.0, 1000.0, 1.0]);
        assert!(painted.covers(0.0, 0.0) && painted.covers(127.0, 0.0) && !painted.covers(0.0, 100.0));
        painted.add([f32::NEG_INFINITY, 0.0, f32::INFINITY, f32::INFINITY]);
        assert!(painted.covers(60.0, 255.0));
    }

    #[test]
    fn clips_narrow_each_other() {
        let mut clips = Clips::default();
        assert!(!clips.exclude(1e9, 1e9));
        clips.push([0.0, 0.0, 100.0, 100.0]);
        clips.push([50.0, 0.0, 200.0, 100.0]);
        assert!(clips.exclude(20.0, 50.0) && clips.exclude(150.0, 50.0) && !clips.exclude(75.0, 50.0));
        clips.pop();
        assert!(!clips.exclude(20.0, 50.0));
        clips.pop();
        clips.pop();
        assert!(!clips.exclude(-20.0, 50.0));
    }
}
