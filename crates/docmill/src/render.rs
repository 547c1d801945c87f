//! Elements as text for people and scripts.

use clap::ValueEnum;
use docmill_model::{Element, ElementType};

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON array of elements.
    Json,
    /// One JSON element per line.
    Jsonl,
    /// Markdown.
    Md,
    /// Plain text.
    Text,
}

impl Format {
    /// Extension of a file in this form.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Md => "md",
            Self::Text => "txt",
        }
    }
}

/// The elements in the form asked for, ending in a line break when there are any.
pub(crate) fn render(elements: &[Element], format: Format) -> Result<String, serde_json::Error> {
    Ok(match format {
        Format::Json => serde_json::to_string_pretty(elements)? + "\n",
        Format::Jsonl => {
            let mut out = String::new();
            for element in elements {
                out.push_str(&serde_json::to_string(element)?);
                out.push('\n');
            }
            out
        }
        Format::Md => blocks(elements, markdown),
        Format::Text => blocks(elements, |element, _| element.text.clone()),
    })
}

fn blocks(elements: &[Element], block: impl Fn(&Element, u32) -> String) -> String {
    let mut out = String::new();
    let mut before: Option<ElementType> = None;
    let top = top_of_lists(elements);
    for element in elements.iter().filter(|e| !e.text.trim().is_empty()) {
        let in_list = element.kind == ElementType::ListItem && before == Some(ElementType::ListItem);
        if before.is_some() && !in_list {
            out.push('\n');
        }
        out.push_str(&block(element, top));
        out.push('\n');
        before = Some(element.kind);
    }
    out
}

/// Depth of the outermost list items: some formats count it from 0, some from 1.
fn top_of_lists(elements: &[Element]) -> u32 {
    let items = elements.iter().filter(|e| e.kind == ElementType::ListItem);
    items.map(|e| e.metadata.category_depth.unwrap_or(0)).min().unwrap_or(0)
}

fn markdown(element: &Element, top_of_lists: u32) -> String {
    let depth = element.metadata.category_depth.unwrap_or(0) as usize;
    match element.kind {
        ElementType::Title => format!("{} {}", "#".repeat((depth + 1).min(6)), element.text),
        ElementType::ListItem => {
            let indent = "  ".repeat(depth.saturating_sub(top_of_lists as usize).min(8));
            let numbered = element.text.split_once(['.', ')']).is_some_and(|(number, rest)| {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && rest.starts_with(' ')
            });
            if numbered {
                format!("{indent}{}", element.text)
            } else {
                format!("{indent}- {}", element.text)
            }
        }
        ElementType::CodeSnippet => {
            // A fence longer than any in the code.
            let longest = element.text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            format!("{fence}\n{}\n{fence}", element.text)
        }
        // HTML tables are Markdown too, and keep spans.
        ElementType::Table | ElementType::TableChunk => element
            .metadata
            .text_as_html
            .clone()
            .unwrap_or_else(|| element.text.clone()),
        _ => element.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements() -> Vec<Element> {
        let mut table = Element::new(ElementType::Table, "a b");
        table.metadata.text_as_html = Some("<table><tr><td>a</td><td>b</td></tr></table>".into());
        vec![
            Element::new(ElementType::Title, "Head").with_depth(1),
            Element::new(ElementType::ListItem, "one").with_depth(1),
            Element::new(ElementType::ListItem, "2. two").with_depth(1),
            Element::new(ElementType::PageBreak, ""),
            Element::new(ElementType::CodeSnippet, "x = `y`"),
            table,
        ]
    }

    #[test]
    fn markdown_keeps_the_structure() {
        assert_eq!(
            render(&elements(), Format::Md).unwrap(),
            "## Head\n\n- one\n2. two\n\n```\nx = `y`\n```\n\n<table><tr><td>a</td><td>b</td></tr></table>\n"
        );
    }

    #[test]
    fn lines_and_text() {
        assert_eq!(render(&elements(), Format::Jsonl).unwrap().lines().count(), 6);
        assert_eq!(
            render(&elements(), Format::Text).unwrap(),
            "Head\n\none\n2. two\n\nx = `y`\n\na b\n"
        );
    }
}
