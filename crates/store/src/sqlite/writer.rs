//! One connection that writes, and the grouping of operations into commits.
//!
//! With `synchronous=FULL` a commit costs a flush to disk, whatever it holds. Operations that arrive
//! while one commit is under way are therefore committed together by the next, each in a savepoint of
//! its own so that one failing leaves the others alone. No caller hears back before the commit.

use std::fmt;

use futures_util::future::BoxFuture;
use sqlx::{Acquire, Connection, SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::{Result, StoreError};

/// Operations in one commit at most: bounds how long the first of them waits.
const MAX_GROUP: usize = 128;

/// Operations that may wait for the writer.
const QUEUE: usize = 1024;

/// Answers an operation's caller: its own result, or why the commit failed.
type Reply = Box<dyn FnOnce(std::result::Result<(), String>) + Send>;

/// Runs an operation; says whether it succeeded and how to answer its caller.
type Operation = Box<dyn for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, (bool, Reply)> + Send>;

pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Operation>>>,
    sender: mpsc::WeakSender<Operation>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    pub(super) fn start(pool: SqlitePool) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let weak = sender.downgrade();
        let task = tokio::spawn(run(pool, receiver));
        Self {
            queue: Mutex::new(Some(sender)),
            sender: weak,
            task: Mutex::new(Some(task)),
        }
    }

    /// Runs `operation` in a transaction and returns its result once that is durable. An `Err` rolls
    /// back what the operation did.
    pub(super) async fn write<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (tx, rx) = oneshot::channel::<Result<T>>();
        let operation: Operation = Box::new(move |connection| {
            Box::pin(async move {
                let result = operation(connection).await;
                let succeeded = result.is_ok();
                let reply: Reply = Box::new(move |commit| {
                    let answer = match commit {
                        Err(reason) if succeeded => Err(StoreError::CommitFailed(reason)),
                        _ => result,
                    };
                    // The caller may have gone away; the work stands all the same.
                    let _ = tx.send(answer);
                });
                (succeeded, reply)
            })
        });
        let sender = self.sender.upgrade().ok_or(StoreError::Closed)?;
        sender.send(operation).await.map_err(|_| StoreError::Closed)?;
        drop(sender);
        rx.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes no more operations and waits for those under way.
    pub(super) async fn close(&self) {
        self.queue.lock().await.take();
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

async fn run(pool: SqlitePool, mut queue: mpsc::Receiver<Operation>) {
    while let Some(first) = queue.recv().await {
        let mut group = vec![first];
        while group.len() < MAX_GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        metrics_group(group.len());
        let mut replies = Vec::with_capacity(group.len());
        let result = match pool.acquire().await {
            Ok(mut connection) => commit_group(&mut connection, group, &mut replies).await,
            Err(error) => Err(error),
        };
        let result = result.map_err(|error| {
            tracing::error!(%error, "the store cannot commit");
            error.to_string()
        });
        for reply in replies {
            reply(result.clone());
        }
    }
    pool.close().await;
}

/// Runs every operation of a group and commits. On an error, operations that did not get to run are
/// dropped, and their callers see the store as closed for them.
async fn commit_group(
    connection: &mut SqliteConnection,
    group: Vec<Operation>,
    replies: &mut Vec<Reply>,
) -> std::result::Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for operation in group {
        let mut savepoint = transaction.begin().await?;
        let (succeeded, reply) = operation(savepoint.acquire().await?).await;
        replies.push(reply);
        if succeeded {
            savepoint.commit().await?;
        } else {
            savepoint.rollback().await?;
        }
    }
    transaction.commit().await
}

fn metrics_group(size: usize) {
    metrics::histogram!("docmill_store_commit_group_size").record(size as f64);
}
