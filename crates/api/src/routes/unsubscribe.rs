//! Stopping a channel's mails by the link in each of them: a page for people, and the one click of mail programs
//! (RFC 8058). Neither asks for a key: the link itself is the right to do so.

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use crate::App;
use crate::error::ApiResult;
use crate::extract::PathText;

/// The page before the click. Programs that look at links in mails must not stop anything, so it takes a POST.
const ASK: &str = "<p>No more mails of this notification channel will be sent, to you or to anybody else who gets \
    them.</p><form method=\"post\"><button>Stop these mails</button></form>";

const STOPPED: &str = "<p>The channel is switched off: it sends no more mails. Whoever looks after the service \
    can switch it on again.</p>";

/// The same whether the link was made up or its channel is deleted.
const NOWHERE: &str = "<p>This link does not lead to a notification channel, or the channel is deleted. There is \
    nothing to stop.</p>";

/// Asks for a click.
pub(crate) async fn page(State(app): State<App>, PathText(token): PathText) -> Response {
    match app.engine.unsubscribe_target(&token) {
        Some(_) => answer(StatusCode::OK, "Stop these mails?", ASK),
        None => answer(StatusCode::NOT_FOUND, "Nothing to stop", NOWHERE),
    }
}

/// Stops the mails. What the body holds does not matter.
pub(crate) async fn stop(State(app): State<App>, PathText(token): PathText) -> ApiResult<Response> {
    Ok(match app.engine.unsubscribe(&token).await? {
        true => answer(StatusCode::OK, "Stopped", STOPPED),
        false => answer(StatusCode::NOT_FOUND, "Nothing to stop", NOWHERE),
    })
}

/// A page that fetches nothing, is kept by nobody, and tells no other site its address.
fn answer(status: StatusCode, title: &str, content: &str) -> Response {
    let page = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>\
         <style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem;\
         color-scheme:light dark}}button{{font:inherit;padding:.6rem 1.2rem}}</style></head>\
         <body><h1>{title}</h1>{content}</body></html>"
    );
    let policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; \
                  base-uri 'none'";
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    (status, headers, Html(page)).into_response()
}
