//! Runs of glyphs: where they stand, how wide they are, whether they are seen.

use hayro_interpret::font::{Glyph as DrawnGlyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::object::{Array, Name};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{Affine, Point};
use hayro_interpret::{DrawMode, DrawProps, Paint};

use super::super::engine::Direction;
use super::super::script::{is_blank, is_right_to_left};
use super::super::visibility::{Doubt, Shade, shade};

/// Glyphs of a run whose widths are compared to find its font.
const MAX_WIDTHS: usize = 32;
/// Glyph space has 1000 units to the em.
const UNITS_PER_EM: f64 = 1000.0;
/// Height of the top of a character of vertical text above its baseline, in font sizes.
const VERTICAL_ORIGIN: f64 = 0.88;
/// Colour spaces of a page that are looked at.
const MAX_COLOUR_SPACES: usize = 256;

/// The characters of one glyph.
pub(super) enum Text<'t> {
    One(char),
    Many(&'t str),
}

impl Text<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(text) => text.chars().count(),
        }
    }

    pub(super) fn is_right_to_left(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Many(text) => text.chars().next().is_some_and(is_right_to_left),
        }
    }

    pub(super) fn for_each(&self, mut f: impl FnMut(char)) {
        match self {
            Self::One(ch) => f(*ch),
            Self::Many(text) => text.chars().for_each(f),
        }
    }
}

/// The characters of the codes of a run. A run has one font, and looking a code up in it takes longer than
/// anything else that is done with a glyph.
pub(super) struct Codes {
    run: u32,
    /// By code: the last run it was in, and its character there.
    known: Vec<(u32, char)>,
}

impl Default for Codes {
    fn default() -> Self {
        Self {
            run: 0,
            known: vec![(0, ' '); 256],
        }
    }
}

impl Codes {
    pub(super) fn begin_run(&mut self) {
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            *self = Self::default();
            self.run = 1;
        }
    }

    /// What a glyph of the run means.
    pub(super) fn unicode(&mut self, glyph: &DrawnGlyph<'_>) -> Option<BfString> {
        let slot = self.known.get_mut(glyph.char_code() as usize);
        if let Some((run, ch)) = &slot
            && *run == self.run
        {
            return Some(BfString::Char(*ch));
        }
        let unicode = glyph.as_unicode();
        if let (Some(slot), Some(BfString::Char(ch))) = (slot, &unicode) {
            *slot = (self.run, *ch);
        }
        unicode
    }
}

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

impl Place {
    /// `matrix` takes glyph space to page space; `width` is the advance in glyph space.
    /// `stretched` says that it also stretches the glyph, which is no part of its advance.
    pub(super) fn new(matrix: Affine, width: Option<f32>, vertical: bool, stretched: bool) -> Option<Self> {
        let [a, b, c, d, e, f] = matrix.as_coeffs();
        let size = c.hypot(d) * UNITS_PER_EM;
        let along = a.hypot(b);
        let scale = if stretched { size / UNITS_PER_EM } else { along };
        if !(size.is_finite() && along.is_finite() && e.is_finite() && f.is_finite()) || size <= 0.05 || along <= 0.0 {
            return None;
        }
        let (ux, uy) = if vertical { (0.0, 1.0) } else { (a / along, b / along) };
        let direction = if vertical { Direction::South } else { direction(ux, uy) };
        let advance = if vertical {
            size
        } else {
            (f64::from(width.unwrap_or(0.0)) * scale).clamp(0.0, 4.0 * size)
        };
        // A character of vertical text is placed by the left end of its baseline; its line goes on from top
        // to bottom.
        let rise = if vertical { VERTICAL_ORIGIN * size } else { 0.0 };
        Some(Self {
            x: e as f32,
            y: (f - rise) as f32,
            advance: advance as f32,
            size: size as f32,
            unit: (ux as f32, uy as f32),
            direction,
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

/// Whether a run is only seen when something is behind it.
pub(super) fn doubt(run: &GlyphRun<'_, '_>, props: &DrawProps<'_>, mode: &DrawMode) -> Option<Doubt> {
    if matches!(mode, DrawMode::Invisible) {
        return Some(Doubt::Invisible);
    }
    let Paint::Color(colour) = &props.paint else {
        return None;
    };
    let first: &DrawnGlyph<'_> = run.glyphs().first()?;
    match (shade(colour), first) {
        (Shade::Clear, _) => Some(Doubt::Invisible),
        // Others may bring colours of their own.
        (Shade::White, DrawnGlyph::Outline(_)) => Some(Doubt::White),
        _ => None,
    }
}

pub(super) fn is_space(unicode: &Option<BfString>) -> bool {
    matches!(unicode, Some(BfString::Char(ch)) if is_blank(*ch))
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

/// Whether glyphs are stretched to fit the widths of a font they stand in for. The matrix of such a
/// glyph does not tell how far the text moves on; where the next one stands does. None when no glyph of
/// the run is wider or narrower than its size.
pub(super) fn is_stretched(run: &GlyphRun<'_, '_>, transform: Affine) -> Option<bool> {
    let place = |glyph: &PositionedGlyph<'_>| {
        let [a, b, c, d, e, f] = (transform * glyph.transform()).as_coeffs();
        (a.hypot(b), c.hypot(d), Point::new(e, f))
    };
    let (mut with, mut without, mut count) = (0.0, 0.0, 0);
    for pair in run.glyphs().windows(2).take(MAX_WIDTHS) {
        let [first, next] = pair else { continue };
        let [a, b, c, d, ..] = first.transform().as_coeffs();
        let (wide, high) = (a * a + b * b, c * c + d * d);
        if (wide - high).abs() < 0.02 * high {
            continue;
        }
        let (along, across, origin) = place(first);
        let drawn: &DrawnGlyph<'_> = first;
        let DrawnGlyph::Outline(outline) = drawn else { continue };
        let Some(width) = outline.advance_width() else { continue };
        let step = origin.distance(place(next).2);
        with += (step - f64::from(width) * across).abs();
        without += (step - f64::from(width) * along).abs();
        count += 1;
    }
    (count > 0).then_some(with < without)
}

/// Codes and widths of the first glyphs of a run.
pub(super) fn widths(run: &GlyphRun<'_, '_>) -> Vec<(u32, f32)> {
    let glyphs = run.glyphs().iter().take(MAX_WIDTHS);
    glyphs
        .filter_map(|glyph| {
            let drawn: &DrawnGlyph<'_> = glyph;
            match drawn {
                DrawnGlyph::Outline(outline) => Some((outline.char_code(), outline.advance_width()?)),
                DrawnGlyph::Type3(_) => None,
            }
        })
        .collect()
}

pub(super) fn printable(code: u32) -> Option<char> {
    matches!(code, 0x20..=0x7E | 0xA0..=0xFF)
        .then(|| char::from_u32(code))
        .flatten()
}
