//! Notification channels of a workspace or of one workflow. Both have the same operations: the routes are
//! mounted twice, and an extractor tells which scope a request is about.

mod place;
mod read;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use docmill_engine::ChannelRefused;
use docmill_model::Code;
use docmill_model::channel::ChannelKind;
use docmill_store::{Channel, ChannelRef, CodeBound, CodeIssue, CodeRefusal, CodeTry, StoreError};
use serde_json::{Value, json};

use self::place::Place;
pub(super) use self::place::{Named, parameter};
use crate::App;
use crate::body::{Fields, JsonObject, OptionalObject};
use crate::dto::{
    ChannelInformation, ChannelList, CreateChannel, ErrorBody, RotateSecret, RotatedSecret, UpdateChannel,
    VerifyChannel,
};
use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// List the channels of a type.
#[utoipa::path(get, path = "/notifications/channels", tag = "channels", operation_id = "list_channels",
    params(
        ("channel_type" = String, Query, description = "`email` or `webhook`."),
        ("enabled" = Option<bool>, Query, description = "Only those that are, or are not, enabled."),
    ),
    responses((status = 200, body = ChannelList), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(State(app): State<App>, place: Place, mut query: Query) -> ApiResult<Json<ChannelList>> {
    let kind = query.required_word("channel_type", ChannelKind::ALL);
    let enabled = query.boolean("enabled");
    query.finish()?;
    let kind = kind.unwrap_or(ChannelKind::Email);
    let store = app.engine.store();
    let channels = store.channels(place.workspace, place.scope, kind, enabled).await?;
    let items = channels.into_iter().map(|channel| shown(&app, channel)).collect();
    Ok(Json(ChannelList { items }))
}

/// Create a channel. A mail channel is disabled until it is verified with the code that its address is sent.
#[utoipa::path(post, path = "/notifications/channels", tag = "channels", operation_id = "create_channel",
    request_body = CreateChannel,
    responses((status = 201, body = ChannelInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn create(
    State(app): State<App>,
    place: Place,
    JsonObject(body): JsonObject,
) -> ApiResult<(StatusCode, Json<ChannelInformation>)> {
    let request = read::request(&body)?;
    let created = app
        .engine
        .create_channel(place.workspace, place.scope, request, &[json!("body")])
        .await
        .map_err(refused)?;
    let answer = shown(&app, created.channel).with_secret(created.secret);
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Get a channel.
#[utoipa::path(get, path = "/notifications/channels/{channel_id}", tag = "channels", operation_id = "get_channel",
    params(("channel_id" = String, Path)),
    responses((status = 200, body = ChannelInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(State(app): State<App>, Named(channel): Named) -> Json<ChannelInformation> {
    Json(shown(&app, channel))
}

/// Change a verified channel. With another recipient it has to be verified again.
#[utoipa::path(patch, path = "/notifications/channels/{channel_id}", tag = "channels", operation_id = "update_channel",
    params(("channel_id" = String, Path)),
    request_body = UpdateChannel,
    responses((status = 200, body = ChannelInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn update(
    State(app): State<App>,
    Named(channel): Named,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<ChannelInformation>> {
    let patch = read::patch(&body)?;
    if channel.verified_at.is_none() {
        return Err(not_verified());
    }
    let changed = app
        .engine
        .update_channel(channel.channel, patch, &[json!("body")])
        .await
        .map_err(refused)?;
    Ok(Json(shown(&app, changed)))
}

/// Delete a channel. What waits for it is not sent any more.
#[utoipa::path(delete, path = "/notifications/channels/{channel_id}", tag = "channels", operation_id = "delete_channel",
    params(("channel_id" = String, Path)),
    responses((status = 204, description = "Deleted"), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn delete(State(app): State<App>, Named(channel): Named) -> ApiResult<StatusCode> {
    match app.engine.delete_channel(channel.channel).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found()),
    }
}

/// Verify a mail channel with the code that its address was sent. A channel that is verified stays so.
#[utoipa::path(post, path = "/notifications/channels/{channel_id}/verify", tag = "channels", operation_id = "verify_channel",
    params(("channel_id" = String, Path)),
    request_body = VerifyChannel,
    responses((status = 204, description = "Verified"), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn verify(
    State(app): State<App>,
    Named(channel): Named,
    JsonObject(body): JsonObject,
) -> ApiResult<StatusCode> {
    let code = read::code(&body)?;
    let tried = app.engine.verify_channel(channel.channel, code).await?;
    match tried.ok_or_else(not_found)? {
        CodeTry::Verified | CodeTry::AlreadyVerified => Ok(StatusCode::NO_CONTENT),
        CodeTry::Wrong { left } => Err(ApiError::new(
            Code::VerificationCodeWrong,
            format!("the code is wrong; tries left: {left}"),
        )),
        CodeTry::Expired => Err(ApiError::new(
            Code::VerificationCodeExpired,
            "the code is not good any more; have another sent",
        )),
        CodeTry::Exceeded { wait } => {
            let error = ApiError::new(
                Code::VerificationAttemptsExceeded,
                "too many wrong codes were tried; have another code sent",
            );
            Err(if wait > 0 { error.wait(wait) } else { error })
        }
    }
}

/// Send a mail channel another code. The one before is good no more.
#[utoipa::path(post, path = "/notifications/channels/{channel_id}/resend", tag = "channels", operation_id = "resend_channel_code",
    params(("channel_id" = String, Path)),
    responses((status = 202, description = "On its way", body = ChannelInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn resend(
    State(app): State<App>,
    Named(channel): Named,
) -> ApiResult<(StatusCode, Json<ChannelInformation>)> {
    let issue = app.engine.resend_code(channel.channel).await.map_err(refused)?;
    match issue.ok_or_else(not_found)? {
        CodeIssue::Issued => Ok((StatusCode::ACCEPTED, Json(shown(&app, channel)))),
        CodeIssue::AlreadyVerified => Err(state_conflict("the channel needs no code: it is verified")),
        CodeIssue::Refused(refusal) => Err(too_many_codes(refusal)),
    }
}

/// Give a webhook a new secret. The one before signs beside it for a while, 24 hours unless set otherwise.
#[utoipa::path(post, path = "/notifications/channels/{channel_id}/secret/rotate", tag = "channels", operation_id = "rotate_channel_secret",
    params(("channel_id" = String, Path)),
    request_body(content = Option<RotateSecret>),
    responses((status = 200, body = RotatedSecret), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn rotate(
    State(app): State<App>,
    Named(channel): Named,
    OptionalObject(body): OptionalObject,
) -> ApiResult<Json<RotatedSecret>> {
    let mut fields = Fields::new(&body);
    fields.only(&["secret"]);
    let secret = fields.text("secret").map(str::to_owned);
    fields.finish()?;
    let secret = app
        .engine
        .rotate_secret(channel.channel, secret, &[json!("body")])
        .await
        .map_err(refused)?;
    Ok(Json(RotatedSecret { secret }))
}

pub(super) fn shown(app: &App, channel: Channel) -> ChannelInformation {
    ChannelInformation::new(channel, app.engine.mails_are_files())
}

pub(super) fn not_found() -> ApiError {
    ApiError::not_found("Channel")
}

pub(super) fn state_conflict(why: &str) -> ApiError {
    ApiError::new(Code::ChannelStateConflict, why)
}

fn not_verified() -> ApiError {
    ApiError::new(
        Code::ChannelNotVerified,
        "the channel is not verified; verify it with the code from the mail first",
    )
}

/// Why nothing can be sent to a channel that was there a moment ago.
pub(super) async fn silent(app: &App, channel: ChannelRef) -> ApiError {
    match app.engine.store().channel(channel).await {
        Ok(Some(channel)) if channel.verified_at.is_none() => not_verified(),
        Ok(Some(_)) => state_conflict("the channel is disabled; set `enabled` to true to send to it"),
        Ok(None) => not_found(),
        Err(error) => error.into(),
    }
}

fn too_many_codes(refusal: CodeRefusal) -> ApiError {
    let why = match refusal.bound {
        CodeBound::CoolDown => "the last code was sent a moment ago (setting `channels.code_cool_down_secs`)",
        CodeBound::Channel => "the channel was sent enough codes for today (setting `channels.codes_per_day`)",
        CodeBound::Mailbox => "the address was sent enough codes for today (setting `channels.codes_per_day`)",
        CodeBound::Workspace => {
            "enough codes were sent for the workspace today (setting `channels.workspace_codes_per_day`)"
        }
        CodeBound::WrongTries => "too many wrong codes were tried today (setting `channels.wrong_codes_per_day`)",
    };
    ApiError::new(Code::RateLimited, why).wait(refusal.wait)
}

fn refused(error: ChannelRefused) -> ApiError {
    match error {
        ChannelRefused::Invalid(problems) => ApiError::problems(Code::ValidationFailed, &problems),
        ChannelRefused::NotFound => not_found(),
        ChannelRefused::NotVerified => not_verified(),
        ChannelRefused::Full { max } => ApiError::new(
            Code::TooManyChannels,
            format!("there are {max} channels already, as many as may be (setting `channels.max_per_scope`)"),
        ),
        ChannelRefused::Codes(refusal) => too_many_codes(refusal),
        ChannelRefused::NotWebhook => state_conflict("only channels of type webhook have a secret"),
        ChannelRefused::Store(StoreError::Conflict) => state_conflict(
            "the channel was changed by others at the same time, again and again; nothing of this change was done",
        ),
        ChannelRefused::Store(error) => error.into(),
        ChannelRefused::Vault(error) => {
            tracing::error!(%error, "a channel's secret");
            ApiError::new(Code::Internal, "Internal server error")
        }
    }
}

/// Where a request's body is, for problems.
fn at(names: &[&str]) -> Vec<Value> {
    std::iter::once("body")
        .chain(names.iter().copied())
        .map(Value::from)
        .collect()
}
