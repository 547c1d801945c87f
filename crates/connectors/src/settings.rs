//! Reading validated settings. What is missing all the same reads as empty: validation has added every
//! default and refused what is required and absent.

use serde_json::{Map, Value};

/// A text; empty when it was not given.
pub(crate) fn text(config: &Map<String, Value>, name: &str) -> String {
    given(config, name).unwrap_or_default()
}

/// A text that may be left out.
pub(crate) fn given(config: &Map<String, Value>, name: &str) -> Option<String> {
    config.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A switch.
pub(crate) fn flag(config: &Map<String, Value>, name: &str) -> bool {
    config.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// A whole number; zero when it was not given.
pub(crate) fn number(config: &Map<String, Value>, name: &str) -> usize {
    let number = config.get(name).and_then(Value::as_u64).unwrap_or_default();
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A list of texts.
pub(crate) fn texts(config: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = config.get(name).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
