//! Measures and small operations on text; the unit is the Unicode code point.

use std::borrow::Cow;

use docmill_model::{Element, ElementType};

/// Stands between the texts of two elements in one chunk.
pub(crate) const SEPARATOR: &str = "\n\n";

/// Length of [`SEPARATOR`].
pub(crate) const SEPARATOR_LEN: usize = 2;

/// Length in code points.
pub(crate) fn len(text: &str) -> usize {
    text.chars().count()
}

/// The last `n` code points.
pub(crate) fn tail(text: &str, n: usize) -> &str {
    match n.checked_sub(1) {
        None => "",
        Some(before) => match text.char_indices().rev().nth(before) {
            Some((start, _)) => &text[start..],
            None => text,
        },
    }
}

/// Every run of white space as one space, none at either end.
pub(crate) fn normalize(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        push_joined(&mut normal, word, " ");
    }
    normal
}

/// Whether [`normalize`] would change nothing, as is usual.
fn is_normal(text: &str) -> bool {
    // Nearly all text is ASCII, whose bytes are read faster than characters.
    if text.is_ascii() {
        let mut before = b' ';
        for byte in text.bytes() {
            if matches!(byte, b'\t'..=b'\r') || (byte == b' ' && before == b' ') {
                return false;
            }
            before = byte;
        }
    } else {
        let mut before = ' ';
        for ch in text.chars() {
            if ch.is_whitespace() && (ch != ' ' || before == ' ') {
                return false;
            }
            before = ch;
        }
    }
    !text.ends_with(' ')
}

/// The text an element contributes to a chunk; empty when it has nothing visible.
pub(crate) fn of_element(element: &Element) -> Cow<'_, str> {
    let text = element.text.as_str();
    if element.kind == ElementType::CodeSnippet {
        Cow::Borrowed(if text.trim().is_empty() { "" } else { text })
    } else if is_normal(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(normalize(text))
    }
}

/// Appends `part`, after `separator` unless nothing stands before it. An empty part changes nothing.
pub(crate) fn push_joined(text: &mut String, part: &str, separator: &str) {
    if part.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str(separator);
    }
    text.push_str(part);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tail_counts_code_points() {
        assert_eq!(tail("aéß€", 2), "ß€");
        assert_eq!(tail("ab", 5), "ab");
        assert_eq!(tail("ab", 0), "");
        assert_eq!(tail("", 3), "");
    }

    #[test]
    fn normalize_collapses_every_kind_of_space() {
        assert_eq!(normalize(" a \n\u{a0} b\t\u{3000}c "), "a b c");
    }

    #[test]
    fn what_is_normal_stays() {
        for text in ["", "a", "a b", "naïve text – as it is", "\u{1f}"] {
            assert!(is_normal(text), "{text:?}");
        }
        for text in [
            " ",
            " a",
            "a ",
            "a  b",
            "a\tb",
            "a\u{b}b",
            "é ",
            " é",
            "é  é",
            "a\u{a0}é",
            "é\u{3000}",
            "\u{85}",
        ] {
            assert!(!is_normal(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn normal_is_what_normalizing_leaves(text in "[a é\u{a0}\t\u{3000}–]{0,8}") {
            prop_assert_eq!(is_normal(&text), normalize(&text) == text);
        }
    }

    #[test]
    fn code_keeps_its_white_space() {
        let code = |text: &str| of_element(&Element::new(ElementType::CodeSnippet, text)).into_owned();
        assert_eq!(code("  x\n\ty "), "  x\n\ty ");
        assert_eq!(code(" \n "), "");
    }
}
