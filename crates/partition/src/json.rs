//! Reader of JSON and NDJSON.
//!
//! An array of docmill's own elements comes back as those elements. Any other JSON yields one
//! `UncategorizedText` for each item of the outermost array (or for the value itself), holding the
//! item indented; numbers keep their digits.

mod pretty;
#[cfg(test)]
mod tests;

use docmill_model::{Element, ElementType, Metadata};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::charset;
use crate::context::Context;
use crate::error::PartitionError;

/// An element as it stands in a file: its type may be a label that maps to one of ours.
#[derive(Deserialize)]
struct StoredElement {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    element_id: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    embeddings: Vec<f32>,
}

/// What an object must have to be taken for an element.
#[derive(Deserialize)]
struct Probe {
    #[serde(rename = "type")]
    _kind: String,
    #[serde(default)]
    element_id: Option<IgnoredAny>,
    #[serde(default)]
    text: Option<IgnoredAny>,
    #[serde(default)]
    metadata: Option<IgnoredAny>,
}

pub(crate) fn partition(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let text = charset::decode_file(bytes, None, cx)?;
    check_depth(&text, cx)?;
    serde_json::from_str::<IgnoredAny>(&text).map_err(|error| PartitionError::corrupt("JSON", error))?;
    let Some(items) = pretty::array_items(&text) else {
        return push_value(&text, cx);
    };
    if items.first().is_some_and(|item| is_element(item)) {
        for (index, item) in items.iter().enumerate() {
            let element = rehydrate(item).map_err(|e| PartitionError::corrupt("JSON", format!("item {index}: {e}")))?;
            cx.push(element)?;
        }
        return Ok(());
    }
    items.iter().try_for_each(|item| push_value(item, cx))
}

pub(crate) fn partition_lines(bytes: &[u8], cx: &mut Context) -> Result<(), PartitionError> {
    let text = charset::decode_file(bytes, None, cx)?;
    let mut elements = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let corrupt = |error: String| PartitionError::corrupt("NDJSON", format!("line {}: {error}", index + 1));
        check_depth(line, cx)?;
        serde_json::from_str::<IgnoredAny>(line).map_err(|error| corrupt(error.to_string()))?;
        if *elements.get_or_insert_with(|| is_element(line)) {
            cx.push(rehydrate(line).map_err(corrupt)?)?;
        } else {
            push_value(line, cx)?;
        }
    }
    Ok(())
}

/// Refuses nesting deeper than the limit before any parser sees it.
fn check_depth(text: &str, cx: &Context) -> Result<(), PartitionError> {
    let limit = cx.limits.max_depth;
    if pretty::depth(text) > limit as usize {
        return Err(PartitionError::limit("max_depth", limit.into(), "levels of nesting"));
    }
    Ok(())
}

fn is_element(item: &str) -> bool {
    // A struct would also be read from an array, field by field.
    item.starts_with('{')
        && serde_json::from_str::<Probe>(item)
            .is_ok_and(|probe| probe.element_id.is_some() || (probe.text.is_some() && probe.metadata.is_some()))
}

fn rehydrate(item: &str) -> Result<Element, String> {
    let stored: StoredElement = serde_json::from_str(item).map_err(|error| error.to_string())?;
    let kind: ElementType = stored.kind.parse().map_err(|error| format!("{error}"))?;
    Ok(Element {
        kind,
        element_id: stored.element_id,
        text: stored.text,
        metadata: stored.metadata,
        embeddings: stored.embeddings,
    })
}

fn push_value(value: &str, cx: &mut Context) -> Result<(), PartitionError> {
    let text = pretty::indent(value);
    if text.is_empty() {
        return Ok(());
    }
    cx.push(Element::new(ElementType::UncategorizedText, text))
}
