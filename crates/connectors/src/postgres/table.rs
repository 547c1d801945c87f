//! What the catalog says of a table.

use tokio::sync::Mutex;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use super::error::failed;
use crate::{ConnectorError, ErrorKind, Result};

/// A table or view that is there.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Its number in the catalog.
    pub(super) oid: u32,
    /// Schema and name, quoted.
    pub(super) name: String,
    /// Name alone, for people.
    pub(super) plain: String,
    /// Whether its rows tell which transaction wrote them: views and foreign tables don't.
    pub(super) has_xmin: bool,
    pub(super) columns: Vec<Column>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// The type as it is written in statements, without length.
    pub(super) kind: String,
    /// Whether an index allows each value once.
    pub(super) unique: bool,
}

impl Table {
    /// Looks a table up; `None` when there is none.
    pub(super) async fn find(client: &impl GenericClient, name: &str) -> Result<Option<Self>> {
        const TABLE: &str = "SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relname::text, \
            c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
            WHERE c.oid = coalesce(to_regclass($1), to_regclass(quote_ident($1)))::oid";
        const COLUMNS: &str = "SELECT a.attname::text, format_type(a.atttypid, NULL), EXISTS (SELECT FROM pg_index i \
            WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL \
            AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum) FROM pg_attribute a WHERE a.attrelid = $1 \
            AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum";
        let fail = |error| failed(&format!("look up table `{name}`"), &error);
        let found = client.query_typed(TABLE, &[(&name, Type::TEXT)]).await.map_err(fail)?;
        let Some(row) = found.first() else { return Ok(None) };
        let oid: u32 = get(row, 0)?;
        let kind: String = get(row, 3)?;
        let mut table = Self {
            oid,
            name: get(row, 1)?,
            plain: get(row, 2)?,
            has_xmin: matches!(&*kind, "r" | "p" | "m"),
            columns: Vec::new(),
        };
        for row in client.query_typed(COLUMNS, &[(&oid, Type::OID)]).await.map_err(fail)? {
            table.columns.push(Column {
                name: get(&row, 0)?,
                kind: get(&row, 1)?,
                unique: get(&row, 2)?,
            });
        }
        Ok(Some(table))
    }

    /// A column by name, or by its name in small letters as statements without quotes mean it.
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        let by = |name: &str| self.columns.iter().find(|column| column.name == name);
        by(name).or_else(|| by(&name.to_lowercase()))
    }

    /// A column that must be there.
    pub(super) fn require(&self, name: &str) -> Result<&Column> {
        self.column(name).ok_or_else(|| {
            let there: Vec<_> = self.columns.iter().map(|column| &*column.name).collect();
            let message = format!(
                "table {} has no column `{name}`; it has {}",
                self.name,
                there.join(", ")
            );
            ConnectorError::new(ErrorKind::Invalid, message)
        })
    }

    /// Whether the user may do all of `privileges` with the table; names the first that is missing.
    pub(super) async fn permitted(&self, client: &impl GenericClient, privileges: &[&str]) -> Result<()> {
        for privilege in privileges {
            let allowed = client
                .query_typed(
                    "SELECT has_table_privilege($1, $2)",
                    &[(&self.oid, Type::OID), (privilege, Type::TEXT)],
                )
                .await
                .map_err(|error| failed("look up privileges", &error))?;
            if !matches!(allowed.first().map(|row| get(row, 0)), Some(Ok(true))) {
                let message = format!("the user lacks the privilege {privilege} on table {}", self.name);
                return Err(ConnectorError::new(ErrorKind::Unauthorized, message));
            }
        }
        Ok(())
    }
}

impl Column {
    /// The name, quoted.
    pub(super) fn quoted(&self) -> String {
        quote(&self.name)
    }
}

/// A name as a quoted identifier.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value of an answer.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    row.try_get(index)
        .map_err(|error| failed("read an answer of PostgreSQL", &error))
}

/// A table that is looked up once.
pub(super) struct Lookup {
    /// As the settings name it.
    pub(super) name: String,
    found: Mutex<Option<Table>>,
}

impl Lookup {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            found: Mutex::new(None),
        }
    }

    /// The table, from memory or the catalog.
    pub(super) async fn table(&self, client: &impl GenericClient) -> Result<Option<Table>> {
        let mut found = self.found.lock().await;
        if found.is_none() {
            *found = Table::find(client, &self.name).await?;
        }
        Ok(found.clone())
    }

    /// Forgets what the catalog said; after errors it may have changed.
    pub(super) async fn forget(&self) {
        *self.found.lock().await = None;
    }

    /// The error for a table that is not there.
    pub(super) fn missing(&self, advice: &str) -> ConnectorError {
        let message = format!("there is no table `{}` that the user may see{advice}", self.name);
        ConnectorError::new(ErrorKind::Missing, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_not_end_their_quotes() {
        assert_eq!(quote("a\"; DROP TABLE b; --"), "\"a\"\"; DROP TABLE b; --\"");
    }
}
