//! HEIC pictures, decoded by the libheif library, which is loaded at run time.
//!
//! The program has no link dependency on the library and works without it, except for HEIC. The library and the
//! decoder of HEVC that it uses are C and C++ code that reads hostile pictures: callers load it in a process
//! that is locked down afterwards. [`Library::load`] has the library load its decoders too; after it no file is
//! opened any more.
//!
//! # Where `unsafe` lives
//! All calls are in the module `ffi`, which owns every pointer that it gets.

mod ffi;

use std::path::Path;

use ffi::Functions;

/// The loaded library.
#[derive(Debug)]
pub struct Library {
    functions: Functions,
    version: String,
    // Keeps the code mapped; last, so that it goes after everything else.
    _library: libloading::Library,
}

/// The library can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is not there, can't be mapped, lacks a function, or can't set itself up.
    #[error("the library can't be loaded: {0}")]
    Library(String),
    /// It has no decoder of HEVC.
    #[error("libheif {0} has no decoder of HEVC; on Debian: apt-get install libheif-plugin-libde265")]
    NoDecoder(String),
}

/// A decoded picture, turned as the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// Red, green and blue of each pixel, row by row.
    pub rgb: Vec<u8>,
}

impl Library {
    /// Loads the library, version 1.13 or later, from a file or by a name that the system's loader knows, and its
    /// decoders.
    ///
    /// # Errors
    /// [`LoadError`] says why it can't be used.
    pub fn load(library: &Path) -> Result<Self, LoadError> {
        let (functions, library) = ffi::load(library).map_err(LoadError::Library)?;
        let version = functions.version();
        if !functions.has_decoder() {
            return Err(LoadError::NoDecoder(version));
        }
        Ok(Self {
            functions,
            version,
            _library: library,
        })
    }

    /// Version of the library, such as `1.15.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Width and height of the pictures of a file, at most `most`, as displayed. Nothing is decoded.
    ///
    /// # Errors
    /// Why the file can't be read, for people.
    pub fn sizes(&self, bytes: &[u8], most: usize) -> Result<Vec<(u32, u32)>, String> {
        let context = self.functions.open(bytes)?;
        let pictures = context.pictures(most)?;
        pictures.into_iter().map(|id| context.size(id)).collect()
    }

    /// Decodes the picture at a position, from 0.
    ///
    /// # Errors
    /// Why it can't be decoded, for people.
    pub fn decode(&self, bytes: &[u8], index: usize) -> Result<Picture, String> {
        let context = self.functions.open(bytes)?;
        let pictures = context.pictures(index.saturating_add(1))?;
        let id = pictures.get(index).ok_or("there is no such picture")?;
        context.decode(*id)
    }
}
