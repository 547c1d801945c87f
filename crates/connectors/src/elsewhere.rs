//! Types that clients of the API may know and this version does not have.

use docmill_model::connector::ConnectorRole;

use crate::TYPES;

/// Types of sources the API's clients know by name.
const SOURCES: &[&str] = &[
    "azure",
    "box",
    "confluence",
    "couchbase",
    "databricks_volumes",
    "dropbox",
    "elasticsearch",
    "gcs",
    "google_drive",
    "jira",
    "kafka-cloud",
    "mongodb",
    "onedrive",
    "opensearch",
    "outlook",
    "postgres",
    "s3",
    "salesforce",
    "sharepoint",
    "slack",
    "snowflake",
    "teradata",
    "zendesk",
];

/// Types of destinations the API's clients know by name.
const DESTINATIONS: &[&str] = &[
    "astradb",
    "azure",
    "azure_ai_search",
    "couchbase",
    "databricks_volume_delta_tables",
    "databricks_volumes",
    "delta_table",
    "elasticsearch",
    "gcs",
    "ibm_watsonx_s3",
    "kafka-cloud",
    "milvus",
    "mongodb",
    "motherduck",
    "neo4j",
    "onedrive",
    "opensearch",
    "pinecone",
    "postgres",
    "qdrant-cloud",
    "redis",
    "s3",
    "snowflake",
    "teradata",
    "weaviate-cloud",
];

/// Every type the API's clients know by name in a role, whether this version has it or not.
pub const fn known_elsewhere(role: ConnectorRole) -> &'static [&'static str] {
    match role {
        ConnectorRole::Source => SOURCES,
        ConnectorRole::Destination => DESTINATIONS,
    }
}

/// Why a connector of this type can't be made, and which types there are.
pub fn unavailable(role: ConnectorRole, name: &str) -> String {
    let short: String = name.chars().take(64).collect();
    let there: Vec<_> = TYPES
        .iter()
        .filter(|kind| kind.fields(role).is_some())
        .map(|kind| kind.name)
        .collect();
    let there = there.join(", ");
    if known_elsewhere(role).contains(&name) {
        format!("`{short}` is not available as a {role} in this version; available are {there}")
    } else {
        format!("`{short}` is no type of {role}; available are {there}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_name_and_a_made_up_one_get_different_answers() {
        let known = unavailable(ConnectorRole::Source, "dropbox");
        assert!(
            known.starts_with("`dropbox` is not available as a source in this version; available are ")
                && known.contains("local"),
            "{known}"
        );
        assert!(
            unavailable(ConnectorRole::Destination, "nonsense").starts_with("`nonsense` is no type of destination")
        );
    }
}
