//! XML parts as small trees: bounded depth and size, namespaces resolved, no DTD, no entities but the
//! five of XML itself.

use std::collections::HashSet;
use std::rc::Rc;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use crate::error::PartitionError;

/// Elements one tree may have. A tree is one part, or one block of a document's body; each element
/// takes some hundred bytes of memory whatever it took in the file.
const MAX_TREE_ELEMENTS: u64 = 4_000_000;
/// Nesting depth beyond which trees are refused whatever the setting, as functions recurse over them.
const MAX_TREE_DEPTH: u32 = 512;

/// Namespaces that readers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ns {
    /// WordprocessingML.
    W,
    /// DrawingML.
    A,
    /// PresentationML.
    P,
    /// Office Math.
    M,
    /// Charts.
    C,
    /// Diagrams (SmartArt).
    Dgm,
    /// Relationship references.
    R,
    /// Markup compatibility.
    Mc,
    /// Any other.
    Other,
}

impl Ns {
    fn of(resolved: &ResolveResult) -> Self {
        let ResolveResult::Bound(Namespace(uri)) = resolved else {
            return Self::Other;
        };
        // The second form is that of ISO/IEC 29500 Strict.
        match *uri {
            "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
            | "http://purl.oclc.org/ooxml/wordprocessingml/main" => Self::W,
            "http://schemas.openxmlformats.org/drawingml/2006/main" | "http://purl.oclc.org/ooxml/drawingml/main" => {
                Self::A
            }
            "http://schemas.openxmlformats.org/presentationml/2006/main"
            | "http://purl.oclc.org/ooxml/presentationml/main" => Self::P,
            "http://schemas.openxmlformats.org/officeDocument/2006/math"
            | "http://purl.oclc.org/ooxml/officeDocument/math" => Self::M,
            "http://schemas.openxmlformats.org/drawingml/2006/chart" | "http://purl.oclc.org/ooxml/drawingml/chart" => {
                Self::C
            }
            "http://schemas.openxmlformats.org/drawingml/2006/diagram"
            | "http://purl.oclc.org/ooxml/drawingml/diagram" => Self::Dgm,
            "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
            | "http://purl.oclc.org/ooxml/officeDocument/relationships" => Self::R,
            "http://schemas.openxmlformats.org/markup-compatibility/2006" => Self::Mc,
            _ => Self::Other,
        }
    }
}

/// An element.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) ns: Ns,
    /// Local name.
    pub(crate) name: Rc<str>,
    attrs: Vec<Attr>,
    pub(crate) children: Vec<Child>,
}

#[derive(Debug)]
struct Attr {
    /// Whether it stands in the namespace of relationship references.
    reference: bool,
    name: Rc<str>,
    value: Box<str>,
}

/// What an element holds.
#[derive(Debug)]
pub(crate) enum Child {
    Element(Node),
    Text(Box<str>),
}

impl Node {
    pub(crate) fn is(&self, ns: Ns, name: &str) -> bool {
        self.ns == ns && &*self.name == name
    }

    /// The value of an attribute by local name, other than a relationship reference.
    pub(crate) fn attr(&self, name: &str) -> Option<&str> {
        let mut attrs = self.attrs.iter();
        attrs.find(|a| !a.reference && &*a.name == name).map(|a| &*a.value)
    }

    /// The value of a relationship reference (`r:id`, `r:embed`, ...).
    pub(crate) fn reference(&self, name: &str) -> Option<&str> {
        let mut attrs = self.attrs.iter();
        attrs.find(|a| a.reference && &*a.name == name).map(|a| &*a.value)
    }

    /// The child elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &Node> {
        self.children.iter().filter_map(|child| match child {
            Child::Element(node) => Some(node),
            Child::Text(_) => None,
        })
    }

    /// The first child element with this name.
    pub(crate) fn child(&self, ns: Ns, name: &str) -> Option<&Node> {
        self.elements().find(|n| n.is(ns, name))
    }

    /// The element at the end of a path of child names within one namespace.
    pub(crate) fn path(&self, ns: Ns, names: &[&str]) -> Option<&Node> {
        let mut node = self;
        for name in names {
            node = node.child(ns, name)?;
        }
        Some(node)
    }

    /// Visits this element and those below in document order; `visit` says whether to go deeper.
    pub(crate) fn walk<'n>(&'n self, visit: &mut dyn FnMut(&'n Node) -> bool) {
        let mut open: Vec<&Node> = vec![self];
        while let Some(node) = open.pop() {
            if visit(node) {
                let at = open.len();
                open.extend(node.elements());
                open[at..].reverse();
            }
        }
    }

    /// Appends the text directly inside.
    pub(crate) fn push_text(&self, to: &mut String) {
        for child in &self.children {
            if let Child::Text(text) = child {
                to.push_str(text);
            }
        }
    }

    /// The text directly inside.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.push_text(&mut text);
        text
    }

    fn push_child(&mut self, child: Child) {
        // Most elements have one child, for which a list would otherwise reserve room for four.
        if self.children.is_empty() {
            self.children.reserve_exact(1);
        }
        self.children.push(child);
    }

    /// Of the alternatives of `mc:AlternateContent` keeps one: the first choice that holds something,
    /// else the fallback. Both show the same, so reading both would repeat it.
    fn choose_alternative(&mut self) {
        let elements = |child: &Child| match child {
            Child::Element(n) => n.elements().next().is_some(),
            Child::Text(_) => false,
        };
        if let Some(chosen) = self.children.iter().position(elements) {
            self.children.truncate(chosen + 1);
            self.children.drain(..chosen);
        }
    }
}

/// A token of an XML part.
pub(crate) enum Token {
    /// A start tag, with attributes and without children.
    Start(Node),
    /// The end of an element; an empty element gives a start and an end.
    End,
    Text(String),
    Eof,
}

/// Reads a part token by token or subtree by subtree.
pub(crate) struct XmlReader<'a> {
    reader: NsReader<&'a [u8]>,
    names: HashSet<Rc<str>>,
    format: &'static str,
    part: &'a str,
    max_depth: u32,
    depth: u32,
}

impl<'a> XmlReader<'a> {
    pub(crate) fn new(text: &'a str, format: &'static str, part: &'a str, max_depth: u32) -> Self {
        let mut reader = NsReader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            names: HashSet::new(),
            format,
            part,
            max_depth: max_depth.min(MAX_TREE_DEPTH),
            depth: 0,
        }
    }

    /// The next token.
    pub(crate) fn token(&mut self) -> Result<Token, PartitionError> {
        loop {
            let (resolved, event) = match self.reader.read_resolved_event() {
                Ok(pair) => pair,
                Err(error) => {
                    let at = self.reader.error_position();
                    return Err(self.corrupt(format_args!("{error} at byte {at}")));
                }
            };
            match event {
                Event::Start(start) => {
                    let ns = Ns::of(&resolved);
                    return self.start(ns, &start).map(Token::Start);
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(Token::End);
                }
                Event::Text(text) => return Ok(Token::Text(text.xml10_content().into_owned())),
                Event::CData(text) => return Ok(Token::Text(text.xml10_content().into_owned())),
                Event::GeneralRef(reference) => return self.resolve(&reference).map(Token::Text),
                Event::DocType(_) => return Err(self.corrupt("document type declarations are not allowed")),
                Event::Eof if self.depth > 0 => return Err(self.corrupt("it ends in the middle of an element")),
                Event::Eof => return Ok(Token::Eof),
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }

    /// The rest of an element whose start tag was just read, with all that is in it.
    pub(crate) fn subtree(&mut self, start: Node) -> Result<Node, PartitionError> {
        let mut open = Vec::new();
        let mut node = start;
        let mut elements = 0u64;
        loop {
            if elements > MAX_TREE_ELEMENTS {
                return Err(self.corrupt(format_args!("more than {MAX_TREE_ELEMENTS} XML nodes in one block")));
            }
            match self.token()? {
                Token::Start(child) => {
                    elements += 1;
                    open.push(std::mem::replace(&mut node, child));
                }
                Token::Text(text) => {
                    elements += 1;
                    node.push_child(Child::Text(text.into()));
                }
                Token::End => {
                    if node.is(Ns::Mc, "AlternateContent") {
                        node.choose_alternative();
                    }
                    match open.pop() {
                        Some(parent) => {
                            let child = std::mem::replace(&mut node, parent);
                            node.push_child(Child::Element(child));
                        }
                        None => return Ok(node),
                    }
                }
                Token::Eof => return Err(self.corrupt("it ends in the middle of an element")),
            }
        }
    }

    /// Skips the rest of an element whose start tag was just read.
    pub(crate) fn skip(&mut self) -> Result<(), PartitionError> {
        let mut inside = 1u64;
        while inside > 0 {
            match self.reader.read_event() {
                Ok(Event::Start(_)) => inside += 1,
                Ok(Event::End(_)) => inside -= 1,
                Ok(Event::Eof) => return Err(self.corrupt("it ends in the middle of an element")),
                Ok(_) => {}
                Err(error) => return Err(self.corrupt(error)),
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn corrupt(&self, reason: impl std::fmt::Display) -> PartitionError {
        PartitionError::corrupt(self.format, format_args!("{}: {reason}", self.part))
    }

    fn start(&mut self, ns: Ns, start: &BytesStart) -> Result<Node, PartitionError> {
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(PartitionError::limit(
                "max_depth",
                self.max_depth.into(),
                "nested XML elements",
            ));
        }
        let name = intern(&mut self.names, start.local_name().into_inner());
        let mut attrs = Vec::new();
        for attr in start.attributes().with_checks(false) {
            let attr = attr.map_err(|e| self.corrupt(e))?;
            if attr.key.as_namespace_binding().is_some() {
                continue;
            }
            let reference =
                attr.key.prefix().is_some() && Ns::of(&self.reader.resolver().resolve_attribute(attr.key).0) == Ns::R;
            // A value with references that mean nothing is kept as it stands.
            let value = attr.normalized_value(XmlVersion::Explicit1_0);
            let value = value.unwrap_or_else(|_| attr.value.clone());
            if attrs.is_empty() {
                attrs.reserve_exact(1);
            }
            attrs.push(Attr {
                reference,
                name: intern(&mut self.names, attr.key.local_name().into_inner()),
                value: value.into(),
            });
        }
        Ok(Node {
            ns,
            name,
            attrs,
            children: Vec::new(),
        })
    }

    fn resolve(&self, reference: &BytesRef) -> Result<String, PartitionError> {
        resolve_reference(reference).ok_or_else(|| self.corrupt("it uses an entity that XML does not define"))
    }
}

/// The text a character or entity reference stands for; `None` for entities that XML does not define.
/// Numbers that are no character, which some programs write, give U+FFFD.
pub(crate) fn resolve_reference(reference: &BytesRef) -> Option<String> {
    if reference.is_char_ref() {
        let character = reference.resolve_char_ref().ok().flatten();
        return Some(character.unwrap_or(char::REPLACEMENT_CHARACTER).to_string());
    }
    quick_xml::escape::resolve_xml_entity(reference).map(str::to_owned)
}

fn intern(names: &mut HashSet<Rc<str>>, name: &str) -> Rc<str> {
    if let Some(known) = names.get(name) {
        return known.clone();
    }
    let name: Rc<str> = name.into();
    // Hostile files can invent a name per element; those need no sharing.
    if names.len() < 4096 {
        names.insert(name.clone());
    }
    name
}

/// The root element of a part.
pub(crate) fn parse(text: &str, format: &'static str, part: &str, max_depth: u32) -> Result<Node, PartitionError> {
    let mut reader = XmlReader::new(text, format, part, max_depth);
    loop {
        match reader.token()? {
            Token::Start(start) => return reader.subtree(start),
            Token::Eof => {
                return Err(PartitionError::corrupt(
                    format,
                    format_args!("{part}: it holds no XML element"),
                ));
            }
            Token::End | Token::Text(_) => {}
        }
    }
}
