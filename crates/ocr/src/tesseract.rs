//! The C interface of the Tesseract library, version 5. The only module with `unsafe`.
//!
//! What makes it sound:
//! - The function types below are those of the library's header `capi.h`, which has not changed them
//!   since 5.0; [`Library::load`] refuses other major versions and libraries that lack one of them.
//! - An [`Engine`] owns its handle from creation to deletion and is used by one thread at a time
//!   (`&mut self`); the library keeps no state between handles that is not protected by itself.
//! - Iterators and strings are owned by the guard [`Iterator`] and its methods and freed by the
//!   functions the library names for them; an iterator does not outlive the call that made it.
//! - Pictures are given with their true size and are copied by the library during the call.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::sync::Arc;

use crate::measure::is_square;
use crate::models::Unavailable;
use crate::raster::Gray;

/// File names of the library, by system.
const NAMES: &[&str] = &["libtesseract.so.5", "libtesseract.5.dylib", "libtesseract-5.dll"];

type Handle = *mut c_void;
type Page = *mut c_void;
type Bool = c_int;

const LEVEL_BLOCK: c_int = 0;
const LEVEL_PARAGRAPH: c_int = 1;
const LEVEL_LINE: c_int = 2;
const LEVEL_WORD: c_int = 3;

/// How a picture is divided before recognition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segmentation {
    /// Blocks and lines are found.
    Page = 3,
    /// One block of lines.
    Block = 6,
    /// One line.
    Line = 7,
}

/// Which part of the library does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The older one, which alone tells orientation.
    Legacy = 0,
    /// Neural networks.
    Lstm = 1,
}

macro_rules! functions {
    ($($name:ident = $symbol:literal : fn($($arg:ty),*) $(-> $ret:ty)?;)+) => {
        #[derive(Debug)]
        struct Functions { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)+ }

        impl Functions {
            /// # Safety
            /// The symbols of `library` must have the types of `capi.h`.
            unsafe fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller vouches for the types.
                unsafe { Ok(Self { $($name: *library.get($symbol)?,)+ }) }
            }
        }
    };
}

functions! {
    version = b"TessVersion": fn() -> *const c_char;
    create = b"TessBaseAPICreate": fn() -> Handle;
    delete = b"TessBaseAPIDelete": fn(Handle);
    init = b"TessBaseAPIInit5": fn(Handle, *const c_char, c_int, *const c_char, c_int, *mut *mut c_char, c_int,
        *mut *mut c_char, *mut *mut c_char, usize, Bool) -> c_int;
    set_segmentation = b"TessBaseAPISetPageSegMode": fn(Handle, c_int);
    set_image = b"TessBaseAPISetImage": fn(Handle, *const c_uchar, c_int, c_int, c_int, c_int);
    set_resolution = b"TessBaseAPISetSourceResolution": fn(Handle, c_int);
    set_rectangle = b"TessBaseAPISetRectangle": fn(Handle, c_int, c_int, c_int, c_int);
    recognize = b"TessBaseAPIRecognize": fn(Handle, *mut c_void) -> c_int;
    clear = b"TessBaseAPIClear": fn(Handle);
    orientation = b"TessBaseAPIDetectOrientationScript": fn(Handle, *mut c_int, *mut f32, *mut *const c_char,
        *mut f32) -> Bool;
    iterator = b"TessBaseAPIGetIterator": fn(Handle) -> Page;
    iterator_page = b"TessResultIteratorGetPageIteratorConst": fn(Page) -> *const c_void;
    iterator_delete = b"TessResultIteratorDelete": fn(Page);
    iterator_next = b"TessResultIteratorNext": fn(Page, c_int) -> Bool;
    iterator_text = b"TessResultIteratorGetUTF8Text": fn(Page, c_int) -> *mut c_char;
    iterator_confidence = b"TessResultIteratorConfidence": fn(Page, c_int) -> f32;
    page_begins = b"TessPageIteratorIsAtBeginningOf": fn(*const c_void, c_int) -> Bool;
    page_box = b"TessPageIteratorBoundingBox": fn(*const c_void, c_int, *mut c_int, *mut c_int, *mut c_int,
        *mut c_int) -> Bool;
    page_baseline = b"TessPageIteratorBaseline": fn(*const c_void, c_int, *mut c_int, *mut c_int, *mut c_int,
        *mut c_int) -> Bool;
    page_kind = b"TessPageIteratorBlockType": fn(*const c_void) -> c_int;
    delete_text = b"TessDeleteText": fn(*mut c_char);
}

/// The loaded library.
#[derive(Debug)]
pub(crate) struct Library {
    functions: Functions,
    version: String,
    // Keeps the code mapped; last, so that it goes after everything else.
    _library: libloading::Library,
}

impl Library {
    /// Loads the library. Must come before threads are started, as it writes to the environment.
    pub(crate) fn load() -> Result<Self, Unavailable> {
        // One thread per page is faster than several for one line; read by the library's OpenMP when
        // that is loaded, hence before.
        // SAFETY: by contract no other thread runs that could read the environment.
        unsafe { std::env::set_var("OMP_THREAD_LIMIT", "1") };
        let mut reason = String::new();
        for name in NAMES {
            // SAFETY: the library's constructors have no preconditions.
            match unsafe { libloading::Library::new(*name) } {
                Ok(library) => return Self::new(library),
                Err(error) if reason.is_empty() => reason = error.to_string(),
                Err(_) => {}
            }
        }
        Err(Unavailable::Library(reason))
    }

    fn new(library: libloading::Library) -> Result<Self, Unavailable> {
        // SAFETY: types as in `capi.h` of version 5; the version is checked before anything else is called.
        let functions = unsafe { Functions::find(&library) };
        let functions = functions.map_err(|error| Unavailable::Library(error.to_string()))?;
        // SAFETY: returns a static string.
        let version = unsafe { CStr::from_ptr((functions.version)()) }
            .to_string_lossy()
            .into_owned();
        if !version.starts_with("5.") {
            return Err(Unavailable::Version(version));
        }
        Ok(Self {
            functions,
            version,
            _library: library,
        })
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// A word as recognised.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) text: String,
    /// 0 to 100.
    pub(crate) confidence: f32,
    /// `[left, top, right, bottom]` in pixels of the picture.
    pub(crate) bbox: [i32; 4],
    /// Two points of its line's baseline, `[x, y, x, y]`.
    pub(crate) baseline: [i32; 4],
    /// Whether the recogniser saw a space before it: not within a line of a script without spaces.
    pub(crate) spaced: bool,
    /// Whether it begins a line and a paragraph.
    pub(crate) begins_line: bool,
    pub(crate) begins_paragraph: bool,
}

impl Found {
    /// Where the baseline runs under the middle of the word.
    pub(crate) fn base(&self) -> f32 {
        let [x0, y0, x1, y1] = self.baseline.map(|v| v as f32);
        let middle = (self.bbox[0] + self.bbox[2]) as f32 / 2.0;
        if x1 - x0 < 1.0 {
            return y0;
        }
        y0 + (y1 - y0) * (middle - x0) / (x1 - x0)
    }
}

/// What recognition of a picture gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recognized {
    pub(crate) words: Vec<Found>,
    /// Boxes of what was taken for pictures.
    pub(crate) pictures: Vec<[i32; 4]>,
}

/// A recogniser of one language.
#[derive(Debug)]
pub(crate) struct Engine {
    handle: Handle,
    library: Arc<Library>,
    /// Width and height of the picture; 0 without one.
    size: (c_int, c_int),
}

// SAFETY: a handle is bound to no thread; `&mut self` keeps calls from overlapping.
unsafe impl Send for Engine {}

impl Engine {
    /// Sets a recogniser up from the bytes of its model.
    pub(crate) fn new(library: Arc<Library>, name: &str, model: &[u8], mode: Mode) -> Option<Self> {
        let name = CString::new(name).ok()?;
        let length = c_int::try_from(model.len()).ok()?;
        // SAFETY: no preconditions.
        let handle = unsafe { (library.functions.create)() };
        if handle.is_null() {
            return None;
        }
        let engine = Self {
            handle,
            library,
            size: (0, 0),
        };
        let none = std::ptr::null_mut;
        // SAFETY: `model` has `length` bytes, which are copied; the lists are empty.
        let status = unsafe {
            (engine.library.functions.init)(
                handle,
                model.as_ptr().cast(),
                length,
                name.as_ptr(),
                mode as c_int,
                none(),
                0,
                none().cast(),
                none().cast(),
                0,
                0,
            )
        };
        (status == 0).then_some(engine)
    }

    /// Gives it the picture to work on.
    pub(crate) fn set_image(&mut self, picture: &Gray, dpi: u32) {
        let (Ok(width), Ok(height)) = (c_int::try_from(picture.width()), c_int::try_from(picture.height())) else {
            return;
        };
        self.size = (width, height);
        // SAFETY: the picture has `height` rows of `width` bytes.
        unsafe {
            (self.library.functions.set_image)(self.handle, picture.pixels().as_ptr(), width, height, 1, width);
            (self.library.functions.set_resolution)(self.handle, c_int::try_from(dpi).unwrap_or(300));
        }
    }

    /// Recognises what stands in `area`, `[left, top, right, bottom]`, of the picture, as far as it lies in it.
    pub(crate) fn recognize(&mut self, area: [i32; 4], segmentation: Segmentation) -> Option<Recognized> {
        let (width, height) = self.size;
        let [left, top] = [area[0].max(0), area[1].max(0)];
        let [right, bottom] = [area[2].min(width), area[3].min(height)];
        if right <= left || bottom <= top {
            return Some(Recognized::default());
        }
        let functions = &self.library.functions;
        // SAFETY: a handle with a picture, and a rectangle within it: the library reads what it is told to.
        let status = unsafe {
            (functions.set_segmentation)(self.handle, segmentation as c_int);
            (functions.set_rectangle)(self.handle, left, top, right - left, bottom - top);
            (functions.recognize)(self.handle, std::ptr::null_mut())
        };
        if status != 0 {
            return None;
        }
        Some(self.collect())
    }

    fn collect(&mut self) -> Recognized {
        let mut found = Recognized::default();
        let functions = &self.library.functions;
        // SAFETY: recognition has taken place.
        let raw = unsafe { (functions.iterator)(self.handle) };
        if raw.is_null() {
            return found;
        }
        let iterator = Iterator { raw, functions };
        // Where the line begins, and what is left of its text, which has the spaces.
        let mut line = 0;
        let mut rest: Option<String> = None;
        loop {
            match iterator.word() {
                Some(mut word) => {
                    if word.begins_line {
                        line = found.words.len();
                        rest = None;
                    }
                    // Asking for a line's text takes a walk from the top of the page: only lines without
                    // spaces between words are worth it.
                    if rest.is_none() && word.text.chars().any(is_unspaced) {
                        let mut text = iterator.text(LEVEL_LINE).unwrap_or_default();
                        for earlier in found.words.iter_mut().skip(line) {
                            earlier.spaced = spaced(&mut text, &earlier.text);
                        }
                        rest = Some(text);
                    }
                    word.spaced = rest.as_mut().is_none_or(|rest| spaced(rest, &word.text));
                    found.words.push(word);
                }
                None => found.pictures.extend(iterator.picture()),
            }
            if !iterator.next() {
                return found;
            }
        }
    }

    /// Degrees, clockwise, by which the picture must be turned to stand upright, and how sure that is
    /// (2 and more is sure). For an engine in [`Mode::Legacy`].
    pub(crate) fn orientation(&mut self) -> Option<(i32, f32)> {
        let (mut degrees, mut confidence, mut script_confidence) = (0, 0.0, 0.0);
        let mut script = std::ptr::null();
        // SAFETY: all pointers are to live variables; the script's name is static and not kept.
        let found = unsafe {
            (self.library.functions.orientation)(
                self.handle,
                &mut degrees,
                &mut confidence,
                &mut script,
                &mut script_confidence,
            )
        };
        (found != 0).then_some((degrees, confidence))
    }

    /// Forgets the picture and what was found in it.
    pub(crate) fn clear(&mut self) {
        self.size = (0, 0);
        // SAFETY: a live handle.
        unsafe { (self.library.functions.clear)(self.handle) };
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: the handle is deleted once and not used afterwards.
        unsafe { (self.library.functions.delete)(self.handle) };
    }
}

/// Letters of scripts that set no spaces between words.
fn is_unspaced(ch: char) -> bool {
    is_square(ch)
        || matches!(ch, '\u{3000}'..='\u{303F}' | '\u{FF00}'..='\u{FFEF}' | '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}')
}

/// Takes a word off the start of a line's text; whether a space stood before it.
fn spaced(line: &mut String, word: &str) -> bool {
    let spaced = line.starts_with(char::is_whitespace);
    let trimmed = line.trim_start();
    match trimmed.strip_prefix(word) {
        Some(rest) => {
            let rest = rest.to_owned();
            *line = rest;
            spaced
        }
        // Out of step, which right-to-left lines may be: every word is set apart.
        None => true,
    }
}

/// A walk over the words found.
struct Iterator<'e> {
    raw: Page,
    functions: &'e Functions,
}

impl Iterator<'_> {
    fn next(&self) -> bool {
        // SAFETY: a live iterator.
        unsafe { (self.functions.iterator_next)(self.raw, LEVEL_WORD) != 0 }
    }

    /// The text of the word, or of what the word is in.
    fn text(&self, level: c_int) -> Option<String> {
        // SAFETY: a live iterator; the text is owned by us.
        let raw = unsafe { (self.functions.iterator_text)(self.raw, level) };
        if raw.is_null() {
            return None;
        }
        // SAFETY: a string that ends with a zero byte, freed once, here.
        let text = unsafe {
            let text = CStr::from_ptr(raw).to_string_lossy().trim().to_owned();
            (self.functions.delete_text)(raw);
            text
        };
        (!text.is_empty()).then_some(text)
    }

    fn word(&self) -> Option<Found> {
        let text = self.text(LEVEL_WORD)?;
        // SAFETY: a live iterator.
        let confidence = unsafe { (self.functions.iterator_confidence)(self.raw, LEVEL_WORD) };
        Some(Found {
            text,
            confidence,
            bbox: self.corners(self.functions.page_box, LEVEL_WORD)?,
            baseline: self.corners(self.functions.page_baseline, LEVEL_LINE)?,
            spaced: true,
            begins_line: self.begins(LEVEL_LINE),
            begins_paragraph: self.begins(LEVEL_PARAGRAPH),
        })
    }

    /// The box of a block that holds no text but a picture.
    fn picture(&self) -> Option<[i32; 4]> {
        // SAFETY: a live iterator; its page iterator lives as long.
        let kind = unsafe { (self.functions.page_kind)((self.functions.iterator_page)(self.raw)) };
        // Pictures in, across and beside columns.
        matches!(kind, 9..=11)
            .then(|| self.corners(self.functions.page_box, LEVEL_BLOCK))
            .flatten()
    }

    fn begins(&self, level: c_int) -> bool {
        // SAFETY: a live iterator; its page iterator lives as long.
        unsafe { (self.functions.page_begins)((self.functions.iterator_page)(self.raw), level) != 0 }
    }

    fn corners(
        &self,
        function: unsafe extern "C" fn(*const c_void, c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> Bool,
        level: c_int,
    ) -> Option<[i32; 4]> {
        let [mut a, mut b, mut c, mut d] = [0; 4];
        // SAFETY: a live iterator, and pointers to live variables.
        let found = unsafe {
            function(
                (self.functions.iterator_page)(self.raw),
                level,
                &mut a,
                &mut b,
                &mut c,
                &mut d,
            )
        };
        (found != 0).then_some([a, b, c, d])
    }
}

impl Drop for Iterator<'_> {
    fn drop(&mut self) {
        // SAFETY: deleted once.
        unsafe { (self.functions.iterator_delete)(self.raw) };
    }
}
