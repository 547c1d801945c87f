//! A document's elements as rows, points or documents of a store that keeps each by itself.

use std::collections::HashMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{ConnectorError, Document, ErrorKind, Result};

/// An element and the id its store keeps it under.
pub(crate) struct Row {
    /// Made of the document, the element's id and how many elements before it have the same id: the same on
    /// every run, different for every element.
    pub(crate) id: Uuid,
    /// The element.
    pub(crate) element: Map<String, Value>,
}

/// A document's elements, in order.
pub(crate) fn rows(document: &Document) -> Result<Vec<Row>> {
    let elements: Vec<Map<String, Value>> = serde_json::from_slice(&document.elements).map_err(|error| {
        let reason = format!(
            "the elements of {:?} are no JSON array of objects: {error}",
            document.name
        );
        ConnectorError::new(ErrorKind::Invalid, reason)
    })?;
    let mut seen: HashMap<String, u64> = HashMap::new();
    let row = |element: Map<String, Value>| {
        let element_id = element.get("element_id").and_then(Value::as_str).unwrap_or_default();
        let occurrence = seen.entry(element_id.to_owned()).or_default();
        let id = row_id(&document.record_id, element_id, *occurrence);
        *occurrence += 1;
        Row { id, element }
    };
    Ok(elements.into_iter().map(row).collect())
}

fn row_id(record_id: &str, element_id: &str, occurrence: u64) -> Uuid {
    let mut hash = Sha256::new();
    for part in ["docmill-row", record_id, element_id] {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(occurrence.to_be_bytes());
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Splits rows into batches of at most `count` rows and about `bytes` bytes.
pub(crate) fn batches<T>(rows: Vec<T>, count: usize, bytes: usize, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut batches = Vec::new();
    let (mut batch, mut held) = (Vec::new(), 0_usize);
    for row in rows {
        let size = size(&row);
        if !batch.is_empty() && (batch.len() >= count || held.saturating_add(size) > bytes) {
            batches.push(std::mem::take(&mut batch));
            held = 0;
        }
        held = held.saturating_add(size);
        batch.push(row);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(record_id: &str, elements: &str) -> Document {
        Document {
            record_id: record_id.into(),
            name: "x".into(),
            elements: elements.to_owned().into(),
        }
    }

    #[test]
    fn ids_are_stable_and_differ_for_twins_and_documents() {
        let elements = r#"[{"element_id": "a"}, {"element_id": "a"}, {"element_id": "b"}, {}]"#;
        let ids = |record: &str| -> Vec<_> {
            let rows = rows(&document(record, elements)).unwrap();
            rows.into_iter().map(|row| row.id).collect()
        };
        let (first, second) = (ids("1"), ids("2"));
        assert_eq!(first, ids("1"));
        let all: std::collections::BTreeSet<_> = first.iter().chain(&second).collect();
        assert_eq!(all.len(), 8);
        assert_eq!(first[0].get_version_num(), 8);
    }

    #[test]
    fn what_is_no_list_of_objects_is_refused() {
        for bad in ["", "{}", "[1]", "[{}", "[{}] x"] {
            assert_eq!(
                rows(&document("1", bad)).err().unwrap().kind,
                ErrorKind::Invalid,
                "{bad}"
            );
        }
    }

    #[test]
    fn batches_hold_no_more_than_allowed() {
        let lengths = |count, bytes| -> Vec<usize> {
            let rows = vec![3; 7];
            batches(rows, count, bytes, |size| *size).iter().map(Vec::len).collect()
        };
        assert_eq!(lengths(3, 1_000), [3, 3, 1]);
        assert_eq!(lengths(100, 6), [2, 2, 2, 1]);
        assert_eq!(lengths(100, 1), [1; 7]);
        assert!(batches(Vec::<usize>::new(), 3, 3, |_| 1).is_empty());
    }
}
