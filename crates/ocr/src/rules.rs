//! Ruling lines of a scan: found as long runs of ink, and taken out of the picture so that they are not
//! read as letters.

use crate::ink::{self, Ink};
use crate::raster::Gray;

/// Shortest line, in inches.
const MIN_LENGTH: f32 = 0.35;
/// A line that meets no other must be this long, in inches.
const MIN_ALONE: f32 = 1.0;
/// Thickest line, in inches.
const MAX_THICKNESS: f32 = 0.05;
/// A line is this many times as long as thick.
const MIN_SLIMNESS: f32 = 12.0;
/// Gaps within a run that are bridged, in inches.
const GAP: f32 = 0.012;
/// Runs and lines that are kept; more are a texture.
const MAX_RUNS: usize = 60_000;
const MAX_LINES: usize = 4000;

/// A straight horizontal or vertical line, in pixels of the straightened picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ruling {
    /// Left.
    pub x0: f32,
    /// Top.
    pub y0: f32,
    /// Right.
    pub x1: f32,
    /// Bottom.
    pub y1: f32,
}

/// A stretch of ink along one row or column.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Row of a horizontal run, column of a vertical one.
    at: usize,
    from: usize,
    to: usize,
}

/// A line while runs are gathered.
#[derive(Clone, Copy, Debug)]
struct Bar {
    first: usize,
    last: usize,
    from: usize,
    to: usize,
    /// Extent of the last row's run.
    last_from: usize,
    last_to: usize,
    ink: usize,
}

/// Finds the lines of a straight page and whitens them.
pub(crate) fn take_rules(page: &mut Gray, threshold: u8, dpi: f32) -> Vec<Ruling> {
    let ink = Ink::rows(page, threshold);
    let across = bars(&runs(&ink, dpi), dpi);
    let down = bars(&runs(&ink.transposed(), dpi), dpi);
    let reach = dpi * 0.04;
    let long = |bar: &Bar| (bar.to - bar.from) as f32 >= MIN_ALONE * dpi;
    let meets = |a: &Bar, others: &[Bar]| {
        others.iter().any(|b| {
            let near = |value: usize, low: usize, high: usize| {
                value as f32 >= low as f32 - reach && value as f32 <= high as f32 + reach
            };
            near(b.first, a.from, a.to) && near(a.first, b.from, b.to)
        })
    };
    let across_kept: Vec<Bar> = across
        .iter()
        .filter(|bar| long(bar) || meets(bar, &down))
        .copied()
        .collect();
    let down_kept: Vec<Bar> = down
        .iter()
        .filter(|bar| long(bar) || meets(bar, &across))
        .copied()
        .collect();
    let mut rules = Vec::new();
    for bar in &across_kept {
        erase(page, bar, threshold, false);
        let y = (bar.first + bar.last + 1) as f32 / 2.0;
        rules.push(Ruling {
            x0: bar.from as f32,
            y0: y,
            x1: bar.to as f32,
            y1: y,
        });
    }
    for bar in &down_kept {
        erase(page, bar, threshold, true);
        let x = (bar.first + bar.last + 1) as f32 / 2.0;
        rules.push(Ruling {
            x0: x,
            y0: bar.from as f32,
            x1: x,
            y1: bar.to as f32,
        });
    }
    rules
}

/// Long runs of ink along lines. Ink of the neighbouring lines counts, as a rule that is not quite straight
/// steps from one to the next.
fn runs(ink: &Ink, dpi: f32) -> Vec<Run> {
    let least = (MIN_LENGTH * dpi) as usize;
    let gap = ((GAP * dpi) as usize).max(1);
    let mut found = Vec::new();
    let mut words = Vec::new();
    for at in 0..ink.count() {
        ink.thickened(at, &mut words);
        let mut open: Option<Run> = None;
        for (from, to) in ink::runs(&words) {
            open = match open {
                Some(run) if from - run.to <= gap => Some(Run { to, ..run }),
                other => {
                    push(&mut found, other, least);
                    Some(Run { at, from, to })
                }
            };
        }
        push(&mut found, open, least);
        if found.len() >= MAX_RUNS {
            break;
        }
    }
    found
}

fn push(runs: &mut Vec<Run>, run: Option<Run>, least: usize) {
    runs.extend(run.filter(|run| run.to - run.from >= least));
}

/// Gathers runs of neighbouring rows to lines, and drops what is too thick to be one.
fn bars(runs: &[Run], dpi: f32) -> Vec<Bar> {
    let mut open: Vec<Bar> = Vec::new();
    let mut done: Vec<Bar> = Vec::new();
    for run in runs {
        let (mut keep, mut closed): (Vec<Bar>, Vec<Bar>) = (Vec::new(), Vec::new());
        for bar in open.drain(..) {
            if bar.last + 1 < run.at {
                closed.push(bar)
            } else {
                keep.push(bar)
            }
        }
        done.append(&mut closed);
        open = keep;
        let touching = open
            .iter_mut()
            .find(|bar| run.from <= bar.last_to && run.to >= bar.last_from);
        match touching {
            Some(bar) => {
                bar.last = run.at;
                bar.from = bar.from.min(run.from);
                bar.to = bar.to.max(run.to);
                (bar.last_from, bar.last_to) = (run.from, run.to);
                bar.ink += run.to - run.from;
            }
            None => open.push(Bar {
                first: run.at,
                last: run.at,
                from: run.from,
                to: run.to,
                last_from: run.from,
                last_to: run.to,
                ink: run.to - run.from,
            }),
        }
        if done.len() > MAX_LINES {
            break;
        }
    }
    done.append(&mut open);
    done.retain(|bar| {
        // The neighbouring rows made it two pixels thicker than it is.
        let thickness = (bar.last + 1 - bar.first).saturating_sub(2).max(1) as f32;
        let length = (bar.to - bar.from) as f32;
        thickness <= (MAX_THICKNESS * dpi).max(3.0) && length >= MIN_SLIMNESS * thickness
    });
    done.truncate(MAX_LINES);
    done
}

/// Whitens a line, except where writing crosses it.
fn erase(page: &mut Gray, bar: &Bar, threshold: u8, vertical: bool) {
    let (first, last) = (bar.first.saturating_sub(1), bar.last + 1);
    let value = |page: &Gray, along: usize, at: usize| {
        if vertical {
            page.get(at, along)
        } else {
            page.get(along, at)
        }
    };
    for along in bar.from..bar.to {
        let before = first >= 2 && value(page, along, first - 2) <= threshold;
        let behind = value(page, along, last + 2) <= threshold;
        if before && behind {
            continue;
        }
        for at in first..=last {
            if vertical {
                page.set(at, along, 255);
            } else {
                page.set(along, at, 255);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(page: &mut Gray, x: std::ops::Range<usize>, y: std::ops::Range<usize>) {
        for row in y {
            for column in x.clone() {
                page.set(column, row, 0);
            }
        }
    }

    #[test]
    fn a_grid_is_found_and_removed_and_letters_stay() {
        let mut page = Gray::new(800, 600, Vec::new()).unwrap();
        for y in [100, 150, 200] {
            fill(&mut page, 100..600, y..y + 3);
        }
        for x in [100, 300, 597] {
            fill(&mut page, x..x + 3, 100..203);
        }
        // A letter's stem and a word's worth of ink.
        fill(&mut page, 150..155, 110..140);
        fill(&mut page, 320..350, 120..140);
        let rules = take_rules(&mut page, 128, 200.0);
        assert_eq!(rules.iter().filter(|rule| rule.y0 == rule.y1).count(), 3, "{rules:?}");
        assert_eq!(rules.iter().filter(|rule| rule.x0 == rule.x1).count(), 3, "{rules:?}");
        assert_eq!(page.get(400, 101), 255);
        assert_eq!(page.get(152, 120), 0);
        assert_eq!(page.get(330, 130), 0);
    }

    #[test]
    fn a_line_that_is_not_quite_straight_is_one() {
        let mut page = Gray::new(1000, 200, Vec::new()).unwrap();
        for x in 50..950 {
            fill(&mut page, x..x + 1, 100 + x / 300..102 + x / 300);
        }
        let rules = take_rules(&mut page, 128, 200.0);
        assert_eq!(rules.len(), 1, "{rules:?}");
        assert!(rules[0].x1 - rules[0].x0 > 880.0);
    }

    #[test]
    fn filled_areas_are_no_lines() {
        let mut page = Gray::new(800, 400, Vec::new()).unwrap();
        fill(&mut page, 100..700, 100..160);
        assert!(take_rules(&mut page, 128, 200.0).is_empty());
        assert_eq!(page.get(300, 130), 0);
    }
}
