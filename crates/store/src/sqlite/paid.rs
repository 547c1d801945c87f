//! Nodes that call models: checkpoints, kept answers, costs.

use docmill_model::ids::{FileId, JobId, WorkspaceId};
use docmill_model::time::{Micros, SECOND};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::rows::{count, id, json, size_column, to_json};
use crate::{CallRecord, Checkpoint, Cost, FileCost, Lease, Result, StoreError};

/// Age up to which no answer goes for want of room: a file under way may be about to use it again.
const YOUNG: Micros = 24 * 3_600 * SECOND;

/// How exactly the last use of an answer is known.
const HOUR: Micros = 3_600 * SECOND;

pub(super) const ANSWERS: &str =
    "SELECT key, answer FROM answers WHERE workspace_id = $1 AND key IN (SELECT value FROM json_each($2))";
pub(super) const TOUCH: &str = "UPDATE answers SET used_at = $3
     WHERE workspace_id = $1 AND key IN (SELECT value FROM json_each($2)) AND used_at < $3 - $4";
pub(super) const EVICT: &str = "DELETE FROM answers WHERE seq IN
     (SELECT seq FROM answers WHERE workspace_id = $1 AND created_at < $2 ORDER BY used_at LIMIT $3)
     RETURNING length(answer) AS bytes";
pub(super) const UNUSED: &str = "DELETE FROM answers WHERE seq IN
     (SELECT seq FROM answers WHERE used_at < $1 ORDER BY used_at LIMIT $2)
     RETURNING workspace_id, length(answer) AS bytes";
pub(super) const FORGET: &str = "DELETE FROM answers
     WHERE workspace_id = $1 AND key IN (SELECT value FROM json_each($2)) RETURNING length(answer) AS bytes";
pub(super) const CHECKPOINT: &str = "SELECT content_hash, state FROM checkpoints WHERE file_id = $1";
pub(super) const CHECKPOINT_OUTPUTS: &str =
    "SELECT blob_key, size FROM checkpoint_outputs WHERE file_id = $1 ORDER BY node_index";
pub(super) const JOB_COSTS: &str = "SELECT c.node_index, c.model, c.calls, c.cached, c.retries, c.tokens_in,
        c.tokens_out, c.millis, c.price
     FROM job_costs c JOIN jobs j ON j.id = c.job_id
     WHERE c.job_id = $1 AND j.workspace_id = $2 ORDER BY c.node_index";
pub(super) const FILE_COSTS: &str = "SELECT c.file_id, c.node_index, c.model, c.calls, c.cached, c.retries,
        c.tokens_in, c.tokens_out, c.millis, c.price
     FROM json_each($3) f CROSS JOIN file_costs c ON c.file_id = f.value JOIN jobs j ON j.id = c.job_id
     WHERE c.job_id = $1 AND j.workspace_id = $2 ORDER BY c.file_id, c.node_index";
pub(super) const SPENT: &str = "SELECT price FROM spending WHERE workspace_id = $1 AND month = $2";

/// Blobs of a file's checkpoint that nothing else refers to become garbage.
pub(super) const DROP_BLOBS: &str = "INSERT INTO blob_garbage (blob_key)
     SELECT c.blob_key FROM checkpoint_outputs c WHERE c.file_id = $1
         AND NOT EXISTS (SELECT 1 FROM outputs o WHERE o.blob_key = c.blob_key)
         AND NOT EXISTS (SELECT 1 FROM checkpoint_outputs d WHERE d.blob_key = c.blob_key AND d.file_id <> $1)
     ON CONFLICT DO NOTHING";

/// What adds a cost to a row that is there.
macro_rules! add_up {
    () => {
        "DO UPDATE SET calls = calls + excluded.calls, cached = cached + excluded.cached,
             retries = retries + excluded.retries, tokens_in = tokens_in + excluded.tokens_in,
             tokens_out = tokens_out + excluded.tokens_out, millis = millis + excluded.millis,
             price = CASE WHEN excluded.price IS NULL THEN price ELSE COALESCE(price, 0) + excluded.price END"
    };
}

/// A job that was deleted meanwhile has no costs any more.
const ADD_FILE_COST: &str = concat!(
    "INSERT INTO file_costs (file_id, node_index, job_id, model, calls, cached, retries, tokens_in, tokens_out,
                             millis, price)
     SELECT $11, $2, id, $3, $4, $5, $6, $7, $8, $9, $10 FROM jobs WHERE id = $1
     ON CONFLICT (file_id, node_index) ",
    add_up!()
);
const ADD_JOB_COST: &str = concat!(
    "INSERT INTO job_costs (job_id, node_index, model, calls, cached, retries, tokens_in, tokens_out, millis, price)
     SELECT id, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM jobs WHERE id = $1
     ON CONFLICT (job_id, node_index) ",
    add_up!()
);

impl SqliteStore {
    pub(super) async fn set_checkpoint(&self, lease: Lease, checkpoint: Checkpoint) -> Result<()> {
        self.writer
            .write(move |db| Box::pin(async move { save(db, lease, &checkpoint).await }))
            .await
    }

    pub(super) async fn find_checkpoint(&self, file: FileId) -> Result<Option<Checkpoint>> {
        // Two reads: the file's lease is held by the one who asks, and nobody else writes.
        let row = sqlx::query(CHECKPOINT).bind(file.to_string());
        let Some(row) = row.fetch_optional(&self.readers).await? else {
            return Ok(None);
        };
        let outputs = sqlx::query(CHECKPOINT_OUTPUTS).bind(file.to_string());
        let outputs = outputs.fetch_all(&self.readers).await?;
        let output = |row: &SqliteRow| Ok((row.try_get("blob_key")?, count(row, "size")?));
        Ok(Some(Checkpoint {
            outputs: outputs.iter().map(output).collect::<Result<_>>()?,
            content_hash: row.try_get("content_hash")?,
            state: json(&row, "state")?,
        }))
    }

    pub(super) async fn find_answers(&self, workspace: WorkspaceId, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
        let rows = sqlx::query(ANSWERS).bind(workspace.to_string()).bind(to_json(&keys)?);
        let rows = rows.fetch_all(&self.readers).await?;
        rows.iter()
            .map(|row| Ok((row.try_get("key")?, row.try_get("answer")?)))
            .collect()
    }

    pub(super) async fn add_calls(&self, record: CallRecord, max_bytes: u64, now: Micros) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    keep_answers(db, &record, max_bytes, now).await?;
                    add_costs(db, &record).await
                })
            })
            .await
    }

    pub(super) async fn remove_answers(&self, workspace: WorkspaceId, keys: Vec<String>) -> Result<()> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let workspace = workspace.to_string();
                    let gone = sqlx::query(FORGET).bind(&workspace).bind(to_json(&keys)?);
                    let bytes = freed(&gone.fetch_all(&mut *db).await?)?;
                    add_bytes(db, &workspace, -bytes).await.map(drop)
                })
            })
            .await
    }

    pub(super) async fn find_spent(&self, workspace: WorkspaceId, month: &str) -> Result<i64> {
        let spent = sqlx::query_scalar(SPENT).bind(workspace.to_string()).bind(month);
        Ok(spent.fetch_optional(&self.readers).await?.unwrap_or(0))
    }

    pub(super) async fn list_job_costs(&self, workspace: WorkspaceId, job: JobId) -> Result<Vec<(u32, Cost)>> {
        let rows = sqlx::query(JOB_COSTS).bind(job.to_string()).bind(workspace.to_string());
        let rows = rows.fetch_all(&self.readers).await?;
        rows.iter().map(|row| Ok((node(row)?, cost(row)?))).collect()
    }

    pub(super) async fn list_file_costs(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        files: &[FileId],
    ) -> Result<Vec<FileCost>> {
        let files: Vec<_> = files.iter().map(ToString::to_string).collect();
        let rows = sqlx::query(FILE_COSTS)
            .bind(job.to_string())
            .bind(workspace.to_string())
            .bind(to_json(&files)?)
            .fetch_all(&self.readers)
            .await?;
        let of_row = |row: &SqliteRow| {
            Ok(FileCost {
                file: id(row, "file_id")?,
                node: node(row)?,
                cost: cost(row)?,
            })
        };
        rows.iter().map(of_row).collect()
    }

    pub(super) async fn remove_unused_answers(&self, before: Micros, max: u32) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let rows = sqlx::query(UNUSED).bind(before).bind(max).fetch_all(&mut *db).await?;
                    for row in &rows {
                        add_bytes(db, row.try_get("workspace_id")?, -row.try_get::<i64, _>("bytes")?).await?;
                    }
                    Ok(rows.len() as u64)
                })
            })
            .await
    }
}

async fn save(db: &mut SqliteConnection, lease: Lease, checkpoint: &Checkpoint) -> Result<()> {
    let file = lease.file.to_string();
    let held = sqlx::query("SELECT job_id FROM job_files WHERE id = $1 AND token = $2 AND state = 'running'")
        .bind(&file)
        .bind(lease.token)
        .fetch_optional(&mut *db)
        .await?;
    let held = held.ok_or(StoreError::LeaseLost)?;
    drop_checkpoint(db, &file).await?;
    sqlx::query("INSERT INTO checkpoints (file_id, job_id, content_hash, state) VALUES ($1, $2, $3, $4)")
        .bind(&file)
        .bind(held.try_get::<&str, _>("job_id")?)
        .bind(&checkpoint.content_hash)
        .bind(to_json(&checkpoint.state)?)
        .execute(&mut *db)
        .await?;
    for (index, (blob_key, size)) in (0i64..).zip(&checkpoint.outputs) {
        sqlx::query("INSERT INTO checkpoint_outputs (file_id, node_index, blob_key, size) VALUES ($1, $2, $3, $4)")
            .bind(&file)
            .bind(index)
            .bind(blob_key)
            .bind(size_column(*size))
            .execute(&mut *db)
            .await?;
        // The checkpoint before this one held it too.
        sqlx::query("DELETE FROM blob_garbage WHERE blob_key = $1")
            .bind(blob_key)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// Removes a file's checkpoint. Blobs of it that have not become outputs are garbage.
pub(super) async fn drop_checkpoint(db: &mut SqliteConnection, file: &str) -> Result<()> {
    for sql in [
        DROP_BLOBS,
        "DELETE FROM checkpoint_outputs WHERE file_id = $1",
        "DELETE FROM checkpoints WHERE file_id = $1",
    ] {
        sqlx::query(sql).bind(file).execute(&mut *db).await?;
    }
    Ok(())
}

/// Gives a file of a job that retries another the checkpoint of the file it retries.
pub(super) async fn resume(db: &mut SqliteConnection, job: JobId, from: FileId, to: FileId) -> Result<()> {
    let (from, to) = (from.to_string(), to.to_string());
    sqlx::query(
        "INSERT INTO checkpoints (file_id, job_id, content_hash, state)
         SELECT $2, $3, content_hash, state FROM checkpoints WHERE file_id = $1",
    )
    .bind(&from)
    .bind(&to)
    .bind(job.to_string())
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "INSERT INTO checkpoint_outputs (file_id, node_index, blob_key, size)
         SELECT $2, node_index, blob_key, size FROM checkpoint_outputs WHERE file_id = $1",
    )
    .bind(&from)
    .bind(&to)
    .execute(db)
    .await?;
    Ok(())
}

async fn keep_answers(db: &mut SqliteConnection, record: &CallRecord, max_bytes: u64, now: Micros) -> Result<()> {
    let workspace = record.workspace.to_string();
    if !record.used.is_empty() {
        sqlx::query(TOUCH)
            .bind(&workspace)
            .bind(to_json(&record.used)?)
            .bind(now)
            .bind(HOUR)
            .execute(&mut *db)
            .await?;
    }
    if record.answers.is_empty() || max_bytes == 0 {
        return Ok(());
    }
    let mut added = 0;
    for (key, answer) in &record.answers {
        let done = sqlx::query(
            "INSERT INTO answers (workspace_id, key, answer, created_at, used_at) VALUES ($1, $2, $3, $4, $4)
             ON CONFLICT DO NOTHING",
        )
        .bind(&workspace)
        .bind(key)
        .bind(answer.as_slice())
        .bind(now)
        .execute(&mut *db)
        .await?;
        if done.rows_affected() > 0 {
            added += answer.len() as i64;
        }
    }
    let mut held = add_bytes(db, &workspace, added).await?;
    while held > i64::try_from(max_bytes).unwrap_or(i64::MAX) {
        // As many as came: about as many as have to go.
        let old = sqlx::query(EVICT).bind(&workspace).bind(now - YOUNG);
        let old = old.bind(record.answers.len() as i64);
        let gone = old.fetch_all(&mut *db).await?;
        if gone.is_empty() {
            break;
        }
        held = add_bytes(db, &workspace, -freed(&gone)?).await?;
    }
    Ok(())
}

/// Bytes of answers that were removed.
fn freed(rows: &[SqliteRow]) -> Result<i64> {
    let mut bytes = 0;
    for row in rows {
        bytes += row.try_get::<i64, _>("bytes")?;
    }
    Ok(bytes)
}

/// Adds to the bytes of a workspace's answers; how many there are then.
async fn add_bytes(db: &mut SqliteConnection, workspace: &str, bytes: i64) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "INSERT INTO answer_bytes (workspace_id, bytes) VALUES ($1, max($2, 0))
         ON CONFLICT (workspace_id) DO UPDATE SET bytes = max(bytes + $2, 0) RETURNING bytes",
    )
    .bind(workspace)
    .bind(bytes)
    .fetch_one(db)
    .await?)
}

async fn add_costs(db: &mut SqliteConnection, record: &CallRecord) -> Result<()> {
    let cost = &record.cost;
    for sql in [ADD_JOB_COST, ADD_FILE_COST] {
        let query = sqlx::query(sql)
            .bind(record.job.to_string())
            .bind(record.node)
            .bind(&cost.model)
            .bind(size_column(cost.calls))
            .bind(size_column(cost.cached))
            .bind(size_column(cost.retries))
            .bind(size_column(cost.tokens_in))
            .bind(size_column(cost.tokens_out))
            .bind(size_column(cost.millis))
            .bind(cost.price);
        let query = if sql == ADD_FILE_COST {
            query.bind(record.file.to_string())
        } else {
            query
        };
        query.execute(&mut *db).await?;
    }
    if let Some(price) = cost.price.filter(|price| *price > 0) {
        sqlx::query(
            "INSERT INTO spending (workspace_id, month, price) VALUES ($1, $2, $3)
             ON CONFLICT (workspace_id, month) DO UPDATE SET price = price + excluded.price",
        )
        .bind(record.workspace.to_string())
        .bind(&record.month)
        .bind(price)
        .execute(db)
        .await?;
    }
    Ok(())
}

fn node(row: &SqliteRow) -> Result<u32> {
    Ok(u32::try_from(count(row, "node_index")?).unwrap_or(u32::MAX))
}

fn cost(row: &SqliteRow) -> Result<Cost> {
    Ok(Cost {
        model: row.try_get("model")?,
        calls: count(row, "calls")?,
        cached: count(row, "cached")?,
        retries: count(row, "retries")?,
        tokens_in: count(row, "tokens_in")?,
        tokens_out: count(row, "tokens_out")?,
        millis: count(row, "millis")?,
        price: row.try_get("price")?,
    })
}
