//! Text read from pictures.

use docmill_model::{Element, ElementType};

use crate::AnswerError;
use crate::answer::{clean, plain};
use crate::chat::{ChatRequest, GROUND_RULES, Picture, clip, material};
use crate::origin::is_by;

/// Code points of a known text sent along, and of an answer.
const MAX_CHARS: usize = 100_000;

const TASK: &str = "Write down the text in the picture: every word, number and sign as it stands there, in reading order, with \
its line breaks. Keep its language, spelling and errors. Write the cells of a table row by row, divided by spaces. Where \
something can't be read write [illegible]. Do not describe the picture. If there is no text at all, answer [no text].";

/// The words by which the task lets a model say that there is nothing.
const NO_TEXT: &str = "[no text]";

/// Pictures and tables that were described keep their description.
pub(super) fn applies(element: &Element, block_types: &[String]) -> bool {
    let described = match element.kind {
        ElementType::Image => is_by(&element.metadata, "text", "image_description"),
        ElementType::Table => is_by(&element.metadata, "text", "table_description"),
        _ => false,
    };
    !described && block_types.iter().any(|name| super::names(name, element.kind)) && Picture::of(element).is_some()
}

pub(super) fn request(element: &Element) -> ChatRequest {
    let mut user = TASK.to_owned();
    let known = element.text.trim();
    if !known.is_empty() {
        user.push_str("\n\n");
        user.push_str(&material(
            "What a program read before, maybe with errors",
            clip(known, MAX_CHARS),
        ));
    }
    ChatRequest {
        system: GROUND_RULES.into(),
        user,
        pictures: Picture::of(element).into_iter().collect(),
        schema: None,
        max_tokens: 8_192,
    }
}

pub(super) fn read(answer: &str) -> Result<String, AnswerError> {
    let text = clean(clip(plain(answer)?, MAX_CHARS));
    match text.as_str() {
        "" => Err(AnswerError::Empty),
        text if text.eq_ignore_ascii_case(NO_TEXT) => Err(AnswerError::Nothing("text")),
        _ => Ok(text),
    }
}
