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
    let lib = installed(".venv/lib");
    let pythons = std::fs::read_dir(&lib).into_iter().flatten().filter_map(Result::ok);
    let names = ["libpdfium.so", "libpdfium.dylib"];
    let found = pythons
        .flat_map(|python| names.map(|name| python.path().join("site-packages/pypdfium2_raw").join(name)))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{} has no PDFium: run scripts/setup", lib.display()))
}

/// A script of `tests/python`, to be run by the Python that has what the tests need.
pub fn python(script: &str) -> Command {
    let mut command = Command::new(installed(".venv/bin/python"));
    command.arg(root().join("tests/python").join(script));
    command
}
