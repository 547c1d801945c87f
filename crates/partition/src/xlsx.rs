//! Reader of XLSX and XLSM files (SpreadsheetML, ECMA-376 part 1, clause 18).

mod comments;
mod region;
mod sheet;
mod styles;
mod value;

use std::collections::{HashMap, HashSet};

use docmill_model::{Element, ElementType, PageInfo, Warning, WarningCode};

use crate::context::Context;
use crate::error::PartitionError;
use crate::ooxml::xml::{Node, Ns};
use crate::ooxml::{Package, Relationships, chart, classify_body, diagram, drawing_paragraphs};
use sheet::Book;
use styles::Formats;

const FORMAT: &str = "XLSX";

/// Makes elements of a part.
type ReadPart = fn(&Node) -> Vec<Element>;

type Result<T> = std::result::Result<T, PartitionError>;

struct Workbook<'a, 'c, 'b> {
    cx: &'a mut Context<'c>,
    package: Package<'b>,
    book: Book,
    persons: HashMap<String, String>,
    /// Bytes of cell text that may still be written out. Cells share strings, so a small file could ask
    /// for any amount.
    text_left: u64,
}

/// Where elements stand.
#[derive(Clone, Copy)]
struct Page<'p> {
    number: u32,
    name: &'p str,
}

/// Reads an XLSX file sheet by sheet, hidden ones too: cells, charts and shapes, comments.
pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<()> {
    let mut package = Package::open(bytes, FORMAT, cx.limits)?;
    let main = package.main_part("xl/workbook.xml")?;
    let relationships = package.relationships(&main)?;
    let missing = || PartitionError::corrupt(FORMAT, format_args!("its main part `{main}` is missing"));
    let workbook = package.xml(&main)?.ok_or_else(missing)?;
    let child = |name: &'static str| workbook.elements().find(move |n| &*n.name == name);
    let sheets: Vec<&Node> = child("sheets").into_iter().flat_map(Node::elements).collect();
    cx.expect_pages(sheets.len())?;
    let epoch_1904 = child("workbookPr").is_some_and(|n| matches!(n.attr("date1904"), Some("1" | "true")));
    let strings = match relationships.first("sharedStrings") {
        Some(part) => match package.text(part)? {
            Some(text) => sheet::strings(&text, part)?,
            None => Vec::new(),
        },
        None => Vec::new(),
    };
    let text_left = cx.limits.max_expanded_bytes;
    let mut book = Workbook {
        cx,
        package,
        book: Book {
            strings,
            formats: Formats::default(),
            epoch_1904,
        },
        persons: HashMap::new(),
        text_left,
    };
    if let Some(part) = relationships.first("styles")
        && let Some(root) = book.optional(part, "number formats", None)?
    {
        book.book.formats = Formats::read(&root);
    }
    if let Some(part) = relationships.first("person")
        && let Some(root) = book.optional(part, "names of commenters", None)?
    {
        book.persons = comments::persons(&root);
    }
    let mut number = book.cx.options.starting_page_number;
    let mut any_read = false;
    let mut broken = None;
    for node in sheets {
        let name = node.attr("name").unwrap_or_default();
        if let Some(part) = node.reference("id").and_then(|id| relationships.part(id)) {
            match book.sheet(part, Page { number, name }) {
                // One broken sheet does not cost the others.
                Err(error @ PartitionError::Corrupt { .. }) => {
                    let message = format!("the sheet `{name}` was not fully read: {error}");
                    book.cx
                        .warn(Warning::on_page(WarningCode::PartUnreadable, number, message));
                    broken.get_or_insert(error);
                }
                other => {
                    other?;
                    any_read = true;
                }
            }
        }
        book.cx.page_done(PageInfo {
            number,
            width: None,
            height: None,
        });
        number = number.saturating_add(1);
    }
    match broken {
        Some(error) if !any_read => Err(error),
        _ => Ok(()),
    }
}

impl Workbook<'_, '_, '_> {
    fn emit(&mut self, element: Element, page: Page) -> Result<()> {
        let mut element = element.on_page(page.number);
        element.metadata.page_name = Some(page.name.to_owned());
        self.cx.push(element)
    }

    /// A part that can be left out with a warning when it is broken or absent.
    fn optional(&mut self, part: &str, what: &str, page: Option<u32>) -> Result<Option<Node>> {
        let reason = match self.package.xml(part) {
            Ok(Some(root)) => return Ok(Some(root)),
            Ok(None) => format!("{part} is missing"),
            Err(PartitionError::Corrupt { reason, .. }) => reason,
            Err(error) => return Err(error),
        };
        let mut warning = Warning::new(WarningCode::PartUnreadable, format!("{what} were not read: {reason}"));
        warning.page_number = page;
        self.cx.warn(warning);
        Ok(None)
    }

    fn sheet(&mut self, part: &str, page: Page) -> Result<()> {
        let relationships = self.package.relationships(part)?;
        let Some(text) = self.package.text(part)? else {
            let message = format!("the sheet `{}` was not read: {part} is missing", page.name);
            self.cx
                .warn(Warning::on_page(WarningCode::PartUnreadable, page.number, message));
            return Ok(());
        };
        let max_cells = self.cx.limits.max_table_cells;
        let mut sheet = sheet::read(&text, part, &self.book, max_cells)?;
        drop(text);
        for table in relationships.of_kind("table") {
            if let Some(root) = self.optional(table, "table definitions", Some(page.number))?
                && root.attr("headerRowCount") != Some("0")
            {
                sheet
                    .heads
                    .extend(root.attr("ref").and_then(sheet::area).map(|a| a.top));
            }
        }
        let size: u64 = sheet.cells.iter().map(|cell| cell.text.len() as u64).sum();
        self.text_left = self.text_left.checked_sub(size).ok_or_else(|| {
            let limit = self.cx.limits.max_expanded_bytes;
            PartitionError::limit("max_expanded_bytes", limit, "bytes of cell text")
        })?;
        let found = region::elements(&sheet, max_cells);
        drop(sheet);
        if found.without_html > 0 {
            let message = format!(
                "{} table(s) of the sheet `{}` have no text_as_html: written out they would have more than \
                 {max_cells} cells (setting `limits.max_table_cells`)",
                found.without_html, page.name
            );
            self.cx
                .warn(Warning::on_page(WarningCode::Truncated, page.number, message));
        }
        for element in found.elements {
            self.emit(element, page)?;
        }
        for drawing in relationships.of_kind("drawing") {
            self.drawing(drawing, page)?;
        }
        self.comments(&relationships, page)
    }

    /// Emits charts, diagrams and the text of shapes.
    fn drawing(&mut self, part: &str, page: Page) -> Result<()> {
        let Some(root) = self.optional(part, "drawings", Some(page.number))? else {
            return Ok(());
        };
        let relationships = self.package.relationships(part)?;
        let mut embedded: Vec<(&str, ReadPart)> = Vec::new();
        let mut elements = Vec::new();
        root.walk(&mut |node| match (node.ns, &*node.name) {
            (Ns::C, "chart") => {
                let part = node.reference("id").and_then(|id| relationships.part(id));
                embedded.extend(part.map(|p| (p, chart::elements as ReadPart)));
                false
            }
            (Ns::Dgm, "relIds") => {
                let part = node.reference("dm").and_then(|id| relationships.part(id));
                embedded.extend(part.map(|p| (p, diagram::elements as ReadPart)));
                false
            }
            (_, "txBody") => {
                let text = drawing_paragraphs(node).join("\n");
                if !text.is_empty() {
                    let (kind, text) = classify_body(&text);
                    elements.push(Element::new(kind, text));
                }
                false
            }
            _ => true,
        });
        for (part, read) in embedded {
            if let Some(root) = self.optional(part, "charts and diagrams", Some(page.number))? {
                elements.extend(read(&root));
            }
        }
        elements.into_iter().try_for_each(|element| self.emit(element, page))
    }

    fn comments(&mut self, relationships: &Relationships, page: Page) -> Result<()> {
        let mut cells = HashSet::new();
        let mut threads = Vec::new();
        for part in relationships.of_kind("threadedComment") {
            if let Some(root) = self.optional(part, "comments", Some(page.number))? {
                threads.extend(comments::threaded(&root, &self.persons, &mut cells));
            }
        }
        let mut texts = Vec::new();
        for part in relationships.of_kind("comments") {
            if let Some(root) = self.optional(part, "comments", Some(page.number))? {
                texts.extend(comments::notes(&root, &cells));
            }
        }
        texts.extend(threads);
        for text in texts {
            self.emit(Element::new(ElementType::UncategorizedText, text), page)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
