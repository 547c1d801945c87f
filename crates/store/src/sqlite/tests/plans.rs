//! No hot statement reads a whole table of jobs or files.

use sqlx::{AssertSqlSafe, Row};

use super::FIVE;
use crate::sqlite::claims::{ABANDONED, CLAIM, CLAIMABLE};
use crate::sqlite::deletion::EXPIRED;
use crate::sqlite::jobs::{LIST, LIST_IN_STATUS, LIST_OF_WORKFLOW, ONE};
use crate::sqlite::keys::{PRINCIPAL_BY_HASH, PRINCIPAL_BY_KEY};
use crate::sqlite::lifecycle::NEXT_WAITING;
use crate::sqlite::{SqliteStore, upkeep};

/// The steps of a statement's plan that read a table from end to end, and all its steps.
async fn scans(store: &SqliteStore, sql: &str) -> (Vec<String>, Vec<String>) {
    let explain = format!("EXPLAIN QUERY PLAN {sql}");
    let rows = sqlx::query(AssertSqlSafe(explain))
        .fetch_all(&store.readers)
        .await
        .unwrap();
    let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
    // `SCAN t USING INDEX jobs_running` reads a partial index: only the rows that are wanted.
    let partial = [
        "jobs_waiting",
        "jobs_running",
        "job_files_ready",
        "job_files_running",
        "jobs_ended",
    ];
    let whole =
        |step: &str| step.starts_with("SCAN") && step != "SCAN CONSTANT ROW" && !step.starts_with("SCAN (subquery");
    let scan = |step: &&String| whole(step) && !partial.iter().any(|index| step.contains(index));
    (steps.iter().filter(scan).cloned().collect(), steps.clone())
}

#[tokio::test]
async fn hot_statements_use_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    let lists = [ONE, LIST, LIST_OF_WORKFLOW, LIST_IN_STATUS];
    let lists = lists.iter().flat_map(|list| [list.jobs, list.files, list.outputs]);
    let others = [
        CLAIM,
        ABANDONED,
        NEXT_WAITING,
        PRINCIPAL_BY_HASH,
        PRINCIPAL_BY_KEY,
        EXPIRED,
        upkeep::REFERRED,
        upkeep::COUNTS,
    ];
    for sql in lists.chain(others) {
        let (scans, steps) = scans(&store, sql).await;
        assert!(!steps.is_empty());
        assert!(scans.is_empty(), "{sql}\n{steps:#?}");
    }
    // Claiming looks at each workspace, of which there are few, but never at all files.
    let (scans, steps) = scans(&store, CLAIMABLE).await;
    assert!(scans.iter().all(|step| step.starts_with("SCAN w")), "{steps:#?}");
    assert!(steps.iter().any(|step| step.contains("job_files_ready")), "{steps:#?}");
}

#[tokio::test]
async fn a_scan_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("docmill.db"), FIVE)
        .await
        .unwrap();
    let (scans, _) = scans(&store, "SELECT * FROM job_files WHERE name = 'x'").await;
    assert_eq!(scans.len(), 1);
}
