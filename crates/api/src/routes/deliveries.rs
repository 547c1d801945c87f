//! What was sent to a channel, and sending again.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use docmill_engine::TestSend;
use docmill_model::Code;
use docmill_model::channel::DeliveryState;
use docmill_model::ids::DeliveryId;
use docmill_model::time::parse_iso8601;
use docmill_store::{ChannelRef, Delivery, DeliveryFilter, Replay};

use crate::App;
use crate::body::{Fields, JsonObject};
use crate::dto::{AttemptList, DeliveryInformation, DeliveryList, ErrorBody, ReplayFailed, Replayed, TestSent};
use crate::error::{ApiError, ApiResult};
use crate::query::Query;
use crate::routes::channels::{Named, not_found, parameter, silent, state_conflict};

/// Deliveries of one page at most.
const MAX_LIMIT: u64 = 100;
/// Deliveries of one page by default.
const LIMIT: u64 = 50;

/// A delivery that is there.
pub(crate) struct Found {
    channel: ChannelRef,
    delivery: Delivery,
}

impl FromRequestParts<App> for Found {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Named(channel) = Named::from_request_parts(parts, app).await?;
        let channel = channel.channel;
        let id = parameter(parts, "delivery_id").await?.unwrap_or_default();
        let id: DeliveryId = id.parse().map_err(|_| no_delivery())?;
        let delivery = app.engine.store().delivery(channel, id).await?;
        let delivery = delivery.ok_or_else(no_delivery)?;
        Ok(Self { channel, delivery })
    }
}

fn no_delivery() -> ApiError {
    ApiError::not_found("Delivery")
}

/// Send a channel a test, at most every ten seconds.
#[utoipa::path(post, path = "/notifications/channels/{channel_id}/test", tag = "channels", operation_id = "test_channel",
    params(("channel_id" = String, Path)),
    responses((status = 202, body = TestSent), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn test(State(app): State<App>, Named(channel): Named) -> ApiResult<(StatusCode, Json<TestSent>)> {
    match app.engine.send_test(channel.channel).await? {
        TestSend::Sent(id) => Ok((
            StatusCode::ACCEPTED,
            Json(TestSent {
                delivery_id: id.to_string(),
            }),
        )),
        TestSend::NotFound => Err(not_found()),
        TestSend::Disabled => Err(silent(&app, channel.channel).await),
        TestSend::TooSoon { wait } => {
            Err(ApiError::new(Code::RateLimited, "the last test was sent a moment ago").wait(wait))
        }
    }
}

/// List what was sent to a channel, or is to be; newest first.
#[utoipa::path(get, path = "/notifications/channels/{channel_id}/deliveries", tag = "channels", operation_id = "list_deliveries",
    params(
        ("channel_id" = String, Path),
        ("state" = Option<String>, Query, description = "Only those that are `pending`, `delivered`, `failed` or `cancelled`."),
        ("limit" = Option<u64>, Query, description = "Deliveries of a page, 1 to 100; 50 by default."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses((status = 200, body = DeliveryList), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Named(channel): Named,
    mut query: Query,
) -> ApiResult<Json<DeliveryList>> {
    let state = query.word("state", DeliveryState::ALL);
    let limit = query.integer("limit", 1, MAX_LIMIT).unwrap_or(LIMIT);
    let before = query.read("cursor", "value_error", "input should be a `next_cursor`", |text| {
        text.parse().ok()
    });
    query.finish()?;
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let filter = DeliveryFilter {
        state,
        before,
        limit: limit.saturating_add(1),
    };
    let found = app.engine.store().deliveries(channel.channel, filter).await?;
    let mut found = found.ok_or_else(not_found)?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| last.seq.to_string());
    Ok(Json(DeliveryList {
        deliveries: found.into_iter().map(DeliveryInformation::from).collect(),
        next_cursor,
    }))
}

/// Get a delivery.
#[utoipa::path(get, path = "/notifications/channels/{channel_id}/deliveries/{delivery_id}", tag = "channels", operation_id = "get_delivery",
    params(("channel_id" = String, Path), ("delivery_id" = String, Path)),
    responses((status = 200, body = DeliveryInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(found: Found) -> Json<DeliveryInformation> {
    Json(found.delivery.into())
}

/// List the attempts of a delivery, with what the receiver answered.
#[utoipa::path(get, path = "/notifications/channels/{channel_id}/deliveries/{delivery_id}/attempts", tag = "channels", operation_id = "list_attempts",
    params(("channel_id" = String, Path), ("delivery_id" = String, Path)),
    responses((status = 200, body = AttemptList), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn attempts(State(app): State<App>, found: Found) -> ApiResult<Json<AttemptList>> {
    let attempts = app.engine.store().attempts(found.channel, found.delivery.id).await?;
    let attempts = attempts.ok_or_else(no_delivery)?;
    Ok(Json(AttemptList {
        attempts: attempts.into_iter().map(Into::into).collect(),
    }))
}

/// Send a delivery again, under the same id.
#[utoipa::path(post, path = "/notifications/channels/{channel_id}/deliveries/{delivery_id}/replay", tag = "channels", operation_id = "replay_delivery",
    params(("channel_id" = String, Path), ("delivery_id" = String, Path)),
    responses((status = 202, body = DeliveryInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn replay(State(app): State<App>, found: Found) -> ApiResult<(StatusCode, Json<DeliveryInformation>)> {
    let (channel, id) = (found.channel, found.delivery.id);
    match app.engine.replay_delivery(channel, id).await? {
        Replay::Replayed => {
            let delivery = app.engine.store().delivery(channel, id).await?;
            Ok((StatusCode::ACCEPTED, Json(delivery.ok_or_else(no_delivery)?.into())))
        }
        Replay::NotFound => Err(no_delivery()),
        Replay::Disabled => Err(silent(&app, channel).await),
        Replay::NotReplayable => Err(state_conflict("a code is never sent twice; have another one sent")),
    }
}

/// Send all events again that failed or were cancelled, from an instant on.
#[utoipa::path(post, path = "/notifications/channels/{channel_id}/deliveries/replay-failed", tag = "channels", operation_id = "replay_failed_deliveries",
    params(("channel_id" = String, Path)),
    request_body = ReplayFailed,
    responses((status = 202, body = Replayed), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn replay_failed(
    State(app): State<App>,
    Named(channel): Named,
    JsonObject(body): JsonObject,
) -> ApiResult<(StatusCode, Json<Replayed>)> {
    let mut fields = Fields::new(&body);
    fields.only(&["since"]);
    let mut since = None;
    if let Some(text) = fields.required_text("since") {
        since = parse_iso8601(text);
        if since.is_none() {
            let msg = "input should be an ISO 8601 date and time, such as 2026-01-31T12:00:00Z";
            fields.problem("since", "datetime_from_date_parsing", msg);
        }
    }
    fields.finish()?;
    let channel = channel.channel;
    match app.engine.replay_failed(channel, since.unwrap_or(i64::MAX)).await? {
        Some(replayed_count) => Ok((StatusCode::ACCEPTED, Json(Replayed { replayed_count }))),
        None => Err(silent(&app, channel).await),
    }
}
