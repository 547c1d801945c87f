//! Who wrote which field.

use docmill_model::Metadata;
use docmill_model::provider::ModelRef;
use serde_json::{Value, json};

/// Notes in `enrichment_origins` that `task` wrote `field` with `model`.
pub(crate) fn note(metadata: &mut Metadata, field: &str, task: &str, model: Option<&ModelRef>) {
    let mut origin = json!({"type": task});
    if let Some(model) = model {
        origin["provider"] = model.provider.as_str().into();
        origin["model"] = model.model.as_str().into();
    }
    let origins = metadata.enrichment_origins.entry(field).or_insert_with(|| json!([]));
    match origins {
        Value::Array(origins) => origins.push(origin),
        other => *other = json!([other.take(), origin]),
    }
}

/// Whether a task wrote `field`.
pub(crate) fn is_by(metadata: &Metadata, field: &str, task: &str) -> bool {
    let origins = metadata.enrichment_origins.get(field).and_then(Value::as_array);
    origins.is_some_and(|origins| origins.iter().any(|origin| origin["type"] == task))
}
