//! The models of languages: found in a folder, opened at once, read when first needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the model that tells orientation and script.
pub(crate) const OSD: &str = "osd";
/// Name of a model of equations, which is no language.
const EQUATIONS: &str = "equ";
/// Models that are opened; there are some 130 languages.
const MAX_MODELS: usize = 256;
/// Largest model that is read, in bytes; the largest published has some 50 MB.
const MAX_MODEL_BYTES: u64 = 256 << 20;
/// Where distributions and installers put models, after what the environment says.
const FOLDERS: &[&str] = &[
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract-ocr/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
];

/// Why there is no text recognition. The message says what to install.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The library is not installed, or cannot be loaded.
    #[error("the Tesseract library (version 5) is not installed or cannot be loaded: {0}")]
    Library(String),
    /// It is another version.
    #[error("the Tesseract library has version {0}; version 5 is needed")]
    Version(String),
    /// No folder of models was found.
    #[error("no Tesseract models (*.traineddata) were found; looked in {0}")]
    Models(String),
}

#[derive(Debug)]
struct Model {
    file: Mutex<File>,
    bytes: Mutex<Option<Arc<Vec<u8>>>>,
}

/// The installed models.
#[derive(Debug)]
pub(crate) struct Models(BTreeMap<String, Model>);

impl Models {
    pub(crate) fn open(folder: Option<&Path>) -> Result<Self, Unavailable> {
        let folders = match folder {
            Some(folder) => vec![folder.to_owned()],
            None => usual_folders(),
        };
        for folder in &folders {
            let models = open_folder(folder);
            if models.keys().any(|name| name != OSD) {
                return Ok(Self(models));
            }
        }
        let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        Err(Unavailable::Models(names.join(", ")))
    }

    pub(crate) fn languages(&self) -> Vec<&str> {
        let names = self.0.keys().map(String::as_str);
        names.filter(|name| *name != OSD).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The content of a model, read once.
    pub(crate) fn read(&self, name: &str) -> Option<Arc<Vec<u8>>> {
        let model = self.0.get(name)?;
        let mut bytes = model.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = bytes.as_ref() {
            return Some(known.clone());
        }
        let mut content = Vec::new();
        let mut file = model.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(0)).ok()?;
        (&mut *file).take(MAX_MODEL_BYTES).read_to_end(&mut content).ok()?;
        let content = Arc::new(content);
        *bytes = Some(content.clone());
        Some(content)
    }
}

fn usual_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("TESSDATA_PREFIX").map(PathBuf::from);
    let beside = named.iter().map(|folder| folder.join("tessdata"));
    named
        .iter()
        .cloned()
        .chain(beside)
        .chain(FOLDERS.iter().map(PathBuf::from))
        .collect()
}

fn open_folder(folder: &Path) -> BTreeMap<String, Model> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let name = path.file_stem()?.to_str()?.to_owned();
            if path.extension()? != "traineddata" || name == EQUATIONS {
                return None;
            }
            let model = Model {
                file: Mutex::new(File::open(&path).ok()?),
                bytes: Mutex::new(None),
            };
            Some((name, model))
        })
        .take(MAX_MODELS)
        .collect()
}
