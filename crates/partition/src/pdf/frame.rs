//! Frames: the page seen from the direction of its text.

use super::engine::Direction;

/// Turns the page so that text of one direction runs from left to right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) direction: Direction,
    width: f32,
    height: f32,
}

impl Frame {
    pub(super) fn new(direction: Direction, width: f32, height: f32) -> Self {
        Self {
            direction,
            width,
            height,
        }
    }

    /// Page place to frame place.
    pub(super) fn map(&self, x: f32, y: f32) -> (f32, f32) {
        match self.direction {
            Direction::East | Direction::Oblique => (x, y),
            Direction::South => (y, self.width - x),
            Direction::West => (self.width - x, self.height - y),
            Direction::North => (self.height - y, x),
        }
    }

    /// The page box of a box of this frame.
    pub(super) fn unmap(&self, [x0, y0, x1, y1]: [f32; 4]) -> [f32; 4] {
        match self.direction {
            Direction::East | Direction::Oblique => [x0, y0, x1, y1],
            Direction::South => [self.width - y1, x0, self.width - y0, x1],
            Direction::West => [self.width - x1, self.height - y1, self.width - x0, self.height - y0],
            Direction::North => [y0, self.height - x1, y1, self.height - x0],
        }
    }

    /// The frame box of a box of the page.
    pub(super) fn map_box(&self, [x0, y0, x1, y1]: [f32; 4]) -> [f32; 4] {
        let ((ax, ay), (bx, by)) = (self.map(x0, y0), self.map(x1, y1));
        [ax.min(bx), ay.min(by), ax.max(bx), ay.max(by)]
    }

    /// Size of the page in this frame.
    pub(super) fn size(&self) -> (f32, f32) {
        match self.direction {
            Direction::South | Direction::North => (self.height, self.width),
            _ => (self.width, self.height),
        }
    }
}
