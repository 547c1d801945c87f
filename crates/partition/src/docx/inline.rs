//! The content of one paragraph: text with links and emphasis, and what is anchored in it.

use docmill_model::metadata::{Link, Metadata};

use super::styles::{Styles, on};
use super::symbol::symbol;
use crate::ooxml::xml::{Child, Node, Ns};
use crate::ooxml::{Relationships, math};

/// Something a paragraph refers to that stands elsewhere in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Footnote(String),
    Endnote(String),
    Comment(String),
    /// A chart, by relationship id.
    Chart(String),
    /// A diagram, by relationship id of its data.
    Diagram(String),
}

/// A page break and whether it stands before all text of its paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageTurn {
    /// The mark a word processor left where it last broke the page, not a break someone asked for.
    pub(super) rendered: bool,
    pub(super) before_text: bool,
}

/// A stretch of text, in bytes.
#[derive(Clone, Debug)]
struct Stretch<T> {
    start: usize,
    end: usize,
    what: T,
}

/// An open complex field (`w:fldChar`).
#[derive(Default)]
struct Field {
    instruction: String,
    in_result: bool,
    start: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Format {
    bold: bool,
    italic: bool,
}

/// What was collected.
#[derive(Default)]
pub(super) struct Inline<'n> {
    pub(super) text: String,
    links: Vec<Stretch<String>>,
    emphasis: Vec<Stretch<Format>>,
    fields: Vec<Field>,
    /// Fields that are open and not in their result, whose text is not shown.
    instructions: usize,
    /// Contents of text boxes anchored here.
    pub(super) boxes: Vec<&'n Node>,
    pub(super) references: Vec<Reference>,
    pub(super) turns: Vec<PageTurn>,
    /// LaTeX of the formulas, in order.
    pub(super) formulas: Vec<String>,
    /// Whether there is any text besides formulas.
    pub(super) has_prose: bool,
}

/// What the collection needs to know of the document.
pub(super) struct Scope<'s> {
    pub(super) styles: &'s Styles,
    pub(super) relationships: &'s Relationships,
}

impl<'n> Inline<'n> {
    /// Collects a `w:p`.
    pub(super) fn collect(paragraph: &'n Node, scope: &Scope) -> Self {
        let mut inline = Self::default();
        inline.children(paragraph, scope, Format::default());
        inline
    }

    /// Writes links and emphasis to the metadata of an element whose text is `prefix` followed by this
    /// text without white space at its ends.
    pub(super) fn describe(&self, prefix: &str, metadata: &mut Metadata) {
        let lead = self.text.len() - self.text.trim_start().len();
        // Bytes looked at so far, and the code points that they and the prefix are.
        let mut counted = (lead, prefix.chars().count());
        let mut links: Vec<&Stretch<String>> = self.links.iter().collect();
        links.sort_by_key(|link| link.start);
        for link in links {
            let Some(text) = self.text.get(link.start..link.end) else {
                continue;
            };
            let shown = text.trim();
            if shown.is_empty() {
                continue;
            }
            let start = (link.start + text.len() - text.trim_start().len()).max(lead);
            let chars = |from, to| self.text.get(from..to).map_or(0, |t| t.chars().count());
            counted.1 += chars(counted.0, start);
            // One link within another can begin with the other's leading white space.
            counted.1 -= chars(start, counted.0);
            counted.0 = start;
            metadata.link_texts.push(shown.to_owned());
            metadata.link_urls.push(link.what.clone());
            metadata.links.push(Link {
                text: shown.to_owned(),
                url: link.what.clone(),
                start_index: i64::try_from(counted.1).unwrap_or(-1),
            });
        }
        for stretch in &self.emphasis {
            let shown = self.text.get(stretch.start..stretch.end).unwrap_or_default().trim();
            if !shown.is_empty() {
                let tag = match (stretch.what.bold, stretch.what.italic) {
                    (true, true) => "bi",
                    (true, false) => "b",
                    _ => "i",
                };
                metadata.emphasized_text_contents.push(shown.to_owned());
                metadata.emphasized_text_tags.push(tag.to_owned());
            }
        }
    }

    fn children(&mut self, node: &'n Node, scope: &Scope, format: Format) {
        for child in &node.children {
            if let Child::Element(child) = child {
                self.element(child, scope, format);
            }
        }
    }

    fn element(&mut self, node: &'n Node, scope: &Scope, format: Format) {
        match (node.ns, &*node.name) {
            (Ns::W, "r") => self.run(node, scope, format),
            (Ns::W, "hyperlink") => self.hyperlink(node, scope, format),
            (Ns::W, "fldSimple") => {
                let start = self.text.len();
                self.children(node, scope, format);
                self.link_field(node.attr("instr").unwrap_or_default(), start);
            }
            (Ns::W, "lastRenderedPageBreak") => self.turn(true),
            (Ns::W, "del" | "moveFrom" | "pPr" | "rPr" | "sdtPr" | "sdtEndPr" | "rt" | "instrText" | "delText") => {}
            (Ns::W, "drawing" | "pict" | "object") => self.drawing(node),
            (Ns::M, "oMath") => self.formula(node),
            _ => self.children(node, scope, format),
        }
    }

    fn run(&mut self, run: &'n Node, scope: &Scope, outer: Format) {
        let mut format = outer;
        if let Some(properties) = run.child(Ns::W, "rPr") {
            let style = properties.child(Ns::W, "rStyle").and_then(|n| n.attr("val"));
            let (bold, italic, hidden) = scope.styles.emphasis(style);
            let flag = |name: &str| properties.child(Ns::W, name).map(on);
            if flag("vanish").unwrap_or(hidden) {
                // Fields can have hidden parts, so their bounds count even here.
                for node in run.elements() {
                    self.field_mark(node);
                }
                return;
            }
            format.bold = flag("b").unwrap_or(bold || outer.bold);
            format.italic = flag("i").unwrap_or(italic || outer.italic);
        }
        for node in run.elements() {
            self.run_content(node, scope, format);
        }
    }

    fn run_content(&mut self, node: &'n Node, scope: &Scope, format: Format) {
        if self.field_mark(node) {
            return;
        }
        if node.ns != Ns::W {
            return self.element(node, scope, format);
        }
        let id = || node.attr("id").unwrap_or_default().to_owned();
        match &*node.name {
            "t" => self.push(&node.text(), format),
            "tab" | "ptab" => self.push("\t", format),
            "cr" => self.push("\n", format),
            "br" => match node.attr("type") {
                Some("page") => self.turn(false),
                _ => self.push("\n", format),
            },
            "noBreakHyphen" => self.push("\u{2011}", format),
            "softHyphen" => {}
            "sym" => {
                let (font, code) = (node.attr("font").unwrap_or(""), node.attr("char").unwrap_or(""));
                if let Some(c) = symbol(font, code) {
                    self.push(c.encode_utf8(&mut [0; 4]), format);
                }
            }
            "footnoteReference" => self.references.push(Reference::Footnote(id())),
            "endnoteReference" => self.references.push(Reference::Endnote(id())),
            "commentReference" => self.references.push(Reference::Comment(id())),
            _ => self.element(node, scope, format),
        }
    }

    fn push(&mut self, text: &str, format: Format) {
        if text.is_empty() || self.instructions > 0 {
            return;
        }
        let start = self.text.len();
        self.text.push_str(text);
        self.has_prose |= !text.trim().is_empty();
        if format == Format::default() {
            return;
        }
        match self.emphasis.last_mut() {
            Some(last) if last.end == start && last.what == format => last.end = self.text.len(),
            _ => self.emphasis.push(Stretch {
                start,
                end: self.text.len(),
                what: format,
            }),
        }
    }

    fn turn(&mut self, rendered: bool) {
        let before_text = self.text.trim().is_empty();
        self.turns.push(PageTurn { rendered, before_text });
    }

    /// Handles the marks of complex fields; false when `node` is none.
    fn field_mark(&mut self, node: &Node) -> bool {
        if node.is(Ns::W, "instrText") {
            if let Some(field) = self.fields.last_mut() {
                node.push_text(&mut field.instruction);
            }
            return true;
        }
        if !node.is(Ns::W, "fldChar") {
            return false;
        }
        match node.attr("fldCharType") {
            Some("begin") => {
                self.fields.push(Field::default());
                self.instructions += 1;
            }
            Some("separate") => {
                if let Some(field) = self.fields.last_mut().filter(|f| !f.in_result) {
                    field.in_result = true;
                    field.start = self.text.len();
                    self.instructions = self.instructions.saturating_sub(1);
                }
            }
            _ => match self.fields.pop() {
                Some(field) if field.in_result => self.link_field(&field.instruction, field.start),
                Some(_) => self.instructions = self.instructions.saturating_sub(1),
                None => {}
            },
        }
        true
    }

    /// Makes a link of the text from `start` on when the field's instruction is a hyperlink.
    fn link_field(&mut self, instruction: &str, start: usize) {
        let mut words = instruction.split_whitespace();
        if words.next().is_none_or(|w| !w.eq_ignore_ascii_case("HYPERLINK")) {
            return;
        }
        let quoted = instruction.split('"').nth(1).unwrap_or_default();
        let anchor = words.next().is_some_and(|w| w == "\\l");
        let url = match (quoted, anchor) {
            ("", _) => return,
            (name, true) => format!("#{name}"),
            (address, false) => address.to_owned(),
        };
        self.add_link(start, url);
    }

    fn hyperlink(&mut self, node: &'n Node, scope: &Scope, format: Format) {
        let start = self.text.len();
        self.children(node, scope, format);
        let target = node.reference("id").and_then(|id| scope.relationships.get(id));
        let anchor = node.attr("anchor");
        let url = match (target, anchor) {
            (Some(target), Some(anchor)) => format!("{}#{anchor}", target.target),
            (Some(target), None) => target.target.clone(),
            (None, Some(anchor)) => format!("#{anchor}"),
            (None, None) => return,
        };
        self.add_link(start, url);
    }

    fn add_link(&mut self, start: usize, what: String) {
        let end = self.text.len();
        if end > start {
            self.links.push(Stretch { start, end, what });
        }
    }

    fn formula(&mut self, node: &Node) {
        let latex = math::latex(node);
        if latex.is_empty() {
            return;
        }
        self.text.push('$');
        self.text.push_str(&latex);
        self.text.push('$');
        self.formulas.push(latex);
    }

    /// Finds text boxes, charts and diagrams in a drawing.
    fn drawing(&mut self, drawing: &'n Node) {
        drawing.walk(&mut |node| match (node.ns, &*node.name) {
            (Ns::W, "txbxContent") => {
                self.boxes.push(node);
                false
            }
            (Ns::C, "chart") => {
                let id = node.reference("id").unwrap_or_default();
                self.references.push(Reference::Chart(id.to_owned()));
                false
            }
            (Ns::Dgm, "relIds") => {
                let id = node.reference("dm").unwrap_or_default();
                self.references.push(Reference::Diagram(id.to_owned()));
                false
            }
            _ => true,
        });
    }
}
