//! Splitting a text that is too long for one chunk.

use super::text;

/// Where a text is preferably cut, best first.
const SEPARATORS: [char; 2] = ['\n', ' '];

/// All pieces of `text`, each of at most `max` code points. `overlap` is less than `max`.
pub(super) fn split(text: &str, max: usize, overlap: usize) -> Vec<String> {
    if text::len(text) <= max {
        return if text.is_empty() {
            Vec::new()
        } else {
            vec![text.to_owned()]
        };
    }
    let mut splitter = Splitter::new(text.trim_end());
    std::iter::from_fn(|| splitter.next_piece(max, overlap)).collect()
}

/// Cuts pieces off the front of a text. Works on a window of one piece's length, so that the whole takes
/// time linear in the text however long that is.
pub(super) struct Splitter<'t> {
    /// What was taken from `rest` but not given out yet, behind the overlap with the last piece.
    carry: String,
    rest: &'t str,
}

impl<'t> Splitter<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            carry: String::new(),
            rest: text,
        }
    }

    /// What is still to be given out.
    pub(super) fn remaining(&self) -> impl Iterator<Item = char> {
        self.carry.chars().chain(self.rest.chars())
    }

    /// The next piece, of at most `max` code points and not empty; `None` at the end.
    pub(super) fn next_piece(&mut self, max: usize, overlap: usize) -> Option<String> {
        loop {
            // One code point more than fits, as a separator may stand right behind the piece.
            let window = self.fill_window(max.saturating_add(1));
            let piece = if window.chars().nth(max).is_none() {
                window
            } else {
                SEPARATORS
                    .iter()
                    .find_map(|&separator| self.cut_at(separator, &window, overlap))
                    .unwrap_or_else(|| self.cut_anywhere(&window, max, overlap))
            };
            if !piece.is_empty() {
                return Some(piece);
            }
            if self.carry.is_empty() && self.rest.is_empty() {
                return None;
            }
        }
    }

    /// Takes the next `n` code points, or all there are.
    fn fill_window(&mut self, n: usize) -> String {
        let mut window = std::mem::take(&mut self.carry);
        match window.char_indices().nth(n) {
            Some((end, _)) => self.carry = window.split_off(end),
            None => {
                let missing = n - text::len(&window);
                let end = self
                    .rest
                    .char_indices()
                    .nth(missing)
                    .map_or(self.rest.len(), |(at, _)| at);
                let (taken, rest) = self.rest.split_at(end);
                window.push_str(taken);
                self.rest = rest;
            }
        }
        window
    }

    /// Cuts at the last `separator` in the window, if that leaves a piece. There is always progress, as
    /// more is cut off than the overlap repeats.
    fn cut_at(&mut self, separator: char, window: &str, overlap: usize) -> Option<String> {
        let (earliest, _) = window.char_indices().nth(overlap + 1)?;
        let start = earliest + window[earliest..].rfind(separator)?;
        let piece = window[..start].trim_end();
        if piece.is_empty() {
            return None;
        }
        let mut repeated = String::new();
        if overlap > 1 {
            repeated.push_str(text::tail(piece, overlap - 1).trim_start());
            repeated.push(' ');
        }
        self.put_back(repeated, &window[start + separator.len_utf8()..]);
        Some(piece.to_owned())
    }

    /// Cuts after `max` code points, within a word if need be.
    fn cut_anywhere(&mut self, window: &str, max: usize, overlap: usize) -> String {
        let offset = |n| window.char_indices().nth(n).map_or(window.len(), |(at, _)| at);
        let piece = window[..offset(max)].trim_end().to_owned();
        self.put_back(String::new(), &window[offset(max.saturating_sub(overlap).max(1))..]);
        piece
    }

    /// Puts the unused end of a window back in front of what follows it, behind the text to repeat.
    fn put_back(&mut self, repeated: String, unused: &str) {
        let behind = [unused, &std::mem::take(&mut self.carry)].concat();
        let behind = behind.trim_start();
        if behind.is_empty() {
            self.rest = self.rest.trim_start();
        }
        self.carry = repeated + behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: &str = "one two three four five six seven";

    #[test]
    fn cuts_at_spaces() {
        assert_eq!(split(NUMBERS, 12, 0), ["one two", "three four", "five six", "seven"]);
    }

    #[test]
    fn overlap_may_cut_words() {
        assert_eq!(
            split(NUMBERS, 14, 5),
            ["one two three", "hree four five", "five six seven"]
        );
    }

    #[test]
    fn cuts_anywhere_when_there_is_no_separator() {
        assert_eq!(
            split("abcdefghijklmnopqrstuvwxyz", 10, 3),
            ["abcdefghij", "hijklmnopq", "opqrstuvwx", "vwxyz"]
        );
    }

    #[test]
    fn a_text_that_fits_is_one_piece() {
        assert_eq!(split("ab cd", 5, 2), ["ab cd"]);
        assert!(split("", 5, 2).is_empty());
    }

    #[test]
    fn a_separator_right_behind_the_maximum_counts() {
        assert_eq!(split("abcd efgh", 4, 0), ["abcd", "efgh"]);
    }

    #[test]
    fn line_breaks_come_before_spaces() {
        assert_eq!(split("a b\nc d e f g", 8, 0), ["a b", "c d e f", "g"]);
    }

    #[test]
    fn counts_code_points_and_crosses_long_white_space() {
        assert_eq!(split("äöü€ äöü€", 4, 0), ["äöü€", "äöü€"]);
        let gap = format!("ab{}cd", " ".repeat(1_000));
        assert_eq!(split(&gap, 5, 0), ["ab", "cd"]);
        assert_eq!(split(&gap, 5, 3), ["ab", "ab cd"]);
    }

    #[test]
    fn limits_of_one_and_extreme_overlaps_end() {
        assert_eq!(split("a b", 1, 0), ["a", "b"]);
        assert_eq!(split("abc", 2, 1), ["ab", "bc"]);
        assert_eq!(split("aaa bbb", 6, 5).last().map(String::as_str), Some("aa bbb"));
    }

    proptest::proptest! {
        #[test]
        fn every_piece_begins_with_the_end_of_the_one_before(
            text in "([a-zä]{1,14} ){0,60}",
            max in 2usize..60,
            overlap in 1usize..40,
        ) {
            let overlap = overlap.min(max - 1);
            let pieces = split(text.trim(), max, overlap);
            for pair in pieces.windows(2) {
                // Behind a separator the repeated text is one shorter, as a space follows it.
                let mut at_space = text::tail(&pair[0], overlap - 1).trim_start().to_owned();
                if overlap > 1 {
                    at_space.push(' ');
                }
                let in_word = text::tail(&pair[0], overlap).trim_start();
                proptest::prop_assert!(pair[1].starts_with(&at_space) || pair[1].starts_with(in_word), "{:?}", pair);
            }
            let all = pieces.concat();
            let mut rest = all.chars();
            proptest::prop_assert!(text.replace(' ', "").chars().all(|c| rest.any(|other| other == c)), "{all}");
        }
    }
}
