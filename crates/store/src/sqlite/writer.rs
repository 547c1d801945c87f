//! One connection that writes, and the grouping of operations into commits.
//!
//! With `synchronous=FULL` a commit costs a flush to disk, whatever it holds. Operations that arrive
//! while one commit is under way are therefore committed together by the next, each in a savepoint of
//! its own so that one failing leaves the others alone. No caller hears back before the commit.
//!
//! After a failed group (disk full, lost permission, locked by somebody else) the connection is thrown
//! away and a new one is opened for the next group: SQLite may or may not have rolled back by itself, and
//! a new connection needs no guess about that.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::{Result, StoreError};

/// Operations in one commit at most: bounds how long the first of them waits.
const MAX_GROUP: usize = 128;

/// Operations that may wait for the writer.
const QUEUE: usize = 1024;

/// How long the writer waits for a connection to close before it leaves it behind.
const CLOSE: Duration = Duration::from_secs(5);

/// An operation, and the caller who waits for it.
trait Operation: Send {
    /// Runs it; whether it succeeded.
    fn run<'c>(&'c mut self, db: &'c mut SqliteConnection) -> BoxFuture<'c, bool>;

    /// Tells the caller what came of it: its own result, or why its group was not committed.
    fn answer(self: Box<Self>, group: std::result::Result<(), &str>);
}

struct Pending<T, F> {
    work: Option<F>,
    result: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

impl<T, F> Operation for Pending<T, F>
where
    T: Send,
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T>> + Send,
{
    fn run<'c>(&'c mut self, db: &'c mut SqliteConnection) -> BoxFuture<'c, bool> {
        Box::pin(async move {
            let Some(work) = self.work.take() else { return false };
            let result = work(db).await;
            let succeeded = result.is_ok();
            self.result = Some(result);
            succeeded
        })
    }

    fn answer(self: Box<Self>, group: std::result::Result<(), &str>) {
        let answer = match (group, self.result) {
            (Ok(()), Some(result)) => result,
            (Err(_), Some(Err(error @ StoreError::Unavailable(_)))) => Err(error),
            // What the operation saw may be the work of others in its group, so even its own refusal
            // (a name taken, a lease lost) no longer holds.
            (Err(reason), _) => Err(StoreError::CommitFailed(reason.to_owned())),
            (Ok(()), None) => Err(StoreError::CommitFailed("the operation was not run".into())),
        };
        // The caller may have gone away; the work stands all the same.
        let _ = self.caller.send(answer);
    }
}

pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Operation>>>>,
    sender: mpsc::WeakSender<Box<dyn Operation>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Starts a writer with its first connection; `options` open the following ones.
    pub(super) fn start(options: SqliteConnectOptions, connection: SqliteConnection) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let weak = sender.downgrade();
        let database = Database {
            options,
            connection: Some(connection),
        };
        let task = tokio::spawn(run(database, receiver));
        Self {
            queue: Mutex::new(Some(sender)),
            sender: weak,
            task: Mutex::new(Some(task)),
        }
    }

    /// Runs `operation` in a transaction and returns its result once that is durable. An `Err` rolls
    /// back what the operation did.
    ///
    /// Once queued, the operation runs even when the caller stops waiting.
    pub(super) async fn write<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let operation = Box::new(Pending {
            work: Some(operation),
            result: None,
            caller,
        });
        let sender = self.sender.upgrade().ok_or(StoreError::Closed)?;
        sender.send(operation).await.map_err(|_| StoreError::Closed)?;
        drop(sender);
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes no more operations and waits for those under way.
    pub(super) async fn close(&self) {
        self.queue.lock().await.take();
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

async fn run(mut database: Database, mut queue: mpsc::Receiver<Box<dyn Operation>>) {
    while let Some(first) = queue.recv().await {
        let mut group = vec![first];
        while group.len() < MAX_GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
        metrics::histogram!("docmill_store_commit_group_size").record(group.len() as f64);
        let outcome = database.commit(&mut group).await;
        if let Err(reason) = &outcome {
            metrics::counter!("docmill_store_commit_failures_total").increment(1);
            tracing::error!(reason, operations = group.len(), "the store cannot commit");
        }
        for operation in group {
            operation.answer(outcome.as_ref().map(|_| ()).map_err(String::as_str));
        }
    }
    if let Some(connection) = database.connection.take() {
        close(connection).await;
    }
}

/// The writing connection, opened again when it was given up.
struct Database {
    options: SqliteConnectOptions,
    connection: Option<SqliteConnection>,
}

impl Database {
    /// Runs every operation of a group and commits them; why not, otherwise.
    async fn commit(&mut self, group: &mut [Box<dyn Operation>]) -> std::result::Result<(), String> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(|error| error.to_string())?,
        };
        // A panic must not end the task that every later write depends on.
        let outcome = AssertUnwindSafe(commit_group(&mut connection, group))
            .catch_unwind()
            .await;
        let reason = match outcome {
            Ok(Ok(())) => {
                self.connection = Some(connection);
                return Ok(());
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "an operation panicked".to_owned(),
        };
        // Closing rolls back whatever is still open.
        close(connection).await;
        Err(reason)
    }
}

async fn close(connection: SqliteConnection) {
    match tokio::time::timeout(CLOSE, connection.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the database connection did not close properly"),
        Err(_) => tracing::warn!("the database connection does not close; it is left behind"),
    }
}

/// One transaction with a savepoint around each operation.
///
/// The transaction is steered by plain statements, two in one go where possible: each costs a trip to
/// SQLite's thread. Undoing a savepoint keeps it open, for the next operation. If SQLite rolled the whole
/// transaction back (it may when the disk is full), no savepoint is left and the next step fails, and with
/// it the group.
async fn commit_group(
    connection: &mut SqliteConnection,
    group: &mut [Box<dyn Operation>],
) -> std::result::Result<(), sqlx::Error> {
    let mut before = "BEGIN IMMEDIATE; SAVEPOINT operation";
    let mut at_end = "COMMIT";
    for operation in group {
        sqlx::query(before).execute(&mut *connection).await?;
        (before, at_end) = if operation.run(connection).await {
            ("RELEASE operation; SAVEPOINT operation", "RELEASE operation; COMMIT")
        } else {
            (
                "ROLLBACK TO operation",
                "ROLLBACK TO operation; RELEASE operation; COMMIT",
            )
        };
    }
    sqlx::query(at_end).execute(connection).await?;
    Ok(())
}
