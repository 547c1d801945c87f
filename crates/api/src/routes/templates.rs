//! Templates.

use axum::Json;
use docmill_model::Code;
use docmill_model::template::{TEMPLATES, find};

use crate::auth::Caller;
use crate::dto::{ErrorBody, TemplateDetail, TemplateListItem};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathText;

/// List templates.
#[utoipa::path(get, path = "/templates", tag = "templates", operation_id = "list_templates",
    responses((status = 200, body = Vec<TemplateListItem>), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(_caller: Caller) -> Json<Vec<TemplateListItem>> {
    Json(TEMPLATES.iter().map(TemplateListItem::from).collect())
}

/// Get a template with its nodes.
#[utoipa::path(get, path = "/templates/{template_id}", tag = "templates", operation_id = "get_template",
    params(("template_id" = String, Path)),
    responses((status = 200, body = TemplateDetail), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(_caller: Caller, PathText(id): PathText) -> ApiResult<Json<TemplateDetail>> {
    match find(&id) {
        Some(template) => Ok(Json(template.into())),
        None => Err(ApiError::new(
            Code::NotFound,
            format!("Template {} not found", id.chars().take(64).collect::<String>()),
        )),
    }
}
