//! Curves and slanted lines: what drawings are made of, and rules, boxes and shades are not.

use hayro_interpret::kurbo::{self, BezPath, PathEl, Point};

use super::super::drawings::MAX_SHAPES;
use super::super::interpret::colour::Colour;
use super::super::visibility::Shade;
use super::GlyphDevice;

impl GlyphDevice<'_, '_> {
    /// Keeps the box of a curve or slanted line, as far as it is seen.
    pub(super) fn push_shape(&mut self, bbox: kurbo::Rect, colour: &Colour) {
        let page = kurbo::Rect::new(0.0, 0.0, f64::from(self.content.width), f64::from(self.content.height));
        let shown = bbox.intersect(page);
        let [x0, y0, x1, y1] = [shown.x0, shown.y0, shown.x1, shown.y1].map(|v| v as f32);
        let is_outside = bbox.x1 < 0.0 || bbox.y1 < 0.0 || bbox.x0 > page.x1 || bbox.y0 > page.y1;
        let is_white = colour.shade() == Shade::White;
        if self.content.shapes.len() < MAX_SHAPES
            && bbox.area().is_finite()
            && !is_outside
            && !is_white
            && !self.clips.exclude((x0 + x1) / 2.0, (y0 + y1) / 2.0)
        {
            self.content.shapes.push([x0, y0, x1, y1]);
        }
    }
}

/// Whether a path has curves or slanted lines, which rules, boxes and shades have not.
pub(super) fn is_shape(path: &BezPath) -> bool {
    let mut last = Point::ZERO;
    path.elements().iter().any(|element| match *element {
        PathEl::MoveTo(p) => {
            last = p;
            false
        }
        PathEl::LineTo(p) => {
            let (dx, dy) = ((p.x - last.x).abs(), (p.y - last.y).abs());
            last = p;
            dx.min(dy) > 0.02 * dx.max(dy) && dx.max(dy) > 0.0
        }
        PathEl::QuadTo(..) | PathEl::CurveTo(..) => true,
        PathEl::ClosePath => false,
    })
}
