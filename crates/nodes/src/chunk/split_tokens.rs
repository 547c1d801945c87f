//! Splitting a text that has too many tokens for one chunk.

use tiktoken_rs::CoreBPE;

/// Bytes looked at per token wanted, at first. Most tokens are shorter.
const BYTES_PER_TOKEN: usize = 8;

/// All pieces of `text`, each of at most `max` tokens (at least 1), save a single character that has more.
/// Each piece but the first begins with whole words from the end of the one before, of at most `overlap`
/// tokens.
pub(super) fn split_tokens(encoding: &CoreBPE, text: &str, max: usize, overlap: usize) -> Vec<String> {
    let max = max.max(1);
    let mut pieces: Vec<String> = Vec::new();
    let mut rest = text.trim();
    let mut lead = String::new();
    while !rest.is_empty() {
        let Some((piece, used)) = next_piece(encoding, &lead, rest, max) else {
            // The words to repeat leave no room for anything new.
            lead.clear();
            continue;
        };
        rest = rest[used..].trim_start();
        lead.clear();
        if overlap > 0 {
            lead.push_str(tail_of_tokens(encoding, &piece, overlap));
        }
        if !lead.is_empty() {
            lead.push(' ');
        }
        pieces.push(piece);
    }
    pieces
}

/// The next piece, and the bytes of `rest` used for it; `None` if there is only room for `lead`.
fn next_piece(encoding: &CoreBPE, lead: &str, rest: &str, max: usize) -> Option<(String, usize)> {
    let mut window = max.saturating_mul(BYTES_PER_TOKEN);
    let (mut text, mut tokens);
    loop {
        let end = floor_char_boundary(rest, window.min(rest.len()));
        text = [lead, &rest[..end]].concat();
        tokens = encoding.encode_ordinary(&text);
        if tokens.len() > max {
            break;
        }
        if end == rest.len() {
            return Some((text.trim_end().to_owned(), end));
        }
        window = window.saturating_mul(2);
    }
    // A text cut off has other tokens at its end, now and then more of them.
    let mut budget = max;
    while budget > 0 {
        let end = bytes_of(encoding, &text, &tokens[..budget]);
        let cut = match text.get(lead.len()..end) {
            Some(new) if !new.trim().is_empty() => lead.len() + cut_at(new, &text[end..]),
            _ => break,
        };
        let piece = text[..cut].trim_end();
        let len = encoding.count_ordinary(piece);
        if len <= max {
            return Some((piece.to_owned(), cut - lead.len()));
        }
        budget -= (len - max).min(budget);
    }
    if !lead.is_empty() {
        return None;
    }
    let first = rest.chars().next()?;
    Some((first.to_string(), first.len_utf8()))
}

/// Where to cut `new`, behind which `after` follows: at a line break, else between words, else at its end.
fn cut_at(new: &str, after: &str) -> usize {
    let is_good = |at: &usize| !new[..*at].trim().is_empty();
    if let Some(at) = new.rfind('\n').filter(is_good) {
        return at;
    }
    if after.starts_with(char::is_whitespace) {
        return new.len();
    }
    new.rfind(char::is_whitespace).filter(is_good).unwrap_or(new.len())
}

/// Bytes of `text` that its first tokens stand for, down to a character boundary.
fn bytes_of(encoding: &CoreBPE, text: &str, tokens: &[u32]) -> usize {
    let bytes = encoding.decode_bytes(tokens).map_or(0, |bytes| bytes.len());
    floor_char_boundary(text, bytes.min(text.len()))
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The last whole words of `text` that have at most `n` tokens.
pub(super) fn tail_of_tokens<'t>(encoding: &CoreBPE, text: &'t str, n: usize) -> &'t str {
    let text = text.trim_end();
    if n == 0 {
        return "";
    }
    // Enough of the end to hold the tail: what is cut off in front is no whole word anyway.
    let from = text
        .len()
        .saturating_sub(n.saturating_mul(BYTES_PER_TOKEN).saturating_add(64));
    let window = &text[floor_char_boundary(text, from)..];
    let tokens = encoding.encode_ordinary(window);
    let before = tokens.len().saturating_sub(n);
    let mut start = bytes_of(encoding, window, &tokens[..before]);
    let at_text_start = window.len() == text.len() && start == 0;
    if !at_text_start && !window[..start].ends_with(char::is_whitespace) {
        start += window[start..]
            .find(char::is_whitespace)
            .unwrap_or(window.len() - start);
    }
    let mut tail = window[start..].trim_start();
    while encoding.count_ordinary(tail) > n {
        tail = match tail.find(char::is_whitespace) {
            Some(space) => tail[space..].trim_start(),
            None => "",
        };
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding() -> &'static CoreBPE {
        tiktoken_rs::cl100k_base_singleton()
    }

    fn split(text: &str, max: usize, overlap: usize) -> Vec<String> {
        split_tokens(encoding(), text, max, overlap)
    }

    #[test]
    fn cuts_between_words() {
        assert_eq!(
            split("one two three four five", 2, 0),
            ["one two", "three four", "five"]
        );
        assert_eq!(split("one two\nthree four five", 4, 0), ["one two", "three four five"]);
        assert_eq!(split("one two", 9, 0), ["one two"]);
        assert!(split("  ", 9, 0).is_empty());
    }

    #[test]
    fn repeats_whole_words() {
        assert_eq!(
            split("one two three four five six", 3, 1),
            ["one two three", "three four five", "five six"]
        );
        assert_eq!(tail_of_tokens(encoding(), "alpha incomprehensibilities", 2), "");
    }

    #[test]
    fn a_word_longer_than_a_chunk_is_cut_and_every_character_stays() {
        let word = "ä€𝄞".repeat(50);
        for max in [1, 2, 3, 7] {
            let pieces = split(&word, max, 0);
            assert_eq!(pieces.concat(), word);
            let too_long = |piece: &&String| encoding().count_ordinary(piece) > max && piece.chars().count() > 1;
            assert_eq!(pieces.iter().find(too_long), None);
        }
    }

    #[test]
    fn long_texts_take_linear_time() {
        let words = "word ".repeat(50_000);
        assert_eq!(split(&words, 100, 10).len(), 556);
        let one = "a".repeat(100_000);
        assert_eq!(split(&one, 100, 10).concat(), one);
    }
}
