//! Sources: where files come from.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use docmill_model::connector::ConnectorRole;
use docmill_store::Principal;
use serde_json::Value;

use super::connectors::Connectors;
use crate::App;
use crate::auth::Caller;
use crate::body::JsonObject;
use crate::dto::{ConnectorInformation, CreateConnector, DagNodeConnectionCheck, ErrorBody, UpdateConnector};
use crate::error::ApiResult;
use crate::extract::PathText;
use crate::query::Query;

fn sources<'a>(app: &'a App, principal: &'a Principal) -> Connectors<'a> {
    Connectors {
        app,
        principal,
        role: ConnectorRole::Source,
    }
}

/// List sources, oldest first.
#[utoipa::path(get, path = "/sources", tag = "sources", operation_id = "list_sources",
    params(("source_type" = Option<String>, Query, description = "Only those of this type.")),
    responses((status = 200, body = Vec<ConnectorInformation>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    query: Query,
) -> ApiResult<Json<Vec<ConnectorInformation>>> {
    sources(&app, &principal).list(query).await
}

/// Create a source.
#[utoipa::path(post, path = "/sources", tag = "sources", operation_id = "create_source",
    request_body = CreateConnector,
    responses((status = 200, body = ConnectorInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    Caller(principal): Caller,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<ConnectorInformation>> {
    sources(&app, &principal).create(&body).await
}

/// Get a source.
#[utoipa::path(get, path = "/sources/{source_id}", tag = "sources", operation_id = "get_source",
    params(("source_id" = String, Path, description = "Id or key.")),
    responses((status = 200, body = ConnectorInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<ConnectorInformation>> {
    sources(&app, &principal).get(&which).await
}

/// Replace a source's settings.
#[utoipa::path(put, path = "/sources/{source_id}", tag = "sources", operation_id = "update_source",
    params(("source_id" = String, Path, description = "Id or key.")),
    request_body = UpdateConnector,
    responses((status = 200, body = ConnectorInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn update(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<ConnectorInformation>> {
    sources(&app, &principal).update(&which, &body).await
}

/// Delete a source no workflow uses.
#[utoipa::path(delete, path = "/sources/{source_id}", tag = "sources", operation_id = "delete_source",
    params(("source_id" = String, Path, description = "Id or key.")),
    responses((status = 200, description = "Deleted; the body is an empty object."), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<Value>> {
    sources(&app, &principal).delete(&which).await
}

/// Start to check a source's connection.
#[utoipa::path(post, path = "/sources/{source_id}/connection-check", tag = "sources", operation_id = "create_connection_check_sources",
    params(("source_id" = String, Path, description = "Id or key.")),
    responses((status = 202, body = DagNodeConnectionCheck), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn start_check(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<(StatusCode, Json<DagNodeConnectionCheck>)> {
    let check = sources(&app, &principal).start_check(&which).await?;
    Ok((StatusCode::ACCEPTED, check))
}

/// Get the latest check of a source's connection.
#[utoipa::path(get, path = "/sources/{source_id}/connection-check", tag = "sources", operation_id = "get_connection_check_sources",
    params(("source_id" = String, Path, description = "Id or key.")),
    responses((status = 200, body = DagNodeConnectionCheck), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn check(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<DagNodeConnectionCheck>> {
    sources(&app, &principal).check(&which).await
}
