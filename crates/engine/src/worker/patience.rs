//! Trying again what a source or destination could not do just now.

use std::time::Duration;

use docmill_connectors::{ConnectorError, ErrorKind, Result};

/// Times an operation is tried.
const TRIES: u32 = 3;

/// Pause before the second try; each later one is four times as long. Up to half of it is taken off or
/// added by chance, so that many files that failed together do not come again together.
const PAUSE: Duration = Duration::from_millis(500);

/// Time one try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs an operation of a connector, and again, with pauses, when it failed in a way that may pass.
///
/// # Errors
/// The last try's.
pub async fn patiently<T, F: Future<Output = Result<T>>>(mut operation: impl FnMut() -> F) -> Result<T> {
    let mut pause = PAUSE;
    let mut tries = 0;
    loop {
        tries += 1;
        let error = match tokio::time::timeout(TRY_TIMEOUT, operation()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => error,
            Err(_) => ConnectorError::new(
                ErrorKind::Unavailable,
                format!("no end within {} seconds", TRY_TIMEOUT.as_secs()),
            ),
        };
        if tries >= TRIES || !error.retryable() {
            return Err(error);
        }
        metrics::counter!("docmill_connector_retries_total").increment(1);
        tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>())).await;
        pause *= 4;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn tries(kind: ErrorKind, failures: u32) -> (u32, bool) {
        let tried = AtomicU32::new(0);
        let result = patiently(|| async {
            if tried.fetch_add(1, Ordering::SeqCst) < failures {
                Err(ConnectorError::new(kind, "no"))
            } else {
                Ok(())
            }
        })
        .await;
        (tried.into_inner(), result.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_three_times_and_the_rest_once() {
        assert_eq!(tries(ErrorKind::Unavailable, 0).await, (1, true));
        assert_eq!(tries(ErrorKind::Throttled, 2).await, (3, true));
        assert_eq!(tries(ErrorKind::Unavailable, 9).await, (3, false));
        assert_eq!(tries(ErrorKind::Unauthorized, 9).await, (1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_hangs_is_given_up() {
        let result: Result<()> = patiently(std::future::pending).await;
        assert_eq!(result.unwrap_err().kind, ErrorKind::Unavailable);
    }
}
