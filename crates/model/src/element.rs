//! Document elements: what a partitioner emits and every later node reads and writes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::metadata::Metadata;

/// One element of a document. Serialises with the keys `type, element_id, text, metadata` and, only
/// when there is a vector, `embeddings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// What the element is.
    #[serde(rename = "type")]
    pub kind: ElementType,
    /// Identifier, unique in the document; empty until [`assign_element_ids`] ran.
    #[serde(default)]
    pub element_id: String,
    /// The text. For a table the cell texts, joined by single spaces in reading order.
    #[serde(default)]
    pub text: String,
    /// Everything else known about the element.
    #[serde(default)]
    pub metadata: Metadata,
    /// The embedding vector, when an embed node has run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embeddings: Vec<f32>,
}

impl Element {
    /// An element without id and with empty metadata.
    pub fn new(kind: ElementType, text: impl Into<String>) -> Self {
        Self {
            kind,
            element_id: String::new(),
            text: text.into(),
            metadata: Metadata::default(),
            embeddings: Vec::new(),
        }
    }

    /// The same element at heading or list depth `depth` (0 is the top).
    pub fn with_depth(mut self, depth: u32) -> Self {
        self.metadata.category_depth = Some(depth);
        self
    }

    /// The same element on page `number` (the first page is 1).
    pub fn on_page(mut self, number: u32) -> Self {
        self.metadata.page_number = Some(number);
        self
    }
}

macro_rules! element_types {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The kinds of element docmill emits. Closed: a new kind is a compile-time visit to every `match`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ElementType { $($(#[$doc])* $name),+ }

        impl ElementType {
            /// Every kind.
            pub const ALL: &'static [ElementType] = &[$(ElementType::$name),+];

            /// The name used on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(ElementType::$name => stringify!($name)),+ }
            }
        }
    };
}

element_types! {
    /// A heading or document title; `category_depth` is its level, 0 at the top.
    Title,
    /// Running prose.
    NarrativeText,
    /// Text of no more special kind.
    UncategorizedText,
    /// One item of a list.
    ListItem,
    /// A table; `text_as_html` holds its structure.
    Table,
    /// A picture.
    Image,
    /// The caption of a picture or table.
    FigureCaption,
    /// A mathematical formula.
    Formula,
    /// A running page header.
    Header,
    /// A running page footer.
    Footer,
    /// The border between two pages; has no text.
    PageBreak,
    /// A printed page number.
    PageNumber,
    /// A postal address.
    Address,
    /// An e-mail address standing alone.
    EmailAddress,
    /// Program code or preformatted text; its white space is significant.
    CodeSnippet,
    /// A form.
    Form,
    /// Keys and values of a form.
    FormKeysValues,
    /// A check box.
    CheckBox,
    /// Data extracted from the whole document.
    DocumentData,
    /// A chunk made of one or more text elements.
    CompositeElement,
    /// A chunk holding part of a table.
    TableChunk,
}

impl ElementType {
    /// Whether the element is a table or a part of one.
    pub fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::TableChunk)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no element type.
#[derive(Debug, thiserror::Error)]
#[error("unknown element type `{0}`")]
pub struct UnknownElementType(pub String);

impl FromStr for ElementType {
    type Err = UnknownElementType;

    /// Takes the wire names, and the labels of layout models that map to one of them
    /// (`Section-header` is a `Title`, `Picture` an `Image`, ...).
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some(kind) = Self::ALL.iter().find(|kind| kind.as_str() == name) {
            return Ok(*kind);
        }
        Ok(match name {
            "Section-header" | "Headline" | "Subheadline" | "Field-Name" => Self::Title,
            "Text" => Self::UncategorizedText,
            "Paragraph" | "Abstract" | "Threading" | "Link" | "Value" => Self::NarrativeText,
            "List" | "List-item" | "BulletedText" => Self::ListItem,
            "Page-header" => Self::Header,
            "Page-footer" | "Footnote" => Self::Footer,
            "Caption" => Self::FigureCaption,
            "Figure" | "Picture" => Self::Image,
            "Checked"
            | "Unchecked"
            | "CheckBoxChecked"
            | "CheckBoxUnchecked"
            | "RadioButtonChecked"
            | "RadioButtonUnchecked" => Self::CheckBox,
            _ => return Err(UnknownElementType(name.to_owned())),
        })
    }
}

/// Gives every element its deterministic id: the first 32 hexadecimal digits of
/// `SHA-256(filename + text + page_number + sequence)`, plain concatenation, where an absent file
/// name or page number is the text `None` and `sequence` counts from 0 within one page number.
pub fn assign_element_ids(elements: &mut [Element]) {
    let mut sequence_on_page = std::collections::HashMap::<Option<u32>, u64>::new();
    for element in elements {
        let page = element.metadata.page_number;
        let sequence = sequence_on_page.entry(page).or_default();
        element.element_id = element_id(element.metadata.filename.as_deref(), &element.text, page, *sequence);
        *sequence += 1;
    }
}

fn element_id(filename: Option<&str>, text: &str, page: Option<u32>, sequence: u64) -> String {
    let mut hash = Sha256::new();
    hash.update(filename.unwrap_or("None"));
    hash.update(text);
    match page {
        Some(page) => hash.update(page.to_string()),
        None => hash.update("None"),
    }
    hash.update(sequence.to_string());
    hex::encode(&hash.finalize()[..16])
}

/// Replaces every id by one in UUID form that is unique to `scope` (a file id, say) as well as in the
/// document. The same scope and content give the same ids again, so a repeated run can be compared
/// with, and can replace, an earlier one. `parent_id`s follow.
pub fn make_ids_unique(elements: &mut [Element], scope: &str) {
    let unique = |id: &str| {
        let digest = Sha256::new_with_prefix(scope).chain_update(id).finalize();
        let mut bytes = [0u8; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    };
    for element in elements {
        element.element_id = unique(&element.element_id);
        if let Some(parent) = &mut element.metadata.parent_id {
            *parent = unique(parent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_matches_the_reference_value() {
        let mut element = Element::new(ElementType::NarrativeText, "Hello");
        element.metadata.filename = Some("doc.txt".into());
        let mut elements = [element];
        assign_element_ids(&mut elements);
        assert_eq!(elements[0].element_id, "4a56ad792987eba2dc07159e63797936");
    }

    #[test]
    fn sequence_counts_within_a_page() {
        let text = |page| Element::new(ElementType::NarrativeText, "same").on_page(page);
        let mut elements = [text(1), text(2), text(1)];
        assign_element_ids(&mut elements);
        assert_eq!(elements[0].element_id, element_id(None, "same", Some(1), 0));
        assert_eq!(elements[1].element_id, element_id(None, "same", Some(2), 0));
        assert_eq!(elements[2].element_id, element_id(None, "same", Some(1), 1));
    }

    #[test]
    fn unique_ids_are_uuids_that_differ_by_scope_and_keep_parents() {
        let mut elements = [
            Element::new(ElementType::Title, "A"),
            Element::new(ElementType::NarrativeText, "b"),
        ];
        assign_element_ids(&mut elements);
        elements[1].metadata.parent_id = Some(elements[0].element_id.clone());
        let mut other = elements.clone();
        make_ids_unique(&mut elements, "one");
        make_ids_unique(&mut other, "two");
        assert!(uuid::Uuid::try_parse(&elements[0].element_id).is_ok());
        assert_eq!(elements[1].metadata.parent_id.as_ref(), Some(&elements[0].element_id));
        assert_ne!(elements[0].element_id, other[0].element_id);
    }

    #[test]
    fn serialises_in_wire_order_and_sparse() {
        let element = Element::new(ElementType::Title, "Hi");
        assert_eq!(
            serde_json::to_string(&element).unwrap(),
            r#"{"type":"Title","element_id":"","text":"Hi","metadata":{}}"#
        );
    }
}
