//! Records of nodes that call models.

use docmill_model::ids::{FileId, JobId, WorkspaceId};
use serde_json::Value;

/// How far a claimed file is: the outputs of its first nodes are durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Key of the blob and bytes of each output, from the first node on.
    pub outputs: Vec<(String, u64)>,
    /// SHA-256 of the file's content, hexadecimal, where it comes from a source. Another content makes the
    /// checkpoint worth nothing.
    pub content_hash: Option<String>,
    /// What else is needed to go on.
    pub state: Value,
}

/// What calls of a model cost. Sums are kept by whoever adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// `provider/model`.
    pub model: String,
    /// Calls that were made.
    pub calls: u64,
    /// Answers that were there already.
    pub cached: u64,
    /// Requests sent beyond the first of each call.
    pub retries: u64,
    /// Tokens of the input.
    pub tokens_in: u64,
    /// Tokens of the output.
    pub tokens_out: u64,
    /// Milliseconds of the calls, each counted for itself.
    pub millis: u64,
    /// Price in millionths; `None` where the model's price is not set.
    pub price: Option<i64>,
}

/// Calls of a node for a file, with what they answered.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// Whose calls.
    pub workspace: WorkspaceId,
    /// The job.
    pub job: JobId,
    /// The file.
    pub file: FileId,
    /// Position of the node.
    pub node: u32,
    /// What they cost.
    pub cost: Cost,
    /// `YYYY-MM`: the month it is spent in.
    pub month: String,
    /// Answers to keep: key and answer.
    pub answers: Vec<(String, Vec<u8>)>,
    /// Keys of kept answers that were used again.
    pub used: Vec<String>,
}

/// The cost of a node for a file.
#[derive(Clone, Debug)]
pub struct FileCost {
    /// The file.
    pub file: FileId,
    /// Position of the node.
    pub node: u32,
    /// The cost.
    pub cost: Cost,
}
