//! Reader of plain text: lines to paragraphs, paragraphs to elements.

use docmill_model::Element;

use crate::charset;
use crate::classify::{classify, numbered_item, strip_bullet};
use crate::context::Context;
use crate::error::PartitionError;

/// Lines looked at to see how paragraphs are set off.
const SAMPLE_LINES: usize = 2000;

/// A paragraph all of whose lines have fewer words is a column of short lines, not wrapped prose.
const SHORT_LINE_WORDS: usize = 5;

pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let text = charset::decode_file(bytes, None, cx)?;
    partition_str(&text, cx)
}

/// Adds the elements of a text.
///
/// Paragraphs stand between blank lines, unless there are hardly any blank lines and the lines are
/// not wrapped at a margin: then every line is a paragraph. Within a paragraph each bulleted or
/// numbered line starts an item; lines that all have fewer than 5 words stay apart; other lines are
/// joined by a space. Lines of `=`, `-` and the like part paragraphs as blank ones do.
pub(crate) fn partition_str(text: &str, cx: &mut Context) -> Result<(), PartitionError> {
    let lines_apart = !has_blank_line_paragraphs(text) && !is_wrapped(text);
    let mut paragraph: Vec<&str> = Vec::new();
    for line in lines(text) {
        let line = match line.trim() {
            rule if is_rule(rule) => "",
            line => line,
        };
        if !line.is_empty() {
            paragraph.push(line);
        }
        if line.is_empty() || lines_apart {
            flush(&mut paragraph, cx)?;
        }
    }
    flush(&mut paragraph, cx)
}

/// A line drawn with characters, such as `=====`: it sets paragraphs off and says nothing.
fn is_rule(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() >= 4
        && bytes
            .iter()
            .all(|b| matches!(b, b'=' | b'-' | b'_' | b'*' | b'~' | b'#') && Some(b) == bytes.first())
}

/// Lines ended by LF, CR LF, CR or form feed.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let line_ends = ['\r', '\u{c}', '\u{2028}', '\u{2029}'];
    text.split('\n')
        .flat_map(move |line| line.strip_suffix('\r').unwrap_or(line).split(line_ends))
}

/// At least a tenth of the lines are blank.
fn has_blank_line_paragraphs(text: &str) -> bool {
    let (mut all, mut blank) = (0usize, 0usize);
    for line in lines(text.trim_end()).take(SAMPLE_LINES) {
        all += 1;
        blank += usize::from(line.trim().is_empty());
    }
    blank * 10 >= all
}

/// Lines are cut at a right margin: most of those followed by another line of text are nearly as
/// long as the longest, and none is longer than a typed page is wide.
fn is_wrapped(text: &str) -> bool {
    let lines: Vec<usize> = lines(text)
        .take(SAMPLE_LINES)
        .map(|line| line.trim_end().chars().count())
        .collect();
    let longest = lines.iter().copied().max().unwrap_or(0);
    if !(40..=120).contains(&longest) || !lines.contains(&0) {
        return false;
    }
    let (mut inner, mut full) = (0usize, 0usize);
    for pair in lines.windows(2) {
        if pair[0] > 0 && pair[1] > 0 {
            inner += 1;
            full += usize::from(pair[0] * 10 >= longest * 7);
        }
    }
    inner >= 4 && full * 10 >= inner * 8
}

fn flush(lines: &mut Vec<&str>, cx: &mut Context) -> Result<(), PartitionError> {
    let is_item = |line: &str| strip_bullet(line).is_some() || numbered_item(line).is_some();
    let itemised = lines.first().is_some_and(|line| strip_bullet(line).is_some())
        || lines.iter().filter(|line| is_item(line)).take(2).count() == 2;
    let apart = !itemised && lines.iter().all(|line| is_short(line));
    let mut text = String::new();
    for line in lines.drain(..) {
        if !text.is_empty() && (apart || (itemised && is_item(line))) {
            emit(&mut text, cx)?;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line);
    }
    emit(&mut text, cx)
}

fn is_short(line: &str) -> bool {
    line.split_whitespace().nth(SHORT_LINE_WORDS - 1).is_none() && line.chars().nth(40).is_none()
}

fn emit(text: &mut String, cx: &mut Context) -> Result<(), PartitionError> {
    let (kind, text) = classify(&std::mem::take(text));
    if text.is_empty() {
        return Ok(());
    }
    cx.push(Element::new(kind, text))
}

#[cfg(test)]
mod tests {
    use docmill_model::ElementType::{self, *};
    use docmill_model::limits::ParseLimits;
    use docmill_model::settings::PartitionOptions;

    use super::*;

    fn elements(text: &str) -> Vec<(ElementType, String)> {
        let (options, limits) = (PartitionOptions::default(), ParseLimits::default());
        let mut progress = |_| {};
        let mut cx = Context::new(None, &options, &limits, &mut progress);
        partition(text.as_bytes(), &mut cx).unwrap();
        cx.into_document()
            .elements
            .into_iter()
            .map(|e| (e.kind, e.text))
            .collect()
    }

    fn texts(text: &str) -> Vec<String> {
        elements(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn blank_lines_part_paragraphs_and_wrapped_lines_are_joined() {
        assert_eq!(
            texts("This paragraph goes on over\r\ntwo lines of the file.\r\n\r\nThis is another one."),
            [
                "This paragraph goes on over two lines of the file.",
                "This is another one."
            ]
        );
    }

    #[test]
    fn drawn_lines_part_paragraphs() {
        assert_eq!(
            texts("The heading of this small file\n=====\nThe text of this small file is here."),
            ["The heading of this small file", "The text of this small file is here."]
        );
    }

    #[test]
    fn short_lines_stay_apart() {
        assert_eq!(
            texts("Ada Byron\n12 Main Street\n\nDear Sir"),
            ["Ada Byron", "12 Main Street", "Dear Sir"]
        );
    }

    #[test]
    fn without_blank_lines_every_line_is_a_paragraph() {
        let text = (0..20)
            .map(|i| format!("Line number {i} is a record of its own.\n"))
            .collect::<String>();
        assert_eq!(texts(&text).len(), 20);
    }

    #[test]
    fn wrapped_paragraphs_are_joined_though_blank_lines_are_few() {
        let line = "These words fill a line of the typed page up to its right margin so.\n";
        let text = format!("{}\n{}", line.repeat(15), line.repeat(15));
        assert_eq!(texts(&text).len(), 2);
    }

    #[test]
    fn each_bullet_or_number_is_an_item() {
        assert_eq!(
            elements("• first item\n  goes on\n• second item\n\n1. one thing\n2. two things"),
            [
                (ListItem, "first item goes on".into()),
                (ListItem, "second item".into()),
                (ListItem, "1. one thing".into()),
                (ListItem, "2. two things".into()),
            ]
        );
    }

    #[test]
    fn megabytes_in_one_line_are_quick() {
        let text = "word ".repeat(400_000);
        let start = std::time::Instant::now();
        assert_eq!(elements(&text).len(), 1);
        // Without optimisation, on a busy machine.
        assert!(start.elapsed().as_secs() < 8);
    }
}
