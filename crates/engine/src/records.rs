//! How documents are named at destinations.

use docmill_model::ids::{ConnectorId, FileId, WorkflowId};
use sha2::{Digest, Sha256};

/// Names a document of a workflow at every destination: the same on every run for the same object of the
/// same source, so that a later run replaces what an earlier one wrote. 64 hexadecimal characters.
pub fn record_id(workflow: WorkflowId, source: ConnectorId, locator: &str) -> String {
    record_id_of(&[&workflow.to_string(), &source.to_string(), locator])
}

/// Names an uploaded file at every destination.
pub(crate) fn upload_record_id(workflow: WorkflowId, file: FileId) -> String {
    record_id_of(&[&workflow.to_string(), &file.to_string()])
}

/// The name an uploaded file has at destinations: names of uploads need not differ, so the file's id
/// comes first, like a folder.
pub(crate) fn upload_record_name(file: FileId, name: &str) -> String {
    format!("{file}/{name}")
}

/// Names a document by whatever tells it apart from all others: the same parts, the same document. 64
/// hexadecimal characters.
pub fn record_id_of(parts: &[&str]) -> String {
    let mut hash = Sha256::new_with_prefix("docmill-record");
    for part in parts {
        hash.update([0]);
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_told_apart_by_workflow_source_and_locator() {
        let (workflow, source) = (WorkflowId::new(), ConnectorId::new());
        let id = record_id(workflow, source, "a");
        assert_eq!(id, record_id(workflow, source, "a"));
        assert!(id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()));
        let others = [
            record_id(workflow, source, "b"),
            record_id(workflow, ConnectorId::new(), "a"),
            record_id(WorkflowId::new(), source, "a"),
            upload_record_id(workflow, FileId::new()),
        ];
        assert!(others.iter().all(|other| *other != id));
        let plain = format!("docmill-record\0{workflow}\0{source}\0a");
        assert_eq!(id, hex::encode(Sha256::digest(plain)));
    }
}
