//! Which blocks are headings: by the file's structure and bookmarks, by the type they are set in against the
//! rest of the document, and by what stands around them.

use std::collections::{BTreeMap, HashSet};

use super::block::Block;
use super::byline::{Names, is_address, is_affiliation, names};
use super::engine::TagKind;
use super::levels::{Bookmarks, number_depth};
use super::roles::{Body, is_caption};
use super::script::is_unspaced;
use super::text::{Marker, is_date};

/// How much larger than the body a heading is.
const LARGER: f32 = 1.13;
/// Longest text, in bytes, that a tag makes a heading.
const MAX_TAGGED_HEADING: usize = 400;
/// Bytes of a page from which on its text may be set otherwise than the document's, and percentage of that text.
const MIN_PAGE: usize = 500;
const PAGE_BODY: usize = 60;
/// Bytes of text tagged as headings from which on there may be too much of it.
const MIN_WILD: usize = 1000;
/// Most words of a heading that is no larger than the text.
const MAX_WORDS: usize = 18;
/// Lines between a title and the names of its authors at most.
const TITLE_BLOCK: usize = 6;

/// Says of each block of a document, given in reading order with its page, whether it is a heading.
pub(super) fn headings(blocks: &[&Block], pages: &[usize], body: Body, bookmarks: &Bookmarks) -> Vec<bool> {
    let prose = Prose::new(blocks);
    let bodies = bodies(blocks, pages, body);
    let set: Vec<Evidence> = blocks
        .iter()
        .zip(&bodies)
        .map(|(block, &here)| match heading_evidence(block, here) {
            Evidence::Strong if prose.is_set_as(block, body) => Evidence::None,
            evidence => evidence,
        })
        .collect();
    let mut evidence: Vec<Evidence> = blocks
        .iter()
        .zip(&set)
        .map(|(block, &evidence)| {
            let row = block.table.is_some() || (block.tabular && block.lines > 1);
            let marked = bookmarks.depth(&block.text).is_some() && block.lines <= 4 && !row && !block.leaders;
            if marked { Evidence::Strong } else { evidence }
        })
        .collect();
    drop_bylines(blocks, &mut evidence, body, bookmarks);
    drop_fields(blocks, &mut evidence, bookmarks);
    judge_by_what_follows(blocks, &mut evidence, &bodies, bookmarks);
    judge_by_tags(blocks, &mut evidence, &set, bookmarks);
    raise_kin(blocks, &mut evidence);
    // Capitals alone make headings only where nothing else does, as in typewritten documents.
    let strong = evidence.iter().filter(|&&e| e == Evidence::Strong).count();
    evidence
        .iter()
        .map(|&e| e == Evidence::Strong || (e == Evidence::Weak && strong <= 1))
        .collect()
}

/// For each block, how the text around it is set: as in the document, unless nearly all of its page is larger, as
/// in a letter before pages of small print.
fn bodies(blocks: &[&Block], pages: &[usize], body: Body) -> Vec<Body> {
    // By page, the characters of each size in quarters of a point.
    let mut sizes: BTreeMap<usize, BTreeMap<u32, usize>> = BTreeMap::new();
    for (block, page) in blocks.iter().zip(pages).filter(|(block, _)| block.table.is_none()) {
        let counts = sizes.entry(*page).or_default();
        *counts.entry(Prose::key(block.size)).or_default() += block.text.len();
    }
    let usual = |counts: &BTreeMap<u32, usize>| {
        let all: usize = counts.values().sum();
        let (key, most) = counts.iter().max_by_key(|&(_, count)| count)?;
        (all >= MIN_PAGE && most * 100 >= all * PAGE_BODY).then_some(*key as f32 / 4.0)
    };
    let usual: BTreeMap<usize, Option<f32>> = sizes.iter().map(|(page, counts)| (*page, usual(counts))).collect();
    let here = |page: &usize| match usual.get(page).copied().flatten() {
        Some(size) if size > body.size => Body { size, ..body },
        _ => body,
    };
    pages.iter().map(here).collect()
}

/// How running text is set: whatever looks the same is no heading for its size.
struct Prose {
    /// By size in quarters of a point, for regular weight: characters of running text and of other.
    sizes: BTreeMap<u32, [usize; 2]>,
    fonts: HashSet<u16>,
}

impl Prose {
    fn new(blocks: &[&Block]) -> Self {
        let mut prose = Self {
            sizes: BTreeMap::new(),
            fonts: HashSet::new(),
        };
        for block in blocks.iter().filter(|block| block.table.is_none() && !block.bold) {
            let running = is_running_text(block);
            let counts = prose.sizes.entry(Self::key(block.size)).or_default();
            counts[usize::from(!running)] += block.text.len();
            if running {
                prose.fonts.insert(block.font);
            }
        }
        prose
    }

    fn key(size: f32) -> u32 {
        (size * 4.0).round().max(0.0) as u32
    }

    /// Whether nothing but a size that more running text has speaks for a block.
    fn is_set_as(&self, block: &Block, body: Body) -> bool {
        let key = Self::key(block.size);
        let (running, other) = self
            .sizes
            .range(key.saturating_sub(1)..=key + 1)
            .fold((0, 0), |(running, other), (_, counts)| {
                (running + counts[0], other + counts[1])
            });
        let plain = !block.bold && !is_shouted(&block.text) && number_depth(&block.text).is_none();
        plain && block.size > body.size && running > other && self.fonts.contains(&block.font)
    }
}

/// Whether a block is a paragraph, or a good part of one. Lists of names are none.
pub(super) fn is_running_text(block: &Block) -> bool {
    let words = block.text.split_whitespace();
    let (capital, small) = words.fold((0, 0), |(capital, small), word| match word.chars().next() {
        Some(first) if first.is_lowercase() => (capital, small + 1),
        Some(first) if first.is_alphabetic() => (capital + 1, small),
        _ => (capital, small),
    });
    let unspaced = block.text.chars().filter(|&ch| is_unspaced(ch)).count();
    block.table.is_none() && !block.tabular && block.lines >= 2 && (small >= 10 && small > capital || unspaced >= 60)
}

/// `IV. RESULTS`.
fn has_roman_number(text: &str) -> bool {
    let number = text.split_once(". ").map_or("", |(number, _)| number);
    (1..=5).contains(&number.len()) && number.bytes().all(|b| matches!(b, b'I' | b'V' | b'X'))
}

/// Capitals in the type of several headings in capitals are headings too, as `REFERENCES` after numbered sections.
fn raise_kin(blocks: &[&Block], evidence: &mut [Evidence]) {
    let style = |block: &Block| (Prose::key(block.size), block.font);
    let mut kin: BTreeMap<(u32, u16), usize> = BTreeMap::new();
    for (block, evidence) in blocks.iter().zip(evidence.iter()) {
        if *evidence == Evidence::Strong && has_roman_number(&block.text) {
            *kin.entry(style(block)).or_default() += 1;
        }
    }
    for (block, evidence) in blocks.iter().zip(evidence) {
        let alone = block.lines == 1 && !block.tabular && block.table.is_none() && block.marker.is_none();
        let letters = block.text.chars().all(|ch| ch.is_uppercase() || ch == ' ') && block.text.len() >= 6;
        if alone && letters && kin.get(&style(block)).is_some_and(|&count| count >= 2) {
            *evidence = Evidence::Strong;
        }
    }
}

/// Nothing but capitals.
fn is_shouted(text: &str) -> bool {
    !text.chars().any(char::is_lowercase) && text.chars().any(char::is_uppercase)
}

/// Names of authors stand larger than the text below a title.
fn drop_bylines(blocks: &[&Block], evidence: &mut [Evidence], body: Body, bookmarks: &Bookmarks) {
    // Whether the block before is a heading or names authors.
    let mut in_title = false;
    for (index, block) in blocks.iter().enumerate() {
        let heading = evidence.get(index) == Some(&Evidence::Strong);
        let below_title = std::mem::replace(&mut in_title, heading);
        let plain = !block.bold && block.lines <= 3 && bookmarks.depth(&block.text).is_none();
        if !heading || !plain || block.size < body.size {
            continue;
        }
        let mut above = blocks.iter().zip(evidence.iter()).take(index).rev().take(TITLE_BLOCK);
        let titled = above.any(|(above, &evidence)| evidence == Evidence::Strong && titles(above, block));
        let mailed = || {
            let next = blocks.get(index + 1);
            next.is_some_and(|next| !next.text.contains(' ') && next.text.contains('@') || is_affiliation(&next.text))
        };
        let authors = match names(&block.text) {
            Some(Names::Initials) => true,
            Some(Names::Several) => below_title,
            Some(Names::One) => mailed(),
            None => false,
        };
        if let Some(slot) = evidence.get_mut(index).filter(|_| titled && authors) {
            *slot = Evidence::None;
        }
    }
}

/// A label and the line right below it in the same size are a field, however large.
fn drop_fields(blocks: &[&Block], evidence: &mut [Evidence], bookmarks: &Bookmarks) {
    let plain = |block: &Block| {
        block.table.is_none()
            && !block.tabular
            && !block.bold
            && block.lines == 1
            && number_depth(&block.text).is_none()
            && bookmarks.depth(&block.text).is_none()
    };
    for (index, pair) in blocks.windows(2).enumerate() {
        let [label, value] = pair else { continue };
        let below = value.bbox[1] - label.bbox[3];
        let field = label.text.ends_with(':')
            && plain(label)
            && plain(value)
            && (0.95..1.05).contains(&(value.size / label.size))
            && (value.bbox[0] - label.bbox[0]).abs() < label.size
            && (-0.3 * label.size..0.6 * label.size).contains(&below);
        if field && let Some(slots) = evidence.get_mut(index..index + 2) {
            slots.fill(Evidence::None);
        }
    }
}

/// Whether a heading is more prominent than a line below it.
fn titles(above: &Block, below: &Block) -> bool {
    above.size > 1.1 * below.size || (above.bold && !below.bold && above.size > 0.95 * below.size)
}

/// Blocks tagged as headings are headings. Where the structure has several, covers nearly all text and
/// says of a block that it is something else, that block is none, unless it is bookmarked and `set` as headings
/// are.
fn judge_by_tags(blocks: &[&Block], evidence: &mut [Evidence], set: &[Evidence], bookmarks: &Bookmarks) {
    let text = || blocks.iter().filter(|block| block.table.is_none());
    let chars = |blocks: &mut dyn Iterator<Item = &&Block>| blocks.map(|block| block.text.len()).sum::<usize>();
    let is_heading = |block: &&&Block| matches!(block.tag, TagKind::Heading(_));
    let tagged = chars(&mut text().filter(|block| block.tag != TagKind::None));
    let headings = text().filter(is_heading).count();
    let trusted = headings >= 2 && headings * 2 < text().count().max(4) && tagged * 10 > chars(&mut text()) * 9;
    // Some programs, and people, make headings of everything.
    let headed = chars(&mut text().filter(is_heading));
    let wild = headed > MIN_WILD && headed * 2 > tagged;
    for ((block, evidence), &set) in blocks.iter().zip(evidence).zip(set) {
        match block.tag {
            TagKind::Heading(_) if !wild && block.text.len() <= MAX_TAGGED_HEADING && block.table.is_none() => {
                *evidence = Evidence::Strong;
            }
            TagKind::Paragraph | TagKind::ListItem | TagKind::Caption | TagKind::Note | TagKind::Other
                if trusted && (set == Evidence::None || bookmarks.depth(&block.text).is_none()) =>
            {
                *evidence = Evidence::None;
            }
            _ => {}
        }
    }
}

/// What a block is can depend on the next: a label in the type of the text it stands before is no heading, but
/// above a heading it is one; a large number above a heading is a part of it; and a bold line above a paragraph in
/// smaller type than the rest is the paragraph's heading.
fn judge_by_what_follows(blocks: &[&Block], evidence: &mut [Evidence], bodies: &[Body], bookmarks: &Bookmarks) {
    for index in (0..blocks.len().saturating_sub(1)).rev() {
        let (Some(block), Some(next)) = (blocks.get(index), blocks.get(index + 1)) else {
            continue;
        };
        let followed_by = evidence.get(index + 1).copied().unwrap_or(Evidence::None);
        let (Some(slot), Some(&body)) = (evidence.get_mut(index), bodies.get(index)) else {
            continue;
        };
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
        let small = *slot == Evidence::None && heads_small_print(block, next, body);
        let above_heading = *slot == Evidence::None
            && followed_by == Evidence::Strong
            && block.bold
            && block
                .text
                .strip_suffix(':')
                .is_some_and(|label| is_shouted(label) && label.contains(' '))
            && !block.tabular
            && !next.text.ends_with(':');
        if label {
            *slot = Evidence::None;
        } else if set_off || heads || apart || small || above_heading {
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
            // Below a figure there may be its unit.
            || (above.size > LARGER * block.size && above.text.chars().any(char::is_alphabetic))
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

/// A bold line right above a paragraph of print that is smaller than the body.
fn heads_small_print(block: &Block, next: &Block, body: Body) -> bool {
    let there = Body {
        size: next.size,
        ..body
    };
    block.bold
        && !body.bold
        && !next.bold
        && block.size < 0.9 * body.size
        && block.lines == 1
        && is_running_text(next)
        && (0.98..1.3).contains(&(block.size / next.size))
        && (block.bbox[0] - next.bbox[0]).abs() < block.size
        && (0.0..block.size).contains(&(next.bbox[1] - block.bbox[3]))
        && heading_evidence(block, there) == Evidence::Strong
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
    // A section number, and a date with it, may stand on lines of their own above the words.
    let figures = text
        .split(' ')
        .take_while(|word| !word.chars().any(char::is_alphabetic));
    let length: usize = figures.clone().take(2).map(|word| word.len() + 1).sum();
    let rest = text.get(length..).unwrap_or_default();
    let letters = rest.chars().filter(|ch| ch.is_alphabetic()).count();
    let visible = rest.chars().filter(|ch| !ch.is_whitespace()).count();
    let words = text.split_whitespace().count();
    if is_row(block) || block.leaders || block.marker == Some(Marker::Bullet) || letters < 2 || letters * 2 < visible {
        return Evidence::None;
    }
    let ratio = block.size / body.size;
    let larger = ratio >= LARGER;
    let (max_lines, max_chars) = if ratio >= 1.3 { (5, 260) } else { (3, 180) };
    if block.lines > max_lines + figures.take(2).count() || text.chars().count() > max_chars {
        return Evidence::None;
    }
    if text.ends_with([',', ';']) || (text.ends_with(':') && !larger) || is_caption(text) {
        return Evidence::None;
    }
    if is_date(text) || is_address(text) {
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
    let bold = block.bold && !body.bold && ratio >= 0.9 && (larger || words <= MAX_WORDS);
    // Programs shout too.
    let code = text.contains(['_', '=', '<', '{', ';']);
    let caps = letters >= 4 && !code && words <= 10 && ratio >= 0.95 && is_shouted(text);
    let numbered = number_depth(text).is_some() && words <= 16 && (block.italic || bold || larger || caps);
    if larger || bold || numbered || (caps && (has_roman_number(text) || block.font != body.font && block.lines <= 3)) {
        if small { Evidence::Small } else { Evidence::Strong }
    } else if caps && block.lines <= 2 && words >= 2 && !body.bold {
        Evidence::Weak
    } else {
        Evidence::None
    }
}
