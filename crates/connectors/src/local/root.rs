//! The directory a connector works in, and opening what lies below it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::{failed, is_link};
use crate::{ConnectorError, ErrorKind, Result};

/// How a directory is opened: itself, not what a link leads to.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory of the settings and the directories it must lie below.
#[derive(Clone, Debug)]
pub(super) struct Root {
    path: PathBuf,
    allowed: Option<Vec<PathBuf>>,
}

/// What a name in a directory stands for.
pub(super) enum Kind {
    File,
    Directory,
    Link,
    /// A device, socket or pipe: never touched.
    Special,
}

impl Root {
    pub(super) fn new(path: PathBuf, allowed: Option<Vec<PathBuf>>) -> Self {
        Self { path, allowed }
    }

    /// The directory, for messages.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The nearest directory there is, with every link resolved, and the components still missing below it.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] when it lies below no allowed directory.
    pub(super) fn permitted(&self) -> Result<(PathBuf, Vec<Vec<u8>>)> {
        let mut missing = Vec::new();
        let mut there = self.path.as_path();
        let real = loop {
            match there.canonicalize() {
                Ok(real) => break real,
                Err(error) if error.kind() == io::ErrorKind::NotFound && !there.is_symlink() => {
                    let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                        return Err(failed("open", &self.shown(), &error));
                    };
                    missing.push(name.as_bytes().to_vec());
                    there = parent;
                }
                Err(error) => return Err(failed("open", &self.shown(), &error)),
            }
        };
        missing.reverse();
        let full = missing
            .iter()
            .fold(real.clone(), |path, name| path.join(OsStr::from_bytes(name)));
        let Some(allowed) = &self.allowed else {
            return Ok((real, missing));
        };
        if below_any(&real, allowed) {
            Ok((real, missing))
        } else if below_any(&full, allowed) {
            // Nothing is made, not even for a moment, above what is allowed.
            let message = format!(
                "the directory of the setting connectors.local_roots above {} is not there",
                self.shown()
            );
            Err(ConnectorError::new(ErrorKind::Missing, message))
        } else {
            Err(self.refused())
        }
    }

    fn refused(&self) -> ConnectorError {
        let path = self.shown();
        let message = match self.allowed.as_deref() {
            None | Some([]) => format!(
                "this server allows no directories for local connectors; to use {path}, its operator lists it, or \
                 one above it, in the setting connectors.local_roots"
            ),
            Some(_) => format!("{path} lies below no directory of the server's setting connectors.local_roots"),
        };
        ConnectorError::new(ErrorKind::Forbidden, message)
    }

    /// Opens the directory.
    pub(super) fn open(&self) -> Result<OwnedFd> {
        let (real, missing) = self.permitted()?;
        if !missing.is_empty() {
            return Err(ConnectorError::new(
                ErrorKind::Missing,
                format!("there is no directory {}", self.shown()),
            ));
        }
        self.open_real(&real)
    }

    /// Opens the directory, which is made if it is not there.
    pub(super) fn create(&self) -> Result<OwnedFd> {
        let (real, missing) = self.permitted()?;
        let fd = self.open_real(&real)?;
        make_below(fd, &missing).map_err(|error| failed("create", &self.shown(), &error))
    }

    /// Opens a path without links. Someone may have put one there since they were resolved, so every
    /// component is opened by itself.
    fn open_real(&self, real: &Path) -> Result<OwnedFd> {
        let fail = |error: io::Error| failed("open", &self.shown(), &error);
        let mut fd = rustix::fs::open("/", DIRECTORY, Mode::empty()).map_err(|error| fail(error.into()))?;
        for part in real.components().skip(1) {
            fd = rustix::fs::openat(&fd, part.as_os_str(), DIRECTORY, Mode::empty())
                .map_err(|error| fail(error.into()))?;
        }
        Ok(fd)
    }

    /// Opens a file below the directory for reading. A link is followed if it leads to a regular file below
    /// the directory.
    pub(super) fn open_file(&self, fd: OwnedFd, components: &[Vec<u8>]) -> io::Result<File> {
        let Some((name, folders)) = components.split_last() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let parent = open_below(fd, folders)?;
        match regular(parent.as_fd(), OsStr::from_bytes(name)) {
            Err(error) if is_link(&error) => {
                let resolved = self.link_target(components).ok_or(error)?;
                let fd = self.open().map_err(|error| io::Error::other(error.to_string()))?;
                let Some((name, folders)) = resolved.split_last() else {
                    return Err(io::ErrorKind::IsADirectory.into());
                };
                regular(open_below(fd, folders)?.as_fd(), OsStr::from_bytes(name))
            }
            result => result,
        }
    }

    /// Where below the directory a link leads; `None` when it leads out of it or nowhere.
    pub(super) fn link_target(&self, components: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
        let base = self.path.canonicalize().ok()?;
        let link = components
            .iter()
            .fold(base.clone(), |path, name| path.join(OsStr::from_bytes(name)));
        let target = link.canonicalize().ok()?;
        let below = target.strip_prefix(&base).ok()?;
        Some(
            below
                .components()
                .map(|part| part.as_os_str().as_bytes().to_vec())
                .collect(),
        )
    }
}

fn below_any(path: &Path, allowed: &[PathBuf]) -> bool {
    allowed
        .iter()
        .any(|root| path.starts_with(root.canonicalize().unwrap_or_else(|_| root.clone())))
}

/// Opens folders below a directory, following no link.
pub(super) fn open_below(mut fd: OwnedFd, folders: &[Vec<u8>]) -> io::Result<OwnedFd> {
    for name in folders {
        fd = rustix::fs::openat(&fd, OsStr::from_bytes(name), DIRECTORY, Mode::empty())?;
    }
    Ok(fd)
}

/// Opens folders below a directory, following no link and making those that are not there.
pub(super) fn make_below(mut fd: OwnedFd, folders: &[Vec<u8>]) -> io::Result<OwnedFd> {
    for name in folders {
        let name = OsStr::from_bytes(name);
        match rustix::fs::mkdirat(&fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        fd = rustix::fs::openat(&fd, name, DIRECTORY, Mode::empty())?;
    }
    Ok(fd)
}

/// Opens a regular file of a directory for reading. Not blocking, or a pipe would hold the thread for ever.
fn regular(directory: impl AsFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    // Looked at first: opening a device can itself have effects.
    let stat = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(rustix::io::Errno::LOOP.into()),
        FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
    let file = File::from(rustix::fs::openat(&directory, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}
