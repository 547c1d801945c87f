//! Reader of DOCX files (WordprocessingML, ECMA-376 part 1, clause 17).

mod body;
mod inline;
mod notes;
mod numbering;
mod section;
mod styles;
mod symbol;
mod table;

use docmill_model::{Warning, WarningCode};

use crate::context::Context;
use crate::error::PartitionError;
use crate::ooxml::xml::{Node, Ns, Token, XmlReader};
use crate::ooxml::{Package, Relationships};
use body::Body;
use notes::Notes;
use numbering::Numbering;
use styles::Styles;

const FORMAT: &str = "DOCX";

/// Reads a DOCX file block by block.
///
/// The order is that of the text: a section's headers, its blocks, its footers; what is anchored in a
/// paragraph (text boxes, charts, notes) follows it.
pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let mut package = Package::open(bytes, FORMAT, cx.limits)?;
    let main = package.main_part("word/document.xml")?;
    let relationships = package.relationships(&main)?;
    let text = package
        .text(&main)?
        .ok_or_else(|| PartitionError::corrupt(FORMAT, format_args!("its main part `{main}` is missing")))?;
    let styles = read_styles(&mut package, &relationships, cx)?;
    let mut side = |kind: &str, cx: &mut Context| side_part(&mut package, &relationships, kind, cx);
    let numbering = side("numbering", cx)?.map(|n| Numbering::read(&n)).unwrap_or_default();
    let even_pages = side("settings", cx)?.is_some_and(|n| n.child(Ns::W, "evenAndOddHeaders").is_some_and(styles::on));
    let footnotes = side("footnotes", cx)?
        .map(|n| Notes::read(n, "footnote"))
        .unwrap_or_default();
    let endnotes = side("endnotes", cx)?
        .map(|n| Notes::read(n, "endnote"))
        .unwrap_or_default();
    let comments = side("comments", cx)?
        .map(|n| Notes::read(n, "comment"))
        .unwrap_or_default();

    let turns = text.matches("lastRenderedPageBreak").count();
    let max_depth = package.max_depth();
    let mut body = Body {
        cx,
        package: &mut package,
        relationships: &relationships,
        styles: &styles,
        numbering,
        footnotes,
        endnotes,
        comments,
        sections: section::scan(&text).into(),
        even_pages,
        page: None,
        explicit_turns: 0,
        code: None,
    };
    if turns > 0 {
        body.start_pages(turns)?;
    }
    body.start_section()?;
    let mut reader = XmlReader::new(&text, FORMAT, &main, max_depth);
    let mut inside = false;
    loop {
        match reader.token()? {
            Token::Start(node) if inside => {
                let node = reader.subtree(node)?;
                body.block(&node)?;
            }
            Token::Start(node) => inside = node.is(Ns::W, "body"),
            Token::End => inside = false,
            Token::Text(_) => {}
            Token::Eof => break,
        }
    }
    body.finish()
}

/// The styles; without them, after a warning, when their part is broken.
fn read_styles(
    package: &mut Package,
    relationships: &Relationships,
    cx: &mut Context,
) -> Result<Styles, PartitionError> {
    let Some(part) = relationships.first("styles") else {
        return Ok(Styles::default());
    };
    let max_depth = package.max_depth();
    let styles = package.text(part).and_then(|text| match text {
        Some(text) => Styles::read(XmlReader::new(&text, FORMAT, part, max_depth)),
        None => Ok(Styles::default()),
    });
    match styles {
        Err(PartitionError::Corrupt { reason, .. }) => {
            let message = format!("styles of the document were not read: {reason}");
            cx.warn(Warning::new(WarningCode::PartUnreadable, message));
            Ok(Styles::default())
        }
        other => other,
    }
}

/// A part the text can do without: when it is broken, a warning says so.
fn side_part(
    package: &mut Package,
    relationships: &Relationships,
    kind: &str,
    cx: &mut Context,
) -> Result<Option<Node>, PartitionError> {
    let Some(part) = relationships.first(kind) else {
        return Ok(None);
    };
    match package.xml(part) {
        Err(PartitionError::Corrupt { reason, .. }) => {
            let message = format!("{kind} of the document were not read: {reason}");
            cx.warn(Warning::new(WarningCode::PartUnreadable, message));
            Ok(None)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
