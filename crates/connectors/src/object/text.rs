//! Percent-encoding and XML answers.

use std::fmt::Write as _;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::{ConnectorError, ErrorKind, Result};

/// Deepest nesting of an answer that is read.
const DEEPEST: usize = 32;

/// Percent-encodes what RFC 3986 does not call unreserved, except the characters of `keep`.
pub(super) fn encode(text: &str, keep: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.as_bytes().contains(&byte);
        if plain {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Takes percent-encoding back, and `+` for a blank where `form` says so.
pub(super) fn decode(text: &str, form: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let value = digit(rest.next())? * 16 + digit(rest.next())?;
                bytes.push(u8::try_from(value).ok()?);
            }
            b'+' if form => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A query string of names and values.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name, ""), encode(value, "")))
        .collect();
    pairs.join("&")
}

/// The path of an object's key below its bucket. A `.` or `..` between slashes would be taken for a step
/// within the path, so the slashes of such a key are encoded.
pub(super) fn key_path(key: &str) -> String {
    let steps = key.split('/').any(|part| matches!(part, "." | ".."));
    encode(key, if steps { "" } else { "/" })
}

/// An element of an XML answer that has ended.
pub(super) struct Ended<'a> {
    /// Its name and those around it, outermost first, without namespaces.
    pub(super) path: &'a [String],
    /// The text in it.
    pub(super) text: &'a str,
    /// Whether it has the attribute `Encoded="true"`: its text is percent-encoded.
    pub(super) encoded: bool,
}

/// Tells of every element as it ends.
pub(super) fn walk(xml: &[u8], mut ended: impl FnMut(Ended<'_>) -> Result<()>) -> Result<()> {
    // Azure begins its answers with a byte-order mark.
    let mut reader = Reader::from_reader(xml.strip_prefix(b"\xef\xbb\xbf").unwrap_or(xml));
    let mut path: Vec<String> = Vec::new();
    let (mut text, mut encoded) = (String::new(), false);
    loop {
        match reader.read_event().map_err(|error| nonsense(&error.to_string()))? {
            Event::Start(start) => {
                if path.len() >= DEEPEST {
                    return Err(nonsense("too many levels"));
                }
                path.push(name(&start));
                text.clear();
                encoded = is_encoded(&start);
            }
            Event::Empty(start) => {
                path.push(name(&start));
                let there = Ended {
                    path: &path,
                    text: "",
                    encoded: false,
                };
                ended(there)?;
                path.pop();
                text.clear();
            }
            Event::End(_) => {
                let there = Ended {
                    path: &path,
                    text: &text,
                    encoded,
                };
                ended(there)?;
                path.pop();
                text.clear();
                encoded = false;
            }
            Event::Text(piece) => text.push_str(&piece.xml10_content()),
            Event::CData(piece) => text.push_str(&piece.xml10_content()),
            Event::GeneralRef(reference) => text.push(character(&reference)?),
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err(nonsense("it ends in the middle")),
            _ => {}
        }
    }
}

fn name(start: &BytesStart<'_>) -> String {
    start.local_name().as_ref().to_owned()
}

fn is_encoded(start: &BytesStart<'_>) -> bool {
    let attribute = start.try_get_attribute("Encoded").ok().flatten();
    attribute.is_some_and(|attribute| attribute.value.as_ref() == "true")
}

fn character(reference: &quick_xml::events::BytesRef<'_>) -> Result<char> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Ok(character);
    }
    match reference.as_ref() {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        _ => Err(nonsense("it holds an unknown reference")),
    }
}

fn nonsense(why: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Unexpected, format!("the answer is no readable XML: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_is_taken_back() {
        for text in ["", "a b/c", "%2F+&=?#", "ä\u{1f600}\n\0"] {
            assert_eq!(decode(&encode(text, ""), false).as_deref(), Some(text));
            assert_eq!(decode(&encode(text, "/"), true).as_deref(), Some(text));
        }
        assert_eq!(encode("a/b~é", "/"), "a/b~%C3%A9");
        assert_eq!(decode("a+b", true).as_deref(), Some("a b"));
        for wrong in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(wrong, false), None, "{wrong}");
        }
        assert_eq!(key_path("a/../b"), "a%2F..%2Fb");
        assert_eq!(key_path("a//b.c"), "a//b.c");
    }

    #[test]
    fn xml_is_read_with_references_and_without_panic() {
        let mut seen = Vec::new();
        let xml = b"<?xml version=\"1.0\"?><r xmlns=\"x\"><k>a&amp;b&#10;c<![CDATA[<]]></k><e/><n Encoded=\"true\">%01</n></r>";
        walk(xml, |there| {
            seen.push((there.path.join("/"), there.text.to_owned(), there.encoded));
            Ok(())
        })
        .unwrap();
        let seen: Vec<_> = seen
            .iter()
            .map(|(path, text, on)| (path.as_str(), text.as_str(), *on))
            .collect();
        assert_eq!(
            seen,
            [
                ("r/k", "a&b\nc<", false),
                ("r/e", "", false),
                ("r/n", "%01", true),
                ("r", "", false)
            ]
        );
        for wrong in ["<a>", "<a><b></a>", "<a>&nope;</a>", &"<a>".repeat(100), "<a", "\u{0}"] {
            let _ = walk(wrong.as_bytes(), |_| Ok(()));
        }
        assert!(walk(b"<a>", |_| Ok(())).is_err());
    }
}
