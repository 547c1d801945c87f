//! Elements from a page in HTML.

use docmill_model::{Element, ElementType};

use super::{MAX_CHARS, MAX_ELEMENTS};
use crate::AnswerError;
use crate::answer::clean;
use crate::chat::clip;
use crate::markup::grid::{Grid, push_escaped};
use crate::markup::scan::{StartTag, Token, tokens};
use crate::markup::table::{table_text, write_table};

/// Reads a page. Tags not asked for are taken for what they are in HTML, or as if they were not there; no
/// tree is built, so nesting costs nothing.
pub(super) fn read(html: &str, lines: bool) -> Result<Vec<Element>, AnswerError> {
    let mut page = Page {
        elements: Vec::new(),
        block: None,
        region: None,
        lists: 0,
        in_head: false,
        any_tag: false,
        lines,
    };
    let mut tokens = tokens(html);
    while let Some(token) = tokens.next() {
        if page.elements.len() >= MAX_ELEMENTS {
            break;
        }
        match token {
            Token::Start(tag) if tag.name == "table" && !page.in_head => {
                page.any_tag = true;
                page.close();
                page.table(table_tokens(tag, &mut tokens));
            }
            Token::Start(tag) => page.start(tag),
            Token::End(name) => page.end(&name),
            Token::Text(text) => page.text(&text),
        }
    }
    page.close();
    match page.any_tag {
        true => Ok(page.elements),
        false => Err(AnswerError::Nothing("HTML")),
    }
}

/// The tokens of a table whose start tag has been read, up to its end.
fn table_tokens<'h>(tag: StartTag, tokens: &mut impl Iterator<Item = Token<'h>>) -> Vec<Token<'h>> {
    let mut table = vec![Token::Start(tag)];
    let mut open = 1usize;
    for token in tokens {
        match &token {
            Token::Start(tag) if tag.name == "table" => open += 1,
            Token::End(name) if name == "table" => open -= 1,
            _ => {}
        }
        table.push(token);
        if open == 0 {
            break;
        }
    }
    table
}

/// A block of text being read.
struct Block {
    kind: ElementType,
    depth: Option<u32>,
    tag: &'static str,
    checked: Option<bool>,
    text: String,
}

struct Page {
    elements: Vec<Element>,
    block: Option<Block>,
    /// The part of the page all blocks in which are of one type.
    region: Option<(&'static str, ElementType)>,
    /// Lists around the current place.
    lists: u32,
    in_head: bool,
    any_tag: bool,
    lines: bool,
}

impl Page {
    fn start(&mut self, tag: StartTag) {
        self.any_tag = true;
        if let Some(region) = region(&tag.name) {
            self.close();
            self.region = Some(region);
            return;
        }
        match tag.name.as_str() {
            "head" | "title" => self.in_head = true,
            "body" => self.in_head = false,
            "ul" | "ol" => {
                self.close();
                self.lists = self.lists.saturating_add(1);
            }
            "img" => {
                self.close();
                self.image(tag.alt.unwrap_or_default());
            }
            "br" => self.push("\n"),
            "checkbox" => {
                self.open(ElementType::CheckBox, None, "p");
                let checked = tag.alt.is_some_and(|alt| alt.eq_ignore_ascii_case("checked"));
                if let Some(block) = &mut self.block {
                    block.checked = Some(checked);
                }
            }
            name => {
                if let Some((kind, depth, tag)) = self.block_of(name) {
                    self.open(kind, depth, tag);
                } else if is_division(name) {
                    self.close();
                }
            }
        }
    }

    fn end(&mut self, name: &str) {
        if self.region.is_some_and(|(region, _)| region == name) {
            self.close();
            self.region = None;
            return;
        }
        match name {
            "head" | "title" => self.in_head = false,
            "ul" | "ol" => {
                self.close();
                self.lists = self.lists.saturating_sub(1);
            }
            "checkbox" => self.close(),
            name if self.block_of(name).is_some() || is_division(name) => self.close(),
            _ => {}
        }
    }

    /// What a tag that opens a block of text stands for.
    fn block_of(&self, name: &str) -> Option<(ElementType, Option<u32>, &'static str)> {
        const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];
        if let Some((depth, tag)) = (0u32..).zip(HEADINGS).find(|(_, tag)| *tag == name) {
            return Some((ElementType::Title, Some(depth), tag));
        }
        Some(match name {
            "p" | "blockquote" | "dd" | "dt" => (ElementType::NarrativeText, None, "p"),
            "li" => (ElementType::ListItem, Some(self.lists.max(1)), "li"),
            "pre" => (ElementType::CodeSnippet, None, "pre"),
            "formula" | "math" => (ElementType::Formula, None, "p"),
            "figcaption" | "caption" => (ElementType::FigureCaption, None, "figcaption"),
            "address" => (ElementType::Address, None, "address"),
            "pagenumber" => (ElementType::PageNumber, None, "p"),
            _ => return None,
        })
    }

    fn open(&mut self, kind: ElementType, depth: Option<u32>, tag: &'static str) {
        // A paragraph within an item of a list is the text of the item.
        let in_item = self
            .block
            .as_ref()
            .is_some_and(|block| block.kind == ElementType::ListItem);
        if in_item && kind == ElementType::NarrativeText {
            return self.push(" ");
        }
        self.close();
        let kind = match self.region {
            Some((_, region)) if kind != ElementType::PageNumber => region,
            _ => kind,
        };
        self.block = Some(Block {
            kind,
            depth,
            tag,
            checked: None,
            text: String::new(),
        });
    }

    fn text(&mut self, text: &str) {
        if self.in_head {
            return;
        }
        if self.block.is_none() && !text.trim().is_empty() {
            self.open(ElementType::UncategorizedText, None, "p");
        }
        self.push(text);
    }

    fn push(&mut self, text: &str) {
        if let Some(block) = self.block.as_mut().filter(|block| block.text.len() < 4 * MAX_CHARS) {
            block.text.push_str(text);
        }
    }

    fn close(&mut self) {
        let Some(block) = self.block.take() else { return };
        let text = match block.kind {
            ElementType::CodeSnippet => clean(clip(block.text.trim_matches('\n'), MAX_CHARS)),
            _ => normal(&block.text),
        };
        if text.is_empty() {
            return;
        }
        let mut html = format!("<{}>", block.tag);
        push_escaped(&mut html, &text);
        html.push_str(&format!("</{}>", block.tag));
        let mut element = Element::new(block.kind, text);
        element.metadata.text_as_html = Some(html);
        element.metadata.category_depth = block
            .depth
            .filter(|_| matches!(block.kind, ElementType::Title | ElementType::ListItem));
        if let Some(checked) = block.checked {
            element.metadata.extra.insert("checked".into(), checked.into());
        }
        self.elements.push(element);
    }

    fn image(&mut self, alt: String) {
        let text = normal(&alt);
        let mut escaped = String::new();
        push_escaped(&mut escaped, &text);
        let mut image = Element::new(ElementType::Image, text);
        image.metadata.text_as_html = Some(format!("<img alt=\"{}\">", escaped.replace('"', "&quot;")));
        self.elements.push(image);
    }

    fn table(&mut self, tokens: Vec<Token<'_>>) {
        let grid = Grid::read(tokens);
        if let Some(table) = table_element(&grid, self.lines) {
            self.elements.push(table);
        }
    }
}

/// The element of a table; `None` if it has no text.
pub(super) fn table_element(grid: &Grid, lines: bool) -> Option<Element> {
    if !grid.has_text() {
        return None;
    }
    let mut table = Element::new(ElementType::Table, clean(&table_text(grid)));
    table.metadata.text_as_html = Some(write_table(grid, lines));
    Some(table)
}

fn region(name: &str) -> Option<(&'static str, ElementType)> {
    match name {
        "header" => Some(("header", ElementType::Header)),
        "footer" => Some(("footer", ElementType::Footer)),
        "form" => Some(("form", ElementType::FormKeysValues)),
        _ => None,
    }
}

/// Tags that end a block without being one.
fn is_division(name: &str) -> bool {
    matches!(
        name,
        "div" | "section" | "article" | "main" | "aside" | "nav" | "figure" | "hr" | "dl" | "body" | "html"
    )
}

fn normal(text: &str) -> String {
    let words: Vec<_> = clip(text, MAX_CHARS).split_whitespace().collect();
    clean(&words.join(" "))
}
