//! What a listing adds to its run. A page is handed to the database as one JSON value, so that it costs a
//! few statements however many objects it has.

use docmill_model::connector::SourceObject;
use docmill_model::ids::FileId;
use serde_json::{Value, json};
use sqlx::{Row, SqliteConnection};

use super::listings::Listed;
use super::rows::{size_column, to_json};
use crate::{FileAction, ListedPage, Result, StoreError};

/// Objects added by one statement where docmill makes up the page.
const PAGE: i64 = 1_000;

/// Notes which objects of a page the workflow knows in the version they have now. The page is a list to look
/// up, not a table to join with: joined, it would be read once for every object the workflow knows.
pub(super) const NOTE_UNCHANGED: &str = "UPDATE processed_objects SET seen_by = max(seen_by, $4)
     WHERE workflow_id = $2 AND source_id = $3 AND seen_by <> $4
         AND (locator, version) IN (SELECT value ->> 'locator', value ->> 'version' FROM json_each($1))";

/// Notes that objects of a page are still there, whatever their version.
pub(super) const NOTE_SEEN: &str = "UPDATE processed_objects SET seen_by = $4
     WHERE workflow_id = $2 AND source_id = $3 AND seen_by < $4
         AND locator IN (SELECT value ->> 'locator' FROM json_each($1))";

/// Adds the objects of a page that the run does not have, and, with `$8`, that the workflow does not know in
/// the version they have.
pub(super) const ADD_FILES: &str = "INSERT INTO job_files (id, job_id, workspace_id, ordinal, name, content_type, size,
         blob_key, state, source_id, locator, object, action)
     SELECT o.value ->> 'id', $4, $5, $6 + o.key, o.value ->> 'name', o.value ->> 'content_type', o.value ->> 'size',
         '', 'ready', $3, o.value ->> 'locator', o.value ->> 'object', $7
     FROM json_each($1) AS o
     WHERE NOT $8 OR o.value ->> 'version' IS NULL OR NOT EXISTS
         (SELECT 1 FROM processed_objects p WHERE p.workflow_id = $2 AND p.source_id = $3
              AND p.locator = o.value ->> 'locator' AND p.version = o.value ->> 'version')
     ON CONFLICT DO NOTHING";

/// What a workflow processed of a source, and a job did not see there.
pub(super) const REMOVED: &str = "SELECT locator, name FROM processed_objects
     WHERE workflow_id = $1 AND source_id = $2 AND locator > $3 AND seen_by < $4 ORDER BY locator LIMIT $5";

/// Records a page of listed objects and how far the listing is.
pub(super) async fn add_page(db: &mut SqliteConnection, run: &Listed, page: &ListedPage) -> Result<()> {
    let Some(source) = run.sources.get(page.source_index as usize) else {
        return Err(StoreError::Corrupt(format!(
            "the run has no source {}",
            page.source_index
        )));
    };
    let source = source.to_string();
    let objects = page.objects.iter().map(|(id, object)| row(*id, object));
    let objects = to_json(&Value::Array(objects.collect::<Result<_>>()?))?;
    let mut unchanged = 0;
    if !run.reprocess_all {
        unchanged = note(db, NOTE_UNCHANGED, run, &source, &objects).await?;
    }
    let added = add_files(db, run, &source, &objects, FileAction::Process, !run.reprocess_all).await?;
    if run.delete_removed {
        note(db, NOTE_SEEN, run, &source, &objects).await?;
    }
    count_files(db, run, added, unchanged).await?;
    let (index, locator) = match page.last_of_source {
        true => (page.source_index.saturating_add(1), None),
        false => (
            page.source_index,
            page.objects.last().map(|(_, object)| object.locator.as_str()),
        ),
    };
    sqlx::query(
        "UPDATE listings SET locator = CASE WHEN source_index = $2 THEN COALESCE($3, locator) ELSE $3 END,
             source_index = $2, listed = listed + $4, attempt = 0 WHERE job_id = $1",
    )
    .bind(run.job.to_string())
    .bind(i64::from(index))
    .bind(locator)
    .bind(page.objects.len() as i64)
    .execute(db)
    .await?;
    Ok(())
}

/// Adds what the workflow processed before, and this run's sources no longer have.
pub(super) async fn add_removed(db: &mut SqliteConnection, run: &Listed) -> Result<()> {
    let mut listed = run.listed;
    for source in &run.sources {
        let source = source.to_string();
        let mut after = String::new();
        loop {
            let rows = sqlx::query(REMOVED)
                .bind(&run.workflow)
                .bind(&source)
                .bind(&after)
                .bind(run.job_seq)
                .bind(PAGE)
                .fetch_all(&mut *db)
                .await?;
            let Some(last) = rows.last() else { break };
            after = last.try_get("locator")?;
            let objects = rows.iter().map(|record| {
                let object = SourceObject {
                    locator: record.try_get("locator")?,
                    name: record.try_get("name")?,
                    size: None,
                    version: None,
                    content_type: None,
                    data_source: Value::Null,
                };
                row(FileId::new(), &object)
            });
            let objects = to_json(&Value::Array(objects.collect::<Result<_>>()?))?;
            let at = Listed { listed, ..run.clone() };
            let added = add_files(db, &at, &source, &objects, FileAction::Delete, false).await?;
            count_files(db, run, added, 0).await?;
            listed += rows.len() as i64;
        }
    }
    Ok(())
}

fn row(id: FileId, object: &SourceObject) -> Result<Value> {
    Ok(json!({
        "id": id,
        "locator": object.locator,
        "version": object.version,
        "name": object.name,
        "content_type": object.content_type,
        "size": size_column(object.size.unwrap_or(0)),
        "object": to_json(object)?,
    }))
}

async fn note(db: &mut SqliteConnection, sql: &'static str, run: &Listed, source: &str, objects: &str) -> Result<u64> {
    let done = sqlx::query(sql)
        .bind(objects)
        .bind(&run.workflow)
        .bind(source)
        .bind(run.job_seq)
        .execute(db)
        .await?;
    Ok(done.rows_affected())
}

async fn add_files(
    db: &mut SqliteConnection,
    run: &Listed,
    source: &str,
    objects: &str,
    action: FileAction,
    only_changed: bool,
) -> Result<u64> {
    let done = sqlx::query(ADD_FILES)
        .bind(objects)
        .bind(&run.workflow)
        .bind(source)
        .bind(run.job.to_string())
        .bind(&run.workspace)
        .bind(run.listed)
        .bind(super::rows::action_word(action))
        .bind(only_changed)
        .execute(db)
        .await?;
    Ok(done.rows_affected())
}

async fn count_files(db: &mut SqliteConnection, run: &Listed, added: u64, unchanged: u64) -> Result<()> {
    sqlx::query("UPDATE jobs SET files_total = files_total + $2, files_unchanged = files_unchanged + $3 WHERE id = $1")
        .bind(run.job.to_string())
        .bind(size_column(added))
        .bind(size_column(unchanged))
        .execute(db)
        .await?;
    Ok(())
}
