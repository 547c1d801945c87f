//! HTML to a tree in one arena, within bounds.
//!
//! `html5ever` does the parsing. Two things are guarded, because its cost for a tag grows with the
//! number of open elements: start tags that would nest deeper than `limits.max_depth` are left out
//! (their content stays, one level up), and the number of nodes is capped, since unclosed formatting
//! tags are copied into every later paragraph.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use docmill_model::limits::ParseLimits;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, LocalName, QualName};

use super::node::{Dom, Id, Node, Value, is_raw_text, is_void, keeps_attribute};
use crate::error::PartitionError;

/// Nodes allowed for each element a document may yield.
const NODES_PER_ELEMENT: u64 = 4;

/// Attributes one tag may have; the tokenizer compares each with all before it.
const MAX_ATTRIBUTES: usize = 2000;

/// Parses a document or fragment.
pub(super) fn parse(html: &str, limits: &ParseLimits) -> Result<Dom, PartitionError> {
    check_attributes(html)?;
    let sink = Sink::new(limits);
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let guard = Guard {
        builder: TreeBuilder::new(sink, options),
        left_out: RefCell::default(),
        max_depth: limits.max_depth.max(8),
    };
    let tokenizer = Tokenizer::new(guard, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // Feeding stops early at a script's end tag only, and goes on when called again.
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    let sink = tokenizer.sink.builder.sink;
    if sink.is_full() {
        return Err(PartitionError::limit(
            "max_elements",
            limits.max_elements,
            "elements in markup",
        ));
    }
    Ok(sink.finish())
}

/// Refuses a tag with more attributes than anybody writes.
fn check_attributes(html: &str) -> Result<(), PartitionError> {
    let bytes = html.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'<') {
        at += found + 1;
        let rest = &bytes[at..];
        if rest.starts_with(b"!--") {
            at += html[at..].find("-->").unwrap_or(rest.len());
        } else if let Some(end) = raw_text_length(&html[at..]) {
            at += end;
        } else if rest.first().is_some_and(u8::is_ascii_alphabetic) {
            at += tag_length(rest)?;
        }
    }
    Ok(())
}

/// Bytes up to the end of a script or style, whose content is no markup.
fn raw_text_length(rest: &str) -> Option<usize> {
    let close = ["script", "style"].into_iter().find_map(|name| {
        let start = rest.get(..name.len())?;
        start.eq_ignore_ascii_case(name).then_some(name)
    })?;
    let mut at = 0;
    while let Some(found) = rest[at..].find("</") {
        at += found + 2;
        if rest[at..]
            .get(..close.len())
            .is_some_and(|s| s.eq_ignore_ascii_case(close))
        {
            return Some(at);
        }
    }
    Some(rest.len())
}

fn tag_length(rest: &[u8]) -> Result<usize, PartitionError> {
    let (mut attributes, mut quote, mut before) = (0usize, None, b' ');
    for (i, byte) in rest.iter().copied().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'>' => return Ok(i),
            // A quote opens a value only after an equals sign.
            None if matches!(byte, b'"' | b'\'') && before == b'=' => quote = Some(byte),
            None if !byte.is_ascii_whitespace() && (before.is_ascii_whitespace() || before == b'/') => attributes += 1,
            None => {}
        }
        if attributes > MAX_ATTRIBUTES {
            let reason = format!("a tag has more than {MAX_ATTRIBUTES} attributes");
            return Err(PartitionError::corrupt("HTML", reason));
        }
        if !byte.is_ascii_whitespace() || before != b'=' {
            before = byte;
        }
    }
    Ok(rest.len())
}

/// Passes tokens on to the tree builder, except start tags at the depth limit and their end tags.
struct Guard {
    builder: TreeBuilder<Id, Sink>,
    left_out: RefCell<Vec<LocalName>>,
    max_depth: u32,
}

impl Guard {
    fn leaves_out(&self, tag: &Tag) -> bool {
        let mut left_out = self.left_out.borrow_mut();
        match tag.kind {
            TagKind::StartTag => {
                let deep = self.builder.sink.depth.get() >= self.max_depth;
                if !deep || is_void(&tag.name) || is_raw_text(&tag.name) {
                    return false;
                }
                if !tag.self_closing {
                    left_out.push(tag.name.clone());
                }
                true
            }
            TagKind::EndTag => left_out.pop_if(|name| *name == tag.name).is_some(),
        }
    }
}

impl TokenSink for Guard {
    type Handle = Id;

    fn process_token(&self, token: Token, line_number: u64) -> TokenSinkResult<Id> {
        if self.builder.sink.is_full() {
            return TokenSinkResult::Continue;
        }
        match &token {
            Token::TagToken(tag) if self.leaves_out(tag) => TokenSinkResult::Continue,
            Token::ParseError(_) => TokenSinkResult::Continue,
            _ => self.builder.process_token(token, line_number),
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Builds the arena.
struct Sink {
    dom: RefCell<Dom>,
    /// Depth of the element last opened or closed, near enough the number of open elements.
    depth: Cell<u32>,
    max_nodes: u64,
}

impl Sink {
    fn new(limits: &ParseLimits) -> Self {
        Self {
            dom: RefCell::new(Dom::new()),
            depth: Cell::new(0),
            max_nodes: limits
                .max_elements
                .saturating_mul(NODES_PER_ELEMENT)
                .min(u64::from(u32::MAX) - 1),
        }
    }

    fn is_full(&self) -> bool {
        self.dom.borrow().len() as u64 > self.max_nodes
    }
}

impl TreeSink for Sink {
    type Handle = Id;
    type Output = Dom;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Dom {
        self.dom.into_inner()
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Id {
        Dom::ROOT
    }

    fn elem_name<'a>(&'a self, target: &'a Id) -> Ref<'a, QualName> {
        Ref::map(self.dom.borrow(), |dom| dom.qualified_name(*target))
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _flags: ElementFlags) -> Id {
        let attributes = attributes
            .into_iter()
            .filter(|a| keeps_attribute(&a.name.local))
            .map(|a| (a.name.local, a.value))
            .collect();
        self.dom
            .borrow_mut()
            .add(Node::new(Value::Element { name, attributes }))
    }

    fn create_comment(&self, _text: StrTendril) -> Id {
        self.dom.borrow_mut().add(Node::new(Value::Other))
    }

    fn create_pi(&self, _target: StrTendril, _data: StrTendril) -> Id {
        self.dom.borrow_mut().add(Node::new(Value::Other))
    }

    fn append(&self, parent: &Id, child: NodeOrText<Id>) {
        let mut dom = self.dom.borrow_mut();
        let depth = dom.depth(*parent);
        match child {
            NodeOrText::AppendNode(child) => {
                dom.append(*parent, child, depth + 1);
                self.depth.set(depth + 1);
            }
            NodeOrText::AppendText(text) => {
                dom.append_text(*parent, text);
                self.depth.set(depth);
            }
        }
    }

    fn append_based_on_parent_node(&self, element: &Id, previous: &Id, child: NodeOrText<Id>) {
        let has_parent = self.dom.borrow().parent(*element).is_some();
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, _name: StrTendril, _public: StrTendril, _system: StrTendril) {}

    fn pop(&self, node: &Id) {
        self.depth.set(self.dom.borrow().depth(*node).saturating_sub(1));
    }

    fn get_template_contents(&self, target: &Id) -> Id {
        // Templates are never shown, so their content can hang below the element itself.
        *target
    }

    fn same_node(&self, x: &Id, y: &Id) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Id, child: NodeOrText<Id>) {
        let mut dom = self.dom.borrow_mut();
        match child {
            NodeOrText::AppendNode(child) => {
                dom.detach(child);
                dom.insert_before(*sibling, child);
            }
            NodeOrText::AppendText(text) => dom.insert_text_before(*sibling, text),
        }
    }

    fn add_attrs_if_missing(&self, _target: &Id, _attributes: Vec<Attribute>) {}

    fn remove_from_parent(&self, target: &Id) {
        self.dom.borrow_mut().detach(*target);
    }

    fn reparent_children(&self, node: &Id, new_parent: &Id) {
        self.dom.borrow_mut().move_children(*node, *new_parent);
    }
}
