//! Ruling lines: which of the lines drawn on a page are kept.

use super::engine::Rule;

/// Ruling lines kept per page; drawings with more are no tables.
pub(super) const MAX_RULES: usize = 20_000;
/// Thickest filled rectangle that is taken for a line, in points.
pub(super) const MAX_RULE_THICKNESS: f64 = 3.0;
/// Shortest line worth keeping, in points.
const MIN_RULE_LENGTH: f64 = 3.0;

/// The ruling line between two points, or the middle line of the thin rectangle with these corners.
pub(super) fn rule(a: (f64, f64), b: (f64, f64)) -> Option<Rule> {
    let (x0, x1) = (a.0.min(b.0), a.0.max(b.0));
    let (y0, y1) = (a.1.min(b.1), a.1.max(b.1));
    if !(x1 - x0).is_finite() || !(y1 - y0).is_finite() {
        return None;
    }
    let (length, thickness) = ((x1 - x0).max(y1 - y0), (x1 - x0).min(y1 - y0));
    if length < MIN_RULE_LENGTH || thickness > MAX_RULE_THICKNESS || thickness * 3.0 > length {
        return None;
    }
    let (mx, my) = ((x0 + x1) as f32 / 2.0, (y0 + y1) as f32 / 2.0);
    Some(if x1 - x0 > y1 - y0 {
        Rule {
            x0: x0 as f32,
            y0: my,
            x1: x1 as f32,
            y1: my,
        }
    } else {
        Rule {
            x0: mx,
            y0: y0 as f32,
            x1: mx,
            y1: y1 as f32,
        }
    })
}
