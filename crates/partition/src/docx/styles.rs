//! What a document's styles say about a paragraph or run.

use std::collections::HashMap;

use crate::error::PartitionError;
use crate::ooxml::xml::{Node, Ns, Token, XmlReader};

/// Styles followed along `basedOn`; files of real life have fewer than ten.
const MAX_CHAIN: usize = 32;

/// Bytes of a style's id. Ids are looked up for each paragraph; real ones are short.
const MAX_ID: usize = 255;

/// What a paragraph is by its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A heading of this depth.
    Heading(u32),
    /// An item of a list even without numbering, at this depth.
    ListItem(u32),
    Caption,
    Code,
    /// The style has a role that is none of these, such as an entry of a table of contents.
    Plain,
}

#[derive(Debug, Default)]
struct Style {
    based_on: Option<String>,
    role: Option<Role>,
    outline_level: Option<u32>,
    number: Option<String>,
    number_level: Option<u32>,
    bold: Option<bool>,
    italic: Option<bool>,
    hidden: Option<bool>,
}

/// The styles of a document by id.
#[derive(Debug, Default)]
pub(super) struct Styles {
    by_id: HashMap<String, Style>,
    default_paragraph: Option<String>,
}

impl Styles {
    /// Reads a styles part. Styles of tables, mostly its larger share, are passed over.
    pub(super) fn read(mut reader: XmlReader) -> Result<Self, PartitionError> {
        let mut styles = Self::default();
        let mut in_root = false;
        loop {
            match reader.token()? {
                Token::Start(node) if !in_root => in_root = node.is(Ns::W, "styles"),
                Token::Start(node) if node.is(Ns::W, "style") && node.attr("type") != Some("table") => {
                    let node = reader.subtree(node)?;
                    styles.add(&node);
                }
                Token::Start(_) => reader.skip()?,
                Token::End | Token::Text(_) => {}
                Token::Eof => return Ok(styles),
            }
        }
    }

    fn add(&mut self, node: &Node) {
        let Some(id) = node.attr("styleId").filter(|id| id.len() <= MAX_ID) else {
            return;
        };
        let value = |path: &[&str]| node.path(Ns::W, path).and_then(|n| n.attr("val"));
        let flag = |name: &str| node.path(Ns::W, &["rPr", name]).map(on);
        let default = matches!(node.attr("default"), Some("1" | "true" | "on"));
        if default && node.attr("type") == Some("paragraph") {
            self.default_paragraph = Some(id.to_owned());
        }
        let based_on = value(&["basedOn"]).filter(|id| id.len() <= MAX_ID);
        let style = Style {
            based_on: based_on.map(str::to_owned),
            role: role_of_name(value(&["name"]).unwrap_or(id)),
            outline_level: value(&["pPr", "outlineLvl"]).and_then(|v| v.parse().ok()),
            number: value(&["pPr", "numPr", "numId"]).map(str::to_owned),
            number_level: value(&["pPr", "numPr", "ilvl"]).and_then(|v| v.parse().ok()),
            bold: flag("b"),
            italic: flag("i"),
            hidden: flag("vanish"),
        };
        self.by_id.insert(id.to_owned(), style);
    }

    /// The role of a paragraph style, its own or inherited.
    pub(super) fn role(&self, id: Option<&str>) -> Option<Role> {
        self.chain(id).find_map(|style| match style.outline_level {
            _ if style.role.is_some() => style.role,
            Some(level) if level < 9 => Some(Role::Heading(level)),
            // Body text: ends the search for a heading among the styles it is based on.
            Some(_) => Some(Role::Plain),
            None => None,
        })
    }

    /// The numbering a paragraph style gives: id and level.
    pub(super) fn numbering<'s>(&'s self, id: Option<&'s str>) -> Option<(&'s str, Option<u32>)> {
        let number = self.chain(id).find_map(|style| style.number.as_deref())?;
        Some((number, self.chain(id).find_map(|style| style.number_level)))
    }

    /// Whether a character style makes text bold, italic, hidden.
    pub(super) fn emphasis(&self, id: Option<&str>) -> (bool, bool, bool) {
        let flag = |get: fn(&Style) -> Option<bool>| match id {
            Some(_) => self.chain(id).find_map(get).unwrap_or(false),
            None => false,
        };
        (flag(|s| s.bold), flag(|s| s.italic), flag(|s| s.hidden))
    }

    fn chain<'s>(&'s self, id: Option<&'s str>) -> impl Iterator<Item = &'s Style> {
        let first = id
            .or(self.default_paragraph.as_deref())
            .and_then(|id| self.by_id.get(id));
        std::iter::successors(first, |style| self.by_id.get(style.based_on.as_deref()?)).take(MAX_CHAIN)
    }
}

/// The value of an on/off property such as `w:b`.
pub(super) fn on(node: &Node) -> bool {
    !matches!(node.attr("val"), Some("0" | "false" | "off" | "none"))
}

/// The role a style's name stands for. Built-in styles carry their English name in the file whatever
/// the language of the program.
fn role_of_name(name: &str) -> Option<Role> {
    let name = name.to_lowercase();
    let number = |prefix: &str| -> Option<Option<u32>> {
        let rest = name.strip_prefix(prefix)?.trim();
        match rest {
            "" => Some(None),
            digits => digits.parse().ok().map(Some),
        }
    };
    if let Some(level) = number("heading") {
        return level.filter(|l| (1..=9).contains(l)).map(|l| Role::Heading(l - 1));
    }
    for prefix in ["list bullet", "list number", "list continue", "list"] {
        if let Some(level) = number(prefix) {
            return Some(Role::ListItem(level.unwrap_or(1).clamp(1, 9) - 1));
        }
    }
    if number("toc").is_some_and(|level| level.is_some()) {
        return Some(Role::Plain);
    }
    Some(match name.as_str() {
        "title" | "toc heading" => Role::Heading(0),
        "subtitle" => Role::Heading(1),
        "caption" | "figure caption" | "table caption" | "image caption" | "figure" | "table" | "illustration" => {
            Role::Caption
        }
        "source code" | "html preformatted" | "preformatted text" | "code" | "code block" | "macro text" | "macro" => {
            Role::Code
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ooxml::testing::W;

    fn styles(inner: &str) -> Styles {
        let text = format!("<w:styles {W}>{inner}</w:styles>");
        Styles::read(XmlReader::new(&text, "DOCX", "x", 100)).unwrap()
    }

    #[test]
    fn roles_are_inherited_and_outline_levels_count() {
        let styles = styles(
            r#"<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>
            <w:style w:type="paragraph" w:styleId="h2"><w:name w:val="heading 2"/></w:style>
            <w:style w:type="paragraph" w:styleId="mine"><w:name w:val="Mine"/><w:basedOn w:val="h2"/></w:style>
            <w:style w:type="paragraph" w:styleId="out"><w:name w:val="X"/><w:pPr><w:outlineLvl w:val="3"/></w:pPr></w:style>
            <w:style w:type="paragraph" w:styleId="body"><w:name w:val="Y"/><w:basedOn w:val="h2"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>
            <w:style w:type="paragraph" w:styleId="loop"><w:name w:val="Z"/><w:basedOn w:val="loop"/></w:style>"#,
        );
        assert_eq!(styles.role(Some("mine")), Some(Role::Heading(1)));
        assert_eq!(styles.role(Some("out")), Some(Role::Heading(3)));
        assert_eq!(styles.role(Some("body")), Some(Role::Plain));
        assert_eq!(styles.role(Some("loop")), None);
        assert_eq!(styles.role(None), None);
        assert_eq!(styles.role(Some("unknown")), None);
    }

    #[test]
    fn names() {
        assert_eq!(role_of_name("List Bullet 3"), Some(Role::ListItem(2)));
        assert_eq!(role_of_name("List Paragraph"), None);
        assert_eq!(role_of_name("toc 2"), Some(Role::Plain));
        assert_eq!(role_of_name("HTML Preformatted"), Some(Role::Code));
        assert_eq!(role_of_name("Subtitle"), Some(Role::Heading(1)));
    }
}
