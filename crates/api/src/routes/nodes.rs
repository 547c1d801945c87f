//! Kinds of nodes.

use axum::Json;
use axum::extract::State;
use docmill_model::chain::catalog::catalog;

use crate::App;
use crate::auth::Caller;
use crate::dto::{ErrorBody, NodeKind};

/// List the kinds of nodes a chain can be made of, each with the JSON Schema of its settings.
#[utoipa::path(get, path = "/nodes", tag = "nodes", operation_id = "list_nodes",
    responses((status = 200, body = Vec<NodeKind>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(State(app): State<App>, _caller: Caller) -> Json<Vec<NodeKind>> {
    let available = app.engine.models().available();
    Json(catalog().iter().map(|entry| NodeKind::of(entry, available)).collect())
}
