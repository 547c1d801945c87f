//! What the server and its child processes say to each other about a file. Frames carry these as JSON.

use docmill_model::chain::NodeChain;
use docmill_model::limits::ParseLimits;
use docmill_model::{Code, Element, PageRoute, Warning};
use serde::{Deserialize, Serialize};

/// What to do with the file whose bytes follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskRequest {
    /// Name of the file, for metadata and as the last resort of detection.
    pub filename: Option<String>,
    /// Declared MIME type.
    pub content_type: Option<String>,
    /// Nodes to run. Each one's output is sent back as it is ready.
    pub chain: NodeChain,
    /// Bounds of the parsers.
    pub limits: ParseLimits,
    /// What makes ids of this file differ from those of others: its id.
    pub scope: String,
    /// When the file was last modified, `YYYY-MM-DDTHH:MM:SS`.
    pub last_modified: Option<String>,
    /// Folder the file was read from.
    pub file_directory: Option<String>,
    /// What every element carries as `metadata.data_source`, for a file from a source.
    #[serde(default)]
    pub data_source: Option<serde_json::Value>,
    /// Whether a page of HTML that shows what was found is to be sent behind the outputs of the nodes, as a
    /// JSON string, or `null` for a file without pages.
    #[serde(default)]
    pub inspect: bool,
    /// Instead of running the chain, draws these pages (positions from 0, ascending): each output is the PNG of one
    /// of them, in their order, empty where the page can't be drawn. Pages that are not there are left out.
    #[serde(default)]
    pub draw: Option<Vec<u32>>,
}

impl TaskRequest {
    /// Adds to elements what is known of their file beside its content.
    pub fn add_file_metadata(&self, elements: &mut [Element]) {
        for element in elements {
            let metadata = &mut element.metadata;
            if metadata.last_modified.is_none() {
                metadata.last_modified.clone_from(&self.last_modified);
            }
            metadata.file_directory.clone_from(&self.file_directory);
            metadata.data_source.clone_from(&self.data_source);
        }
    }
}

/// Sent when every node has run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskDone {
    /// What was not done.
    pub warnings: Vec<Warning>,
    /// Elements of the last output.
    pub elements: u64,
    /// Pages of the document. Where pages were to be drawn: 0 if its format has none.
    pub pages: u64,
    /// MIME type of the file as detected, where pages were to be drawn.
    #[serde(default)]
    pub filetype: Option<String>,
    /// How each page was read.
    #[serde(default)]
    pub routes: Vec<PageRoute>,
}

/// Sent when the file can't be processed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskFailed {
    /// Stable code.
    pub code: Code,
    /// Reason, for people.
    pub message: String,
    /// The file needs libraries that this child did not load, such as that of text recognition: it is to be run again
    /// in one that has.
    #[serde(default)]
    pub needs_tools: bool,
}
