//! Instants as stored and as sent.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, Utc};

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

/// Reads ISO 8601: a date, or a date and a time (`T` or a space between them, seconds and their fraction
/// optional) with `Z`, an offset or nothing, which means UTC. An instant finer than microseconds is cut.
///
/// A `+` that a URL's reader made a space is read as the `+` it was.
pub fn parse_iso8601(text: &str) -> Option<Micros> {
    /// Longer than any form below.
    const LONGEST: usize = 48;
    let text = text.trim();
    if text.len() > LONGEST {
        return None;
    }
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(date.and_time(NaiveTime::MIN).and_utc().timestamp_micros());
    }
    let at = text.find(['T', 't', ' '])?;
    let (date, clock) = (text.get(..at)?, text.get(at + 1..)?);
    let clock = clock.replacen(' ', "+", 1);
    let (clock, zone) = match clock.find(['Z', 'z', '+', '-']) {
        Some(at) => (clock.get(..at)?, clock.get(at..)?),
        None => (clock.as_str(), "Z"),
    };
    let seconds = if clock.matches(':').count() == 1 { ":00" } else { "" };
    let naive = NaiveDateTime::parse_from_str(&format!("{date}T{clock}{seconds}"), "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    let offset = offset_minutes(zone)?;
    let instant = naive.checked_sub_signed(chrono::TimeDelta::minutes(offset))?;
    Some(instant.and_utc().timestamp_micros())
}

/// `Z`, `+02`, `+0200` or `+02:00` in minutes east of Greenwich.
fn offset_minutes(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let digits = zone.get(1..)?.replacen(':', "", 1);
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits
        .get(2..)
        .filter(|text| !text.is_empty())
        .map_or(Some(0), |text| text.parse().ok())?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
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
    fn instants_are_read_in_every_common_form() {
        let noon = 1_767_268_800 * SECOND;
        for text in [
            "2026-01-01T12:00:00Z",
            "2026-01-01T12:00:00.000Z",
            "2026-01-01t12:00z",
            "2026-01-01T12:00:00",
            "2026-01-01 12:00",
            " 2026-01-01T12:00:00+00:00 ",
            "2026-01-01T14:00:00+0200",
            "2026-01-01T14:00:00 02:00",
            "2026-01-01T07:30:00-04:30",
            "2026-01-01T14:00:00.000000999+02",
        ] {
            assert_eq!(parse_iso8601(text), Some(noon), "{text}");
        }
        assert_eq!(parse_iso8601("2026-01-01"), Some(noon - 12 * 3_600 * SECOND));
        assert_eq!(parse_iso8601(&iso8601(noon + 7_000)), Some(noon + 7_000));
        for text in [
            "",
            "now",
            "1767268800",
            "2026-13-01",
            "2026-02-30T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "12:00",
            "2026-01-01T12:00:00+25:00",
            "2026-01-01T12:00:00Z; DROP",
            "2026-01-01T12:00:00+",
            "2026-01-01T",
            "T",
            "2026-01-01Tä:00",
            "2026-01-01T12:00:00+1",
            "99999999999999-01-01",
            "+262143-01-01T00:00:00-23:59x",
        ] {
            assert_eq!(parse_iso8601(text), None, "{text}");
        }
    }

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
