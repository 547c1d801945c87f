//! Footnotes, endnotes and comments: text that stands in parts of its own.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::ooxml::xml::{Node, Ns};

/// The notes of one part by id. Each is handed out once, however often a file refers to it.
#[derive(Default)]
pub(super) struct Notes {
    by_id: HashMap<String, Node>,
}

impl Notes {
    /// Takes the notes out of a part's root; `name` is the element of one.
    pub(super) fn read(root: Node, name: &str) -> Self {
        let mut notes = Self::default();
        for child in root.children {
            if let crate::ooxml::xml::Child::Element(node) = child
                && node.is(Ns::W, name)
                // Separator lines are kept among the notes.
                && matches!(node.attr("type"), None | Some("normal"))
                && let Some(id) = node.attr("id").map(str::to_owned)
            {
                notes.by_id.insert(id, node);
            }
        }
        notes
    }

    pub(super) fn take(&mut self, id: &str) -> Option<Node> {
        self.by_id.remove(id)
    }
}

/// A comment as it is written to metadata.
pub(super) fn comment_value(comment: &Node, text: String) -> Value {
    let mut value = Map::new();
    for (key, attr) in [("author", "author"), ("initials", "initials"), ("date", "date")] {
        if let Some(found) = comment.attr(attr).filter(|v| !v.is_empty()) {
            value.insert(key.to_owned(), json!(found));
        }
    }
    value.insert("text".to_owned(), json!(text));
    Value::Object(value)
}
