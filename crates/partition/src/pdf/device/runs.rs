//! Runs of glyphs: where they stand and how wide they are.

use hayro_interpret::hayro_syntax::object::{Array, Name};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::Affine;

use super::super::engine::Direction;
use super::super::interpret::text::Shown;

/// Glyph space has 1000 units to the em.
const UNITS_PER_EM: f64 = 1000.0;
/// Height of the top of a character of vertical text above its baseline, in font sizes.
const VERTICAL_ORIGIN: f64 = 0.88;
/// Smallest font size there is, in points.
const MIN_SIZE: f64 = 0.05;
/// Colour spaces of a page that are looked at.
const MAX_COLOUR_SPACES: usize = 256;

/// Where and how large a glyph stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) advance: f32,
    pub(super) size: f32,
    pub(super) unit: (f32, f32),
    pub(super) direction: Direction,
}

/// What the glyphs of a run have in common.
pub(super) struct Measure {
    size: f64,
    /// Length of a unit of glyph space on the page.
    along: f64,
    vertical: bool,
    unit: (f32, f32),
    direction: Direction,
}

impl Measure {
    /// `matrix` takes glyph space to page space; none when nothing can be seen of glyphs it places.
    pub(super) fn new(matrix: Affine, vertical: bool) -> Option<Self> {
        let [a, b, c, d, ..] = matrix.as_coeffs();
        let size = c.hypot(d) * UNITS_PER_EM;
        let along = a.hypot(b);
        if !(size.is_finite() && along.is_finite()) || size <= MIN_SIZE || along <= 0.0 {
            return None;
        }
        let (ux, uy) = if vertical { (0.0, 1.0) } else { (a / along, b / along) };
        Some(Self {
            size,
            along,
            vertical,
            unit: (ux as f32, uy as f32),
            direction: if vertical { Direction::South } else { direction(ux, uy) },
        })
    }

    /// The place of a glyph; `width` is its advance in glyph space.
    pub(super) fn place(&self, shown: &Shown, width: f32) -> Option<Place> {
        if !(shown.x.is_finite() && shown.y.is_finite()) {
            return None;
        }
        // A character of vertical text is placed by the left end of its baseline; its line goes on from top
        // to bottom.
        let (advance, rise) = if self.vertical {
            (self.size, VERTICAL_ORIGIN * self.size)
        } else {
            let advance = f64::from(width) * self.along;
            (advance.clamp(0.0, 4.0 * self.size), 0.0)
        };
        Some(Place {
            x: shown.x as f32,
            y: (shown.y - rise) as f32,
            advance: advance as f32,
            size: self.size as f32,
            unit: self.unit,
            direction: self.direction,
        })
    }
}

/// The quarter of the circle a unit vector points to, if it does within some 6 degrees.
pub(in super::super) fn direction(x: f64, y: f64) -> Direction {
    const NEARLY_ONE: f64 = 0.994;
    if x > NEARLY_ONE {
        Direction::East
    } else if x < -NEARLY_ONE {
        Direction::West
    } else if y > NEARLY_ONE {
        Direction::South
    } else if y < -NEARLY_ONE {
        Direction::North
    } else {
        Direction::Oblique
    }
}

/// Whether the colours of a page may be others than they seem, as its colour spaces and shadings are not
/// set up: in some spaces full is dark.
pub(super) fn has_inks(page: &Page<'_>) -> bool {
    if page.resources().shadings.keys().next().is_some() {
        return true;
    }
    let spaces = &page.resources().color_spaces;
    spaces.keys().take(MAX_COLOUR_SPACES).any(|key| {
        let name = spaces
            .get::<Array<'_>>(key.as_ref())
            .and_then(|space| space.iter::<Name<'_>>().next());
        matches!(
            name.as_deref(),
            Some(b"Separation" | b"DeviceN" | b"Indexed" | b"Lab" | b"Pattern")
        )
    })
}
