//! What PostgreSQL's errors mean for a connector.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use crate::{ConnectorError, ErrorKind};

/// An error as a connector tells it; the server's own words are kept, they name table, column and reason.
pub(super) fn failed(what: &str, error: &tokio_postgres::Error) -> ConnectorError {
    let Some(answer) = error.as_db_error() else {
        return ConnectorError::new(transport(error), format!("cannot {what}: {}", chain(error)));
    };
    let hint = answer.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    let code = answer.code();
    let message = format!("cannot {what}: {}{hint} [SQLSTATE {}]", answer.message(), code.code());
    ConnectorError::new(kind(code), message)
}

/// What a broken connection means: TLS that can't work stays broken, all else may pass.
fn transport(error: &tokio_postgres::Error) -> ErrorKind {
    let mut cause = error.source();
    while let Some(inner) = cause {
        let tls = inner
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref())
            .is_some_and(|error| error.is::<rustls::Error>());
        if tls || inner.is::<rustls::Error>() {
            return ErrorKind::Invalid;
        }
        cause = inner.source();
    }
    // The messages are the only way to tell these from a connection that broke.
    let text = error.to_string();
    let for_good = [
        "error performing TLS handshake",
        "invalid configuration",
        "authentication error",
    ];
    if for_good.iter().any(|known| text.contains(known)) {
        return ErrorKind::Invalid;
    }
    let unreadable = ["error deserializing", "error converting", "error serializing"];
    if unreadable.iter().any(|known| text.contains(known)) {
        return ErrorKind::Unexpected;
    }
    ErrorKind::Unavailable
}

fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

fn kind(code: &SqlState) -> ErrorKind {
    let code = code.code();
    match (code, code.get(..2).unwrap_or_default()) {
        ("28P01" | "28000" | "42501", _) | (_, "28") => ErrorKind::Unauthorized,
        ("3D000" | "3F000" | "42P01", _) => ErrorKind::Missing,
        // Too many connections.
        ("53300", _) => ErrorKind::Throttled,
        // Lock not available.
        ("55P03", _) => ErrorKind::Unavailable,
        // Connection, transaction rollback (deadlocks too), resources, operator intervention, system error.
        (_, "08" | "40" | "53" | "57" | "58" | "XX") => ErrorKind::Unavailable,
        // Idle transactions that were ended.
        ("25P02" | "25P03", _) => ErrorKind::Unavailable,
        _ => ErrorKind::Invalid,
    }
}
