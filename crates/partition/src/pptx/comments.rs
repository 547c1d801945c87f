//! Comments on slides, of the older and of the threaded kind.

use std::collections::HashMap;

use crate::error::PartitionError;
use crate::ooxml::xml::Node;
use crate::ooxml::{Package, Relationships, comment_text, drawing_paragraphs};

/// Authors of comments by id: name and initials.
pub(super) type Authors = HashMap<String, (String, String)>;

/// The authors a presentation lists.
pub(super) fn authors(package: &mut Package, relationships: &Relationships) -> Result<Authors, PartitionError> {
    let mut authors = Authors::new();
    for kind in ["commentAuthors", "authors"] {
        let Some(part) = relationships.first(kind) else {
            continue;
        };
        let root = match package.xml(part) {
            Err(PartitionError::Corrupt { .. }) => None,
            other => other?,
        };
        for node in root.iter().flat_map(Node::elements) {
            let get = |name: &str| node.attr(name).unwrap_or_default().to_owned();
            authors.insert(get("id"), (get("name"), get("initials")));
        }
    }
    Ok(authors)
}

/// The comments of a part, replies after what they reply to.
pub(super) fn texts(root: &Node, authors: &Authors) -> Vec<String> {
    let mut texts = Vec::new();
    root.walk(&mut |node| {
        if matches!(&*node.name, "cm" | "reply") {
            let body = node.elements().find(|n| matches!(&*n.name, "text" | "txBody"));
            let text = match body {
                Some(body) if &*body.name == "text" => body.text(),
                Some(body) => drawing_paragraphs(body).join("\n"),
                None => String::new(),
            };
            let unknown = (String::new(), String::new());
            let (name, initials) = node.attr("authorId").and_then(|id| authors.get(id)).unwrap_or(&unknown);
            let time = node.attr("dt").or(node.attr("created")).unwrap_or_default();
            if !text.trim().is_empty() {
                texts.push(comment_text("", name, initials, time, text.trim()));
            }
        }
        true
    });
    texts
}
