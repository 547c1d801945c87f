//! The walk over the tree: blocks to elements.

use docmill_model::{Element, ElementType};

use super::inline::{Inline, image_text, is_dropped, is_inline_image};
use super::node::{Dom, Id};
use super::table;
use crate::classify::classify;
use crate::context::Context;
use crate::error::PartitionError;

/// What the text of a block becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// Judged by the text itself.
    Prose,
    /// A heading of this depth.
    Heading(u32),
    /// A list item of this depth. Paragraphs inside are lines of it.
    Item(u32),
    /// The caption of a figure.
    Caption,
}

/// How an element takes part in the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Part of a line of text.
    Phrase,
    /// A block without meaning of its own.
    Block,
    /// A block whose text becomes something special.
    Special(Flow),
    /// A list.
    List,
    /// Nothing more to visit below.
    Done,
}

pub(super) struct Walker<'a, 'c, 'o> {
    dom: &'a Dom,
    cx: &'c mut Context<'o>,
    inline: Inline,
    /// Pictures met within a line of text, to follow it.
    images: Vec<Element>,
    /// Elements being visited, with the flow that was in force before them.
    open: Vec<(Id, Role, Flow)>,
    flow: Flow,
    lists: u32,
    page: Option<u32>,
    /// Line breaks since the last text.
    breaks: u32,
}

impl<'a, 'c, 'o> Walker<'a, 'c, 'o> {
    pub(super) fn new(dom: &'a Dom, cx: &'c mut Context<'o>) -> Self {
        Self {
            dom,
            cx,
            inline: Inline::default(),
            images: Vec::new(),
            open: Vec::new(),
            flow: Flow::Prose,
            lists: 0,
            page: None,
            breaks: 0,
        }
    }

    pub(super) fn run(mut self) -> Result<(), PartitionError> {
        let dom = self.dom;
        let mut at = dom.first_child(Dom::ROOT);
        while let Some(id) = at {
            while self.open.last().is_some_and(|(last, ..)| dom.parent(id) != Some(*last)) {
                self.leave()?;
            }
            let visit = match dom.text(id) {
                Some(text) => {
                    self.text(text)?;
                    false
                }
                None if is_dropped(dom, id) => false,
                None => self.enter(id)?,
            };
            at = dom.following(id, Dom::ROOT, visit);
        }
        while !self.open.is_empty() {
            self.leave()?;
        }
        self.flush()
    }

    fn text(&mut self, text: &str) -> Result<(), PartitionError> {
        if self.breaks > 0 && !text.trim().is_empty() {
            // Two line breaks in a row are how pages without paragraphs set them off.
            if self.breaks > 1 && self.flow == Flow::Prose {
                self.flush()?;
            } else {
                self.inline.push_break();
            }
            self.breaks = 0;
        }
        self.inline.push(text);
        Ok(())
    }

    /// Starts an element; tells whether its content is visited.
    fn enter(&mut self, id: Id) -> Result<bool, PartitionError> {
        let role = self.role(id)?;
        let before = self.flow;
        match role {
            Role::Done => return Ok(false),
            Role::Phrase => {
                if !self.inline.enter(self.dom, id) {
                    return Ok(false);
                }
            }
            Role::Block => self.boundary()?,
            Role::Special(flow) => {
                self.flush()?;
                self.flow = flow;
            }
            Role::List => {
                self.flush()?;
                self.lists += 1;
            }
        }
        if let Some(page) = self
            .dom
            .attribute(id, "data-page-number")
            .and_then(|p| p.trim().parse().ok())
        {
            self.flush()?;
            self.page = Some(page);
        }
        if self.dom.first_child(id).is_some() {
            self.open.push((id, role, before));
            return Ok(true);
        }
        self.end(id, role, before)?;
        Ok(false)
    }

    fn leave(&mut self) -> Result<(), PartitionError> {
        match self.open.pop() {
            Some((id, role, before)) => self.end(id, role, before),
            None => Ok(()),
        }
    }

    fn end(&mut self, id: Id, role: Role, before: Flow) -> Result<(), PartitionError> {
        match role {
            Role::Done => {}
            Role::Phrase => self.inline.leave(self.dom, id),
            Role::Block => self.boundary()?,
            Role::Special(_) => {
                self.flush()?;
                self.flow = before;
            }
            Role::List => {
                self.flush()?;
                self.lists -= 1;
            }
        }
        Ok(())
    }

    /// What an element is; emits those that are read as a whole.
    fn role(&mut self, id: Id) -> Result<Role, PartitionError> {
        let dom = self.dom;
        if dom.attribute(id, "role") == Some("heading") {
            let level = dom
                .attribute(id, "aria-level")
                .and_then(|l| l.trim().parse().ok())
                .unwrap_or(2u32);
            return Ok(Role::Special(Flow::Heading(level.clamp(1, 9) - 1)));
        }
        Ok(match dom.name(id) {
            "h1" => Role::Special(Flow::Heading(0)),
            "h2" => Role::Special(Flow::Heading(1)),
            "h3" => Role::Special(Flow::Heading(2)),
            "h4" => Role::Special(Flow::Heading(3)),
            "h5" => Role::Special(Flow::Heading(4)),
            "h6" => Role::Special(Flow::Heading(5)),
            "ul" | "ol" | "dl" | "menu" | "dir" => Role::List,
            "li" | "dt" => Role::Special(Flow::Item(self.lists.max(1))),
            // What is said about a term stands below it.
            "dd" => Role::Special(Flow::Item(self.lists.max(1) + 1)),
            "figcaption" | "caption" => Role::Special(Flow::Caption),
            "pre" | "listing" | "xmp" | "plaintext" => self.code(id)?,
            "table" => return self.table(id),
            "img" => self.image(id)?,
            "br" => {
                self.breaks += 1;
                Role::Done
            }
            "hr" | "figure" => {
                self.flush()?;
                Role::Block
            }
            name if is_block(name) => Role::Block,
            _ => Role::Phrase,
        })
    }

    /// The edge of a plain block: ends a paragraph, but within headings, items and captions only a line.
    fn boundary(&mut self) -> Result<(), PartitionError> {
        match self.flow {
            Flow::Prose => self.flush(),
            Flow::Heading(_) => {
                self.inline.push_space();
                Ok(())
            }
            Flow::Item(_) | Flow::Caption => {
                self.inline.push_break();
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), PartitionError> {
        self.breaks = 0;
        let run = self.inline.take();
        // A box without words belongs to the page's machinery.
        if !run.text.is_empty() && !matches!(run.text.as_str(), "[ ]" | "[x]") {
            let mut element = match self.flow {
                _ if run.is_formula => Element::new(ElementType::Formula, run.text.as_str()),
                Flow::Heading(depth) => Element::new(ElementType::Title, run.text.as_str()).with_depth(depth),
                Flow::Item(depth) => Element::new(ElementType::ListItem, run.text.as_str()).with_depth(depth),
                Flow::Caption => Element::new(ElementType::FigureCaption, run.text.as_str()),
                Flow::Prose => prose(&run.text),
            };
            run.annotate(&mut element.metadata);
            if !element.text.is_empty() {
                self.emit(element)?;
            }
        }
        for image in std::mem::take(&mut self.images) {
            self.emit(image)?;
        }
        Ok(())
    }

    fn emit(&mut self, mut element: Element) -> Result<(), PartitionError> {
        element.metadata.page_number = self.page;
        self.cx.push(element)
    }

    /// Preformatted text: white space kept.
    fn code(&mut self, id: Id) -> Result<Role, PartitionError> {
        self.flush()?;
        let mut text = String::new();
        let mut at = self.dom.first_child(id);
        while let Some(node) = at {
            let hidden = is_dropped(self.dom, node);
            match self.dom.text(node) {
                Some(part) => text.push_str(part),
                None if self.dom.name(node) == "br" => text.push('\n'),
                None => {}
            }
            at = self.dom.following(node, id, !hidden);
        }
        let code = trim_blank_lines(&text);
        if !code.is_empty() {
            self.emit(Element::new(ElementType::CodeSnippet, code))?;
        }
        Ok(Role::Done)
    }

    fn table(&mut self, id: Id) -> Result<Role, PartitionError> {
        self.flush()?;
        if table::is_layout(self.dom, id) {
            return Ok(Role::Block);
        }
        if let Some(caption) = table::caption(self.dom, id) {
            let mut element = Element::new(ElementType::FigureCaption, caption.text.as_str());
            caption.annotate(&mut element.metadata);
            self.emit(element)?;
        }
        if let Some(element) = table::extract(self.dom, id, self.cx.limits.max_table_cells)? {
            self.emit(element)?;
        }
        Ok(Role::Done)
    }

    /// A picture with words to it, or one in a figure, becomes an element after the text around it.
    fn image(&mut self, id: Id) -> Result<Role, PartitionError> {
        if is_inline_image(self.dom, id) {
            return Ok(Role::Phrase);
        }
        let text = image_text(self.dom, id);
        let url = self
            .dom
            .attribute(id, "src")
            .map(str::trim)
            .filter(|url| !url.is_empty() && !url.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("data:")));
        let in_figure = || {
            self.open
                .iter()
                .rev()
                .take(4)
                .any(|(open, ..)| self.dom.name(*open) == "figure")
        };
        if text.is_empty() && !(url.is_some() && in_figure()) {
            return Ok(Role::Done);
        }
        let mut element = Element::new(
            ElementType::Image,
            text.split_whitespace().collect::<Vec<_>>().join(" "),
        );
        element.metadata.image_url = url.map(str::to_owned);
        if self.inline.is_empty() {
            self.emit(element)?;
        } else {
            self.images.push(element);
        }
        Ok(Role::Done)
    }
}

/// An element judged by its text. Headings are marked up as such in HTML, so a short line that looks
/// like one is not taken for one.
fn prose(text: &str) -> Element {
    let (kind, text) = classify(text);
    match kind {
        ElementType::Title => Element::new(ElementType::UncategorizedText, text),
        kind => Element::new(kind, text),
    }
}

/// The text without blank lines at start and end; the indent of the first line stays.
fn trim_blank_lines(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some((line, rest)) = text.split_once('\n') {
        if !line.trim().is_empty() {
            break;
        }
        text = rest;
    }
    text
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "center"
            | "col"
            | "colgroup"
            | "details"
            | "dialog"
            | "div"
            | "fieldset"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "html"
            | "legend"
            | "main"
            | "optgroup"
            | "p"
            | "search"
            | "section"
            | "summary"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
    )
}
