//! The rows of a table, each as a file.

use async_trait::async_trait;
use bytes::Bytes;
use docmill_model::connector::SourceObject;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use serde_json::json;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::error::failed;
use super::pool::Pool;
use super::table::{Column, Lookup, Table, get};
use crate::{ConnectorError, ErrorKind, Result, Source};

pub(super) struct PostgresSource {
    pool: Pool,
    lookup: Lookup,
    page: usize,
    id_column: String,
    fields: Vec<String>,
}

/// The form a row takes as a file.
enum Form {
    /// The bytes of one column.
    Raw,
    /// The text of one column.
    Text,
    /// A CSV table with a head and one row.
    Csv,
}

/// The table with what the settings choose of it.
struct Chosen {
    table: Table,
    id: Column,
    columns: Vec<Column>,
}

impl PostgresSource {
    pub(super) fn new(pool: Pool, table: String, page: usize, id_column: String, fields: Vec<String>) -> Self {
        Self {
            pool,
            lookup: Lookup::new(table),
            page: page.max(1),
            id_column,
            fields,
        }
    }

    async fn chosen(&self, client: &Client) -> Result<Chosen> {
        let table = self.lookup.table(client).await?;
        let table = table.ok_or_else(|| self.lookup.missing(""))?;
        let id = table.require(&self.id_column)?.clone();
        let columns = if self.fields.is_empty() {
            table.columns.clone()
        } else {
            let chosen = self.fields.iter().map(|name| table.require(name).cloned());
            chosen.collect::<Result<_>>()?
        };
        Ok(Chosen { table, id, columns })
    }

    /// A connection and the table; what is known of the table is forgotten when something fails.
    async fn with<T>(&self, work: impl AsyncFnOnce(&Client, &Chosen) -> Result<T>) -> Result<T> {
        let result = self
            .pool
            .with(async |client| {
                let chosen = self.chosen(client).await?;
                work(client, &chosen).await
            })
            .await;
        if result.is_err() {
            self.lookup.forget().await;
        }
        result
    }

    async fn page(&self, after: Option<String>) -> Result<Vec<SourceObject>> {
        self.with(async |client, chosen| {
            let sql = chosen.list_statement(after.is_some(), self.page);
            let rows = match &after {
                Some(after) => client.query_typed(&sql, &[(after, Type::TEXT)]).await,
                None => client.query_typed(&sql, &[]).await,
            };
            let rows = rows.map_err(|error| failed(&format!("list table {}", chosen.table.name), &error))?;
            rows.iter().map(|row| chosen.object(row)).collect()
        })
        .await
    }
}

impl Chosen {
    fn form(&self) -> Form {
        match self.columns.as_slice() {
            [column] if column.kind == "bytea" => Form::Raw,
            [_] => Form::Text,
            _ => Form::Csv,
        }
    }

    /// Ids and versions in the order of the ids, a page long. The transaction that wrote a row last changes
    /// with every update and costs nothing to read; where there is none, all columns are hashed.
    fn list_statement(&self, after: bool, page: usize) -> String {
        // With the table's name, or ORDER BY would mean the text that is returned under the column's name.
        let id = format!("t.{}", self.id.quoted());
        let version = if self.table.has_xmin {
            "t.tableoid::text || '.' || t.xmin::text".to_owned()
        } else {
            let texts: Vec<_> = self
                .columns
                .iter()
                .map(|column| format!("{}::text", column.quoted()))
                .collect();
            format!("md5(jsonb_build_array({})::text)", texts.join(", "))
        };
        let condition = if after {
            format!("{id} > $1::text::{}", self.id.kind)
        } else {
            format!("{id} IS NOT NULL")
        };
        format!(
            "SELECT {id}::text, {version} FROM {} t WHERE {condition} ORDER BY {id} LIMIT {page}",
            self.table.name
        )
    }

    /// The bytes of a row, unless there are more than `$2`: size, and a value for every column.
    fn fetch_statement(&self) -> String {
        let values: Vec<_> = self
            .columns
            .iter()
            .map(|column| match self.form() {
                Form::Raw => column.quoted(),
                _ => format!("convert_to({}::text, 'UTF8')", column.quoted()),
            })
            .collect();
        let sizes: Vec<_> = values
            .iter()
            .map(|value| format!("coalesce(octet_length({value}), 0)::bigint"))
            .collect();
        let size = sizes.join(" + ");
        let guarded: Vec<_> = values
            .iter()
            .map(|value| format!("CASE WHEN {size} <= $2::text::bigint THEN {value} END"))
            .collect();
        format!(
            "SELECT {size}, {} FROM {} WHERE {} = $1::text::{} LIMIT 2",
            guarded.join(", "),
            self.table.name,
            self.id.quoted(),
            self.id.kind
        )
    }

    fn object(&self, row: &Row) -> Result<SourceObject> {
        let (id, version): (String, String) = (get(row, 0)?, get(row, 1)?);
        let (extension, content_type) = match self.form() {
            Form::Raw => ("", None),
            Form::Text => (".txt", Some("text/plain")),
            Form::Csv => (".csv", Some("text/csv")),
        };
        Ok(SourceObject {
            name: format!("{}/{id}{extension}", self.table.plain),
            size: None,
            version: Some(version.clone()),
            content_type: content_type.map(str::to_owned),
            data_source: json!({
                "version": version,
                "record_locator": {"table": self.table.plain, "id_column": self.id.name, "id": id},
            }),
            locator: id,
        })
    }

    fn content(&self, row: &Row) -> Result<Bytes> {
        let values = (1..=self.columns.len()).map(|index| get::<Option<Vec<u8>>>(row, index));
        let values: Vec<_> = values.collect::<Result<_>>()?;
        if !matches!(self.form(), Form::Csv) {
            return Ok(values.into_iter().flatten().next().unwrap_or_default().into());
        }
        let mut csv = Vec::new();
        write_line(&mut csv, self.columns.iter().map(|column| column.name.as_bytes()));
        write_line(
            &mut csv,
            values.iter().map(|value| value.as_deref().unwrap_or_default()),
        );
        Ok(csv.into())
    }
}

/// A line of CSV; every value is in quotes, so that nothing in it can end it.
fn write_line<'a>(csv: &mut Vec<u8>, values: impl Iterator<Item = &'a [u8]>) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            csv.push(b',');
        }
        csv.push(b'"');
        for byte in value {
            if *byte == b'"' {
                csv.push(b'"');
            }
            csv.push(*byte);
        }
        csv.push(b'"');
    }
    csv.extend_from_slice(b"\r\n");
}

#[async_trait]
impl Source for PostgresSource {
    async fn check(&self) -> Result<()> {
        self.lookup.forget().await;
        self.with(async |client, chosen| {
            let fail = |error| failed(&format!("read table {}", chosen.table.name), &error);
            let rows = client
                .query_typed(&chosen.list_statement(false, 1), &[])
                .await
                .map_err(fail)?;
            if let Some(row) = rows.first() {
                // One row that is too large is no reason to refuse the table, so no bytes are asked for.
                let (id, none): (String, &str) = (get(row, 0)?, "-1");
                let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
                    [(&id, Type::TEXT), (&none, Type::TEXT)];
                client
                    .query_typed(&chosen.fetch_statement(), &parameters)
                    .await
                    .map_err(fail)?;
            }
            Ok(())
        })
        .await
    }

    fn list(&self, after: Option<String>) -> BoxStream<'_, Result<SourceObject>> {
        stream::try_unfold(Some(after), move |state| async move {
            let Some(after) = state else {
                return Ok::<_, ConnectorError>(None);
            };
            let page = self.page(after).await?;
            let next = (page.len() == self.page).then(|| page.last().map(|last| Some(last.locator.clone())));
            Ok((!page.is_empty()).then(|| (stream::iter(page.into_iter().map(Ok)), next.flatten())))
        })
        .try_flatten()
        .boxed()
    }

    async fn fetch(&self, object: &SourceObject, max_bytes: u64) -> Result<Bytes> {
        let limit = max_bytes.min(i64::MAX as u64).to_string();
        self.with(async |client, chosen| {
            let table = &chosen.table.name;
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
                [(&object.locator, Type::TEXT), (&limit, Type::TEXT)];
            let rows = client.query_typed(&chosen.fetch_statement(), &parameters).await;
            let rows = rows.map_err(|error| failed(&format!("read a row of table {table}"), &error))?;
            let (kind, message) = match rows.as_slice() {
                [] => (
                    ErrorKind::Missing,
                    format!("table {table} has no row `{}` any more", object.locator),
                ),
                [row] if get::<i64>(row, 0)? <= i64::try_from(max_bytes).unwrap_or(i64::MAX) => {
                    return chosen.content(row);
                }
                [_] => (
                    ErrorKind::TooLarge,
                    format!(
                        "row `{}` of table {table} has more than the {max_bytes} bytes a file may have",
                        object.locator
                    ),
                ),
                _ => (
                    ErrorKind::Invalid,
                    format!(
                        "table {table} has several rows whose {} is `{}`; the setting id_column needs a column \
                         without repetitions",
                        chosen.id.name, object.locator
                    ),
                ),
            };
            Err(ConnectorError::new(kind, message))
        })
        .await
    }
}
