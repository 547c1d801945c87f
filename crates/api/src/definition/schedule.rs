//! The schedule of a body.

use docmill_engine::schedule::{self as timing, ScheduleError, WORDS};
use docmill_model::chain::Problem;
use docmill_model::workflow::{Overlap, Schedule};
use serde_json::{Value, json};

use super::Given;
use crate::body::{Change, Fields, listed};

/// Reads `schedule`: words, cron, or the object that answers hold.
pub(super) fn read(fields: &mut Fields<'_>) -> Change<String> {
    let Some(value) = fields.value("schedule") else {
        return if fields.is_there("schedule") {
            Change::Clear
        } else {
            Change::Keep
        };
    };
    let entry = || match value["crontab_entries"].as_array()?.as_slice() {
        [entry] => entry["cron_expression"].as_str(),
        _ => None,
    };
    match value.as_str().or_else(entry) {
        // Whether it is any good is told together with the time zone, unless there is none to wait for.
        Some(text) => match timing::parse(text, None, Overlap::Skip) {
            Ok(_) => Change::Set(text.to_owned()),
            Err(error) => {
                fields.problem("schedule", "value_error", error.to_string());
                Change::Keep
            }
        },
        None => {
            let msg = if value["crontab_entries"].is_array() {
                "`crontab_entries` should hold exactly one object with a text `cron_expression`".to_owned()
            } else {
                expected()
            };
            fields.problem("schedule", "value_error", msg);
            Change::Keep
        }
    }
}

/// Reads `timezone`.
pub(super) fn read_timezone(fields: &mut Fields<'_>) -> Option<String> {
    let zone = fields.text("timezone")?;
    // Midnight exists in no zone's gap for ever, so only the zone can be wrong here.
    match timing::parse("daily", Some(zone), Overlap::Skip) {
        Ok(_) => Some(zone.to_owned()),
        Err(error) => {
            fields.problem("timezone", "value_error", error.to_string());
            None
        }
    }
}

/// Everything that would be right.
fn expected() -> String {
    let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
    format!(
        "input should be one of {}, or five fields of cron (minute, hour, day of month, month, day of week), such as \
         `30 6 * * 1-5`",
        listed(&words)
    )
}

/// The schedule after a change. A time zone or rule of overlap without a schedule is a problem, as it would
/// be forgotten in silence.
pub(super) fn merge(stored: Option<Schedule>, given: &Given, problems: &mut Vec<Problem>) -> Option<Schedule> {
    let cron = match (&given.schedule, &stored) {
        (Change::Clear, _) => return None,
        (Change::Set(text), _) => text,
        (Change::Keep, Some(stored)) => &stored.cron,
        (Change::Keep, None) => {
            let alone = [
                ("timezone", given.timezone.is_some()),
                ("schedule_overlap", given.overlap.is_some()),
            ];
            for (name, _) in alone.iter().filter(|(_, given)| *given) {
                problems.push(Problem::new(
                    &[json!("body"), json!(name)],
                    "value_error",
                    "has no meaning without a `schedule`",
                ));
            }
            return None;
        }
    };
    let stored_zone = stored.as_ref().map(|schedule| schedule.timezone.as_str());
    let overlap = given.overlap.or(stored.as_ref().map(|schedule| schedule.overlap));
    let zone = given.timezone.as_deref().or(stored_zone);
    match timing::parse(cron, zone, overlap.unwrap_or(Overlap::Skip)) {
        Ok(schedule) => Some(schedule),
        Err(error) => {
            let name = match error {
                ScheduleError::Cron(_) => "schedule",
                ScheduleError::Timezone(_) => "timezone",
            };
            let loc: [Value; 2] = [json!("body"), json!(name)];
            problems.push(Problem::new(&loc, "value_error", error.to_string()));
            None
        }
    }
}
