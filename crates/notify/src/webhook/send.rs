//! One attempt to deliver to a webhook.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use docmill_egress::{Egress, EgressError, HttpClient, cause};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{WebhookSecret, sign};
use crate::words::one_line;

/// Longest time for all of an attempt, unless asked otherwise.
const TOTAL: Duration = Duration::from_secs(15);
/// Longest time for the body of an answer, which matters to nobody but readers of the attempt log.
const BODY: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const MOST_READ: usize = 64 * 1024;
/// Most bytes of an answer that are kept.
const MOST_KEPT: usize = 1024;
/// Longest wait that a receiver may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 3_600);

/// What came of an attempt.
#[derive(Clone, Debug)]
pub struct AttemptReport {
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
    /// At most 1 KiB from the beginning of the answer, control characters replaced.
    pub first_bytes: String,
    /// How long the attempt took.
    pub duration: Duration,
    /// What it means.
    pub outcome: Outcome,
}

/// What an attempt means for its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it: status 200 to 299.
    Delivered,
    /// To be tried again.
    Retry {
        /// Why it was not delivered. Holds no part of the URL but its host.
        reason: String,
        /// The receiver asked not to be bothered for this long (`Retry-After` with 429 or 503; 10 h at
        /// most). The next attempt is due when both this and the schedule have passed.
        after: Option<Duration>,
    },
    /// Not to be tried again.
    Final {
        /// Why.
        reason: String,
        /// The receiver wants no more deliveries at all: the channel is to be disabled.
        gone: bool,
    },
}

/// Posts to webhooks. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct WebhookSender {
    egress: Egress,
    client: HttpClient,
    total: Duration,
}

impl WebhookSender {
    /// A sender that reaches what the guard allows and gives each attempt 15 seconds.
    ///
    /// # Errors
    /// [`EgressError::Setup`] when TLS can't be set up.
    pub fn new(egress: &Egress) -> Result<Self, EgressError> {
        Self::with_timeout(egress, TOTAL)
    }

    /// A sender that gives each attempt `total`.
    ///
    /// # Errors
    /// [`EgressError::Setup`] when TLS can't be set up.
    pub fn with_timeout(egress: &Egress, total: Duration) -> Result<Self, EgressError> {
        Ok(Self {
            client: egress.http_client(total)?,
            egress: egress.clone(),
            total,
        })
    }

    /// Posts `body` to `url`, signed by `secrets` (the current one first; without any, unsigned), and says what came of it within
    /// the sender's time. `id` is the delivery's, the same for every attempt; `timestamp` is this attempt's, in
    /// seconds since 1970. Redirects are not followed and answers not decompressed.
    pub async fn send(
        &self,
        url: &str,
        id: &str,
        timestamp: i64,
        body: Bytes,
        secrets: &[&WebhookSecret],
    ) -> AttemptReport {
        let start = Instant::now();
        if let Some(outcome) = self.refused(url) {
            return AttemptReport {
                status: None,
                first_bytes: String::new(),
                duration: start.elapsed(),
                outcome,
            };
        }
        let end = start + self.total;
        let mut request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT_ENCODING, "identity")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp);
        if !secrets.is_empty() {
            request = request.header("webhook-signature", sign(secrets, id, timestamp, &body));
        }
        let request = request.body(body).send();
        let (status, first_bytes, outcome) = match timeout_at(end, request).await {
            Err(_) => (None, String::new(), late(self.total)),
            Ok(Err(error)) => (None, String::new(), failed(&error, self.total)),
            Ok(Ok(answer)) => {
                let (status, outcome) = (answer.status(), judged(&answer, timestamp));
                let kept = beginning(answer, end.min(Instant::now() + BODY)).await;
                (Some(status.as_u16()), kept, outcome)
            }
        };
        AttemptReport {
            status,
            first_bytes,
            duration: start.elapsed(),
            outcome,
        }
    }

    /// What the guard has against a URL. Its client refuses all of this too; asked first, its reason is known.
    fn refused(&self, url: &str) -> Option<Outcome> {
        let refusal = self.egress.check_url(url).err()?;
        match Url::parse(url) {
            Ok(_) => Some(retry(one_line(&refusal.to_string(), 300))),
            Err(_) => Some(unusable()),
        }
    }
}

fn unusable() -> Outcome {
    Outcome::Final {
        reason: "the webhook's URL can't be used".into(),
        gone: false,
    }
}

fn late(total: Duration) -> Outcome {
    retry(format!("no answer within {} seconds", total.as_secs_f32()))
}

fn retry(reason: String) -> Outcome {
    Outcome::Retry { reason, after: None }
}

/// What a status means.
fn judged(answer: &Response, now: i64) -> Outcome {
    let status = answer.status();
    if status.is_success() {
        return Outcome::Delivered;
    }
    if status == StatusCode::GONE {
        return Outcome::Final {
            reason: "the receiver answered 410 Gone: it wants no more deliveries".into(),
            gone: true,
        };
    }
    let asks = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let after = answer.headers().get(RETRY_AFTER).filter(|_| asks);
    let reason = if status.is_redirection() {
        format!("the receiver answered {status}: redirects are not followed, set the webhook to the final URL")
    } else {
        format!("the receiver answered {status}")
    };
    Outcome::Retry {
        reason,
        after: after.and_then(|value| wait(value.to_str().ok()?, now)),
    }
}

/// A `Retry-After`, in seconds or as a date, within bounds.
fn wait(text: &str, now: i64) -> Option<Duration> {
    let text = text.trim();
    let seconds = if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().unwrap_or(u64::MAX)
    } else {
        let at = DateTime::parse_from_rfc2822(text).ok()?.timestamp();
        u64::try_from(at.saturating_sub(now)).unwrap_or(0)
    };
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT)).filter(|wait| !wait.is_zero())
}

/// Why there was no answer. The URL is left out: its path and query may be secret.
fn failed(error: &reqwest::Error, total: Duration) -> Outcome {
    if error.is_builder() {
        return unusable();
    }
    if let Some(refusal) = cause(error) {
        return retry(one_line(&refusal.to_string(), 300));
    }
    if error.is_timeout() {
        return if error.is_connect() {
            retry("no connection in time".into())
        } else {
            late(total)
        };
    }
    let mut root: &dyn Error = error;
    while let Some(source) = root.source() {
        root = source;
    }
    let what = if error.is_connect() {
        "no connection"
    } else {
        "the connection broke before an answer came"
    };
    // The root cause is an error of the socket, of TLS or of HTTP; only reqwest's own names the URL.
    if root.is::<reqwest::Error>() {
        return retry(what.into());
    }
    retry(format!("{what}: {}", one_line(&root.to_string(), 300)))
}

/// Reads on until `end` or 64 KiB, so that a small answer leaves its connection usable, and keeps the
/// beginning.
async fn beginning(mut answer: Response, end: Instant) -> String {
    let (mut kept, mut read) = (Vec::new(), 0);
    while let Ok(Ok(Some(piece))) = timeout_at(end, answer.chunk()).await {
        read += piece.len();
        let room = MOST_KEPT.saturating_sub(kept.len());
        kept.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
        if read >= MOST_READ {
            break;
        }
    }
    let text: String = String::from_utf8_lossy(&kept)
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect();
    // A character cut in two became three bytes longer than what was left of it.
    text.char_indices()
        .take_while(|(at, c)| at + c.len_utf8() <= MOST_KEPT)
        .map(|(_, c)| c)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_seconds_or_dates_within_bounds() {
        let secs = |text: &str| wait(text, 784_111_777).map(|wait| wait.as_secs());
        assert_eq!(secs("120"), Some(120));
        assert_eq!(secs(" 120 "), Some(120));
        assert_eq!(secs("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(secs("99999999999999999999999"), Some(36_000));
        assert_eq!(secs("Fri, 31 Dec 9999 23:59:59 GMT"), Some(36_000));
        for nothing in ["", "0", "-5", "1.5", "soon", "Sun, 06 Nov 1994 08:49:00 GMT"] {
            assert_eq!(secs(nothing), None, "{nothing}");
        }
    }
}
