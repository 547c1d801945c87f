//! Lists the sources of one run.

use std::time::Duration;

use docmill_connectors::{ConnectorError, ErrorKind};
use docmill_model::connector::SourceObject;
use docmill_model::ids::{ConnectorId, FileId};
use docmill_store::{ListedPage, ListingClaim, StoreError};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::Instant;

use crate::clock::now;
use crate::engine::Engine;

/// Objects of a page. The first page is small, so that work starts while the rest is listed.
const PAGE: usize = 200;
const FIRST_PAGE: usize = 16;

/// Time after which a page is recorded although it is not full.
const PAGE_TIME: Duration = Duration::from_millis(500);

/// Time without an object after which a source is taken for dead.
const SILENCE: Duration = Duration::from_secs(300);

/// Files of a run that may wait for each slot before its listing pauses, and the least for all.
const WAITING_PER_SLOT: u64 = 16;
const LEAST_WAITING: u64 = 32;

/// Times between two looks whether enough waiting files have been worked on.
const LOOK_FIRST: Duration = Duration::from_millis(25);
const LOOK_LAST: Duration = Duration::from_millis(200);

/// Longest locator, in bytes: more than any storage has.
const LONGEST_LOCATOR: usize = 16_384;

/// Why a listing ended before its end.
pub(super) enum End {
    /// It is not this process's any more.
    Lost,
    /// It may go better later.
    Broken(String),
    /// It will never go better.
    Failed(String),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost => Self::Lost,
            error => Self::Broken(format!("the listing could not be recorded: {error}")),
        }
    }
}

impl From<ConnectorError> for End {
    fn from(error: ConnectorError) -> Self {
        if error.retryable() {
            Self::Broken(error.message)
        } else {
            Self::Failed(error.message)
        }
    }
}

pub(super) struct Lister<'a> {
    engine: &'a Engine,
    claim: &'a ListingClaim,
    /// Objects listed under this claim.
    listed: u64,
    /// Objects the run had before.
    before: u64,
}

impl<'a> Lister<'a> {
    pub(super) fn new(engine: &'a Engine, claim: &'a ListingClaim) -> Self {
        Self {
            engine,
            claim,
            listed: 0,
            before: 0,
        }
    }

    /// Whether anything was recorded.
    pub(super) fn came_further(&self) -> bool {
        self.listed > 0
    }

    /// Objects listed.
    pub(super) fn listed(&self) -> u64 {
        self.listed
    }

    /// Lists what is left of the run's sources.
    pub(super) async fn run(&mut self) -> Result<(), End> {
        self.before = self.recorded().await?;
        let (first, after) = self.claim.position.clone();
        let mut after = after;
        for (index, source) in (0u32..).zip(&self.claim.sources).skip(first as usize) {
            self.list(index, *source, after.take()).await?;
        }
        Ok(())
    }

    async fn list(&mut self, source_index: u32, id: ConnectorId, after: Option<String>) -> Result<(), End> {
        let shared = &self.engine.shared;
        let source = shared
            .connections
            .source(self.engine.store(), self.claim.workspace, id)
            .await?;
        let mut objects = source.list(after);
        loop {
            let most = if self.listed == 0 { FIRST_PAGE } else { PAGE };
            let (page, last) = read_page(&mut objects, most).await?;
            let count = page.len() as u64;
            if count > 0 || last {
                let page = ListedPage {
                    source_index,
                    objects: page.into_iter().map(|object| (FileId::new(), object)).collect(),
                    last_of_source: last,
                };
                let waiting = self.engine.store().add_listed(self.claim.lease, page, now()).await?;
                metrics::counter!("docmill_listing_objects_total").increment(count);
                self.listed += count;
                if waiting > 0 {
                    shared.wake.notify_one();
                }
                self.check_limit().await?;
                if !last {
                    self.wait_for_workers(waiting).await?;
                }
            }
            if last {
                return Ok(());
            }
        }
    }

    /// Waits until few enough of the run's files wait for a worker.
    async fn wait_for_workers(&self, mut waiting: u64) -> Result<(), End> {
        let window = (self.engine.slots() as u64 * WAITING_PER_SLOT).max(LEAST_WAITING);
        let mut pause = LOOK_FIRST;
        while waiting >= window {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LAST);
            waiting = self.engine.store().backlog(self.claim.lease).await?;
        }
        Ok(())
    }

    /// Bounds a source that never ends.
    async fn check_limit(&mut self) -> Result<(), End> {
        let Some(limit) = self.engine.shared.config.max_files_per_run else {
            return Ok(());
        };
        if self.before.saturating_add(self.listed) <= limit {
            return Ok(());
        }
        // A source that can't start in the middle lists again what the run has already.
        if self.listed <= limit && self.recorded().await? <= limit {
            return Ok(());
        }
        Err(End::Failed(format!(
            "the sources hold more than {limit} files: list less of them, or raise `limits.max_files_per_run`"
        )))
    }

    /// Objects the run has taken notice of.
    async fn recorded(&self) -> Result<u64, End> {
        let (workspace, job) = (self.claim.workspace, self.claim.lease.job());
        let job = self.engine.store().job(workspace, job).await?.ok_or(End::Lost)?;
        Ok(job.files_total.saturating_add(job.files_unchanged))
    }
}

/// The next objects, at most `most`, and whether there are no more. A source that is slow gives small pages.
async fn read_page(
    objects: &mut BoxStream<'_, docmill_connectors::Result<SourceObject>>,
    most: usize,
) -> Result<(Vec<SourceObject>, bool), End> {
    let mut page = Vec::new();
    let mut until = Instant::now() + SILENCE;
    while page.len() < most {
        let next = match tokio::time::timeout_at(until, objects.next()).await {
            Ok(next) => next,
            Err(_) if page.is_empty() => {
                let error = format!("the source sent nothing for {} seconds", SILENCE.as_secs());
                return Err(ConnectorError::new(ErrorKind::Unavailable, error).into());
            }
            Err(_) => break,
        };
        match next {
            None => return Ok((page, true)),
            Some(Ok(object)) if object.locator.len() > LONGEST_LOCATOR => {
                return Err(End::Failed(format!(
                    "the source names an object in {} bytes, more than {LONGEST_LOCATOR}",
                    object.locator.len()
                )));
            }
            Some(Ok(object)) => {
                if page.is_empty() {
                    until = Instant::now() + PAGE_TIME;
                }
                page.push(object);
            }
            // What came before it is not lost: it is recorded first, and the error comes again.
            Some(Err(error)) if page.is_empty() => return Err(error.into()),
            Some(Err(error)) => return Ok(broken_page(page, error, objects)),
        }
    }
    Ok((page, false))
}

/// A page that was cut short by an error, which the stream gives next.
fn broken_page(
    page: Vec<SourceObject>,
    error: ConnectorError,
    objects: &mut BoxStream<'_, docmill_connectors::Result<SourceObject>>,
) -> (Vec<SourceObject>, bool) {
    *objects = futures_util::stream::once(async { Err(error) }).boxed();
    (page, false)
}
