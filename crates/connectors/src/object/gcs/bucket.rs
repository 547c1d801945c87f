//! The requests, of the JSON interface.

use async_trait::async_trait;
use bytes::Bytes;
use docmill_egress::HttpClient;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Response, StatusCode};
use serde_json::Value;

use super::super::http::{Refusal, Refused, checked, exact_url, exchange, secret_header, whole};
use super::super::text::{encode, query};
use super::super::{Ask, Bucket, Entry, Page, known_type, seconds};
use super::token::Login;
use crate::{ConnectorError, ErrorKind, Result};

/// A bucket.
pub(super) struct Gcs {
    pub(super) client: HttpClient,
    pub(super) name: String,
    /// URL of the service.
    pub(super) base: String,
    pub(super) login: Login,
}

impl Gcs {
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<std::result::Result<Response, Refused>> {
        let mut request = Request::new(method, exact_url(&format!("{}{path}", self.base))?);
        if let Some(token) = self.login.token(&self.client).await? {
            let value = secret_header(&format!("Bearer {token}"))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        if let Some(body) = body {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Some(body.into());
        }
        Ok(checked(exchange(&self.client, request).await?, refusal).await)
    }

    /// Path of an object; its key is one step of it, whatever slashes it holds.
    fn object(&self, key: &str) -> String {
        format!("/storage/v1/b/{}/o/{}", self.name, encode(key, ""))
    }

    fn no_bucket(&self) -> ConnectorError {
        let message = format!("the bucket `{}` does not exist", self.name);
        ConnectorError::new(ErrorKind::Missing, message)
    }
}

#[async_trait]
impl Bucket for Gcs {
    const STARTS_ANYWHERE: bool = true;

    fn url(&self, key: &str) -> String {
        format!("gs://{}/{key}", self.name)
    }

    async fn page(&self, ask: &Ask<'_>) -> Result<Page> {
        let limit = ask.limit.to_string();
        let fields = "nextPageToken,items(name,size,updated,timeCreated,generation,contentType)";
        let mut pairs = vec![("maxResults", limit.as_str()), ("fields", fields)];
        if !ask.prefix.is_empty() {
            pairs.push(("prefix", ask.prefix));
        }
        if !ask.recursive {
            pairs.push(("delimiter", "/"));
        }
        if let Some(after) = ask.after {
            pairs.push(("startOffset", after));
        }
        if let Some(token) = ask.token {
            pairs.push(("pageToken", token));
        }
        let path = format!("/storage/v1/b/{}/o?{}", self.name, query(&pairs));
        match self.send(Method::GET, &path, None).await? {
            Err(refused) if refused.status == StatusCode::NOT_FOUND => Err(self.no_bucket()),
            answer => page(&whole(answer?).await?),
        }
    }

    async fn get(&self, key: &str) -> Result<Response> {
        let path = format!("{}?alt=media", self.object(key));
        match self.send(Method::GET, &path, None).await? {
            Err(refused) if refused.status == StatusCode::NOT_FOUND => Err(ConnectorError::new(
                ErrorKind::Missing,
                format!("the object `{}` does not exist", self.url(key)),
            )),
            answer => Ok(answer?),
        }
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<()> {
        let name = encode(key, "");
        let path = format!("/upload/storage/v1/b/{}/o?uploadType=media&name={name}", self.name);
        match self.send(Method::POST, &path, Some(body)).await? {
            Err(refused) if refused.status == StatusCode::NOT_FOUND => Err(self.no_bucket()),
            answer => Ok(answer.map(drop)?),
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        match self.send(Method::DELETE, &self.object(key), None).await? {
            Err(refused) if refused.status == StatusCode::NOT_FOUND => {
                // The same code stands for an object and for a bucket that is not there.
                match refused.message.contains("bucket does not exist") {
                    true => Err(self.no_bucket()),
                    false => Ok(()),
                }
            }
            answer => Ok(answer.map(drop)?),
        }
    }
}

/// Reads a page of a listing.
fn page(json: &[u8]) -> Result<Page> {
    let json: Value = serde_json::from_slice(json)
        .map_err(|_| ConnectorError::new(ErrorKind::Unexpected, "the answer to a listing is no JSON"))?;
    let items = json.get("items").and_then(Value::as_array);
    let entries = items.into_iter().flatten().filter_map(|item| {
        let text = |name: &str| match item.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        Some(Entry {
            key: text("name")?,
            size: text("size").and_then(|size| size.parse().ok()),
            version: text("generation"),
            modified: text("updated").as_deref().and_then(seconds),
            created: text("timeCreated").as_deref().and_then(seconds),
            content_type: text("contentType").as_deref().and_then(known_type),
            folder: false,
        })
    });
    let token = json.get("nextPageToken").and_then(Value::as_str);
    Ok(Page {
        entries: entries.collect(),
        token: token.filter(|token| !token.is_empty()).map(str::to_owned),
    })
}

/// `{"error": {"message": ..., "errors": [{"reason": ...}]}}`; some errors are plain text.
fn refusal(body: &[u8]) -> Refusal {
    let Ok(json) = serde_json::from_slice::<Value>(body) else {
        let message = String::from_utf8_lossy(body).into_owned();
        // A page for people tells nothing.
        return match message.trim_start().starts_with('<') {
            true => Refusal::default(),
            false => Refusal {
                code: String::new(),
                message,
            },
        };
    };
    let text = |path: &str| {
        json.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Refusal {
        code: text("/error/errors/0/reason"),
        message: text("/error/message"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_refusals_are_read() {
        let json = br#"{"kind":"storage#objects","nextPageToken":"t","items":[{"name":"a/b","size":"3",
            "generation":"17","updated":"2026-01-02T03:04:05.678Z","contentType":"text/plain"},{"size":"1"}]}"#;
        let page = page(json).unwrap();
        assert_eq!(page.entries.len(), 1);
        let first = &page.entries[0];
        assert_eq!(
            (first.key.as_str(), first.size, first.modified),
            ("a/b", Some(3), Some(1_767_323_045))
        );
        assert_eq!(
            (first.version.as_deref(), page.token.as_deref()),
            (Some("17"), Some("t"))
        );
        assert!(super::page(b"<html>").is_err());
        let refused = refusal(br#"{"error":{"code":403,"message":"no","errors":[{"reason":"forbidden"}]}}"#);
        assert_eq!((refused.code.as_str(), refused.message.as_str()), ("forbidden", "no"));
        assert_eq!(refusal(b"Not Found").message, "Not Found");
        assert_eq!(refusal(b"<html>").message, "");
    }
}
