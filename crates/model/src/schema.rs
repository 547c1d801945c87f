//! JSON Schemas for extracted data: the subset that structured outputs of chat models understand.
//!
//! [`check`] tells what is outside of it before anybody pays, [`strict`] writes a schema the way providers
//! want it, [`violations`] checks an answer.

mod check;
mod strict;
mod validate;

pub use check::{SchemaProblem, check};
pub use strict::strict;
pub use validate::{Violation, violations};

use serde_json::Value;

/// Levels of objects and arrays a schema may nest.
pub const MAX_NESTING: usize = 10;

/// Properties a schema may have in all.
pub const MAX_PROPERTIES: usize = 5_000;

/// Values the enumerations of a schema may have in all.
pub const MAX_ENUM_VALUES: usize = 1_000;

/// References followed one after the other without a step into the value.
const MAX_HOPS: usize = 32;

/// The schema that `schema` stands for: what its references lead to; `None` if they lead nowhere.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let mut schema = schema;
    for _ in 0..MAX_HOPS {
        let Some(reference) = schema.get("$ref") else {
            return Some(schema);
        };
        let pointer = reference.as_str()?.strip_prefix('#')?;
        schema = root.pointer(pointer)?;
    }
    None
}

/// The types a schema names.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
