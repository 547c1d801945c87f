//! The inbox: events as people read them.

use docmill_model::channel::NotificationType;
use docmill_model::ids::{EventId, WorkflowId, WorkspaceId};
use docmill_model::time::Micros;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::rows::{id, json, to_json, word};
use crate::{InboxFilter, MarkRead, Notification, Result};

/// Notifications marked in one transaction.
const PART: u64 = 2_000;

/// Walks an index from a place on, newest first; the rows themselves are read for the page only. The three
/// differ in the index, which holds all that is asked for.
macro_rules! page {
    ($index:literal, $which:literal) => {
        concat!(
            "SELECT e.* FROM events e WHERE e.id IN (SELECT id FROM events INDEXED BY ",
            $index,
            " WHERE workspace_id = $1 AND (created_at, id) < ($2, $3) AND created_at >= $4
                  AND ($5 IS NULL OR type IN (SELECT value FROM json_each($5))) ",
            $which,
            " ORDER BY created_at DESC, id DESC LIMIT $6) ORDER BY e.created_at DESC, e.id DESC"
        )
    };
}
pub(super) const PAGE: &str = page!("events_inbox", "");
pub(super) const UNREAD_PAGE: &str = page!("events_unread", "AND read_at IS NULL");
pub(super) const WORKFLOW_PAGE: &str = page!("events_of_workflow", "AND workflow_id = $7");
pub(super) const UNREAD_WORKFLOW_PAGE: &str = page!("events_of_workflow", "AND workflow_id = $7 AND read_at IS NULL");

pub(super) const NOTIFICATION: &str = "SELECT * FROM events WHERE id = $1 AND workspace_id = $2";
pub(super) const UNREAD: &str =
    "SELECT count(*) FROM events INDEXED BY events_unread WHERE workspace_id = $1 AND read_at IS NULL";
pub(super) const UNREAD_OF_WORKFLOW: &str = "SELECT count(*) FROM events INDEXED BY events_of_workflow
     WHERE workspace_id = $1 AND workflow_id = $2 AND read_at IS NULL";
pub(super) const MARK: &str = "UPDATE events SET read_at = $3 WHERE workspace_id = $1 AND read_at IS NULL
     AND id IN (SELECT value FROM json_each($2))";
pub(super) const MARK_UNTIL: &str = "UPDATE events SET read_at = $3 WHERE id IN
     (SELECT id FROM events INDEXED BY events_unread
      WHERE workspace_id = $1 AND created_at < $2 AND read_at IS NULL LIMIT $4)";
pub(super) const MARK_WORKFLOW_UNTIL: &str = "UPDATE events SET read_at = $3 WHERE id IN
     (SELECT id FROM events INDEXED BY events_of_workflow
      WHERE workspace_id = $1 AND workflow_id = $5 AND created_at < $2 AND read_at IS NULL LIMIT $4)";

impl SqliteStore {
    pub(super) async fn list_notifications(
        &self,
        workspace: WorkspaceId,
        filter: &InboxFilter,
    ) -> Result<Vec<Notification>> {
        let sql = match (filter.workflow, filter.unread_only) {
            (None, false) => PAGE,
            (None, true) => UNREAD_PAGE,
            (Some(_), false) => WORKFLOW_PAGE,
            (Some(_), true) => UNREAD_WORKFLOW_PAGE,
        };
        let types: Vec<&str> = filter.types.iter().map(|kind| kind.as_str()).collect();
        let (at, last) = filter.after.map_or((i64::MAX, String::new()), |place| {
            (place.created_at, place.id.to_string())
        });
        let mut query = sqlx::query(sql)
            .bind(workspace.to_string())
            .bind(at)
            .bind(last)
            .bind(filter.since.unwrap_or(i64::MIN))
            .bind((!types.is_empty()).then(|| to_json(&types)).transpose()?)
            .bind(filter.limit);
        if let Some(workflow) = filter.workflow {
            query = query.bind(workflow.to_string());
        }
        let rows = query.fetch_all(&self.readers).await?;
        rows.iter().map(notification_record).collect()
    }

    pub(super) async fn find_notification(
        &self,
        workspace: WorkspaceId,
        event: EventId,
    ) -> Result<Option<Notification>> {
        let row = sqlx::query(NOTIFICATION)
            .bind(event.to_string())
            .bind(workspace.to_string())
            .fetch_optional(&self.readers)
            .await?;
        row.as_ref().map(notification_record).transpose()
    }

    pub(super) async fn count_unread(&self, workspace: WorkspaceId, workflow: Option<WorkflowId>) -> Result<u64> {
        let sql = if workflow.is_some() { UNREAD_OF_WORKFLOW } else { UNREAD };
        let mut query = sqlx::query_scalar(sql).bind(workspace.to_string());
        if let Some(workflow) = workflow {
            query = query.bind(workflow.to_string());
        }
        let unread: i64 = query.fetch_one(&self.readers).await?;
        Ok(unread.max(0) as u64)
    }

    pub(super) async fn set_read(&self, workspace: WorkspaceId, which: MarkRead, now: Micros) -> Result<u64> {
        match which {
            MarkRead::Ids(ids) => self.set_these_read(workspace, ids, now).await,
            MarkRead::Until { workflow, before } => {
                let mut marked = 0;
                loop {
                    let part = self.set_some_read(workspace, workflow, before, now).await?;
                    marked += part;
                    if part < PART {
                        return Ok(marked);
                    }
                }
            }
        }
    }

    async fn set_these_read(&self, workspace: WorkspaceId, ids: Vec<EventId>, now: Micros) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let done = sqlx::query(MARK)
                        .bind(workspace.to_string())
                        .bind(to_json(&ids)?)
                        .bind(now)
                        .execute(db)
                        .await?;
                    Ok(done.rows_affected())
                })
            })
            .await
    }

    async fn set_some_read(
        &self,
        workspace: WorkspaceId,
        workflow: Option<WorkflowId>,
        before: Micros,
        now: Micros,
    ) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let sql = if workflow.is_some() {
                        MARK_WORKFLOW_UNTIL
                    } else {
                        MARK_UNTIL
                    };
                    let mut query = sqlx::query(sql)
                        .bind(workspace.to_string())
                        .bind(before)
                        .bind(now)
                        .bind(PART as i64);
                    if let Some(workflow) = workflow {
                        query = query.bind(workflow.to_string());
                    }
                    Ok(query.execute(db).await?.rows_affected())
                })
            })
            .await
    }
}

fn notification_record(row: &SqliteRow) -> Result<Notification> {
    let workflow: Option<&str> = row.try_get("workflow_id")?;
    Ok(Notification {
        id: id(row, "id")?,
        kind: word(row, "type", NotificationType::parse)?,
        workflow: workflow.map(|_| id(row, "workflow_id")).transpose()?,
        payload: json(row, "payload")?,
        created_at: row.try_get("created_at")?,
        read_at: row.try_get("read_at")?,
    })
}
