//! Mails as files.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::Builder;

use super::{SendError, Sent, Stage};
use crate::Message;

/// A directory of `.eml` files that only the server's user can read.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes a mail as a whole or not at all. A mail that is sent again replaces itself.
    pub(super) async fn write(&self, message: &Message) -> Result<Sent, SendError> {
        let (folder, name) = (self.path.clone(), format!("{}.eml", message.file_stem()));
        let bytes = message.bytes().to_vec();
        let path = folder.join(&name);
        let written = tokio::task::spawn_blocking(move || write(&folder, &name, &bytes)).await;
        match written.map_err(io::Error::other).and_then(|written| written) {
            Ok(()) => Ok(Sent {
                answer: path.display().to_string(),
                refused: Vec::new(),
            }),
            Err(error) => Err(SendError {
                permanent: false,
                smtp_code: None,
                stage: Stage::File,
                outcome_unknown: false,
                message: format!("cannot write {}: {error}", path.display()),
            }),
        }
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = Builder::new()
        .prefix(".writing-")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    fs::File::open(folder)?.sync_all()
}
