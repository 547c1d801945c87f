//! The requests.

use async_trait::async_trait;
use bytes::Bytes;
use chrono::Utc;
use docmill_egress::HttpClient;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Request, Response};

use super::super::http::{Refused, checked, exact_url, exchange, secret_header, whole, xml_refusal};
use super::super::text::{decode, key_path, query, walk};
use super::super::{Ask, Bucket, Entry, Page, known_type, seconds};
use super::connection::{Access, Connection};
use super::sign::sign;
use crate::Result;

/// Version of the interface; from 2021-02-12 on names that XML can't hold come encoded.
const VERSION: &str = "2021-12-02";

/// A container.
pub(super) struct Azure {
    pub(super) client: HttpClient,
    pub(super) connection: Connection,
}

impl Azure {
    async fn send(
        &self,
        method: Method,
        key: Option<&str>,
        pairs: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<std::result::Result<Response, Refused>> {
        let mut url = self.connection.base.clone();
        if let Some(key) = key {
            url = format!("{url}/{}", key_path(key));
        }
        let mut parts = vec![query(pairs)];
        if let Access::Signature(signature) = &self.connection.access {
            parts.push(signature.clone());
        }
        parts.retain(|part| !part.is_empty());
        if !parts.is_empty() {
            url = format!("{url}?{}", parts.join("&"));
        }
        let mut request = Request::new(method, exact_url(&url)?);
        let now = Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let headers = request.headers_mut();
        headers.insert("x-ms-date", secret_header(&now)?);
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        if let Some(body) = body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let kind = HeaderName::from_static("x-ms-blob-type");
            headers.insert(kind, HeaderValue::from_static("BlockBlob"));
            *request.body_mut() = Some(body.into());
        }
        if let Access::Key(secret) = &self.connection.access {
            sign(&mut request, &self.connection.account, secret)?;
        }
        let answer = checked(exchange(&self.client, request).await?, xml_refusal).await;
        let container = &self.connection.container;
        Ok(answer.map_err(|refused| {
            refused
                .or_say("ContainerNotFound", || {
                    format!("the container `{container}` does not exist")
                })
                .or_say("BlobNotFound", || {
                    format!("the object `{}` does not exist", self.url(key.unwrap_or_default()))
                })
        }))
    }
}

#[async_trait]
impl Bucket for Azure {
    const STARTS_ANYWHERE: bool = false;

    fn url(&self, key: &str) -> String {
        format!("az://{}/{key}", self.connection.container)
    }

    async fn page(&self, ask: &Ask<'_>) -> Result<Page> {
        let limit = ask.limit.to_string();
        let mut pairs = vec![
            ("restype", "container"),
            ("comp", "list"),
            ("maxresults", &limit),
            // Tells of folders that are objects.
            ("include", "metadata"),
        ];
        if !ask.prefix.is_empty() {
            pairs.push(("prefix", ask.prefix));
        }
        if !ask.recursive {
            pairs.push(("delimiter", "/"));
        }
        if let Some(token) = ask.token {
            pairs.push(("marker", token));
        }
        page(&whole(self.send(Method::GET, None, &pairs, None).await??).await?)
    }

    async fn get(&self, key: &str) -> Result<Response> {
        Ok(self.send(Method::GET, Some(key), &[], None).await??)
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<()> {
        self.send(Method::PUT, Some(key), &[], Some(body)).await??;
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<()> {
        match self.send(Method::DELETE, Some(key), &[], None).await? {
            Err(refused) if refused.code == "BlobNotFound" => Ok(()),
            answer => Ok(answer.map(drop)?),
        }
    }
}

/// Reads a page of a listing (List Blobs).
fn page(xml: &[u8]) -> Result<Page> {
    let (mut page, mut entry) = (Page::default(), Entry::default());
    walk(xml, |ended| {
        let text = ended.text.trim();
        let path: Vec<_> = ended.path.iter().skip(1).map(String::as_str).collect();
        match path.as_slice() {
            ["NextMarker"] => page.token = Some(text.to_owned()).filter(|marker| !marker.is_empty()),
            ["Blobs", "Blob"] => page.entries.push(std::mem::take(&mut entry)),
            ["Blobs", "Blob", "Name"] => {
                let decoded = ended.encoded.then(|| decode(ended.text, false)).flatten();
                entry.key = decoded.unwrap_or_else(|| ended.text.to_owned());
            }
            ["Blobs", "Blob", "Metadata", "hdi_isfolder"] => entry.folder = text == "true",
            ["Blobs", "Blob", "Properties", name] => match *name {
                "Content-Length" => entry.size = text.parse().ok(),
                "Last-Modified" => entry.modified = seconds(text),
                "Creation-Time" => entry.created = seconds(text),
                "Content-Type" => entry.content_type = known_type(text),
                "Etag" => entry.version = Some(text.trim_matches('"').to_owned()),
                // Only accounts with a hierarchy of folders tell this.
                "ResourceType" => entry.folder = text == "directory",
                _ => {}
            },
            _ => {}
        }
        Ok(())
    })?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"c\"><Blobs>\
            <Blob><Name>a &amp; b </Name><Properties><Creation-Time>Fri, 02 Jan 2026 03:04:05 GMT</Creation-Time>\
            <Last-Modified>Fri, 02 Jan 2026 03:04:06 GMT</Last-Modified><Etag>0x8D</Etag>\
            <Content-Length>3</Content-Length><Content-Type>application/octet-stream</Content-Type></Properties>\
            <Metadata /></Blob><Blob><Name Encoded=\"true\">x%01%2F</Name><Properties /></Blob>\
            <Blob><Name>dir</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>\
            <BlobPrefix><Name>p/</Name></BlobPrefix></Blobs><NextMarker>m</NextMarker></EnumerationResults>";
        let page = page(xml.as_bytes()).unwrap();
        let keys: Vec<_> = page.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["a & b ", "x\u{1}/", "dir"]);
        let first = &page.entries[0];
        assert_eq!(
            (first.size, first.modified, first.created),
            (Some(3), Some(1_767_323_046), Some(1_767_323_045))
        );
        assert_eq!(
            (first.version.as_deref(), first.content_type.as_deref()),
            (Some("0x8D"), None)
        );
        assert!(page.entries[2].is_folder());
        assert_eq!(page.token.as_deref(), Some("m"));
    }
}
