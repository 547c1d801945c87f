//! Connectors: where files come from and where elements go.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words::text_enum;

text_enum! {
    /// Which way a connector moves data.
    ConnectorRole {
        /// Files come from it.
        Source = "source",
        /// Elements go to it.
        Destination = "destination",
    }
}

text_enum! {
    /// State of a connection check.
    CheckStatus {
        /// Not ended yet.
        Scheduled = "SCHEDULED",
        /// The connection works.
        Success = "SUCCESS",
        /// It does not; the reason is stored.
        Failure = "FAILURE",
    }
}

/// A file (or row) a source offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceObject {
    /// What names the object within its source: an object key, a path below the root, a row's id. Stable
    /// over runs, unique within the source. Never used as a local path.
    pub locator: String,
    /// Name for display and as the last resort of detection, with `/` between folders.
    pub name: String,
    /// Bytes, where the source tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Changes when the content changes (an ETag, a version id, size and time), where the source tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// MIME type, where the source tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// What elements carry as `metadata.data_source`: `url`, `version`, `record_locator`,
    /// `date_created`, `date_modified`, `date_processed`, `permissions_data`; absent where unknown.
    pub data_source: Value,
}
