//! Reader of PPTX files (PresentationML, ECMA-376 part 1, clause 19).

mod bullet;
mod comments;
mod layout;
mod slide;

use std::collections::HashMap;
use std::rc::Rc;

use docmill_model::{Element, ElementType, PageInfo, Warning, WarningCode};

use crate::context::Context;
use crate::error::PartitionError;
use crate::ooxml::xml::{Node, Ns};
use crate::ooxml::{Package, Relationships, chart, diagram, drawing_paragraphs};
use comments::Authors;
use layout::{Layout, Master, Placeholder};
use slide::{Content, Slide};

const FORMAT: &str = "PPTX";
/// EMU in a point.
const EMU_PER_POINT: f64 = 12_700.0;

type Result<T> = std::result::Result<T, PartitionError>;

/// A layout with its master; many slides share one.
type Design = (Option<Rc<Layout>>, Option<Rc<Master>>);

struct Deck<'a, 'c, 'b> {
    cx: &'a mut Context<'c>,
    package: Package<'b>,
    authors: Authors,
    designs: HashMap<String, Design>,
    masters: HashMap<String, Rc<Master>>,
    size: Option<(f64, f64)>,
}

/// Reads a PPTX file slide by slide, hidden ones too: notes, shapes, comments.
pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<()> {
    let mut package = Package::open(bytes, FORMAT, cx.limits)?;
    let main = package.main_part("ppt/presentation.xml")?;
    let relationships = package.relationships(&main)?;
    let missing = || PartitionError::corrupt(FORMAT, format_args!("its main part `{main}` is missing"));
    let presentation = package.xml(&main)?.ok_or_else(missing)?;
    let slides: Vec<&str> = presentation
        .child(Ns::P, "sldIdLst")
        .into_iter()
        .flat_map(Node::elements)
        .filter_map(|n| relationships.part(n.reference("id")?))
        .collect();
    let size = presentation.child(Ns::P, "sldSz").and_then(|n| {
        let points = |name: &str| Some(n.attr(name)?.parse::<f64>().ok()? / EMU_PER_POINT);
        Some((points("cx")?, points("cy")?))
    });
    cx.expect_pages(slides.len())?;
    let authors = comments::authors(&mut package, &relationships)?;
    let mut deck = Deck {
        cx,
        package,
        authors,
        designs: HashMap::new(),
        masters: HashMap::new(),
        size,
    };
    let mut page = deck.cx.options.starting_page_number;
    let mut any_read = slides.is_empty();
    for (i, part) in slides.iter().enumerate() {
        if i > 0 {
            deck.emit(Element::new(ElementType::PageBreak, ""), page)?;
            page = page.saturating_add(1);
        }
        any_read |= deck.slide(part, page)?;
        deck.cx.page_done(PageInfo {
            number: page,
            width: deck.size.map(|s| s.0),
            height: deck.size.map(|s| s.1),
        });
    }
    if any_read {
        Ok(())
    } else {
        Err(PartitionError::corrupt(FORMAT, "none of its slides can be read"))
    }
}

impl Deck<'_, '_, '_> {
    fn emit(&mut self, element: Element, page: u32) -> Result<()> {
        self.cx.push(element.on_page(page))
    }

    /// A part that can be left out with a warning when it is broken or absent.
    fn optional(&mut self, part: &str, what: &str, page: u32) -> Result<Option<Node>> {
        let reason = match self.package.xml(part) {
            Ok(Some(root)) => return Ok(Some(root)),
            Ok(None) => format!("{part} is missing"),
            Err(PartitionError::Corrupt { reason, .. }) => reason,
            Err(error) => return Err(error),
        };
        let message = format!("{what} was not read: {reason}");
        self.cx
            .warn(Warning::on_page(WarningCode::PartUnreadable, page, message));
        Ok(None)
    }

    fn relationships(&mut self, part: &str, page: u32) -> Result<Relationships> {
        match self.package.relationships(part) {
            Err(PartitionError::Corrupt { reason, .. }) => {
                let message = format!("relationships were not read: {reason}");
                self.cx
                    .warn(Warning::on_page(WarningCode::PartUnreadable, page, message));
                Ok(Relationships::default())
            }
            other => other,
        }
    }

    /// Emits a slide; false when it can't be read.
    fn slide(&mut self, part: &str, page: u32) -> Result<bool> {
        let Some(root) = self.optional(part, "a slide", page)? else {
            return Ok(false);
        };
        let relationships = self.relationships(part, page)?;
        if self.cx.options.include_slide_notes {
            self.notes(&relationships, page)?;
        }
        let (layout, master) = self.design(&relationships, page)?;
        let slide = Slide {
            relationships: &relationships,
            layout: layout.as_deref(),
            master: master.as_deref(),
        };
        for content in slide.contents(&root) {
            match content {
                Content::Element(element) => self.emit(*element, page)?,
                Content::Chart(part) => self.embedded(&part, "a chart", chart::elements, page)?,
                Content::Diagram(part) => self.embedded(&part, "a diagram", diagram::elements, page)?,
            }
        }
        for part in relationships.of_kind("comments") {
            if let Some(root) = self.optional(part, "a slide's comments", page)? {
                for text in comments::texts(&root, &self.authors) {
                    self.emit(Element::new(ElementType::UncategorizedText, text), page)?;
                }
            }
        }
        Ok(true)
    }

    fn embedded(&mut self, part: &str, what: &str, elements: fn(&Node) -> Vec<Element>, page: u32) -> Result<()> {
        match self.optional(part, what, page)? {
            Some(root) => elements(&root).into_iter().try_for_each(|e| self.emit(e, page)),
            None => Ok(()),
        }
    }

    fn notes(&mut self, relationships: &Relationships, page: u32) -> Result<()> {
        let Some(part) = relationships.first("notesSlide") else {
            return Ok(());
        };
        let Some(root) = self.optional(part, "a slide's notes", page)? else {
            return Ok(());
        };
        let mut lines = Vec::new();
        root.walk(&mut |node| {
            if !node.is(Ns::P, "sp") {
                return true;
            }
            if Placeholder::of(node).is_some_and(|p| p.kind == "body") {
                lines.extend(drawing_paragraphs(node));
            }
            false
        });
        if lines.is_empty() {
            return Ok(());
        }
        self.emit(Element::new(ElementType::NarrativeText, lines.join("\n")), page)
    }

    /// The layout and master of a slide.
    fn design(&mut self, relationships: &Relationships, page: u32) -> Result<Design> {
        let Some(part) = relationships.first("slideLayout") else {
            return Ok((None, None));
        };
        if let Some(design) = self.designs.get(part) {
            return Ok(design.clone());
        }
        let layout = self.optional(part, "a slide layout", page)?;
        let layout = layout.map(|root| Rc::new(Layout::read(&root)));
        let above = self.relationships(part, page)?;
        let master = match above.first("slideMaster") {
            None => None,
            Some(part) => match self.masters.get(part) {
                Some(master) => Some(master.clone()),
                None => {
                    let master = self.optional(part, "a slide master", page)?;
                    let master = master.map(|root| Rc::new(Master::read(&root)));
                    if let Some(master) = &master {
                        self.masters.insert(part.to_owned(), master.clone());
                    }
                    master
                }
            },
        };
        let design = (layout, master);
        self.designs.insert(part.to_owned(), design.clone());
        Ok(design)
    }
}

#[cfg(test)]
mod tests;
