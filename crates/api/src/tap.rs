//! Request bodies that can be read on after the handler gave up on them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// Bytes and time spent on what a refused client still sends.
const DRAIN_BYTES: usize = 64 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// A handle to a request's body. Clones share it; only one of them reads at a time.
#[derive(Clone)]
pub(crate) struct Tap {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    body: Incoming,
    /// Whether the client was told to go on sending, or need not be told.
    open: bool,
}

impl Tap {
    /// `expects` when the client waits for `100 Continue` before it sends the body.
    pub(crate) fn new(body: Incoming, expects: bool) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Shared { body, open: !expects })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut shared = self.lock();
        shared.open = true;
        Pin::new(&mut shared.body).poll_frame(cx)
    }

    /// Reads and forgets what is left, within bounds: a client in the middle of sending would otherwise
    /// see its connection break instead of the answer.
    pub(crate) async fn drain(self) {
        if !self.lock().open {
            return;
        }
        let rest = async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = std::future::poll_fn(|cx| self.poll(cx)).await {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                if bytes > DRAIN_BYTES {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIME, rest).await;
    }
}

impl Body for Tap {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().body.size_hint()
    }
}
