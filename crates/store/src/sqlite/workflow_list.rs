//! Lists of workflows: any filters, any order, a page.
//!
//! A workspace may have a hundred thousand workflows, so the page's rows are found first, from indexes
//! alone, and read after. There are two ways to find them:
//!
//! - When a filter that has an index of its own (any but a short part of the name) lets few rows through, those rows are read, the other filters applied, and the rest is sorted.
//! - Otherwise the index that is in the order asked for is walked, which has the columns of the other
//!   filters in it, until the page is full.
//!
//! What is few is found by counting up to [`FEW`].

use std::collections::HashMap;

use docmill_model::ids::WorkspaceId;
use docmill_model::time::Micros;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};

use super::SqliteStore;
use super::rows::to_json;
use super::workflows::{lower, workflow_record};
use crate::{Result, Workflow, WorkflowFilter, WorkflowOrder};

/// Rows that are rather read and sorted than found by walking in order.
const FEW: i64 = 2_000;

/// Characters the index of names needs.
const TRIGRAM: usize = 3;

/// Characters up to which the index of names is asked: longer texts are no names.
const LONGEST: usize = 500;

/// The workspace and whether deleted ones are wanted are the first two values of every statement.
const WORKSPACE: usize = 1;
const DELETED: usize = 2;

impl SqliteStore {
    pub(super) async fn list_workflows(
        &self,
        workspace: WorkspaceId,
        filter: &WorkflowFilter,
    ) -> Result<Vec<Workflow>> {
        let mut snapshot = self.readers.begin().await?;
        let mut search = Search::new(workspace, filter);
        let driver = search.choose_driver(&mut snapshot).await?;
        let page = search.page_statement(driver, filter);
        let seqs: Vec<i64> = search.run(&page, &mut snapshot).await?;
        let rows = sqlx::query("SELECT * FROM workflows WHERE seq IN (SELECT value FROM json_each($1))")
            .bind(to_json(&seqs)?)
            .fetch_all(&mut *snapshot)
            .await?;
        snapshot.rollback().await?;
        let mut found = HashMap::with_capacity(rows.len());
        for row in &rows {
            found.insert(row.try_get::<i64, _>("seq")?, workflow_record(row)?);
        }
        Ok(seqs.iter().filter_map(|seq| found.remove(seq)).collect())
    }
}

/// A value of a statement.
#[derive(Clone, Debug)]
enum Bound {
    Text(String),
    Number(i64),
}

/// A filter that has an index of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Driver {
    /// References of a role to the object that is this value.
    Ref(&'static str, usize),
    /// Names that match the expression that is this value.
    Name(usize),
    /// The state that is this value.
    State(usize),
    /// Created from one value to another.
    Created(usize, usize),
}

impl Driver {
    /// Counts the rows it lets through, up to a bound.
    pub(super) fn count_statement(self) -> String {
        format!("SELECT count(*) FROM ({} LIMIT {})", self.rows(), FEW + 1)
    }

    /// The `seq` of the rows it lets through.
    fn rows(self) -> String {
        let of_workspace = format!("workspace_id = ${WORKSPACE} AND deleted = ${DELETED}");
        match self {
            Self::Ref(role, value) => format!(
                "SELECT workflow_seq AS seq FROM workflow_refs
                     WHERE {of_workspace} AND role = '{role}' AND ref_id = ${value}"
            ),
            Self::Name(value) => {
                format!("SELECT rowid AS seq FROM workflow_names WHERE workflow_names MATCH ${value}")
            }
            Self::State(value) => format!(
                "SELECT seq FROM workflows INDEXED BY workflows_state WHERE {of_workspace} AND state = ${value}"
            ),
            Self::Created(since, before) => format!(
                "SELECT seq FROM workflows INDEXED BY workflows_created
                     WHERE {of_workspace} AND created_at BETWEEN ${since} AND ${before}"
            ),
        }
    }
}

/// A list's values, and its conditions in words.
#[derive(Debug)]
pub(super) struct Search {
    values: Vec<Bound>,
    drivers: Vec<Driver>,
    /// Conditions on `w` that hold whatever way is taken.
    conditions: Vec<String>,
}

impl Search {
    pub(super) fn new(workspace: WorkspaceId, filter: &WorkflowFilter) -> Self {
        let mut search = Self {
            values: vec![Bound::Text(workspace.to_string()), Bound::Number(filter.deleted.into())],
            drivers: Vec::new(),
            conditions: vec![format!("w.workspace_id = ${WORKSPACE} AND w.deleted = ${DELETED}")],
        };
        let refs = [
            ("source", filter.source.map(|id| id.to_string())),
            ("destination", filter.destination.map(|id| id.to_string())),
            ("node", filter.node.map(|id| id.to_string())),
        ];
        for (role, id) in refs {
            if let Some(id) = id {
                let value = search.bind(Bound::Text(id));
                search.drivers.push(Driver::Ref(role, value));
            }
        }
        if let Some(state) = filter.state {
            let value = search.bind(Bound::Text(state.as_str().to_owned()));
            search.conditions.push(format!("w.state = ${value}"));
            search.drivers.push(Driver::State(value));
        }
        if filter.created_since.is_some() || filter.created_before.is_some() {
            let since = search.bind(Bound::Number(filter.created_since.unwrap_or(Micros::MIN)));
            let before = search.bind(Bound::Number(filter.created_before.unwrap_or(Micros::MAX)));
            search
                .conditions
                .push(format!("w.created_at BETWEEN ${since} AND ${before}"));
            search.drivers.push(Driver::Created(since, before));
        }
        if let Some(text) = &filter.name {
            search.add_name(&lower(text));
        }
        search
    }

    /// The filters that have indexes of their own.
    #[cfg(test)]
    pub(super) fn drivers(&self) -> impl Iterator<Item = Driver> + use<> {
        self.drivers.clone().into_iter()
    }

    fn add_name(&mut self, text: &str) {
        let value = self.bind(Bound::Text(text.to_owned()));
        self.conditions.push(format!("instr(w.name_lower, ${value}) > 0"));
        let length = text.chars().count();
        if (TRIGRAM..=LONGEST).contains(&length) && !text.contains('\0') {
            let value = self.bind(Bound::Text(format!("\"{}\"", text.replace('"', "\"\""))));
            self.drivers.push(Driver::Name(value));
        }
    }

    /// Adds a value; its number.
    fn bind(&mut self, value: Bound) -> usize {
        self.values.push(value);
        self.values.len()
    }

    /// The filter that lets the fewest rows through, if those are few.
    async fn choose_driver(&self, db: &mut SqliteConnection) -> Result<Option<Driver>> {
        let mut best: Option<(i64, Driver)> = None;
        for driver in &self.drivers {
            let counts = self.run(&driver.count_statement(), db).await?;
            let rows = counts.first().copied().unwrap_or(0);
            if rows <= best.map_or(FEW, |(fewest, _)| fewest) {
                best = Some((rows, *driver));
            }
        }
        Ok(best.map(|(_, driver)| driver))
    }

    /// The statement for the `seq` of a page's rows, in order.
    pub(super) fn page_statement(&mut self, driver: Option<Driver>, filter: &WorkflowFilter) -> String {
        let (column, index, index_down) = match filter.order {
            WorkflowOrder::Id => ("id", "workflows_id", "workflows_id"),
            WorkflowOrder::Name => ("name", "workflows_name", "workflows_name_down"),
            WorkflowOrder::State => ("state", "workflows_state", "workflows_state_down"),
            WorkflowOrder::Kind => ("kind", "workflows_kind", "workflows_kind_down"),
            WorkflowOrder::CreatedAt => ("created_at", "workflows_created", "workflows_created_down"),
            WorkflowOrder::UpdatedAt => ("changed_at", "workflows_changed", "workflows_changed_down"),
        };
        let index = if filter.descending { index_down } else { index };
        let from = match driver {
            Some(driver) => format!("({}) d CROSS JOIN workflows w ON w.seq = d.seq", driver.rows()),
            None => format!("workflows w INDEXED BY {index}"),
        };
        let mut conditions = self.conditions.clone();
        for other in &self.drivers {
            match (driver, *other) {
                (Some(Driver::Ref(_, chosen)), Driver::Ref(_, value)) if chosen == value => {}
                // Walking looks at many rows: a list made once is faster to look up than the index. The
                // plus keeps the rows from being found by it.
                (None, Driver::Ref(..)) => {
                    conditions.push(format!("+w.seq IN ({})", other.rows()));
                }
                (Some(_), Driver::Ref(role, value)) => conditions.push(format!(
                    "EXISTS (SELECT 1 FROM workflow_refs r WHERE r.workspace_id = ${WORKSPACE} AND r.role = '{role}'
                         AND r.ref_id = ${value} AND r.deleted = ${DELETED} AND r.workflow_seq = w.seq)"
                )),
                // These are conditions already.
                (_, Driver::Name(_) | Driver::State(_) | Driver::Created(..)) => {}
            }
        }
        let direction = if filter.descending { " DESC" } else { "" };
        let ties = if column == "id" { "" } else { ", w.id" };
        let limit = self.bind(Bound::Number(filter.limit.into()));
        let offset = self.bind(Bound::Number(i64::try_from(filter.offset).unwrap_or(i64::MAX)));
        format!(
            "SELECT w.seq FROM {from} WHERE {} ORDER BY w.{column}{direction}{ties} LIMIT ${limit} OFFSET ${offset}",
            conditions.join(" AND ")
        )
    }

    /// Runs a statement with the values; the numbers it gives.
    async fn run(&self, sql: &str, db: &mut SqliteConnection) -> Result<Vec<i64>> {
        // Made of the fixed words above and the numbers of values.
        let mut query = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql.to_owned()));
        for value in &self.values {
            query = match value {
                Bound::Text(text) => query.bind(text.clone()),
                Bound::Number(number) => query.bind(*number),
            };
        }
        Ok(query.fetch_all(db).await?)
    }
}
