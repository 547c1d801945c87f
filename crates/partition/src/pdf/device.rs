//! The drawing target that keeps characters and ruling lines and paints nothing.

pub(super) mod marks;
mod runs;
mod shapes;

use std::collections::HashMap;
use std::rc::Rc;

use hayro_interpret::hayro_syntax::object::Dict;
use hayro_interpret::hayro_syntax::object::dict::keys::{ACTUAL_TEXT, ALT, MCID};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{self, Affine, BezPath, PathEl, Point};

use super::engine::{FontId, Glyph, PageContent, Tag, TagKind, UNKNOWN};
use super::fonts::{FontTable, Text};
use super::interpret::colour::Colour;
use super::interpret::paths::Painted as Drawn;
use super::interpret::text::{Mode, Run, Shown};
use super::rulings::{MAX_RULE_THICKNESS, MAX_RULES, rule};
use super::script::{is_blank, is_right_to_left};
use super::visibility::{Clips, Doubt, Hidden, Painted, Shade, middle};
use marks::{Mark, Words, replaced, words_of};
pub(super) use runs::direction;
use runs::{Measure, Place, has_inks};
use shapes::is_shape;

/// Characters kept per page.
const MAX_GLYPHS: usize = 2_000_000;
/// Places among the tags of a page: text without one, text marked as an artifact, marked content 0.
const NO_TAG: u32 = 0;
const ARTIFACT: u32 = 1;
const FIRST_TAG: u32 = 2;
/// Share of the page that a shape covers whose being white matters.
const BACKGROUND: f64 = 0.05;
/// Characters drawn this far outside the page, in points, are not seen.
const PAGE_MARGIN: f32 = 2.0;

pub(super) struct GlyphDevice<'f, 'a> {
    page: &'a Page<'a>,
    pub(super) fonts: &'f mut FontTable<'a>,
    content: PageContent,
    /// Length, font, matrix and first glyph of the last run.
    last_run: Option<(usize, usize, Affine, Shown)>,
    /// Marked content that is open.
    marks: Vec<Mark>,
    /// What the structure says of it.
    words: Words,
    /// What of the page is painted.
    painted: Painted,
    clips: Clips,
    /// Characters that are only seen when something is behind them: first and end.
    doubts: Vec<(usize, usize, Doubt)>,
    /// Characters outside the clip: first and end.
    clipped: Vec<(usize, usize)>,
    /// Characters outside the page.
    outside: usize,
}

impl<'f, 'a> GlyphDevice<'f, 'a> {
    pub(super) fn new(
        page: &'a Page<'a>,
        fonts: &'f mut FontTable<'a>,
        (known, words): (Vec<Tag>, Words),
        (width, height): (f32, f32),
    ) -> Self {
        Self {
            marks: Vec::new(),
            words,
            page,
            fonts,
            content: PageContent {
                width,
                height,
                tags: page_tags(known),
                ..PageContent::default()
            },
            last_run: None,
            painted: Painted::new(width, height),
            clips: Clips::default(),
            doubts: Vec::new(),
            clipped: Vec::new(),
            outside: 0,
        }
    }

    /// What was drawn, without the text that nobody sees; but a page that has no other keeps it.
    pub(super) fn into_content(mut self) -> PageContent {
        let glyphs = &self.content.glyphs;
        let mut hidden = Hidden {
            outside: self.outside,
            ..Hidden::default()
        };
        if self.doubts.is_empty() && self.clipped.is_empty() {
            self.content.unseen = hidden;
            return self.content;
        }
        let mut seen = vec![true; glyphs.len()];
        let trusts_colours = !has_inks(self.page);
        for &(first, end, doubt) in &self.doubts {
            for (seen, glyph) in seen.iter_mut().zip(glyphs).take(end).skip(first) {
                let (x, y) = middle(glyph.x, glyph.y, glyph.advance, glyph.size, glyph.direction);
                if self.painted.covers(x, y) || (doubt == Doubt::White && !trusts_colours) {
                    continue;
                }
                *seen = false;
                let count = usize::from(!is_blank(glyph.ch));
                match doubt {
                    Doubt::White => hidden.white += count,
                    Doubt::Invisible => hidden.invisible += count,
                }
            }
        }
        for &(first, end) in &self.clipped {
            for (seen, glyph) in seen.iter_mut().zip(glyphs).take(end).skip(first) {
                hidden.clipped += usize::from(*seen && !is_blank(glyph.ch));
                *seen = false;
            }
        }
        let mut others = glyphs.iter().zip(&seen).filter(|(glyph, _)| !is_blank(glyph.ch));
        hidden.kept = !others.any(|(_, seen)| *seen);
        if !hidden.kept {
            let mut seen = seen.into_iter();
            self.content.glyphs.retain(|_| seen.next().unwrap_or(true));
        }
        self.content.unseen = hidden;
        self.content
    }

    /// Marks the characters from `first` on as clipped.
    fn clip_glyphs(&mut self, first: usize) {
        let end = self.content.glyphs.len();
        match self.clipped.last_mut() {
            Some(last) if last.1 == first => last.1 = end,
            _ => self.clipped.push((first, end)),
        }
    }

    /// Notes what a path or rectangle covers unless it is white.
    fn paint(&mut self, bbox: kurbo::Rect, colour: &Colour) {
        let page = f64::from(self.content.width) * f64::from(self.content.height);
        let blank = bbox.area() > BACKGROUND * page && colour.shade() == Shade::White;
        if !blank {
            self.painted.add([bbox.x0, bbox.y0, bbox.x1, bbox.y1].map(|v| v as f32));
        }
    }

    /// Text that is filled and outlined arrives twice in a row.
    fn repeats_last_run(&mut self, run: &Run<'_>) -> bool {
        let first = run.glyphs.first();
        let key = first.map(|first| (run.glyphs.len(), run.font, run.matrix, *first));
        let repeated = key.is_some() && key == self.last_run;
        self.last_run = key;
        repeated
    }

    fn push_glyph(&mut self, text: &Text, place: &Place, font: FontId) {
        let mut glyph = Glyph {
            ch: ' ',
            x: place.x,
            y: place.y,
            advance: place.advance,
            size: place.size,
            font,
            direction: place.direction,
            tag: self.marks.last().map_or(NO_TAG, |mark| mark.tag),
        };
        let text = match text {
            Text::One(ch) if self.content.glyphs.len() < MAX_GLYPHS => {
                self.content.glyphs.push(Glyph { ch: *ch, ..glyph });
                return;
            }
            Text::One(_) => return,
            Text::Many(text) => text,
        };
        let count = text.chars().count();
        if count == 0 || self.content.glyphs.len() + count > MAX_GLYPHS {
            return;
        }
        glyph.advance = place.advance / count as f32;
        // Several characters of a right-to-left script stand from right to left within the glyph.
        let reversed = count > 1 && text.starts_with(is_right_to_left);
        let (start, step) = if reversed {
            (place.advance - glyph.advance, -glyph.advance)
        } else {
            (0.0, glyph.advance)
        };
        glyph.x += place.unit.0 * start;
        glyph.y += place.unit.1 * start;
        for ch in text.chars() {
            glyph.ch = ch;
            self.content.glyphs.push(glyph);
            glyph.x += place.unit.0 * step;
            glyph.y += place.unit.1 * step;
        }
    }

    fn push_rule(&mut self, a: Point, b: Point) {
        if self.content.rules.len() < MAX_RULES {
            self.content.rules.extend(rule((a.x, a.y), (b.x, b.y)));
        }
    }

    fn stroke_rules(&mut self, path: &BezPath, transform: Affine) {
        let (mut start, mut last) = (Point::ZERO, Point::ZERO);
        for element in path.elements() {
            if self.content.rules.len() >= MAX_RULES {
                return;
            }
            match *element {
                PathEl::MoveTo(p) => {
                    start = transform * p;
                    last = start;
                }
                PathEl::LineTo(p) => {
                    let next = transform * p;
                    self.push_rule(last, next);
                    last = next;
                }
                PathEl::QuadTo(_, p) | PathEl::CurveTo(_, _, p) => last = transform * p,
                PathEl::ClosePath => {
                    self.push_rule(last, start);
                    last = start;
                }
            }
        }
    }
}

impl GlyphDevice<'_, '_> {
    /// Keeps the characters of a run.
    pub(super) fn text(&mut self, run: &Run<'_>) {
        if self.repeats_last_run(run) && run.mode == Mode::Stroke {
            // White letters with an outline are seen.
            let end = self.content.glyphs.len();
            if self.doubt(run).is_none() {
                self.doubts.pop_if(|last| last.1 == end && last.2 == Doubt::White);
            }
            return;
        }
        if run.mode == Mode::Invisible {
            self.content.hidden += run.glyphs.len();
        }
        let Some(measure) = Measure::new(run.matrix, self.fonts.is_vertical(run.font)) else {
            return;
        };
        let mut font = None;
        let first = self.content.glyphs.len();
        for shown in run.glyphs {
            let Some(code) = self.fonts.code(run.font, shown.code) else {
                continue;
            };
            let Some(place) = measure.place(shown, code.across) else {
                continue;
            };
            let text = code.text.clone();
            if self.is_outside(&place) {
                self.outside += usize::from(!matches!(text, Text::One(ch) if is_blank(ch)));
                continue;
            }
            let font = match font {
                Some(font) => font,
                None => *font.insert(self.fonts.id(run.font, shown.code)),
            };
            let at = self.content.glyphs.len();
            self.content.unmapped += usize::from(text == Text::One(UNKNOWN));
            self.push_glyph(&text, &place, font);
            let (x, y) = middle(place.x, place.y, place.advance, place.size, place.direction);
            if self.clips.exclude(x, y) {
                self.clip_glyphs(at);
            }
        }
        if let Some(doubt) = self.doubt(run) {
            self.doubts.push((first, self.content.glyphs.len(), doubt));
        }
    }

    /// Whether a character stands outside the page.
    fn is_outside(&self, place: &Place) -> bool {
        place.x < -PAGE_MARGIN - place.size
            || place.y < -PAGE_MARGIN
            || place.x > self.content.width + PAGE_MARGIN
            || place.y > self.content.height + PAGE_MARGIN + place.size
    }

    /// Whether a run is only seen when something is behind it.
    fn doubt(&self, run: &Run<'_>) -> Option<Doubt> {
        match (run.mode, run.shade) {
            (Mode::Invisible, _) | (_, Shade::Clear) => Some(Doubt::Invisible),
            // Others may bring colours of their own.
            (_, Shade::White) if self.fonts.is_outlined(run.font) => Some(Doubt::White),
            _ => None,
        }
    }

    /// Keeps what a path tells of lines and drawings.
    pub(super) fn path(&mut self, path: &BezPath, transform: Affine, colour: &Colour, drawn: Drawn) {
        self.content.drawings += path.elements().len();
        let bbox = transform.transform_rect_bbox(path.control_box());
        self.paint(bbox, colour);
        if is_shape(path) {
            self.push_shape(bbox, colour);
        }
        if drawn == Drawn::Stroke && self.content.rules.len() < MAX_RULES {
            self.stroke_rules(path, transform);
        }
    }

    /// Keeps a rectangle as lines or as a shade.
    pub(super) fn rect(&mut self, rect: &kurbo::Rect, transform: Affine, colour: &Colour, drawn: Drawn) {
        let r = transform.transform_rect_bbox(*rect);
        self.paint(r, colour);
        if self.content.rules.len() >= MAX_RULES {
            return;
        }
        let corners = [
            Point::new(r.x0, r.y0),
            Point::new(r.x1, r.y0),
            Point::new(r.x1, r.y1),
            Point::new(r.x0, r.y1),
        ];
        match drawn {
            Drawn::Stroke if r.width().min(r.height()) > MAX_RULE_THICKNESS => {
                for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
                    self.push_rule(corners[a], corners[b]);
                }
            }
            // Thin ones are lines; others are backgrounds, whose edges nobody drew.
            Drawn::Fill if r.width().min(r.height()) > MAX_RULE_THICKNESS => {
                if self.content.fills.len() < MAX_RULES && r.area().is_finite() {
                    self.content.fills.push([r.x0, r.y0, r.x1, r.y1].map(|v| v as f32));
                }
            }
            _ => self.push_rule(corners[0], corners[2]),
        }
    }

    /// Keeps where a picture of so many pixels is; `transform` takes its pixels to the page.
    pub(super) fn image(&mut self, (width, height): (u32, u32), transform: Affine) {
        self.content.has_images = true;
        let page = kurbo::Rect::new(0.0, 0.0, f64::from(self.content.width), f64::from(self.content.height));
        let size = (f64::from(width), f64::from(height));
        let bbox = transform
            .transform_rect_bbox(kurbo::Rect::from_origin_size((0.0, 0.0), size))
            .intersect(page);
        let shown = [bbox.x0, bbox.y0, bbox.x1, bbox.y1].map(|v| v as f32);
        self.painted.add(shown);
        if bbox.area() > 0.3 * page.area() {
            // The longer sides go together however the image is turned.
            let pixels = f64::from(width.max(height));
            let dpi = pixels * 72.0 / bbox.width().max(bbox.height());
            self.content.image_dpi = self.content.image_dpi.max(dpi as f32);
        }
        if self.content.images.len() < MAX_RULES && bbox.area() > 0.0 {
            self.content.images.push(shown);
            if let Some(words) = self.marks.last().and_then(|mark| mark.described.as_ref()) {
                self.content.descriptions.push((shown, words.trim().to_owned()));
            }
        }
    }

    pub(super) fn begin_marked_content(&mut self, tag: &[u8], properties: Option<&Dict<'_>>) {
        let outer = self.marks.last();
        let mcid = properties.and_then(|dict| dict.get::<u32>(MCID));
        let known = mcid.and_then(|mcid| mcid.checked_add(FIRST_TAG)).filter(|&index| {
            let tag = self.content.tags.get(index as usize);
            tag.is_some_and(|tag| *tag != Tag::default())
        });
        let words = |key: &[u8], known: &HashMap<u32, Rc<str>>| {
            let here = properties.and_then(|dict| words_of(dict, key));
            here.or_else(|| mcid.and_then(|mcid| known.get(&mcid).cloned()))
        };
        let mark = Mark {
            tag: match known {
                Some(index) => index,
                None if tag == b"Artifact" => ARTIFACT,
                None => outer.map_or(NO_TAG, |mark| mark.tag),
            },
            actual: words(ACTUAL_TEXT, &self.words.actual),
            described: words(ALT, &self.words.described).or_else(|| outer.and_then(|mark| mark.described.clone())),
            first: self.content.glyphs.len(),
        };
        self.marks.push(mark);
    }

    pub(super) fn end_marked_content(&mut self) {
        let Some(mark) = self.marks.pop() else { return };
        let Some(text) = mark.actual else { return };
        // Characters that may not be seen are known by their places among the others.
        let doubted = self.doubts.last().is_some_and(|last| last.1 > mark.first)
            || self.clipped.last().is_some_and(|last| last.1 > mark.first);
        let drawn = self.content.glyphs.get(mark.first..).unwrap_or_default();
        if doubted || drawn.iter().map(|glyph| glyph.ch).eq(text.chars()) {
            return;
        }
        if let Some(glyphs) = replaced(drawn, &text) {
            let unknown = |glyphs: &[Glyph]| glyphs.iter().filter(|glyph| glyph.ch == UNKNOWN).count();
            let (before, after) = (unknown(drawn), unknown(&glyphs));
            self.content.unmapped = (self.content.unmapped + after).saturating_sub(before);
            self.content.glyphs.truncate(mark.first);
            self.content.glyphs.extend(glyphs);
        }
    }

    pub(super) fn push_clip(&mut self, rect: &kurbo::Rect) {
        self.clips.push([rect.x0, rect.y0, rect.x1, rect.y1].map(|v| v as f32));
    }

    pub(super) fn pop_clip(&mut self) {
        self.clips.pop();
    }
}

/// The tags of a page with those that need no structure tree before them.
fn page_tags(known: Vec<Tag>) -> Vec<Tag> {
    let artifact = Tag {
        kind: TagKind::Artifact,
        ..Tag::default()
    };
    [Tag::default(), artifact].into_iter().chain(known).collect()
}
