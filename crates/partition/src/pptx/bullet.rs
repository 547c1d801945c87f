//! Bullets and automatic numbers, which paragraphs mostly inherit.

use crate::ooxml::xml::{Node, Ns};

/// Levels of indentation.
pub(super) const LEVELS: usize = 9;

/// What stands in front of a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bullet {
    /// Nothing, said explicitly.
    None,
    /// A character or picture.
    Sign,
    /// A number: its scheme, such as `arabicPeriod`, and the first number.
    Number { scheme: String, start: u32 },
}

/// Bullets by level; absent where a list style says nothing.
pub(super) type Levels = [Option<Bullet>; LEVELS];

/// The bullet that paragraph properties ask for.
pub(super) fn of_properties(properties: &Node) -> Option<Bullet> {
    properties.elements().find_map(|n| match (n.ns, &*n.name) {
        (Ns::A, "buNone") => Some(Bullet::None),
        (Ns::A, "buChar" | "buBlip") => Some(Bullet::Sign),
        (Ns::A, "buAutoNum") => Some(Bullet::Number {
            scheme: n.attr("type").unwrap_or("arabicPeriod").to_owned(),
            start: n.attr("startAt").and_then(|v| v.parse().ok()).unwrap_or(1),
        }),
        _ => None,
    })
}

/// The bullets of a list style (`a:lstStyle`, `p:bodyStyle`, ...).
pub(super) fn levels(style: Option<&Node>) -> Levels {
    const NAMES: [&str; LEVELS] = [
        "lvl1pPr", "lvl2pPr", "lvl3pPr", "lvl4pPr", "lvl5pPr", "lvl6pPr", "lvl7pPr", "lvl8pPr", "lvl9pPr",
    ];
    NAMES.map(|name| style?.child(Ns::A, name).and_then(of_properties))
}

/// Automatic numbers of one text body.
#[derive(Default)]
pub(super) struct Counters {
    /// By level: scheme and last number of the run of numbered paragraphs that is still going on.
    running: [Option<(String, u32)>; LEVELS],
}

impl Counters {
    /// The label of the next paragraph at `level` with `bullet`; `None` when it is not numbered.
    pub(super) fn next(&mut self, level: usize, bullet: &Bullet) -> Option<String> {
        let level = level.min(LEVELS - 1);
        self.running.iter_mut().skip(level + 1).for_each(|r| *r = None);
        let Bullet::Number { scheme, start } = bullet else {
            self.running[level] = None;
            return None;
        };
        let number = match &self.running[level] {
            Some((known, last)) if known == scheme => last.saturating_add(1),
            _ => *start,
        };
        self.running[level] = Some((scheme.clone(), number));
        Some(label(scheme, number))
    }
}

fn label(scheme: &str, number: u32) -> String {
    let format = if scheme.starts_with("alphaLc") {
        "lowerLetter"
    } else if scheme.starts_with("alphaUc") {
        "upperLetter"
    } else if scheme.starts_with("romanLc") {
        "lowerRoman"
    } else if scheme.starts_with("romanUc") {
        "upperRoman"
    } else if scheme.starts_with("circleNum") {
        "decimalEnclosedCircle"
    } else if scheme.starts_with("ea1Chs") || scheme.starts_with("ea1Cht") || scheme.starts_with("ea1JpnKor") {
        "chineseCounting"
    } else {
        "decimal"
    };
    let number = crate::ooxml::number::format_number(number.into(), format);
    if scheme.ends_with("ParenBoth") {
        format!("({number})")
    } else if scheme.ends_with("ParenR") {
        format!("{number})")
    } else if scheme.ends_with("Period") {
        format!("{number}.")
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_within_a_level_and_restart_below_a_higher_one() {
        let number = |scheme: &str| Bullet::Number {
            scheme: scheme.into(),
            start: 1,
        };
        let mut counters = Counters::default();
        let steps = [
            (0, number("arabicPeriod")),
            (1, number("alphaLcParenR")),
            (1, number("alphaLcParenR")),
            (0, number("arabicPeriod")),
            (1, number("alphaLcParenR")),
            (0, Bullet::Sign),
            (0, number("romanUcParenBoth")),
        ];
        let labels: Vec<_> = steps
            .iter()
            .map(|(level, b)| counters.next(*level, b).unwrap_or_default())
            .collect();
        assert_eq!(labels, ["1.", "a)", "b)", "2.", "a)", "", "(I)"]);
    }
}
