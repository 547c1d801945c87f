//! What every connector must do, whatever it connects to.
//!
//! A connector's test makes a rig (the service, and the connector opened on it) and hands it to
//! [`sources::conforms`] or [`destinations::conforms`].

pub(crate) mod destinations;
pub(crate) mod sources;

use std::sync::Arc;

use docmill_connectors::{
    ConnectorError, Destination, Environment, Result, Source, find, open_destination, open_source, validate,
};
use docmill_egress::{Egress, Policy};
use docmill_model::connector::ConnectorRole;
use serde_json::{Map, Value};

/// An environment that may reach everything: tests have their services on the loopback interface.
pub(crate) fn environment() -> Environment {
    Environment {
        egress: Egress::new(Policy::unguarded()),
        local_roots: None,
        ambient_credentials: false,
    }
}

/// Settings with defaults added, as the API stores them.
pub(crate) fn settings(role: ConnectorRole, kind: &str, config: &Value) -> Map<String, Value> {
    let fields = find(role, kind)
        .and_then(|kind| kind.fields(role))
        .expect("the type exists");
    validate(fields, config, &[]).unwrap_or_else(|problems| panic!("settings of {kind}: {problems:?}"))
}

/// Opens a source from settings as a client sends them.
pub(crate) fn source(kind: &str, config: &Value) -> Arc<dyn Source> {
    open_source(&environment(), kind, &settings(ConnectorRole::Source, kind, config)).expect("the source opens")
}

/// Opens a destination from settings as a client sends them.
pub(crate) fn destination(kind: &str, config: &Value) -> Arc<dyn Destination> {
    open_destination(
        &environment(),
        kind,
        &settings(ConnectorRole::Destination, kind, config),
    )
    .expect("the destination opens")
}

/// The error a call must end with.
pub(crate) fn error<T>(result: Result<T>, what: &str) -> ConnectorError {
    match result {
        Ok(_) => panic!("{what} must fail"),
        Err(error) => {
            assert!(
                error.message.len() > 10,
                "{what}: a reason a person can use, not `{error}`"
            );
            error
        }
    }
}
