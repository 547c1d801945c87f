//! A directory that gets one JSON file a document.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::root::{Root, make_below, open_below};
use super::{OWN_PREFIX, blocking, failed};
use crate::{Destination, Document, Result, object_name};

/// Two checks at once don't share a file.
static CHECKS: AtomicU64 = AtomicU64::new(0);

pub(super) struct LocalDestination {
    pub(super) root: Root,
}

#[async_trait]
impl Destination for LocalDestination {
    async fn check(&self) -> Result<()> {
        let root = self.root.clone();
        blocking(move || {
            // A directory that is not there yet is made by the first document; what is above it must be writable.
            let (there, _) = root.permitted()?;
            let directory = Root::new(there, None).open()?;
            let number = CHECKS.fetch_add(1, Ordering::Relaxed);
            let probe = format!("{OWN_PREFIX}check-{}-{number}", std::process::id());
            write_new(&directory, &probe, b"")
                .and_then(|()| remove(&directory, OsStr::new(&probe)))
                .map_err(|error| failed("write in", &root.shown(), &error))
        })
        .await
    }

    async fn put(&self, document: &Document) -> Result<()> {
        let root = self.root.clone();
        let key = object_name(&document.record_id, &document.name);
        // One name a document, so that a crash leaves at most one such file, which the next try removes.
        let temporary = format!("{OWN_PREFIX}{}.tmp", document.record_id);
        let elements = document.elements.clone();
        blocking(move || {
            let parts = parts(&key);
            let fail = |error| failed("write", &format!("{}/{key}", root.shown()), &error);
            let Some((name, folders)) = parts.split_last() else {
                return Err(fail(io::ErrorKind::InvalidInput.into()));
            };
            let mut tries = 0;
            loop {
                let written = make_below(root.create()?, folders)
                    .and_then(|folder| replace(&folder, &temporary, OsStr::from_bytes(name), &elements));
                match written {
                    // A folder that became empty by a deletion was removed just now.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 5 => tries += 1,
                    result => return result.map_err(fail),
                }
            }
        })
        .await
    }

    async fn delete(&self, record_id: &str, name: &str) -> Result<()> {
        let root = self.root.clone();
        let key = object_name(record_id, name);
        blocking(move || {
            let (_, missing) = root.permitted()?;
            if !missing.is_empty() {
                return Ok(());
            }
            let parts = parts(&key);
            delete_below(&root.open()?, &parts)
                .map_err(|error| failed("delete", &format!("{}/{key}", root.shown()), &error))
        })
        .await
    }
}

fn parts(key: &str) -> Vec<Vec<u8>> {
    key.split('/').map(|part| part.as_bytes().to_vec()).collect()
}

/// Writes a file that nobody sees before it is whole and on the disk.
fn replace(folder: &OwnedFd, temporary: &str, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let result = write_new(folder, temporary, bytes)
        .and_then(|()| rustix::fs::renameat(folder, temporary, folder, name).map_err(io::Error::from))
        .and_then(|()| rustix::fs::fsync(folder).map_err(io::Error::from));
    if result.is_err() {
        // Best effort: the next try removes it as well.
        let _ = remove(folder, OsStr::new(temporary));
    }
    result
}

/// Writes a file of docmill's own; one that a crash left behind is removed first.
fn write_new(folder: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    remove(folder, OsStr::new(name))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes a file; one that is not there is no error.
fn remove(folder: impl AsFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes a file and the folders that are empty without it.
fn delete_below(root: &OwnedFd, parts: &[Vec<u8>]) -> io::Result<()> {
    let Some((name, folders)) = parts.split_last() else {
        return Ok(());
    };
    match open_below(root.try_clone()?, folders) {
        Ok(folder) => remove(folder, OsStr::from_bytes(name))?,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(()),
        Err(error) => return Err(error),
    }
    for depth in (0..folders.len()).rev() {
        let (Some(above), Some(name)) = (folders.get(..depth), folders.get(depth)) else {
            break;
        };
        // Somebody else may be removing the same folders.
        let parent = match open_below(root.try_clone()?, above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            parent => parent?,
        };
        match rustix::fs::unlinkat(parent, OsStr::from_bytes(name), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::BUSY) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
