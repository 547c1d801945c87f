//! Reading the answers of models, which may be anything.

use serde_json::Value;

/// Bytes an answer may have.
const MAX_BYTES: usize = 8 << 20;

/// Why an answer can't be used. The element it was for stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is nothing in it.
    #[error("the model's answer is empty")]
    Empty,
    /// It is longer than any good answer.
    #[error("the model's answer is too long ({0} bytes)")]
    TooLong(usize),
    /// No JSON can be read from it.
    #[error("the model's answer is not JSON: {0}")]
    NotJson(String),
    /// It is JSON of another shape than asked for.
    #[error("the model's answer has not the shape asked for: {}", .0.join("; "))]
    WrongShape(Vec<String>),
    /// There is no table, or no page, in it.
    #[error("the model's answer holds no {0}")]
    Nothing(&'static str),
}

impl AnswerError {
    pub(crate) fn shape(message: impl Into<String>) -> Self {
        Self::WrongShape(vec![message.into()])
    }
}

/// The answer without white space and a code fence around it.
pub(crate) fn plain(answer: &str) -> Result<&str, AnswerError> {
    if answer.len() > MAX_BYTES {
        return Err(AnswerError::TooLong(answer.len()));
    }
    let text = answer.trim_start_matches('\u{feff}').trim();
    let inner = text.strip_prefix("```").and_then(|rest| {
        // The fence may name a language, on a line of its own.
        let (language, rest) = rest.split_once('\n')?;
        let is_name = language
            .trim()
            .chars()
            .all(|c| c.is_alphanumeric() || c == '/' || c == '-');
        is_name.then(|| rest.trim_end().strip_suffix("```").unwrap_or(rest).trim())
    });
    match inner.unwrap_or(text) {
        "" => Err(AnswerError::Empty),
        text => Ok(text),
    }
}

/// The JSON in an answer: all of it, or what stands between the first opening and the last closing bracket.
/// Deep nesting is an error of the reader.
pub(crate) fn json(answer: &str) -> Result<Value, AnswerError> {
    let text = plain(answer)?;
    let whole = match serde_json::from_str::<Value>(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let start = text.find(['{', '[']);
    let end = text.rfind(['}', ']']);
    if let (Some(start), Some(end)) = (start, end)
        && start < end
        && (start > 0 || end + 1 < text.len())
        && let Ok(value) = serde_json::from_str(&text[start..=end])
    {
        return Ok(value);
    }
    Err(AnswerError::NotJson(whole.to_string()))
}

/// Text fit for an element: no control characters other than line breaks and tabs, none that turn the
/// direction of other text around, trimmed.
pub(crate) fn clean(text: &str) -> String {
    let keep = |c: &char| match c {
        '\n' | '\t' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    };
    text.replace("\r\n", "\n")
        .chars()
        .filter(keep)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fences_and_remarks_around_json_are_left_out() {
        let value = json!({"a": [1]});
        for answer in [
            r#"{"a": [1]}"#,
            "```json\n{\"a\": [1]}\n```",
            "Here it is:\n{\"a\": [1]}\nGood luck!",
            "\u{feff} ```\n{\"a\":[1]}",
        ] {
            assert_eq!(json(answer), Ok(value.clone()), "{answer}");
        }
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        assert_eq!(json(" \n"), Err(AnswerError::Empty));
        assert_eq!(json("```json\n```"), Err(AnswerError::Empty));
        for answer in ["no", "{", "{\"a\": 1", "]{", "} {", &"[".repeat(100_000)] {
            assert!(matches!(json(answer), Err(AnswerError::NotJson(_))), "{}", &answer[..1]);
        }
        assert_eq!(
            json(&" ".repeat(MAX_BYTES + 1)),
            Err(AnswerError::TooLong(MAX_BYTES + 1))
        );
    }

    #[test]
    fn control_characters_go() {
        assert_eq!(clean(" a\0b\r\nc\u{202e}d\u{1b}[0m "), "ab\ncd[0m");
    }
}
