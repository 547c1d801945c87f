//! A directory's files.

use std::io::Read;

use async_trait::async_trait;
use bytes::Bytes;
use docmill_model::connector::SourceObject;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::root::Root;
use super::walk::Walk;
use super::{blocking, failed, locator};
use crate::{ConnectorError, ErrorKind, Result, Source};

/// Files listed at a time.
const PAGE: usize = 512;

pub(super) struct LocalSource {
    pub(super) root: Root,
    pub(super) recursive: bool,
}

#[async_trait]
impl Source for LocalSource {
    async fn check(&self) -> Result<()> {
        let root = self.root.clone();
        blocking(move || {
            let directory = root.open()?;
            rustix::fs::Dir::read_from(directory)
                .and_then(|mut names| names.next().transpose())
                .map_err(|error| failed("read", &root.shown(), &error.into()))?;
            Ok(())
        })
        .await
    }

    fn list(&self, after: Option<String>) -> BoxStream<'_, Result<SourceObject>> {
        let (root, recursive) = (self.root.clone(), self.recursive);
        let start = blocking(move || {
            let after = match after {
                None => Vec::new(),
                Some(after) => locator::components(&after).ok_or_else(|| not_a_locator(&after))?,
            };
            Walk::new(root, recursive, after)
        });
        stream::once(start)
            .map_ok(|walk| {
                stream::try_unfold(walk, |mut walk| async move {
                    let (page, walk) = blocking(move || Ok((walk.page(PAGE)?, walk))).await?;
                    let more = !page.is_empty();
                    Ok::<_, ConnectorError>(more.then(|| (stream::iter(page.into_iter().map(Ok)), walk)))
                })
                .try_flatten()
            })
            .try_flatten()
            .boxed()
    }

    async fn fetch(&self, object: &SourceObject, max_bytes: u64) -> Result<Bytes> {
        let components = locator::components(&object.locator).ok_or_else(|| not_a_locator(&object.locator))?;
        let root = self.root.clone();
        blocking(move || {
            let shown = format!("{}/{}", root.shown(), locator::display(&components));
            let fail = |error| failed("read", &shown, &error);
            let file = root.open_file(root.open()?, &components).map_err(fail)?;
            let size = file.metadata().map_err(fail)?.len();
            let too_large = || {
                ConnectorError::new(
                    ErrorKind::TooLarge,
                    format!("{shown} has more than the {max_bytes} bytes a file may have"),
                )
            };
            if size > max_bytes {
                return Err(too_large());
            }
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            // The file may grow while it is read.
            file.take(max_bytes.saturating_add(1))
                .read_to_end(&mut bytes)
                .map_err(fail)?;
            if u64::try_from(bytes.len()).is_ok_and(|read| read > max_bytes) {
                return Err(too_large());
            }
            Ok(bytes.into())
        })
        .await
    }
}

fn not_a_locator(text: &str) -> ConnectorError {
    ConnectorError::new(ErrorKind::Missing, format!("`{text}` names no file of a directory"))
}
