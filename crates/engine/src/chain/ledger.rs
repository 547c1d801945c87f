//! What was paid for: kept answers and costs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use docmill_model::ids::{FileId, JobId, WorkspaceId};
use docmill_store::{CallRecord, Cost, Result, Store};

use crate::clock::now;

/// Where answers are kept and costs are added up.
#[async_trait]
pub(crate) trait Ledger: Send + Sync {
    /// The answers there are to some of these keys.
    async fn answers(&self, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>>;

    /// Keeps answers of a node's calls and adds what they cost; `used` were there already. On return both are
    /// durable, as far as they ever are.
    async fn record(&self, node: u32, cost: Cost, answers: Vec<(String, Vec<u8>)>, used: Vec<String>) -> Result<()>;

    /// Forgets answers that are of no use.
    async fn forget(&self, keys: Vec<String>) -> Result<()>;

    /// What was spent this month, in millionths.
    async fn spent(&self) -> Result<i64>;
}

/// The calendar month of an instant (UTC).
fn month() -> String {
    DateTime::<Utc>::from_timestamp_micros(now())
        .unwrap_or_default()
        .format("%Y-%m")
        .to_string()
}

/// In the store, for a file of a job.
pub(crate) struct StoreLedger<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) workspace: WorkspaceId,
    pub(crate) job: JobId,
    pub(crate) file: FileId,
    /// Bytes of answers the workspace keeps.
    pub(crate) cache_bytes: u64,
}

#[async_trait]
impl Ledger for StoreLedger<'_> {
    async fn answers(&self, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
        if self.cache_bytes == 0 {
            return Ok(Vec::new());
        }
        self.store.answers(self.workspace, keys).await
    }

    async fn record(&self, node: u32, cost: Cost, answers: Vec<(String, Vec<u8>)>, used: Vec<String>) -> Result<()> {
        let record = CallRecord {
            workspace: self.workspace,
            job: self.job,
            file: self.file,
            node,
            cost,
            month: month(),
            answers,
            used,
        };
        self.store.record_calls(record, self.cache_bytes, now()).await
    }

    async fn forget(&self, keys: Vec<String>) -> Result<()> {
        self.store.forget_answers(self.workspace, keys).await
    }

    async fn spent(&self) -> Result<i64> {
        self.store.spent(self.workspace, &month()).await
    }
}

/// In memory, as long as the program runs.
#[derive(Debug, Default)]
pub(crate) struct MemoryLedger {
    state: Mutex<Memory>,
    /// Bytes of answers kept.
    most: u64,
}

#[derive(Debug, Default)]
struct Memory {
    answers: HashMap<String, Vec<u8>>,
    bytes: u64,
    costs: Vec<(u32, Cost)>,
    spent: i64,
}

impl MemoryLedger {
    pub(crate) fn new(most: u64) -> Self {
        Self {
            state: Mutex::default(),
            most,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        // The state is valid between any two statements that touch it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the nodes cost so far, by their positions.
    pub(crate) fn costs(&self) -> Vec<(u32, Cost)> {
        self.lock().costs.clone()
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn answers(&self, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
        let memory = self.lock();
        let found = keys
            .iter()
            .filter_map(|key| Some((key.clone(), memory.answers.get(key)?.clone())));
        Ok(found.collect())
    }

    async fn record(&self, node: u32, cost: Cost, answers: Vec<(String, Vec<u8>)>, _: Vec<String>) -> Result<()> {
        let mut memory = self.lock();
        for (key, answer) in answers {
            let bytes = answer.len() as u64;
            if memory.bytes + bytes <= self.most && memory.answers.insert(key, answer).is_none() {
                memory.bytes += bytes;
            }
        }
        memory.spent += cost.price.unwrap_or(0);
        match memory.costs.iter_mut().find(|(at, _)| *at == node) {
            Some((_, sum)) => add(sum, &cost),
            None => memory.costs.push((node, cost)),
        }
        memory.costs.sort_by_key(|(node, _)| *node);
        Ok(())
    }

    async fn forget(&self, keys: Vec<String>) -> Result<()> {
        let mut memory = self.lock();
        for key in keys {
            if let Some(answer) = memory.answers.remove(&key) {
                memory.bytes = memory.bytes.saturating_sub(answer.len() as u64);
            }
        }
        Ok(())
    }

    async fn spent(&self) -> Result<i64> {
        Ok(self.lock().spent)
    }
}

fn add(sum: &mut Cost, cost: &Cost) {
    sum.calls += cost.calls;
    sum.cached += cost.cached;
    sum.retries += cost.retries;
    sum.tokens_in += cost.tokens_in;
    sum.tokens_out += cost.tokens_out;
    sum.millis += cost.millis;
    sum.price = match (sum.price, cost.price) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
    };
}
