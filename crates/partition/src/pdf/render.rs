//! Pictures of PDF pages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use docmill_ocr::Gray;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use hayro_interpret::InterpreterSettings;
use hayro_syntax::Pdf;
use image::RgbImage;

use super::opened::OpenPdf;

/// Largest picture of a page, in pixels; the resolution is lowered to stay below.
const MAX_PIXELS: f32 = 24_000_000.0;
/// Longest side, in pixels.
const MAX_SIDE: f32 = 16_000.0;

/// The resolution, in dots per inch, at which a page of a size in points can be drawn, at most `dpi`.
pub(super) fn possible_dpi((width, height): (f32, f32), dpi: f32) -> f32 {
    let (width, height) = (width.max(1.0) / 72.0, height.max(1.0) / 72.0);
    let by_area = (MAX_PIXELS / (width * height)).sqrt();
    dpi.min(by_area).min(MAX_SIDE / width.max(height)).max(1.0)
}

/// A drawn page.
pub(super) struct Pixels {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Red, green, blue, alpha.
    pub(super) rgba: Vec<[u8; 4]>,
}

/// Draws a page on white, `scale` pixels to the point. None when it cannot be drawn.
pub(super) fn pixels(pdf: &Pdf, index: usize, scale: f32) -> Option<Pixels> {
    let page = pdf.pages().get(index)?;
    let drawn = catch_unwind(AssertUnwindSafe(|| {
        let settings = PixmapSettings {
            x_scale: scale,
            y_scale: scale,
            bg_color: WHITE,
        };
        let cache = RenderCache::new();
        let interpreter = InterpreterSettings::default();
        render(page, &cache, &interpreter, &RenderSettings::default(), &settings)
    }));
    let pixmap = drawn.ok()?;
    Some(Pixels {
        width: usize::from(pixmap.width()),
        height: usize::from(pixmap.height()),
        rgba: pixmap.data().iter().map(|p| [p.r, p.g, p.b, p.a]).collect(),
    })
}

/// Draws a page at a resolution, or at the highest possible.
fn at_dpi(pdf: &OpenPdf<'_>, index: usize, dpi: f32) -> Option<Pixels> {
    pdf.draw(index, possible_dpi(pdf.page_size(index)?, dpi) / 72.0)
}

/// Resolution up to which small pages are enlarged for models, in dots per inch.
const MOST_DPI: f32 = 300.0;

/// A page in colour, its longer side of about so many pixels.
pub(super) fn long_side(pdf: &OpenPdf<'_>, index: usize, long_side: u32) -> Option<RgbImage> {
    let (width, height) = pdf.page_size(index)?;
    let dpi = long_side as f32 * 72.0 / width.max(height).max(1.0);
    colour(pdf, index, dpi.min(MOST_DPI))
}

/// A page in grey values.
pub(super) fn gray(pdf: &OpenPdf<'_>, index: usize, dpi: f32) -> Option<Gray> {
    let drawn = at_dpi(pdf, index, dpi)?;
    let luma = |[r, g, b, _]: [u8; 4]| ((u32::from(r) * 77 + u32::from(g) * 150 + u32::from(b) * 29) >> 8) as u8;
    Gray::new(drawn.width, drawn.height, drawn.rgba.into_iter().map(luma).collect()).ok()
}

/// A page in colour.
pub(super) fn colour(pdf: &OpenPdf<'_>, index: usize, dpi: f32) -> Option<RgbImage> {
    let drawn = at_dpi(pdf, index, dpi)?;
    let bytes = drawn.rgba.into_iter().flat_map(|[r, g, b, _]| [r, g, b]).collect();
    RgbImage::from_raw(
        u32::try_from(drawn.width).ok()?,
        u32::try_from(drawn.height).ok()?,
        bytes,
    )
}
