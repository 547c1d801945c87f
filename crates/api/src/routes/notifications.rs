//! The inbox of a workspace.

use axum::Json;
use axum::extract::State;
use docmill_engine::now;
use docmill_model::channel::NotificationType;
use docmill_model::ids::{EventId, WorkflowId};
use docmill_model::time::{Micros, parse_iso8601};
use docmill_store::{InboxCursor, InboxFilter, MarkRead, Principal};
use serde_json::{Map, Value};

use crate::App;
use crate::auth::Caller;
use crate::body::{Fields, JsonObject};
use crate::dto::{
    ErrorBody, MarkNotificationsRead, MarkedRead, NotificationInformation, NotificationList, UnreadCount,
};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathText;
use crate::query::{IdOrKey, Query};

/// Notifications of one page at most.
const MAX_LIMIT: u64 = 100;
/// Notifications of one page by default.
const LIMIT: u64 = 50;
/// Notifications marked one by one at most.
const MAX_MARKED: usize = 100;

/// List the notifications of the workspace, newest first.
#[utoipa::path(get, path = "/notifications", tag = "notifications", operation_id = "list_notifications",
    params(
        ("workflow_id" = Option<String>, Query, description = "Only those of this workflow (id or key)."),
        ("event_types" = Option<String>, Query, description = "Only those of these types, separated by commas."),
        ("since" = Option<String>, Query, description = "Only those from this instant on (ISO 8601; UTC unless it says otherwise)."),
        ("limit" = Option<u64>, Query, description = "Notifications of a page, 1 to 100; 50 by default."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
        ("unread_only" = Option<bool>, Query, description = "Only those that are not marked as read."),
    ),
    responses((status = 200, body = NotificationList), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Caller(principal): Caller,
    mut query: Query,
) -> ApiResult<Json<NotificationList>> {
    let workflow = query.id_or_key::<WorkflowId>("workflow_id");
    let types = query.read(
        "event_types",
        "enum",
        "input should be types of events with commas between them",
        |text| {
            text.split(',')
                .map(|word| NotificationType::parse(word.trim()))
                .collect()
        },
    );
    let since = query.instant("since");
    let limit = query.integer("limit", 1, MAX_LIMIT).unwrap_or(LIMIT);
    let after = query.read("cursor", "value_error", "input should be a `next_cursor`", cursor);
    let unread_only = query.boolean("unread_only").unwrap_or(false);
    query.finish()?;
    let Ok(workflow) = resolve(&app, &principal, workflow).await? else {
        return Ok(Json(NotificationList {
            events: Vec::new(),
            next_cursor: None,
        }));
    };
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let filter = InboxFilter {
        workflow,
        types: types.unwrap_or_default(),
        since,
        unread_only,
        after,
        limit: limit.saturating_add(1),
    };
    let mut found = app.engine.store().notifications(principal.workspace, &filter).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| more);
    let next_cursor = last.map(|last| format!("{}.{}", last.created_at, last.id));
    Ok(Json(NotificationList {
        events: found.into_iter().map(NotificationInformation::from).collect(),
        next_cursor,
    }))
}

fn cursor(text: &str) -> Option<InboxCursor> {
    let (created_at, id) = text.split_once('.')?;
    Some(InboxCursor {
        created_at: created_at.parse().ok()?,
        id: id.parse().ok()?,
    })
}

/// There is no workflow with the key asked for.
struct Nobody;

async fn resolve(
    app: &App,
    principal: &Principal,
    which: Option<IdOrKey<WorkflowId>>,
) -> ApiResult<Result<Option<WorkflowId>, Nobody>> {
    Ok(match which {
        None => Ok(None),
        Some(IdOrKey::Id(id)) => Ok(Some(id)),
        Some(IdOrKey::Key(key)) => match app.engine.store().workflow(principal.workspace, &key).await? {
            Some(workflow) => Ok(Some(workflow.id)),
            None => Err(Nobody),
        },
    })
}

/// Get a notification.
#[utoipa::path(get, path = "/notifications/{notification_id}", tag = "notifications", operation_id = "get_notification",
    params(("notification_id" = String, Path)),
    responses((status = 200, body = NotificationInformation), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    Caller(principal): Caller,
    PathText(id): PathText,
) -> ApiResult<Json<NotificationInformation>> {
    let not_found = || ApiError::not_found("Notification");
    let id: EventId = id.parse().map_err(|_| not_found())?;
    let found = app.engine.store().notification(principal.workspace, id).await?;
    Ok(Json(found.ok_or_else(not_found)?.into()))
}

/// Count the notifications that are not marked as read.
#[utoipa::path(get, path = "/notifications/unread-count", tag = "notifications", operation_id = "count_unread_notifications",
    params(("workflow_id" = Option<String>, Query, description = "Only those of this workflow (id or key).")),
    responses((status = 200, body = UnreadCount), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn unread_count(
    State(app): State<App>,
    Caller(principal): Caller,
    mut query: Query,
) -> ApiResult<Json<UnreadCount>> {
    let workflow = query.id_or_key::<WorkflowId>("workflow_id");
    query.finish()?;
    let unread_count = match resolve(&app, &principal, workflow).await? {
        Ok(workflow) => app.engine.store().unread_count(principal.workspace, workflow).await?,
        Err(Nobody) => 0,
    };
    Ok(Json(UnreadCount { unread_count }))
}

/// Mark notifications as read: some, all from before an instant, or all.
#[utoipa::path(post, path = "/notifications/mark-read", tag = "notifications", operation_id = "mark_notifications_read",
    request_body = MarkNotificationsRead,
    responses((status = 200, body = MarkedRead), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn mark_read(
    State(app): State<App>,
    Caller(principal): Caller,
    JsonObject(body): JsonObject,
) -> ApiResult<Json<MarkedRead>> {
    let which = which(&body)?;
    let marked_count = app.engine.store().mark_read(principal.workspace, which, now()).await?;
    Ok(Json(MarkedRead { marked_count }))
}

fn which(body: &Map<String, Value>) -> ApiResult<MarkRead> {
    let mut fields = Fields::new(body);
    fields.only(&["notification_ids", "before", "mark_all", "workflow_id"]);
    let uuid = "input should be a UUID";
    let ids = fields.list("notification_ids", MAX_MARKED, "uuid_parsing", uuid, |item| {
        item.as_str()?.parse::<EventId>().ok()
    });
    let mut before = None;
    if let Some(text) = fields.text("before") {
        before = parse_iso8601(text);
        if before.is_none() {
            let msg = "input should be an ISO 8601 date and time, such as 2026-01-31T12:00:00Z";
            fields.problem("before", "datetime_from_date_parsing", msg);
        }
    }
    let all = fields.boolean("mark_all").unwrap_or(false);
    let mut workflow = None;
    if let Some(text) = fields.text("workflow_id") {
        workflow = text.parse::<WorkflowId>().ok();
        if workflow.is_none() {
            fields.problem("workflow_id", "uuid_parsing", uuid);
        }
    }
    let given = [
        fields.value("notification_ids").is_some(),
        fields.value("before").is_some(),
        all,
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        fields.problems.push(docmill_model::chain::Problem::new(
            &["body".into()],
            "value_error",
            "exactly one of `notification_ids`, `before` and `mark_all` is needed",
        ));
    }
    if ids.is_some() && workflow.is_some() {
        let msg = "goes with `before` and `mark_all` alone";
        fields.problem("workflow_id", "value_error", msg);
    }
    fields.finish()?;
    Ok(match ids {
        Some(ids) => MarkRead::Ids(ids),
        None => MarkRead::Until {
            workflow,
            before: before.unwrap_or(Micros::MAX),
        },
    })
}
