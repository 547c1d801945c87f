//! What every source must do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use docmill_connectors::{ErrorKind, Result, Source};
use docmill_model::connector::SourceObject;
use futures_util::{StreamExt, TryStreamExt, future};

use super::error;

/// A source under test and the service behind it, which holds no object yet.
#[async_trait]
pub(crate) trait SourceRig: Send + Sync {
    /// The source.
    fn source(&self) -> Arc<dyn Source>;

    /// The same with credentials that are refused, where there are credentials.
    fn wrong_credentials(&self) -> Option<Arc<dyn Source>>;

    /// The same for a bucket, table or directory that is not there.
    fn absent(&self) -> Arc<dyn Source>;

    /// Writes an object.
    async fn write(&self, name: &str, content: &[u8]);

    /// Removes an object.
    async fn remove(&self, name: &str);

    /// The locator an object gets.
    fn locator(&self, name: &str) -> String {
        name.to_owned()
    }

    /// Names the service allows that are hard to handle.
    fn odd_names(&self) -> Vec<String>;

    /// Takes the service down or up again; `false` when that can't be done.
    async fn power(&self, on: bool) -> bool;

    /// More objects than one page of a listing has.
    fn over_a_page(&self) -> usize;
}

/// Runs the suite.
pub(crate) async fn conforms(rig: &dyn SourceRig) {
    nothing_there(rig).await;
    let contents = filled(rig).await;
    listing(rig, &contents).await;
    fetching(rig, &contents).await;
    changing(rig, &contents).await;
    refusals(rig).await;
    breakdown(rig, &contents).await;
}

/// Everything there is.
pub(crate) async fn list(source: &dyn Source, after: Option<String>) -> Result<Vec<SourceObject>> {
    source.list(after).try_collect().await
}

async fn nothing_there(rig: &dyn SourceRig) {
    let source = rig.source();
    source.check().await.expect("an empty source is a good one");
    assert_eq!(list(&*source, None).await.expect("an empty listing"), []);
}

async fn filled(rig: &dyn SourceRig) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for number in 0..rig.over_a_page() {
        let content = format!("The text of file {number}.");
        contents.insert(format!("{number:04}.txt"), content.into_bytes());
    }
    for name in rig.odd_names() {
        let content = format!("The text of {name:?}.").into_bytes();
        contents.insert(name, content);
    }
    contents.insert("big.txt".into(), "0123456789abcde\n".repeat(200_000).into_bytes());
    for (name, content) in &contents {
        rig.write(name, content).await;
    }
    contents
}

async fn listing(rig: &dyn SourceRig, contents: &BTreeMap<String, Vec<u8>>) {
    let source = rig.source();
    source.check().await.expect("a filled source is a good one");
    let objects = list(&*source, None).await.expect("a listing");
    let listed: Vec<_> = objects.iter().map(|object| object.locator.clone()).collect();
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    let expected: BTreeSet<_> = contents.keys().map(|name| rig.locator(name)).collect();
    assert_eq!(unique, expected);
    assert_eq!(listed.len(), unique.len(), "no object is listed twice");
    for object in &objects {
        assert!(!object.name.is_empty() && object.version.is_some(), "{object:?}");
        assert!(object.data_source.is_object(), "{object:?}");
    }
    assert_eq!(
        list(&*source, None).await.expect("again"),
        objects,
        "a listing is stable"
    );
    for start in [0, 1, listed.len() / 2, listed.len() - 2, listed.len() - 1] {
        let rest = list(&*source, Some(listed[start].clone())).await.expect("the rest");
        let rest: Vec<_> = rest.into_iter().map(|object| object.locator).collect();
        assert_eq!(rest, listed[start + 1..], "what comes after {}", listed[start]);
    }
    let first: Vec<_> = source.list(None).take(3).collect().await;
    assert_eq!(first.len(), 3, "a listing can be given up");
}

async fn fetching(rig: &dyn SourceRig, contents: &BTreeMap<String, Vec<u8>>) {
    let source = rig.source();
    let objects = by_locator(&*source).await;
    let all = contents.iter().map(|(name, content)| {
        let (source, object) = (&source, &objects[&rig.locator(name)]);
        async move {
            let fetched = source.fetch(object, 10_000_000).await;
            let bytes = fetched.unwrap_or_else(|error| panic!("{name:?}: {error}"));
            assert!(bytes == *content, "content of {name:?}");
            if let Some(size) = object.size {
                assert_eq!(size, content.len() as u64, "size of {name:?}");
            }
        }
    });
    futures_util::stream::iter(all)
        .buffer_unordered(8)
        .collect::<()>()
        .await;
    let (object, length) = (&objects[&rig.locator("big.txt")], contents["big.txt"].len() as u64);
    source
        .fetch(object, length)
        .await
        .expect("exactly as many bytes as allowed");
    let kind = error(source.fetch(object, length - 1).await, "one byte too many").kind;
    assert_eq!(kind, ErrorKind::TooLarge);
}

async fn changing(rig: &dyn SourceRig, contents: &BTreeMap<String, Vec<u8>>) {
    let source = rig.source();
    let before = by_locator(&*source).await;
    rig.write("0001.txt", b"Changed, and longer than it was before.").await;
    rig.remove("0002.txt").await;
    let after = by_locator(&*source).await;
    let (changed, gone) = (rig.locator("0001.txt"), rig.locator("0002.txt"));
    assert_eq!(after.len(), contents.len() - 1);
    assert!(!after.contains_key(&gone));
    for (locator, object) in &after {
        let same = before[locator].version == object.version;
        assert_eq!(same, *locator != changed, "version of {locator}");
    }
    let bytes = source.fetch(&after[&changed], 1_000).await.expect("the new content");
    assert_eq!(&*bytes, b"Changed, and longer than it was before.");
    let error = error(source.fetch(&before[&gone], 1_000).await, "what is gone");
    assert_eq!(error.kind, ErrorKind::Missing, "{error}");
    rig.write("0001.txt", &contents["0001.txt"]).await;
    rig.write("0002.txt", &contents["0002.txt"]).await;
}

async fn refusals(rig: &dyn SourceRig) {
    let absent = rig.absent();
    for error in [
        error(absent.check().await, "a check of what is absent"),
        error(list(&*absent, None).await, "a listing of what is absent"),
    ] {
        assert_eq!(error.kind, ErrorKind::Missing, "{error}");
    }
    let Some(wrong) = rig.wrong_credentials() else { return };
    for error in [
        error(wrong.check().await, "a check with wrong credentials"),
        error(list(&*wrong, None).await, "a listing with wrong credentials"),
    ] {
        assert_eq!(error.kind, ErrorKind::Unauthorized, "{error}");
        assert!(!error.retryable());
    }
}

async fn breakdown(rig: &dyn SourceRig, contents: &BTreeMap<String, Vec<u8>>) {
    let source = rig.source();
    let objects = by_locator(&*source).await;
    let object = &objects[&rig.locator("0000.txt")];
    let mut listing = source.list(None);
    listing.next().await.expect("a first object").expect("that is no error");
    if !rig.power(false).await {
        return;
    }
    let rest: Result<Vec<_>> = listing.try_collect().await;
    assert!(error(rest, "a listing that is cut").retryable());
    let calls = future::join3(source.check(), source.fetch(object, 1_000), list(&*source, None)).await;
    for error in [
        error(calls.0, "a check while the service is down"),
        error(calls.1, "fetching while the service is down"),
        error(calls.2, "listing while the service is down"),
    ] {
        assert!(error.retryable(), "{error}");
    }
    assert!(rig.power(true).await);
    source.check().await.expect("the service is back");
    let bytes = source.fetch(object, 1_000).await.expect("the object again");
    assert_eq!(&*bytes, contents["0000.txt"]);
    let objects = list(&*source, None).await.expect("the listing again");
    assert_eq!(objects.len(), contents.len());
}

async fn by_locator(source: &dyn Source) -> BTreeMap<String, SourceObject> {
    let objects = list(source, None).await.expect("a listing");
    objects
        .into_iter()
        .map(|object| (object.locator.clone(), object))
        .collect()
}
