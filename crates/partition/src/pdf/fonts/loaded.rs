//! Loaded fonts, and what their codes mean. A code is looked into once: that takes longer than anything
//! else that is done with a character.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_font::{Font as PdfFont, FontGlyph};
use hayro_interpret::font::OutlineGlyph;
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::object::dict::keys::SUBTYPE;
use hayro_interpret::hayro_syntax::object::{Dict, Name};
use hayro_interpret::kurbo::BezPath;

use super::super::engine::{FontId, UNKNOWN};
use super::super::script::is_private;
use super::{FontTable, StandardFont, bytes_of};

/// Codes that start with one byte.
const BYTES: usize = 256;

/// The characters of a glyph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pdf) enum Text {
    /// [`UNKNOWN`] where nobody knows it.
    One(char),
    Many(Rc<str>),
}

/// What a code means.
pub(in crate::pdf) struct Code {
    pub(in crate::pdf) code: u32,
    pub(in crate::pdf) text: Text,
    /// How far the text moves on, rightward or downward, in thousandths of the font size.
    pub(in crate::pdf) across: f32,
    pub(in crate::pdf) down: f32,
    /// Where the origin of vertical text is.
    pub(in crate::pdf) origin: (f64, f64),
}

/// A font with the codes that were met.
pub(super) struct Loaded<'a> {
    font: PdfFont<'a>,
    /// None for one that stands in for a missing one.
    pub(super) dict: Option<Dict<'a>>,
    /// Its glyphs are outlines.
    outlined: bool,
    /// All its codes are of one byte.
    simple: bool,
    /// Its id, once it is known.
    pub(super) id: Option<FontId>,
    codes: Vec<Code>,
    /// By code.
    places: HashMap<u32, u32>,
    /// By byte one more than the place of the code of one byte, 0 for none.
    single: Box<[u32; BYTES]>,
    /// The same by two bytes.
    pairs: Vec<Option<Box<[u32; BYTES]>>>,
}

impl<'a> Loaded<'a> {
    fn new(font: PdfFont<'a>, dict: Option<Dict<'a>>) -> Self {
        let kind = dict.as_ref().and_then(|dict| dict.get::<Name<'_>>(SUBTYPE));
        let is = |name: &[u8]| kind.as_deref() == Some(name);
        Self {
            font,
            outlined: !is(b"Type3"),
            simple: !is(b"Type0"),
            dict,
            id: None,
            codes: Vec::new(),
            places: HashMap::new(),
            single: Box::new([0; BYTES]),
            pairs: Vec::new(),
        }
    }

    /// Place and length of a code that is known by its bytes.
    fn find(&self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = usize::from(*bytes.first()?);
        if let Some(place) = self.single.get(first)?.checked_sub(1) {
            return Some((place, 1));
        }
        let page = self.pairs.get(first)?.as_deref()?;
        let place = page.get(usize::from(*bytes.get(1)?))?.checked_sub(1)?;
        Some((place, 2))
    }

    /// Remembers a code by its bytes.
    fn remember(&mut self, bytes: &[u8], length: usize, place: u32) {
        let slot = match (length, bytes) {
            // Where no code fits, the first of the bytes is taken as code 0; it tells nothing of the next time.
            (1, [first, ..]) if self.simple || *first != 0 => self.single.get_mut(usize::from(*first)),
            (2, [first, second, ..]) => {
                self.pairs.resize_with(BYTES, || None);
                let page = self.pairs.get_mut(usize::from(*first));
                page.and_then(|page| {
                    page.get_or_insert_with(|| Box::new([0; BYTES]))
                        .get_mut(usize::from(*second))
                })
            }
            _ => None,
        };
        if let Some(slot) = slot {
            *slot = place + 1;
        }
    }
}

impl<'a> FontTable<'a> {
    /// The place of the font of a dictionary among the loaded fonts: that of a stand-in when it can't be loaded.
    pub(in crate::pdf) fn load(&mut self, dict: &Dict<'a>) -> Option<usize> {
        let key = bytes_of(dict);
        if let Some(place) = self.loaded_dicts.get(&key) {
            return *place;
        }
        let font = self
            .cache
            .font(dict, &self.settings.font_resolver, &self.settings.cmap_resolver);
        let place = match font {
            Some(font) => Some(self.push(Loaded::new(font, Some(dict.clone())))),
            None => self.stand_in(),
        };
        self.loaded_dicts.insert(key, place);
        place
    }

    /// The place of the font that is used when there is none.
    pub(in crate::pdf) fn stand_in(&mut self) -> Option<usize> {
        if let Some(place) = self.stand_in {
            return Some(place);
        }
        let font = self
            .cache
            .standard_font(StandardFont::Helvetica, &self.settings.font_resolver)?;
        let place = self.push(Loaded::new(font, None));
        self.stand_in = Some(place);
        Some(place)
    }

    fn push(&mut self, font: Loaded<'a>) -> usize {
        self.loaded.push(font);
        self.loaded.len() - 1
    }

    /// Whether a font stands in for one that is missing.
    pub(in crate::pdf) fn is_stand_in(&self, font: usize) -> bool {
        self.loaded.get(font).is_some_and(|font| font.dict.is_none())
    }

    /// Whether the glyphs of a font are outlines, which have no colours of their own.
    pub(in crate::pdf) fn is_outlined(&self, font: usize) -> bool {
        self.loaded.get(font).is_some_and(|font| font.outlined)
    }

    /// Whether the text of a font runs from top to bottom.
    pub(in crate::pdf) fn is_vertical(&self, font: usize) -> bool {
        self.loaded.get(font).is_some_and(|font| !font.font.is_horizontal())
    }

    /// The place of the code that `bytes` begin with among those of the font, and its length; none at the end.
    pub(in crate::pdf) fn read(&mut self, font: usize, bytes: &[u8]) -> Option<(u32, usize)> {
        let loaded = self.loaded.get(font)?;
        if let Some(found) = loaded.find(bytes) {
            return Some(found);
        }
        if bytes.is_empty() {
            return None;
        }
        let (code, length) = loaded.font.read_code(bytes, 0);
        let known = loaded.places.get(&code).copied();
        let place = match known {
            Some(place) => place,
            None => {
                let pdf_font = loaded.font.clone();
                let code = self.look_up(&pdf_font, code);
                let loaded = self.loaded.get_mut(font)?;
                let place = u32::try_from(loaded.codes.len()).ok()?;
                loaded.places.insert(code.code, place);
                loaded.codes.push(code);
                place
            }
        };
        let length = length.max(1);
        self.loaded.get_mut(font)?.remember(bytes, length, place);
        Some((place, length))
    }

    /// A code that was read, by its place.
    pub(in crate::pdf) fn code(&self, font: usize, place: u32) -> Option<&Code> {
        self.loaded.get(font)?.codes.get(place as usize)
    }

    /// The outline of a glyph, if it has one.
    pub(in crate::pdf) fn outline(&self, font: usize, place: u32) -> Option<BezPath> {
        Some(self.outline_glyph(font, place)?.outline())
    }

    /// A glyph; none where it is drawn by operators of its own.
    pub(super) fn outline_glyph(&self, font: usize, place: u32) -> Option<OutlineGlyph> {
        let code = self.code(font, place)?.code;
        let font = &self.loaded.get(font)?.font;
        match font.glyph(font.map_code(code), code) {
            FontGlyph::Outline(glyph) => Some(glyph),
            FontGlyph::Type3(_) => None,
        }
    }

    fn look_up(&mut self, font: &PdfFont<'a>, code: u32) -> Code {
        let glyph = font.glyph(font.map_code(code), code);
        let unicode = match &glyph {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        let text = match unicode {
            Some(BfString::Char(ch)) if ch != '\0' && ch != UNKNOWN => {
                Text::One(if is_private(ch) { UNKNOWN } else { ch })
            }
            Some(BfString::String(text)) => Text::Many(Rc::from(text)),
            _ => Text::One(self.fallback(&glyph, code).unwrap_or(UNKNOWN)),
        };
        let advance = font.code_advance(code);
        let origin = font.origin_displacement(code);
        Code {
            code,
            text,
            across: advance.x as f32,
            down: advance.y as f32,
            origin: (origin.x, origin.y),
        }
    }

    /// The character of a glyph whose font has no map to Unicode: what the font program says, else
    /// the code itself where codes are usually characters, in one-byte fonts.
    fn fallback(&mut self, glyph: &FontGlyph<'_>, code: u32) -> Option<char> {
        match glyph {
            FontGlyph::Outline(outline) => {
                if let Some(ch) = self.reverse_lookup(outline) {
                    return Some(ch);
                }
                // `font_data` is absent for Type 1 and for fonts that are not embedded.
                let composite = outline.font_data().is_some() && code > 0xFF;
                (!composite).then_some(code).and_then(printable)
            }
            FontGlyph::Type3(_) => printable(code),
        }
    }
}

fn printable(code: u32) -> Option<char> {
    matches!(code, 0x20..=0x7E | 0xA0..=0xFF)
        .then(|| char::from_u32(code))
        .flatten()
}
