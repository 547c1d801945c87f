//! Elements as rows of a table.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Transaction};

use super::error::failed;
use super::pool::Pool;
use super::table::{Lookup, Table, get, quote};
use crate::rows::{Row, batches, rows};
use crate::{ConnectorError, Destination, Document, ErrorKind, Result};

/// Bytes of rows sent with one statement.
const BATCH_BYTES: usize = 8 << 20;

/// Columns docmill fills where a table has them, besides one for every field of an element's metadata.
const OWN: &[&str] = &[
    "id",
    "record_id",
    "element_id",
    "type",
    "text",
    "embeddings",
    "metadata",
];

/// Fields of metadata that get a column of their own name. They are written even where an element lacks
/// them, so that nothing of an earlier version of the document stays.
const METADATA: &[&str] = &[
    "filename",
    "file_directory",
    "filetype",
    "last_modified",
    "languages",
    "page_number",
    "page_name",
    "parent_id",
    "category_depth",
    "is_continuation",
    "orig_elements",
    "text_as_html",
    "url",
    "version",
    "record_locator",
    "date_created",
    "date_modified",
    "date_processed",
    "permissions_data",
    "points",
    "system",
    "layout_width",
    "layout_height",
    "coordinates",
    "data_source",
    "sent_from",
    "sent_to",
    "cc_recipient",
    "bcc_recipient",
    "subject",
    "signature",
    "email_message_id",
    "attached_to_filename",
    "link_urls",
    "link_texts",
    "links",
    "emphasized_text_contents",
    "emphasized_text_tags",
    "image_base64",
    "image_mime_type",
    "detection_class_prob",
    "header_footer_type",
    "regex_metadata",
];

pub(super) struct PostgresDestination {
    pool: Pool,
    lookup: Lookup,
    batch: usize,
    create_table: bool,
}

impl PostgresDestination {
    pub(super) fn new(pool: Pool, table: String, batch: usize, create_table: bool) -> Self {
        Self {
            pool,
            lookup: Lookup::new(table),
            batch: batch.max(1),
            create_table,
        }
    }

    async fn with<T>(&self, work: impl AsyncFnOnce(&mut Client) -> Result<T>) -> Result<T> {
        let result = self.pool.with(work).await;
        if result.is_err() {
            // The table may have been changed or dropped.
            self.lookup.forget().await;
        }
        result
    }

    /// The table, which has the columns that can't be missing.
    async fn usable(&self, client: &impl GenericClient) -> Result<Option<Table>> {
        self.lookup.table(client).await?.map(verified).transpose()
    }

    fn missing(&self) -> ConnectorError {
        let statement = create_statement(&self.lookup.name, "real[]");
        self.lookup.missing(&format!(
            "; make it with: {statement} (or, with the extension pgvector, embeddings vector(N)), or set create_table \
             to true"
        ))
    }

    /// Makes the table, unless somebody else did in the meantime.
    async fn create(&self, client: &impl GenericClient, rows: &[Row]) -> Result<()> {
        let name = self.quoted_name(client).await?;
        let fail = |error| failed(&format!("create table {name}"), &error);
        // Two that create the same table at once would get in each other's way.
        client
            .query_typed(
                "SELECT pg_advisory_xact_lock(hashtext('docmill create table'), hashtext($1))",
                &[(&name, Type::TEXT)],
            )
            .await
            .map_err(fail)?;
        let vector = client
            .query_typed(
                "SELECT oid::regtype::text FROM pg_type WHERE typname = 'vector' LIMIT 1",
                &[],
            )
            .await
            .map_err(fail)?;
        let length = rows
            .iter()
            .find_map(|row| row.element.get("embeddings")?.as_array().map(Vec::len));
        let embeddings = match (vector.first(), length) {
            (Some(row), Some(length)) => format!("{}({length})", get::<String>(row, 0)?),
            _ => "real[]".into(),
        };
        client
            .batch_execute(&create_statement(&name, &embeddings))
            .await
            .map_err(fail)?;
        self.lookup.forget().await;
        Ok(())
    }

    /// The table's name from the settings in quotes, read as PostgreSQL reads it.
    async fn quoted_name(&self, client: &impl GenericClient) -> Result<String> {
        let parts = client
            .query_typed("SELECT parse_ident($1)", &[(&self.lookup.name, Type::TEXT)])
            .await
            .map_err(|error| failed("read the setting table_name", &error))?;
        let parts: Vec<String> = match parts.first() {
            Some(row) => get(row, 0)?,
            None => Vec::new(),
        };
        let quoted: Vec<_> = parts.iter().map(|part| quote(part)).collect();
        Ok(quoted.join("."))
    }

    async fn write(&self, transaction: &Transaction<'_>, record_id: &str, rows: Vec<Row>) -> Result<()> {
        let table = match self.usable(transaction).await? {
            Some(table) => table,
            None if self.create_table => {
                self.create(transaction, &rows).await?;
                // Not remembered: others don't see it before the transaction ends.
                let made = Table::find(transaction, &self.lookup.name).await?;
                verified(made.ok_or_else(|| self.missing())?)?
            }
            None => return Err(self.missing()),
        };
        let columns = columns(&table, &rows)?;
        let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
        let statement = upsert_statement(&table, &columns);
        let fail = |error| failed(&format!("write to table {}", table.name), &error);
        let rows = rows.into_iter().map(|row| json_row(record_id, row, &columns)).collect();
        for batch in batches(rows, self.batch, BATCH_BYTES, String::len) {
            let json = format!("[{}]", batch.join(","));
            let parameters = [(&json as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT)];
            transaction.query_typed(&statement, &parameters).await.map_err(fail)?;
        }
        let stale = format!(
            "DELETE FROM {} t WHERE t.record_id = $1 AND NOT EXISTS (SELECT FROM unnest($2::text[]) AS kept (id) \
             WHERE kept.id = t.id::text)",
            table.name
        );
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&record_id, Type::TEXT), (&ids, Type::TEXT_ARRAY)];
        transaction.query_typed(&stale, &parameters).await.map_err(fail)?;
        Ok(())
    }
}

#[async_trait]
impl Destination for PostgresDestination {
    async fn check(&self) -> Result<()> {
        self.lookup.forget().await;
        self.with(async |client| {
            let fail = |error| failed("check the database", &error);
            let read_only = client
                .query_typed("SELECT current_setting('transaction_read_only') = 'on'", &[])
                .await
                .map_err(fail)?;
            if matches!(read_only.first().map(|row| get(row, 0)), Some(Ok(true))) {
                let message = "the database is read-only (a replica?): nothing can be written there";
                return Err(ConnectorError::new(ErrorKind::Invalid, message));
            }
            match self.usable(client).await? {
                Some(table) => table.permitted(client, &["SELECT", "INSERT", "UPDATE", "DELETE"]).await,
                None if self.create_table => {
                    // Made and taken back: nothing else tells so surely whether it can be made.
                    let transaction = client.transaction().await.map_err(fail)?;
                    self.create(&transaction, &[]).await?;
                    transaction.rollback().await.map_err(fail)
                }
                None => Err(self.missing()),
            }
        })
        .await
    }

    async fn put(&self, document: &Document) -> Result<()> {
        let rows = rows(document)?;
        self.with(async |client| {
            let fail = |error| failed("write a document", &error);
            let transaction = client.transaction().await.map_err(fail)?;
            self.write(&transaction, &document.record_id, rows).await?;
            transaction.commit().await.map_err(fail)
        })
        .await
    }

    async fn delete(&self, record_id: &str, _name: &str) -> Result<()> {
        self.with(async |client| {
            let table = match self.usable(client).await? {
                Some(table) => table,
                None if self.create_table => return Ok(()),
                None => return Err(self.missing()),
            };
            client
                .query_typed(
                    &format!("DELETE FROM {} WHERE record_id = $1", table.name),
                    &[(&record_id, Type::TEXT)],
                )
                .await
                .map_err(|error| failed(&format!("delete from table {}", table.name), &error))?;
            Ok(())
        })
        .await
    }
}

/// Whether the table has the columns that can't be missing.
fn verified(table: Table) -> Result<Table> {
    let invalid = |message: String| Err(ConnectorError::new(ErrorKind::Invalid, message));
    if table.column("record_id").is_none() {
        return invalid(format!(
            "table {0} lacks the column that names documents; add it with: ALTER TABLE {0} ADD COLUMN record_id \
             varchar; CREATE INDEX ON {0} (record_id);",
            table.name
        ));
    }
    match table.column("id") {
        None => invalid(format!(
            "table {0} lacks the column that names rows; add it with: ALTER TABLE {0} ADD COLUMN id uuid PRIMARY \
             KEY;",
            table.name
        )),
        Some(id) if !matches!(&*id.kind, "uuid" | "text" | "character varying") => invalid(format!(
            "column id of table {} must be of type uuid, text or varchar, not {}",
            table.name, id.kind
        )),
        Some(id) if !id.unique => invalid(format!(
            "column id of table {0} must be unique; make it so with: ALTER TABLE {0} ADD PRIMARY KEY (id);",
            table.name
        )),
        Some(_) => Ok(table),
    }
}

fn create_statement(name: &str, embeddings: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {name} (id uuid PRIMARY KEY, record_id varchar NOT NULL, element_id varchar, type \
         varchar, text text, embeddings {embeddings}, metadata jsonb); CREATE INDEX ON {name} (record_id);"
    )
}

/// The columns to write: those of the table that docmill knows of or that an element has a field for.
fn columns(table: &Table, rows: &[Row]) -> Result<Vec<String>> {
    if table.column("embeddings").is_none() && rows.iter().any(|row| row.element.contains_key("embeddings")) {
        let message = format!(
            "table {} has no column `embeddings` for the embeddings of the elements",
            table.name
        );
        return Err(ConnectorError::new(ErrorKind::Invalid, message));
    }
    let mut fields: BTreeSet<&str> = METADATA.iter().copied().collect();
    for row in rows {
        if let Some(metadata) = row.element.get("metadata").and_then(Value::as_object) {
            fields.extend(metadata.keys().map(String::as_str));
        }
    }
    let names = table.columns.iter().map(|column| &column.name);
    Ok(names
        .filter(|name| OWN.contains(&name.as_str()) || fields.contains(name.as_str()))
        .cloned()
        .collect())
}

/// PostgreSQL itself turns JSON into whatever types the columns have: numbers, arrays, vectors, JSON.
fn upsert_statement(table: &Table, columns: &[String]) -> String {
    let names: Vec<_> = columns.iter().map(|name| quote(name)).collect();
    let others = names.iter().filter(|name| *name != "\"id\"");
    let updates: Vec<_> = others.map(|name| format!("{name} = EXCLUDED.{name}")).collect();
    let names = names.join(", ");
    format!(
        "INSERT INTO {0} ({names}) SELECT {names} FROM json_populate_recordset(NULL::{0}, $1::text::json) ON CONFLICT \
         (id) DO UPDATE SET {1}",
        table.name,
        updates.join(", ")
    )
}

/// A row as JSON text, its keys the columns.
fn json_row(record_id: &str, row: Row, columns: &[String]) -> String {
    let mut element = row.element;
    let metadata = element.remove("metadata").unwrap_or_else(|| Value::Object(Map::new()));
    let mut json = Map::new();
    for column in columns {
        let value = match &**column {
            "id" => Some(row.id.to_string().into()),
            "record_id" => Some(record_id.into()),
            "metadata" => Some(metadata.clone()),
            name if OWN.contains(&name) => element.get(name).cloned(),
            name => ["", "data_source", "coordinates"]
                .iter()
                .find_map(|inner| match *inner {
                    "" => metadata.get(name).cloned(),
                    inner => metadata.get(inner)?.get(name).cloned(),
                }),
        };
        if let Some(mut value) = value {
            without_nul(&mut value);
            json.insert(column.clone(), value);
        }
    }
    Value::Object(json).to_string()
}

/// PostgreSQL's texts can't hold the character NUL; it is replaced.
fn without_nul(value: &mut Value) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{fffd}"),
            Value::Array(items) => left.extend(items),
            Value::Object(map) => {
                if map.keys().any(|key| key.contains('\0')) {
                    *map = std::mem::take(map)
                        .into_iter()
                        .map(|(key, value)| (key.replace('\0', "\u{fffd}"), value))
                        .collect();
                }
                left.extend(map.values_mut());
            }
            _ => {}
        }
    }
}
