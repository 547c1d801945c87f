//! Jobs: creation, reading and stopping.

use std::collections::HashMap;

use docmill_model::ids::{AccountId, FileId, JobId, NodeId, WorkspaceId};
use docmill_model::job::{EventType, JobStatus, JobType, ListingState, TaskState};
use docmill_model::time::Micros;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::lifecycle::{admit, check_original, check_workflow, insert, stop};
use super::rows::{code, count, id, input, json, word};
use crate::{Event, FilePage, Job, JobFile, JobFilter, NewJob, Output, Result};

/// The statements that read jobs with what belongs to them. Each takes the workspace, the greatest number
/// of jobs, and what the condition asks for.
pub(super) struct JobStatements {
    pub(super) jobs: &'static str,
    pub(super) files: &'static str,
    pub(super) outputs: &'static str,
}

macro_rules! job_statements {
    ($condition:literal) => {
        JobStatements {
            jobs: concat!(
                "SELECT * FROM jobs WHERE workspace_id = $1 ",
                $condition,
                " ORDER BY seq DESC LIMIT $2"
            ),
            files: concat!(
                "SELECT job_id, id FROM job_files WHERE job_id IN
                     (SELECT id FROM (SELECT id, from_sources FROM jobs WHERE workspace_id = $1 ",
                $condition,
                " ORDER BY seq DESC LIMIT $2) WHERE from_sources = 0) ORDER BY job_id, ordinal"
            ),
            outputs: concat!(
                "SELECT o.job_id, o.node_id, o.file_id FROM outputs o JOIN job_files f ON f.id = o.file_id
                 WHERE o.job_id IN
                     (SELECT id FROM (SELECT id, from_sources FROM jobs WHERE workspace_id = $1 ",
                $condition,
                " ORDER BY seq DESC LIMIT $2) WHERE from_sources = 0)
                 ORDER BY o.job_id, o.node_index, f.ordinal"
            ),
        }
    };
}

pub(super) const ONE: JobStatements = job_statements!("AND id = $3");
pub(super) const LIST: JobStatements = job_statements!("");
pub(super) const LIST_OF_WORKFLOW: JobStatements = job_statements!("AND workflow_id = $3");
pub(super) const LIST_IN_STATUS: JobStatements = job_statements!("AND status = $3");
const LIST_OF_WORKFLOW_IN_STATUS: JobStatements = job_statements!("AND workflow_id = $3 AND status = $4");

/// A page of a job's files; its rows are found by the index alone before the rows themselves are read.
pub(super) const FILES: &str = "SELECT f.*, (SELECT count(*) FROM outputs o WHERE o.file_id = f.id) AS nodes_done
     FROM job_files f WHERE f.seq IN
         (SELECT seq FROM job_files WHERE job_id = $1 ORDER BY ordinal LIMIT $2 OFFSET $3)
     ORDER BY f.ordinal";
pub(super) const FAILED_FILES: &str =
    "SELECT f.*, (SELECT count(*) FROM outputs o WHERE o.file_id = f.id) AS nodes_done
     FROM job_files f WHERE f.seq IN
         (SELECT seq FROM job_files WHERE job_id = $1 AND state = 'failed' ORDER BY ordinal LIMIT $2 OFFSET $3)
     ORDER BY f.ordinal";

impl SqliteStore {
    pub(super) async fn take_create_turn(
        &self,
        account: AccountId,
        gap: Micros,
        now: Micros,
    ) -> Result<std::result::Result<(), Micros>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    // A time in the future can only come from a clock that was set back since.
                    let passed = sqlx::query(
                        "UPDATE accounts SET last_create_at = $2
                         WHERE id = $1 AND (last_create_at <= $2 - $3 OR last_create_at > $2)",
                    )
                    .bind(account.to_string())
                    .bind(now)
                    .bind(gap)
                    .execute(&mut *db)
                    .await?;
                    if passed.rows_affected() > 0 {
                        return Ok(Ok(()));
                    }
                    let last: i64 = sqlx::query_scalar("SELECT last_create_at FROM accounts WHERE id = $1")
                        .bind(account.to_string())
                        .fetch_one(db)
                        .await?;
                    Ok(Err((last + gap - now).max(1)))
                })
            })
            .await
    }

    pub(super) async fn insert_job(&self, job: NewJob, now: Micros) -> Result<()> {
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    check_workflow(db, &job).await?;
                    check_original(db, &job).await?;
                    insert(db, &job, now).await?;
                    let stored = job.run.is_some();
                    admit(db, &job.account.to_string(), stored, slots, Some(job.id), now).await?;
                    Ok(())
                })
            })
            .await
    }

    pub(super) async fn find_job(&self, workspace: WorkspaceId, job: JobId) -> Result<Option<Job>> {
        let found = self.read_jobs(&ONE, workspace, 1, &[job.to_string()]).await?;
        Ok(found.into_iter().next())
    }

    pub(super) async fn list_jobs(&self, workspace: WorkspaceId, filter: &JobFilter) -> Result<Vec<Job>> {
        let statements = match (filter.workflow, filter.status) {
            (None, None) => &LIST,
            (Some(_), None) => &LIST_OF_WORKFLOW,
            (None, Some(_)) => &LIST_IN_STATUS,
            (Some(_), Some(_)) => &LIST_OF_WORKFLOW_IN_STATUS,
        };
        let limit = match filter.limit {
            0 => i64::MAX,
            limit => limit.into(),
        };
        let workflow = filter.workflow.map(|workflow| workflow.to_string());
        let status = filter.status.map(|status| status.to_string());
        let values: Vec<_> = workflow.into_iter().chain(status).collect();
        self.read_jobs(statements, workspace, limit, &values).await
    }

    /// Jobs with their files' ids and outputs, all as of one moment.
    async fn read_jobs(
        &self,
        statements: &JobStatements,
        workspace: WorkspaceId,
        limit: i64,
        values: &[String],
    ) -> Result<Vec<Job>> {
        let mut snapshot = self.readers.begin().await?;
        let mut rows = Vec::new();
        for sql in [statements.jobs, statements.files, statements.outputs] {
            let mut query = sqlx::query(sql).bind(workspace.to_string()).bind(limit);
            for value in values {
                query = query.bind(value);
            }
            rows.push(query.fetch_all(&mut *snapshot).await?);
        }
        snapshot.rollback().await?;
        let [jobs, files, outputs] = rows.as_slice() else {
            return Ok(Vec::new());
        };
        let mut jobs = jobs.iter().map(job_record).collect::<Result<Vec<_>>>()?;
        let places: HashMap<JobId, usize> = jobs.iter().enumerate().map(|(at, job)| (job.id, at)).collect();
        let place = |row| Result::Ok(places.get(&id::<JobId>(row, "job_id")?).copied());
        for row in files {
            if let Some(job) = place(row)?.and_then(|at| jobs.get_mut(at)) {
                job.file_ids.push(id(row, "id")?);
            }
        }
        for row in outputs {
            if let Some(job) = place(row)?.and_then(|at| jobs.get_mut(at)) {
                job.outputs.push((id(row, "node_id")?, id(row, "file_id")?));
            }
        }
        Ok(jobs)
    }

    pub(super) async fn list_job_files(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        page: FilePage,
    ) -> Result<Option<Vec<JobFile>>> {
        let mut snapshot = self.readers.begin().await?;
        let exists = sqlx::query("SELECT 1 FROM jobs WHERE id = $1 AND workspace_id = $2")
            .bind(job.to_string())
            .bind(workspace.to_string())
            .fetch_optional(&mut *snapshot)
            .await?;
        if exists.is_none() {
            return Ok(None);
        }
        let rows = sqlx::query(if page.failed_only { FAILED_FILES } else { FILES })
            .bind(job.to_string())
            .bind(page.limit)
            .bind(i64::try_from(page.offset).unwrap_or(i64::MAX))
            .fetch_all(&mut *snapshot)
            .await?;
        snapshot.rollback().await?;
        rows.iter().map(file_record).collect::<Result<_>>().map(Some)
    }

    pub(super) async fn find_output(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        file: FileId,
        node: Option<NodeId>,
    ) -> Result<Option<Output>> {
        let row = sqlx::query(
            "SELECT o.blob_key, o.size, f.name FROM outputs o JOIN job_files f ON f.id = o.file_id
             WHERE o.file_id = $1 AND o.job_id = $2 AND f.workspace_id = $3 AND ($4 IS NULL OR o.node_id = $4)
             ORDER BY o.node_index DESC LIMIT 1",
        )
        .bind(file.to_string())
        .bind(job.to_string())
        .bind(workspace.to_string())
        .bind(node.map(|n| n.to_string()))
        .fetch_optional(&self.readers)
        .await?;
        row.map(|row| {
            Ok(Output {
                blob_key: row.try_get("blob_key")?,
                size: count(&row, "size")?,
                file_name: row.try_get("name")?,
            })
        })
        .transpose()
    }

    pub(super) async fn cancel_job(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        now: Micros,
    ) -> Result<Option<JobStatus>> {
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let row = sqlx::query(
                        "SELECT id, status, workspace_id, account_id, stored FROM jobs WHERE id = $1 AND workspace_id = $2",
                    )
                    .bind(job.to_string())
                    .bind(workspace.to_string())
                    .fetch_optional(&mut *db)
                    .await?;
                    let Some(row) = row else { return Ok(None) };
                    let before = stop(db, &row, "cancelled on request", now).await?;
                    let (account, stored) = (row.try_get("account_id")?, row.try_get("stored")?);
                    admit(db, account, stored, slots, None, now).await?;
                    Ok(Some(before))
                })
            })
            .await
    }

    pub(super) async fn list_events(&self, workspace: WorkspaceId, job: JobId, after: i64) -> Result<Vec<Event>> {
        let rows = sqlx::query(
            "SELECT id, sequence, type, payload, created_at FROM events
             WHERE job_id = $1 AND workspace_id = $2 AND sequence > $3
                 AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = job_id) ORDER BY sequence",
        )
        .bind(job.to_string())
        .bind(workspace.to_string())
        .bind(after)
        .fetch_all(&self.readers)
        .await?;
        rows.iter()
            .map(|row| {
                Ok(Event {
                    id: id(row, "id")?,
                    sequence: row.try_get("sequence")?,
                    event_type: word(row, "type", EventType::parse)?,
                    payload: json(row, "payload")?,
                    created_at: row.try_get("created_at")?,
                })
            })
            .collect()
    }
}

fn job_record(row: &SqliteRow) -> Result<Job> {
    Ok(Job {
        id: id(row, "id")?,
        workflow: id(row, "workflow_id")?,
        workflow_name: row.try_get("workflow_name")?,
        job_type: word(row, "job_type", JobType::parse)?,
        status: word(row, "status", JobStatus::parse)?,
        chain: json(row, "chain")?,
        message: row.try_get("message")?,
        created_at: row.try_get("created_at")?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        files_total: count(row, "files_total")?,
        files_succeeded: count(row, "files_succeeded")?,
        files_failed: count(row, "files_failed")?,
        file_ids: Vec::new(),
        outputs: Vec::new(),
        from_sources: row.try_get("from_sources")?,
        listing: row
            .try_get::<Option<String>, _>("listing")?
            .map(|_| word(row, "listing", ListingState::parse))
            .transpose()?,
        destinations: json(row, "destinations")?,
        files_unchanged: count(row, "files_unchanged")?,
    })
}

fn file_record(row: &SqliteRow) -> Result<JobFile> {
    let error_code: Option<String> = row.try_get("error_code")?;
    let message: Option<String> = row.try_get("error_message")?;
    let warnings: Option<String> = row.try_get("warnings")?;
    Ok(JobFile {
        id: id(row, "id")?,
        name: row.try_get("name")?,
        content_type: row.try_get("content_type")?,
        size: count(row, "size")?,
        input: input(row)?,
        state: word(row, "state", TaskState::parse)?,
        attempt: count(row, "attempt")? as u32,
        error: error_code.map(|text| (code(&text), message.unwrap_or_default())),
        warnings: match warnings {
            Some(_) => json(row, "warnings")?,
            None => Vec::new(),
        },
        elements: row.try_get::<Option<i64>, _>("elements")?.map(|n| n.max(0) as u64),
        pages: row.try_get::<Option<i64>, _>("pages")?.map(|n| n.max(0) as u64),
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        nodes_done: count(row, "nodes_done")?,
    })
}
