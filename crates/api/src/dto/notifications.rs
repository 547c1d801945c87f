//! The inbox of a workspace.

use docmill_model::time::iso8601;
use docmill_store::Notification;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A notification.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotificationInformation {
    /// Id.
    #[schema(format = "uuid")]
    id: String,
    /// An event of a job, or `channel.disabled` or `channel.bounced`.
    event_type: String,
    /// The workflow it tells of.
    #[schema(format = "uuid")]
    workflow_id: Option<String>,
    /// The job (or channel) as it was then.
    #[schema(value_type = Object)]
    payload: Value,
    /// When it happened.
    #[schema(format = "date-time")]
    created_at: String,
    /// Whether it was marked as read. News of progress is read from the start.
    is_read: bool,
}

impl From<Notification> for NotificationInformation {
    fn from(notification: Notification) -> Self {
        Self {
            id: notification.id.to_string(),
            event_type: notification.kind.to_string(),
            workflow_id: notification.workflow.map(|id| id.to_string()),
            payload: notification.payload,
            created_at: iso8601(notification.created_at),
            is_read: notification.read_at.is_some(),
        }
    }
}

/// A page of the inbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotificationList {
    /// Newest first.
    pub(crate) events: Vec<NotificationInformation>,
    /// What to send as `cursor` for the next page; null on the last.
    pub(crate) next_cursor: Option<String>,
}

/// Which notifications to mark: exactly one of `notification_ids`, `before` and `mark_all`.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(examples(json!({"mark_all": true})))]
#[allow(dead_code, reason = "describes the request for the OpenAPI document")]
pub(crate) struct MarkNotificationsRead {
    /// These; at most 100.
    #[schema(max_items = 100)]
    notification_ids: Option<Vec<String>>,
    /// All from before this instant.
    #[schema(format = "date-time")]
    before: Option<String>,
    /// All there are.
    mark_all: Option<bool>,
    /// With `before` or `mark_all`: only those of this workflow.
    #[schema(format = "uuid")]
    workflow_id: Option<String>,
}

/// What was marked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MarkedRead {
    /// How many were unread before.
    pub(crate) marked_count: u64,
}

/// What is unread.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnreadCount {
    /// How many.
    pub(crate) unread_count: u64,
}
