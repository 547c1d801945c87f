//! Text recognition: the picture of a page in, words with boxes, baselines, sizes and confidences out,
//! together with the ruling lines and pictures found in it.
//!
//! Recognition itself is done by the Tesseract library, version 5, which is loaded at run time: the
//! program has no link dependency on it and works without it, except for scans. Around it stands what
//! a page needs before and after: turning and straightening ([`Gray`] in, see `skew`), finding and
//! removing ruling lines (`rules`), reading what was missed between them (`cells`), choosing the language of each paragraph (`reading`), and
//! measuring size and weight of the type (`measure`).
//!
//! # Where `unsafe` lives
//! All calls into the library are in the module `tesseract`, which owns every pointer that it gets. The
//! library is C++ code of 60,000 lines and reads hostile pictures: callers run it in a process that has
//! been locked down. That is possible because everything it needs from outside is taken beforehand by
//! [`Ocr::open`]: the library is mapped, and each language's model is held open as a file descriptor
//! for reading and is read, on first use, into memory that is handed to the library. After that no file
//! is opened, no program started and no socket made, by this crate or by the library.
//!
//! # Determinism
//! A page's text depends on the picture, the languages asked for and the installed models only, not on
//! the pages read before or on the number of readers at work.

mod bullets;
mod cells;
mod ink;
mod languages;
mod measure;
mod models;
mod page;
mod raster;
mod reading;
mod rules;
mod settle;
mod skew;
mod tesseract;

pub use models::Unavailable;
pub use raster::{Gray, TooLarge};
pub use reading::{OcrError, PageText, Reader, Word};
pub use rules::Ruling;

use std::path::Path;
use std::sync::Arc;

use models::Models;
use tesseract::Library;

/// The library and the models of its languages, ready to make [`Reader`]s.
#[derive(Clone, Debug)]
pub struct Ocr {
    library: Arc<Library>,
    models: Arc<Models>,
}

impl Ocr {
    /// Loads the library and opens the models of all installed languages.
    ///
    /// `tessdata` names the folder that holds the models (`*.traineddata`); without it the usual
    /// places are searched. Call it before the process is locked down and before threads are
    /// started.
    ///
    /// # Errors
    /// [`Unavailable`] says what is missing.
    pub fn open(tessdata: Option<&Path>) -> Result<Self, Unavailable> {
        let library = Library::load()?;
        let models = Models::open(tessdata)?;
        Ok(Self {
            library: Arc::new(library),
            models: Arc::new(models),
        })
    }

    /// Version of the library, such as `5.3.0`.
    pub fn version(&self) -> &str {
        self.library.version()
    }

    /// Names of the installed languages, in alphabetical order; `osd` (orientation) is not one.
    pub fn languages(&self) -> Vec<&str> {
        self.models.languages()
    }

    /// Whether the model that tells a page's orientation is installed.
    pub fn has_orientation(&self) -> bool {
        self.models.has(models::OSD)
    }

    /// A reader for one thread. `languages` names those the text may be in, as ISO 639-1 or 639-3
    /// codes or as names of models; with none, each paragraph's language is found among the installed
    /// ones.
    ///
    /// # Errors
    /// None of the languages named is installed.
    pub fn reader(&self, languages: &[String]) -> Result<Reader, OcrError> {
        Reader::new(self.library.clone(), self.models.clone(), languages)
    }
}
