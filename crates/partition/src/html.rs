//! Reader of HTML: pages, mail bodies and rendered Markdown.
//!
//! The document is parsed as browsers do (WHATWG HTML) into a flat arena and walked without
//! recursion. No style sheet is read. Left out: `head`, scripts, styles, templates, `nav`, buttons,
//! embedded media, and what `hidden`, `display:none` or `visibility:hidden` hide. Kept, unlike the
//! usual text extraction: headers, footers, figures and their captions, `details`, description
//! lists, form fields' values, row and column spans of tables.

mod dom;
mod inline;
mod node;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use crate::charset;
use crate::context::Context;
use crate::error::PartitionError;

pub(crate) use table::push_escaped;

pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let declared = declared_charset(bytes);
    let text = charset::decode_file(bytes, declared.as_deref(), cx)?;
    partition_str(&text, cx)
}

/// Adds the elements of an HTML document or fragment.
pub(crate) fn partition_str(html: &str, cx: &mut Context) -> Result<(), PartitionError> {
    let dom = dom::parse(html, cx.limits)?;
    walk::Walker::new(&dom, cx).run()
}

/// The charset a `meta` element names in the first 1024 bytes, where it has to stand.
fn declared_charset(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let mut rest = head.as_str();
    while let Some(at) = rest.find("charset") {
        rest = &rest[at + "charset".len()..];
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            continue;
        };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | '+')))
            .unwrap_or(value.len());
        if end > 0 {
            return Some(value[..end].to_owned());
        }
    }
    None
}
