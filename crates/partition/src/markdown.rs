//! Reader of Markdown: CommonMark with tables, strikethrough, task lists, footnotes and front matter.
//!
//! Markdown may hold HTML anywhere, so it is rendered to HTML and read by the rules for that.

use docmill_model::{Element, ElementType};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::charset;
use crate::context::Context;
use crate::error::PartitionError;
use crate::html as html_reader;

pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let text = charset::decode_file(bytes, None, cx)?;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut rewrite = Rewrite::default();
    let mut markup = String::with_capacity(text.len() + text.len() / 4);
    let events = Parser::new_ext(&text, options).flat_map(|event| rewrite.event(event));
    html::push_html(&mut markup, events);
    let front_matter = rewrite.front_matter.trim();
    if !front_matter.is_empty() {
        cx.push(Element::new(ElementType::UncategorizedText, front_matter))?;
    }
    html_reader::partition_str(&markup, cx)
}

/// Takes front matter out and writes footnote marks as text.
#[derive(Default)]
struct Rewrite<'a> {
    in_front_matter: bool,
    front_matter: String,
    /// Label of a footnote whose first paragraph has not begun.
    label: Option<CowStr<'a>>,
}

impl<'a> Rewrite<'a> {
    fn event(&mut self, event: Event<'a>) -> impl Iterator<Item = Event<'a>> + use<'a> {
        let mut mark = None;
        let event = match event {
            Event::Start(Tag::MetadataBlock(_)) => {
                self.in_front_matter = true;
                None
            }
            Event::End(TagEnd::MetadataBlock(_)) => {
                self.in_front_matter = false;
                None
            }
            Event::Text(text) if self.in_front_matter => {
                self.front_matter.push_str(&text);
                None
            }
            Event::FootnoteReference(name) => Some(Event::Text(format!("[{name}]").into())),
            Event::Start(Tag::FootnoteDefinition(name)) => {
                self.label = Some(name);
                Some(Event::Html("<div>".into()))
            }
            Event::End(TagEnd::FootnoteDefinition) => Some(Event::Html("</div>\n".into())),
            Event::Start(Tag::Paragraph) => {
                mark = self.label.take().map(|name| Event::Text(format!("[{name}] ").into()));
                Some(Event::Start(Tag::Paragraph))
            }
            other => Some(other),
        };
        event.into_iter().chain(mark)
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::ElementType::{self, *};
    use docmill_model::limits::ParseLimits;
    use docmill_model::settings::PartitionOptions;

    use super::*;

    fn elements(text: &str) -> Vec<Element> {
        let (options, limits) = (PartitionOptions::default(), ParseLimits::default());
        let mut progress = |_| {};
        let mut cx = Context::new(None, &options, &limits, &mut progress);
        partition(text.as_bytes(), &mut cx).unwrap();
        cx.into_document().elements
    }

    fn kinds(text: &str) -> Vec<(ElementType, String)> {
        elements(text).into_iter().map(|e| (e.kind, e.text)).collect()
    }

    #[test]
    fn blocks() {
        assert_eq!(
            kinds(
                "# One\n\nSome text is here.\n\n## Two ##\n\n- a\n  - b\n\n```py\nx = 1\n  y\n```\n\n![Alt](p.png)\n"
            ),
            [
                (Title, "One".into()),
                (NarrativeText, "Some text is here.".into()),
                (Title, "Two".into()),
                (ListItem, "a".into()),
                (ListItem, "b".into()),
                (CodeSnippet, "x = 1\n  y".into()),
                (Image, "Alt".into()),
            ]
        );
    }

    #[test]
    fn depths_of_headings_and_items() {
        let depths: Vec<_> = elements("# A\n\n### B\n\n- x\n  - y\n")
            .into_iter()
            .map(|e| e.metadata.category_depth)
            .collect();
        assert_eq!(depths, [Some(0), Some(2), Some(1), Some(2)]);
    }

    #[test]
    fn tables_with_inline_marks() {
        let table = &elements("| A | *B* |\n|---|---|\n| 1 | [two](u) |\n")[0];
        assert_eq!((table.kind, table.text.as_str()), (Table, "A B 1 two"));
        assert_eq!(
            table.metadata.text_as_html.as_deref(),
            Some(
                "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1</td><td>two</td></tr></tbody></table>"
            )
        );
        assert_eq!(table.metadata.link_urls, ["u"]);
    }

    #[test]
    fn front_matter_footnotes_tasks_and_html() {
        assert_eq!(
            kinds(
                "---\ntitle: T\n---\nText is here.[^n]\n\n[^n]: The note is this.\n\n- [x] done\n- [ ] open\n\n<div>raw <b>html</b></div>\n"
            ),
            [
                (UncategorizedText, "title: T".into()),
                (NarrativeText, "Text is here.[n]".into()),
                (NarrativeText, "[n] The note is this.".into()),
                (ListItem, "[x] done".into()),
                (ListItem, "[ ] open".into()),
                (UncategorizedText, "raw html".into()),
            ]
        );
    }

    #[test]
    fn deep_quotes_and_lists_end() {
        let start = std::time::Instant::now();
        elements(&format!("{}x", ">".repeat(50_000)));
        elements(&format!("{}x", "- ".repeat(20_000)));
        assert!(start.elapsed().as_secs() < 10);
    }
}
