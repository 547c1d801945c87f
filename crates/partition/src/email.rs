//! Reader of mail messages (RFC 5322, MIME).
//!
//! The body becomes elements, its HTML form before its plain one, by the rules of those formats;
//! header fields become metadata. Attachments of a type docmill reads follow, each element naming
//! the mail in `attached_to_filename`; any other attachment, and one that fails, is a warning, so
//! an attachment never costs the mail.

mod attachments;
mod headers;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use docmill_model::{Warning, WarningCode};
use mail_parser::{Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::context::Context;
use crate::error::PartitionError;
use crate::{charset, html, text};

/// Part types that make the parser nest messages.
const NESTING_TYPES: [&[u8]; 3] = [b"message/rfc822", b"message/global", b"multipart/digest"];

pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    check_nesting(bytes, cx)?;
    let message = parse(bytes)?
        .filter(|message| message.parts.first().is_some_and(|part| !part.headers.is_empty()))
        .ok_or_else(|| PartitionError::corrupt("EML", "there are no header fields"))?;
    read(&message, cx)
}

/// Parses the MIME structure. The parser asserts its own invariants in builds with debug assertions,
/// and malformed messages break some of them: those end as an error too.
fn parse(bytes: &[u8]) -> Result<Option<Message<'_>>, PartitionError> {
    std::panic::catch_unwind(|| MessageParser::default().parse(bytes))
        .map_err(|_| PartitionError::corrupt("EML", "its MIME structure is broken"))
}

/// Messages within messages are nested values, whose end costs stack: more of them than the depth
/// limit are refused unread, whether or not they stand side by side.
fn check_nesting(bytes: &[u8], cx: &Context) -> Result<(), PartitionError> {
    let limit = cx.limits.max_depth;
    let nesting = (0..bytes.len())
        .filter(|at| matches!(bytes[*at], b'm' | b'M'))
        .filter(|at| {
            NESTING_TYPES.iter().any(|name| {
                bytes[*at..]
                    .get(..name.len())
                    .is_some_and(|s| s.eq_ignore_ascii_case(name))
            })
        })
        .take(limit as usize + 1)
        .count();
    if nesting > limit as usize {
        return Err(PartitionError::limit(
            "max_depth",
            limit.into(),
            "messages within a message",
        ));
    }
    Ok(())
}

/// Adds the elements of a message: body, then attachments.
fn read(message: &Message, cx: &mut Context) -> Result<(), PartitionError> {
    let start = cx.elements().len();
    let encrypted = warn_if_encrypted(message, cx);
    if !encrypted {
        body(message, cx)?;
    }
    let fields = headers::metadata(message);
    for element in cx.elements_mut().iter_mut().skip(start) {
        headers::apply(&fields, &mut element.metadata);
    }
    if encrypted {
        return Ok(());
    }
    attachments::read(message, cx)
}

/// The HTML body, else the plain one.
fn body(message: &Message, cx: &mut Context) -> Result<(), PartitionError> {
    let start = cx.elements().len();
    body_parts(message, &message.html_body, cx)?;
    if cx.elements().len() == start {
        body_parts(message, &message.text_body, cx)?;
    }
    Ok(())
}

fn body_parts(message: &Message, ids: &[u32], cx: &mut Context) -> Result<(), PartitionError> {
    for part in ids.iter().filter_map(|id| message.parts.get(*id as usize)) {
        match &part.body {
            PartType::Html(markup) => html::partition_str(&repaired(message, part, markup), cx)?,
            PartType::Text(plain) if plain.trim_start().starts_with("-----BEGIN PGP MESSAGE-----") => {
                cx.warn(Warning::new(
                    WarningCode::PartUnreadable,
                    "the mail's text is encrypted with PGP and was not read",
                ));
            }
            PartType::Text(plain) => text::partition_str(&repaired(message, part, plain), cx)?,
            _ => {}
        }
        if part.is_encoding_problem {
            cx.warn(Warning::new(
                WarningCode::EncodingReplaced,
                "a text part of the mail has a broken transfer encoding",
            ));
        }
    }
    Ok(())
}

/// A part's text; when characters were lost because it is unencoded 8-bit text without a (true)
/// charset, it is decoded again from the source by guessing.
fn repaired<'a>(message: &'a Message, part: &MessagePart, text: &'a str) -> Cow<'a, str> {
    let source = message
        .raw_message
        .get(part.offset_body as usize..part.offset_end as usize)
        .filter(|_| part.encoding == Encoding::None && text.contains(char::REPLACEMENT_CHARACTER));
    match source {
        Some(source) => charset::decode(source, None).text,
        None => Cow::Borrowed(text),
    }
}

/// The MIME type of a part as `type/subtype`, lower case; empty when it declares none.
fn mime_type(part: &MessagePart) -> String {
    match part.content_type() {
        Some(value) => format!("{}/{}", value.ctype(), value.subtype().unwrap_or_default()).to_ascii_lowercase(),
        None => String::new(),
    }
}

/// Warns when the message is encrypted, or signed such that its text is sealed in.
fn warn_if_encrypted(message: &Message, cx: &mut Context) -> bool {
    let Some(part) = message.parts.first() else {
        return false;
    };
    let what = match mime_type(part).as_str() {
        "multipart/encrypted" => "the mail is encrypted with PGP/MIME",
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => {
            let kind = part.content_type().and_then(|value| value.attribute("smime-type"));
            match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
                "signed-data" => "the mail's text is sealed in an S/MIME signature",
                "compressed-data" => "the mail's text is compressed by S/MIME",
                _ => "the mail is encrypted with S/MIME",
            }
        }
        _ => return false,
    };
    cx.warn(Warning::new(
        WarningCode::PartUnreadable,
        format!("{what}: only its header fields could be read"),
    ));
    true
}
