//! A job's events as they happen.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use docmill_model::ids::{JobId, WorkspaceId};
use docmill_model::job::EventType;
use futures_util::Stream;
use futures_util::stream::unfold;

use crate::App;
use crate::auth::Caller;
use crate::dto::ErrorBody;
use crate::error::ApiResult;
use crate::extract::PathId;
use crate::routes::jobs::job_not_found;

/// Time between two looks for new events.
const POLL: Duration = Duration::from_millis(250);

/// Follow a job: its events so far and then as they happen, as server-sent events, until it has ended.
///
/// `event` is the event's type, `id` its position among the job's events (send the last one seen as
/// `Last-Event-ID` to go on from there), `data` the job as it was then.
#[utoipa::path(get, path = "/jobs/{job_id}/events", tag = "jobs", operation_id = "follow_job",
    params(("job_id" = String, Path)),
    responses((status = 200, description = "Events", content_type = "text/event-stream"), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn follow(
    State(app): State<App>,
    Caller(principal): Caller,
    PathId(job): PathId<JobId>,
    headers: HeaderMap,
) -> ApiResult<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let last_seen = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok())
        .unwrap_or(0);
    app.engine
        .store()
        .job(principal.workspace, job)
        .await?
        .ok_or_else(job_not_found)?;
    let follower = Follower {
        app,
        workspace: principal.workspace,
        job,
        last_seen,
        ready: VecDeque::new(),
        ended: false,
    };
    Ok(Sse::new(unfold(follower, Follower::next)).keep_alive(KeepAlive::default()))
}

struct Follower {
    app: App,
    workspace: WorkspaceId,
    job: JobId,
    last_seen: i64,
    ready: VecDeque<docmill_store::Event>,
    ended: bool,
}

impl Follower {
    /// The next event; waits for one, and ends after the one that tells of the job's end.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.last_seen = event.sequence;
                self.ended |= matches!(
                    event.event_type,
                    EventType::JobCompleted | EventType::JobFailed | EventType::JobStopped
                );
                let sent = Event::default()
                    .id(event.sequence.to_string())
                    .event(event.event_type.as_str())
                    .data(event.payload.to_string());
                return Some((Ok(sent), self));
            }
            if self.ended {
                return None;
            }
            // The job first, then its events: one that has ended by now has all its events written.
            let store = self.app.engine.store();
            let running = match store.job(self.workspace, self.job).await {
                Ok(Some(job)) => !job.status.is_terminal(),
                // Deleted, or the store is out of reach: the client may come again with what it saw last.
                _ => return None,
            };
            match store.events(self.workspace, self.job, self.last_seen).await {
                Ok(events) if !events.is_empty() => self.ready = events.into(),
                Ok(_) if running => tokio::time::sleep(POLL).await,
                _ => return None,
            }
        }
    }
}
