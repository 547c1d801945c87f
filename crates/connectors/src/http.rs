//! Requests to services that speak JSON over HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use docmill_egress::{EgressError, HttpClient, cause, first_bytes};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use url::Url;

use crate::{ConnectorError, Environment, ErrorKind, Result};

/// Longest exchange: the other side may have thousands of elements to write.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Largest answer that is read.
const ANSWER: usize = 16 << 20;
/// Requests in all when the other side asks for patience.
const TRIES: u32 = 4;
/// Longest wait before a request is sent again; who asks for more is told of as an error.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// One service at one or several equal addresses.
pub(crate) struct Http {
    client: HttpClient,
    bases: Vec<Url>,
    headers: HeaderMap,
    /// The address that answered last.
    current: AtomicUsize,
    /// Its name for people.
    service: &'static str,
}

/// A request that may be sent several times.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    /// Components of the path, not yet encoded.
    pub(crate) path: &'a [&'a str],
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<(&'static str, Bytes)>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    retry_after: Option<Duration>,
}

/// The type of JSON bodies.
pub(crate) const JSON: &str = "application/json";

impl Http {
    /// For a service at `addresses`, which are URLs.
    pub(crate) fn new(
        environment: &Environment,
        service: &'static str,
        addresses: &[String],
        header: Option<(HeaderName, String)>,
    ) -> Result<Self> {
        let bases = addresses.iter().map(|address| {
            let url = environment.egress.check_url(address)?;
            if url.query().is_some() || url.fragment().is_some() {
                let message = format!("the address of {service} must have no query and no fragment");
                return Err(ConnectorError::new(ErrorKind::Invalid, message));
            }
            Ok(url)
        });
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                let message = format!("the credentials of {service} hold characters that credentials can't hold");
                ConnectorError::new(ErrorKind::Invalid, message)
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self {
            client: environment.egress.http_client(TIMEOUT)?,
            bases: bases.collect::<Result<_>>()?,
            headers,
            current: AtomicUsize::new(0),
            service,
        })
    }

    /// Sends a request; again when the answer is that there were too many or that the service is busy for a
    /// moment, and to the next address when one can't be reached.
    pub(crate) async fn send(&self, request: &Request<'_>) -> Result<Answer> {
        let mut tries = 1;
        loop {
            let answer = self.reach(request).await?;
            let busy = matches!(
                answer.status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            );
            let wait = answer
                .retry_after
                .unwrap_or_else(|| Duration::from_millis(250) * 2_u32.saturating_pow(tries));
            if !busy || tries >= TRIES || wait > LONGEST_WAIT {
                return Ok(answer);
            }
            tries += 1;
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends a request to the address that answered last, or else the next that does.
    async fn reach(&self, request: &Request<'_>) -> Result<Answer> {
        let start = self.current.load(Ordering::Relaxed);
        let mut failure = None;
        for offset in 0..self.bases.len() {
            let index = (start + offset) % self.bases.len();
            let Some(base) = self.bases.get(index) else { break };
            match self.once(base, request).await {
                Ok(answer) => {
                    self.current.store(index, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) if error.retryable() => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or_else(|| {
            let message = format!("no address of {} is given", self.service);
            ConnectorError::new(ErrorKind::Invalid, message)
        }))
    }

    async fn once(&self, base: &Url, request: &Request<'_>) -> Result<Answer> {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(request.path);
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(request.query);
        }
        let mut builder = self
            .client
            .request(request.method.clone(), url)
            .headers(self.headers.clone());
        if let Some((kind, body)) = &request.body {
            builder = builder.header(CONTENT_TYPE, *kind).body(body.clone());
        }
        let fail = |error: reqwest::Error| self.failure(base, error);
        let response = builder.send().await.map_err(fail)?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let body = first_bytes(response, ANSWER).await.map_err(fail)?;
        Ok(Answer {
            status,
            body,
            retry_after,
        })
    }

    fn failure(&self, base: &Url, error: reqwest::Error) -> ConnectorError {
        if let Some(refusal) = cause(&error) {
            let kind = match refusal {
                EgressError::Refused(_) => ErrorKind::Forbidden,
                EgressError::Setup(_) => ErrorKind::Unexpected,
                EgressError::Unresolved { .. } | EgressError::Unreachable { .. } => ErrorKind::Unavailable,
            };
            return ConnectorError::new(kind, format!("cannot reach {}: {refusal}", self.service));
        }
        let host = base.host_str().unwrap_or_default();
        let mut reason = error.without_url();
        let what = if reason.is_timeout() {
            "does not answer in time"
        } else {
            "cannot be reached"
        };
        let mut cause: &dyn std::error::Error = &mut reason;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let message = format!("{} at {host} {what}: {cause}", self.service);
        ConnectorError::new(ErrorKind::Unavailable, message)
    }

    /// The error an answer stands for.
    pub(crate) fn refusal(&self, what: &str, answer: &Answer) -> ConnectorError {
        let kind = match answer.status.as_u16() {
            401 | 403 => ErrorKind::Unauthorized,
            404 => ErrorKind::Missing,
            429 => ErrorKind::Throttled,
            // Conflict: somebody else wrote at the same moment.
            408 | 409 | 500.. => ErrorKind::Unavailable,
            400..500 => ErrorKind::Invalid,
            _ => ErrorKind::Unexpected,
        };
        let message = format!(
            "cannot {what}: {} answered {}: {}",
            self.service,
            answer.status.as_u16(),
            reason(&answer.body)
        );
        ConnectorError::new(kind, message)
    }

    /// An answer's body as JSON.
    pub(crate) fn json(&self, what: &str, answer: &Answer) -> Result<Value> {
        serde_json::from_slice(&answer.body).map_err(|error| {
            let message = format!("cannot {what}: the answer of {} is no JSON: {error}", self.service);
            ConnectorError::new(ErrorKind::Unexpected, message)
        })
    }
}

/// What an answer says of an error, in the forms in use: `error.reason`, `status.error`, `error`,
/// `message`, or the beginning of the text.
fn reason(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let places = ["/error/reason", "/status/error", "/error", "/message"];
    let found = places.iter().find_map(|place| json.pointer(place)?.as_str());
    let text = found.map_or_else(|| String::from_utf8_lossy(body), Into::into);
    let text: String = text.chars().filter(|c| !c.is_control()).take(300).collect();
    if text.is_empty() { "nothing more".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_and_short() {
        assert_eq!(
            reason(br#"{"error": {"type": "x", "reason": "no such index"}, "status": 404}"#),
            "no such index"
        );
        assert_eq!(reason(br#"{"status": {"error": "Not found"}}"#), "Not found");
        assert_eq!(reason(b"<html>"), "<html>");
        assert_eq!(reason(b""), "nothing more");
        assert_eq!(reason(&[b'x'; 10_000]).len(), 300);
    }
}
