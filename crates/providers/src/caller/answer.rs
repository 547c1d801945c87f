//! Answers of strangers.

use bytes::{Bytes, BytesMut};
use docmill_egress::first_bytes;
use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ProviderErrorKind;

/// Most bytes of a refusal that are read.
const LARGEST_REFUSAL: usize = 64 << 10;

/// A whole answer with a status of success.
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON of a known shape.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|error| match error.classify() {
            // Tells of places, not of content.
            serde_json::error::Category::Data => {
                format!("a field is missing or of another type (line {})", error.line())
            }
            _ => format!("it is no JSON: {error}"),
        })
    }
}

/// Why a body was not read.
pub(super) enum Unread {
    TooLarge,
    Broken(reqwest::Error),
}

pub(super) async fn read_body(response: Response, most: usize) -> Result<Bytes, Unread> {
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Err(Unread::TooLarge);
    }
    let mut bytes = BytesMut::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(Unread::Broken)?;
        if bytes.len().saturating_add(piece.len()) > most {
            return Err(Unread::TooLarge);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// The provider's own id of an exchange.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    const NAMES: [&str; 6] = [
        "request-id",
        "apim-request-id",
        "x-request-id",
        "x-amzn-requestid",
        "x-global-transaction-id",
        "x-goog-request-id",
    ];
    let found = NAMES.iter().find_map(|name| headers.get(*name)?.to_str().ok())?;
    let id: String = found.chars().filter(char::is_ascii_graphic).take(128).collect();
    (!id.is_empty()).then_some(id)
}

/// An answer that is no success.
pub(super) struct Refusal {
    pub(super) kind: ProviderErrorKind,
    pub(super) message: String,
    /// Whether trying again is of no use, whatever the kind.
    pub(super) hopeless: bool,
}

pub(super) async fn refused(response: Response) -> Refusal {
    let status = response.status().as_u16();
    let named = response.headers().get("x-amzn-errortype");
    let named = named.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = first_bytes(response, LARGEST_REFUSAL).await.unwrap_or_default();
    refusal(status, named, &body)
}

fn refusal(status: u16, named: Option<String>, body: &[u8]) -> Refusal {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |places: &[&str]| {
        let found = places.iter().find_map(|place| json.pointer(place)?.as_str());
        found.map(str::to_owned)
    };
    let code = named
        .and_then(|name| name.split(':').next().map(str::to_owned))
        .or_else(|| {
            text(&[
                "/error/code",
                "/error/type",
                "/error/status",
                "/errors/0/code",
                "/code",
                "/type",
            ])
        })
        .unwrap_or_default();
    let sentence = text(&[
        "/error/message",
        "/errors/0/message",
        "/message",
        "/Message",
        "/detail",
        "/detail/0/msg",
        "/error",
    ]);
    // Google tells of a wrong key as of a wrong request.
    let reasons = json.pointer("/error/details").and_then(Value::as_array);
    let wrong_key = reasons.is_some_and(|details| {
        let reason = |detail: &Value| detail.get("reason").and_then(Value::as_str) == Some("API_KEY_INVALID");
        details.iter().any(reason)
    });
    let kind = match status {
        401 | 403 => ProviderErrorKind::Auth,
        400 if wrong_key => ProviderErrorKind::Auth,
        402 | 429 => ProviderErrorKind::RateLimit,
        413 => ProviderErrorKind::TooLarge,
        // 424 is how Bedrock tells that the model failed.
        408 | 409 | 424 | 425 | 500..=599 => ProviderErrorKind::Server,
        _ => ProviderErrorKind::Invalid,
    };
    let hopeless = status == 402 || code == "insufficient_quota" || code == "billing_hard_limit_reached";
    let mut message = match (kind, status) {
        (_, _) if hopeless => "the account has no credit left".to_owned(),
        (ProviderErrorKind::Auth, 403) => "the key is refused, or it may not use this model".to_owned(),
        (ProviderErrorKind::Auth, _) => "the key is refused".to_owned(),
        (ProviderErrorKind::RateLimit, _) => "too many requests or tokens".to_owned(),
        (_, 300..=399) => "it sends us elsewhere: check base_url".to_owned(),
        (_, 404) => "no such model or address: check model and base_url".to_owned(),
        (_, _) => format!("it answers {status}"),
    };
    let mut add = |part: &str| {
        if !part.is_empty() {
            message.push_str(": ");
            message.push_str(part);
        }
    };
    add(&code);
    // What is said of a wrong key often repeats a part of it.
    if kind != ProviderErrorKind::Auth || status == 403 {
        add(sentence.as_deref().unwrap_or_default());
    }
    Refusal {
        kind,
        message,
        hopeless,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_in_every_providers_form() {
        use ProviderErrorKind::{Auth, Invalid, RateLimit, Server};
        for (status, named, body, kind, message) in [
            (
                401,
                None,
                r#"{"error":{"message":"Incorrect API key provided: sk-ab**yz","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Auth,
                "the key is refused: invalid_api_key",
            ),
            (
                429,
                None,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
                RateLimit,
                "too many requests or tokens: rate_limit_error: slow",
            ),
            (
                400,
                None,
                r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                Auth,
                "the key is refused: INVALID_ARGUMENT",
            ),
            (
                400,
                Some("ValidationException:http://internal"),
                r#"{"message":"bad model"}"#,
                Invalid,
                "it answers 400: ValidationException: bad model",
            ),
            (
                400,
                None,
                r#"{"detail":"too long"}"#,
                Invalid,
                "it answers 400: too long",
            ),
            (
                404,
                None,
                r#"{"errors":[{"code":"model_not_supported","message":"m"}],"trace":"t"}"#,
                Invalid,
                "no such model or address: check model and base_url: model_not_supported: m",
            ),
            (503, None, "<html>", Server, "it answers 503"),
            (529, None, "", Server, "it answers 529"),
        ] {
            let refusal = refusal(status, named.map(str::to_owned), body.as_bytes());
            assert_eq!((refusal.kind, refusal.message.as_str()), (kind, message));
            assert!(!refusal.hopeless);
        }
        let quota = br#"{"error":{"message":"m","code":"insufficient_quota"}}"#;
        assert!(refusal(429, None, quota).hopeless);
    }
}
