//! What kind of element a block is, judged by its font against the rest of the document.

use std::collections::{BTreeMap, HashMap};

use docmill_model::ElementType;

use super::block::Block;
use super::engine::{OutlineEntry, TagKind};
use super::script::is_unspaced;
use super::text::{Marker, is_date};
use crate::classify::classify;

/// How much larger than the body a heading is.
const LARGER: f32 = 1.13;
/// Longest text, in bytes, that a tag makes a heading.
const MAX_TAGGED_HEADING: usize = 400;
/// Depths given to headings: 0 to this.
const MAX_DEPTH: u32 = 5;

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

/// Decides on all blocks of a document, given in reading order.
pub(super) fn roles(blocks: &[&Block], body: Body, outline: &[OutlineEntry]) -> Vec<Role> {
    let bookmarks = Bookmarks::new(outline);
    let mut evidence: Vec<Evidence> = blocks
        .iter()
        .map(|block| {
            let marked = bookmarks.depth(&block.text).is_some() && block.lines <= 4 && !block.tabular;
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
    let depths = depths(blocks, &headings, &bookmarks);
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
        if label {
            *slot = Evidence::None;
        } else if numeral && followed_by == Evidence::Strong && next.size <= block.size * 1.02 {
            *slot = Evidence::Strong;
        }
    }
}

/// How much speaks for a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    None,
    /// Nothing but capitals.
    Weak,
    Strong,
}

fn heading_evidence(block: &Block, body: Body) -> Evidence {
    let text = block.text.as_str();
    let letters = text.chars().filter(|ch| ch.is_alphabetic()).count();
    let visible = text.chars().filter(|ch| !ch.is_whitespace()).count();
    let words = text.split_whitespace().count();
    if block.tabular
        || block.table.is_some()
        || block.marker == Some(Marker::Bullet)
        || letters < 2
        || letters * 2 < visible
    {
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
    // The middle of a sentence.
    if text.starts_with(char::is_lowercase) && ratio < 1.5 {
        return Evidence::None;
    }
    let sentence = text.ends_with(['.', '。']) && (words > 3 || text.starts_with(char::is_lowercase));
    if sentence && ratio < 1.4 {
        return Evidence::None;
    }
    let bold = block.bold && !body.bold && ratio >= 0.9 && words <= 24;
    let caps = letters >= 4
        && words <= 10
        && ratio >= 0.95
        && !text.chars().any(char::is_lowercase)
        && text.chars().any(char::is_uppercase);
    let numbered = number_depth(text).is_some() && words <= 16 && (block.italic || bold || larger || caps);
    if larger || bold || numbered || (caps && block.font != body.font && block.lines <= 3) {
        Evidence::Strong
    } else if caps && block.lines <= 2 && words >= 2 && !body.bold {
        Evidence::Weak
    } else {
        Evidence::None
    }
}

/// Levels of a dotted section number at the start of a heading.
fn number_depth(text: &str) -> Option<u32> {
    let (head, rest) = text.split_once(' ')?;
    let head = head.trim_end_matches(['.', ')', ':']);
    let rest = rest.trim_start();
    if head.is_empty() || !rest.chars().next()?.is_alphabetic() {
        return None;
    }
    let parts: Vec<&str> = head.split('.').collect();
    let numeric = parts
        .iter()
        .all(|part| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()));
    let lettered = parts.len() > 1
        && parts
            .first()
            .is_some_and(|p| p.len() == 1 && p.bytes().all(|b| b.is_ascii_uppercase()))
        && parts
            .iter()
            .skip(1)
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    (numeric || lettered).then_some(parts.len() as u32)
}

/// Depths of the headings: by the outline where it knows them, then by section number relative to
/// the other numbered headings, else by the rank of the font.
fn depths(blocks: &[&Block], headings: &[bool], bookmarks: &Bookmarks) -> Vec<u32> {
    let ladder = Ladder::new(
        blocks
            .iter()
            .zip(headings)
            .filter(|&(_, &heading)| heading)
            .map(|(block, _)| *block),
    );
    let rank = |block: &Block| ladder.rank(block);

    // The rank of first-level numbered headings: what their subsections are counted from.
    let numbered_base = blocks
        .iter()
        .zip(headings)
        .filter(|&(_, &heading)| heading)
        .filter_map(|(block, _)| Some((number_depth(&block.text)?, rank(block))))
        .map(|(depth, rank)| rank.saturating_sub(depth - 1))
        .min();
    let bookmark_base = bookmark_base(blocks, headings, bookmarks, &rank);
    blocks
        .iter()
        .map(|block| {
            let level = match block.tag {
                TagKind::Heading(Some(level)) => Some(u32::from(level).saturating_sub(1)),
                _ => None,
            };
            if let (Some(level), false) = (level, bookmarks.depth(&block.text).is_some()) {
                return level.min(MAX_DEPTH);
            }
            let depth = match (bookmarks.depth(&block.text), number_depth(&block.text), numbered_base) {
                (Some(depth), _, _) => bookmark_base + depth,
                (None, Some(depth), Some(base)) => base + depth - 1,
                _ => rank(block),
            };
            depth.min(MAX_DEPTH)
        })
        .collect()
}

/// The font styles of a document's headings, from the most to the least prominent.
struct Ladder(Vec<(f32, bool)>);

/// Sizes within this ratio are one step of the ladder.
const STEP: f32 = 1.07;

impl Ladder {
    fn new<'b>(headings: impl Iterator<Item = &'b Block>) -> Self {
        let mut styles: Vec<(f32, bool)> = headings.map(|block| (block.size, block.bold)).collect();
        styles.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let mut steps: Vec<(f32, bool)> = Vec::new();
        for style in styles {
            if !steps
                .iter()
                .rev()
                .take(2)
                .any(|step| step.0 <= style.0 * STEP && step.1 == style.1)
            {
                steps.push(style);
            }
        }
        Self(steps)
    }

    fn rank(&self, block: &Block) -> u32 {
        let same =
            |step: &&(f32, bool)| step.0 <= block.size * STEP && step.0 * STEP >= block.size && step.1 == block.bold;
        let position = self.0.iter().position(|step| same(&step));
        position.unwrap_or(self.0.len()) as u32
    }
}

/// 1 when a title above all bookmarked headings is not itself bookmarked, else 0.
fn bookmark_base(blocks: &[&Block], headings: &[bool], bookmarks: &Bookmarks, rank: &dyn Fn(&Block) -> u32) -> u32 {
    let mut above = None;
    let mut best = None;
    for (block, _) in blocks.iter().zip(headings).filter(|&(_, &heading)| heading) {
        let slot = if bookmarks.depth(&block.text).is_some() {
            &mut best
        } else {
            &mut above
        };
        let rank = rank(block);
        *slot = Some(slot.map_or(rank, |known: u32| known.min(rank)));
    }
    match (above, best) {
        (Some(above), Some(best)) if above < best => 1,
        _ => 0,
    }
}

/// The outline by title.
struct Bookmarks(HashMap<String, u32>);

impl Bookmarks {
    fn new(outline: &[OutlineEntry]) -> Self {
        let mut map = HashMap::new();
        for entry in outline {
            let key = Self::key(&entry.title);
            if key.chars().any(char::is_alphabetic) {
                map.entry(key).or_insert(entry.depth);
            }
        }
        Self(map)
    }

    fn key(text: &str) -> String {
        text.chars()
            .filter(|ch| ch.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    }

    fn depth(&self, text: &str) -> Option<u32> {
        if self.0.is_empty() || text.len() > 400 {
            return None;
        }
        self.0.get(&Self::key(text)).copied()
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
