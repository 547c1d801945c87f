//! When a request is sent again.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::ProviderErrorKind;

/// Longest wait between two tries of our own choice.
const LONGEST_OWN: Duration = Duration::from_secs(20);

/// Longest wait a provider may ask for; whoever wants more gets an error, so that the work can be done later.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// How often a request was sent again, and how often it may be.
pub(super) struct Retry {
    base: Duration,
    most: u32,
    done: u32,
    /// Tries after a failure that may have been paid for: the model was at work.
    paid: u32,
}

impl Retry {
    pub(super) fn new(base: Duration, most: u32) -> Self {
        Self {
            base,
            most,
            done: 0,
            paid: 0,
        }
    }

    /// How long to wait before the next try; `None`: no other.
    pub(super) fn wait(&mut self, kind: ProviderErrorKind, asked: Option<Duration>) -> Option<Duration> {
        use ProviderErrorKind::{Auth, BadAnswer, Invalid, RateLimit, Server, Setup, Timeout, TooLarge, Unreachable};
        let paid = match kind {
            RateLimit | Server | Unreachable => false,
            Timeout | BadAnswer => true,
            Auth | Invalid | TooLarge | Setup => return None,
        };
        let too_long = asked.is_some_and(|asked| asked > LONGEST_ASKED);
        if self.done >= self.most || (paid && self.paid >= 1) || too_long {
            return None;
        }
        let doubled = self.base.saturating_mul(1 << self.done.min(16)).min(LONGEST_OWN);
        self.done += 1;
        self.paid += u32::from(paid);
        // Spread, so that calls that failed together don't come back together.
        Some(match asked {
            Some(asked) => asked + asked.mul_f64(rand::random_range(0.0..0.1)),
            None => doubled.mul_f64(rand::random_range(0.5..=1.0)),
        })
    }
}

/// What `Retry-After` asks for: seconds or a date (RFC 9110, 10.2.3); or `retry-after-ms`, as Azure and
/// OpenAI send it.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(millis) = millis {
        return Duration::try_from_secs_f64(millis / 1_000.0).ok();
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.to_utc() - Utc::now()).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let base = Duration::from_millis(100);
        let mut retry = Retry::new(base, 3);
        for least in [50, 100, 200] {
            let wait = retry.wait(ProviderErrorKind::Server, None).unwrap().as_millis();
            assert!((least..=2 * least).contains(&wait), "{wait} {least}");
        }
        assert_eq!(retry.wait(ProviderErrorKind::Server, None), None);
        let mut retry = Retry::new(base, 100);
        let longest = (0..100)
            .filter_map(|_| retry.wait(ProviderErrorKind::RateLimit, None))
            .max();
        assert!(longest.unwrap() <= LONGEST_OWN);
    }

    #[test]
    fn only_what_may_help_is_tried_again() {
        for kind in [
            ProviderErrorKind::Auth,
            ProviderErrorKind::Invalid,
            ProviderErrorKind::TooLarge,
        ] {
            assert_eq!(Retry::new(Duration::ZERO, 9).wait(kind, None), None);
        }
        let mut retry = Retry::new(Duration::ZERO, 9);
        assert!(retry.wait(ProviderErrorKind::BadAnswer, None).is_some());
        assert_eq!(retry.wait(ProviderErrorKind::Timeout, None), None);
        let asked = Some(Duration::from_secs(7));
        let wait = retry.wait(ProviderErrorKind::RateLimit, asked).unwrap();
        assert!(wait >= Duration::from_secs(7) && wait < Duration::from_secs(8));
        let asked = Some(Duration::from_secs(3_600));
        assert_eq!(retry.wait(ProviderErrorKind::RateLimit, asked), None);
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let read = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(
            read("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        let soon = (Utc::now() + chrono::Duration::seconds(30)).format("%a, %d %b %Y %H:%M:%S GMT");
        let wait = read("retry-after", &soon.to_string()).unwrap();
        assert!(wait > Duration::from_secs(25) && wait <= Duration::from_secs(30));
        for wrong in ["", "-1", "soon", "NaN", "inf", "1e400"] {
            assert_eq!(read("retry-after", wrong), None, "{wrong}");
        }
    }
}
