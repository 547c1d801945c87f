//! Kinds of text, told by their shape.

use super::{Hints, TEXT_SAMPLE};
use crate::charset;
use crate::csv::looks_delimited;
use crate::filetype::FileType;

/// The type of a text, from what the sender says and from its start.
pub(super) fn refine(bytes: &[u8], hints: &Hints) -> FileType {
    let sample = &bytes[..bytes.len().min(TEXT_SAMPLE)];
    let whole = sample.len() == bytes.len();
    let decoded = charset::decode(sample, None);
    let text = decoded.text.trim_start_matches(['\u{feff}']).trim_start();
    let hint = hints.textual();
    if !hints.is_code() && starts_as_html(text) && !matches!(hint, Some(FileType::Eml)) {
        return FileType::Html;
    }
    match hint {
        Some(FileType::Json) if is_json_lines(text, whole) => FileType::Ndjson,
        Some(FileType::Ndjson) if !first_line_is_json(text, whole) && text.starts_with(['[', '{']) => FileType::Json,
        Some(FileType::Txt) if hints.named.is_some() && !hints.is_code() => FileType::Txt,
        Some(FileType::Txt) if hints.is_code() => FileType::Txt,
        Some(FileType::Txt) if hints.declared_plain => by_shape(text, whole).unwrap_or(FileType::Txt),
        Some(special) => special,
        None => by_shape(text, whole).unwrap_or(FileType::Txt),
    }
}

fn by_shape(text: &str, whole: bool) -> Option<FileType> {
    if starts_as_xml(text) {
        return Some(FileType::Xml);
    }
    if is_json_lines(text, whole) {
        return Some(FileType::Ndjson);
    }
    if is_json(text, whole) {
        return Some(FileType::Json);
    }
    if starts_as_mail(text) {
        return Some(FileType::Eml);
    }
    if has_html_tags(text) {
        return Some(FileType::Html);
    }
    looks_delimited(text, whole).then_some(FileType::Csv)
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// `<!doctype html` or `<html`, after comments and an XML declaration.
fn starts_as_html(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let end = if rest.starts_with("<!--") {
            rest.find("-->").map(|i| i + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|i| i + 2)
        } else {
            break;
        };
        match end.and_then(|end| rest.get(end..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    let tag = |name: &str| {
        starts_with_ignoring_case(rest, name) && rest[name.len()..].starts_with(|c: char| c == '>' || c.is_whitespace())
    };
    tag("<!doctype html") || tag("<html")
}

fn starts_as_xml(text: &str) -> bool {
    text.starts_with("<?xml") && text[5..].starts_with(|c: char| c.is_whitespace() || c == '?')
}

/// Starts with a tag of HTML's body and closes one: a fragment of a page.
fn has_html_tags(text: &str) -> bool {
    const TAGS: &[&str] = &[
        "<head", "<body", "<div", "<p>", "<p ", "<h1", "<h2", "<table", "<ul", "<ol", "<span", "<article", "<section",
        "<main", "<meta", "<title",
    ];
    TAGS.iter().any(|tag| starts_with_ignoring_case(text, tag)) && text.contains('>')
}

/// A JSON object or array. A file longer than the sample is judged by its first tokens.
fn is_json(text: &str, whole: bool) -> bool {
    let trimmed = text.trim_end();
    if !trimmed.starts_with(['{', '[']) {
        return false;
    }
    if whole {
        return serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok();
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(trimmed) {
        Ok(_) => true,
        Err(error) => error.is_eof(),
    }
}

fn json_line(line: &str) -> bool {
    line.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
}

/// At least two lines, each a JSON object or array of its own.
fn is_json_lines(text: &str, whole: bool) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let mut seen = 0;
    while let Some(line) = lines.next() {
        // The last line of a sample is cut.
        if lines.peek().is_none() && !whole {
            break;
        }
        if !json_line(line) {
            return false;
        }
        seen += 1;
    }
    seen >= 2
}

fn first_line_is_json(text: &str, whole: bool) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines.next() {
        Some(line) => json_line(line) || (!whole && lines.next().is_none()) || !line.starts_with(['{', '[']),
        None => true,
    }
}

/// Header fields of a message (RFC 5322): at least two known ones before the first blank line.
fn starts_as_mail(text: &str) -> bool {
    const FIELDS: &[&str] = &[
        "from",
        "to",
        "cc",
        "subject",
        "date",
        "message-id",
        "received",
        "return-path",
        "delivered-to",
        "mime-version",
        "content-type",
        "dkim-signature",
        "reply-to",
        "sender",
        "x-mailer",
        "arc-seal",
        "authentication-results",
        "x-originating-ip",
        "thread-index",
        "references",
        "in-reply-to",
        "list-id",
    ];
    let mut seen: Vec<String> = Vec::new();
    for (number, line) in text.lines().take(200).enumerate() {
        if line.trim().is_empty() {
            break;
        }
        if line.starts_with([' ', '\t']) || (number == 0 && line.starts_with("From ")) {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else {
            return false;
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic()) {
            return false;
        }
        let name = name.to_ascii_lowercase();
        if FIELDS.contains(&name.as_str()) && !seen.contains(&name) {
            seen.push(name);
        }
    }
    let has = |name: &str| seen.iter().any(|n| n == name);
    // A note that starts with "Subject:" and "Date:" is no mail; these fields are written by programs.
    let technical = [
        "message-id",
        "received",
        "return-path",
        "mime-version",
        "dkim-signature",
        "delivered-to",
    ];
    let addressed = has("from") && (has("to") || has("subject") || has("date"));
    (addressed && seen.len() >= 3) || (seen.len() >= 2 && technical.iter().any(|name| has(name)))
}
