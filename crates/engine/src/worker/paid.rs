//! Files whose chain calls models: the chain's beginning in a child process, the rest here, with a checkpoint after
//! each node that was paid for.

use std::sync::Arc;

use bytes::Bytes;
use docmill_model::{Code, PageRoute, Warning};
use docmill_store::blob::output_key;
use docmill_store::{Checkpoint, FileOutcome, StoreError};
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::Task;
use super::input::{Input, request, scope};
use crate::chain::{ChainRun, Content, Failure, NodeFailure, Partition, Partitioned, StoreLedger};
use crate::runner::RunFailure;

/// Bytes that pictures of pages take while they are shown to a model.
const PICTURES: u64 = 16 << 20;

/// How far a file is.
struct Progress {
    /// Outputs of the first nodes that are stored: key of the blob and bytes.
    stored: Vec<(String, u64)>,
    /// Outputs of the nodes after these.
    fresh: Vec<Bytes>,
    /// Bytes of all of them.
    bytes: u64,
    /// The last output.
    content: Content,
    notes: Notes,
}

/// What a checkpoint keeps beside outputs.
#[derive(Default, Serialize, Deserialize)]
struct Notes {
    warnings: Vec<Warning>,
    pages: u64,
    #[serde(default)]
    routes: Vec<PageRoute>,
}

/// Why a file goes no further.
enum Stop {
    /// It was stopped, or somebody else has it.
    Lost,
    Ended(FileOutcome),
}

impl Progress {
    fn done(&self) -> usize {
        self.stored.len() + self.fresh.len()
    }
}

impl Task<'_> {
    /// The outcome to record, or `None` when the file was stopped.
    pub(super) async fn process_paid(&self, input: Input) -> Option<FileOutcome> {
        match self.unless_stopped(self.run_paid(input)).await? {
            Ok(outcome) | Err(Stop::Ended(outcome)) => Some(outcome),
            Err(Stop::Lost) => None,
        }
    }

    async fn run_paid(&self, input: Input) -> Result<FileOutcome, Stop> {
        let Input { bytes, share, hash } = input;
        let shared = &self.engine.shared;
        let ledger = StoreLedger {
            store: self.engine.store(),
            workspace: self.claim.workspace,
            job: self.claim.job,
            file: self.claim.lease.file(),
            cache_bytes: shared.config.models.config().cache_bytes,
        };
        let keys = self.engine.node_keys(self.claim.workspace);
        let scope = scope(self.claim);
        let run = ChainRun {
            models: &shared.config.models,
            keys: &keys,
            ledger: &ledger,
            chain: &self.claim.chain,
            scope: &scope,
        };
        let mut progress = match self.resume(hash.as_deref()).await? {
            Some(progress) => progress,
            None if self.claim.chain.free() == 0 => {
                let mut progress = self.begin_paid(&run, bytes).await?;
                if self.is_checkpoint(0) {
                    self.checkpoint(&mut progress, hash.as_deref()).await?;
                }
                progress
            }
            None => self.begin(bytes).await?,
        };
        drop(share);
        // Elements take more room than their text; as long as they are here, so much less is started.
        let _share = self.room.outputs.take(progress.bytes.saturating_mul(2)).await;
        let nodes = self.claim.chain.nodes();
        for index in progress.done()..nodes.len() {
            progress = self.step_while_storing(&run, index, progress).await?;
            if self.is_checkpoint(index) {
                self.checkpoint(&mut progress, hash.as_deref()).await?;
            }
        }
        self.end(progress, hash).await
    }

    /// Whether what a node yields is made durable at once: it was paid for. At the last node the file's end records
    /// as much, unless it still has to be delivered.
    fn is_checkpoint(&self, index: usize) -> bool {
        let nodes = self.claim.chain.nodes();
        let paid = nodes.get(index).is_some_and(|node| node.work.model().is_some());
        paid && (index + 1 < nodes.len() || !self.claim.destinations.is_empty())
    }

    /// Where an earlier attempt, or the file this one retries, got to; `None` where there is nothing to go on from.
    async fn resume(&self, hash: Option<&str>) -> Result<Option<Progress>, Stop> {
        let found = self.engine.store().checkpoint(self.claim.lease.file()).await;
        let found = found.map_err(|error| self.store_failed(error))?;
        let Some(checkpoint) = found.filter(|found| found.content_hash.as_deref() == hash) else {
            return Ok(None);
        };
        let Some((last, _)) = checkpoint.outputs.last() else {
            return Ok(None);
        };
        let bytes = match self.engine.blobs().get(last).await {
            Ok(bytes) => bytes,
            Err(StoreError::BlobMissing(_)) => return Ok(None),
            Err(error) => return Err(self.store_failed(error)),
        };
        let (Ok(notes), Ok(content)) = (
            serde_json::from_value::<Notes>(checkpoint.state),
            Content::read(bytes).await,
        ) else {
            return Ok(None);
        };
        tracing::info!(job.id = %self.claim.job, file.id = %self.claim.lease.file(), nodes = checkpoint.outputs.len(),
            "the file goes on after its last checkpoint");
        Ok(Some(Progress {
            bytes: checkpoint.outputs.iter().map(|(_, size)| *size).sum(),
            stored: checkpoint.outputs,
            fresh: Vec::new(),
            content,
            notes,
        }))
    }

    /// Runs the nodes that call no model.
    async fn begin(&self, bytes: Bytes) -> Result<Progress, Stop> {
        let chain = &self.claim.chain;
        let run = self.run(bytes, chain.beginning(chain.free())).await;
        let run = run.map_err(|failure| self.run_failed(failure).map_or(Stop::Lost, Stop::Ended))?;
        let last = run.outputs.last().cloned().unwrap_or_default();
        let content = Content::read(last).await.map_err(|failure| self.node_failed(failure))?;
        Ok(Progress {
            stored: Vec::new(),
            bytes: run.outputs.iter().map(|output| output.len() as u64).sum(),
            fresh: run.outputs,
            content,
            notes: Notes {
                warnings: run.warnings,
                pages: run.pages,
                routes: run.routes,
            },
        })
    }

    /// Runs the first node, whose pages a model may read.
    async fn begin_paid(&self, run: &ChainRun<'_>, input: Bytes) -> Result<Progress, Stop> {
        let _share = self.room.outputs.take(PICTURES).await;
        let shared = &self.engine.shared;
        let (running, file) = (shared.running.clone(), self.claim.lease.file());
        let partition = Partition {
            run,
            runner: &shared.runner,
            request: request(self.claim, self.claim.chain.beginning(1), &shared.config.parse_limits),
            input,
            cancel: self.cancel.flag.clone(),
            progress: Arc::new(move |now| running.update(file, |progress| *progress = now)),
        };
        let read = partition.read().await.map_err(|failure| match failure {
            Failure::Run(failure) => self.run_failed(failure).map_or(Stop::Lost, Stop::Ended),
            Failure::Node(failure) => self.node_failed(failure),
        })?;
        let Partitioned {
            content,
            warnings,
            pages,
            routes,
        } = read;
        let (content, output) = content.write().await.map_err(|failure| self.node_failed(failure))?;
        let bytes = output.len() as u64;
        self.check_bytes(run, bytes)?;
        self.tell(1, content.elements());
        Ok(Progress {
            stored: Vec::new(),
            fresh: vec![output],
            bytes,
            content,
            notes: Notes {
                warnings,
                pages,
                routes,
            },
        })
    }

    /// Ends a file whose outputs are too large.
    fn check_bytes(&self, run: &ChainRun<'_>, bytes: u64) -> Result<(), Stop> {
        let most = run.models.config().max_output_bytes;
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "the outputs have more than {most} bytes: {}",
            Code::OutputTooLarge.hint()
        );
        Err(self.node_failed(NodeFailure::new(Code::OutputTooLarge, message)))
    }

    /// Notes how far the file is.
    fn tell(&self, nodes_done: usize, elements: u64) {
        let running = &self.engine.shared.running;
        running.update(self.claim.lease.file(), |progress| {
            progress.nodes_done = u32::try_from(nodes_done).unwrap_or(u32::MAX);
            progress.elements = elements;
        });
    }

    /// Runs one node.
    async fn step(&self, run: &ChainRun<'_>, index: usize, progress: Progress) -> Result<Progress, Stop> {
        let Progress {
            stored,
            mut fresh,
            bytes,
            content,
            mut notes,
        } = progress;
        let next = run.step(index, content, &mut notes.warnings).await;
        let next = next.map_err(|failure| self.node_failed(failure))?;
        let (content, output) = next.write().await.map_err(|failure| self.node_failed(failure))?;
        let bytes = bytes + output.len() as u64;
        self.check_bytes(run, bytes)?;
        fresh.push(output);
        self.tell(index + 1, content.elements());
        Ok(Progress {
            stored,
            fresh,
            bytes,
            content,
            notes,
        })
    }

    /// Makes all outputs so far durable, and that they are there.
    async fn checkpoint(&self, progress: &mut Progress, hash: Option<&str>) -> Result<(), Stop> {
        self.store_fresh(progress).await?;
        let state = serde_json::to_value(&progress.notes)
            .map_err(|error| self.node_failed(NodeFailure::new(Code::Internal, error)))?;
        let checkpoint = Checkpoint {
            outputs: progress.stored.clone(),
            content_hash: hash.map(str::to_owned),
            state,
        };
        let saved = self.engine.store().save_checkpoint(self.claim.lease, checkpoint).await;
        saved.map_err(|error| self.store_failed(error))
    }

    async fn store_fresh(&self, progress: &mut Progress) -> Result<(), Stop> {
        let fresh = std::mem::take(&mut progress.fresh);
        let stored = self.store(progress.stored.len(), fresh).await;
        progress
            .stored
            .extend(stored.map_err(|error| self.store_failed(error))?);
        Ok(())
    }

    /// Stores outputs, the first of them that of the node at a position.
    async fn store(&self, first: usize, outputs: Vec<Bytes>) -> docmill_store::Result<Vec<(String, u64)>> {
        let claim = self.claim;
        let (file, token) = (claim.lease.file(), claim.lease.token());
        let puts = outputs.into_iter().enumerate().map(|(place, output)| async move {
            let index = u32::try_from(first + place).unwrap_or(u32::MAX);
            let key = output_key(claim.workspace, claim.job, file, token, index);
            let size = output.len() as u64;
            self.engine.blobs().put(&key, output).await?;
            docmill_store::Result::Ok((key, size))
        });
        try_join_all(puts).await
    }

    /// Runs one node. As that may wait for a model, what the nodes before it yielded is stored meanwhile.
    async fn step_while_storing(
        &self,
        run: &ChainRun<'_>,
        index: usize,
        mut progress: Progress,
    ) -> Result<Progress, Stop> {
        let fresh = std::mem::take(&mut progress.fresh);
        let first = progress.stored.len();
        let (next, stored) = tokio::join!(self.step(run, index, progress), self.store(first, fresh));
        match (next, stored) {
            (Ok(mut next), Ok(stored)) => {
                next.stored.extend(stored);
                Ok(next)
            }
            (Ok(_), Err(error)) => Err(self.store_failed(error)),
            (Err(stop), stored) => {
                // No row will ever name them. What is left behind goes with other orphans.
                for (key, _) in stored.into_iter().flatten() {
                    let _ = self.engine.blobs().delete(&key).await;
                }
                Err(stop)
            }
        }
    }

    /// Stores or delivers what came out.
    async fn end(&self, mut progress: Progress, content_hash: Option<String>) -> Result<FileOutcome, Stop> {
        let mut outputs = Vec::new();
        let elements = progress.content.elements();
        if self.claim.destinations.is_empty() {
            self.store_fresh(&mut progress).await?;
            let nodes = self.claim.chain.nodes().iter().zip(0u32..).zip(progress.stored);
            outputs.extend(nodes.map(|((node, index), (key, size))| (node.id, index, key, size)));
        } else {
            let written = progress.content.write().await;
            let (_, last) = written.map_err(|failure| self.node_failed(failure))?;
            if let Err((destination, error)) = self.room.delivery.put(self.engine, self.claim, last).await {
                return Ok(self.connector_failed(destination, error));
            }
        }
        Ok(FileOutcome::Succeeded {
            outputs,
            warnings: progress.notes.warnings,
            elements,
            pages: progress.notes.pages,
            routes: progress.notes.routes,
            content_hash,
        })
    }

    fn node_failed(&self, failure: NodeFailure) -> Stop {
        match failure {
            NodeFailure::Store(error) => self.store_failed(error),
            failure => self
                .run_failed(RunFailure::from(failure))
                .map_or(Stop::Lost, Stop::Ended),
        }
    }

    fn store_failed(&self, error: StoreError) -> Stop {
        match error {
            StoreError::LeaseLost => Stop::Lost,
            error => Stop::Ended(self.storage_failed(&error)),
        }
    }
}
