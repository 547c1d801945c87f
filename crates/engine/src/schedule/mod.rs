//! When a workflow runs: the words and cron expressions clients write, and the instants they stand for.
//!
//! Everything here is a pure function of its arguments. A schedule is read on the wall clock of its time
//! zone: a time the clocks skip fires once, at the first instant after the gap; a time the clocks show
//! twice fires the first time only. So instants grow strictly and none comes twice.

mod timetable;

#[cfg(test)]
mod tests;

use chrono_tz::Tz;
use docmill_model::time::Micros;
use docmill_model::workflow::{Overlap, Schedule};

pub use timetable::Timetable;

/// Longest cron expression, in bytes; the longest sensible ones list every minute of an hour.
const LONGEST: usize = 256;

/// The words clients may write, and the cron expression each stands for.
pub const WORDS: &[(&str, &str)] = &[
    ("every 15 minutes", "*/15 * * * *"),
    ("every hour", "0 * * * *"),
    ("every 2 hours", "0 */2 * * *"),
    ("every 4 hours", "0 */4 * * *"),
    ("every 6 hours", "0 */6 * * *"),
    ("every 8 hours", "0 */8 * * *"),
    ("every 10 hours", "0 */10 * * *"),
    ("every 12 hours", "0 */12 * * *"),
    ("daily", "0 0 * * *"),
    ("weekly", "0 0 * * 0"),
    ("monthly", "0 0 1 * *"),
];

/// Why a schedule is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Neither a word nor a cron expression that ever fires.
    #[error("{0}")]
    Cron(String),
    /// Not the name of a time zone.
    #[error("{0}")]
    Timezone(String),
}

/// Reads a schedule: one of [`WORDS`] or five fields of cron, on the wall clock of `timezone` (an IANA
/// name; UTC when none is given).
///
/// # Errors
/// With what is wrong and what would be right.
pub fn parse(text: &str, timezone: Option<&str>, overlap: Overlap) -> Result<Schedule, ScheduleError> {
    if text.len() > LONGEST {
        return Err(ScheduleError::Cron(format!("a schedule has at most {LONGEST} bytes")));
    }
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let plain = fields.join(" ");
    let word = WORDS.iter().find(|(word, _)| plain.eq_ignore_ascii_case(word));
    let schedule = Schedule {
        cron: word.map_or(plain, |(_, cron)| (*cron).to_owned()),
        timezone: zone(timezone.unwrap_or("UTC"))?.name().to_owned(),
        overlap,
    };
    Timetable::of(&schedule)?;
    Ok(schedule)
}

/// The first instant of a schedule after `after`.
///
/// # Errors
/// When the schedule is none.
pub fn next_after(schedule: &Schedule, after: Micros) -> Result<Option<Micros>, ScheduleError> {
    Ok(Timetable::of(schedule)?.next_after(after))
}

/// The last instant of a schedule that is after `from` and not after `now`: what is left to do of all
/// that was missed. It takes as long after a year as after a minute.
///
/// # Errors
/// When the schedule is none.
pub fn latest_due(schedule: &Schedule, from: Micros, now: Micros) -> Result<Option<Micros>, ScheduleError> {
    Ok(Timetable::of(schedule)?.latest_due(from, now))
}

/// The next `count` instants of a schedule after `after`; fewer when there are no more, none when the
/// schedule is none.
pub fn next_runs(schedule: &Schedule, after: Micros, count: usize) -> Vec<Micros> {
    let Ok(timetable) = Timetable::of(schedule) else {
        return Vec::new();
    };
    std::iter::successors(timetable.next_after(after), |last| timetable.next_after(*last))
        .take(count)
        .collect()
}

fn zone(name: &str) -> Result<Tz, ScheduleError> {
    name.parse().map_err(|_| {
        let name: String = name.chars().take(64).collect();
        ScheduleError::Timezone(format!(
            "`{name}` is no IANA time zone; write one such as `UTC` or `Europe/Berlin`"
        ))
    })
}
