//! Extraction by regular expressions.

use docmill_model::settings::Pattern;
use docmill_model::{Element, ElementType, python_regex};
use serde_json::{Map, Value};

/// Code points searched at once. A search can look at all of its text again for each match, so only with a
/// bound on the text is time linear in the document. Longer texts are cut at white space.
const WINDOW: usize = 8_192;

/// Matches per pattern.
const MAX_MATCHES: usize = 100_000;

/// The name of the group that, in a pattern that has it, is taken instead of the whole match.
const VALUE_GROUP: &str = "value";

/// What the patterns match in the texts of the elements: `{name: [text, ...]}`, in order, each name present,
/// empty matches left out. A match stands within one element.
///
/// A pattern with a group named `value` yields what that group holds; any other the whole match.
///
/// # Errors
/// A pattern that does not compile, which [`python_regex::translate`] did not make.
pub fn match_patterns(patterns: &[Pattern], elements: &[Element]) -> Result<Value, python_regex::PatternError> {
    let mut data = Map::new();
    for pattern in patterns {
        let regex = python_regex::compile(&pattern.translated)?;
        let has_value = regex.capture_names().any(|name| name == Some(VALUE_GROUP));
        let mut found = Vec::new();
        let texts = elements
            .iter()
            .filter(|element| element.kind != ElementType::DocumentData);
        for window in texts.flat_map(|element| windows(&element.text)) {
            if found.len() >= MAX_MATCHES {
                break;
            }
            let room = MAX_MATCHES - found.len();
            if has_value {
                let values = regex
                    .captures_iter(window)
                    .filter_map(|captures| captures.name(VALUE_GROUP));
                found.extend(
                    values
                        .map(|value| value.as_str())
                        .filter(|text| !text.is_empty())
                        .take(room),
                );
            } else {
                let matches = regex.find_iter(window).map(|found| found.as_str());
                found.extend(matches.filter(|text| !text.is_empty()).take(room));
            }
        }
        data.insert(pattern.name.clone(), found.into());
    }
    Ok(Value::Object(data))
}

/// A text in pieces of a bounded length. A line break at the end of a piece goes, as `$` would match there
/// otherwise.
fn windows(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (end, next) = match rest.char_indices().nth(WINDOW) {
            None if rest.is_empty() => return None,
            None => (rest.len(), rest.len()),
            Some((limit, _)) => match rest[..limit].rfind(char::is_whitespace).filter(|at| *at > 0) {
                Some(space) => (space, space),
                None => (limit, limit),
            },
        };
        let piece = &rest[..end];
        rest = &rest[next..];
        Some(piece.trim_end_matches('\n'))
    })
}
