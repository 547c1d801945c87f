//! Connectors: where files come from and where elements go.
//!
//! A connector type is one module with a table of its settings ([`Field`]s, from which come validation,
//! JSON Schema, masking of secrets and documentation) and functions that open it as a [`Source`], a
//! [`Destination`] or both. [`TYPES`] lists them; nothing else has to change for a new one.

mod config;
mod elsewhere;
mod error;
mod http;
mod local;
mod object;
mod postgres;
mod qdrant;
mod rows;
mod search;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_egress::Egress;
use docmill_model::connector::{ConnectorRole, SourceObject};
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};

pub use config::{Field, FieldKind, MASK, schema, unmask, validate};
pub use elsewhere::{known_elsewhere, unavailable};
pub use error::{ConnectorError, ErrorKind, Result};

/// Where files come from. Every method may be called from several tasks at once.
#[async_trait]
pub trait Source: Send + Sync {
    /// Whether the source can be reached and read with these settings.
    async fn check(&self) -> Result<()>;

    /// The objects there are, in ascending order of what [`SourceObject::locator`] compares like in this
    /// source, one page in memory at a time.
    ///
    /// With `after`, only those that come after that locator: how a listing goes on after a restart. A
    /// source that can't start in the middle lists all; the caller drops what it has.
    fn list(&self, after: Option<String>) -> BoxStream<'_, Result<SourceObject>>;

    /// The bytes of an object, at most `max_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for more bytes, [`ErrorKind::Missing`] when the object is gone.
    async fn fetch(&self, object: &SourceObject, max_bytes: u64) -> Result<Bytes>;
}

/// A document's elements on their way to a destination.
#[derive(Clone, Debug)]
pub struct Document {
    /// Names the document at every destination, over all runs: 64 hexadecimal characters.
    pub record_id: String,
    /// Name of the file with `/` between folders; [`object_name`] makes an object key of it.
    pub name: String,
    /// A JSON array of elements.
    pub elements: Bytes,
}

/// Where elements go. Every method may be called from several tasks at once, though never twice at once
/// for one document, and may be called again for what was done already.
#[async_trait]
pub trait Destination: Send + Sync {
    /// Whether the destination can be reached and written with these settings; leaves nothing behind.
    async fn check(&self) -> Result<()>;

    /// Makes the destination hold exactly this version of the document: its elements are written under
    /// deterministic ids, and what an earlier version left beyond them is removed.
    async fn put(&self, document: &Document) -> Result<()>;

    /// Removes a document; one that is not there is no error. `name` is as in [`Document::name`].
    async fn delete(&self, record_id: &str, name: &str) -> Result<()>;
}

/// What connectors may use of the machine they run on.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The way out.
    pub egress: Egress,
    /// Directories the `local` connector may touch (setting `connectors.local_roots`); `None`: all.
    pub local_roots: Option<Vec<PathBuf>>,
    /// Whether connectors may use the credentials of the machine they run on (setting
    /// `connectors.allow_ambient_credentials`).
    pub ambient_credentials: bool,
}

/// A connector type.
#[derive(Clone, Copy, Debug)]
pub struct ConnectorType {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it connects to, one sentence.
    pub description: &'static str,
    /// As a source.
    pub source: Option<Opener<dyn Source>>,
    /// As a destination.
    pub destination: Option<Opener<dyn Destination>>,
}

/// How a connector type is opened in one role.
pub struct Opener<T: ?Sized + 'static> {
    /// Its settings.
    pub fields: &'static [Field],
    /// Opens it; the settings have been validated against `fields` and hold every default.
    pub open: fn(&Environment, &Map<String, Value>) -> Result<Arc<T>>,
}

impl<T: ?Sized> Clone for Opener<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for Opener<T> {}

impl<T: ?Sized> std::fmt::Debug for Opener<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener")
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

/// Every connector type there is.
pub const TYPES: &[ConnectorType] = &[
    local::TYPE,
    object::s3::TYPE,
    object::azure::TYPE,
    object::gcs::TYPE,
    postgres::TYPE,
    search::ELASTICSEARCH,
    search::OPENSEARCH,
    qdrant::TYPE,
];

/// The connector type of this name in this role.
pub fn find(role: ConnectorRole, name: &str) -> Option<&'static ConnectorType> {
    TYPES
        .iter()
        .find(|kind| kind.name == name && kind.fields(role).is_some())
}

impl ConnectorType {
    /// Its settings in a role; `None` when it does not have that role.
    pub fn fields(&self, role: ConnectorRole) -> Option<&'static [Field]> {
        match role {
            ConnectorRole::Source => self.source.map(|opener| opener.fields),
            ConnectorRole::Destination => self.destination.map(|opener| opener.fields),
        }
    }
}

/// Opens a source whose settings were validated. Connects to nothing yet.
pub fn open_source(environment: &Environment, kind: &str, config: &Map<String, Value>) -> Result<Arc<dyn Source>> {
    match find(ConnectorRole::Source, kind).and_then(|kind| kind.source) {
        Some(opener) => (opener.open)(environment, config),
        None => Err(unknown(ConnectorRole::Source, kind)),
    }
}

/// Opens a destination whose settings were validated. Connects to nothing yet.
pub fn open_destination(
    environment: &Environment,
    kind: &str,
    config: &Map<String, Value>,
) -> Result<Arc<dyn Destination>> {
    match find(ConnectorRole::Destination, kind).and_then(|kind| kind.destination) {
        Some(opener) => (opener.open)(environment, config),
        None => Err(unknown(ConnectorRole::Destination, kind)),
    }
}

fn unknown(role: ConnectorRole, kind: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Invalid, elsewhere::unavailable(role, kind))
}

/// The key, below a destination's root, of the object that holds a document's elements: the document's
/// name made harmless, with `.json` added. No component is `.`, `..` or empty, none holds a control
/// character, `\` or `:`, and the whole has at most 900 bytes. Names that had to be changed, that stand for
/// bytes that are no text, or that look like names with an id get the first 16 characters of the record id
/// added: two names never become one object.
pub fn object_name(record_id: &str, name: &str) -> String {
    const LONGEST: usize = 900;
    let harmless =
        |c: char| !(c.is_control() || matches!(c, '\\' | ':' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    let parts: Vec<String> = name
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | ".."))
        .map(|part| part.chars().map(|c| if harmless(c) { c } else { '_' }).collect())
        .collect();
    let clean = parts.join("/");
    let changed = clean.is_empty()
        || clean != name
        || clean.contains(char::REPLACEMENT_CHARACTER)
        || ends_with_id(&clean)
        || parts.iter().any(|part: &String| part.len() > 240)
        || clean.len() + 5 > LONGEST;
    if !changed {
        return format!("{clean}.json");
    }
    let id = short_id(record_id);
    let mut short: Vec<String> = parts.iter().map(|part| cut(part, 200).to_owned()).collect();
    while short.len() > 1 && short.join("/").len() > LONGEST - 25 {
        short.remove(0);
    }
    let joined = short.join("/");
    match joined.strip_suffix(&format!("-{id}")) {
        // It is there already.
        Some(_) => format!("{joined}.json"),
        None if joined.is_empty() => format!("{id}.json"),
        None => format!("{joined}-{id}.json"),
    }
}

/// A document's name that is its own even where others have documents of the same name: [`object_name`]
/// makes of it what it makes of a name that had to be changed.
pub fn name_with_id(record_id: &str, name: &str) -> String {
    format!("{name}-{}", short_id(record_id))
}

/// What of a record id stands in names.
fn short_id(record_id: &str) -> &str {
    cut(record_id, 16)
}

/// Whether a name could be one that got an id.
fn ends_with_id(name: &str) -> bool {
    let end = name.rsplit(['-', '/']).next().unwrap_or_default();
    end.len() == 16 && end.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
}

/// The longest prefix of at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names_stay_below_the_root() {
        let id = "0123456789abcdef0123";
        assert_eq!(object_name(id, "a/b.pdf"), "a/b.pdf.json");
        assert_eq!(object_name(id, "../../etc/passwd"), "etc/passwd-0123456789abcdef.json");
        assert_eq!(object_name(id, ""), "0123456789abcdef.json");
        assert_eq!(object_name(id, "C:\\x\0"), "C__x_-0123456789abcdef.json");
        let long = object_name(id, &format!("{}/ä{}", "d/".repeat(900), "ß".repeat(2_000)));
        assert!(
            long.len() <= 900 && long.split('/').all(|part| part.len() <= 240),
            "{long}"
        );
    }

    #[test]
    fn two_names_never_become_one_object() {
        let (one, other) = ("0123456789abcdef0123", "fedcba98765432100123");
        // What a source can't tell in text it tells with replacement characters.
        assert_ne!(object_name(one, "a\u{fffd}"), object_name(other, "a\u{fffd}"));
        // Names with an id differ from every name that another document has of itself.
        let named = object_name(one, &name_with_id(one, "d/a.pdf"));
        assert_eq!(named, "d/a.pdf-0123456789abcdef.json");
        assert_ne!(object_name(other, "d/a.pdf-0123456789abcdef"), named);
        assert_ne!(object_name(other, "0123456789abcdef"), object_name(one, ""));
        assert_eq!(
            object_name(one, &name_with_id(one, "d//a:b")),
            "d/a_b-0123456789abcdef.json"
        );
        let long = object_name(one, &name_with_id(one, &"x".repeat(300)));
        assert!(long.len() <= 240 && long.contains("0123456789abcdef"), "{long}");
        assert_eq!(object_name(one, "a-b.pdf"), "a-b.pdf.json");
    }
}
