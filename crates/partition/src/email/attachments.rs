//! Attachments: partitioned when they can be, named in a warning when not.

use std::sync::Arc;

use docmill_model::{Document, Warning, WarningCode};
use mail_parser::{Message, MessagePart, MimeHeaders, PartType};

use super::mime_type;
use crate::context::Context;
use crate::error::PartitionError;
use crate::filetype::FileType;
use crate::{Input, partition_embedded};

/// Mails within mails that are followed. Recursion is bounded by this.
const MAX_LEVEL: u32 = 8;

pub(super) fn read(message: &Message, cx: &mut Context) -> Result<(), PartitionError> {
    for (index, id) in message.attachments.iter().enumerate() {
        let Some(part) = message.parts.get(*id as usize) else {
            continue;
        };
        let kind = mime_type(part);
        if is_signature(&kind) || part.is_empty() {
            continue;
        }
        let name = name_of(part, index);
        if cx.level >= MAX_LEVEL {
            skip(cx, &name, &format!("mails are nested deeper than {MAX_LEVEL} levels"));
            continue;
        }
        let result = match &part.body {
            PartType::Message(inner) => nested(inner, &name, cx),
            _ => file(part, &name, kind, cx),
        };
        match result {
            Ok(document) => append(document, cx)?,
            Err(error) => skip(cx, &name, &error.to_string()),
        }
    }
    Ok(())
}

/// Signatures and version notes of signed or encrypted mail, which nobody reads.
fn is_signature(kind: &str) -> bool {
    matches!(
        kind,
        "application/pkcs7-signature"
            | "application/x-pkcs7-signature"
            | "application/pgp-signature"
            | "application/pgp-encrypted"
            | "application/pgp-keys"
    )
}

fn name_of(part: &MessagePart, index: usize) -> String {
    let given = part.attachment_name().map(base_name).filter(|name| !name.is_empty());
    match (given, &part.body) {
        (Some(name), _) => name.to_owned(),
        (None, PartType::Message(_)) => format!("message-{}.eml", index + 1),
        (None, PartType::Html(_)) => format!("attachment-{}.html", index + 1),
        (None, PartType::Text(_)) => format!("attachment-{}.txt", index + 1),
        (None, _) => format!("attachment-{}", index + 1),
    }
}

/// Senders write whole paths; only the last part is a name.
fn base_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default().trim()
}

fn skip(cx: &mut Context, name: &str, reason: &str) {
    cx.warn(Warning::new(
        WarningCode::AttachmentSkipped,
        format!("attachment `{name}` was not read: {reason}"),
    ));
}

/// A file of any type. What the text of a part was decoded from is gone, so such a part is handed on
/// as UTF-8.
fn file(part: &MessagePart, name: &str, kind: String, cx: &mut Context) -> Result<Document, PartitionError> {
    let input = Input {
        bytes: Arc::new(part.contents().to_vec()),
        filename: Some(name.to_owned()),
        content_type: (!kind.is_empty()).then_some(kind),
    };
    partition_embedded(&input, cx)
}

/// A message that came as a part, not as an encoded file.
fn nested(message: &Message, name: &str, cx: &mut Context) -> Result<Document, PartitionError> {
    let mut inner = cx.embedded(Some(name));
    super::read(message, &mut inner)?;
    let mut document = inner.into_document();
    for element in &mut document.elements {
        let metadata = &mut element.metadata;
        metadata.filename.get_or_insert_with(|| name.to_owned());
        metadata.filetype.get_or_insert_with(|| FileType::Eml.mime().to_owned());
    }
    Ok(document)
}

fn append(document: Document, cx: &mut Context) -> Result<(), PartitionError> {
    let outer = cx.filename.map(str::to_owned);
    for mut element in document.elements {
        if element.metadata.attached_to_filename.is_none() {
            element.metadata.attached_to_filename.clone_from(&outer);
        }
        cx.push(element)?;
    }
    document.warnings.into_iter().for_each(|warning| cx.warn(warning));
    Ok(())
}
