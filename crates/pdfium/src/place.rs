//! From the coordinates of a page's content to the page as it is displayed.

use pdfium_render::prelude::{PdfMatrix, PdfPage, PdfPageRenderRotation, PdfPoints, PdfRect};

/// Takes user space to page space: the visible box, turned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    left: f32,
    bottom: f32,
    right: f32,
    top: f32,
    /// Quarter turns, clockwise.
    turns: u8,
}

impl Placement {
    pub(crate) fn of(page: &PdfPage<'_>) -> Option<Self> {
        let bounds = page.boundaries().bounding().ok()?.bounds;
        let turns = match page.rotation().unwrap_or(PdfPageRenderRotation::None) {
            PdfPageRenderRotation::None => 0,
            PdfPageRenderRotation::Degrees90 => 1,
            PdfPageRenderRotation::Degrees180 => 2,
            PdfPageRenderRotation::Degrees270 => 3,
        };
        Some(Self {
            left: bounds.left().value,
            bottom: bounds.bottom().value,
            right: bounds.right().value,
            top: bounds.top().value,
            turns,
        })
    }

    pub(crate) fn size(&self) -> (f32, f32) {
        let (width, height) = (self.right - self.left, self.top - self.bottom);
        if self.turns.is_multiple_of(2) {
            (width, height)
        } else {
            (height, width)
        }
    }

    pub(crate) fn point(&self, (x, y): (f32, f32)) -> (f32, f32) {
        match self.turns {
            0 => (x - self.left, self.top - y),
            1 => (y - self.bottom, x - self.left),
            2 => (self.right - x, y - self.bottom),
            _ => (self.top - y, self.right - x),
        }
    }

    /// A direction, or the size of a step.
    pub(crate) fn vector(&self, (x, y): (f32, f32)) -> (f32, f32) {
        match self.turns {
            0 => (x, -y),
            1 => (y, x),
            2 => (-x, y),
            _ => (-y, -x),
        }
    }

    /// The box `[x0, y0, x1, y1]` around points.
    pub(crate) fn around(&self, points: impl IntoIterator<Item = (f32, f32)>) -> [f32; 4] {
        let start = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
        points.into_iter().fold(start, |[x0, y0, x1, y1], point| {
            let (x, y) = self.point(point);
            [x0.min(x), y0.min(y), x1.max(x), y1.max(y)]
        })
    }

    pub(crate) fn rect(&self, rect: &PdfRect) -> [f32; 4] {
        let (left, bottom) = (rect.left().value, rect.bottom().value);
        let (right, top) = (rect.right().value, rect.top().value);
        self.around([(left, bottom), (right, top)])
    }
}

/// A point through matrices, the innermost first.
pub(crate) fn through(matrices: &[PdfMatrix], (x, y): (f32, f32)) -> (f32, f32) {
    let (x, y) = matrices
        .iter()
        .fold((PdfPoints::new(x), PdfPoints::new(y)), |(x, y), matrix| {
            matrix.apply_to_points(x, y)
        });
    (x.value, y.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turned_page_is_upright_where_it_is_displayed() {
        let page = |turns| Placement {
            left: 10.0,
            bottom: 20.0,
            right: 110.0,
            top: 220.0,
            turns,
        };
        // The top left corner of the content, and a step to its right.
        let corner = (10.0, 220.0);
        let places = [(0.0, 0.0), (200.0, 0.0), (100.0, 200.0), (0.0, 100.0)];
        let steps = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
        for turns in 0..4u8 {
            let page = page(turns);
            assert_eq!(page.point(corner), places[usize::from(turns)], "{turns}");
            assert_eq!(page.vector((1.0, 0.0)), steps[usize::from(turns)], "{turns}");
            let (width, height) = page.size();
            assert_eq!(width > height, turns % 2 == 1);
        }
    }
}
