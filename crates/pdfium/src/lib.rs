//! PDFium, loaded at run time: what stands on the pages of a PDF, and pictures of them.
//!
//! The program has no link dependency on the library and works without it. It is docmill's second engine, for
//! files that its own can't read, so only what layout needs is asked for. The binding is that of
//! `pdfium-render`, at the oldest interface that current builds of the library still have
//! ([`OLDEST_BUILD`]); it lets one thread at a time into the library, which knows no threads.
//!
//! The library is C++ code that reads hostile files: callers load it in a process that is locked down
//! afterwards and then open no file any more. It runs no scripts, and finds no fonts of the system once it
//! is locked in: it draws with those of the file and the fourteen it brings.
//!
//! All lengths are points in page space: the page as displayed (crop box and `/Rotate` applied), origin at
//! its top left, y pointing down.

mod page;
mod place;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use pdfium_render::prelude::{PdfBookmark, PdfDocument, PdfRenderConfig, Pdfium, PdfiumError, PdfiumInternalError};

pub use page::{Font, Glyph, Image, Line, Link, Page};

/// The oldest build of the library that has all functions asked for.
pub const OLDEST_BUILD: u32 = 6611;

/// Entries of an outline that are read.
const MAX_OUTLINE_ENTRIES: usize = 20_000;
/// Nesting of an outline that is followed.
const MAX_OUTLINE_DEPTH: usize = 32;

/// The loaded library. It can be loaded once per process.
pub struct Library(Pdfium);

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Library")
    }
}

/// The library can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is not there, can't be mapped, or lacks a function.
    #[error("the library can't be loaded: {0} (builds from {OLDEST_BUILD} on have what is needed)")]
    Library(String),
    /// It has been loaded before.
    #[error("the library is loaded already")]
    Again,
}

impl Library {
    /// Loads the library from a file, or by a name that the system's loader knows.
    ///
    /// # Errors
    /// [`LoadError`] says why it can't be used.
    pub fn load(library: &Path) -> Result<Self, LoadError> {
        let bindings = Pdfium::bind_to_library(library).map_err(|error| match error {
            PdfiumError::LoadLibraryError(reason) => LoadError::Library(reason.to_string()),
            PdfiumError::PdfiumLibraryBindingsAlreadyInitialized => LoadError::Again,
            other => LoadError::Library(other.to_string()),
        })?;
        Ok(Self(Pdfium::new(bindings)))
    }
}

/// A file can't be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is encrypted, and the password is not the right one.
    #[error("the password does not open it")]
    Password,
    /// It is no PDF that the library can read.
    #[error("PDFium can't read it either")]
    Unreadable,
}

/// An entry of the document outline (bookmarks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// Its text.
    pub title: String,
    /// 0 for the top level.
    pub depth: u32,
}

/// A drawn page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// Red, green, blue and alpha of each pixel, row by row.
    pub rgba: Vec<u8>,
}

/// An open file.
pub struct Document<'a>(PdfDocument<'a>);

impl<'a> Document<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// It can't be read, or not with this password.
    pub fn open(library: &'a Library, bytes: &'a [u8], password: Option<&'a str>) -> Result<Self, OpenError> {
        let opened = quietly(|| library.0.load_pdf_from_byte_slice(bytes, password));
        match opened {
            Some(Ok(document)) => Ok(Self(document)),
            Some(Err(PdfiumError::PdfiumLibraryInternalError(PdfiumInternalError::PasswordError))) => {
                Err(OpenError::Password)
            }
            _ => Err(OpenError::Unreadable),
        }
    }

    /// Number of pages.
    pub fn page_count(&self) -> usize {
        usize::try_from(self.0.pages().len()).unwrap_or(0)
    }

    /// Width and height of a displayed page; `index` counts from 0.
    pub fn page_size(&self, index: usize) -> Option<(f32, f32)> {
        let size = quietly(|| self.0.pages().page_size(i32::try_from(index).ok()?).ok()).flatten()?;
        Some((size.width().value, size.height().value))
    }

    /// What stands on a page; none when it can't be read.
    pub fn page(&self, index: usize) -> Option<Page> {
        quietly(|| {
            let page = self.0.pages().get(i32::try_from(index).ok()?).ok()?;
            Page::read(&page)
        })
        .flatten()
    }

    /// Draws a page on white, `scale` pixels to the point; none when it can't be drawn.
    pub fn draw(&self, index: usize, scale: f32) -> Option<Picture> {
        quietly(|| {
            let page = self.0.pages().get(i32::try_from(index).ok()?).ok()?;
            let config = PdfRenderConfig::new()
                .scale_page_by_factor(scale)
                .render_form_data(true);
            let bitmap = page.render_with_config(&config).ok()?;
            Some(Picture {
                width: usize::try_from(bitmap.width()).ok()?,
                height: usize::try_from(bitmap.height()).ok()?,
                rgba: bitmap.as_rgba_bytes(),
            })
        })
        .flatten()
    }

    /// The outline, flattened in reading order.
    pub fn outline(&self) -> Vec<Bookmark> {
        quietly(|| outline(self.0.bookmarks().root())).unwrap_or_default()
    }
}

/// Walks the outline depth first. Siblings form a list that a hostile file can close to a ring, so the total is
/// bounded.
fn outline(root: Option<PdfBookmark<'_>>) -> Vec<Bookmark> {
    let mut entries = Vec::new();
    // A parent stays with its next sibling, if any, for the depth's sake.
    let mut path: Vec<Option<PdfBookmark<'_>>> = vec![root];
    let mut seen = 0;
    while let Some(item) = path.pop() {
        let Some(item) = item else { continue };
        seen += 1;
        if seen > MAX_OUTLINE_ENTRIES {
            break;
        }
        let title = item.title().unwrap_or_default();
        if !title.trim().is_empty() {
            let depth = u32::try_from(path.len()).unwrap_or(u32::MAX);
            entries.push(Bookmark { title, depth });
        }
        let child = item.first_child().filter(|_| path.len() < MAX_OUTLINE_DEPTH);
        path.push(item.next_sibling());
        if child.is_some() {
            path.push(child);
        }
    }
    entries
}

/// The binding panics where the library contradicts itself.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
