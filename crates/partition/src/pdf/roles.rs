//! What kind of element a block is, judged by its font against the rest of the document.

use std::collections::BTreeMap;

use docmill_model::ElementType;

use super::block::Block;
use super::engine::{OutlineEntry, TagKind};
use super::levels::{Bookmarks, depths, number_depth};
use super::script::is_unspaced;
use super::text::{Marker, is_date};
use crate::classify::classify;

/// How much larger than the body a heading is.
const LARGER: f32 = 1.13;
/// Longest text, in bytes, that a tag makes a heading.
const MAX_TAGGED_HEADING: usize = 400;

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
    let mut evidence: Vec<Evidence> = blocks
        .iter()
        .map(|block| {
            let row = block.table.is_some() || (block.tabular && block.lines > 1);
            let marked = bookmarks.depth(&block.text).is_some() && block.lines <= 4 && !row && !block.leaders;
            if marked {
                Evidence::Strong
            } else {
                heading_evidence(block, body)
            }
        })
        .collect();
    judge_by_what_follows(blocks, &mut evidence, body, &bookmarks);
    judge_by_tags(blocks, &mut evidence, &bookmarks);
    // Capitals alone make headings only where nothing else does, as in typewritten documents.
    let strong = evidence.iter().filter(|&&e| e == Evidence::Strong).count();
    let headings: Vec<bool> = evidence
        .iter()
        .map(|&e| e == Evidence::Strong || (e == Evidence::Weak && strong <= 1))
        .collect();
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

/// Blocks tagged as headings are headings. Where the structure has several, covers nearly all text and
/// says of a block that it is something else, that block is none.
fn judge_by_tags(blocks: &[&Block], evidence: &mut [Evidence], bookmarks: &Bookmarks) {
    let text = || blocks.iter().filter(|block| block.table.is_none());
    let chars = |blocks: &mut dyn Iterator<Item = &&Block>| blocks.map(|block| block.text.len()).sum::<usize>();
    let tagged = chars(&mut text().filter(|block| block.tag != TagKind::None));
    let headings = text().filter(|block| matches!(block.tag, TagKind::Heading(_))).count();
    let trusted = headings >= 2 && headings * 2 < text().count().max(4) && tagged * 10 > chars(&mut text()) * 9;
    for (block, evidence) in blocks.iter().zip(evidence) {
        match block.tag {
            TagKind::Heading(_) if block.text.len() <= MAX_TAGGED_HEADING && block.table.is_none() => {
                *evidence = Evidence::Strong;
            }
            TagKind::Paragraph | TagKind::ListItem | TagKind::Caption | TagKind::Note
                if trusted && bookmarks.depth(&block.text).is_none() =>
            {
                *evidence = Evidence::None;
            }
            _ => {}
        }
    }
}

/// What a block is can depend on the next: a label in the type of the text it stands before is no
/// heading, and a large number above a heading is a part of it.
fn judge_by_what_follows(blocks: &[&Block], evidence: &mut [Evidence], body: Body, bookmarks: &Bookmarks) {
    for index in (0..blocks.len().saturating_sub(1)).rev() {
        let (Some(block), Some(next)) = (blocks.get(index), blocks.get(index + 1)) else {
            continue;
        };
        let followed_by = evidence.get(index + 1).copied().unwrap_or(Evidence::None);
        let Some(slot) = evidence.get_mut(index) else { continue };
        let label = block.text.ends_with(':')
            && followed_by == Evidence::None
            && block.size < 1.05 * next.size
            && bookmarks.depth(&block.text).is_none();
        let numeral = block.size >= 1.3 * body.size
            && block.lines == 1
            && block.text.len() <= 4
            && block.text.bytes().all(|b| b.is_ascii_digit());
        let set_off = block.italic && !next.italic && *slot == Evidence::None && is_italic_heading(block, next);
        let heads = numeral && followed_by == Evidence::Strong && next.size <= block.size * 1.02;
        let above = index.checked_sub(1).and_then(|above| blocks.get(above));
        let apart = *slot == Evidence::Small && followed_by == Evidence::None && stands_apart(above, block, next);
        if label {
            *slot = Evidence::None;
        } else if set_off || heads || apart {
            *slot = Evidence::Strong;
        }
    }
}

/// Whether a line stands between two paragraphs: no sentence goes on from the one above, the one below begins
/// one, and there is room on both sides.
fn stands_apart(above: Option<&&Block>, block: &Block, next: &Block) -> bool {
    let ended = |above: &&Block| {
        above.table.is_some()
            || above.text.ends_with(['.', '!', '?', ':', '。', '！', '？'])
            || above.size > LARGER * block.size
    };
    let room = next.bbox[1] - block.bbox[3];
    above.is_some_and(ended)
        && next.lines >= 2
        && next
            .text
            .starts_with(|ch: char| ch.is_alphabetic() && !ch.is_lowercase())
        && room > 0.4 * block.size
        && room < 4.0 * block.size
}

/// A short line in italics, its words with capitals, right above a paragraph that is set upright in the
/// same size and begins at the same margin.
fn is_italic_heading(block: &Block, next: &Block) -> bool {
    let words: Vec<&str> = block.text.split_whitespace().collect();
    let capitals = words.iter().filter(|word| word.starts_with(char::is_uppercase)).count();
    let plain = |block: &Block| block.table.is_none() && !block.tabular && block.marker.is_none();
    plain(block)
        && plain(next)
        && block.lines == 1
        && (2..=10).contains(&words.len())
        && capitals * 3 >= words.len() * 2
        && block.text.starts_with(char::is_uppercase)
        && block.text.ends_with(char::is_alphabetic)
        && !is_caption(&block.text)
        && next.lines >= 2
        && next.text.starts_with(char::is_uppercase)
        && (0.95..1.05).contains(&(block.size / next.size))
        && (block.bbox[0] - next.bbox[0]).abs() < 2.0 * block.size
        && (0.0..2.0 * block.size).contains(&(next.bbox[1] - block.bbox[3]))
}

/// Whether a block is made of rows of cells. A section number set apart from its heading is no cell, unless
/// the number of a page follows as in a table of contents.
fn is_row(block: &Block) -> bool {
    let last = block.text.rsplit(' ').next().unwrap_or_default();
    let entry = last.bytes().all(|b| b.is_ascii_digit());
    let numbered = block.lines == 1 && !entry && number_depth(&block.text).is_some();
    block.table.is_some() || (block.tabular && !numbered)
}

/// How much speaks for a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    None,
    /// Nothing but capitals.
    Weak,
    /// All but the first letter: a small one may go on with a sentence.
    Small,
    Strong,
}

fn heading_evidence(block: &Block, body: Body) -> Evidence {
    let text = block.text.as_str();
    let letters = text.chars().filter(|ch| ch.is_alphabetic()).count();
    let visible = text.chars().filter(|ch| !ch.is_whitespace()).count();
    let words = text.split_whitespace().count();
    if is_row(block) || block.leaders || block.marker == Some(Marker::Bullet) || letters < 2 || letters * 2 < visible {
        return Evidence::None;
    }
    let ratio = block.size / body.size;
    let larger = ratio >= LARGER;
    let (max_lines, max_chars) = if ratio >= 1.3 { (5, 260) } else { (3, 180) };
    if block.lines > max_lines || text.chars().count() > max_chars {
        return Evidence::None;
    }
    if text.ends_with([',', ';']) || (text.ends_with(':') && !larger) || is_caption(text) {
        return Evidence::None;
    }
    if is_date(text) {
        return Evidence::None;
    }
    if (block.monospace && !body.monospace && ratio < 1.3) || (words == 1 && text.contains('@')) {
        return Evidence::None;
    }
    // The middle of a sentence, unless what stands around it shows that it is none.
    let small = text.starts_with(char::is_lowercase) && ratio < 1.5;
    if small && (block.lines > 1 || words > 4 || !text.ends_with(char::is_alphanumeric)) {
        return Evidence::None;
    }
    let sentence = text.ends_with(['.', '。']) && (words > 3 || text.starts_with(char::is_lowercase));
    if sentence && ratio < 1.4 {
        return Evidence::None;
    }
    let bold = block.bold && !body.bold && ratio >= 0.9 && words <= 24;
    // Programs shout too.
    let code = text.contains(['_', '=', '<', '{', ';']);
    let caps = letters >= 4
        && !code
        && words <= 10
        && ratio >= 0.95
        && !text.chars().any(char::is_lowercase)
        && text.chars().any(char::is_uppercase);
    let numbered = number_depth(text).is_some() && words <= 16 && (block.italic || bold || larger || caps);
    if larger || bold || numbered || (caps && block.font != body.font && block.lines <= 3) {
        if small { Evidence::Small } else { Evidence::Strong }
    } else if caps && block.lines <= 2 && words >= 2 && !body.bold {
        Evidence::Weak
    } else {
        Evidence::None
    }
}

/// `Figure 3: ...`, `Table 2. ...`.
fn is_caption(text: &str) -> bool {
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
