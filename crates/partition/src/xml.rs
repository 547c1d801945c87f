//! Reader of XML: the text of its elements in document order.
//!
//! No document type definition is read: entities other than the five of XML itself and character
//! references are left out with a warning, never expanded or fetched.

#[cfg(test)]
mod tests;

use docmill_model::{Element, ElementType, Warning, WarningCode};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

use crate::charset;
use crate::classify::classify;
use crate::context::Context;
use crate::error::PartitionError;

pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let declared = declared_charset(bytes);
    let text = charset::decode_file(bytes, declared.as_deref(), cx)?;
    if cx.options.xml_keep_tags {
        let text = text.trim();
        return match text.is_empty() {
            true => Ok(()),
            false => cx.push(Element::new(ElementType::UncategorizedText, text)),
        };
    }
    Walker {
        cx,
        text: String::new(),
        last: Last::Edge,
        depth: 0,
        inline: 0,
        refused: None,
    }
    .run(&text)
}

/// The charset the XML declaration names.
fn declared_charset(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
    let declaration = head.trim_start_matches('\u{feff}').strip_prefix("<?xml")?;
    let declaration = &declaration[..declaration.find("?>")?];
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let value = &value[1..];
    Some(value[..value.find(quote)?].to_owned())
}

/// What came last in the document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The start or end of an element that is a block.
    Edge,
    /// Text.
    Text,
    /// The end of an element that stands within a line of text.
    InlineEnd,
}

/// Collects the text of one block at a time.
///
/// XML does not say which elements are blocks. An element that starts right after text of its parent
/// is taken for part of that text (`see <ref>3</ref> above`), any other for a block of its own. Text
/// that follows a block's end belongs to the block before it (`<name>X</name> and more`).
struct Walker<'c, 'o> {
    cx: &'c mut Context<'o>,
    text: String,
    last: Last,
    depth: u32,
    /// Inline elements that are open.
    inline: u32,
    /// First entity that was left out.
    refused: Option<String>,
}

impl Walker<'_, '_> {
    fn run(mut self, xml: &str) -> Result<(), PartitionError> {
        let mut reader = Reader::from_str(xml);
        reader.config_mut().expand_empty_elements = true;
        reader.config_mut().allow_dangling_amp = true;
        let before = self.cx.elements().len();
        loop {
            match reader.read_event() {
                Ok(Event::Eof) => break,
                Ok(event) => self.event(event)?,
                Err(error) => {
                    let place = reader.error_position();
                    self.broken(&error, place, before)?;
                    break;
                }
            }
        }
        self.flush()?;
        if let Some(name) = self.refused {
            self.cx.warn(Warning::new(
                WarningCode::PartUnreadable,
                format!(
                    "entities declared in the document, such as `&{name};`, are not expanded: their text is missing"
                ),
            ));
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), PartitionError> {
        match event {
            Event::Start(_) => self.start(),
            Event::End(_) => self.end(),
            Event::Text(text) => {
                self.push(&text.xml10_content());
                Ok(())
            }
            Event::CData(text) => {
                self.push(&text.xml10_content());
                Ok(())
            }
            Event::GeneralRef(reference) => {
                self.reference(&reference);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self) -> Result<(), PartitionError> {
        self.depth += 1;
        if self.depth > self.cx.limits.max_depth {
            let limit = self.cx.limits.max_depth.into();
            return Err(PartitionError::limit("max_depth", limit, "levels of nesting"));
        }
        if self.last == Last::Text {
            self.inline += 1;
            return Ok(());
        }
        self.inline = 0;
        self.last = Last::Edge;
        self.flush()
    }

    fn end(&mut self) -> Result<(), PartitionError> {
        self.depth = self.depth.saturating_sub(1);
        if self.inline > 0 {
            self.inline -= 1;
            self.last = Last::InlineEnd;
            return Ok(());
        }
        if self.last == Last::Edge {
            self.flush()?;
        }
        self.last = Last::Edge;
        Ok(())
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if !text.trim().is_empty() {
            self.last = Last::Text;
        }
    }

    fn reference(&mut self, reference: &BytesRef) {
        if let Ok(Some(c)) = reference.resolve_char_ref() {
            self.push(c.encode_utf8(&mut [0; 4]));
            return;
        }
        let name = reference.xml10_content();
        match resolve_predefined_entity(&name) {
            Some(text) => self.push(text),
            None if name == "nbsp" => self.push(" "),
            None => {
                self.refused.get_or_insert_with(|| name.chars().take(40).collect());
            }
        }
    }

    fn flush(&mut self) -> Result<(), PartitionError> {
        let text = std::mem::take(&mut self.text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return Ok(());
        }
        let (kind, text) = classify(&text);
        match text.is_empty() {
            true => Ok(()),
            false => self.cx.push(Element::new(kind, text)),
        }
    }

    /// Markup that is not well-formed ends the reading: an error when there was nothing before it,
    /// else a warning.
    fn broken(&mut self, error: &quick_xml::Error, place: u64, before: usize) -> Result<(), PartitionError> {
        let reason = format!("{error} at byte {place}");
        self.flush()?;
        if self.cx.elements().len() == before {
            return Err(PartitionError::corrupt("XML", reason));
        }
        self.cx.warn(Warning::new(
            WarningCode::Truncated,
            format!("the XML is not well-formed and was read up to the fault: {reason}"),
        ));
        Ok(())
    }
}
