//! Chains without a server: answers and costs are kept as long as the program runs.

use std::sync::Arc;

use bytes::Bytes;
use docmill_model::Code;
use docmill_model::chain::{NodeChain, NodeSpec, Problem};
use docmill_model::ids::WorkspaceId;
use docmill_sandbox::{CancelFlag, Usage};
use docmill_store::Cost;
use serde_json::Value;

use super::ledger::MemoryLedger;
use super::{ChainRun, Content, Models, NodeFailure, NodeKeys, Partition};
use crate::protocol::TaskRequest;
use crate::running::FileProgress;
use crate::vault::Vault;
use crate::{RunFailure, RunOutput, Runner};

/// A chain that is run on files one by one, without a store.
#[derive(Debug)]
pub struct LocalChain {
    chain: NodeChain,
    models: Models,
    keys: NodeKeys,
    ledger: MemoryLedger,
}

impl LocalChain {
    /// Reads a chain. `vault` keeps the keys of its nodes while the program runs.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn new(models: Models, vault: Vault, nodes: &Value) -> Result<Self, Vec<Problem>> {
        let keys = NodeKeys {
            vault,
            workspace: WorkspaceId::new(),
        };
        let none: &[NodeSpec] = &[];
        let (chain, _) = models.read_chain(&keys, nodes, none, &[])?;
        let ledger = MemoryLedger::new(models.config().cache_bytes);
        Ok(Self {
            chain,
            models,
            keys,
            ledger,
        })
    }

    /// The chain.
    pub fn chain(&self) -> &NodeChain {
        &self.chain
    }

    /// What its nodes that call models cost so far, by their positions.
    pub fn costs(&self) -> Vec<(u32, Cost)> {
        self.ledger.costs()
    }

    /// Runs a file through the chain; that of the request is not looked at.
    pub async fn run(&self, runner: &Runner, mut request: TaskRequest, input: Bytes) -> Result<RunOutput, RunFailure> {
        let nodes = self.chain.nodes().len();
        let free = self.chain.free();
        let scope = request.scope.clone();
        let run = ChainRun {
            models: &self.models,
            keys: &self.keys,
            ledger: &self.ledger,
            chain: &self.chain,
            scope: &scope,
        };
        if free > 0 {
            request.chain = self.chain.beginning(free);
            let nobody = |_: FileProgress| {};
            let output = runner.run(request, input, CancelFlag::default(), nobody).await?;
            if free == nodes {
                return Ok(output);
            }
            let none = || NodeFailure::new(Code::TaskOutputInvalid, "the child process sent no output");
            let content = Content::read(output.outputs.last().cloned().ok_or_else(none)?).await?;
            return self.rest(&run, free, content, output).await;
        }
        let partition = Partition {
            run: &run,
            runner,
            request,
            input,
            cancel: CancelFlag::default(),
            progress: Arc::new(|_| {}),
        };
        let read = partition.read().await?;
        let (content, bytes) = read.content.write().await?;
        let output = RunOutput {
            inspection: None,
            outputs: vec![bytes],
            warnings: read.warnings,
            elements: content.elements(),
            pages: read.pages,
            routes: read.routes,
            filetype: None,
            usage: Usage::default(),
        };
        self.rest(&run, 1, content, output).await
    }

    /// Runs the nodes from a position on.
    async fn rest(
        &self,
        run: &ChainRun<'_>,
        from: usize,
        mut content: Content,
        mut output: RunOutput,
    ) -> Result<RunOutput, RunFailure> {
        for index in from..self.chain.nodes().len() {
            let (next, bytes) = run.step(index, content, &mut output.warnings).await?.write().await?;
            output.elements = next.elements();
            output.outputs.push(bytes);
            content = next;
        }
        Ok(output)
    }
}
