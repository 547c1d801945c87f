//! Which scope, channel and delivery a path names.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use docmill_model::Code;
use docmill_model::channel::{ChannelId, ChannelScope};
use docmill_model::ids::WorkspaceId;
use docmill_store::{Channel, ChannelRef};

use super::not_found;
use crate::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// A workspace, or one of its workflows.
pub(crate) struct Place {
    pub(super) workspace: WorkspaceId,
    pub(super) scope: ChannelScope,
}

/// A channel that is there. What is no id names nothing, so it is not found either; and another workspace's or
/// scope's channel is looked up just as one that never was.
pub(crate) struct Named(pub(crate) Channel);

impl FromRequestParts<App> for Place {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Caller(principal) = Caller::from_request_parts(parts, app).await?;
        let workspace = principal.workspace;
        let scope = match parameter(parts, "workflow_id").await? {
            None => ChannelScope::Workspace,
            Some(which) => {
                let workflow = app.engine.store().workflow(workspace, &which).await?;
                let workflow = workflow.ok_or_else(|| ApiError::not_found("Workflow"))?;
                ChannelScope::Workflow(workflow.id)
            }
        };
        Ok(Self { workspace, scope })
    }
}

impl FromRequestParts<App> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Place { workspace, scope } = Place::from_request_parts(parts, app).await?;
        let id = parameter(parts, "channel_id").await?.unwrap_or_default();
        let id: ChannelId = id.parse().map_err(|_| not_found())?;
        let channel = ChannelRef { workspace, scope, id };
        app.engine
            .store()
            .channel(channel)
            .await?
            .map(Self)
            .ok_or_else(not_found)
    }
}

/// A parameter of the path, if its route has it.
pub(crate) async fn parameter(parts: &mut Parts, name: &str) -> Result<Option<String>, ApiError> {
    let parameters = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| ApiError::new(Code::NotFound, "Not Found"))?;
    let found = parameters.iter().find(|(found, _)| *found == name);
    Ok(found.map(|(_, value)| value.to_owned()))
}
