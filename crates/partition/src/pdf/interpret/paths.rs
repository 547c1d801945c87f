//! Paths and clips.

use hayro_interpret::kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape};

use super::Interpreter;
use super::colour::Colour;

/// Lengths below this are none, in user space and in points.
const NEARLY_ZERO: f64 = 1.0 / 256.0;
/// Added to a line without length, so that it has a direction.
const DOT: f64 = 0.0001;

/// How a path is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pdf) enum Painted {
    Fill,
    Stroke,
}

impl Interpreter<'_, '_, '_> {
    pub(super) fn move_to(&mut self, x: f64, y: f64) {
        let point = Point::new(x, y);
        (self.start, self.last) = (point, point);
        self.path.move_to(point);
    }

    pub(super) fn line_to(&mut self, x: f64, y: f64) {
        if self.path.elements().is_empty() {
            return;
        }
        let point = Point::new(x, y);
        let dot = if self.last == point { DOT } else { 0.0 };
        self.last = point;
        self.path.line_to((x + dot, y));
    }

    /// Adds a curve; its first control point is the current point when there is none.
    pub(super) fn curve_to(&mut self, first: Option<Point>, second: Point, end: Point) {
        if self.path.elements().is_empty() {
            return;
        }
        let first = first.unwrap_or(self.last);
        self.last = end;
        self.path.curve_to(first, second, end);
    }

    pub(super) fn add_rect(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.path
            .extend(Rect::new(x, y, x + width, y + height).path_elements(0.1));
        let point = Point::new(x, y);
        (self.start, self.last) = (point, point);
    }

    pub(super) fn close_path(&mut self) {
        match self.path.elements().last() {
            None | Some(PathEl::ClosePath) => {}
            Some(_) => {
                self.path.close_path();
                self.last = self.start;
            }
        }
    }

    pub(super) fn fill(&mut self) {
        if !self.layers.is_shown() {
            return;
        }
        let state = self.states.now();
        let (ctm, colour) = (state.ctm, state.fill);
        let bbox = bounds(&self.path);
        let [a, b, c, d, ..] = ctm.as_coeffs();
        let is_none = |length: f64| length.abs() as f32 <= NEARLY_ZERO as f32;
        if is_none(bbox.width() * a.hypot(b)) || is_none(bbox.height() * c.hypot(d)) {
            // What has no area is drawn as a thin line.
            let mut line = BezPath::new();
            line.move_to((bbox.x0, bbox.y0));
            line.line_to((bbox.x1, bbox.y1));
            self.device.path(&line, ctm, &colour, Painted::Stroke);
            return;
        }
        self.paint(ctm, &colour, Painted::Fill);
    }

    pub(super) fn stroke(&mut self) {
        if self.layers.is_shown() {
            let state = self.states.now();
            let (ctm, colour) = (state.ctm, state.stroke);
            self.paint(ctm, &colour, Painted::Stroke);
        }
    }

    fn paint(&mut self, ctm: Affine, colour: &Colour, painted: Painted) {
        match as_rect(&self.path) {
            Some(rect) => self.device.rect(&rect, ctm, colour, painted),
            None => self.device.path(&self.path, ctm, colour, painted),
        }
    }

    /// Ends a path, which may clip what comes after it.
    pub(super) fn end_path(&mut self) {
        if std::mem::take(&mut self.clips_next) && !self.path.elements().is_empty() {
            self.path.apply_affine(self.states.now().ctm);
            let path = std::mem::take(&mut self.path);
            self.clip(&path);
            self.path = path;
        }
        self.path.truncate(0);
    }

    /// Clips what comes after to a path on the page.
    pub(super) fn clip(&mut self, path: &BezPath) {
        let area = self.areas.last().copied().unwrap_or(Rect::new(0.0, 0.0, 1.0, 1.0));
        let (shown, inner) = match as_rect(path) {
            Some(rect) => {
                let covers = area.x0 >= rect.x0 - NEARLY_ZERO
                    && area.y0 >= rect.y0 - NEARLY_ZERO
                    && area.x1 <= rect.x1 + NEARLY_ZERO
                    && area.y1 <= rect.y1 + NEARLY_ZERO;
                if covers {
                    self.clips.push(false);
                    return;
                }
                (rect, rect)
            }
            None => (path.control_box(), path.bounding_box()),
        };
        self.device.push_clip(&shown);
        self.areas.push(area.intersect(inner));
        self.clips.push(true);
    }

    /// Takes clips back until so many are left.
    pub(super) fn unclip(&mut self, left: usize) {
        while self.clips.len() > left {
            if self.clips.pop() == Some(true) {
                self.device.pop_clip();
                self.areas.pop();
            }
        }
    }
}

/// The box around all points of a path, control points among them.
fn bounds(path: &BezPath) -> Rect {
    let empty = Rect::new(f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut bbox = empty;
    let mut add = |points: &[Point]| {
        for point in points {
            bbox.x0 = bbox.x0.min(point.x);
            bbox.y0 = bbox.y0.min(point.y);
            bbox.x1 = bbox.x1.max(point.x);
            bbox.y1 = bbox.y1.max(point.y);
        }
    };
    for element in path.elements() {
        match *element {
            PathEl::MoveTo(p) | PathEl::LineTo(p) => add(&[p]),
            PathEl::QuadTo(p, q) => add(&[p, q]),
            PathEl::CurveTo(p, q, r) => add(&[p, q, r]),
            PathEl::ClosePath => {}
        }
    }
    if bbox.x0 > bbox.x1 { Rect::ZERO } else { bbox }
}

/// The rectangle a path is, with sides along the axes.
fn as_rect(path: &BezPath) -> Option<Rect> {
    let [
        PathEl::MoveTo(a),
        PathEl::LineTo(b),
        PathEl::LineTo(c),
        PathEl::LineTo(d),
        end,
    ] = path.elements()
    else {
        return None;
    };
    let same = |p: f64, q: f64| (p - q).abs() <= NEARLY_ZERO;
    let end = match end {
        PathEl::ClosePath => a,
        PathEl::LineTo(end) if same(end.x, a.x) && same(end.y, a.y) => end,
        _ => return None,
    };
    let mut upright = None;
    for (from, to) in [(a, b), (b, c), (c, d), (d, end)] {
        let (same_x, same_y) = (same(from.x, to.x), same(from.y, to.y));
        if same_x == same_y || upright == Some(same_x) {
            return None;
        }
        upright = Some(same_x);
    }
    Some(bounds(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_are_told_from_other_paths() {
        let path = |points: &[(f64, f64)], close: bool| {
            let mut path = BezPath::new();
            for (index, point) in points.iter().enumerate() {
                match index {
                    0 => path.move_to(*point),
                    _ => path.line_to(*point),
                }
            }
            if close {
                path.close_path();
            }
            path
        };
        let corners = [(10.0, 20.0), (30.0, 20.0), (30.0, 50.0), (10.0, 50.0)];
        let rect = Some(Rect::new(10.0, 20.0, 30.0, 50.0));
        assert_eq!(as_rect(&path(&corners, true)), rect);
        let back = [corners.as_slice(), &[(10.001, 20.0)]].concat();
        assert_eq!(as_rect(&path(&back, false)), rect);
        assert_eq!(as_rect(&path(&corners, false)), None);
        let slanted = [(10.0, 20.0), (30.0, 21.0), (30.0, 50.0), (10.0, 50.0)];
        assert_eq!(as_rect(&path(&slanted, true)), None);
        let back_and_forth = [(10.0, 20.0), (30.0, 20.0), (20.0, 20.0), (10.0, 50.0)];
        assert_eq!(as_rect(&path(&back_and_forth, true)), None);
        assert_eq!(bounds(&BezPath::new()), Rect::ZERO);
    }
}
