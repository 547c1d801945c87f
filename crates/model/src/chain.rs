//! Node chains: from what a client sent to a validated list of nodes in a runnable order.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::NodeId;
use crate::provider::ModelRef;
use crate::settings::{
    ChunkOptions, ContextOptions, EmbedOptions, ExtractMethod, ExtractOptions, OutputMode, PartitionOptions,
    PromptOptions, SimilarityOptions, TableMergeOptions,
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
    /// The node's own key for its provider, encrypted for the place it is stored at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_key: Option<String>,
}

/// Setting of a node that is a key for its provider.
pub const NODE_KEY: &str = "provider_api_key";

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

    /// The model the node calls; `None` for a node that works without one.
    pub fn model(&self) -> Option<&ModelRef> {
        match self {
            Self::Partition(options) => options.vlm.as_ref().and_then(|vlm| vlm.model.as_ref()),
            Self::Chunk(options) => options.contextual.as_ref().map(|context| &context.model),
            Self::ChunkBySimilarity(options) => Some(&options.embedder),
            Self::Contextualize(options) => Some(&options.model),
            Self::MergeTables(options) => Some(&options.model),
            Self::Prompt(options) => options.model.as_ref(),
            Self::Extract(options) => match &options.method {
                ExtractMethod::Llm(llm) => Some(&llm.model),
                ExtractMethod::Regex(_) => None,
            },
            Self::Embed(options) => Some(&options.model),
        }
    }

    /// Whether the model it calls embeds, and does not chat.
    pub fn embeds(&self) -> bool {
        matches!(self, Self::ChunkBySimilarity(_) | Self::Embed(_))
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

    /// The nodes in order, for adding what only their keeper knows.
    pub fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// How many nodes at the beginning call no model.
    pub fn free(&self) -> usize {
        let paid = self.nodes.iter().position(|node| node.work.model().is_some());
        paid.unwrap_or(self.nodes.len())
    }

    /// The first `count` nodes (at least one), without keys.
    pub fn beginning(&self, count: usize) -> Self {
        let mut nodes: Vec<_> = self.nodes.iter().take(count.max(1)).cloned().collect();
        for node in &mut nodes {
            node.sealed_key = None;
        }
        Self { nodes }
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
