//! A bound on bytes that are in memory at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes one permit stands for: fine enough to count small files, coarse enough for the semaphore.
const GRAIN: u64 = 4_096;

/// A number of bytes that many share.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    all: u32,
}

/// Bytes taken from a [`Budget`], until dropped.
#[derive(Debug)]
pub(crate) struct Share {
    _permit: OwnedSemaphorePermit,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let all = u32::try_from(bytes.div_ceil(GRAIN)).unwrap_or(most).clamp(1, most);
        Self {
            permits: Arc::new(Semaphore::new(all as usize)),
            all,
        }
    }

    /// Waits until so many bytes are free and takes them. Whoever asks for more than there are gets all.
    /// First come, first served.
    pub(crate) async fn take(&self, bytes: u64) -> Option<Share> {
        let permits = u32::try_from(bytes.div_ceil(GRAIN))
            .unwrap_or(self.all)
            .clamp(1, self.all);
        let permit = self.permits.clone().acquire_many_owned(permits).await.ok()?;
        Some(Share { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn no_more_bytes_are_out_than_there_are() {
        let budget = Budget::new(10 * GRAIN);
        let half = budget.take(5 * GRAIN).await.unwrap();
        let small = budget.take(1).await.unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(20), budget.take(5 * GRAIN)).await;
        assert!(waiting.is_err());
        drop(small);
        let rest = budget.take(5 * GRAIN).await.unwrap();
        drop((half, rest));
        // More than there is: alone, and not for ever.
        drop(budget.take(u64::MAX).await.unwrap());
    }
}
