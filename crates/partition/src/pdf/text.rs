//! Text of lines: joining them, and what they start with.

use super::script::{is_east_asian, is_unspaced};

/// What a list item starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// A bullet, which is no part of the text.
    Bullet,
    /// A number or letter, which stays.
    Number,
}

/// Appends a line, undoing hyphenation: a soft hyphen at the end goes, and so does a hyphen between
/// two lower-case letters that follows at least two letters.
pub(super) fn append_line(text: &mut String, line: &str) {
    if text.is_empty() {
        text.push_str(line);
        return;
    }
    if text.ends_with('\u{AD}') {
        text.pop();
        text.push_str(line);
        return;
    }
    let next = line.chars().next().unwrap_or(' ');
    if let Some(rest) = text.strip_suffix('-') {
        let mut before = rest.chars().rev();
        let letters = before.next().is_some_and(char::is_lowercase) && before.next().is_some_and(char::is_alphabetic);
        // A hyphen after anything but a space is a break within a word or number.
        let within = rest.ends_with(char::is_alphanumeric);
        if letters && next.is_lowercase() {
            text.pop();
        }
        if within {
            text.push_str(line);
            return;
        }
    }
    let last = text.chars().next_back().unwrap_or(' ');
    let unspaced = is_unspaced(last) && is_unspaced(next) || is_east_asian(last) && is_east_asian(next);
    if !unspaced {
        text.push(' ');
    }
    text.push_str(line);
}

/// The list marker a text starts with.
pub(super) fn marker(text: &str) -> Option<Marker> {
    if bullet_length(text).is_some() {
        return Some(Marker::Bullet);
    }
    is_numbered(text).then_some(Marker::Number)
}

/// Bytes of the bullet a text starts with, if more text or the end follows.
pub(super) fn bullet_length(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let strong = matches!(
        first,
        '\u{95}'
            | '\u{2022}'
            | '\u{2023}'
            | '\u{2043}'
            | '\u{3164}'
            | '\u{204C}'
            | '\u{204D}'
            | '\u{2219}'
            | '\u{25CB}'
            | '\u{25CF}'
            | '\u{25D8}'
            | '\u{25E6}'
            | '\u{2619}'
            | '\u{2765}'
            | '\u{2767}'
            | '\u{29BE}'
            | '\u{29BF}'
            | '\u{25A0}'
            | '\u{25AA}'
            | '\u{25AB}'
            | '\u{25B6}'
            | '\u{25BA}'
            | '\u{27A2}'
            | '\u{2794}'
            | '\u{2713}'
            | '\u{2714}'
            | '\u{F000}'..='\u{F0FF}'
    );
    let weak = matches!(first, '*' | '\u{B7}' | '-' | '\u{2013}');
    let next = chars.next();
    if strong || (weak && next == Some(' ')) {
        return Some(first.len_utf8());
    }
    None
}

/// `1. text`, `2) text`, `(a) text`, `iv. text`.
fn is_numbered(text: &str) -> bool {
    let Some((head, rest)) = text.split_once(' ') else {
        return false;
    };
    let body = match (head.strip_prefix('('), head.chars().next_back()) {
        (Some(inner), Some(')')) => inner.get(..inner.len().saturating_sub(1)).unwrap_or_default(),
        (None, Some('.' | ')')) => head.get(..head.len() - 1).unwrap_or_default(),
        _ => return false,
    };
    let digits = !body.is_empty() && body.len() <= 3 && body.bytes().all(|b| b.is_ascii_digit());
    let letter = body.len() == 1 && body.bytes().all(|b| b.is_ascii_lowercase());
    let roman = (1..=5).contains(&body.len()) && body.bytes().all(|b| matches!(b, b'i' | b'v' | b'x'));
    (digits || letter || roman) && !rest.trim().is_empty()
}

/// Whether a text is nothing but a list marker.
pub(super) fn is_marker(text: &str) -> bool {
    text.chars().count() <= 6 && (bullet_length(text).is_some() || is_numbered(&format!("{text} x")))
}

/// A rule made of characters.
pub(super) fn is_rule(text: &str) -> bool {
    let mut count = 0;
    for ch in text.chars() {
        match ch {
            '.' | '_' | '-' | '–' | '—' | '…' | '=' | '*' | '·' => count += 1,
            ' ' => {}
            _ => return false,
        }
    }
    count >= 10
}

/// Beginnings of the names of months in English, German, French, Spanish, Italian and Portuguese.
const MONTHS: [&str; 31] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "jän", "mär", "mai", "okt",
    "dez", "fév", "avr", "jui", "aoû", "déc", "ene", "abr", "ago", "dic", "gen", "mag", "giu", "lug", "out",
];

/// A date and nothing else: `3 November 2011`, `Monday, 4. März 2019`.
pub(super) fn is_date(text: &str) -> bool {
    let (mut year, mut month, mut words) = (false, false, 0);
    for word in text.split(|ch: char| ch.is_whitespace() || matches!(ch, ',' | '.')) {
        let lower = word.to_lowercase();
        let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        match () {
            () if word.is_empty() => continue,
            () if digits && word.len() == 4 => year = true,
            () if digits && word.len() <= 2 => {}
            () if MONTHS.iter().any(|name| lower.starts_with(name)) && word.chars().count() <= 10 => month = true,
            () if matches!(
                lower.as_str(),
                "de" | "of" | "the" | "le" | "am" | "st" | "nd" | "rd" | "th"
            ) => {}
            () if lower.ends_with("day") || lower.ends_with("tag") => {}
            () => return false,
        }
        words += 1;
    }
    year && month && (2..=7).contains(&words)
}

/// Several letters, none of them small.
pub(super) fn is_caps(text: &str) -> bool {
    text.chars().filter(|ch| ch.is_uppercase()).count() >= 4 && !text.chars().any(char::is_lowercase)
}

/// The text with each row of dots that leads to a page number made one space.
pub(super) fn without_leaders(text: &str) -> String {
    let is_dot = |ch: char| matches!(ch, '.' | '…' | '·');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_dot) {
        let tail = rest.get(start..).unwrap_or_default();
        let end = tail.find(|ch: char| !is_dot(ch) && ch != ' ').unwrap_or(tail.len());
        let (dots, after) = tail.split_at(end);
        out.push_str(rest.get(..start).unwrap_or_default());
        if dots.chars().filter(|&ch| is_dot(ch)).count() >= 4 || dots.contains("……") {
            out.truncate(out.trim_end().len());
            out.push(' ');
        } else {
            out.push_str(dots);
        }
        rest = after;
    }
    out.push_str(rest);
    out.trim().to_owned()
}

/// Decodes a PDF text string: UTF-16 or UTF-8 with a byte order mark, else PDFDocEncoding, of which
/// the Latin-1 part is enough here.
pub(super) fn text_string(bytes: &[u8]) -> String {
    let utf16 = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units = rest.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match bytes {
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&b| char::from(b)).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(lines: &[&str]) -> String {
        let mut text = String::new();
        lines.iter().for_each(|line| append_line(&mut text, line));
        text
    }

    #[test]
    fn hyphens_at_line_ends() {
        assert_eq!(joined(&["an exam-", "ple of it"]), "an example of it");
        assert_eq!(joined(&["a soft\u{AD}", "hyphen"]), "a softhyphen");
        assert_eq!(joined(&["the Anglo-", "Saxon kings"]), "the Anglo-Saxon kings");
        assert_eq!(joined(&["from 2019-", "2021 on"]), "from 2019-2021 on");
        assert_eq!(joined(&["a dash -", "and more"]), "a dash - and more");
        assert_eq!(joined(&["人人生而", "自由"]), "人人生而自由");
    }

    #[test]
    fn markers() {
        assert_eq!(marker("• item"), Some(Marker::Bullet));
        assert_eq!(marker("- item"), Some(Marker::Bullet));
        assert_eq!(marker("-item"), None);
        assert_eq!(marker("12) item"), Some(Marker::Number));
        assert_eq!(marker("(a) item"), Some(Marker::Number));
        assert_eq!(marker("1987. It was"), None);
        assert_eq!(marker("o documento"), None);
    }

    #[test]
    fn dates() {
        for text in [
            "November 3, 2011",
            "Monday, 4. März 2019",
            "3 de abril de 2020",
            "May 2021",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in ["March of the penguins 2005", "Results 2019", "2019", "Chapter 3", "May"] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn leaders_are_removed() {
        assert_eq!(without_leaders("1.2 Scope . . . . . . . 14"), "1.2 Scope 14");
        assert_eq!(without_leaders("Scope........14"), "Scope 14");
        assert_eq!(without_leaders("And so on... or not."), "And so on... or not.");
    }
}
