//! What layout needs to know of characters: direction, kind of script, and clean-up of text.

use unicode_bidi::{BidiClass, bidi_class};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Letters of right-to-left scripts.
pub(super) fn is_right_to_left(ch: char) -> bool {
    // Below Hebrew nothing is; asking the table for every Latin letter would be waste.
    ch >= '\u{590}' && matches!(bidi_class(ch), BidiClass::R | BidiClass::AL)
}

/// Marks that stand over, under or in another character.
pub(super) fn is_mark(ch: char) -> bool {
    ch >= '\u{300}' && is_combining_mark(ch)
}

/// Scripts written without spaces between words.
pub(super) fn is_unspaced(ch: char) -> bool {
    matches!(ch as u32,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x2E80..=0x9FFF | 0xA000..=0xA4CF
        | 0xF900..=0xFAFF | 0xFE30..=0xFE4F | 0xFF00..=0xFF60 | 0x20000..=0x3FFFF)
}

/// Full-width characters and punctuation of East Asian text.
pub(super) fn is_east_asian(ch: char) -> bool {
    matches!(ch as u32,
        0x2E80..=0x9FFF | 0xF900..=0xFAFF | 0xFE30..=0xFE4F | 0xFF00..=0xFF60 | 0x20000..=0x3FFFF)
}

/// Characters that are white space, or nothing at all, in extracted text.
pub(super) fn is_blank(ch: char) -> bool {
    ch <= ' '
        || (ch > '~'
            && (ch.is_whitespace()
                || ch.is_control()
                || matches!(ch, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')))
}

/// Characters of the private planes, which no two fonts agree on. Those of the private area of the first
/// plane stay: icon fonts and symbols have had settled places there for long.
pub(super) fn is_private(ch: char) -> bool {
    ch >= '\u{F0000}'
}

/// Appends a character, with presentation forms (ligatures, shaped Arabic letters) dissolved into
/// the letters they stand for.
pub(super) fn push_clean(out: &mut String, ch: char) {
    match ch as u32 {
        // Most there is, and the quickest to tell.
        0..=0xAC => out.push(ch),
        0xFB00..=0xFB06 | 0xFB1D..=0xFDFB | 0xFE70..=0xFEFC | 0x2E80..=0x2FD5 | 0xF900..=0xFAFF => {
            out.extend(std::iter::once(ch).nfkc());
        }
        // Hyphens that exist only for typesetting. A soft hyphen that is drawn is a hyphen: fonts in
        // which both share a glyph map it to either.
        0x00AD | 0x2010 | 0x2011 => out.push('-'),
        _ => out.push(ch),
    }
}

/// Puts the characters of one line, given from left to right as displayed, into reading order.
///
/// This undoes the reordering of the Unicode bidirectional algorithm: a line that is mostly
/// right-to-left is reversed, and the left-to-right runs and numbers within it are turned back; in
/// other lines only the right-to-left runs are reversed. A mark stays behind its letter.
pub(super) fn to_logical(visual: &[char]) -> Vec<char> {
    let rtl = visual.iter().filter(|&&ch| is_right_to_left(ch)).count();
    if rtl == 0 {
        return visual.to_vec();
    }
    let ltr = visual.iter().filter(|&&ch| bidi_class(ch) == BidiClass::L).count();
    // Runs of one direction, as ranges of `visual`, from left to right.
    let base_rtl = rtl >= ltr;
    let runs = runs(visual, base_rtl);
    let mut out = Vec::with_capacity(visual.len());
    let mut emit = |(start, end, right): (usize, usize, bool)| {
        let part = visual.get(start..end).unwrap_or_default();
        if right {
            reversed_clusters(part, &mut out);
        } else {
            out.extend_from_slice(part);
        }
    };
    if base_rtl {
        runs.into_iter().rev().for_each(&mut emit);
    } else {
        runs.into_iter().for_each(&mut emit);
    }
    out
}

/// Splits a displayed line into `(start, end, is right-to-left)` runs.
fn runs(visual: &[char], base_rtl: bool) -> Vec<(usize, usize, bool)> {
    let strong = |ch: char| match bidi_class(ch) {
        BidiClass::L | BidiClass::EN | BidiClass::AN => Some(false),
        BidiClass::R | BidiClass::AL => Some(true),
        _ => None,
    };
    let mut runs: Vec<(usize, usize, bool)> = Vec::new();
    let mut index = 0;
    let mut last = None;
    while index < visual.len() {
        let mut end = index;
        let direction = match visual.get(index).and_then(|&ch| strong(ch)) {
            Some(direction) => {
                end += 1;
                direction
            }
            None => {
                while visual.get(end).is_some_and(|&ch| strong(ch).is_none()) {
                    end += 1;
                }
                let next = visual.get(end).and_then(|&ch| strong(ch));
                // Neutrals between two runs of one direction belong to them, others to the line.
                match (last, next) {
                    (Some(a), Some(b)) if a == b => a,
                    _ => base_rtl,
                }
            }
        };
        match runs.last_mut() {
            Some(run) if run.2 == direction => run.1 = end,
            _ => runs.push((index, end, direction)),
        }
        last = visual.get(end - 1).and_then(|&ch| strong(ch)).or(last);
        index = end;
    }
    runs
}

fn reversed_clusters(part: &[char], out: &mut Vec<char>) {
    let mut end = part.len();
    while end > 0 {
        let mut start = end - 1;
        while start > 0 && part.get(start).is_some_and(|&ch| is_mark(ch)) {
            start -= 1;
        }
        let cluster = part.get(start..end).unwrap_or_default();
        out.extend(cluster.iter().map(|&ch| mirrored(ch)));
        end = start;
    }
}

/// Paired punctuation is stored by its meaning and displayed mirrored in right-to-left runs.
fn mirrored(ch: char) -> char {
    match ch {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        _ => ch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logical(visual: &str) -> String {
        to_logical(&visual.chars().collect::<Vec<_>>()).into_iter().collect()
    }

    #[test]
    fn hebrew_is_reversed_and_numbers_are_not() {
        assert_eq!(logical("123 םולש"), "שלום 123");
        assert_eq!(logical("abc"), "abc");
    }

    #[test]
    fn a_mostly_latin_line_keeps_its_direction() {
        assert_eq!(logical("the word םולש means peace"), "the word שלום means peace");
    }

    #[test]
    fn latin_within_arabic_stays_readable() {
        assert_eq!(logical("ةغلب Python ةجمربلا"), "البرمجة Python بلغة");
    }

    #[test]
    fn marks_stay_behind_their_letter() {
        // Displayed from left to right: gimel, then bet with dagesh.
        assert_eq!(logical("ג\u{5D1}\u{5BC}"), "\u{5D1}\u{5BC}ג");
    }

    #[test]
    fn presentation_forms_are_dissolved() {
        let mut out = String::new();
        "ﬁﻻ".chars().for_each(|ch| push_clean(&mut out, ch));
        assert_eq!(out, "fiلا");
        out.clear();
        "1\u{AD}2".chars().for_each(|ch| push_clean(&mut out, ch));
        assert_eq!(out, "1-2");
    }
}
