//! How the pages of files were read.

use docmill_model::PageRoute;
use docmill_model::ids::{FileId, JobId, WorkspaceId};
use futures_util::TryStreamExt;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::rows::{id, json, to_json};
use crate::Result;

/// In the order of the files.
pub(super) const PAGE_ROUTES: &str = "SELECT p.file_id, p.routes
     FROM json_each($3) f CROSS JOIN page_routes p ON p.file_id = f.value JOIN jobs j ON j.id = p.job_id
     WHERE p.job_id = $1 AND j.workspace_id = $2 ORDER BY f.key";

impl SqliteStore {
    pub(super) async fn list_page_routes(
        &self,
        workspace: WorkspaceId,
        job: JobId,
        files: &[FileId],
        max: usize,
    ) -> Result<Vec<(FileId, Vec<PageRoute>)>> {
        let files: Vec<_> = files.iter().map(ToString::to_string).collect();
        let query = sqlx::query(PAGE_ROUTES)
            .bind(job.to_string())
            .bind(workspace.to_string())
            .bind(to_json(&files)?);
        // Row by row: those behind the last page that is told are not read.
        let mut rows = query.fetch(&self.readers);
        let (mut found, mut left) = (Vec::new(), max);
        while left > 0
            && let Some(row) = rows.try_next().await?
        {
            let mut routes: Vec<PageRoute> = json(&row, "routes")?;
            routes.truncate(left);
            left -= routes.len();
            found.push((id(&row, "file_id")?, routes));
        }
        Ok(found)
    }
}

/// Notes how the pages of a file were read.
pub(super) async fn keep_routes(
    db: &mut SqliteConnection,
    file: FileId,
    job: JobId,
    routes: &[PageRoute],
) -> Result<()> {
    if routes.is_empty() {
        return Ok(());
    }
    sqlx::query("INSERT INTO page_routes (file_id, job_id, routes) VALUES ($1, $2, $3)")
        .bind(file.to_string())
        .bind(job.to_string())
        .bind(to_json(&routes)?)
        .execute(db)
        .await?;
    Ok(())
}
