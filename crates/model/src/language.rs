//! Languages of a document's text.

mod codes;

use crate::{Element, ElementType};
use codes::{normalise, wire_code};

/// Pieces of a document that are looked at, and bytes of each: detection costs about 0.1 ms a piece.
const PIECES: usize = 6;
const PIECE_BYTES: usize = 640;

/// Elements looked at one by one in a document of several languages.
const MAX_SINGLE_DETECTIONS: usize = 2000;

/// ASCII text of fewer words is taken for English: names and codes look like any language.
const MIN_WORDS: usize = 5;

const DEFAULT: &str = "eng";

/// Sets `languages` (ISO 639-3) on the elements that have none: those the user named, else detected.
///
/// Samples from the whole document are judged first. When they agree, every element gets that
/// language; when not, every element is judged by itself, and those that leave doubt get the most
/// frequent language.
pub fn assign(elements: &mut [Element], given: &[String]) {
    let given = normalise(given);
    if !given.is_empty() {
        set(elements, &given);
        return;
    }
    let Some(samples) = samples(elements) else {
        return;
    };
    let mut found: Vec<&'static str> = samples.iter().filter_map(|sample| reliable(sample)).collect();
    let Some(main) = most_frequent(&mut found) else {
        let whole = samples.concat();
        if let Some(code) = best_guess(&whole) {
            set(elements, &[code.to_owned()]);
        }
        return;
    };
    if found.iter().all(|code| *code == main) {
        set(elements, &[main.to_owned()]);
        return;
    }
    let mut budget = MAX_SINGLE_DETECTIONS;
    for element in elements
        .iter_mut()
        .filter(|element| element.metadata.languages.is_empty())
    {
        let text = cut(&element.text, PIECE_BYTES);
        let code = match budget {
            0 => None,
            _ if is_too_short(text) => Some(DEFAULT),
            _ => reliable(text),
        };
        budget = budget.saturating_sub(1);
        element.metadata.languages.push(code.unwrap_or(main).to_owned());
    }
}

fn set(elements: &mut [Element], codes: &[String]) {
    for element in elements {
        if element.metadata.languages.is_empty() {
            element.metadata.languages = codes.to_vec();
        }
    }
}

/// Pieces of prose from the start, the end and between; `None` when there is no text at all.
fn samples(elements: &[Element]) -> Option<Vec<String>> {
    // Program code is judged only where there is nothing else.
    let has_prose = elements
        .iter()
        .any(|e| e.kind != ElementType::CodeSnippet && !e.text.trim().is_empty());
    let texts: Vec<&str> = elements
        .iter()
        .filter(|e| !has_prose || e.kind != ElementType::CodeSnippet)
        .map(|e| e.text.as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    if texts.is_empty() {
        return None;
    }
    let mut samples = Vec::with_capacity(PIECES);
    let (mut from, step) = (0, texts.len().div_ceil(PIECES).max(1));
    while from < texts.len() && samples.len() < PIECES {
        let mut piece = String::new();
        for text in texts.iter().skip(from).take(step) {
            piece.push_str(cut(text, PIECE_BYTES - piece.len()));
            piece.push('\n');
            if piece.len() >= PIECE_BYTES {
                break;
            }
        }
        samples.push(piece);
        from += step;
    }
    Some(samples)
}

/// At most `bytes` bytes of the text, whole characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The language of a text that is long and clear enough to be sure.
fn reliable(text: &str) -> Option<&'static str> {
    if is_too_short(text) {
        return None;
    }
    let info = whatlang::detect(text)?;
    let single_script = !matches!(
        info.script(),
        whatlang::Script::Latin | whatlang::Script::Cyrillic | whatlang::Script::Arabic | whatlang::Script::Devanagari
    );
    (info.is_reliable() || single_script).then(|| wire_code(info.lang()))
}

fn best_guess(text: &str) -> Option<&'static str> {
    if is_too_short(text) {
        return Some(DEFAULT);
    }
    let info = whatlang::detect(text)?;
    // Labels, code and names in plain ASCII look a little like every language.
    let doubtful = text.is_ascii() && !info.is_reliable();
    Some(if doubtful { DEFAULT } else { wire_code(info.lang()) })
}

fn is_too_short(text: &str) -> bool {
    text.is_ascii()
        && text
            .split_whitespace()
            .filter(|w| w.contains(char::is_alphabetic))
            .take(MIN_WORDS)
            .count()
            < MIN_WORDS
}

fn most_frequent(codes: &mut [&'static str]) -> Option<&'static str> {
    codes.sort_unstable();
    codes
        .chunk_by(|a, b| a == b)
        .max_by_key(|run| run.len())
        .and_then(|run| run.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str = "All human beings are born free and equal in dignity and rights, and they should act towards one another in a spirit of brotherhood.";
    const GERMAN: &str = "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander begegnen.";

    fn languages(texts: &[&str], given: &[&str]) -> Vec<String> {
        let mut elements: Vec<Element> = texts
            .iter()
            .map(|text| Element::new(ElementType::NarrativeText, *text))
            .collect();
        let given: Vec<String> = given.iter().map(|s| s.to_string()).collect();
        assign(&mut elements, &given);
        elements.iter().map(|e| e.metadata.languages.join("+")).collect()
    }

    #[test]
    fn one_language_goes_to_all_elements() {
        assert_eq!(languages(&[GERMAN, "Kapitel 1", GERMAN], &[]), ["deu", "deu", "deu"]);
        assert_eq!(languages(&["人人生而自由，在尊严和权利上一律平等。"], &[]), ["zho"]);
    }

    #[test]
    fn several_languages_are_told_apart() {
        assert_eq!(
            languages(&[ENGLISH, GERMAN, "Kapitel 2", GERMAN], &[]),
            ["eng", "deu", "eng", "deu"]
        );
    }

    #[test]
    fn few_ascii_words_are_english() {
        assert_eq!(languages(&["Invoice 42"], &[]), ["eng"]);
        assert_eq!(languages(&["12 34"], &[]), ["eng"]);
        assert_eq!(
            languages(&["Skip to main content std/sync/mpmc waker.rs"], &[]),
            ["eng"]
        );
        assert_eq!(languages(&[""], &[]), [""]);
    }

    #[test]
    fn given_languages_are_normalised_and_kept() {
        assert_eq!(languages(&[GERMAN], &["en", "ger", "pt-BR"]), ["eng+deu+por"]);
        assert_eq!(languages(&[GERMAN], &["auto"]), ["deu"]);
        let mut element = Element::new(ElementType::NarrativeText, GERMAN);
        element.metadata.languages = vec!["nld".into()];
        let mut elements = [element];
        assign(&mut elements, &["en".into()]);
        assert_eq!(elements[0].metadata.languages, ["nld"]);
    }

    #[test]
    fn a_large_document_costs_little() {
        let text = [ENGLISH, GERMAN].concat().repeat(20);
        let texts = vec![text.as_str(); 5000];
        let mut elements: Vec<Element> = texts
            .iter()
            .map(|text| Element::new(ElementType::NarrativeText, *text))
            .collect();
        let start = std::time::Instant::now();
        assign(&mut elements, &[]);
        assert!(start.elapsed().as_secs() < 5);
    }
}
