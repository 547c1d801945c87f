//! From rows to records.

use std::str::FromStr;

use docmill_model::Code;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::{FileAction, FileInput, Result, StoreError};

pub(super) fn id<T: FromStr>(row: &SqliteRow, column: &str) -> Result<T> {
    parse_id(row.try_get::<&str, _>(column)?)
}

pub(super) fn parse_id<T: FromStr>(text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| StoreError::Corrupt(format!("`{text}` is no id")))
}

/// A value of one of the model's text enums.
pub(super) fn word<T>(row: &SqliteRow, column: &str, parse: fn(&str) -> Option<T>) -> Result<T> {
    let text = row.try_get::<&str, _>(column)?;
    parse(text).ok_or_else(|| StoreError::Corrupt(format!("`{text}` in column {column}")))
}

pub(super) fn json<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T> {
    let text = row.try_get::<&str, _>(column)?;
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
}

pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn count(row: &SqliteRow, column: &str) -> Result<u64> {
    Ok(row.try_get::<i64, _>(column)?.max(0) as u64)
}

/// The column's word for an action.
pub(super) fn action_word(action: FileAction) -> &'static str {
    match action {
        FileAction::Process => "process",
        FileAction::Delete => "delete",
    }
}

/// A size a column can hold.
pub(super) fn size_column(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Where a file's bytes are, from its columns `blob_key`, `source_id`, `object` and `action`.
pub(super) fn input(row: &SqliteRow) -> Result<FileInput> {
    if row.try_get::<Option<&str>, _>("source_id")?.is_none() {
        return Ok(FileInput::Blob(row.try_get("blob_key")?));
    }
    Ok(FileInput::Source {
        source: id(row, "source_id")?,
        object: json(row, "object")?,
        action: match row.try_get("action")? {
            "delete" => FileAction::Delete,
            _ => FileAction::Process,
        },
    })
}

pub(super) fn code(text: &str) -> Code {
    Code::ALL
        .iter()
        .copied()
        .find(|code| code.as_str() == text)
        .unwrap_or(Code::Internal)
}
