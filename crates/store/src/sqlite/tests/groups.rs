//! The writer: grouping, and what happens when a group can't be committed.

use std::sync::Arc;
use std::time::Duration;

use docmill_model::time::SECOND;
use futures_util::future::join_all;
use sqlx::SqliteConnection;

use super::FIVE;
use crate::sqlite::SqliteStore;
use crate::{Result, Store, StoreError};

async fn store() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    (directory, Arc::new(store))
}

/// Runs plain statements as one operation of the writer.
async fn run(store: &SqliteStore, sql: &'static str) -> Result<()> {
    store
        .writer
        .write(move |db| Box::pin(async move { execute(db, sql).await }))
        .await
}

async fn execute(db: &mut SqliteConnection, sql: &'static str) -> Result<()> {
    sqlx::raw_sql(sql).execute(db).await?;
    Ok(())
}

async fn accounts(store: &SqliteStore) -> Vec<String> {
    store
        .accounts()
        .await
        .unwrap()
        .into_iter()
        .map(|account| account.name)
        .collect()
}

/// An operation that keeps the writer busy, so that what follows is grouped.
fn busy(store: &Arc<SqliteStore>) -> tokio::task::JoinHandle<Result<()>> {
    let store = store.clone();
    tokio::spawn(async move {
        let work = store.writer.write(|_| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(())
            })
        });
        work.await
    })
}

#[tokio::test]
async fn operations_under_load_share_commits() {
    let (directory, store) = store().await;
    let log = directory.path().join("docmill.db-wal");
    let commits = || commits_in(&std::fs::read(&log).unwrap());
    let before = commits();
    let names: Vec<_> = (0..100).map(|n| format!("{n}")).collect();
    let waiting = busy(&store);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let created = join_all(names.iter().map(|name| store.create_account(name, SECOND))).await;
    waiting.await.unwrap().unwrap();
    assert!(created.iter().all(Result::is_ok));
    let commits = commits() - before;
    assert!((1..=3).contains(&commits), "{commits} commits for 100 operations");
    assert_eq!(accounts(&store).await.len(), 100);
}

/// Commits in a write-ahead log: frames whose header has the size of the database after the commit
/// (<https://www.sqlite.org/fileformat.html#walformat>). Right as long as the log has not started over.
fn commits_in(log: &[u8]) -> usize {
    let word = |bytes: &[u8], at: usize| bytes.get(at..at + 4).map(|b| u32::from_be_bytes(b.try_into().unwrap()));
    let page = word(log, 8).unwrap() as usize;
    let frames = log[32..].chunks(24 + page);
    frames
        .filter(|frame| word(frame, 4).is_some_and(|size| size > 0))
        .count()
}

#[tokio::test]
async fn a_failing_operation_leaves_its_group_alone() {
    let (_directory, store) = store().await;
    let waiting = busy(&store);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (a, half, again, missing, b) = tokio::join!(
        store.create_account("a", SECOND),
        run(
            &store,
            "INSERT INTO accounts (id, name, created_at) VALUES ('1', 'half', 1); SELECT nonsense;"
        ),
        store.create_account("a", SECOND),
        run(
            &store,
            "INSERT INTO workspaces (id, account_id, name, created_at) VALUES ('1', 'nobody', 'w', 1)"
        ),
        store.create_account("b", SECOND),
    );
    waiting.await.unwrap().unwrap();
    assert!(a.is_ok() && b.is_ok());
    assert!(matches!(half, Err(StoreError::Unavailable(_))));
    assert!(matches!(again, Err(StoreError::NameTaken(_))));
    assert!(matches!(missing, Err(StoreError::Unavailable(_))));
    assert_eq!(accounts(&store).await, ["a", "b"], "nothing of what failed");
}

#[tokio::test]
async fn a_failed_commit_fails_its_whole_group_and_no_other() {
    let (_directory, store) = store().await;
    let waiting = busy(&store);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (first, broken, taken) = tokio::join!(
        store.create_account("a", SECOND),
        // A broken reference that is only noticed at the commit.
        run(
            &store,
            "PRAGMA defer_foreign_keys = ON;
             INSERT INTO workspaces (id, account_id, name, created_at) VALUES ('1', 'nobody', 'w', 1)"
        ),
        store.create_account("a", SECOND),
    );
    waiting.await.unwrap().unwrap();
    for result in [first.map(drop), broken, taken.map(drop)] {
        assert!(matches!(result, Err(StoreError::CommitFailed(_))), "{result:?}");
    }
    assert!(accounts(&store).await.is_empty());
    store.create_account("a", SECOND).await.unwrap();
    assert_eq!(accounts(&store).await, ["a"]);
}

#[tokio::test]
async fn a_panic_fails_its_group_and_no_other() {
    let (_directory, store) = store().await;
    let panicking = store.writer.write::<(), _>(|db| {
        Box::pin(async move {
            execute(db, "INSERT INTO accounts (id, name, created_at) VALUES ('1', 'a', 1)").await?;
            panic!("on purpose")
        })
    });
    assert!(matches!(panicking.await, Err(StoreError::CommitFailed(_))));
    assert!(accounts(&store).await.is_empty());
    store.create_account("a", SECOND).await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_sqlite_gave_up_fails_its_group_and_no_other() {
    let (_directory, store) = store().await;
    let waiting = busy(&store);
    tokio::time::sleep(Duration::from_millis(50)).await;
    // SQLite may roll everything back by itself when it can't write: the savepoints are gone then too.
    let (first, gone, last) = tokio::join!(
        store.create_account("a", SECOND),
        run(&store, "ROLLBACK; SELECT nonsense"),
        store.create_account("b", SECOND),
    );
    waiting.await.unwrap().unwrap();
    assert!(first.is_err() && gone.is_err() && last.is_err());
    assert!(accounts(&store).await.is_empty());
    store.create_account("a", SECOND).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_an_error_until_there_is_space() {
    let (_directory, store) = store().await;
    run(&store, "CREATE TABLE filler (bytes BLOB)").await.unwrap();
    run(&store, "PRAGMA max_page_count = 60").await.unwrap();
    let mut written = 0;
    let error = loop {
        match run(&store, "INSERT INTO filler VALUES (zeroblob(20000))").await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the disk never fills");
    };
    assert!(error_text(&error).contains("full"), "{}", error_text(&error));
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM filler")
        .fetch_one(&store.readers)
        .await
        .unwrap();
    assert_eq!(rows, written, "what was acknowledged is there, and no more");
    // The bound is the connection's, so it holds only as long as the writer keeps its connection.
    let _ = run(&store, "PRAGMA max_page_count = 1000000").await;
    run(&store, "INSERT INTO filler VALUES (zeroblob(20000))")
        .await
        .unwrap();
    store.check_writable().await.unwrap();
    let health: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&store.readers)
        .await
        .unwrap();
    assert_eq!(health, "ok");
}

fn error_text(error: &StoreError) -> String {
    use std::error::Error;
    format!(
        "{error}: {}",
        error.source().map(ToString::to_string).unwrap_or_default()
    )
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_work_and_the_writer() {
    let (_directory, store) = store().await;
    let waiting = busy(&store);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let gone = tokio::time::timeout(Duration::from_millis(20), store.create_account("a", SECOND)).await;
    assert!(gone.is_err(), "the caller left before the answer");
    waiting.await.unwrap().unwrap();
    store.create_account("b", SECOND).await.unwrap();
    assert_eq!(accounts(&store).await, ["a", "b"]);
}

#[tokio::test]
async fn closing_waits_for_what_was_taken_and_refuses_the_rest() {
    let (_directory, store) = store().await;
    let waiting = busy(&store);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let create = {
        let store = store.clone();
        tokio::spawn(async move { store.create_account("a", SECOND).await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    store.close().await;
    waiting.await.unwrap().unwrap();
    create.await.unwrap().unwrap();
    assert!(matches!(
        store.create_account("b", SECOND).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.accounts().await, Err(StoreError::Closed)));
    store.close().await;
}
