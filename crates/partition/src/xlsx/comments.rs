//! Comments on cells: notes, and threaded comments with their replies.

use std::collections::{HashMap, HashSet};

use crate::ooxml::comment_text;
use crate::ooxml::xml::Node;

/// Names of people by id, from a `person` part.
pub(super) fn persons(root: &Node) -> HashMap<String, String> {
    let person = |n: &Node| Some((n.attr("id")?.to_owned(), n.attr("displayName")?.to_owned()));
    root.elements().filter_map(person).collect()
}

/// The texts of a `threadedComments` part; the cells they stand on are added to `cells`.
pub(super) fn threaded(root: &Node, persons: &HashMap<String, String>, cells: &mut HashSet<String>) -> Vec<String> {
    let mut texts = Vec::new();
    for node in root.elements() {
        let place = node.attr("ref").unwrap_or_default();
        let Some(text) = node.elements().find(|n| &*n.name == "text").map(Node::text) else {
            continue;
        };
        let author = node
            .attr("personId")
            .and_then(|id| persons.get(id))
            .map_or("", String::as_str);
        cells.insert(place.to_owned());
        let time = node.attr("dT").unwrap_or_default();
        texts.push(comment_text(place, author, "", time, text.trim()));
    }
    texts
}

/// The texts of a `comments` part but for those on `cells`, where a thread says the same.
pub(super) fn notes(root: &Node, cells: &HashSet<String>) -> Vec<String> {
    let section = |name: &'static str| {
        let found = root.elements().filter(move |n| &*n.name == name);
        found.flat_map(Node::elements)
    };
    let authors: Vec<String> = section("authors").map(Node::text).collect();
    let mut texts = Vec::new();
    for node in section("commentList") {
        let place = node.attr("ref").unwrap_or_default();
        if cells.contains(place) {
            continue;
        }
        let mut text = String::new();
        node.walk(&mut |n| {
            if &*n.name == "t" {
                n.push_text(&mut text);
            }
            &*n.name != "rPh"
        });
        let author: Option<usize> = node.attr("authorId").and_then(|id| id.parse().ok());
        let author = author.and_then(|a| authors.get(a)).map_or("", String::as_str);
        // Programs put the author's name in bold in front of the text.
        let text = text.trim();
        let text = text
            .strip_prefix(author)
            .and_then(|t| t.strip_prefix(':'))
            .unwrap_or(text)
            .trim();
        if !text.is_empty() {
            texts.push(comment_text(place, author, "", "", text));
        }
    }
    texts
}
