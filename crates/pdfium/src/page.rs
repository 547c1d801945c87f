//! What stands on a page.

use std::collections::HashMap;

use pdfium_render::prelude::{
    PdfAction, PdfFormField, PdfMatrix, PdfPage, PdfPageAnnotationCommon, PdfPageImageObject, PdfPageObject,
    PdfPageObjectsCommon, PdfPagePathObject, PdfPageTextChar, PdfPageTextRenderMode, PdfPathFillMode,
    PdfPathSegmentType, PdfPathSegments,
};

use crate::place::{Placement, through};

/// Characters read per page.
const MAX_GLYPHS: usize = 2_000_000;
/// Page objects looked at, those within forms included, and the nesting of forms that is followed.
const MAX_OBJECTS: usize = 500_000;
const MAX_FORM_DEPTH: usize = 8;
/// Links, form fields and other annotations looked at.
const MAX_ANNOTATIONS: usize = 10_000;
/// What the library gives for a hyphen at the end of a line.
const LINE_HYPHEN: u32 = 2;
/// Where sides are this close to upright, in points, a path is a rectangle.
const SQUARE: f32 = 0.05;

/// What stands on a page. Lengths are points in page space.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Width as displayed.
    pub width: f32,
    /// Height as displayed.
    pub height: f32,
    /// Characters in the order they are drawn.
    pub glyphs: Vec<Glyph>,
    /// Fonts of the glyphs.
    pub fonts: Vec<Font>,
    /// Straight pieces of the outlines that are drawn.
    pub lines: Vec<Line>,
    /// Filled rectangles, `[x0, y0, x1, y1]`.
    pub fills: Vec<[f32; 4]>,
    /// Boxes of paths with curves or slanted lines, `[x0, y0, x1, y1]`.
    pub shapes: Vec<[f32; 4]>,
    /// Number of points and curves of all paths.
    pub path_points: usize,
    /// Raster images.
    pub images: Vec<Image>,
    /// Links to somewhere outside the file.
    pub links: Vec<Link>,
    /// Values of text and choice fields of forms with their boxes, `[x0, y0, x1, y1]`.
    pub fields: Vec<(String, [f32; 4])>,
}

/// A character.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glyph {
    /// Its meaning; none when nothing tells it.
    pub ch: Option<char>,
    /// Origin on the baseline.
    pub x: f32,
    /// Origin on the baseline.
    pub y: f32,
    /// Length along the direction of the text.
    pub advance: f32,
    /// Font size as displayed.
    pub size: f32,
    /// Direction of the text on the displayed page; its length is 1.
    pub direction: (f32, f32),
    /// Index into [`Page::fonts`].
    pub font: usize,
    /// Drawn invisibly, as text recognition adds it to a scan.
    pub invisible: bool,
}

/// A font.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Font {
    /// PostScript name; empty when unknown.
    pub name: String,
    /// Weight of 600 and above.
    pub bold: bool,
    /// Italic or oblique.
    pub italic: bool,
    /// All characters equally wide.
    pub monospace: bool,
}

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// One end.
    pub from: (f32, f32),
    /// The other.
    pub to: (f32, f32),
}

/// A raster image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Image {
    /// `[x0, y0, x1, y1]`.
    pub bbox: [f32; 4],
    /// Its width in pixels; 0 when unknown.
    pub pixels: u32,
}

/// A link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `[x0, y0, x1, y1]`.
    pub bbox: [f32; 4],
    /// Its URI.
    pub url: String,
}

impl Page {
    pub(crate) fn read(page: &PdfPage<'_>) -> Option<Self> {
        let placement = Placement::of(page)?;
        let (width, height) = placement.size();
        let mut found = Self {
            width,
            height,
            ..Self::default()
        };
        found.read_text(page, &placement)?;
        let mut left = MAX_OBJECTS;
        for object in page.objects().iter() {
            found.read_object(&object, &mut Vec::new(), &placement, &mut left);
        }
        found.read_annotations(page, &placement);
        Some(found)
    }

    fn read_text(&mut self, page: &PdfPage<'_>, placement: &Placement) -> Option<()> {
        let text = page.text().ok()?;
        let mut fonts: HashMap<Font, usize> = HashMap::new();
        for ch in text.chars().iter().take(MAX_GLYPHS) {
            // Spaces and ends of lines that the library finds are found again by layout.
            if ch.is_generated().unwrap_or(false) {
                continue;
            }
            let Some(mut glyph) = glyph(&ch, placement) else {
                continue;
            };
            let font = Font {
                name: ch.font_name(),
                bold: ch.font_is_bold_reenforced() || ch.font_weight().is_some_and(|weight| weight_of(weight) >= 600),
                italic: ch.font_is_italic(),
                monospace: ch.font_is_fixed_pitch(),
            };
            let next = fonts.len();
            glyph.font = *fonts.entry(font).or_insert(next);
            self.glyphs.push(glyph);
        }
        let mut fonts: Vec<(Font, usize)> = fonts.into_iter().collect();
        fonts.sort_by_key(|(_, index)| *index);
        self.fonts = fonts.into_iter().map(|(font, _)| font).collect();
        Some(())
    }

    /// `matrices` are those of the forms the object is in, the innermost last.
    fn read_object(
        &mut self,
        object: &PdfPageObject<'_>,
        matrices: &mut Vec<PdfMatrix>,
        placement: &Placement,
        left: &mut usize,
    ) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        if let Some(path) = object.as_path_object() {
            let own = path.matrix().ok();
            self.read_path(path, &inside_out(own, matrices), placement);
        } else if let Some(image) = object.as_image_object() {
            let own = image.matrix().ok();
            self.read_image(image, &inside_out(own, matrices), placement);
        } else if let Some(form) = object.as_x_object_form_object()
            && matrices.len() < MAX_FORM_DEPTH
            && let Ok(matrix) = form.matrix()
        {
            matrices.push(matrix);
            for index in form.as_range() {
                if let Ok(inner) = form.get(index) {
                    self.read_object(&inner, matrices, placement, left);
                }
            }
            matrices.pop();
        }
    }

    fn read_path(&mut self, path: &PdfPagePathObject<'_>, matrices: &[PdfMatrix], placement: &Placement) {
        let is_filled = path.fill_mode().is_ok_and(|mode| mode != PdfPathFillMode::None);
        let is_stroked = path.is_stroked().unwrap_or(false);
        if !is_filled && !is_stroked {
            return;
        }
        let place = |(x, y)| placement.point(through(matrices, (x, y)));
        let mut outline = Outline::default();
        let segments = path.segments();
        for index in segments.as_range().take(MAX_OBJECTS) {
            let Ok(segment) = segments.get(index) else { break };
            let (x, y) = segment.point();
            outline.add(segment.segment_type(), place((x.value, y.value)), segment.is_close());
        }
        self.path_points += outline.points;
        if let Some(bbox) = outline.bbox().filter(|_| outline.is_slanted) {
            self.shapes.push(bbox);
        }
        if is_filled && let Some(bbox) = outline.rectangle() {
            self.fills.push(bbox);
        }
        if is_stroked {
            self.lines.append(&mut outline.lines);
        }
    }

    fn read_image(&mut self, image: &PdfPageImageObject<'_>, matrices: &[PdfMatrix], placement: &Placement) {
        // An image fills the unit square.
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
        let bbox = placement.around(corners.map(|corner| through(matrices, corner)));
        if bbox.iter().all(|v| v.is_finite()) {
            let pixels = image.width().ok().and_then(|width| u32::try_from(width).ok());
            self.images.push(Image {
                bbox,
                pixels: pixels.unwrap_or(0),
            });
        }
    }

    fn read_annotations(&mut self, page: &PdfPage<'_>, placement: &Placement) {
        for link in page.links().iter().take(MAX_ANNOTATIONS) {
            if let Some(PdfAction::Uri(action)) = link.action()
                && let (Ok(url), Ok(rect)) = (action.uri(), link.rect())
            {
                self.links.push(Link {
                    bbox: placement.rect(&rect),
                    url,
                });
            }
        }
        for annotation in page.annotations().iter().take(MAX_ANNOTATIONS) {
            let value = match annotation.as_form_field() {
                Some(PdfFormField::Text(field)) if !field.is_password() => field.value(),
                Some(PdfFormField::ComboBox(field)) => field.value(),
                Some(PdfFormField::ListBox(field)) => field.value(),
                _ => None,
            };
            if let Some(value) = value.filter(|value| !value.trim().is_empty())
                && let Ok(rect) = annotation.bounds()
            {
                self.fields.push((value, placement.rect(&rect)));
            }
        }
    }
}

fn inside_out(own: Option<PdfMatrix>, forms: &[PdfMatrix]) -> Vec<PdfMatrix> {
    own.into_iter().chain(forms.iter().rev().copied()).collect()
}

fn glyph(ch: &PdfPageTextChar<'_>, placement: &Placement) -> Option<Glyph> {
    let (x, y) = ch.origin().ok()?;
    let matrix = ch.matrix().ok()?;
    let length = matrix.a().hypot(matrix.b());
    let size = ch.unscaled_font_size().value * matrix.c().hypot(matrix.d());
    let (x, y) = placement.point((x.value, y.value));
    if !(length.is_finite() && length > 0.0 && size.is_finite() && size > 0.05 && x.is_finite() && y.is_finite()) {
        return None;
    }
    let direction = placement.vector((matrix.a() / length, matrix.b() / length));
    let [x0, y0, x1, y1] = placement.rect(&ch.loose_bounds().ok()?);
    // Of a slanted character the box tells little.
    let advance = match (direction.0.abs() > 0.99, direction.1.abs() > 0.99) {
        (true, _) => x1 - x0,
        (_, true) => y1 - y0,
        _ => 0.5 * size,
    };
    let ch_known = match ch.unicode_value() {
        LINE_HYPHEN => Some('-'),
        0 | 0xFFFE | 0xFFFF | 0xFFFD => None,
        value => char::from_u32(value),
    };
    Some(Glyph {
        ch: ch_known,
        x,
        y,
        advance: advance.max(0.0),
        size,
        direction,
        font: 0,
        invisible: ch
            .render_mode()
            .is_ok_and(|mode| mode == PdfPageTextRenderMode::Invisible),
    })
}

fn weight_of(weight: pdfium_render::prelude::PdfFontWeight) -> u32 {
    use pdfium_render::prelude::PdfFontWeight as W;
    match weight {
        W::Weight100 => 100,
        W::Weight200 => 200,
        W::Weight300 => 300,
        W::Weight400Normal => 400,
        W::Weight500 => 500,
        W::Weight600 => 600,
        W::Weight700Bold => 700,
        W::Weight800 => 800,
        W::Weight900 => 900,
        W::Custom(weight) => weight,
    }
}

/// A path as it is followed.
#[derive(Default)]
struct Outline {
    start: (f32, f32),
    last: (f32, f32),
    corners: Vec<(f32, f32)>,
    lines: Vec<Line>,
    points: usize,
    parts: usize,
    /// It has curves, or lines that are neither level nor upright.
    is_slanted: bool,
}

impl Outline {
    fn add(&mut self, kind: PdfPathSegmentType, point: (f32, f32), closes: bool) {
        self.points += 1;
        self.corners.push(point);
        match kind {
            PdfPathSegmentType::MoveTo => {
                self.parts += 1;
                self.start = point;
            }
            PdfPathSegmentType::LineTo => self.line_to(point),
            PdfPathSegmentType::BezierTo => self.is_slanted = true,
            PdfPathSegmentType::Unknown => {}
        }
        self.last = point;
        if closes {
            self.line_to(self.start);
            self.last = self.start;
        }
    }

    fn line_to(&mut self, to: (f32, f32)) {
        let (dx, dy) = ((to.0 - self.last.0).abs(), (to.1 - self.last.1).abs());
        if dx.max(dy) > 0.0 {
            self.is_slanted |= dx.min(dy) > 0.02 * dx.max(dy);
            self.lines.push(Line { from: self.last, to });
        }
    }

    fn bbox(&self) -> Option<[f32; 4]> {
        let start = [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
        let bbox = self.corners.iter().fold(start, |[x0, y0, x1, y1], (x, y)| {
            [x0.min(*x), y0.min(*y), x1.max(*x), y1.max(*y)]
        });
        bbox.iter().all(|v| v.is_finite()).then_some(bbox)
    }

    /// The box of a path that is one upright rectangle.
    fn rectangle(&self) -> Option<[f32; 4]> {
        if self.is_slanted || self.parts != 1 || !(4..=6).contains(&self.points) {
            return None;
        }
        let bbox @ [x0, y0, x1, y1] = self.bbox()?;
        let near = |a: f32, b: f32| (a - b).abs() < SQUARE;
        let at_corner = |(x, y): &(f32, f32)| (near(*x, x0) || near(*x, x1)) && (near(*y, y0) || near(*y, y1));
        self.corners.iter().all(at_corner).then_some(bbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(points: &[(f32, f32)]) -> Outline {
        let mut outline = Outline::default();
        for (index, point) in points.iter().enumerate() {
            let kind = match index {
                0 => PdfPathSegmentType::MoveTo,
                _ => PdfPathSegmentType::LineTo,
            };
            outline.add(kind, *point, index + 1 == points.len());
        }
        outline
    }

    #[test]
    fn a_rectangle_is_told_from_other_paths() {
        let square = outline(&[(10.0, 10.0), (50.0, 10.0), (50.0, 30.0), (10.0, 30.0)]);
        assert_eq!(square.rectangle(), Some([10.0, 10.0, 50.0, 30.0]));
        assert_eq!(square.lines.len(), 4);
        let triangle = outline(&[(0.0, 0.0), (50.0, 10.0), (20.0, 40.0)]);
        assert!(triangle.is_slanted && triangle.rectangle().is_none());
        let step = outline(&[
            (0.0, 0.0),
            (50.0, 0.0),
            (50.0, 20.0),
            (20.0, 20.0),
            (20.0, 40.0),
            (0.0, 40.0),
        ]);
        assert_eq!(step.rectangle(), None);
    }
}
