//! Opening the file, bringing its schema up to date, closing it.

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqliteConnection, SqlitePool};

use super::writer::Writer;
use crate::{Result, StoreError};

/// Connections that read.
const READERS: u32 = 4;

/// How long to wait for another process (the command line) that is writing.
const BUSY: Duration = Duration::from_secs(10);

/// Tries to open: two processes that create one file at the same time may get in each other's way.
const TRIES: u32 = 5;

/// Pause before the first further try; each later one is longer by as much.
const PAUSE: Duration = Duration::from_millis(100);

/// Size the log is cut back to after a burst made it larger.
const LOG_BYTES: &str = "67108864";

/// [`crate::Store`] over one SQLite file. Only one server process may work on the file; short visits of the
/// command line (`docmill keys ...`) are safe at any time.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) writer: Writer,
    pub(super) readers: SqlitePool,
    pub(super) slots: Slots,
}

/// How many jobs of one account run at once, by kind; 0 is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Jobs over uploaded files.
    pub local_jobs: u32,
    /// Runs of stored workflows.
    pub workflow_jobs: u32,
}

impl SqliteStore {
    /// Opens or creates the database and brings its schema up to date.
    ///
    /// `slots` bound how many jobs of one account run at once.
    pub async fn open(path: &Path, slots: Slots) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .pragma("journal_size_limit", LOG_BYTES)
            .statement_cache_capacity(256);
        let writer = prepare(path, &options).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.clone().read_only(true))
            .await
            .map_err(|error| cannot_open(path, &error))?;
        // The file exists by now; should it vanish, an empty one in its place would hide the loss.
        let options = options.create_if_missing(false);
        Ok(Self {
            writer: Writer::start(options, writer),
            readers,
            slots,
        })
    }

    /// Waits for operations under way and closes the file.
    pub async fn close(&self) {
        // The writer goes last: the last connection to close empties the log into the file, for which it
        // must be able to write.
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// A connection to a file whose schema is up to date.
async fn prepare(path: &Path, options: &SqliteConnectOptions) -> Result<SqliteConnection> {
    let mut tries = 1;
    loop {
        let error = match migrate(options).await {
            Ok(connection) => return Ok(connection),
            Err(MigrateError::VersionMissing(version)) => return Err(newer(path, version)),
            Err(MigrateError::VersionMismatch(version)) => return Err(altered(path, version)),
            Err(error) => cannot_open(path, &error),
        };
        if tries == TRIES {
            return Err(error);
        }
        tokio::time::sleep(PAUSE * tries).await;
        tries += 1;
    }
}

async fn migrate(options: &SqliteConnectOptions) -> std::result::Result<SqliteConnection, MigrateError> {
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options.clone())
        .await?;
    migrator(&VERSIONS).run(&pool).await?;
    Ok(pool.acquire().await?.detach())
}

fn cannot_open(path: &Path, error: &dyn std::error::Error) -> StoreError {
    StoreError::Open(format!("cannot open {}: {error}", path.display()))
}

fn newer(path: &Path, version: i64) -> StoreError {
    StoreError::Open(format!(
        "{} was made by a newer docmill: it has version {version} of the schema, and this docmill knows up to {}. \
         Start that docmill, or restore a backup from before the upgrade",
        path.display(),
        VERSIONS.len()
    ))
}

fn altered(path: &Path, version: i64) -> StoreError {
    StoreError::Open(format!(
        "{} was made by an unreleased or altered docmill: its version {version} of the schema differs from this \
         docmill's. Start the docmill that made it, or restore a backup",
        path.display()
    ))
}

/// The schema's versions, from 1: what each is for, and its statements. A released one never changes.
pub(super) const VERSIONS: [(&str, &str); 4] = [
    ("initial", include_str!("../../migrations/sqlite/0001_initial.sql")),
    ("workflows", include_str!("../../migrations/sqlite/0002_workflows.sql")),
    ("channels", include_str!("../../migrations/sqlite/0003_channels.sql")),
    ("paid", include_str!("../../migrations/sqlite/0004_paid.sql")),
];

pub(super) fn migrator(versions: &[(&'static str, &'static str)]) -> Migrator {
    let migrations = (1..)
        .zip(versions.iter().copied())
        .map(|(version, (description, sql))| {
            Migration::new(
                version,
                description.into(),
                MigrationType::Simple,
                AssertSqlSafe(sql).into_sql_str(),
                false,
            )
        })
        .collect();
    Migrator::with_migrations(migrations)
}
