//! Buckets of object stores: s3 and compatible services, azure, gcs.
//!
//! A [`Bucket`] knows how one service lists, gets, puts and deletes; what makes a [`Source`] and a
//! [`Destination`] of it is the same for all. Object keys are taken exactly as listings give them.

pub(crate) mod azure;
pub(crate) mod gcs;
mod http;
pub(crate) mod s3;
mod text;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_model::connector::SourceObject;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use reqwest::Response;
use serde_json::{Value, json};

use crate::{ConnectorError, Destination, Document, ErrorKind, Result, Source, object_name};

/// Objects of one page of a listing.
const PAGE: u32 = 1_000;

/// How often a page is asked for before the listing fails.
const TRIES: u32 = 3;

/// One bucket (or container) of a service.
#[async_trait]
pub(crate) trait Bucket: Send + Sync {
    /// URL of an object, for people.
    fn url(&self, key: &str) -> String;

    /// Whether a listing can start after a key, in the order of the keys' bytes.
    const STARTS_ANYWHERE: bool;

    /// One page of the objects whose keys begin with a prefix.
    async fn page(&self, ask: &Ask<'_>) -> Result<Page>;

    /// The answer whose body is the object.
    async fn get(&self, key: &str) -> Result<Response>;

    /// Writes an object.
    async fn put(&self, key: &str, body: Bytes) -> Result<()>;

    /// Removes an object; one that is not there is no error.
    async fn delete(&self, key: &str) -> Result<()>;
}

/// Which page of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    prefix: &'a str,
    /// Whether keys with a `/` after the prefix are wanted too.
    recursive: bool,
    limit: u32,
    /// Keys up to this one are not wanted, if the service can start anywhere; it may send them all the same.
    after: Option<&'a str>,
    /// What the page before gave.
    token: Option<&'a str>,
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    entries: Vec<Entry>,
    /// What to ask the next page with.
    token: Option<String>,
}

/// An object in a listing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    key: String,
    size: Option<u64>,
    version: Option<String>,
    /// Seconds since 1970.
    modified: Option<i64>,
    created: Option<i64>,
    content_type: Option<String>,
    /// It stands for a folder.
    folder: bool,
}

impl Entry {
    /// What consoles and tools leave behind to show an empty folder.
    fn is_folder(&self) -> bool {
        let marked = self.key.ends_with('/') || self.key.ends_with("_$folder$");
        self.folder || (marked && self.size == Some(0))
    }
}

/// A place in a bucket.
#[derive(Clone, Debug)]
struct Place {
    /// What stands after the bucket's name in the URL, as keys are written.
    path: String,
}

impl Place {
    /// What keys below it begin with.
    fn folder(&self) -> String {
        match self.path.as_str() {
            "" => String::new(),
            path if path.ends_with('/') => path.to_owned(),
            path => format!("{path}/"),
        }
    }

    /// A key without the place's own path; the file's name for an object that is the place itself.
    fn below<'k>(&self, key: &'k str) -> &'k str {
        let below = key.strip_prefix(&self.folder()).filter(|below| !below.is_empty());
        below.unwrap_or_else(|| key.rsplit('/').find(|part| !part.is_empty()).unwrap_or(key))
    }
}

/// Objects of a bucket as files.
struct ObjectSource<B> {
    bucket: B,
    place: Place,
    recursive: bool,
    /// Name of the protocol in record locators.
    protocol: &'static str,
}

impl<B: Bucket> ObjectSource<B> {
    /// A page, asked for again when the service stumbles: a listing of a million objects meets that.
    async fn page(&self, ask: &Ask<'_>) -> Result<Page> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.bucket.page(ask).await {
                Err(error) if error.retryable() && tries < TRIES => {
                    tracing::debug!(%error, tries, "a page of a listing is asked for again");
                    tokio::time::sleep(Duration::from_millis(200 << tries)).await;
                }
                Ok(page) if page.token.is_some() && page.token.as_deref() == ask.token => {
                    return Err(ConnectorError::new(
                        ErrorKind::Unexpected,
                        "the listing goes round in a circle: a page names itself as the next one",
                    ));
                }
                answer => return answer,
            }
        }
    }

    /// The object that has the very name of the place, when the place is no folder.
    async fn itself(&self) -> Result<Option<Entry>> {
        if self.place.path.is_empty() || self.place.path.ends_with('/') {
            return Ok(None);
        }
        let ask = Ask {
            prefix: &self.place.path,
            recursive: true,
            limit: 1,
            after: None,
            token: None,
        };
        let page = self.page(&ask).await?;
        Ok(page.entries.into_iter().find(|entry| entry.key == self.place.path))
    }

    /// The objects of the next page and what comes after it.
    async fn step(&self, state: Listing) -> Result<(Vec<Entry>, Option<Listing>)> {
        let folder = self.place.folder();
        let ask = Ask {
            prefix: &folder,
            recursive: self.recursive,
            limit: PAGE,
            after: state.after.as_deref().filter(|_| B::STARTS_ANYWHERE),
            token: state.token.as_deref(),
        };
        let mut page = self.page(&ask).await?;
        if state.token.is_none() && page.entries.is_empty() && page.token.is_none() {
            page.entries.extend(self.itself().await?);
        }
        let (entries, next) = state.accept(page, B::STARTS_ANYWHERE);
        let files = entries.into_iter().filter(|entry| !entry.is_folder());
        Ok((files.collect(), next))
    }

    fn object(&self, entry: Entry) -> SourceObject {
        let url = self.bucket.url(&entry.key);
        let mut data_source = json!({
            "url": url,
            "record_locator": {"protocol": self.protocol, "remote_file_path": url},
        });
        let version = entry
            .version
            .or_else(|| Some(format!("{}-{}", entry.size?, entry.modified?)));
        let seconds = |time: Option<i64>| time.map(|time| Value::from(time.to_string()));
        for (name, value) in [
            ("version", version.clone().map(Value::from)),
            ("date_created", seconds(entry.created)),
            ("date_modified", seconds(entry.modified)),
        ] {
            if let Some(value) = value {
                data_source[name] = value;
            }
        }
        SourceObject {
            name: self.place.below(&entry.key).to_owned(),
            size: entry.size,
            version,
            content_type: entry.content_type,
            data_source,
            locator: entry.key,
        }
    }
}

/// How far a listing is.
#[derive(Debug, PartialEq)]
struct Listing {
    /// What the next page is asked with; `None`: it is the first.
    token: Option<String>,
    /// What is listed up to here (and including it) is not wanted.
    after: Option<String>,
}

impl Listing {
    /// What is wanted of a page, and how to go on; `None`: that was the last one.
    fn accept(self, page: Page, starts_anywhere: bool) -> (Vec<Entry>, Option<Self>) {
        let on = |after| {
            page.token.clone().map(|token| Self {
                token: Some(token),
                after,
            })
        };
        let mut entries = page.entries;
        let Some(after) = self.after else {
            return (entries, on(None));
        };
        if starts_anywhere {
            entries.retain(|entry| entry.key > after);
            return (entries, on(Some(after)));
        }
        // Nobody says in which order such a service lists, so the place is looked for. An object that was
        // deleted since is not found: then everything is listed, which at worst repeats what was listed.
        match (entries.iter().position(|entry| entry.key == after), &page.token) {
            (Some(place), _) => (entries.split_off(place + 1), on(None)),
            (None, Some(_)) => (Vec::new(), on(Some(after))),
            (None, None) => {
                let anew = Self {
                    token: None,
                    after: None,
                };
                (Vec::new(), Some(anew))
            }
        }
    }
}

#[async_trait]
impl<B: Bucket> Source for ObjectSource<B> {
    async fn check(&self) -> Result<()> {
        let folder = self.place.folder();
        let ask = Ask {
            prefix: &folder,
            recursive: true,
            limit: 1,
            after: None,
            token: None,
        };
        self.bucket.page(&ask).await.map(drop)
    }

    fn list(&self, after: Option<String>) -> BoxStream<'_, Result<SourceObject>> {
        let start = Listing { token: None, after };
        let pages = stream::try_unfold(Some(start), move |state| async move {
            let Some(state) = state else {
                return Ok::<_, ConnectorError>(None);
            };
            let (entries, next) = self.step(state).await?;
            let objects = stream::iter(entries).map(move |entry| Ok(self.object(entry)));
            Ok(Some((objects, next)))
        });
        pages.try_flatten().boxed()
    }

    async fn fetch(&self, object: &SourceObject, max_bytes: u64) -> Result<Bytes> {
        let response = self.bucket.get(&object.locator).await?;
        let most = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        http::body(response, most).await?.ok_or_else(|| {
            ConnectorError::new(
                ErrorKind::TooLarge,
                format!("the object has more than {max_bytes} bytes"),
            )
        })
    }
}

/// Elements as JSON objects of a bucket.
struct ObjectDestination<B> {
    bucket: B,
    place: Place,
}

#[async_trait]
impl<B: Bucket> Destination for ObjectDestination<B> {
    async fn check(&self) -> Result<()> {
        let key = format!("{}.docmill-check-{}", self.place.folder(), uuid::Uuid::new_v4());
        self.bucket.put(&key, Bytes::from_static(b"{}")).await?;
        self.bucket.delete(&key).await
    }

    async fn put(&self, document: &Document) -> Result<()> {
        let name = object_name(&document.record_id, &document.name);
        let key = format!("{}{name}", self.place.folder());
        self.bucket.put(&key, document.elements.clone()).await
    }

    async fn delete(&self, record_id: &str, name: &str) -> Result<()> {
        let key = format!("{}{}", self.place.folder(), object_name(record_id, name));
        self.bucket.delete(&key).await
    }
}

/// A bucket's name and the path behind it, of a URL `scheme://bucket/path`. The path is taken as it is,
/// not as percent-encoded.
fn remote_url<'u>(url: &'u str, schemes: &[&str]) -> Result<(&'u str, Place)> {
    let wrong = |why: &str| {
        let shown: String = url.chars().take(100).collect();
        let wanted = schemes.first().copied().unwrap_or_default();
        ConnectorError::new(
            ErrorKind::Invalid,
            format!("remote_url `{shown}` {why}; it looks like {wanted}://name/folder"),
        )
    };
    let (scheme, rest) = url.trim().split_once("://").ok_or_else(|| wrong("is no URL"))?;
    if !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return Err(wrong("has another scheme"));
    }
    let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
    let place = Place {
        path: path.trim_start_matches('/').to_owned(),
    };
    if bucket.is_empty() {
        return Err(wrong("names no bucket"));
    }
    Ok((bucket, place))
}

/// A name that may stand in a host name or a path as it is.
fn plain_name(what: &str, name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._$".contains(&byte);
    if name.len() <= 255 && name.bytes().all(plain) && !matches!(name, "." | "..") {
        return Ok(());
    }
    let shown: String = name.chars().take(100).collect();
    Err(ConnectorError::new(
        ErrorKind::Invalid,
        format!("`{shown}` is no name of a {what}"),
    ))
}

/// The base of an endpoint's URL, without a slash at its end.
fn endpoint(egress: &docmill_egress::Egress, setting: &str, url: &str) -> Result<String> {
    let url = egress
        .check_url(url.trim())
        .map_err(|error| ConnectorError::new(ErrorKind::Forbidden, format!("{setting}: {error}")))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ConnectorError::new(
            ErrorKind::Invalid,
            format!("{setting} must have no query and no fragment"),
        ));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Seconds since 1970 of a time as services write it.
fn seconds(text: &str) -> Option<i64> {
    let time = chrono::DateTime::parse_from_rfc3339(text).or_else(|_| chrono::DateTime::parse_from_rfc2822(text));
    time.ok().map(|time| time.timestamp())
}

/// Whether a connector may use the machine's credentials.
fn ambient_allowed(environment: &crate::Environment) -> Result<()> {
    if environment.ambient_credentials {
        return Ok(());
    }
    Err(ConnectorError::new(
        ErrorKind::Forbidden,
        "ambient_credentials are not permitted on this server (setting connectors.allow_ambient_credentials)",
    ))
}

const RECURSIVE: crate::config::Field = crate::config::Field::new(
    "recursive",
    crate::config::FieldKind::Bool(true),
    "Whether objects in folders below the folder are read too.",
);

/// A MIME type that says something.
fn known_type(text: &str) -> Option<String> {
    let text = text.trim();
    let known = !text.is_empty() && !matches!(text, "application/octet-stream" | "binary/octet-stream");
    known.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(keys: &[&str], token: Option<&str>) -> Page {
        let entry = |key: &&str| Entry {
            key: (*key).into(),
            ..Entry::default()
        };
        Page {
            entries: keys.iter().map(entry).collect(),
            token: token.map(str::to_owned),
        }
    }

    fn listing(token: Option<&str>, after: Option<&str>) -> Listing {
        Listing {
            token: token.map(str::to_owned),
            after: after.map(str::to_owned),
        }
    }

    #[test]
    fn a_listing_goes_on_where_it_was() {
        let keys = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
        let (entries, next) = listing(None, Some("b")).accept(page(&["a", "b", "c"], Some("t")), true);
        assert_eq!(keys(entries), ["c"]);
        assert_eq!(next, Some(listing(Some("t"), Some("b"))));
        // An order of its own: what stands before the place is left out, what stands behind it is not.
        let (entries, next) = listing(None, Some("b")).accept(page(&["c", "d"], Some("t")), false);
        assert_eq!((keys(entries).len(), &next), (0, &Some(listing(Some("t"), Some("b")))));
        let (entries, next) = next.unwrap().accept(page(&["b", "a"], Some("u")), false);
        assert_eq!(keys(entries), ["a"]);
        assert_eq!(next, Some(listing(Some("u"), None)));
        // The place is gone.
        let (entries, next) = listing(Some("t"), Some("b")).accept(page(&["a"], None), false);
        assert_eq!((keys(entries).len(), &next), (0, &Some(listing(None, None))));
        let (entries, next) = next.unwrap().accept(page(&["a"], None), false);
        assert_eq!((keys(entries), next), (vec!["a".to_owned()], None));
    }

    #[test]
    fn places_are_read_from_urls() {
        for (url, bucket, path, folder) in [
            ("s3://b", "b", "", ""),
            ("S3://b/", "b", "", ""),
            ("s3://b/a b/%20", "b", "a b/%20", "a b/%20/"),
            (" s3://b//a/ ", "b", "a/", "a/"),
        ] {
            let (name, place) = remote_url(url, &["s3"]).unwrap();
            assert_eq!(
                (name, place.path.as_str(), place.folder().as_str()),
                (bucket, path, folder),
                "{url}"
            );
        }
        let (_, place) = remote_url("s3://b/docs/a.txt", &["s3"]).unwrap();
        assert_eq!(place.below("docs/a.txt"), "a.txt");
        assert_eq!(place.below("docs/a.txt/b"), "b");
    }
}
