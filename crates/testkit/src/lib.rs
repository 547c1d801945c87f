//! Servers that tests talk to, each started on a free port with an empty data directory and ended when
//! dropped. They come from `scripts/setup`; a test that needs one that is not there fails and says so.

mod double;
mod emulators;
mod postgres;
mod process;
mod sentence_model;
mod smtp;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use double::{Asked, Double, Fields, Reply, Seen};
pub use emulators::{Azurite, GcsEmulator, Moto};
pub use postgres::Postgres;
pub use process::free_port;
pub use sentence_model::{onnx, onnx_runtime, write_model};
pub use smtp::{ReceivedMail, SmtpServer};

/// The top of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file that `scripts/setup` installs.
fn installed(path: &str) -> PathBuf {
    let path = root().join(path);
    assert!(
        path.exists(),
        "{} is missing: run scripts/setup, which installs what the tests need",
        path.display()
    );
    path
}

/// The PDFium library.
pub fn pdfium() -> PathBuf {
    library("pypdfium2_raw", "libpdfium.")
}

/// The libheif library, with a decoder of HEVC.
pub fn heif() -> PathBuf {
    library("pillow_heif.libs", "libheif-")
}

/// A library that a Python package brings, by its folder and the start of its name.
fn library(folder: &str, name: &str) -> PathBuf {
    let lib = installed(".venv/lib");
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let found = entries(&lib)
        .flat_map(|python| entries(&python.path().join("site-packages").join(folder)))
        .find(|file| file.file_name().to_string_lossy().starts_with(name));
    found.map_or_else(
        || panic!("there is no {name}* below {}: run scripts/setup", lib.display()),
        |file| file.path(),
    )
}

/// A script of `tests/python`, to be run by the Python that has what the tests need.
pub fn python(script: &str) -> Command {
    let mut command = Command::new(installed(".venv/bin/python"));
    command.arg(root().join("tests/python").join(script));
    command
}
