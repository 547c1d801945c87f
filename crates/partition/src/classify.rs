//! What kind of element a piece of text is, judged by the text alone.

use docmill_model::ElementType;

/// The kind of element `text` is, and the text without a leading bullet.
pub(crate) fn classify(text: &str) -> (ElementType, String) {
    (ElementType::UncategorizedText, text.to_owned())
}
