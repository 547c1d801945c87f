//! Going through a directory tree in order, holding the names of one directory a level.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use docmill_model::connector::SourceObject;
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use serde_json::json;

use super::root::{Kind, Root, open_below};
use super::{OWN_PREFIX, failed, locator};
use crate::Result;

/// Deepest folder that is read: each level holds a file descriptor.
const DEEPEST: usize = 128;

/// The names of a directory, in one piece of memory: a directory of a million files costs its names'
/// bytes and eight more each.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    spans: Vec<(u32, u32)>,
}

impl Names {
    fn read(directory: &OwnedFd) -> io::Result<Self> {
        let mut names = Self::default();
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || name.starts_with(OWN_PREFIX.as_bytes()) {
                continue;
            }
            let too_many = || io::Error::other("the directory holds more names than can be listed");
            let start = u32::try_from(names.bytes.len()).map_err(|_| too_many())?;
            let end = u32::try_from(names.bytes.len() + name.len()).map_err(|_| too_many())?;
            names.bytes.extend_from_slice(name);
            names.spans.push((start, end));
        }
        let bytes = &names.bytes;
        names.spans.sort_unstable_by_key(|span| slice(bytes, *span));
        Ok(names)
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        self.spans.get(index).map(|span| slice(&self.bytes, *span))
    }

    /// Index of the first name that is not less than `name`.
    fn first_from(&self, name: &[u8]) -> usize {
        self.spans.partition_point(|span| slice(&self.bytes, *span) < name)
    }
}

fn slice(bytes: &[u8], (start, end): (u32, u32)) -> &[u8] {
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

struct Level {
    directory: OwnedFd,
    names: Names,
    next: usize,
    /// What of the starting point lies in this directory.
    after: Vec<Vec<u8>>,
}

/// A walk in ascending order of paths, compared component by component.
pub(super) struct Walk {
    root: Root,
    recursive: bool,
    levels: Vec<Level>,
    /// Components of the directory that is being read.
    path: Vec<Vec<u8>>,
}

impl Walk {
    /// A walk over what comes after the path `after`; all for an empty one.
    pub(super) fn new(root: Root, recursive: bool, after: Vec<Vec<u8>>) -> Result<Self> {
        let directory = root.open()?;
        let level = Level::new(directory, after).map_err(|error| failed("read", &root.shown(), &error))?;
        Ok(Self {
            root,
            recursive,
            levels: vec![level],
            path: Vec::new(),
        })
    }

    /// The next files, at most `limit`; none at the end.
    pub(super) fn page(&mut self, limit: usize) -> Result<Vec<SourceObject>> {
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(level) = self.levels.last_mut() else { break };
            let Some(name) = level.names.get(level.next).map(<[u8]>::to_vec) else {
                self.levels.pop();
                self.path.pop();
                continue;
            };
            level.next += 1;
            if let Some(object) = self.visit(name)? {
                found.push(object);
            }
        }
        Ok(found)
    }

    /// Looks at a name: a file is returned, a folder is what is read next.
    fn visit(&mut self, name: Vec<u8>) -> Result<Option<SourceObject>> {
        let Some(level) = self.levels.last() else {
            return Ok(None);
        };
        let on_the_way = level.after.first().is_some_and(|first| *first == name);
        self.path.push(name);
        let object = match self.look() {
            Ok((Kind::File, stat)) if !(on_the_way) => Some(object(&self.path, &stat)),
            Ok((Kind::Directory, _)) if self.recursive => {
                self.descend(on_the_way)?;
                return Ok(None);
            }
            Ok((Kind::Link, _)) if !on_the_way => self.linked(),
            Ok((Kind::Special, _)) => {
                self.skipped("it is a device, socket or pipe");
                None
            }
            Ok(_) => None,
            // What is gone since the directory was read was not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.skipped(&error.to_string());
                None
            }
        };
        self.path.pop();
        Ok(object)
    }

    /// What the last component of the path is.
    fn look(&self) -> io::Result<(Kind, Stat)> {
        let (Some(level), Some(name)) = (self.levels.last(), self.path.last()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let stat = rustix::fs::statat(
            level.directory.as_fd(),
            OsStr::from_bytes(name),
            AtFlags::SYMLINK_NOFOLLOW,
        )?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Special,
        };
        Ok((kind, stat))
    }

    /// Goes on in the folder the path names.
    fn descend(&mut self, on_the_way: bool) -> Result<()> {
        let (Some(level), Some(name)) = (self.levels.last(), self.path.last()) else {
            return Ok(());
        };
        let after = if on_the_way {
            level.after.iter().skip(1).cloned().collect()
        } else {
            Vec::new()
        };
        if self.levels.len() >= DEEPEST {
            self.skipped("it lies too deep");
            self.path.pop();
            return Ok(());
        }
        let opened = level
            .directory
            .try_clone()
            .and_then(|directory| open_below(directory, std::slice::from_ref(name)))
            .and_then(|directory| Level::new(directory, after));
        match opened {
            Ok(level) => self.levels.push(level),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.path.pop();
            }
            // Leaving out a folder could pass for its files having been deleted.
            Err(error) => {
                let folder = format!("{}/{}", self.root.shown(), locator::display(&self.path));
                return Err(failed("read", &folder, &error));
            }
        }
        Ok(())
    }

    /// The file a link leads to, under the link's name.
    fn linked(&self) -> Option<SourceObject> {
        if self.root.link_target(&self.path).is_none() {
            self.skipped("the link leads out of the directory, or nowhere");
            return None;
        }
        let stat = self.root.open().ok().and_then(|directory| {
            let file = self.root.open_file(directory, &self.path).ok()?;
            rustix::fs::fstat(file).ok()
        });
        if stat.is_none() {
            self.skipped("the link leads to no file that can be read");
        }
        stat.map(|stat| object(&self.path, &stat))
    }

    fn skipped(&self, reason: &str) {
        let mut shown = String::new();
        self.path.iter().for_each(|name| locator::push(&mut shown, name));
        tracing::warn!(directory = %self.root.shown(), file = %shown, reason, "not listed");
    }
}

impl Level {
    fn new(directory: OwnedFd, after: Vec<Vec<u8>>) -> io::Result<Self> {
        let names = Names::read(&directory)?;
        let next = after.first().map_or(0, |name| names.first_from(name));
        Ok(Self {
            directory,
            names,
            next,
            after,
        })
    }
}

/// A file as the source tells of it.
fn object(path: &[Vec<u8>], stat: &Stat) -> SourceObject {
    let mut place = String::new();
    path.iter().for_each(|name| locator::push(&mut place, name));
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let version = format!("{size}-{}.{:09}", stat.st_mtime, stat.st_mtime_nsec);
    let data_source = json!({
        "version": version,
        "record_locator": {"path": place},
        "date_modified": stat.st_mtime.to_string(),
        "permissions_data": [{"mode": stat.st_mode}],
    });
    SourceObject {
        locator: place,
        name: locator::display(path),
        size: Some(size),
        version: Some(version),
        content_type: None,
        data_source,
    }
}
