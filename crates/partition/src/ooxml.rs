//! What the Office Open XML formats (ECMA-376, ISO/IEC 29500) share: the ZIP container within limits,
//! relationships, XML trees, tables, charts and diagrams.

pub(crate) mod chart;
pub(crate) mod diagram;
pub(crate) mod math;
pub(crate) mod number;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod xml;

use std::collections::HashMap;
use std::io::{Cursor, Read};

use docmill_model::ElementType;
use docmill_model::limits::ParseLimits;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::PartitionError;
use xml::{Node, Ns};

/// First bytes of an OLE compound file, which holds a password-protected document or a legacy one.
const OLE_MAGIC: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// An open package: reads parts by name and counts what they inflate to.
pub(crate) struct Package<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Member index by part name, in lower case as part names compare without case.
    index: HashMap<String, usize>,
    format: &'static str,
    max_expanded: u64,
    expanded: u64,
    max_depth: u32,
}

/// A relationship of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relationship {
    pub(crate) id: String,
    /// Last segment of the relationship type, such as `slideLayout`.
    pub(crate) kind: String,
    /// Name of the target part, or the address when external.
    pub(crate) target: String,
    pub(crate) external: bool,
}

/// The relationships of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relationships {
    items: Vec<Relationship>,
    by_id: HashMap<String, usize>,
}

impl Relationships {
    /// The relationship with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&Relationship> {
        self.by_id.get(id).and_then(|&i| self.items.get(i))
    }

    /// The part an id points to.
    pub(crate) fn part(&self, id: &str) -> Option<&str> {
        self.get(id).filter(|r| !r.external).map(|r| r.target.as_str())
    }

    /// The parts of a kind, in file order.
    pub(crate) fn of_kind<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s str> {
        self.items
            .iter()
            .filter(move |r| !r.external && r.kind == kind)
            .map(|r| r.target.as_str())
    }

    /// The first part of a kind.
    pub(crate) fn first(&self, kind: &str) -> Option<&str> {
        self.items
            .iter()
            .find(|r| !r.external && r.kind == kind)
            .map(|r| r.target.as_str())
    }
}

impl<'a> Package<'a> {
    /// Opens the container. `format` names it in errors.
    pub(crate) fn open(bytes: &'a [u8], format: &'static str, limits: &ParseLimits) -> Result<Self, PartitionError> {
        if bytes.is_empty() {
            return Err(PartitionError::Empty(format));
        }
        if bytes.starts_with(OLE_MAGIC) {
            return Err(ole_error(bytes, format));
        }
        if declared_entries(bytes) > limits.max_archive_entries {
            return Err(too_many_entries(limits));
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|e| zip_error(format, "the ZIP container", &e))?;
        if zip.len() as u64 > limits.max_archive_entries {
            return Err(too_many_entries(limits));
        }
        let mut index = HashMap::new();
        for i in 0..zip.len() {
            if let Some(Ok(name)) = zip.name_for_index(i) {
                index.insert(part_key(&name), i);
            }
        }
        Ok(Self {
            zip,
            index,
            format,
            max_expanded: limits.max_expanded_bytes,
            expanded: 0,
            max_depth: limits.max_depth,
        })
    }

    /// The greatest XML nesting depth allowed.
    pub(crate) fn max_depth(&self) -> u32 {
        self.max_depth
    }

    /// The text of a part, decoded to UTF-8; `None` when there is no such part.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, PartitionError> {
        let Some(&i) = self.index.get(&part_key(name)) else {
            return Ok(None);
        };
        let limit = || PartitionError::limit("max_expanded_bytes", self.max_expanded, "bytes after decompression");
        let left = self.max_expanded.saturating_sub(self.expanded);
        let mut member = self.zip.by_index(i).map_err(|e| zip_error(self.format, name, &e))?;
        // What the header declares may be a lie, but a lie in this direction is refused at no cost.
        if member.size() > left {
            return Err(limit());
        }
        let mut bytes = Vec::new();
        let read = (&mut member).take(left.saturating_add(1)).read_to_end(&mut bytes);
        self.expanded = self.expanded.saturating_add(bytes.len() as u64);
        if self.expanded > self.max_expanded {
            return Err(limit());
        }
        read.map_err(|e| PartitionError::corrupt(self.format, format_args!("{name}: {e}")))?;
        Ok(Some(decode(bytes)))
    }

    /// The root element of an XML part; `None` when there is no such part.
    pub(crate) fn xml(&mut self, name: &str) -> Result<Option<Node>, PartitionError> {
        match self.text(name)? {
            Some(text) => xml::parse(&text, self.format, name, self.max_depth).map(Some),
            None => Ok(None),
        }
    }

    /// The relationships of a part; `""` is the package itself.
    pub(crate) fn relationships(&mut self, part: &str) -> Result<Relationships, PartitionError> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let separator = if folder.is_empty() { "" } else { "/" };
        let Some(root) = self.xml(&format!("{folder}{separator}_rels/{file}.rels"))? else {
            return Ok(Relationships::default());
        };
        let mut result = Relationships::default();
        for node in root.elements().filter(|n| &*n.name == "Relationship") {
            let (Some(id), Some(target)) = (node.attr("Id"), node.attr("Target")) else {
                continue;
            };
            let external = node.attr("TargetMode") == Some("External");
            let kind = node.attr("Type").and_then(|t| t.rsplit('/').next()).unwrap_or_default();
            result.by_id.insert(id.to_owned(), result.items.len());
            result.items.push(Relationship {
                id: id.to_owned(),
                kind: kind.to_owned(),
                target: if external {
                    target.to_owned()
                } else {
                    resolve(folder, target)
                },
                external,
            });
        }
        Ok(result)
    }

    /// Name of the main part: by the package's relationships, else by content type, else `usual`.
    pub(crate) fn main_part(&mut self, usual: &str) -> Result<String, PartitionError> {
        let relationships = self.relationships("")?;
        if let Some(part) = relationships.first("officeDocument")
            && self.index.contains_key(&part_key(part))
        {
            return Ok(part.to_owned());
        }
        if let Some(types) = self.xml("[Content_Types].xml")? {
            let named = types
                .elements()
                .filter(|n| n.attr("ContentType").is_some_and(|t| t.ends_with(".main+xml")))
                .filter_map(|n| n.attr("PartName"))
                .find(|name| self.index.contains_key(&part_key(name)));
            if let Some(name) = named {
                return Ok(name.trim_start_matches('/').to_owned());
            }
        }
        if self.index.contains_key(&part_key(usual)) {
            return Ok(usual.to_owned());
        }
        Err(PartitionError::corrupt(
            self.format,
            format_args!("its main part `{usual}` is missing"),
        ))
    }
}

fn too_many_entries(limits: &ParseLimits) -> PartitionError {
    PartitionError::limit(
        "max_archive_entries",
        limits.max_archive_entries,
        "members in the archive",
    )
}

fn part_key(name: &str) -> String {
    name.replace('\\', "/").trim_start_matches('/').to_lowercase()
}

/// A relationship target relative to a folder, as a part name.
fn resolve(folder: &str, target: &str) -> String {
    let target = target.split('#').next().unwrap_or_default().replace('\\', "/");
    let mut segments: Vec<&str> = match target.starts_with('/') {
        true => Vec::new(),
        false => folder.split('/').filter(|s| !s.is_empty()).collect(),
    };
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    segments.join("/")
}

fn ole_error(bytes: &[u8], format: &'static str) -> PartitionError {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if bytes.windows(name.len()).any(|window| window == name) {
        PartitionError::Encrypted(format)
    } else {
        PartitionError::corrupt(
            format,
            "it is an OLE container, as the older binary Office formats are, not a ZIP container",
        )
    }
}

fn zip_error(format: &'static str, what: &str, error: &ZipError) -> PartitionError {
    match error {
        ZipError::UnsupportedArchive(m) if *m == ZipError::PASSWORD_REQUIRED => PartitionError::Encrypted(format),
        ZipError::InvalidPassword => PartitionError::Encrypted(format),
        other => PartitionError::corrupt(format, format_args!("{what}: {other}")),
    }
}

/// Number of members that the end record of the central directory declares; 0 when there is none.
/// Read ahead of the archive library, which builds a record in memory for each.
fn declared_entries(bytes: &[u8]) -> u64 {
    let tail = &bytes[bytes.len().saturating_sub(66_000)..];
    let Some(at) = tail.windows(4).rposition(|w| w == b"PK\x05\x06") else {
        return 0;
    };
    let number = |from: usize, len: usize, of: &[u8]| -> u64 {
        of.get(from..from.saturating_add(len))
            .map_or(0, |b| b.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    };
    match number(at + 10, 2, tail) {
        0xFFFF => tail[..at]
            .windows(4)
            .rposition(|w| w == b"PK\x06\x06")
            .map_or(0xFFFF, |at64| number(at64 + 32, 8, tail)),
        entries => entries,
    }
}

/// Bytes of an XML part as text: by byte order mark, else UTF-8, else by the encoding it declares.
fn decode(bytes: Vec<u8>) -> String {
    if let Some((encoding, skip)) = encoding_rs::Encoding::for_bom(&bytes) {
        if encoding != encoding_rs::UTF_8 {
            return encoding.decode_without_bom_handling(&bytes[skip..]).0.into_owned();
        }
        return String::from_utf8_lossy(&bytes[skip..]).into_owned();
    }
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let bytes = error.into_bytes();
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
        let label = head
            .split_once("encoding=")
            .and_then(|(_, rest)| rest.get(1..)?.split(['"', '\'']).next());
        match label.and_then(|l| encoding_rs::Encoding::for_label(l.as_bytes())) {
            Some(encoding) => encoding.decode(&bytes).0.into_owned(),
            None => String::from_utf8_lossy(&bytes).into_owned(),
        }
    })
}

/// The text of a DrawingML text body (`a:p` elements below `node`), one string per paragraph.
pub(crate) fn drawing_paragraphs(node: &Node) -> Vec<String> {
    let mut paragraphs = Vec::new();
    node.walk(&mut |n| {
        if !n.is(Ns::A, "p") {
            return true;
        }
        let text = drawing_text(n);
        if !text.trim().is_empty() {
            paragraphs.push(text.trim().to_owned());
        }
        false
    });
    paragraphs
}

/// The text of a DrawingML paragraph or run; line breaks as `\n`, formulas as LaTeX.
pub(crate) fn drawing_text(paragraph: &Node) -> String {
    let mut text = String::new();
    paragraph.walk(&mut |n| {
        match (n.ns, &*n.name) {
            (Ns::A, "t") => n.push_text(&mut text),
            (Ns::A, "br") => text.push('\n'),
            (Ns::A, "tab") => text.push('\t'),
            (Ns::M, "oMath") => {
                text.push_str(&format!("${}$", math::latex(n)));
                return false;
            }
            (Ns::A, "pPr" | "rPr" | "endParaRPr") => return false,
            _ => {}
        }
        true
    });
    // Files keep some line breaks as vertical tabs.
    text.replace('\u{b}', "\n")
}

/// A comment as text: where (such as a cell, or empty), who, when, what.
pub(crate) fn comment_text(place: &str, author: &str, initials: &str, time: &str, text: &str) -> String {
    let mut out = String::from("Comment");
    if !place.is_empty() {
        out.push_str(&format!(" on {place}"));
    }
    if !author.is_empty() {
        out.push_str(&format!(" by {author}"));
    }
    if !initials.is_empty() && initials != author {
        out.push_str(&format!(" ({initials})"));
    }
    if !time.is_empty() {
        out.push_str(&format!(", {time}"));
    }
    format!("{out}: {text}")
}

/// The kind of a text whose place says it is no heading, judged by the text alone.
pub(crate) fn classify_body(text: &str) -> (ElementType, String) {
    match crate::classify::classify(text) {
        (ElementType::Title, text) => (ElementType::UncategorizedText, text),
        other => other,
    }
}

#[cfg(test)]
mod tests;
