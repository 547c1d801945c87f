//! Directories of the machine docmill runs on.
//!
//! Whoever may create connectors must not thereby get at the whole disk, so a directory has to lie below
//! one of the roots the operator allows, and nothing below it is reached through a symbolic link that
//! leads out. Every file is opened component by component from the directory's descriptor, never following a
//! link, so exchanging a folder for a link at the wrong moment gains nothing either.

mod destination;
mod locator;
mod root;
mod source;
mod walk;

use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use serde_json::{Map, Value};

use self::root::Root;
use crate::config::{Field, FieldKind};
use crate::settings::{flag, text};
use crate::{ConnectorError, ConnectorType, Destination, Environment, ErrorKind, Opener, Result, Source};

const PATH: Field = Field::new(
    "path",
    FieldKind::Text,
    "Absolute path of the directory, below one of the directories of the server's setting connectors.local_roots.",
)
.required();

/// The type.
pub(crate) const TYPE: ConnectorType = ConnectorType {
    name: "local",
    description: "A directory of the machine the server runs on.",
    source: Some(Opener {
        fields: &[
            PATH,
            Field::new(
                "recursive",
                FieldKind::Bool(true),
                "Whether files in folders below the directory are read too.",
            ),
        ],
        open: open_source,
    }),
    destination: Some(Opener {
        fields: &[PATH],
        open: open_destination,
    }),
};

/// Names that begin with this are docmill's own temporary files: written by a destination, skipped by a source.
const OWN_PREFIX: &str = ".docmill-";

fn open_source(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(source::LocalSource {
        root: root(environment, config)?,
        recursive: flag(config, "recursive"),
    }))
}

fn open_destination(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    Ok(Arc::new(destination::LocalDestination {
        root: root(environment, config)?,
    }))
}

fn root(environment: &Environment, config: &Map<String, Value>) -> Result<Root> {
    let path = text(config, "path");
    let plain = Path::new(&path)
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !Path::new(&path).is_absolute() || !plain {
        return Err(ConnectorError::new(
            ErrorKind::Invalid,
            format!("path must be absolute and without `..`, `{path}` is not"),
        ));
    }
    let root = Root::new(path.into(), environment.local_roots.clone());
    root.permitted()?;
    Ok(root)
}

/// Whether an operation met a symbolic link that it doesn't follow.
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// What became of a file operation, for people.
fn failed(what: &str, path: &str, error: &io::Error) -> ConnectorError {
    let kind = match error.kind() {
        _ if is_link(error) => ErrorKind::Invalid,
        io::ErrorKind::NotFound => ErrorKind::Missing,
        io::ErrorKind::PermissionDenied => ErrorKind::Unauthorized,
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    ConnectorError::new(kind, format!("cannot {what} {path}: {error}"))
}

/// Runs file operations where they may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(ConnectorError::new(ErrorKind::Unexpected, error.to_string())))
}
