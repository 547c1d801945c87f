//! Chains of workflows that are created without nodes.

use docmill_model::workflow::WorkflowType;
use serde_json::{Value, json};

/// The chain of a type's workflow for which neither nodes nor a template are given: the partition the
/// type's name stands for. `custom` and `template` have none.
pub(super) fn nodes(kind: WorkflowType) -> Option<Value> {
    let (subtype, settings) = match kind {
        WorkflowType::Basic => ("unstructured_api", json!({"strategy": "fast"})),
        WorkflowType::Advanced => ("unstructured_api", json!({"strategy": "hi_res"})),
        WorkflowType::Platinum => ("vlm", json!({"is_dynamic": true, "allow_fast": true})),
        WorkflowType::Custom | WorkflowType::Template => return None,
    };
    Some(json!([{"name": "Partitioner", "type": "partition", "subtype": subtype, "settings": settings}]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_chain_runs() {
        for kind in [WorkflowType::Basic, WorkflowType::Advanced, WorkflowType::Platinum] {
            let nodes = nodes(kind).unwrap();
            assert!(docmill_model::chain::parse(&nodes, &[]).is_ok(), "{kind}");
        }
        assert_eq!(
            (nodes(WorkflowType::Custom), nodes(WorkflowType::Template)),
            (None, None)
        );
    }
}
