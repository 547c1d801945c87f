//! Names and styles of the fonts that glyphs are drawn with.
//!
//! A drawn glyph tells its font's name only for embedded TrueType and CID fonts. For the others the
//! font dictionaries within reach of the page are loaded, and the one whose program yields the same
//! glyph for the same code is taken.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use hayro_font::{Font as PdfFont, FontCache, FontGlyph};
use hayro_interpret::InterpreterSettings;
use hayro_interpret::font::{GlyphIdentifier, OutlineGlyph};
use hayro_interpret::hayro_syntax::object::dict::keys::{
    BASE_FONT, FIRST_CHAR, FLAGS, FONT, FONT_DESC, FONT_FILE2, FONT_FILE3, FONT_WEIGHT, RESOURCES, SUBTYPE, WIDTHS,
    XOBJECT,
};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, ObjectIdentifier, Stream};
use hayro_interpret::hayro_syntax::page::Page;
use skrifa::MetadataProvider;

use super::engine::{Font, FontId};

/// Font dictionaries looked at per page.
const MAX_CANDIDATES: usize = 256;
/// Equal widths that identify a font when no other has them.
const MIN_WIDTHS: usize = 3;
/// Codes of a font whose widths are read.
const MAX_WIDTHS: usize = 256;
/// XObjects searched for fonts per search.
const MAX_FORMS: usize = 512;
/// Nesting of form XObjects that is searched for fonts.
const MAX_FORM_DEPTH: usize = 4;
/// Characters a font program's reverse map may hold.
const MAX_REVERSE_MAP: usize = 70_000;

/// All fonts of a document.
pub(super) struct FontTable<'a> {
    fonts: Vec<Font>,
    by_program: HashMap<u64, FontId>,
    reverse: HashMap<u64, HashMap<u32, char>>,
    /// Font dictionaries by object number.
    described: HashMap<ObjectIdentifier, Rc<Described>>,
    cache: FontCache<'a>,
    settings: InterpreterSettings,
}

impl<'a> FontTable<'a> {
    pub(super) fn new(settings: &InterpreterSettings) -> Self {
        Self {
            // Id 0 is the font nothing is known of.
            fonts: vec![Font::default()],
            by_program: HashMap::new(),
            reverse: HashMap::new(),
            described: HashMap::new(),
            cache: FontCache::new(),
            settings: settings.clone(),
        }
    }

    /// The id of a font, which is that of one like it where there is one.
    pub(super) fn add(&mut self, font: Font) -> FontId {
        match self.fonts.iter().position(|known| *known == font) {
            Some(position) => position as FontId,
            None if self.fonts.len() < usize::from(FontId::MAX) => {
                self.fonts.push(font);
                (self.fonts.len() - 1) as FontId
            }
            None => 0,
        }
    }

    pub(super) fn fonts(&self) -> &[Font] {
        &self.fonts
    }

    /// The font of a glyph drawn on `page`; `run` gives the codes and widths of some glyphs of the
    /// same font.
    pub(super) fn id(&mut self, glyph: &OutlineGlyph, run: &dyn Fn() -> Vec<(u32, f32)>, page: &'a Page<'a>) -> FontId {
        let key = program_key(&glyph.identifier());
        if let Some(&id) = self.by_program.get(&key) {
            return id;
        }
        let font = match glyph.font_data() {
            Some(data) => {
                let mut font = styled(data.postscript_name.unwrap_or_default());
                font.bold |= data.weight.is_some_and(|weight| weight >= 600);
                font.italic |= data.is_italic;
                font.monospace |= data.is_monospace;
                font
            }
            None => self.search(glyph, &run(), page).unwrap_or_default(),
        };
        let id = self.add(font);
        self.by_program.insert(key, id);
        id
    }

    /// The character a glyph shows according to the embedded font program itself.
    pub(super) fn reverse_lookup(&mut self, glyph: &OutlineGlyph) -> Option<char> {
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

    fn search(&mut self, glyph: &OutlineGlyph, run: &[(u32, f32)], page: &'a Page<'a>) -> Option<Font> {
        let mut dicts = Vec::new();
        collect_fonts(&page.resources().fonts, &mut dicts);
        let mut forms = MAX_FORMS;
        collect_form_fonts(&page.resources().x_objects, 0, &mut forms, &mut dicts);
        // Loading fonts takes time. Widths usually tell them apart without.
        let described = dicts.into_iter().map(|dict| (self.described(&dict), dict));
        let mut fitting: Vec<(Widths, Rc<Described>, Dict<'a>)> = described
            .map(|(known, dict)| (known.compare(run), known, dict))
            .filter(|(widths, ..)| *widths != Widths::Differ)
            .collect();
        let agreeing = fitting.iter().filter(|(widths, ..)| *widths == Widths::Agree);
        if let Some((_, first, _)) = agreeing.clone().next()
            && fitting.iter().all(|(_, other, _)| other.font == first.font)
        {
            return Some(first.font.clone());
        }
        // Those that agree come first.
        fitting.sort_by_key(|(widths, ..)| *widths != Widths::Agree);
        let wanted = glyph.identifier();
        let code = glyph.char_code();
        fitting.iter().find_map(|(_, known, dict)| {
            let font = self
                .cache
                .font(dict, &self.settings.font_resolver, &self.settings.cmap_resolver)?;
            (identifier(&font, code)? == wanted).then(|| known.font.clone())
        })
    }

    /// What a font dictionary says, read once.
    fn described(&mut self, dict: &Dict<'a>) -> Rc<Described> {
        let read = || Rc::new(Described::read(dict));
        match dict.obj_id() {
            Some(id) => self.described.entry(id).or_insert_with(read).clone(),
            None => read(),
        }
    }
}

fn collect_fonts<'a>(fonts: &Dict<'a>, out: &mut Vec<Dict<'a>>) {
    for key in fonts.keys() {
        if out.len() >= MAX_CANDIDATES {
            return;
        }
        out.extend(fonts.get::<Dict<'a>>(key.as_ref()).filter(is_nameless));
    }
}

/// Whether drawn glyphs of a font do not tell its name; loading the others again would be waste.
fn is_nameless(dict: &Dict<'_>) -> bool {
    match dict.get::<Name<'_>>(SUBTYPE).as_deref() {
        Some(b"Type1" | b"MMType1") => true,
        Some(b"TrueType") => dict
            .get::<Dict<'_>>(FONT_DESC)
            .is_none_or(|descriptor| !descriptor.contains_key(FONT_FILE2) && !descriptor.contains_key(FONT_FILE3)),
        _ => false,
    }
}

fn collect_form_fonts<'a>(x_objects: &Dict<'a>, depth: usize, forms: &mut usize, out: &mut Vec<Dict<'a>>) {
    for key in x_objects.keys() {
        if out.len() >= MAX_CANDIDATES || depth >= MAX_FORM_DEPTH || *forms == 0 {
            return;
        }
        *forms -= 1;
        let Some(resources) = x_objects
            .get::<Stream<'a>>(key.as_ref())
            .and_then(|form| form.dict().get::<Dict<'a>>(RESOURCES))
        else {
            continue;
        };
        if let Some(fonts) = resources.get::<Dict<'a>>(FONT) {
            collect_fonts(&fonts, out);
        }
        if let Some(inner) = resources.get::<Dict<'a>>(XOBJECT) {
            collect_form_fonts(&inner, depth + 1, forms, out);
        }
    }
}

fn identifier(font: &PdfFont<'_>, code: u32) -> Option<GlyphIdentifier> {
    // Codes of more than one byte belong to composite fonts alone.
    if code > 0xFF {
        return None;
    }
    match font.glyph(font.map_code(code), code) {
        FontGlyph::Outline(outline) => Some(outline.identifier()),
        FontGlyph::Type3(_) => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Widths {
    Agree,
    Differ,
    /// Too few to tell.
    Unknown,
}

/// What a font dictionary says of its font.
struct Described {
    font: Font,
    /// The first code that has a width, and the widths from there on.
    widths: Option<(u32, Vec<f32>)>,
}

impl Described {
    fn read(dict: &Dict<'_>) -> Self {
        let widths = dict.get::<u32>(FIRST_CHAR).zip(dict.get::<Array<'_>>(WIDTHS));
        Self {
            font: describe(dict),
            widths: widths.map(|(first, widths)| (first, widths.iter::<f32>().take(MAX_WIDTHS).collect())),
        }
    }

    /// Compares the widths stated with those that were drawn.
    fn compare(&self, run: &[(u32, f32)]) -> Widths {
        let Some((first, widths)) = &self.widths else {
            return Widths::Unknown;
        };
        let mut same = 0;
        for &(code, drawn) in run {
            let stated = code.checked_sub(*first).and_then(|index| widths.get(index as usize));
            match stated {
                Some(stated) if (stated - drawn).abs() < 0.5 => same += 1,
                Some(_) => return Widths::Differ,
                None => {}
            }
        }
        if same >= MIN_WIDTHS {
            Widths::Agree
        } else {
            Widths::Unknown
        }
    }
}

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
fn styled(name: String) -> Font {
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
