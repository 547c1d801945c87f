//! Automatic numbers of paragraphs, which files do not hold but describe (ECMA-376 part 1, 17.9).

use std::collections::{HashMap, HashSet};

use crate::ooxml::number::format_number;
use crate::ooxml::xml::{Node, Ns};

/// Levels of a multi-level list.
const LEVELS: usize = 9;
/// Characters of a level's text that are used; the format allows 31.
const MAX_LEVEL_TEXT: usize = 64;
/// Bytes of an id; ids are small numbers.
const MAX_ID: usize = 64;

#[derive(Clone, Debug)]
struct Level {
    start: i64,
    format: String,
    text: String,
    legal: bool,
    /// Level (1 is the top) whose use restarts this one; 0 is never, absent is any higher level.
    restart: Option<usize>,
}

#[derive(Debug, Default)]
struct Abstract {
    levels: HashMap<usize, Level>,
    style_link: Option<String>,
}

#[derive(Debug, Default)]
struct Instance {
    abstract_id: String,
    overrides: HashMap<usize, Level>,
    starts: HashMap<usize, i64>,
}

/// The numbering definitions of a document and where its counters stand.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    abstracts: HashMap<String, Abstract>,
    instances: HashMap<String, Instance>,
    counters: HashMap<String, [Option<i64>; LEVELS]>,
    started: HashSet<String>,
}

/// The mark in front of a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A number or letter, as printed.
    Label(String),
    Bullet,
    /// Numbering that prints nothing.
    Blank,
}

impl Numbering {
    pub(super) fn read(root: &Node) -> Self {
        let mut numbering = Self::default();
        let short = |name: &str, node: &Node| node.attr(name).is_none_or(|id| id.len() <= MAX_ID);
        let short = |node: &&Node| short("abstractNumId", node) && short("numId", node);
        for node in root.elements().filter(short) {
            if node.is(Ns::W, "abstractNum") {
                let levels = node.elements().filter(|n| n.is(Ns::W, "lvl")).filter_map(read_level);
                let definition = Abstract {
                    levels: levels.collect(),
                    style_link: value(node, "numStyleLink").map(str::to_owned),
                };
                let id = node.attr("abstractNumId").unwrap_or_default();
                numbering.abstracts.insert(id.to_owned(), definition);
            } else if node.is(Ns::W, "num") {
                let id = node.attr("numId").unwrap_or_default();
                numbering.instances.insert(id.to_owned(), read_instance(node));
            }
        }
        numbering
    }

    /// Advances the counters for a paragraph of list `id` at `level` (0 is the top) and returns its
    /// mark; `None` when there is no such list. `style_number` gives the list of a numbering style.
    pub(super) fn advance(
        &mut self,
        id: &str,
        level: u32,
        style_number: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Mark> {
        let at = (level as usize).min(LEVELS - 1);
        let instance = self.instances.get(id)?;
        let mut abstract_id = instance.abstract_id.clone();
        if let Some(style) = self.abstracts.get(&abstract_id).and_then(|a| a.style_link.as_deref())
            && let Some(linked) = style_number(style).and_then(|n| self.instances.get(&n))
        {
            abstract_id = linked.abstract_id.clone();
        }
        let definition = self.abstracts.get(&abstract_id)?;
        let get = |l: usize| instance.overrides.get(&l).or_else(|| definition.levels.get(&l));
        let start = |l: usize| {
            let own = instance.starts.get(&l).copied();
            own.or_else(|| get(l).map(|level| level.start)).unwrap_or(1)
        };
        let counters = self.counters.entry(abstract_id.clone()).or_default();
        if self.started.insert(id.to_owned()) {
            for l in instance.starts.keys().filter(|l| **l < LEVELS) {
                counters[*l] = None;
            }
        }
        let current = get(at)?;
        counters[at] = Some(counters[at].map_or(start(at), |n| n.saturating_add(1)));
        for (l, counter) in counters.iter_mut().enumerate() {
            if l < at {
                counter.get_or_insert(start(l));
            } else if l > at && get(l).and_then(|level| level.restart).is_none_or(|r| r > at) {
                *counter = None;
            }
        }
        Some(match current.format.as_str() {
            "bullet" if current.text.trim().is_empty() => Mark::Blank,
            "bullet" => Mark::Bullet,
            _ => {
                let label = label(current, |l| {
                    let level = get(l);
                    let number = counters[l].unwrap_or_else(|| start(l));
                    let format = level.map_or("decimal", |level| level.format.as_str());
                    format_number(number, if current.legal { "decimal" } else { format })
                });
                if label.is_empty() {
                    Mark::Blank
                } else {
                    Mark::Label(label)
                }
            }
        })
    }
}

fn value<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    node.child(Ns::W, name).and_then(|n| n.attr("val"))
}

fn read_level(node: &Node) -> Option<(usize, Level)> {
    let at: usize = node.attr("ilvl")?.parse().ok()?;
    let level = Level {
        start: value(node, "start").and_then(|v| v.parse().ok()).unwrap_or(0),
        format: value(node, "numFmt").unwrap_or("decimal").to_owned(),
        text: value(node, "lvlText")
            .unwrap_or_default()
            .chars()
            .take(MAX_LEVEL_TEXT)
            .collect(),
        legal: node.child(Ns::W, "isLgl").is_some_and(super::styles::on),
        restart: value(node, "lvlRestart").and_then(|v| v.parse().ok()),
    };
    (at < LEVELS).then_some((at, level))
}

fn read_instance(node: &Node) -> Instance {
    let mut instance = Instance {
        abstract_id: value(node, "abstractNumId")
            .filter(|id| id.len() <= MAX_ID)
            .unwrap_or_default()
            .to_owned(),
        ..Default::default()
    };
    for change in node.elements().filter(|n| n.is(Ns::W, "lvlOverride")) {
        let at = change.attr("ilvl").and_then(|v| v.parse::<usize>().ok());
        if let (Some(at), Some(start)) = (at, value(change, "startOverride").and_then(|v| v.parse().ok())) {
            instance.starts.insert(at, start);
        }
        if let Some((at, level)) = change.child(Ns::W, "lvl").and_then(read_level) {
            instance.overrides.insert(at, level);
        }
    }
    instance
}

/// The text of a level with `%1`..`%9` replaced by the numbers of those levels.
fn label(level: &Level, number: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    let mut chars = level.text.chars().peekable();
    while let Some(c) = chars.next() {
        let digit = chars.peek().and_then(|d| d.to_digit(10)).filter(|d| *d > 0);
        match (c, digit) {
            ('%', Some(digit)) => {
                chars.next();
                out.push_str(&number(digit as usize - 1));
            }
            (c, _) => out.push(c),
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ooxml::{testing::W, xml};

    fn level(at: usize, format: &str, text: &str) -> String {
        format!(
            r#"<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{format}"/><w:lvlText w:val="{text}"/></w:lvl>"#
        )
    }

    fn numbering(levels: &[String], nums: &str) -> Numbering {
        let text = format!(
            r#"<w:numbering {W}><w:abstractNum w:abstractNumId="0">{}</w:abstractNum>{nums}</w:numbering>"#,
            levels.concat()
        );
        Numbering::read(&xml::parse(&text, "DOCX", "x", 100).unwrap())
    }

    fn labels(numbering: &mut Numbering, steps: &[(&str, u32)]) -> Vec<String> {
        steps
            .iter()
            .map(|(id, level)| match numbering.advance(id, *level, &|_| None) {
                Some(Mark::Label(label)) => label,
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn levels_count_restart_and_combine() {
        let mut n = numbering(
            &[
                level(0, "decimal", "%1."),
                level(1, "decimal", "%1.%2"),
                level(2, "lowerLetter", "%3)"),
            ],
            r#"<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>"#,
        );
        let steps = [("1", 0), ("1", 1), ("1", 1), ("1", 2), ("1", 0), ("1", 1), ("1", 2)];
        assert_eq!(labels(&mut n, &steps), ["1.", "1.1", "1.2", "a)", "2.", "2.1", "a)"]);
    }

    #[test]
    fn instances_share_a_counter_unless_they_override_the_start() {
        let mut n = numbering(
            &[level(0, "upperRoman", "%1.")],
            r#"<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
               <w:num w:numId="2"><w:abstractNumId w:val="0"/></w:num>
               <w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>"#,
        );
        let steps = [("1", 0), ("2", 0), ("3", 0), ("3", 0)];
        assert_eq!(labels(&mut n, &steps), ["I.", "II.", "V.", "VI."]);
        assert_eq!(n.advance("9", 0, &|_| None), None);
    }

    #[test]
    fn bullets_and_blanks_have_no_label() {
        let mut n = numbering(
            &[level(0, "bullet", "•"), level(1, "none", ""), level(2, "bullet", " ")],
            r#"<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>"#,
        );
        assert_eq!(n.advance("1", 0, &|_| None), Some(Mark::Bullet));
        assert_eq!(n.advance("1", 1, &|_| None), Some(Mark::Blank));
        assert_eq!(n.advance("1", 2, &|_| None), Some(Mark::Blank));
    }
}
