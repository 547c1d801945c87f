//! Channels: one transaction for a change and what tells of it, what is wiped, and the upgrade.

use docmill_model::channel::ChannelKind;
use docmill_model::job::EventType::JobCompleted;
use docmill_model::job::JobStatus;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, SqlitePool};

use super::{Directory, FIVE};
use crate::sqlite::SqliteStore;
use crate::sqlite::open::{VERSIONS, migrator};
use crate::suite::World;
use crate::suite::told::{LIMITS, code, hash};
use crate::suite::world::{NOW, succeeded};
use crate::{CodeTry, DeliveryOutcome, Store};

/// Another connection to the database of a world.
async fn beside(directory: &std::path::Path) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(directory.join("docmill.db"));
    SqlitePoolOptions::new().connect_with(options).await.unwrap()
}

async fn count(pool: &SqlitePool, what: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {what}");
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn a_change_is_undone_with_its_deliveries() {
    let directory = Directory::new();
    let path = directory.directory.path().to_owned();
    let w = World::new(directory).await;
    w.hook("a.example", &[JobCompleted]).await;
    let job = w.create(1).await;
    let claim = w.claim_one().await;
    let pool = beside(&path).await;
    let forbid = "CREATE TRIGGER forbid BEFORE INSERT ON deliveries BEGIN SELECT RAISE(ABORT, 'no'); END";
    sqlx::query(forbid).execute(&pool).await.unwrap();
    assert!(w.store.finish(claim.lease, succeeded(&claim), NOW).await.is_err());
    assert_eq!(
        (w.status(job).await, w.events(job).await.len()),
        (JobStatus::InProgress, 2)
    );
    sqlx::query("DROP TRIGGER forbid").execute(&pool).await.unwrap();
    w.store.finish(claim.lease, succeeded(&claim), NOW).await.unwrap();
    assert_eq!(
        (w.status(job).await, w.events(job).await.len()),
        (JobStatus::Completed, 3)
    );
    assert_eq!(w.to_send(ChannelKind::Webhook).await.len(), 1);
}

#[tokio::test]
async fn codes_are_wiped_when_they_are_of_no_more_use() {
    let directory = Directory::new();
    let path = directory.directory.path().to_owned();
    let w = World::new(directory).await;
    let pool = beside(&path).await;
    let sealed = async || count(&pool, "deliveries WHERE sealed IS NOT NULL").await;

    let sent = w.unverified("sent@example.org", &[]).await;
    let claim = w.to_send(ChannelKind::Email).await.remove(0);
    w.end(&claim, DeliveryOutcome::Retry { not_before: NOW }).await;
    assert_eq!(sealed().await, 1, "needed for the next attempt");
    let claim = w.to_send(ChannelKind::Email).await.remove(0);
    w.end(&claim, DeliveryOutcome::Delivered).await;
    assert_eq!(sealed().await, 0);

    let used = w.unverified("used@example.org", &[]).await;
    assert_eq!(w.try_code(used, 1, NOW).await, CodeTry::Verified);
    assert_eq!(sealed().await, 0);
    assert_eq!(count(&pool, "channel_codes").await, 1, "only the other channel's");

    w.unverified("deleted@example.org", &[]).await;
    let deleted = w.unverified("gone@example.org", &[]).await;
    assert!(w.store.delete_channel(deleted, NOW).await.unwrap());
    assert_eq!(sealed().await, 1);
    let expiry = NOW + LIMITS.lifetime;
    w.store.expire_codes(expiry).await.unwrap();
    assert_eq!(sealed().await, 0);

    let issued = w.store.issue_code(sent, code(2), LIMITS, expiry).await;
    issued.unwrap().unwrap();
    let issued = w
        .store
        .issue_code(sent, code(3), LIMITS, expiry + LIMITS.cool_down)
        .await;
    issued.unwrap().unwrap();
    assert_eq!(sealed().await, 1, "of the last one alone");
    assert_eq!(
        count(
            &pool,
            "channel_codes WHERE hash = X'0303030303030303030303030303030303030303030303030303030303030303'"
        )
        .await,
        1
    );
    let right = w.store.try_code(sent, hash(3), LIMITS, expiry + LIMITS.cool_down);
    assert_eq!(right.await.unwrap(), Some(CodeTry::Verified));
}

#[tokio::test]
async fn events_of_an_older_version_are_kept_as_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docmill.db");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let pool = SqlitePoolOptions::new().connect_with(options).await.unwrap();
    migrator(&VERSIONS[..2]).run(&pool).await.unwrap();
    let (account, workspace, job, flow, event) = (
        "01890000-0000-7000-8000-000000000001",
        "01890000-0000-7000-8000-000000000002",
        "01890000-0000-7000-8000-000000000003",
        "01890000-0000-7000-8000-000000000004",
        "01890000-0000-7000-8000-000000000005",
    );
    let rows = format!(
        "INSERT INTO accounts (id, name, created_at) VALUES ('{account}', 'a', 1);
         INSERT INTO workspaces (id, account_id, name, created_at) VALUES ('{workspace}', '{account}', 'w', 1);
         INSERT INTO jobs (id, workspace_id, account_id, workflow_id, workflow_name, job_type, status, chain,
                           created_at, files_total, event_count)
         VALUES ('{job}', '{workspace}', '{account}', '{flow}', 'f', 'ephemeral', 'SCHEDULED', '[]', 7, 0, 1);
         INSERT INTO events (id, job_id, workspace_id, sequence, type, payload, created_at)
         VALUES ('{event}', '{job}', '{workspace}', 1, 'job.scheduled', '{{\"workflow_id\": \"{flow}\"}}', 7)"
    );
    sqlx::raw_sql(AssertSqlSafe(rows)).execute(&pool).await.unwrap();
    pool.close().await;

    let store = SqliteStore::open(&path, FIVE).await.unwrap();
    let workspace = workspace.parse().unwrap();
    let events = store.events(workspace, job.parse().unwrap(), 0).await.unwrap();
    assert_eq!((events.len(), events[0].id.to_string().as_str()), (1, event));
    let kept = store.notification(workspace, events[0].id).await.unwrap().unwrap();
    assert_eq!((kept.workflow, kept.read_at), (Some(flow.parse().unwrap()), Some(7)));
    assert_eq!(store.unread_count(workspace, None).await.unwrap(), 0);
}
