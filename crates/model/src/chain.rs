//! Node chains: from what a client sent to a validated list of nodes in a runnable order.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::NodeId;
use crate::settings::{
    ChunkOptions, ContextOptions, EmbedOptions, ExtractOptions, OutputMode, PartitionOptions, PromptOptions,
    SimilarityOptions, TableMergeOptions,
};

pub mod catalog;
mod fields;
mod node_settings;
mod order;
mod paid_settings;
mod parse;

pub use parse::{parse, parse_with};

/// A node as sent by a client and echoed back to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Id; docmill gives one when the client did not.
    pub id: Option<NodeId>,
    /// Free name.
    pub name: String,
    /// `partition`, `prompter`, `chunk`, `structured_data_extractor` or `embed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which implementation.
    pub subtype: String,
    /// Settings of the implementation.
    #[serde(default)]
    pub settings: Map<String, Value>,
}

/// A node with its settings checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Id within the chain.
    pub id: NodeId,
    /// Free name.
    pub name: String,
    /// `type` as sent.
    #[serde(rename = "type")]
    pub kind: String,
    /// `subtype` as sent.
    pub subtype: String,
    /// What to do.
    pub work: NodeWork,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeWork {
    /// Bytes to elements.
    Partition(PartitionOptions),
    /// Elements to chunks.
    Chunk(ChunkOptions),
    /// Elements to chunks by the vectors of the elements.
    ChunkBySimilarity(SimilarityOptions),
    /// Context in front of each chunk.
    Contextualize(ContextOptions),
    /// Tables that run over a page's end to one table.
    MergeTables(TableMergeOptions),
    /// An enrichment by a chat model.
    Prompt(PromptOptions),
    /// Data of the whole document.
    Extract(ExtractOptions),
    /// A vector for each element.
    Embed(EmbedOptions),
}

impl NodeWork {
    /// Whether the node makes chunks of elements.
    pub fn makes_chunks(&self) -> bool {
        matches!(self, Self::Chunk(_) | Self::ChunkBySimilarity(_))
    }

    /// Whether the node's output is data instead of elements.
    pub fn yields_data_alone(&self) -> bool {
        matches!(self, Self::Extract(options) if options.output_mode == OutputMode::DataOnly)
    }
}

/// A validated chain: a partition node first, then in each place a node that may stand there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeChain {
    nodes: Vec<Node>,
}

impl NodeChain {
    /// The nodes in order; at least one.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

/// One thing wrong with a chain or a request, in the shape of a validation error's `detail` item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Path to the offending value: names and positions.
    pub loc: Vec<Value>,
    /// What is wrong and what would be right.
    pub msg: String,
    /// Stable kind of problem, such as `missing` or `value_error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

impl Problem {
    /// A problem at `loc`.
    pub fn new(loc: &[Value], kind: &'static str, msg: impl Into<String>) -> Self {
        Self {
            loc: loc.to_vec(),
            msg: msg.into(),
            kind,
        }
    }
}

#[cfg(test)]
mod tests;
