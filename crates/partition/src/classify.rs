//! What kind of element a piece of text is, judged by the text alone.
//!
//! No model of any language is behind this: evidence of a sentence is counted from punctuation,
//! length, capitals and, for English, a list of common verbs. Where layout or markup says more,
//! readers use that instead.

mod sentence;
#[cfg(test)]
mod tests;

use docmill_model::ElementType;

use sentence::Shape;

/// Bytes of a text that are looked at: enough to tell prose, however long the text is.
const SAMPLE: usize = 4096;

/// Digits of a list number; `1999.` at the start of a line is a year.
const MAX_NUMBER_DIGITS: usize = 3;

/// The kind of element `text` is, and the text without a leading bullet.
///
/// The first of these that fits: bullet or numbered list item, e-mail address, US address
/// (`City, ST 12345`), prose, heading, anything else. A numbered heading such as `1. Introduction`
/// can't be told from a list item by its text and is a `ListItem`.
pub(crate) fn classify(text: &str) -> (ElementType, String) {
    let text = text.trim();
    if let Some(item) = strip_bullet(text) {
        return (ElementType::ListItem, item.to_owned());
    }
    (classify_unbulleted(text), text.to_owned())
}

fn classify_unbulleted(text: &str) -> ElementType {
    if is_email_address(text) {
        return ElementType::EmailAddress;
    }
    if is_us_address(text) {
        return ElementType::Address;
    }
    if numbered_item(text).is_some() {
        return ElementType::ListItem;
    }
    let shape = Shape::of(sample(text));
    if shape.is_narrative() {
        ElementType::NarrativeText
    } else if text.len() <= SAMPLE && shape.is_title() {
        ElementType::Title
    } else {
        ElementType::UncategorizedText
    }
}

fn sample(text: &str) -> &str {
    let mut end = text.len().min(SAMPLE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `text` without its leading bullets, when it has any. `-` and `–` count only before a space or
/// the end: `-5` and `–er` are words.
pub(crate) fn strip_bullet(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    let mut found = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let is_bullet = match c {
            '-' | '\u{2013}' => after.chars().next().is_none_or(char::is_whitespace),
            // A star before a letter is a bullet too, unless a later one makes it emphasis (`*so*`).
            '*' => after.chars().next().is_none_or(char::is_whitespace) || (!found && !sample(after).contains('*')),
            _ => is_bullet_char(c),
        };
        if !is_bullet {
            break;
        }
        found = true;
        rest = after.trim_start();
    }
    found.then_some(rest)
}

fn is_bullet_char(c: char) -> bool {
    matches!(
        c,
        '\u{95}'
            | '\u{b7}'
            | '\u{2022}'
            | '\u{2023}'
            | '\u{2043}'
            | '\u{204c}'
            | '\u{204d}'
            | '\u{2219}'
            | '\u{25a0}'
            | '\u{25aa}'
            | '\u{25b6}'
            | '\u{25ba}'
            | '\u{25cb}'
            | '\u{25cf}'
            | '\u{25d8}'
            | '\u{25e6}'
            | '\u{2619}'
            | '\u{2765}'
            | '\u{2767}'
            | '\u{27a2}'
            | '\u{29be}'
            | '\u{29bf}'
            | '\u{3164}'
            // Symbol fonts map their bullets into the private use area at F000 + code.
            | '\u{f02d}'
            | '\u{f06c}'
            | '\u{f06e}'
            | '\u{f076}'
            | '\u{f0a7}'
            | '\u{f0b7}'
            | '\u{f0d8}'
            | '\u{f0fc}'
    )
}

/// The text after the number of a numbered list item (`1. `, `12) `), when `text` is one.
pub(crate) fn numbered_item(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > MAX_NUMBER_DIGITS {
        return None;
    }
    let rest = text[digits..].strip_prefix(['.', ')'])?;
    let item = rest.trim_start();
    (item.len() < rest.len() && !item.is_empty()).then_some(item)
}

/// Whether the whole of `text` is one e-mail address, perhaps in angle brackets or with `mailto:`.
pub(crate) fn is_email_address(text: &str) -> bool {
    let text = text.trim();
    if text.len() > 320 || text.contains(char::is_whitespace) {
        return false;
    }
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    let text = text.trim_matches(['<', '>', '(', ')', ',', ';', '.']);
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '%' | '\'' | '=');
    let tld = domain.rsplit('.').next().unwrap_or_default();
    !local.is_empty()
        && local.chars().all(word)
        && domain.contains('.')
        && domain.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'))
        && !domain.starts_with('.')
        && tld.chars().count() >= 2
        && tld.chars().all(char::is_alphabetic)
}

const US_STATES: &[&str] = &[
    "AL", "AK", "AS", "AZ", "AR", "CA", "CO", "CT", "DE", "DC", "FL", "GA", "GU", "HI", "ID", "IL", "IN", "IA", "KS",
    "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND", "OH",
    "OK", "OR", "PA", "PR", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VI", "VA", "WA", "WV", "WI", "WY",
];

/// Whether `text` is short and ends in `City, ST 12345` or `City, ST 12345-6789`.
fn is_us_address(text: &str) -> bool {
    if text.len() > 160 {
        return false;
    }
    let mut words = text.split_whitespace().rev();
    let (Some(zip), Some(state), Some(city)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let (five, four) = zip.split_once('-').unwrap_or((zip, "0000"));
    let digits = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
    digits(five, 5)
        && digits(four, 4)
        && US_STATES.contains(&state.trim_end_matches(','))
        && city.ends_with(',')
        && city.starts_with(|c: char| c.is_alphabetic())
}
