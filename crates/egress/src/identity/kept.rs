//! Temporary keys and tokens.

use std::fmt;

use chrono::Utc;
use tokio::sync::Mutex;

/// A secret is renewed this many seconds before it ends.
const EARLY: i64 = 300;

/// A secret that is kept until shortly before it ends.
pub struct Kept<T>(Mutex<Option<Ending<T>>>);

/// A secret and when it ends, in seconds since 1970.
#[derive(Clone)]
pub struct Ending<T> {
    /// The key or token.
    pub secret: T,
    /// Seconds since 1970; `None`: it does not end.
    pub expires: Option<i64>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl<T: Clone> Kept<T> {
    /// The secret kept, or a new one; callers that come meanwhile wait for it.
    ///
    /// # Errors
    /// What `renew` met.
    pub async fn get<E>(&self, renew: impl Future<Output = Result<Ending<T>, E>>) -> Result<T, E> {
        let mut kept = self.0.lock().await;
        let soon = Utc::now().timestamp() + EARLY;
        if let Some(fresh) = kept.as_ref().filter(|kept| kept.expires.is_none_or(|end| end > soon)) {
            return Ok(fresh.secret.clone());
        }
        let new = renew.await?;
        let secret = new.secret.clone();
        *kept = Some(new);
        Ok(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_is_renewed_before_it_ends() {
        let now = Utc::now().timestamp();
        for (expires, renewals) in [(None, 1), (Some(now + 3_600), 1), (Some(now + EARLY - 10), 3)] {
            let (kept, mut count) = (Kept::default(), 0);
            for _ in 0..3 {
                let renew = async {
                    count += 1;
                    Ok::<_, ()>(Ending { secret: "x", expires })
                };
                assert_eq!(kept.get(renew).await.unwrap(), "x");
            }
            assert_eq!(count, renewals, "{expires:?}");
        }
    }
}
