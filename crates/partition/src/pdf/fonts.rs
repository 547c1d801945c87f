//! The fonts of a document: their names and styles, and what their codes mean ([`loaded`]).

mod loaded;

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use hayro_font::{FontCache, StandardFont};
use hayro_interpret::InterpreterSettings;
use hayro_interpret::font::{GlyphIdentifier, OutlineGlyph};
use hayro_interpret::hayro_syntax::object::dict::keys::{BASE_FONT, FLAGS, FONT_DESC, FONT_WEIGHT};
use hayro_interpret::hayro_syntax::object::{Dict, Name};
use skrifa::MetadataProvider;

use super::engine::{Font, FontId};
use loaded::Loaded;
pub(super) use loaded::Text;

/// Fonts kept loaded from page to page.
const MAX_LOADED: usize = 120;
/// Characters a font program's reverse map may hold.
const MAX_REVERSE_MAP: usize = 70_000;

/// Where bytes of an open file begin, and how many they are.
type Bytes = (usize, usize);

/// All fonts of a document.
pub(super) struct FontTable<'a> {
    fonts: Vec<Font>,
    reverse: HashMap<u64, HashMap<u32, char>>,
    cache: FontCache<'a>,
    loaded: Vec<Loaded<'a>>,
    /// Places among the loaded fonts.
    loaded_dicts: HashMap<Bytes, Option<usize>>,
    stand_in: Option<usize>,
    settings: InterpreterSettings,
}

impl<'a> FontTable<'a> {
    pub(super) fn new(settings: InterpreterSettings) -> Self {
        Self {
            // Id 0 is the font nothing is known of.
            fonts: vec![Font::default()],
            reverse: HashMap::new(),
            cache: FontCache::new(),
            loaded: Vec::new(),
            loaded_dicts: HashMap::new(),
            stand_in: None,
            settings,
        }
    }

    /// The id of a font, which is that of one like it where there is one.
    pub(super) fn add(&mut self, font: Font) -> FontId {
        intern(&mut self.fonts, font)
    }

    pub(super) fn fonts(&self) -> &[Font] {
        &self.fonts
    }

    /// Forgets what was loaded when that is much: files put together from many others have fonts without end,
    /// and each holds its program.
    pub(super) fn bound(&mut self) {
        if self.loaded.len() > MAX_LOADED {
            self.unload();
        }
    }

    /// Forgets what was loaded, but not the fonts that have an id.
    pub(super) fn unload(&mut self) {
        self.cache = FontCache::new();
        self.loaded.clear();
        self.loaded_dicts.clear();
        self.stand_in = None;
    }

    /// The id of a loaded font; `code` is the place of one of its codes.
    pub(super) fn id(&mut self, font: usize, code: u32) -> FontId {
        let known = self.loaded.get(font).and_then(|font| font.id);
        if let Some(id) = known {
            return id;
        }
        // Fonts drawn by operators have no names.
        let described = self.outline_glyph(font, code).map(|glyph| match glyph.font_data() {
            Some(data) => {
                let mut font = styled(data.postscript_name.unwrap_or_default());
                font.bold |= data.weight.is_some_and(|weight| weight >= 600);
                font.italic |= data.is_italic;
                font.monospace |= data.is_monospace;
                font
            }
            None => {
                let dict = self.loaded.get(font).and_then(|font| font.dict.as_ref());
                dict.map(describe).unwrap_or_default()
            }
        });
        let id = described.map_or(0, |font| self.add(font));
        if let Some(font) = self.loaded.get_mut(font) {
            font.id = Some(id);
        }
        id
    }

    /// The character a glyph shows according to the embedded font program itself.
    fn reverse_lookup(&mut self, glyph: &OutlineGlyph) -> Option<char> {
        let key = program_key(&glyph.identifier());
        let map = self.reverse.entry(key).or_insert_with(|| {
            let mut map = HashMap::new();
            let Some(data) = glyph.font_data() else { return map };
            let Ok(font) = skrifa::FontRef::new(data.data.as_ref().as_ref()) else {
                return map;
            };
            for (code, gid) in font.charmap().mappings().take(MAX_REVERSE_MAP) {
                if let Some(ch) = char::from_u32(code) {
                    map.entry(gid.to_u32()).or_insert(ch);
                }
            }
            map
        });
        map.get(&glyph.glyph_id().to_u32()).copied()
    }
}

/// The bytes a dictionary is in its file: the same for the same dictionary, also where it has no number.
fn bytes_of(dict: &Dict<'_>) -> Bytes {
    let data = dict.data();
    (data.as_ptr() as usize, data.len())
}

/// The place of a font among others, at their end if it is new; 0 when there are too many.
pub(super) fn intern(fonts: &mut Vec<Font>, font: Font) -> FontId {
    match fonts.iter().position(|known| *known == font) {
        Some(position) => position as FontId,
        None if fonts.len() < usize::from(FontId::MAX) => {
            fonts.push(font);
            (fonts.len() - 1) as FontId
        }
        None => 0,
    }
}

/// What a font dictionary says of its font.
fn describe(dict: &Dict<'_>) -> Font {
    let name = dict
        .get::<Name<'_>>(BASE_FONT)
        .map(|name| name.as_str().to_owned())
        .unwrap_or_default();
    let mut font = styled(name);
    if let Some(descriptor) = dict.get::<Dict<'_>>(FONT_DESC) {
        let flags = descriptor.get::<u32>(FLAGS).unwrap_or(0);
        font.monospace |= flags & 1 != 0;
        font.italic |= flags & (1 << 6) != 0;
        font.bold |= flags & (1 << 18) != 0;
        font.bold |= descriptor.get::<f32>(FONT_WEIGHT).is_some_and(|weight| weight >= 600.0);
    }
    font
}

/// A font judged by its PostScript name.
pub(super) fn styled(name: String) -> Font {
    let name = match name.split_once('+') {
        Some((prefix, rest)) if prefix.len() == 6 => rest.to_owned(),
        _ => name,
    };
    let lower = name.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    // The TeX families name their weights in a fashion of their own: cmbx, cmssbx, sfbx, ...-medi.
    let tex_bold = [
        "cmb", "sfbx", "ecbx", "lmbx", "cmssbx", "cmssdc", "ptmb", "phvb", "pplb",
    ];
    let bold = (has(&["bold", "black", "heavy", "-demi", "-medi", "extrabd", "semibd"]) && !has(&["medium"]))
        || has(&["-bd", ",bd"])
        || tex_bold.iter().any(|prefix| lower.starts_with(prefix));
    let tex_italic = ["reguital", "mediital", "boldital", "demiital"];
    Font {
        bold,
        italic: has(&["italic", "oblique", "-ital", "slanted"])
            || has(&tex_italic)
            || lower.ends_with("-it")
            || lower.starts_with("cmti"),
        monospace: has(&[
            "courier",
            "mono",
            "consol",
            "typewriter",
            "menlo",
            "inconsolata",
            "lettergothic",
            "letter gothic",
            "andale",
            "prestige",
            "fixed",
        ]) || lower.starts_with("cmtt"),
        dingbats: has(&["wingdings", "webdings"]),
        name,
    }
}

/// A number that is the same for all glyphs of one font program.
///
/// Equal identifiers hash equally, and the program is the first thing they hash, as one 128-bit
/// number; the glyph that follows is left out.
fn program_key(identifier: &GlyphIdentifier) -> u64 {
    let mut hasher = FirstWide::default();
    identifier.hash(&mut hasher);
    hasher.finish()
}

/// Keeps the first 128-bit value, or else mixes everything. In the second case fonts are merely
/// looked up once per glyph instead of once per program.
#[derive(Default)]
struct FirstWide {
    wide: Option<u64>,
    mixed: u64,
}

impl Hasher for FirstWide {
    fn finish(&self) -> u64 {
        self.wide.unwrap_or(self.mixed)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.mixed = (self.mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.wide.get_or_insert((value >> 64) as u64 ^ value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_follows_the_name() {
        let font = styled("ABCDEF+TimesNewRomanPS-BoldItalicMT".into());
        assert_eq!(font.name, "TimesNewRomanPS-BoldItalicMT");
        assert!(font.bold && font.italic && !font.monospace);
        assert!(styled("CMBX12".into()).bold);
        assert!(styled("NimbusRomNo9L-Medi".into()).bold);
        assert!(!styled("Roboto-Medium".into()).bold);
        assert!(styled("NimbusRomNo9L-ReguItal".into()).italic);
        assert!(styled("MinionPro-It".into()).italic);
        assert!(!styled("DigitalSans-Regular".into()).italic);
        assert!(styled("CMTT10".into()).monospace);
        assert!(!styled("CMR10".into()).bold);
    }
}
