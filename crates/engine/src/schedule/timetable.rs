//! A schedule made ready to compute with.

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use docmill_model::time::Micros;
use docmill_model::workflow::Schedule;

use super::{LONGEST, ScheduleError, WORDS, zone};

/// Longest gap of a clock, in minutes: a day that a country skipped, and some.
const LONGEST_GAP: i64 = 26 * 60;

/// A schedule made ready to compute with.
///
/// The fields of cron are matched against bare wall clock times; the time zone comes in only when such a
/// time is turned into an instant.
#[derive(Clone, Debug)]
pub struct Timetable {
    cron: Cron,
    zone: Tz,
}

impl Timetable {
    /// The timetable of a schedule.
    ///
    /// # Errors
    /// When the schedule is none: not five fields, values out of range, or a day that never comes.
    pub fn of(schedule: &Schedule) -> Result<Self, ScheduleError> {
        let cron = read_cron(&schedule.cron)?;
        let zone = zone(&schedule.timezone)?;
        // The calendar repeats, so what does not come from here on never comes.
        let some_day = DateTime::<Utc>::UNIX_EPOCH;
        if cron.find_next_occurrence(&some_day, true).is_err() {
            return Err(ScheduleError::Cron(format!(
                "`{}` never fires: there is no such day",
                schedule.cron
            )));
        }
        Ok(Self { cron, zone })
    }

    /// The first instant after `after`.
    pub fn next_after(&self, after: Micros) -> Option<Micros> {
        let mut wall = self.wall(after)?;
        loop {
            wall = self.cron.find_next_occurrence(&wall, false).ok()?;
            let at = self.instant(wall.naive_utc())?;
            // Not so while the clocks show for the second time what has fired already.
            if at > after {
                return Some(at);
            }
        }
    }

    /// The last instant after `from` and not after `now`.
    pub fn latest_due(&self, from: Micros, now: Micros) -> Option<Micros> {
        let mut wall = self.wall(now)?;
        // While the clocks show an hour for the second time, all of it has fired in the first pass.
        if let LocalResult::Ambiguous(first, second) = self.zone.from_local_datetime(&wall.naive_utc())
            && now >= second.timestamp_micros()
        {
            wall = wall.checked_add_signed(second.signed_duration_since(first))?;
        }
        wall = self.cron.find_previous_occurrence(&wall, true).ok()?;
        loop {
            let at = self.instant(wall.naive_utc())?;
            if at <= now {
                return (at > from).then_some(at);
            }
            wall = self.cron.find_previous_occurrence(&wall, false).ok()?;
        }
    }

    /// What the zone's clocks show at an instant, to the second, written as if it were UTC.
    fn wall(&self, at: Micros) -> Option<DateTime<Utc>> {
        let at = DateTime::<Utc>::from_timestamp_micros(at)?;
        let wall = at.with_timezone(&self.zone).naive_local().with_nanosecond(0)?;
        Some(wall.and_utc())
    }

    /// The instant a wall clock time fires at.
    fn instant(&self, wall: NaiveDateTime) -> Option<Micros> {
        for minutes in 0..=LONGEST_GAP {
            let later = wall.checked_add_signed(Duration::minutes(minutes))?;
            match self.zone.from_local_datetime(&later) {
                LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => return Some(at.timestamp_micros()),
                LocalResult::None => {}
            }
        }
        None
    }
}

fn read_cron(text: &str) -> Result<Cron, ScheduleError> {
    let wrong = |what: &str| {
        let shown: String = text.chars().take(64).collect();
        let words: Vec<_> = WORDS.iter().map(|(word, _)| format!("`{word}`")).collect();
        ScheduleError::Cron(format!(
            "`{shown}` is no schedule: {what}; write one of {}, or five fields of cron: minute, hour, day of \
             month, month, day of week",
            words.join(", ")
        ))
    };
    if text.len() > LONGEST {
        return Err(wrong("it is too long"));
    }
    let fields = text.split_ascii_whitespace().count();
    if fields != 5 {
        return Err(wrong(&format!("its fields are {fields}, not five")));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '*' | ',' | '-' | '/' | '#' | '?');
    if let Some(other) = text.chars().find(|c| !allowed(*c)) {
        return Err(wrong(&format!("`{}` has no place in one", other.escape_default())));
    }
    if text
        .split_ascii_whitespace()
        .flat_map(|field| field.split(','))
        .any(str::is_empty)
    {
        return Err(wrong("there is nothing before, after or between commas"));
    }
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build()
        .parse(text)
        .map_err(|error| {
            // The library's own words, without those that name its parts.
            let told = error.to_string();
            let told = told.strip_prefix("Component error: ").unwrap_or(&told);
            wrong(&told.trim_end_matches('.').to_lowercase())
        })
}
