//! Pages read by a vision model: every page, or those that the local engine can't do justice.
//!
//! The child process draws pages, a few at a time ([`sheets`]); the model is asked about several at once ([`ask`]);
//! what it answered is joined with what the local engine read ([`join`]). Answers are kept before they are used, as
//! for all calls, so that a file that is begun again asks only what was not answered.

mod ask;
mod hard;
mod join;
mod sheets;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use docmill_model::chain::{NodeChain, NodeWork};
use docmill_model::document::WarningCode;
use docmill_model::settings::{PartitionOptions, VlmOptions};
use docmill_model::{Code, Element, PageRoute, RouteReason, Warning};
use docmill_sandbox::CancelFlag;

use super::{ChainRun, Content, NodeFailure};
use crate::protocol::TaskRequest;
use crate::running::FileProgress;
use crate::{RunFailure, RunOutput, Runner};
use ask::Pages;
use join::Join;

/// A file whose partition node may call a model.
pub(crate) struct Partition<'a> {
    pub(crate) run: &'a ChainRun<'a>,
    pub(crate) runner: &'a Runner,
    /// What a child process is told of the file; the chain in it is not looked at.
    pub(crate) request: TaskRequest,
    pub(crate) input: Bytes,
    pub(crate) cancel: CancelFlag,
    pub(crate) progress: Arc<dyn Fn(FileProgress) + Send + Sync>,
}

/// What the partition node yields.
pub(crate) struct Partitioned {
    pub(crate) content: Content,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) pages: u64,
    pub(crate) routes: Vec<PageRoute>,
}

/// Why it yields nothing.
pub(crate) enum Failure {
    /// A child process came to nothing.
    Run(RunFailure),
    /// A call did, or what keeps answers.
    Node(NodeFailure),
}

impl From<RunFailure> for Failure {
    fn from(failure: RunFailure) -> Self {
        Self::Run(failure)
    }
}

impl From<NodeFailure> for Failure {
    fn from(failure: NodeFailure) -> Self {
        Self::Node(failure)
    }
}

impl From<Failure> for RunFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Run(failure) => failure,
            Failure::Node(failure) => failure.into(),
        }
    }
}

/// What the local engine made of the file.
struct Local {
    elements: Vec<Element>,
    warnings: Vec<Warning>,
    pages: u64,
    routes: Vec<PageRoute>,
}

/// Whether the local engine's progress is that of the file.
#[derive(Clone, Copy, PartialEq)]
enum Tell {
    Progress,
    Nothing,
}

impl Partition<'_> {
    /// Runs the partition node.
    pub(crate) async fn read(&self) -> Result<Partitioned, Failure> {
        let name = |node: &docmill_model::chain::Node| node.name.clone();
        let named = self.run.chain.nodes().first().map(name).unwrap_or_default();
        let (options, vlm) = self.options()?;
        let read = if vlm.is_dynamic {
            self.read_hard_pages(options, vlm).await
        } else {
            self.read_all_pages(options, vlm).await
        };
        read.map_err(|failure| match failure {
            Failure::Node(failure) => Failure::Node(failure.at(&named)),
            run => run,
        })
    }

    fn options(&self) -> Result<(&PartitionOptions, &VlmOptions), NodeFailure> {
        match self.run.chain.nodes().first().map(|node| &node.work) {
            Some(NodeWork::Partition(options)) => options.vlm.as_ref().map(|vlm| (options, vlm)),
            _ => None,
        }
        .ok_or_else(|| NodeFailure::new(Code::Internal, "the chain's first node shows no pages to a model"))
    }

    /// Every page goes to the model.
    async fn read_all_pages(&self, options: &PartitionOptions, vlm: &VlmOptions) -> Result<Partitioned, Failure> {
        let pages = Pages::new(self, options, vlm)?;
        let read = pages.read(None).await?;
        let Some(total) = read.total else {
            return self.read_without_pages(options, read.filetype).await;
        };
        let failed = read.outcomes.values().any(|outcome| outcome.elements.is_err());
        let mut join = Join::new(self, options, read.filetype);
        if vlm.allow_fast && failed {
            let local = self.read_locally(Tell::Nothing).await?;
            join.warnings.extend(local.warnings);
            join.local = Some((local.elements, local.routes));
        }
        join.finish(total, read.outcomes).await
    }

    /// The local engine reads; pages it can't do justice go to the model.
    async fn read_hard_pages(&self, options: &PartitionOptions, vlm: &VlmOptions) -> Result<Partitioned, Failure> {
        let local = self.read_locally(Tell::Progress).await?;
        let wanted: BTreeMap<u32, RouteReason> = local
            .routes
            .iter()
            .filter_map(|route| {
                let index = route.page_number.checked_sub(options.starting_page_number)?;
                Some((index, hard::reason(route)?))
            })
            .collect();
        let mut join = Join::new(self, options, None);
        join.warnings = local.warnings;
        join.local = Some((local.elements, local.routes));
        let total = u32::try_from(local.pages).unwrap_or(u32::MAX);
        if wanted.is_empty() {
            return join.finish(total, BTreeMap::new()).await;
        }
        let read = Pages::new(self, options, vlm)?.read(Some(wanted)).await?;
        join.filetype = read.filetype;
        join.finish(total, read.outcomes).await
    }

    /// The local engine reads a file whose format has no pages that could be shown.
    async fn read_without_pages(
        &self,
        options: &PartitionOptions,
        filetype: Option<String>,
    ) -> Result<Partitioned, Failure> {
        let local = self.read_locally(Tell::Progress).await?;
        let mut join = Join::new(self, options, None);
        join.warnings.push(Warning::new(
            WarningCode::PageReadLocally,
            format!(
                "files of type {} have no pages that could be shown to a model; the local engine read this one",
                filetype.as_deref().unwrap_or("unknown")
            ),
        ));
        join.warnings.extend(local.warnings);
        join.local = Some((local.elements, local.routes));
        let total = u32::try_from(local.pages).unwrap_or(u32::MAX);
        join.finish(total, BTreeMap::new()).await
    }

    /// Has the local engine read the file: everything in it, with the ids of its content.
    async fn read_locally(&self, tell: Tell) -> Result<Local, Failure> {
        let mut chain = self.run.chain.beginning(1);
        if let Some(NodeWork::Partition(options)) = chain.nodes_mut().first_mut().map(|node| &mut node.work) {
            options.exclude_elements.clear();
            options.unique_element_ids = false;
        }
        let progress = self.progress.clone();
        let told = move |now: FileProgress| {
            // The node is done when the model is.
            if tell == Tell::Progress {
                progress(FileProgress { nodes_done: 0, ..now });
            }
        };
        let RunOutput {
            outputs,
            warnings,
            pages,
            routes,
            ..
        } = self.child(chain, None, told).await?;
        let none = || NodeFailure::new(Code::TaskOutputInvalid, "the child process sent no output");
        let output = outputs.into_iter().next().ok_or_else(none)?;
        let Content::Elements(elements) = Content::read(output).await? else {
            return Err(none().into());
        };
        Ok(Local {
            elements,
            warnings,
            pages,
            routes,
        })
    }

    /// Has a child process run a chain, or draw pages.
    async fn child(
        &self,
        chain: NodeChain,
        draw: Option<Vec<u32>>,
        progress: impl Fn(FileProgress) + Send + 'static,
    ) -> Result<RunOutput, RunFailure> {
        let request = TaskRequest {
            chain,
            draw,
            ..self.request.clone()
        };
        self.runner
            .run(request, self.input.clone(), self.cancel.clone(), progress)
            .await
    }
}
