//! Instants as stored and as sent.

use chrono::{DateTime, SecondsFormat, Utc};

/// An instant: microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// One second in [`Micros`].
pub const SECOND: Micros = 1_000_000;

/// ISO 8601 in UTC with milliseconds, such as `2026-06-22T11:37:21.648Z`.
pub fn iso8601(at: Micros) -> String {
    DateTime::<Utc>::from_timestamp_micros(at)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// ISO 8601 duration of a span of microseconds, such as `PT2M30.5S`; never negative.
pub fn iso8601_duration(span: Micros) -> String {
    let millis = (span.max(0) + 500) / 1_000;
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let (seconds, fraction) = (millis / 1_000 % 60, millis % 1_000);
    let mut text = String::from("PT");
    if hours > 0 {
        text.push_str(&format!("{hours}H"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}M"));
    }
    if fraction > 0 {
        text.push_str(format!("{seconds}.{fraction:03}").trim_end_matches('0'));
        text.push('S');
    } else if seconds > 0 || text.len() == 2 {
        text.push_str(&format!("{seconds}S"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_durations() {
        assert_eq!(iso8601(1_750_592_241_648_000), "2025-06-22T11:37:21.648Z");
        assert_eq!(iso8601_duration(0), "PT0S");
        assert_eq!(iso8601_duration(150 * SECOND), "PT2M30S");
        assert_eq!(iso8601_duration(500_000), "PT0.5S");
        assert_eq!(iso8601_duration(3_600 * SECOND), "PT1H");
        assert_eq!(iso8601_duration(3_661_040_000), "PT1H1M1.04S");
        assert_eq!(iso8601_duration(-5), "PT0S");
    }
}
