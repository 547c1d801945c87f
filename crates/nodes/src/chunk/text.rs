//! Measures and small operations on text; the unit is the Unicode code point.

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

/// The text an element contributes to a chunk; empty when it has nothing visible.
pub(crate) fn of_element(element: &Element) -> String {
    if element.kind != ElementType::CodeSnippet {
        normalize(&element.text)
    } else if element.text.trim().is_empty() {
        String::new()
    } else {
        element.text.clone()
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
    fn code_keeps_its_white_space() {
        let code = |text: &str| of_element(&Element::new(ElementType::CodeSnippet, text));
        assert_eq!(code("  x\n\ty "), "  x\n\ty ");
        assert_eq!(code(" \n "), "");
    }
}
