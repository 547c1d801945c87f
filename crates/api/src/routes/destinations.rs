//! Destinations: where elements go.

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

fn destinations<'a>(app: &'a App, principal: &'a Principal) -> Connectors<'a> {
    Connectors {
        app,
        principal,
        role: ConnectorRole::Destination,
    }
}

/// List destinations, oldest first.
#[utoipa::path(get, path = "/destinations", tag = "destinations", operation_id = "list_destinations",
    params(("destination_type" = Option<String>, Query, description = "Only those of this type.")),
    responses((status = 200, body = Vec<ConnectorInformation>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    query: Query,
) -> ApiResult<Json<Vec<ConnectorInformation>>> {
    destinations(&app, &principal).list(query).await
}

/// Create a destination.
#[utoipa::path(post, path = "/destinations", tag = "destinations", operation_id = "create_destination",
    request_body = CreateConnector,
    responses((status = 200, body = ConnectorInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    Caller(principal): Caller,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<ConnectorInformation>> {
    destinations(&app, &principal).create(&body).await
}

/// Get a destination.
#[utoipa::path(get, path = "/destinations/{destination_id}", tag = "destinations", operation_id = "get_destination",
    params(("destination_id" = String, Path, description = "Id or key.")),
    responses((status = 200, body = ConnectorInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<ConnectorInformation>> {
    destinations(&app, &principal).get(&which).await
}

/// Replace a destination's settings.
#[utoipa::path(put, path = "/destinations/{destination_id}", tag = "destinations", operation_id = "update_destination",
    params(("destination_id" = String, Path, description = "Id or key.")),
    request_body = UpdateConnector,
    responses((status = 200, body = ConnectorInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn update(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<ConnectorInformation>> {
    destinations(&app, &principal).update(&which, &body).await
}

/// Delete a destination no workflow uses.
#[utoipa::path(delete, path = "/destinations/{destination_id}", tag = "destinations", operation_id = "delete_destination",
    params(("destination_id" = String, Path, description = "Id or key.")),
    responses((status = 200, description = "Deleted; the body is an empty object."), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<Value>> {
    destinations(&app, &principal).delete(&which).await
}

/// Start to check a destination's connection.
#[utoipa::path(post, path = "/destinations/{destination_id}/connection-check", tag = "destinations", operation_id = "create_connection_check_destinations",
    params(("destination_id" = String, Path, description = "Id or key.")),
    responses((status = 202, body = DagNodeConnectionCheck), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn start_check(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<(StatusCode, Json<DagNodeConnectionCheck>)> {
    let check = destinations(&app, &principal).start_check(&which).await?;
    Ok((StatusCode::ACCEPTED, check))
}

/// Get the latest check of a destination's connection.
#[utoipa::path(get, path = "/destinations/{destination_id}/connection-check", tag = "destinations", operation_id = "get_connection_check_destinations",
    params(("destination_id" = String, Path, description = "Id or key.")),
    responses((status = 200, body = DagNodeConnectionCheck), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn check(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(which): PathText,
) -> ApiResult<Json<DagNodeConnectionCheck>> {
    destinations(&app, &principal).check(&which).await
}
