//! The file: versions, other processes, damage.

use std::path::Path;

use docmill_model::time::SECOND;
use futures_util::future::join_all;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::FIVE;
use crate::sqlite::SqliteStore;
use crate::{Store, StoreError};

/// Writes to a database as another program would.
async fn run(path: &Path, sql: &'static str) {
    let mut other = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
    other.close().await.unwrap();
}

async fn refusal(path: &Path) -> String {
    match SqliteStore::open(path, FIVE).await {
        Err(StoreError::Open(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docmill.db");
    SqliteStore::open(&path, FIVE).await.unwrap().close().await;
    SqliteStore::open(&path, FIVE).await.unwrap().close().await;
    run(
        &path,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', TRUE, x'00', 1)",
    )
    .await;
    let message = refusal(&path).await;
    assert!(
        message.contains("made by a newer docmill") && message.contains("version 99"),
        "{message}"
    );
    assert!(message.contains("docmill.db"), "{message}");
}

#[tokio::test]
async fn a_database_of_an_altered_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docmill.db");
    SqliteStore::open(&path, FIVE).await.unwrap().close().await;
    run(&path, "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1").await;
    let message = refusal(&path).await;
    assert!(message.contains("altered docmill"), "{message}");
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    let text = "these are notes, not a database ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let message = refusal(&path).await;
    assert!(message.contains("not a database"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let nowhere = directory.path().join("no/such/directory/docmill.db");
    assert!(refusal(&nowhere).await.contains("no/such/directory"));
}

#[tokio::test]
async fn processes_that_create_one_database_at_the_same_time_all_get_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docmill.db");
    let stores = join_all((0..4).map(|_| SqliteStore::open(&path, FIVE))).await;
    for (n, store) in stores.into_iter().enumerate() {
        store.unwrap().create_account(&n.to_string(), SECOND).await.unwrap();
    }
    assert_eq!(
        SqliteStore::open(&path, FIVE)
            .await
            .unwrap()
            .accounts()
            .await
            .unwrap()
            .len(),
        4
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_can_write_while_the_server_works() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docmill.db");
    let server = SqliteStore::open(&path, FIVE).await.unwrap();
    let visitor = SqliteStore::open(&path, FIVE).await.unwrap();
    let work = async |store: &SqliteStore, name: &str| {
        for n in 0..40 {
            store.create_account(&format!("{name}{n}"), SECOND).await.unwrap();
        }
    };
    tokio::join!(work(&server, "server"), work(&visitor, "visitor"), work(&server, "api"));
    visitor.close().await;
    server.create_account("after", SECOND).await.unwrap();
    assert_eq!(server.accounts().await.unwrap().len(), 121);
}

#[tokio::test]
async fn a_file_whose_job_cannot_be_read_fails_and_lets_others_pass() {
    use crate::suite::World;
    let backend = super::Directory::new();
    let path = backend.directory.path().join("docmill.db");
    let w = World::new(backend).await;
    let (bad, good) = (w.create(1).await, w.create(1).await);
    run(&path, "UPDATE jobs SET chain = '{' WHERE seq = 1").await;
    assert!(w.claim(1).await.is_empty());
    assert_eq!(w.claim_one().await.job, good);
    let events = w.events(bad).await;
    assert_eq!(events.last(), Some(&docmill_model::job::EventType::JobFailed));
}
