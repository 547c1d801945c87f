//! Cell values as a user sees them: numbers without false precision, dates as ISO 8601.

/// What a number format makes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A plain number.
    #[default]
    Number,
    /// A point in time; what of it the format shows.
    Moment { date: bool, time: bool, seconds: bool },
    /// A span of time, counted in hours beyond 24.
    Duration,
}

const DATE: Kind = Kind::Moment {
    date: true,
    time: false,
    seconds: false,
};

/// The kind of a built-in number format (ECMA-376 part 1, 18.8.30).
pub(super) fn kind_of_id(id: u32) -> Kind {
    match id {
        14..=17 | 27..=31 | 34..=36 | 50..=54 | 57..=58 => DATE,
        18 | 20 | 32 | 33 | 55 | 56 => Kind::Moment {
            date: false,
            time: true,
            seconds: false,
        },
        19 | 21 | 45 | 47 => Kind::Moment {
            date: false,
            time: true,
            seconds: true,
        },
        22 => Kind::Moment {
            date: true,
            time: true,
            seconds: false,
        },
        46 => Kind::Duration,
        _ => Kind::Number,
    }
}

/// The kind of a format code such as `yyyy\-mm\-dd`; only its first section counts.
pub(super) fn kind_of_code(code: &str) -> Kind {
    let mut letters = String::new();
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match c {
            ';' => break,
            '"' => {
                chars.by_ref().find(|c| *c == '"');
            }
            // Escaped, as wide as, filled with: the next character is no code.
            '\\' | '_' | '*' => {
                chars.next();
            }
            '[' => {
                let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                let inside = inside.to_lowercase();
                if !inside.is_empty() && inside.chars().all(|c| matches!(c, 'h' | 'm' | 's')) {
                    return Kind::Duration;
                }
            }
            c => letters.extend(c.to_lowercase()),
        }
    }
    if letters.trim() == "general" {
        return Kind::Number;
    }
    let has = |c: char| letters.contains(c);
    let hours = has('h');
    let seconds = has('s');
    // Months and minutes share a letter; minutes stand by hours or seconds.
    let date = has('y') || has('d') || (has('m') && !hours && !seconds);
    let time = hours || seconds;
    if date || time {
        Kind::Moment { date, time, seconds }
    } else {
        Kind::Number
    }
}

/// A number as text under a format; `epoch_1904` is the workbook's date system.
pub(super) fn format(value: f64, kind: Kind, epoch_1904: bool) -> String {
    let text = match kind {
        Kind::Number => None,
        Kind::Duration => duration(value),
        Kind::Moment { date, time, seconds } => moment(value, date, time, seconds, epoch_1904),
    };
    text.unwrap_or_else(|| number(value))
}

/// A number to 15 significant digits, which is what spreadsheets hold.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and bounded")]
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return (value as i64).to_string();
    }
    let rounded: f64 = format!("{value:.14e}").parse().unwrap_or(value);
    let size = rounded.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (1e-9..1e21).contains(&size) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

/// Whole seconds of a serial number of days within the range of dates.
fn total_seconds(value: f64) -> Option<i64> {
    // The last day that spreadsheets know is 9999-12-31.
    if !(0.0..2_958_466.0).contains(&value) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    Some((value * SECONDS_PER_DAY as f64).round() as i64)
}

fn moment(value: f64, date: bool, time: bool, seconds: bool, epoch_1904: bool) -> Option<String> {
    let total = total_seconds(value)?;
    let (day, second) = (total / SECONDS_PER_DAY, total % SECONDS_PER_DAY);
    let clock = if seconds || second % 60 != 0 {
        format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
    } else {
        format!("{:02}:{:02}", second / 3600, second / 60 % 60)
    };
    if !date {
        return Some(clock);
    }
    let (year, month, day) = civil(days_since_1970(day, epoch_1904));
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(if time || second != 0 {
        format!("{date} {clock}")
    } else {
        date
    })
}

fn duration(value: f64) -> Option<String> {
    let total = total_seconds(value.abs())?;
    let sign = if value < 0.0 { "-" } else { "" };
    Some(format!(
        "{sign}{}:{:02}:{:02}",
        total / 3600,
        total / 60 % 60,
        total % 60
    ))
}

fn days_since_1970(serial: i64, epoch_1904: bool) -> i64 {
    match (epoch_1904, serial) {
        (true, _) => serial - 24_107,
        // Day 60 is the 29th of February 1900, which never was; days before it are one off.
        (false, ..60) => serial - 25_568,
        (false, _) => serial - 25_569,
    }
}

/// Year, month and day of the Gregorian calendar, by counting in eras of 400 years from 0000-03-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        let moment = |date, time, seconds| Kind::Moment { date, time, seconds };
        assert_eq!(kind_of_code("General"), Kind::Number);
        assert_eq!(kind_of_code("#,##0.00\\ \"days\""), Kind::Number);
        assert_eq!(kind_of_code("0.00E+00"), Kind::Number);
        assert_eq!(kind_of_code("[Red]0;[h]"), Kind::Number);
        assert_eq!(kind_of_code("yyyy\\-mm\\-dd"), moment(true, false, false));
        assert_eq!(kind_of_code("mmm"), moment(true, false, false));
        assert_eq!(kind_of_code("[$-409]h:mm AM/PM"), moment(false, true, false));
        assert_eq!(kind_of_code("yyyy-mm-dd h:mm:ss"), moment(true, true, true));
        assert_eq!(kind_of_code("[h]:mm:ss"), Kind::Duration);
        assert_eq!(kind_of_code("[mm]:ss"), Kind::Duration);
    }

    #[test]
    fn dates_and_times() {
        let show = |value, code: &str| format(value, kind_of_code(code), false);
        assert_eq!(show(45_688.0, "d/m/yy"), "2025-01-31");
        assert_eq!(show(45_688.5, "d/m/yy"), "2025-01-31 12:00");
        assert_eq!(show(45_688.0, "d/m/yy h:mm:ss"), "2025-01-31 00:00:00");
        assert_eq!(show(0.75, "h:mm"), "18:00");
        assert_eq!(show(1.5, "[h]:mm"), "36:00:00");
        assert_eq!(show(1.0, "yyyy-mm-dd"), "1900-01-01");
        assert_eq!(show(59.0, "yyyy-mm-dd"), "1900-02-28");
        assert_eq!(show(61.0, "yyyy-mm-dd"), "1900-03-01");
        assert_eq!(show(-1.0, "yyyy-mm-dd"), "-1");
        assert_eq!(show(1e300, "yyyy-mm-dd"), "1e300");
        assert_eq!(format(0.0, DATE, true), "1904-01-01");
        assert_eq!(format(1461.0, DATE, true), "1908-01-01");
    }

    #[test]
    fn numbers() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(number(-1234567.891), "-1234567.891");
        assert_eq!(number(1e25), "1e25");
        assert_eq!(number(-0.0), "0");
    }
}
