//! The requests.

use std::sync::{PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::Utc;
use docmill_egress::identity::aws::{Scope, sign};
use docmill_egress::{Egress, HttpClient};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Response};

use super::super::http::{Refused, checked, exact_url, exchange, whole, xml_refusal};
use super::super::text::{decode, encode, key_path, query, walk};
use super::super::{Ask, Bucket, Entry, Page, seconds};
use super::credentials::Credentials;
use crate::Result;

/// A bucket of S3 or of a compatible service.
pub(super) struct S3 {
    pub(super) client: HttpClient,
    pub(super) egress: Egress,
    pub(super) name: String,
    /// Base of the URL of a compatible service; `None`: Amazon's own.
    pub(super) endpoint: Option<String>,
    /// Found out when the bucket turns out to be elsewhere.
    pub(super) region: RwLock<String>,
    pub(super) credentials: Credentials,
}

/// What is asked of the service.
struct Call<'a> {
    method: Method,
    key: &'a str,
    query: String,
    body: Option<Bytes>,
}

impl S3 {
    fn region(&self) -> String {
        self.region.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// URL of the bucket with a slash at its end.
    fn base(&self, region: &str) -> String {
        let amazon = super::domain(region);
        match &self.endpoint {
            Some(endpoint) => format!("{endpoint}/{}/", self.name),
            // A certificate's wildcard covers no dots.
            None if self.name.contains('.') => format!("https://s3.{region}.{amazon}/{}/", self.name),
            None => format!("https://{}.s3.{region}.{amazon}/", self.name),
        }
    }

    /// `slashes`: the path is signed with its slashes plain even where they are sent encoded.
    async fn request(&self, call: &Call<'_>, region: &str, slashes: bool) -> Result<Request> {
        let base = self.base(region);
        let mut url = format!("{base}{}", key_path(call.key));
        if !call.query.is_empty() {
            url = format!("{url}?{}", call.query);
        }
        let mut request = Request::new(call.method.clone(), exact_url(&url)?);
        if let Some(body) = &call.body {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Some(body.clone().into());
        }
        if let Some(key) = self.credentials.key(&self.client, &self.egress, region).await? {
            let above = exact_url(&base)?.path().to_owned();
            let below = if slashes {
                encode(call.key, "/")
            } else {
                key_path(call.key)
            };
            let path = format!("{above}{below}");
            let scope = Scope { service: "s3", region };
            sign(&mut request, &path, &key, scope, Utc::now())?;
        }
        Ok(request)
    }

    /// Sends a request. Services differ in how they read a path with encoded slashes when they check the
    /// signature, so a key that needs them gets a second try.
    async fn send(&self, call: Call<'_>) -> Result<std::result::Result<Response, Refused>> {
        let answer = self.send_signed(&call, false).await?;
        let answer = match answer {
            Err(refused) if refused.code == "SignatureDoesNotMatch" && key_path(call.key) != encode(call.key, "/") => {
                self.send_signed(&call, true).await?
            }
            answer => answer,
        };
        Ok(answer.map_err(|refused| {
            refused
                .or_say("NoSuchBucket", || format!("the bucket `{}` does not exist", self.name))
                .or_say("NoSuchKey", || {
                    format!("the object `{}` does not exist", self.url(call.key))
                })
        }))
    }

    /// Sends a request, once more to the bucket's own region where Amazon says which that is.
    async fn send_signed(&self, call: &Call<'_>, slashes: bool) -> Result<std::result::Result<Response, Refused>> {
        let region = self.region();
        let response = exchange(&self.client, self.request(call, &region, slashes).await?).await?;
        let response = match self.elsewhere(&response, &region) {
            Some(right) => {
                let response = exchange(&self.client, self.request(call, &right, slashes).await?).await?;
                *self.region.write().unwrap_or_else(PoisonError::into_inner) = right;
                response
            }
            None => response,
        };
        Ok(checked(response, xml_refusal).await)
    }

    fn elsewhere(&self, response: &Response, region: &str) -> Option<String> {
        if response.status().is_success() || self.endpoint.is_some() {
            return None;
        }
        let right = response.headers().get("x-amz-bucket-region")?.to_str().ok()?;
        (right != region && super::is_region(right)).then(|| right.to_owned())
    }
}

#[async_trait]
impl Bucket for S3 {
    const STARTS_ANYWHERE: bool = true;

    fn url(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    async fn page(&self, ask: &Ask<'_>) -> Result<Page> {
        let limit = ask.limit.to_string();
        // Keys may hold characters that XML can't.
        let mut pairs = vec![("encoding-type", "url"), ("list-type", "2"), ("max-keys", &limit)];
        if !ask.prefix.is_empty() {
            pairs.push(("prefix", ask.prefix));
        }
        if !ask.recursive {
            pairs.push(("delimiter", "/"));
        }
        match (ask.token, ask.after) {
            (Some(token), _) => pairs.push(("continuation-token", token)),
            (None, Some(after)) => pairs.push(("start-after", after)),
            (None, None) => {}
        }
        let call = Call {
            method: Method::GET,
            key: "",
            query: query(&pairs),
            body: None,
        };
        page(&whole(self.send(call).await??).await?)
    }

    async fn get(&self, key: &str) -> Result<Response> {
        let call = Call {
            method: Method::GET,
            key,
            query: String::new(),
            body: None,
        };
        Ok(self.send(call).await??)
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<()> {
        let call = Call {
            method: Method::PUT,
            key,
            query: String::new(),
            body: Some(body),
        };
        self.send(call).await??;
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let call = Call {
            method: Method::DELETE,
            key,
            query: String::new(),
            body: None,
        };
        match self.send(call).await? {
            Err(refused) if refused.code == "NoSuchKey" => Ok(()),
            answer => Ok(answer.map(drop)?),
        }
    }
}

/// Reads a page of a listing (ListObjectsV2).
fn page(xml: &[u8]) -> Result<Page> {
    let (mut page, mut entry) = (Page::default(), Entry::default());
    let (mut encoded, mut more) = (false, false);
    walk(xml, |ended| {
        let text = ended.text;
        match ended.path {
            [_, name] => match name.as_str() {
                "EncodingType" => encoded = text.trim() == "url",
                "IsTruncated" => more = text.trim() == "true",
                "NextContinuationToken" => page.token = Some(text.to_owned()),
                "Contents" => page.entries.push(std::mem::take(&mut entry)),
                _ => {}
            },
            [_, around, name] if around == "Contents" => match name.as_str() {
                "Key" => text.clone_into(&mut entry.key),
                "Size" => entry.size = text.trim().parse().ok(),
                "LastModified" => entry.modified = seconds(text.trim()),
                "ETag" => entry.version = Some(text.trim().trim_matches('"').to_owned()),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    })?;
    if !more {
        page.token = None;
    }
    if encoded {
        for entry in &mut page.entries {
            if let Some(key) = decode(&entry.key, true) {
                entry.key = key;
            }
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let xml = br#"<?xml version="1.0"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>
            <IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>
            <Contents><Key>a+b%01%2Fc</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>
            <ETag>&quot;e1&quot;</ETag><Size>7</Size><Owner><ID>x</ID></Owner></Contents>
            <Contents><Key>d/</Key><Size>0</Size></Contents>
            <CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes><EncodingType>url</EncodingType></ListBucketResult>"#;
        let page = page(xml).unwrap();
        assert_eq!(page.token.as_deref(), Some("t&1"));
        let entry = &page.entries[0];
        assert_eq!(entry.key, "a b\u{1}/c");
        assert_eq!((entry.size, entry.modified), (Some(7), Some(1_767_323_045)));
        assert_eq!(entry.version.as_deref(), Some("e1"));
        assert!(!entry.is_folder() && page.entries[1].is_folder());
        assert!(super::page(b"<ListBucketResult><Contents>").is_err());
    }
}
