//! Signature Version 4 of Amazon Web Services, which compatible services check too.

use std::fmt;

use chrono::{DateTime, Utc};
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};
use ring::hmac;

use super::super::exchange::secret_header;
use crate::identity::IdentityResult;

/// An access key.
#[derive(Clone, PartialEq)]
pub struct Key {
    /// Its public name.
    pub id: String,
    /// What signs.
    pub secret: String,
    /// Goes with temporary keys.
    pub token: Option<String>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Whom a request is signed for.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The service's name in signatures, such as `s3`.
    pub service: &'a str,
    /// The region.
    pub region: &'a str,
}

/// Signs a request. `path` is its path with every byte encoded that is neither unreserved nor a slash;
/// the query must be encoded like that already. Services other than S3 want the path encoded once more
/// than it is sent.
///
/// # Errors
/// A key that no header can hold.
pub fn sign(request: &mut Request, path: &str, key: &Key, scope: Scope<'_>, now: DateTime<Utc>) -> IdentityResult<()> {
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    let body_hash = hex::encode(digest(&SHA256, body));
    let time = now.format("%Y%m%dT%H%M%SZ").to_string();
    let headers = request.headers_mut();
    headers.insert("x-amz-content-sha256", secret_header(&body_hash)?);
    headers.insert("x-amz-date", secret_header(&time)?);
    if let Some(token) = &key.token {
        headers.insert("x-amz-security-token", secret_header(token)?);
    }
    let (names, lines) = signed_headers(request);
    let canonical = format!(
        "{}\n{path}\n{}\n{lines}\n{names}\n{body_hash}",
        request.method(),
        sorted_query(request),
    );
    let day = time.get(..8).unwrap_or_default();
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!(
        "AWS4-HMAC-SHA256\n{time}\n{place}\n{}",
        hex::encode(digest(&SHA256, canonical.as_bytes()))
    );
    let mut secret = format!("AWS4{}", key.secret).into_bytes();
    for part in [day, scope.region, scope.service, "aws4_request", &text] {
        secret = mac(&secret, part);
    }
    let value = format!(
        "AWS4-HMAC-SHA256 Credential={}/{place}, SignedHeaders={names}, Signature={}",
        key.id,
        hex::encode(secret)
    );
    request.headers_mut().insert(AUTHORIZATION, secret_header(&value)?);
    Ok(())
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        .as_ref()
        .to_vec()
}

/// The names of the headers that are signed, and a line for each.
fn signed_headers(request: &Request) -> (String, String) {
    let url = request.url();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = format!("{}{port}", url.host_str().unwrap_or_default());
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    let signed = |name: &HeaderName| name.as_str().starts_with("x-amz-") || name == "content-type" || name == "range";
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .filter(|(name, _)| signed(name))
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .chain([("host".to_owned(), host)])
        .collect();
    headers.sort();
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let lines = headers
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    (names.join(";"), lines)
}

fn sorted_query(request: &Request) -> String {
    let mut pairs: Vec<_> = request
        .url()
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::*;

    /// The example "GET Bucket (List Objects)" of the S3 API reference, less the header it doesn't send here.
    #[test]
    fn signs_as_the_reference_does() {
        let key = Key {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: None,
        };
        let url = "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"
            .parse()
            .unwrap();
        let mut request = Request::new(Method::GET, url);
        let now = "2013-05-24T00:00:00Z".parse().unwrap();
        let scope = Scope {
            service: "s3",
            region: "us-east-1",
        };
        sign(&mut request, "/", &key, scope, now).unwrap();
        let value = request.headers()[AUTHORIZATION].to_str().unwrap();
        assert!(
            value.ends_with("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
            "{value}"
        );
        assert!(request.headers()[AUTHORIZATION].is_sensitive());
        assert!(!format!("{key:?}").contains("wJalr"));
    }

    #[test]
    fn credentials_that_are_no_header_are_an_error() {
        let key = Key {
            id: "a\nb".into(),
            secret: "s".into(),
            token: Some("t\r\nx-evil: 1".into()),
        };
        let mut request = Request::new(Method::GET, "https://example.com/".parse().unwrap());
        let scope = Scope {
            service: "s3",
            region: "r",
        };
        assert!(sign(&mut request, "/", &key, scope, Utc::now()).is_err());
    }
}
