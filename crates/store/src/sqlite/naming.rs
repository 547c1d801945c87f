//! Which documents have plain names where destinations name documents after their files.

use docmill_model::ids::{ConnectorId, WorkflowId, WorkspaceId};
use sqlx::SqliteConnection;

use crate::{NewJob, Result};

/// Where a destination leads to: the same for two connectors that write to the same directory or folder of a
/// bucket. Other settings say how to get there. Nothing for destinations that don't name documents after files.
macro_rules! place {
    () => {
        "(SELECT kind || ' ' || rtrim(coalesce(config ->> 'path', config ->> 'remote_url'), '/')
              || ' ' || rtrim(coalesce(config ->> 'endpoint_url', ''), '/')
              || ' ' || coalesce(config ->> 'account_name', '')
          FROM connectors WHERE id = $2 AND workspace_id = $1)"
    };
}

/// Whether a workflow and source write plain names to a destination; where names are of no account they do.
pub(super) const IS_PLAIN: &str = concat!(
    "SELECT p.place IS NULL OR EXISTS (SELECT 1 FROM document_names WHERE workspace_id = $1 AND place = p.place
                                       AND workflow_id = $3 AND source_id = $4 AND plain = 1)
     FROM (SELECT ",
    place!(),
    " AS place) p"
);

/// A workflow that is deleted gives its plain names to the first that writes the same source's files there.
const TAKE_OVER: &str = concat!(
    "UPDATE document_names SET workflow_id = $3
     WHERE workspace_id = $1 AND place = ",
    place!(),
    " AND plain = 1 AND source_id = $4
      AND NOT EXISTS (SELECT 1 FROM document_names n WHERE n.workspace_id = $1 AND n.place = document_names.place
                      AND n.workflow_id = $3 AND n.source_id = $4)
      AND EXISTS (SELECT 1 FROM workflows w WHERE w.id = document_names.workflow_id AND w.deleted = 1)"
);

const ENTER: &str = concat!(
    "INSERT INTO document_names (workspace_id, place, workflow_id, source_id, plain)
     SELECT $1, p.place, $3, $4, NOT EXISTS (SELECT 1 FROM document_names n WHERE n.workspace_id = $1
                                             AND n.place = p.place AND n.plain = 1)
     FROM (SELECT ",
    place!(),
    " AS place) p WHERE p.place IS NOT NULL ON CONFLICT (workspace_id, place, workflow_id, source_id) DO NOTHING"
);

/// Settles what names a run's documents get at its destinations, unless an earlier run did.
pub(super) async fn settle(db: &mut SqliteConnection, job: &NewJob) -> Result<()> {
    let Some(run) = &job.run else { return Ok(()) };
    for destination in &run.destinations {
        for source in &run.sources {
            for statement in [TAKE_OVER, ENTER] {
                sqlx::query(statement)
                    .bind(job.workspace.to_string())
                    .bind(destination.to_string())
                    .bind(job.workflow.to_string())
                    .bind(source.to_string())
                    .execute(&mut *db)
                    .await?;
            }
        }
    }
    Ok(())
}

/// The destinations to which the documents of a workflow and source go under plain names.
pub(super) async fn plain_at(
    db: &mut SqliteConnection,
    workspace: WorkspaceId,
    workflow: WorkflowId,
    source: ConnectorId,
    destinations: &[ConnectorId],
) -> Result<Vec<ConnectorId>> {
    let mut plain = Vec::new();
    for destination in destinations {
        let query = sqlx::query_scalar::<_, bool>(IS_PLAIN)
            .bind(workspace.to_string())
            .bind(destination.to_string())
            .bind(workflow.to_string())
            .bind(source.to_string());
        if query.fetch_one(&mut *db).await? {
            plain.push(*destination);
        }
    }
    Ok(plain)
}
