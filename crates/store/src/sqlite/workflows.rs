//! Workflows: creation, reading, change and deletion. Lists are in `workflow_list`.

use docmill_model::connector::ConnectorRole;
use docmill_model::ids::{ConnectorId, JobId, WorkflowId, WorkspaceId};
use docmill_model::time::Micros;
use docmill_model::workflow::{WorkflowState, WorkflowType};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::SqliteStore;
use super::lifecycle::{admit, stop};
use super::rows::{id, json, to_json, word};
use super::slugs;
use crate::{NewWorkflow, Result, StoreError, Workflow, WorkflowDefinition};

pub(super) const WORKFLOW_BY_ID: &str = "SELECT * FROM workflows WHERE id = $1 AND workspace_id = $2 AND deleted = 0";
pub(super) const WORKFLOW_BY_KEY: &str = "SELECT * FROM workflows WHERE key = $1 AND workspace_id = $2 AND deleted = 0";

/// Jobs of a workflow that have not ended.
pub(super) const ACTIVE_JOBS: &str = "SELECT id, status, workspace_id, account_id, stored FROM jobs
     WHERE workflow_id = $1 AND stored = 1 AND status IN ('SCHEDULED', 'IN_PROGRESS') ORDER BY seq";

impl SqliteStore {
    pub(super) async fn insert_workflow(&self, new: NewWorkflow, now: Micros) -> Result<Workflow> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let workspace = new.workspace.to_string();
                    let definition = &new.definition;
                    check_connectors(db, &workspace, definition).await?;
                    let asked = new.key.as_deref();
                    let name = &definition.name;
                    let key = slugs::assign(db, slugs::WORKFLOW_KEY, &workspace, "workflow", asked, name).await?;
                    let row = sqlx::query(
                        "INSERT INTO workflows (id, workspace_id, account_id, key_id, key, name, name_lower, kind,
                             state, sources, destinations, nodes, schedule, next_fire_at, reprocess_all,
                             delete_removed, created_at, changed_at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17)
                         RETURNING *",
                    )
                    .bind(new.id.to_string())
                    .bind(&workspace)
                    .bind(new.principal.account.to_string())
                    .bind(new.principal.key.to_string())
                    .bind(key)
                    .bind(name)
                    .bind(lower(name))
                    .bind(definition.kind.as_str())
                    .bind(definition.state.as_str())
                    .bind(to_json(&definition.sources)?)
                    .bind(to_json(&definition.destinations)?)
                    .bind(to_json(&definition.nodes)?)
                    .bind(definition.schedule.as_ref().map(to_json).transpose()?)
                    .bind(definition.next_fire_at)
                    .bind(definition.reprocess_all)
                    .bind(definition.delete_removed)
                    .bind(now)
                    .fetch_one(&mut *db)
                    .await?;
                    let seq = row.try_get("seq")?;
                    insert_refs(db, &workspace, seq, definition).await?;
                    insert_name(db, seq, row.try_get("name_lower")?).await?;
                    workflow_record(&row)
                })
            })
            .await
    }

    pub(super) async fn find_workflow(&self, workspace: WorkspaceId, which: &str) -> Result<Option<Workflow>> {
        let as_id = which.parse::<WorkflowId>().ok().map(|id| id.to_string());
        let ways = [(WORKFLOW_BY_ID, as_id.as_deref()), (WORKFLOW_BY_KEY, Some(which))];
        for (sql, value) in ways {
            let Some(value) = value else { continue };
            let query = sqlx::query(sql).bind(value).bind(workspace.to_string());
            if let Some(row) = query.fetch_optional(&self.readers).await? {
                return workflow_record(&row).map(Some);
            }
        }
        Ok(None)
    }

    pub(super) async fn set_workflow_definition(
        &self,
        workspace: WorkspaceId,
        workflow: WorkflowId,
        definition: WorkflowDefinition,
        seen: Option<Micros>,
        now: Micros,
    ) -> Result<Option<Workflow>> {
        let (workspace, workflow) = (workspace.to_string(), workflow.to_string());
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let old = sqlx::query(WORKFLOW_BY_ID).bind(&workflow).bind(&workspace);
                    let Some(old) = old.fetch_optional(&mut *db).await? else {
                        return Ok(None);
                    };
                    if old.try_get::<Option<Micros>, _>("updated_at")? != seen {
                        return Err(StoreError::Conflict);
                    }
                    check_connectors(db, &workspace, &definition).await?;
                    let row = update_row(db, &old, &definition, now).await?;
                    let seq: i64 = row.try_get("seq")?;
                    sqlx::query("DELETE FROM workflow_refs WHERE workflow_seq = $1")
                        .bind(seq)
                        .execute(&mut *db)
                        .await?;
                    insert_refs(db, &workspace, seq, &definition).await?;
                    let (before, after): (&str, &str) = (old.try_get("name_lower")?, row.try_get("name_lower")?);
                    if before != after {
                        remove_name(db, seq, before).await?;
                        insert_name(db, seq, after).await?;
                    }
                    workflow_record(&row).map(Some)
                })
            })
            .await
    }

    pub(super) async fn remove_workflow(
        &self,
        workspace: WorkspaceId,
        workflow: WorkflowId,
        now: Micros,
    ) -> Result<Option<Vec<JobId>>> {
        let slots = self.slots;
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let seq: Option<i64> = sqlx::query_scalar(
                        "UPDATE workflows SET deleted = 1, deleted_at = $3, next_fire_at = NULL
                         WHERE id = $1 AND workspace_id = $2 AND deleted = 0 RETURNING seq",
                    )
                    .bind(workflow.to_string())
                    .bind(workspace.to_string())
                    .bind(now)
                    .fetch_optional(&mut *db)
                    .await?;
                    let Some(seq) = seq else { return Ok(None) };
                    sqlx::query("UPDATE workflow_refs SET deleted = 1 WHERE workflow_seq = $1")
                        .bind(seq)
                        .execute(&mut *db)
                        .await?;
                    sqlx::query("INSERT INTO forgotten_workflows (workflow_id) VALUES ($1)")
                        .bind(workflow.to_string())
                        .execute(&mut *db)
                        .await?;
                    let jobs = sqlx::query(ACTIVE_JOBS).bind(workflow.to_string());
                    let jobs = jobs.fetch_all(&mut *db).await?;
                    let mut stopped = Vec::new();
                    for job in &jobs {
                        stopped.push(id(job, "id")?);
                        stop(db, job, "its workflow was deleted", now).await?;
                    }
                    // Only now: a free slot must not start one of those that are about to be stopped.
                    for job in &jobs {
                        let (account, stored) = (job.try_get("account_id")?, job.try_get("stored")?);
                        admit(db, account, stored, slots, None, now).await?;
                    }
                    Ok(Some(stopped))
                })
            })
            .await
    }
}

/// Each character in lower case, one for one.
pub(super) fn lower(text: &str) -> String {
    text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect()
}

pub(super) fn workflow_record(row: &SqliteRow) -> Result<Workflow> {
    Ok(Workflow {
        id: id(row, "id")?,
        key: row.try_get("key")?,
        definition: WorkflowDefinition {
            name: row.try_get("name")?,
            kind: word(row, "kind", WorkflowType::parse)?,
            sources: json(row, "sources")?,
            destinations: json(row, "destinations")?,
            nodes: json(row, "nodes")?,
            schedule: match row.try_get::<Option<&str>, _>("schedule")? {
                Some(_) => Some(json(row, "schedule")?),
                None => None,
            },
            next_fire_at: row.try_get("next_fire_at")?,
            state: word(row, "state", WorkflowState::parse)?,
            reprocess_all: row.try_get("reprocess_all")?,
            delete_removed: row.try_get("delete_removed")?,
        },
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
        deleted_at: row.try_get("deleted_at")?,
    })
}

/// Writes a definition over the row it replaces. Each change has an instant of its own, whatever the
/// clock does, so that it is told from the one before.
async fn update_row(
    db: &mut SqliteConnection,
    old: &SqliteRow,
    definition: &WorkflowDefinition,
    now: Micros,
) -> Result<SqliteRow> {
    let now = now.max(old.try_get::<Micros, _>("changed_at")? + 1);
    let query = sqlx::query(
        "UPDATE workflows SET name = $2, name_lower = $3, kind = $4, state = $5, sources = $6, destinations = $7,
             nodes = $8, schedule = $9, next_fire_at = $10, reprocess_all = $11, delete_removed = $12,
             updated_at = $13, changed_at = $13
         WHERE seq = $1 RETURNING *",
    )
    .bind(old.try_get::<i64, _>("seq")?)
    .bind(&definition.name)
    .bind(lower(&definition.name))
    .bind(definition.kind.as_str())
    .bind(definition.state.as_str())
    .bind(to_json(&definition.sources)?)
    .bind(to_json(&definition.destinations)?)
    .bind(to_json(&definition.nodes)?)
    .bind(definition.schedule.as_ref().map(to_json).transpose()?)
    .bind(definition.next_fire_at)
    .bind(definition.reprocess_all)
    .bind(definition.delete_removed)
    .bind(now);
    Ok(query.fetch_one(db).await?)
}

/// The connectors of a definition, each with the role it is to have.
fn connectors(definition: &WorkflowDefinition) -> impl Iterator<Item = (ConnectorRole, ConnectorId)> {
    let sources = definition.sources.iter().map(|id| (ConnectorRole::Source, *id));
    let destinations = definition.destinations.iter();
    sources.chain(destinations.map(|id| (ConnectorRole::Destination, *id)))
}

async fn check_connectors(db: &mut SqliteConnection, workspace: &str, definition: &WorkflowDefinition) -> Result<()> {
    for (role, connector) in connectors(definition) {
        sqlx::query("SELECT 1 FROM connectors WHERE id = $1 AND workspace_id = $2 AND role = $3")
            .bind(connector.to_string())
            .bind(workspace)
            .bind(role.as_str())
            .fetch_optional(&mut *db)
            .await?
            .ok_or(StoreError::ConnectorGone(connector))?;
    }
    Ok(())
}

async fn insert_refs(
    db: &mut SqliteConnection,
    workspace: &str,
    seq: i64,
    definition: &WorkflowDefinition,
) -> Result<()> {
    let nodes = definition.nodes.iter().filter_map(|node| node.id);
    let refs = connectors(definition)
        .map(|(role, id)| (role.as_str(), id.to_string()))
        .chain(nodes.map(|id| ("node", id.to_string())));
    for (role, reference) in refs {
        // The same connector may be named twice.
        sqlx::query(
            "INSERT INTO workflow_refs (workspace_id, deleted, role, ref_id, workflow_seq)
             VALUES ($1, 0, $2, $3, $4) ON CONFLICT DO NOTHING",
        )
        .bind(workspace)
        .bind(role)
        .bind(reference)
        .bind(seq)
        .execute(&mut *db)
        .await?;
    }
    Ok(())
}

async fn insert_name(db: &mut SqliteConnection, seq: i64, name_lower: &str) -> Result<()> {
    sqlx::query("INSERT INTO workflow_names (rowid, name_lower) VALUES ($1, $2)")
        .bind(seq)
        .bind(name_lower)
        .execute(db)
        .await?;
    Ok(())
}

/// An index without the text itself has to be told what to take out.
async fn remove_name(db: &mut SqliteConnection, seq: i64, name_lower: &str) -> Result<()> {
    sqlx::query("INSERT INTO workflow_names (workflow_names, rowid, name_lower) VALUES ('delete', $1, $2)")
        .bind(seq)
        .bind(name_lower)
        .execute(db)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::lower;

    #[test]
    fn lower_case_is_one_for_one() {
        assert_eq!(lower("ÄÖ Straße ΣΑΣ İ"), "äö straße σασ i");
    }
}
