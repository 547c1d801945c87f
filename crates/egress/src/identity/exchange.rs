//! Small exchanges with services that give keys and tokens.

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{Ending, IdentityError, IdentityErrorKind, IdentityResult};
use crate::HttpClient;
use crate::{cause, first_bytes};

/// Most bytes of an answer that are read; keys and tokens are far smaller.
const LARGEST: usize = 256 << 10;

/// How a service tells why it refuses: its code and its sentence, either may be empty.
pub(super) type Refusal = fn(&[u8]) -> (String, String);

/// The value of a header that holds a secret.
///
/// # Errors
/// [`IdentityErrorKind::Invalid`] for a character that no header can hold.
pub fn secret_header(value: &str) -> IdentityResult<HeaderValue> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        IdentityError::new(
            IdentityErrorKind::Invalid,
            "the credentials hold a character that can't be sent, perhaps a line break",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A form that is posted to `url`.
pub(super) fn form_request(url: &str, form: &[(&str, &str)]) -> IdentityResult<Request> {
    let url = Url::parse(url)
        .map_err(|error| IdentityError::new(IdentityErrorKind::Invalid, format!("this is no URL: {error}")))?;
    let mut request = Request::new(Method::POST, url);
    *request.timeout_mut() = Some(Duration::from_secs(30));
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    *request.body_mut() = Some(body.into());
    Ok(request)
}

/// Sends a request; the body of the answer, where that is a success.
pub(super) async fn told(client: &HttpClient, request: Request, refusal: Refusal) -> IdentityResult<Bytes> {
    let host = request.url().host_str().unwrap_or_default().to_owned();
    let response = client.execute(request).await.map_err(|error| broken(&host, &error))?;
    let status = response.status();
    let body = first_bytes(response, LARGEST).await;
    if status.is_success() {
        return body.map_err(|error| broken(&host, &error));
    }
    let (code, sentence) = refusal(&body.unwrap_or_default());
    let kind = match status.as_u16() {
        400 | 401 | 403 => IdentityErrorKind::Unauthorized,
        429 => IdentityErrorKind::Throttled,
        408 | 500..=599 => IdentityErrorKind::Unavailable,
        300..=499 => IdentityErrorKind::Invalid,
        _ => IdentityErrorKind::Unexpected,
    };
    let mut message = match kind {
        IdentityErrorKind::Unauthorized => format!("{host} denies access"),
        IdentityErrorKind::Throttled => format!("{host} asks for fewer requests"),
        _ => format!("{host} answers {}", status.as_u16()),
    };
    for part in [code, sentence] {
        let part = plain(&part);
        if !part.is_empty() {
            message = format!("{message}: {part}");
        }
    }
    Err(IdentityError::new(kind, message))
}

/// Posts a form to a token service (RFC 6749) and reads `access_token` and `expires_in`.
///
/// # Errors
/// Why there is no token.
pub async fn token_answer(client: &HttpClient, uri: &str, form: &[(&str, &str)]) -> IdentityResult<Ending<String>> {
    let now = Utc::now().timestamp();
    let answer = told(client, form_request(uri, form)?, json_refusal).await?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let Some(token) = answer.get("access_token").and_then(Value::as_str) else {
        return Err(IdentityError::new(
            IdentityErrorKind::Unexpected,
            "the token service's answer holds no token",
        ));
    };
    let seconds = answer.get("expires_in").and_then(Value::as_i64).unwrap_or(3_600);
    Ok(Ending {
        secret: token.to_owned(),
        expires: Some(now.saturating_add(seconds)),
    })
}

/// `{"error": ..., "error_description": ...}`, or `{"errorCode": ..., "errorMessage": ...}`.
fn json_refusal(body: &[u8]) -> (String, String) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let take = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| body.get(*name)?.as_str());
        found.unwrap_or_default().to_owned()
    };
    (
        take(["error", "errorCode"]),
        take(["error_description", "errorMessage"]),
    )
}

/// A request that got no whole answer.
pub(super) fn broken(host: &str, error: &reqwest::Error) -> IdentityError {
    if let Some(cause) = cause(error) {
        let kind = match cause {
            crate::EgressError::Refused(_) => IdentityErrorKind::Forbidden,
            _ => IdentityErrorKind::Unavailable,
        };
        return IdentityError::new(kind, cause.to_string());
    }
    // The innermost cause says it best; the outer ones would repeat the URL.
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let reason = match error.is_timeout() {
        true => "no answer in time".to_owned(),
        false if std::ptr::addr_eq(innermost, error) => "the connection broke".into(),
        false => plain(&innermost.to_string()),
    };
    IdentityError::new(
        IdentityErrorKind::Unavailable,
        format!("cannot talk to {host}: {reason}"),
    )
}

/// The first line of a stranger's text, short and without control characters.
fn plain(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}
