//! Schedules against a walk through every minute.

use chrono::{NaiveDate, NaiveDateTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use docmill_model::time::{Micros, SECOND, iso8601};
use proptest::prelude::*;

use super::*;

const MINUTE: Micros = 60 * SECOND;

fn schedule(text: &str, zone: &str) -> Schedule {
    parse(text, Some(zone), Overlap::Skip).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn at(text: &str) -> Micros {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M")
        .unwrap()
        .and_utc()
        .timestamp_micros()
}

fn runs(text: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let runs = next_runs(&schedule(text, zone), at(after), count);
    runs.into_iter().map(|at| iso8601(at)[..16].to_owned()).collect()
}

#[test]
fn every_word_stands_for_its_expression() {
    for (word, cron) in WORDS {
        assert_eq!(schedule(word, "UTC"), schedule(cron, "UTC"));
        assert_eq!(schedule(&format!("  {} ", word.to_uppercase()), "UTC").cron, *cron);
    }
    let none = parse("daily", None, Overlap::Allow).unwrap();
    assert_eq!((none.timezone.as_str(), none.overlap), ("UTC", Overlap::Allow));
}

#[test]
fn what_is_no_schedule_is_refused_in_words() {
    let long = "1,".repeat(200) + "1 * * * *";
    for bad in [
        "",
        " ",
        "sometimes",
        "@reboot",
        "@daily",
        "* * * *",
        "* * * * * *",
        "0 0 0 1 1 ? 2030",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "0 0 31 2 *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "a b c d e",
        "* * * * MOO",
        "\u{0660} * * * *",
        "* * * * +1",
        "1;2 * * * *",
        "-1 * * * *",
        "99999999999999999999 * * * *",
        "*/99999999999999999999 * * * *",
        "/ - , * #",
        "# # # # #",
        "L L L L L",
        &long,
    ] {
        match parse(bad, None, Overlap::Skip) {
            Err(ScheduleError::Cron(message)) => assert!(message.len() < 600, "{message}"),
            other => panic!("{bad:?}: {other:?}"),
        }
    }
    for bad in ["", "Mars/Base", "UTC+25", "Europe/Berlin\0", &"x".repeat(10_000)] {
        let error = parse("daily", Some(bad), Overlap::Skip).unwrap_err();
        assert!(
            matches!(&error, ScheduleError::Timezone(message) if message.len() < 300),
            "{error}"
        );
    }
}

#[test]
fn a_skipped_time_fires_once_after_the_gap_and_a_repeated_one_once() {
    // Berlin goes from 02:00 to 03:00 (01:00 UTC) on 29 March 2026 and back at 03:00 (01:00 UTC) on 25 October.
    assert_eq!(
        runs("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", 3),
        ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]
    );
    assert_eq!(
        runs("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2),
        ["2026-10-25T00:30", "2026-10-26T01:30"]
    );
    // Several times of the gap are one firing.
    assert_eq!(
        runs("*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00", 2),
        ["2026-03-29T01:00", "2026-03-30T00:00"]
    );
    // Lord Howe moves by half an hour; Samoa skipped the whole of 30 December 2011.
    assert_eq!(
        runs("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00", 2),
        ["2026-10-03T15:30", "2026-10-04T15:15"]
    );
    assert_eq!(
        runs("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00", 2),
        ["2011-12-30T10:00", "2012-12-29T22:00"]
    );
}

#[test]
fn what_was_missed_in_a_year_comes_to_one_quickly() {
    let every_minute = schedule("* * * * *", "Europe/Berlin");
    let (from, now) = (at("2025-01-01T00:00"), at("2026-01-01T00:00") + 17 * SECOND);
    let started = std::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(
            latest_due(&every_minute, from, now).unwrap(),
            Some(at("2026-01-01T00:00"))
        );
    }
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    let yearly = schedule("0 0 29 2 *", "UTC");
    assert_eq!(latest_due(&yearly, from, now).unwrap(), None);
    assert_eq!(latest_due(&yearly, 0, now).unwrap(), Some(at("2024-02-29T00:00")));
}

#[test]
fn clocks_far_off_harm_nothing() {
    let daily = schedule("daily", "Asia/Kathmandu");
    for at in [Micros::MIN, Micros::MIN / 2, -1, 0, Micros::MAX / 2, Micros::MAX] {
        let _ = next_after(&daily, at).unwrap();
        let _ = latest_due(&daily, Micros::MIN, at).unwrap();
    }
    assert_eq!(
        latest_due(&daily, at("2026-01-02T00:00"), at("2026-01-01T00:00")).unwrap(),
        None
    );
}

/// The instants of a schedule in a span, found by reading the zone's clocks at every minute: a time fires when
/// it is first shown, and one that is never shown when the clocks jump over it.
fn walk(cron: &Cron, zone: Tz, from: Micros, to: Micros) -> Vec<Micros> {
    let wall = |at: Micros| zone.timestamp_micros(at).unwrap().naive_local();
    let mut shown = wall(from - 26 * 60 * MINUTE);
    let mut fired = Vec::new();
    let mut at = from - 26 * 60 * MINUTE + MINUTE;
    while at <= to {
        let now = wall(at);
        let mut due = false;
        // Every minute of the clock that comes up now, or was jumped over, for the first time.
        while shown < now {
            shown += chrono::Duration::minutes(1);
            due |= cron.matches(shown);
        }
        if due && at > from {
            fired.push(at);
        }
        at += MINUTE;
    }
    fired
}

/// The part of cron the walk understands: sets of numbers.
#[derive(Clone, Debug)]
struct Cron {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    days: Option<Vec<u32>>,
    weekdays: Option<Vec<u32>>,
}

impl Cron {
    fn matches(&self, wall: NaiveDateTime) -> bool {
        use chrono::Datelike;
        let day = |days: &Vec<u32>| days.contains(&wall.day());
        let weekday = |days: &Vec<u32>| days.contains(&wall.weekday().num_days_from_sunday());
        let on_day = match (&self.days, &self.weekdays) {
            (None, None) => true,
            (Some(days), None) => day(days),
            (None, Some(days)) => weekday(days),
            // Either, when both are given: cron's oldest rule.
            (Some(days), Some(weekdays)) => day(days) || weekday(weekdays),
        };
        on_day && self.minutes.contains(&wall.minute()) && self.hours.contains(&wall.hour())
    }

    fn text(&self) -> String {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let or_star = |numbers: &Option<Vec<u32>>| numbers.as_deref().map_or("*".to_owned(), list);
        format!(
            "{} {} {} * {}",
            list(&self.minutes),
            list(&self.hours),
            or_star(&self.days),
            or_star(&self.weekdays)
        )
    }
}

fn crons() -> impl Strategy<Value = Cron> {
    let some = |range: std::ops::Range<u32>, most| {
        proptest::collection::btree_set(range, 1..most).prop_map(|set| set.into_iter().collect::<Vec<_>>())
    };
    // Mostly early hours, which is when clocks are moved.
    let hours = prop_oneof![3 => some(0..4, 4), 1 => some(0..24, 24)];
    let days = proptest::option::weighted(0.2, some(1..29, 8));
    let weekdays = proptest::option::weighted(0.3, some(0..7, 6));
    (some(0..60, 8), hours, days, weekdays).prop_map(|(minutes, hours, days, weekdays)| Cron {
        minutes,
        hours,
        days,
        weekdays,
    })
}

/// Zones and days on which their clocks are moved.
const MOVES: &[(&str, (i32, u32, u32))] = &[
    ("UTC", (2026, 3, 29)),
    ("Europe/Berlin", (2026, 3, 29)),
    ("Europe/Berlin", (2026, 10, 25)),
    ("America/New_York", (2026, 3, 8)),
    ("America/New_York", (2026, 11, 1)),
    ("Australia/Lord_Howe", (2026, 4, 5)),
    ("Australia/Lord_Howe", (2026, 10, 4)),
    ("America/Havana", (2026, 3, 8)),
    ("America/Santiago", (2026, 9, 6)),
    ("Africa/Casablanca", (2026, 3, 22)),
    ("Asia/Kathmandu", (2026, 1, 1)),
    ("Pacific/Apia", (2011, 12, 30)),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn instants_agree_with_a_walk_through_every_minute(
        cron in crons(), moved in 0..MOVES.len(), before in 0i64..2_880, seconds in 0i64..60,
    ) {
        let (name, (y, m, d)) = MOVES[moved];
        let zone: Tz = name.parse().unwrap();
        let noon = NaiveDate::from_ymd_opt(y, m, d).unwrap().and_hms_opt(12, 0, 0).unwrap();
        let from = Utc.from_utc_datetime(&noon).timestamp_micros() - before * MINUTE;
        let to = from + 3 * 1_440 * MINUTE;
        let expected = walk(&cron, zone, from, to);
        let schedule = schedule(&cron.text(), name);

        let mut found = Vec::new();
        let mut last = from;
        while let Some(next) = next_after(&schedule, last).unwrap().filter(|next| *next <= to) {
            prop_assert!(next > last);
            found.push(next);
            last = next;
        }
        prop_assert_eq!(&found, &expected, "{} in {}", cron.text(), name);

        // The latest due at any moment is the last of those not after it.
        for minute in (0..3 * 1_440).step_by(37) {
            let now = from + minute * MINUTE + seconds * SECOND;
            let due = expected.iter().copied().rfind(|at| *at <= now);
            prop_assert_eq!(latest_due(&schedule, from, now).unwrap(), due);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[0-9A-Za-z*,/#?@+ -]{0,40}", zone in "\\PC{0,20}") {
        let _ = parse(&text, Some("UTC"), Overlap::Skip);
        let _ = parse("daily", Some(&zone), Overlap::Skip);
    }

    #[test]
    fn no_five_fields_make_it_panic(fields in proptest::collection::vec("[0-9*,/#?LW-]{1,5}", 5), at in any::<Micros>()) {
        if let Ok(schedule) = parse(&fields.join(" "), Some("America/New_York"), Overlap::Skip) {
            let next = next_after(&schedule, at).unwrap();
            prop_assert!(next.is_none_or(|next| next > at));
            let due = latest_due(&schedule, Micros::MIN, at).unwrap();
            prop_assert!(due.is_none_or(|due| due <= at));
        }
    }
}
