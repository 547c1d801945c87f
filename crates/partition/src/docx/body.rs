//! The blocks of a document's body, in order, to elements.

use std::collections::VecDeque;

use docmill_model::{Element, ElementType, PageInfo, Warning, WarningCode};
use serde_json::Value;

use super::inline::{Inline, PageTurn, Reference, Scope};
use super::notes::{Notes, comment_value};
use super::numbering::{Mark, Numbering};
use super::section::Section;
use super::styles::{Role, Styles, on};
use super::table::{self, Grid, Merge};
use crate::context::Context;
use crate::error::PartitionError;
use crate::ooxml::table::{element as table_element, push_words};
use crate::ooxml::xml::{Node, Ns};
use crate::ooxml::{Package, Relationships, chart, classify_body, diagram, math};

type Result<T> = std::result::Result<T, PartitionError>;

/// The state of reading a body.
pub(super) struct Body<'a, 'c, 'b> {
    pub(super) cx: &'a mut Context<'c>,
    pub(super) package: &'a mut Package<'b>,
    pub(super) relationships: &'a Relationships,
    pub(super) styles: &'a Styles,
    pub(super) numbering: Numbering,
    pub(super) footnotes: Notes,
    pub(super) endnotes: Notes,
    pub(super) comments: Notes,
    /// The sections not yet ended; the first is the current one.
    pub(super) sections: VecDeque<Section>,
    /// Whether even pages have headers and footers of their own.
    pub(super) even_pages: bool,
    /// The current page, when the file tells where pages break.
    pub(super) page: Option<u32>,
    /// Page breaks asked for whose rendered mark was not met yet.
    pub(super) explicit_turns: u32,
    /// Lines of code collected so far: paragraphs of code that follow each other are one listing.
    pub(super) code: Option<String>,
}

/// How a paragraph is set, from its properties and style.
struct Setting {
    role: Option<Role>,
    mark: Option<Mark>,
    level: u32,
}

impl Body<'_, '_, '_> {
    pub(super) fn start_pages(&mut self, turns: usize) -> Result<()> {
        self.cx.expect_pages(turns.saturating_add(1))?;
        self.page = Some(self.cx.options.starting_page_number);
        Ok(())
    }

    /// Reads one block with all that is in it.
    pub(super) fn block(&mut self, node: &Node) -> Result<()> {
        match (node.ns, &*node.name) {
            (Ns::W, "p") => self.paragraph(node),
            (Ns::W, "tbl") => self.table(node),
            (Ns::W, "sectPr" | "sdtPr" | "sdtEndPr" | "del" | "moveFrom" | "tcPr") => Ok(()),
            (Ns::W, "altChunk") => {
                let message = "a document embedded by `altChunk` was not read";
                self.cx.warn(Warning::new(WarningCode::AttachmentSkipped, message));
                Ok(())
            }
            (Ns::M, "oMathPara" | "oMath") => self.bare_formula(node),
            _ => self.blocks(node),
        }
    }

    fn blocks(&mut self, parent: &Node) -> Result<()> {
        parent.elements().try_for_each(|node| self.block(node))
    }

    /// Ends the document.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush_code()?;
        self.end_section()?;
        if let Some(number) = self.page {
            self.cx.page_done(page_info(number));
        }
        Ok(())
    }

    fn emit(&mut self, mut element: Element) -> Result<()> {
        if self.code.is_some() {
            self.flush_code()?;
        }
        element.metadata.page_number = self.page;
        self.cx.push(element)
    }

    fn flush_code(&mut self) -> Result<()> {
        match self.code.take() {
            Some(code) if !code.trim().is_empty() => {
                let text = code.trim_end().trim_start_matches('\n');
                self.emit(Element::new(ElementType::CodeSnippet, text))
            }
            _ => Ok(()),
        }
    }

    fn paragraph(&mut self, node: &Node) -> Result<()> {
        let properties = node.child(Ns::W, "pPr");
        let setting = self.setting(properties, node);
        let scope = Scope {
            styles: self.styles,
            relationships: self.relationships,
        };
        let mut inline = Inline::collect(node, &scope);
        let turns = std::mem::take(&mut inline.turns);
        self.turn_pages(turns.iter().filter(|t| t.before_text))?;
        if setting.role == Some(Role::Code) {
            let code = self.code.get_or_insert_default();
            if !code.is_empty() {
                code.push('\n');
            }
            code.push_str(inline.text.trim_end());
        } else if !inline.text.trim().is_empty() {
            self.text(&inline, setting)?;
            // The next rendered mark belongs to another break.
            self.explicit_turns = 0;
        }
        self.anchored(&inline)?;
        self.turn_pages(turns.iter().filter(|t| !t.before_text))?;
        if properties.is_some_and(|p| p.child(Ns::W, "sectPr").is_some()) {
            self.end_section()?;
            self.start_section()?;
        }
        Ok(())
    }

    /// Emits a paragraph's text.
    fn text(&mut self, inline: &Inline, setting: Setting) -> Result<()> {
        let text = inline.text.trim();
        let comments = self.comments_of(inline);
        if !inline.has_prose && !inline.formulas.is_empty() && setting.role.is_none() {
            for latex in &inline.formulas {
                self.emit(Element::new(ElementType::Formula, format!("$${latex}$$")))?;
            }
            return Ok(());
        }
        let prefix = match &setting.mark {
            Some(Mark::Label(label)) => format!("{label} "),
            _ => String::new(),
        };
        let numbered = matches!(setting.mark, Some(Mark::Label(_) | Mark::Bullet));
        let (kind, depth, kept) = match setting.role {
            Some(Role::Heading(depth)) => (ElementType::Title, Some(depth), text.to_owned()),
            Some(Role::Caption) => (ElementType::FigureCaption, None, text.to_owned()),
            _ if numbered => (ElementType::ListItem, Some(setting.level), text.to_owned()),
            Some(Role::ListItem(depth)) => (ElementType::ListItem, Some(depth), text.to_owned()),
            _ => {
                let (kind, kept) = classify_body(text);
                (kind, (kind == ElementType::ListItem).then_some(0), kept)
            }
        };
        let mut element = Element::new(kind, format!("{prefix}{kept}"));
        element.metadata.category_depth = depth;
        inline.describe(&prefix, &mut element.metadata);
        if kept.len() < text.len() && text.ends_with(&kept) {
            let removed = text[..text.len() - kept.len()].chars().count();
            for link in &mut element.metadata.links {
                link.start_index -= i64::try_from(removed).unwrap_or(0);
            }
        }
        if !comments.is_empty() {
            element
                .metadata
                .extra
                .insert("comments".to_owned(), Value::Array(comments));
        }
        self.emit(element)
    }

    fn setting(&mut self, properties: Option<&Node>, node: &Node) -> Setting {
        let value = |path: &[&str]| properties.and_then(|p| p.path(Ns::W, path)).and_then(|n| n.attr("val"));
        let style = value(&["pStyle"]);
        let outline: Option<u32> = value(&["outlineLvl"]).and_then(|v| v.parse().ok());
        let role = match (self.styles.role(style), outline) {
            (Some(role @ (Role::Caption | Role::Code)), _) => Some(role),
            (Some(role @ Role::Heading(_)), Some(0..=8) | None) => Some(role),
            (_, Some(level @ 0..=8)) => Some(Role::Heading(level)),
            (Some(Role::Heading(_)), Some(_)) => Some(Role::Plain),
            (role, _) => role,
        };
        let inherited = self.styles.numbering(style);
        let number = value(&["numPr", "numId"]).or(inherited.map(|(number, _)| number));
        let level = value(&["numPr", "ilvl"]).and_then(|v| v.parse().ok());
        let level: u32 = level.or(inherited.and_then(|(_, level)| level)).unwrap_or(0).min(8);
        // A paragraph that only holds the text of a deleted list item has no number of its own.
        let counts = number.is_some_and(|n| n != "0") && has_content(node);
        let styles = self.styles;
        let mark = number.filter(|_| counts).and_then(|number| {
            let of_style = |style: &str| styles.numbering(Some(style)).map(|(n, _)| n.to_owned());
            self.numbering.advance(number, level, &of_style)
        });
        Setting { role, mark, level }
    }

    /// Emits what is anchored in a paragraph or cell.
    fn anchored(&mut self, inline: &Inline) -> Result<()> {
        for content in &inline.boxes {
            self.blocks(content)?;
        }
        for reference in &inline.references {
            self.reference(reference)?;
        }
        Ok(())
    }

    fn reference(&mut self, reference: &Reference) -> Result<()> {
        let note = match reference {
            Reference::Footnote(id) => self.footnotes.take(id),
            Reference::Endnote(id) => self.endnotes.take(id),
            Reference::Comment(_) => None,
            Reference::Chart(id) => return self.embedded(id, "chart", chart::elements),
            Reference::Diagram(id) => return self.embedded(id, "diagram", diagram::elements),
        };
        note.map_or(Ok(()), |note| self.blocks(&note))
    }

    /// Emits the elements of a chart or diagram part.
    fn embedded(&mut self, id: &str, what: &str, elements: fn(&Node) -> Vec<Element>) -> Result<()> {
        let Some(part) = self.relationships.part(id) else {
            return Ok(());
        };
        match self.package.xml(part) {
            Ok(Some(root)) => elements(&root).into_iter().try_for_each(|element| self.emit(element)),
            Ok(None) => Ok(()),
            Err(PartitionError::Corrupt { reason, .. }) => {
                let message = format!("a {what} was not read: {reason}");
                self.cx.warn(Warning::new(WarningCode::PartUnreadable, message));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The comments anchored in a paragraph, for its metadata.
    fn comments_of(&mut self, inline: &Inline) -> Vec<Value> {
        let mut values = Vec::new();
        for reference in &inline.references {
            if let Reference::Comment(id) = reference
                && let Some(comment) = self.comments.take(id)
            {
                let text = self.lines(&comment);
                values.push(comment_value(&comment, text));
            }
        }
        values
    }

    fn table(&mut self, node: &Node) -> Result<()> {
        if let Some(cell) = table::frame(node) {
            return self.blocks(cell);
        }
        let mut grid = Grid::default();
        let mut cells = 0u64;
        // Anchors in cells are emitted after the table.
        let mut inlines = Vec::new();
        for row in table::rows(node) {
            grid.start_row(row);
            for cell in table::cells(row) {
                cells += 1;
                if cells > self.cx.limits.max_table_cells {
                    let limit = self.cx.limits.max_table_cells;
                    return Err(PartitionError::limit("max_table_cells", limit, "cells in a table"));
                }
                let (merge, span) = Grid::merge_of(cell);
                let mut text = String::new();
                if merge != Merge::Above {
                    self.flatten(cell, &mut text, &mut inlines);
                }
                grid.add(text, span, merge);
            }
        }
        if let Some(mut element) = table_element(&grid.rows) {
            let mut comments = Vec::new();
            for inline in &inlines {
                let at = element.metadata.links.len();
                inline.describe("", &mut element.metadata);
                // Offsets within a cell say nothing about the table's text.
                element.metadata.links[at..]
                    .iter_mut()
                    .for_each(|link| link.start_index = -1);
                comments.extend(self.comments_of(inline));
            }
            if !comments.is_empty() {
                element
                    .metadata
                    .extra
                    .insert("comments".to_owned(), Value::Array(comments));
            }
            self.emit(element)?;
        }
        let mut turns = Vec::new();
        for inline in &inlines {
            turns.extend(&inline.turns);
            for reference in &inline.references {
                self.reference(reference)?;
            }
        }
        self.turn_pages(turns.iter())
    }

    /// Appends all text below a node, words separated by spaces: paragraphs with their labels, nested
    /// tables, text boxes.
    fn flatten<'n>(&mut self, node: &'n Node, out: &mut String, inlines: &mut Vec<Inline<'n>>) {
        for child in node.elements() {
            match (child.ns, &*child.name) {
                (Ns::W, "p") => {
                    let setting = self.setting(child.child(Ns::W, "pPr"), child);
                    let scope = Scope {
                        styles: self.styles,
                        relationships: self.relationships,
                    };
                    let inline = Inline::collect(child, &scope);
                    if let Some(Mark::Label(label)) = &setting.mark
                        && !inline.text.trim().is_empty()
                    {
                        push_words(out, label);
                    }
                    push_words(out, &inline.text);
                    for content in inline.boxes.clone() {
                        self.flatten(content, out, inlines);
                    }
                    inlines.push(inline);
                }
                (Ns::W, "tcPr" | "tblPr" | "trPr" | "sdtPr" | "sdtEndPr" | "del" | "moveFrom") => {}
                _ => self.flatten(child, out, inlines),
            }
        }
    }

    /// The paragraphs below a node, one per line.
    fn lines(&mut self, node: &Node) -> String {
        let mut lines = Vec::new();
        node.walk(&mut |n| {
            if !n.is(Ns::W, "p") {
                return true;
            }
            let scope = Scope {
                styles: self.styles,
                relationships: self.relationships,
            };
            let inline = Inline::collect(n, &scope);
            let mut line = inline.text.trim().to_owned();
            for content in &inline.boxes {
                let mut inner = String::new();
                self.flatten(content, &mut inner, &mut Vec::new());
                push_words(&mut line, &inner);
            }
            if !line.is_empty() {
                lines.push(line);
            }
            false
        });
        lines.join("\n")
    }

    fn bare_formula(&mut self, node: &Node) -> Result<()> {
        let latex = math::latex(node);
        if latex.is_empty() {
            return Ok(());
        }
        self.emit(Element::new(ElementType::Formula, format!("$${latex}$$")))
    }

    /// Advances the page. A rendered mark right after a break that was asked for is the same break.
    fn turn_pages<'t>(&mut self, turns: impl Iterator<Item = &'t PageTurn>) -> Result<()> {
        for turn in turns {
            let Some(number) = self.page else { return Ok(()) };
            if turn.rendered && self.explicit_turns > 0 {
                self.explicit_turns -= 1;
                continue;
            }
            if !turn.rendered {
                self.explicit_turns += 1;
            }
            self.emit(Element::new(ElementType::PageBreak, ""))?;
            self.cx.page_done(page_info(number));
            self.page = Some(number.saturating_add(1));
        }
        Ok(())
    }

    /// Emits the headers of the current section.
    pub(super) fn start_section(&mut self) -> Result<()> {
        let Some(section) = self.sections.front().cloned() else {
            return Ok(());
        };
        self.furniture(&section.headers.parts, section.first_page, ElementType::Header)
    }

    /// Emits the footers of the current section.
    fn end_section(&mut self) -> Result<()> {
        let Some(section) = self.sections.pop_front() else {
            return Ok(());
        };
        self.furniture(&section.footers.parts, section.first_page, ElementType::Footer)
    }

    fn furniture(&mut self, parts: &[(String, String)], first_page: bool, kind: ElementType) -> Result<()> {
        for (name, value) in [("default", "primary"), ("first", "first_page"), ("even", "even_page")] {
            let shown = match name {
                "first" => first_page,
                "even" => self.even_pages,
                _ => true,
            };
            let Some((_, id)) = parts.iter().find(|(kind, _)| shown && kind == name) else {
                continue;
            };
            let Some(part) = self.relationships.part(id) else {
                continue;
            };
            let root = match self.package.xml(part) {
                Err(PartitionError::Corrupt { reason, .. }) => {
                    let message = format!("a page header or footer was not read: {reason}");
                    self.cx.warn(Warning::new(WarningCode::PartUnreadable, message));
                    None
                }
                other => other?,
            };
            let text = root.map(|root| self.lines(&root)).unwrap_or_default();
            if !text.is_empty() {
                let mut element = Element::new(kind, text);
                element.metadata.header_footer_type = Some(value.to_owned());
                self.emit(element)?;
            }
        }
        Ok(())
    }
}

/// Whether a paragraph is more than the mark of a deletion.
fn has_content(node: &Node) -> bool {
    let deleted = node.path(Ns::W, &["pPr", "rPr", "del"]).is_some_and(on);
    !deleted || node.elements().any(|n| n.is(Ns::W, "r") || n.is(Ns::W, "ins"))
}

fn page_info(number: u32) -> PageInfo {
    PageInfo {
        number,
        width: None,
        height: None,
    }
}
