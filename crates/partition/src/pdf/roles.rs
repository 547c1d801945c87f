//! What kind of element a block is.

use std::collections::BTreeMap;

use docmill_model::ElementType;

use super::block::Block;
use super::engine::{OutlineEntry, TagKind};
use super::headings::headings;
use super::levels::{Bookmarks, depths};
use super::script::is_unspaced;
use crate::classify::classify;

/// Kind, text and heading depth of one block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Role {
    pub(super) kind: ElementType,
    pub(super) text: Option<String>,
    pub(super) depth: Option<u32>,
}

impl Role {
    fn of(kind: ElementType) -> Self {
        Self {
            kind,
            text: None,
            depth: None,
        }
    }
}

/// The usual text of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Body {
    pub(super) size: f32,
    pub(super) bold: bool,
    pub(super) monospace: bool,
    pub(super) font: u16,
}

/// Sums characters per style to find the usual one.
#[derive(Default)]
pub(super) struct BodyCount {
    /// Per size in quarters of a point: characters of regular and of bold weight.
    sizes: BTreeMap<u32, [usize; 2]>,
    fonts: BTreeMap<u16, usize>,
    regular: usize,
    monospace: usize,
    total: usize,
}

impl BodyCount {
    pub(super) fn add(&mut self, size: f32, font: u16, bold: bool, monospace: bool, chars: usize) {
        *self.fonts.entry(font).or_default() += chars;
        let counts = self.sizes.entry((size * 4.0).round().max(0.0) as u32).or_default();
        counts[usize::from(bold)] += chars;
        self.regular += if bold { 0 } else { chars };
        self.monospace += if monospace { chars } else { 0 };
        self.total += chars;
    }

    /// All characters counted.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The most frequent size. Regular text decides as long as there is some, however little of a
    /// page of headings it is.
    pub(super) fn body(&self) -> Body {
        let bold = self.regular * 8 < self.total;
        let near = |key: u32| -> usize {
            let range = key.saturating_sub(1)..=key + 1;
            self.sizes
                .range(range)
                .map(|(_, [regular, heavy])| if bold { regular + heavy } else { *regular })
                .sum()
        };
        let key = self.sizes.keys().copied().max_by_key(|&key| near(key)).unwrap_or(40);
        Body {
            size: (key as f32 / 4.0).max(1.0),
            bold,
            monospace: self.monospace * 2 > self.total,
            font: self
                .fonts
                .iter()
                .max_by_key(|&(_, &chars)| chars)
                .map_or(0, |(&font, _)| font),
        }
    }
}

/// Decides on all blocks of a document, given in reading order with the index of their pages.
pub(super) fn roles(blocks: &[&Block], pages: &[usize], body: Body, outline: &[OutlineEntry]) -> Vec<Role> {
    let bookmarks = Bookmarks::new(outline);
    let headings = headings(blocks, pages, body, &bookmarks);
    let depths = depths(blocks, pages, &headings, &bookmarks);
    blocks
        .iter()
        .zip(headings.iter().zip(depths))
        .map(|(block, (&heading, depth))| {
            if heading {
                Role {
                    depth: Some(depth),
                    ..Role::of(ElementType::Title)
                }
            } else {
                ordinary(block, body)
            }
        })
        .collect()
}

/// `Figure 3: ...`, `Table 2. ...`.
pub(super) fn is_caption(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default().trim_end_matches('.').to_lowercase();
    let named = matches!(
        name.as_str(),
        "figure"
            | "fig"
            | "table"
            | "abbildung"
            | "abb"
            | "tabelle"
            | "tableau"
            | "figura"
            | "tabla"
            | "tabela"
            | "exhibit"
            | "scheme"
            | "schema"
            | "schéma"
            | "chart"
            | "graph"
            | "grafik"
            | "gráfico"
            | "plate"
            | "listing"
            | "algorithm"
    );
    named
        && words.next().is_some_and(|number| {
            number.starts_with(|ch: char| ch.is_ascii_digit() || matches!(ch, 'I' | 'V' | 'X' | 'A'..='D'))
                && (number.ends_with([':', '.', '|', '–', '—'])
                    || words
                        .next()
                        .is_some_and(|w| matches!(w, ":" | "|" | "-" | "–" | "—") || w.starts_with(char::is_uppercase)))
        })
}

fn ordinary(block: &Block, body: Body) -> Role {
    let text = block.text.as_str();
    if block.table.is_some() {
        return Role::of(ElementType::Table);
    }
    if block.tabular {
        return Role::of(ElementType::UncategorizedText);
    }
    if block.monospace && !body.monospace && block.lines > 1 {
        return Role {
            text: Some(block.code.clone()),
            ..Role::of(ElementType::CodeSnippet)
        };
    }
    if block.marker.is_some() || block.tag == TagKind::ListItem {
        return Role::of(ElementType::ListItem);
    }
    if block.tag == TagKind::Caption {
        return Role::of(ElementType::FigureCaption);
    }
    if is_caption(text) {
        return Role::of(ElementType::FigureCaption);
    }
    let words = text.split_whitespace().count();
    let ends = text
        .trim_end_matches(['"', '”', '’', ')', '»'])
        .ends_with(['.', '!', '?', '。', '！', '？', '؟', '۔', '।']);
    let dense = text.chars().filter(|ch| ch.is_alphabetic()).count() * 2
        > text.chars().filter(|ch| !ch.is_whitespace()).count();
    let unspaced = text.chars().filter(|&ch| is_unspaced(ch)).count();
    if dense
        && ((block.lines >= 2 && (words >= 10 || unspaced >= 30))
            || (ends && (words >= 5 || text.chars().count() > 30)))
    {
        return Role::of(ElementType::NarrativeText);
    }
    match classify(text) {
        (kind @ (ElementType::NarrativeText | ElementType::Address | ElementType::EmailAddress), text) => Role {
            kind,
            text: Some(text),
            depth: None,
        },
        _ => Role::of(ElementType::UncategorizedText),
    }
}
