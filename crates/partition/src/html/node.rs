//! The arena of an HTML tree.

use html5ever::tendril::StrTendril;
use html5ever::{LocalName, QualName, local_name, ns};

/// Index of a node.
pub(super) type Id = u32;

/// The index no node has.
const NONE: Id = Id::MAX;

/// What a node is.
pub(super) enum Value {
    /// The root.
    Document,
    /// An element with the attributes that matter here.
    Element {
        /// Name with namespace.
        name: QualName,
        /// Attributes kept by [`keeps_attribute`].
        attributes: Vec<(LocalName, StrTendril)>,
    },
    /// Text; adjacent texts are one node.
    Text(String),
    /// A comment or processing instruction.
    Other,
}

/// A node and its neighbours.
pub(super) struct Node {
    value: Value,
    parent: Id,
    first: Id,
    last: Id,
    previous: Id,
    next: Id,
    depth: u32,
}

impl Node {
    pub(super) fn new(value: Value) -> Self {
        Self {
            value,
            parent: NONE,
            first: NONE,
            last: NONE,
            previous: NONE,
            next: NONE,
            depth: 0,
        }
    }
}

/// A tree of nodes.
pub(super) struct Dom {
    nodes: Vec<Node>,
    /// Given as the name of nodes that have none.
    nameless: QualName,
}

impl Dom {
    pub(super) const ROOT: Id = 0;

    pub(super) fn new() -> Self {
        Self {
            nodes: vec![Node::new(Value::Document)],
            nameless: QualName::new(None, ns!(), local_name!("")),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn add(&mut self, node: Node) -> Id {
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        id
    }

    fn get(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    fn get_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id as usize)
    }

    fn link(&self, id: Id, which: impl Fn(&Node) -> Id) -> Option<Id> {
        self.get(id).map(which).filter(|id| *id != NONE)
    }

    pub(super) fn parent(&self, id: Id) -> Option<Id> {
        self.link(id, |n| n.parent)
    }

    pub(super) fn first_child(&self, id: Id) -> Option<Id> {
        self.link(id, |n| n.first)
    }

    pub(super) fn next_sibling(&self, id: Id) -> Option<Id> {
        self.link(id, |n| n.next)
    }

    pub(super) fn previous_sibling(&self, id: Id) -> Option<Id> {
        self.link(id, |n| n.previous)
    }

    /// The children in order.
    pub(super) fn children(&self, id: Id) -> impl Iterator<Item = Id> {
        std::iter::successors(self.first_child(id), |child| self.next_sibling(*child))
    }

    pub(super) fn depth(&self, id: Id) -> u32 {
        self.get(id).map_or(0, |n| n.depth)
    }

    pub(super) fn qualified_name(&self, id: Id) -> &QualName {
        match self.get(id) {
            Some(Node {
                value: Value::Element { name, .. },
                ..
            }) => name,
            _ => &self.nameless,
        }
    }

    /// Name of an element; empty for other nodes.
    pub(super) fn name(&self, id: Id) -> &str {
        &self.qualified_name(id).local
    }

    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match &self.get(id)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn attribute(&self, id: Id, wanted: &str) -> Option<&str> {
        match &self.get(id)?.value {
            Value::Element { attributes, .. } => attributes
                .iter()
                .find(|(name, _)| &**name == wanted)
                .map(|(_, value)| &**value),
            _ => None,
        }
    }

    /// The node after `id` in document order within the subtree of `top`; `into` says whether the
    /// children of `id` are visited.
    pub(super) fn following(&self, id: Id, top: Id, into: bool) -> Option<Id> {
        if into && let Some(child) = self.first_child(id) {
            return Some(child);
        }
        let mut at = id;
        while at != top {
            if let Some(next) = self.next_sibling(at) {
                return Some(next);
            }
            at = self.parent(at)?;
        }
        None
    }

    /// The nodes below `top` in document order.
    pub(super) fn descendants(&self, top: Id) -> impl Iterator<Item = Id> {
        std::iter::successors(self.first_child(top), move |id| self.following(*id, top, true))
    }

    /// All text below `top`, as it stands in the source.
    pub(super) fn raw_text(&self, top: Id) -> String {
        self.descendants(top)
            .filter_map(|id| match self.name(id) {
                "br" => Some("\n"),
                _ => self.text(id),
            })
            .collect()
    }

    pub(super) fn append(&mut self, parent: Id, child: Id, depth: u32) {
        let last = self.link(parent, |n| n.last);
        if let Some(node) = self.get_mut(child) {
            node.parent = parent;
            node.previous = last.unwrap_or(NONE);
            node.next = NONE;
            node.depth = depth;
        }
        match last.and_then(|last| self.get_mut(last)) {
            Some(last) => last.next = child,
            None => {
                if let Some(parent) = self.get_mut(parent) {
                    parent.first = child;
                }
            }
        }
        if let Some(parent) = self.get_mut(parent) {
            parent.last = child;
        }
    }

    pub(super) fn append_text(&mut self, parent: Id, text: StrTendril) {
        if let Some(last) = self.link(parent, |n| n.last)
            && self.extend_text(last, &text)
        {
            return;
        }
        let depth = self.depth(parent) + 1;
        let child = self.add(Node::new(Value::Text(text.to_string())));
        self.append(parent, child, depth);
    }

    fn extend_text(&mut self, id: Id, more: &str) -> bool {
        match self.get_mut(id) {
            Some(Node {
                value: Value::Text(text),
                ..
            }) => {
                text.push_str(more);
                true
            }
            _ => false,
        }
    }

    pub(super) fn insert_before(&mut self, sibling: Id, child: Id) {
        let (Some(parent), depth) = (self.parent(sibling), self.depth(sibling)) else {
            return;
        };
        let previous = self.previous_sibling(sibling);
        if let Some(node) = self.get_mut(child) {
            node.parent = parent;
            node.previous = previous.unwrap_or(NONE);
            node.next = sibling;
            node.depth = depth;
        }
        if let Some(node) = self.get_mut(sibling) {
            node.previous = child;
        }
        match previous.and_then(|previous| self.get_mut(previous)) {
            Some(previous) => previous.next = child,
            None => {
                if let Some(parent) = self.get_mut(parent) {
                    parent.first = child;
                }
            }
        }
    }

    pub(super) fn insert_text_before(&mut self, sibling: Id, text: StrTendril) {
        if let Some(previous) = self.previous_sibling(sibling)
            && self.extend_text(previous, &text)
        {
            return;
        }
        let child = self.add(Node::new(Value::Text(text.to_string())));
        self.insert_before(sibling, child);
    }

    /// Takes a node with its subtree out of the tree.
    pub(super) fn detach(&mut self, id: Id) {
        let Some(parent) = self.parent(id) else { return };
        let (previous, next) = (self.previous_sibling(id), self.next_sibling(id));
        match previous.and_then(|previous| self.get_mut(previous)) {
            Some(previous) => previous.next = next.unwrap_or(NONE),
            None => {
                if let Some(parent) = self.get_mut(parent) {
                    parent.first = next.unwrap_or(NONE);
                }
            }
        }
        match next.and_then(|next| self.get_mut(next)) {
            Some(next) => next.previous = previous.unwrap_or(NONE),
            None => {
                if let Some(parent) = self.get_mut(parent) {
                    parent.last = previous.unwrap_or(NONE);
                }
            }
        }
        if let Some(node) = self.get_mut(id) {
            (node.parent, node.previous, node.next) = (NONE, NONE, NONE);
        }
    }

    pub(super) fn move_children(&mut self, from: Id, to: Id) {
        let depth = self.depth(to) + 1;
        while let Some(child) = self.first_child(from) {
            self.detach(child);
            self.append(to, child, depth);
        }
    }
}

/// Whether an attribute is read anywhere here. Dropping the others bounds memory.
pub(super) fn keeps_attribute(name: &LocalName) -> bool {
    matches!(
        &**name,
        "alt"
            | "aria-hidden"
            | "aria-label"
            | "aria-level"
            | "checked"
            | "class"
            | "colspan"
            | "data-page-number"
            | "display"
            | "encoding"
            | "hidden"
            | "href"
            | "open"
            | "role"
            | "rowspan"
            | "selected"
            | "src"
            | "style"
            | "title"
            | "type"
            | "value"
    )
}

/// Elements without content.
pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements whose content is no markup: without their start tag it would be read as such.
pub(super) fn is_raw_text(name: &str) -> bool {
    matches!(
        name,
        "iframe"
            | "noembed"
            | "noframes"
            | "noscript"
            | "plaintext"
            | "script"
            | "style"
            | "textarea"
            | "title"
            | "xmp"
    )
}
