//! A chain from its first node that calls a model on.

use bytes::Bytes;
use docmill_model::chain::{Node, NodeChain, NodeWork};
use docmill_model::settings::ExtractMethod;
use docmill_model::{Code, Element, Warning};
use serde_json::Value;

use super::calls::Calls;
use super::nodes::{apart, by_patterns, chunked};
use super::{Ledger, Models, NodeFailure, NodeKeys};

/// What a node yields.
#[derive(Debug)]
pub(crate) enum Content {
    /// Elements.
    Elements(Vec<Element>),
    /// Data alone: the chain's end.
    Data(Value),
}

impl Content {
    /// Reads the output of a node.
    pub(crate) async fn read(bytes: Bytes) -> Result<Self, NodeFailure> {
        let elements = apart(move || serde_json::from_slice(&bytes)).await?;
        elements.map(Self::Elements).map_err(|error| {
            NodeFailure::new(
                Code::TaskOutputInvalid,
                format!("a node's output holds no elements: {error}"),
            )
        })
    }

    /// As it is stored, and the content again.
    pub(crate) async fn write(self) -> Result<(Self, Bytes), NodeFailure> {
        apart(move || {
            let bytes = match &self {
                Self::Elements(elements) => serde_json::to_vec(elements),
                Self::Data(data) => serde_json::to_vec(data),
            };
            let bytes = bytes.map_err(|error| NodeFailure::new(Code::Internal, error))?;
            Ok((self, Bytes::from(bytes)))
        })
        .await?
    }

    /// How many elements it has.
    pub(crate) fn elements(&self) -> u64 {
        match self {
            Self::Elements(elements) => elements.len() as u64,
            Self::Data(_) => 0,
        }
    }
}

/// What the nodes of a chain need for one file.
pub(crate) struct ChainRun<'a> {
    pub(crate) models: &'a Models,
    pub(crate) keys: &'a NodeKeys,
    pub(crate) ledger: &'a dyn Ledger,
    pub(crate) chain: &'a NodeChain,
    /// What makes ids of this file differ from those of others.
    pub(crate) scope: &'a str,
}

impl ChainRun<'_> {
    /// Runs the node at a position on the output of the one before.
    pub(crate) async fn step(
        &self,
        index: usize,
        content: Content,
        warnings: &mut Vec<Warning>,
    ) -> Result<Content, NodeFailure> {
        let node = self.chain.nodes().get(index);
        let node = node.ok_or_else(|| NodeFailure::new(Code::Internal, "a chain has no such node"))?;
        let Content::Elements(elements) = content else {
            return Err(NodeFailure::new(Code::Internal, "a node follows data"));
        };
        self.run(index, node, elements, warnings)
            .await
            .map_err(|failure| failure.at(&node.name))
    }

    async fn run(
        &self,
        index: usize,
        node: &Node,
        elements: Vec<Element>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Content, NodeFailure> {
        let calls = || self.calls(index, node);
        let elements = match &node.work {
            NodeWork::Partition(_) => return Err(NodeFailure::new(Code::Internal, "a second partition node")),
            NodeWork::Chunk(options) => {
                let chunks = chunked(elements, options.clone(), self.scope).await?;
                match &options.contextual {
                    Some(context) => calls()?.contextualize(chunks, context, warnings).await?,
                    None => chunks,
                }
            }
            NodeWork::ChunkBySimilarity(options) => calls()?.chunk_similar(elements, options, self.scope).await?,
            NodeWork::Contextualize(options) => calls()?.contextualize(elements, options, warnings).await?,
            NodeWork::MergeTables(options) => calls()?.merge_tables(elements, options, warnings).await?,
            // Without a model for the second pass, what the first found stays.
            NodeWork::Prompt(options) if options.model.is_none() => elements,
            NodeWork::Prompt(options) => calls()?.enrich(elements, options, warnings).await?,
            NodeWork::Extract(options) => {
                let mode = options.output_mode;
                return match &options.method {
                    ExtractMethod::Llm(llm) => calls()?.extract(elements, llm, mode).await,
                    ExtractMethod::Regex(patterns) => by_patterns(elements, patterns.clone(), mode).await,
                };
            }
            NodeWork::Embed(options) => calls()?.embed_elements(elements, options).await?,
        };
        Ok(Content::Elements(elements))
    }

    /// The calls of a node, with its own key if it has one.
    pub(super) fn calls<'n>(&'n self, index: usize, node: &'n Node) -> Result<Calls<'n>, NodeFailure> {
        let model = node.work.model();
        let model = model.ok_or_else(|| NodeFailure::new(Code::Internal, "the node names no model"))?;
        let key = self.keys.open(node);
        Ok(Calls {
            models: self.models,
            ledger: self.ledger,
            node: u32::try_from(index).unwrap_or(u32::MAX),
            model,
            key: key.map_err(|error| NodeFailure::new(Code::ProviderRefused, error))?,
        })
    }
}
