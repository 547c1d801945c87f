//! Requests to object stores and what their refusals mean.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use docmill_egress::{Egress, HttpClient, cause, first_bytes};
use futures_util::StreamExt;
use reqwest::header::HeaderValue;
use reqwest::{Request, Response, StatusCode, Url};

use crate::{ConnectorError, ErrorKind, Result};

/// Longest wait for the next piece of an answer.
const IDLE: Duration = Duration::from_secs(60);

/// Most bytes of an answer that tells of something (a page of a listing, a token).
const LARGEST_ANSWER: usize = 32 << 20;

/// Most bytes of a refusal that are read.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The guarded client.
pub(super) fn client(egress: &Egress) -> Result<HttpClient> {
    Ok(egress.streaming_client(IDLE)?)
}

/// A URL that is requested exactly as it is written.
pub(super) fn exact_url(url: &str) -> Result<Url> {
    let parsed = Url::parse(url);
    match parsed {
        Ok(parsed) if parsed.as_str() == url => Ok(parsed),
        _ => Err(ConnectorError::new(
            ErrorKind::Invalid,
            "this name can't be part of a URL, so the object can't be requested",
        )),
    }
}

/// The value of a header that holds a secret.
pub(super) fn secret_header(value: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        ConnectorError::new(
            ErrorKind::Invalid,
            "the credentials hold a character that can't be sent, perhaps a line break",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// What a service says about itself in a refusal.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// The service's word for it.
    pub(super) code: String,
    /// The service's sentence.
    pub(super) message: String,
}

/// An answer that is no success.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// The service's word for it; may be empty.
    pub(super) code: String,
    /// The service's sentence; may be empty.
    pub(super) message: String,
    error: ConnectorError,
}

impl Refused {
    /// Says it better where the service's word is known.
    pub(super) fn or_say(mut self, code: &str, message: impl FnOnce() -> String) -> Self {
        if self.code == code {
            self.error.message = message();
        }
        self
    }
}

impl From<Refused> for ConnectorError {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

/// Sends a request and waits for the head of the answer, whatever it is.
pub(super) async fn exchange(client: &HttpClient, request: Request) -> Result<Response> {
    let host = request.url().host_str().unwrap_or_default().to_owned();
    client.execute(request).await.map_err(|error| broken(&host, &error))
}

/// Reads an answer that is no success by `refusal`.
pub(super) async fn checked(
    response: Response,
    refusal: fn(&[u8]) -> Refusal,
) -> std::result::Result<Response, Refused> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let host = response.url().host_str().unwrap_or_default().to_owned();
    let named = response.headers().get("x-ms-error-code");
    let named = named.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = first_bytes(response, LARGEST_REFUSAL).await.unwrap_or_default();
    let mut said = refusal(&body);
    if let (true, Some(named)) = (said.code.is_empty(), named) {
        said.code = named;
    }
    Err(Refused {
        status,
        error: refused(&host, status, &said),
        code: said.code,
        message: said.message,
    })
}

/// The `Code` and `Message` of an XML refusal, as S3 and Azure write it.
pub(super) fn xml_refusal(body: &[u8]) -> Refusal {
    let mut refusal = Refusal::default();
    // A body that is no XML (a proxy's page) tells nothing.
    let _ = super::text::walk(body, |ended| {
        match ended.path.last().map(String::as_str) {
            Some("Code") => refusal.code = ended.text.trim().to_owned(),
            Some("Message") => refusal.message = ended.text.trim().to_owned(),
            _ => {}
        }
        Ok(())
    });
    refusal
}

/// A small answer as a whole.
pub(super) async fn whole(response: Response) -> Result<Bytes> {
    body(response, LARGEST_ANSWER).await?.ok_or_else(|| {
        ConnectorError::new(
            ErrorKind::Unexpected,
            "the service's answer is far larger than one should be",
        )
    })
}

/// The body of an answer; `None` when it has more than `most` bytes.
pub(super) async fn body(response: Response, most: usize) -> Result<Option<Bytes>> {
    let host = response.url().host_str().unwrap_or_default().to_owned();
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Ok(None);
    }
    let mut bytes = BytesMut::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| broken(&host, &error))?;
        if bytes.len() + piece.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes.freeze()))
}

/// A request that got no whole answer.
pub(super) fn broken(host: &str, error: &reqwest::Error) -> ConnectorError {
    if let Some(cause) = cause(error) {
        let known: ConnectorError = match cause {
            docmill_egress::EgressError::Refused(_) => ConnectorError::new(ErrorKind::Forbidden, cause.to_string()),
            _ => ConnectorError::new(ErrorKind::Unavailable, cause.to_string()),
        };
        return known;
    }
    if error.is_builder() {
        return ConnectorError::new(ErrorKind::Invalid, format!("a request to {host} can't be made"));
    }
    // The innermost cause says it best; the outer ones would repeat the URL, which may hold a token.
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let reason = match error.is_timeout() {
        true => "no answer in time".to_owned(),
        false if innermost.source().is_none() && std::ptr::addr_eq(innermost, error) => "the connection broke".into(),
        false => plain(&innermost.to_string()),
    };
    ConnectorError::new(ErrorKind::Unavailable, format!("cannot talk to {host}: {reason}"))
}

/// What an answer that is no success means.
fn refused(host: &str, status: StatusCode, said: &Refusal) -> ConnectorError {
    let credentials = [
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidToken",
        "TokenRefreshRequired",
        "InvalidClientTokenId",
        "AuthorizationHeaderMalformed",
        "invalid_grant",
        "invalid_client",
        "unauthorized_client",
        "PublicAccessNotPermitted",
        "InvalidAuthenticationInfo",
        "NoAuthenticationInformation",
    ];
    let kind = match status.as_u16() {
        _ if credentials.contains(&said.code.as_str()) => ErrorKind::Unauthorized,
        // The object is in an archive: it is there, but can't be read.
        403 if said.code == "InvalidObjectState" => ErrorKind::Invalid,
        401 | 403 => ErrorKind::Unauthorized,
        404 => ErrorKind::Missing,
        429 => ErrorKind::Throttled,
        503 if matches!(said.code.as_str(), "SlowDown" | "ServerBusy") => ErrorKind::Throttled,
        408 | 500..=599 => ErrorKind::Unavailable,
        409 if said.code == "ContainerBeingDeleted" => ErrorKind::Unavailable,
        300..=399 | 400 | 405 | 409 | 411..=417 => ErrorKind::Invalid,
        _ => ErrorKind::Unexpected,
    };
    let start = match kind {
        ErrorKind::Unauthorized => format!("{host} denies access"),
        ErrorKind::Missing => format!("{host} has no such thing"),
        ErrorKind::Throttled => format!("{host} asks for fewer requests"),
        _ if status.is_redirection() => format!("{host} sends us elsewhere, check endpoint and region"),
        _ => format!("{host} answers {}", status.as_u16()),
    };
    let mut message = start;
    for part in [&said.code, &said.message] {
        if !part.is_empty() {
            message.push_str(": ");
            message.push_str(&plain(part));
        }
    }
    ConnectorError::new(kind, message)
}

/// The first line of a stranger's text, short and without control characters.
fn plain(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}
