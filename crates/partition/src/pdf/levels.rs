//! How deep headings stand: by bookmarks and structure tags, then by section numbers, then by the type
//! they are set in.

use std::collections::HashMap;

use super::block::Block;
use super::engine::{OutlineEntry, TagKind};

/// Depths given to headings: 0 to this.
const MAX_DEPTH: u32 = 5;
/// Sizes within this ratio are one step of the ladder.
const STEP: f32 = 1.07;
/// Share of a page's text, in tenths, from which on a page of headings is a cover.
const COVER: usize = 7;

/// Levels of a dotted section number at the start of a heading.
pub(super) fn number_depth(text: &str) -> Option<u32> {
    let (head, rest) = text.split_once(' ')?;
    let head = head.trim_end_matches(['.', ')', ':']);
    let rest = rest.trim_start();
    let parts: Vec<&str> = head.split('.').collect();
    // `2.1 5G networks`, but not `2.1 30 mm`.
    let word = rest.split(' ').next().unwrap_or_default();
    let begins = rest.starts_with(char::is_alphabetic)
        || (parts.len() > 1 && word.chars().filter(|ch| ch.is_alphabetic()).count() >= 2);
    if head.is_empty() || !begins {
        return None;
    }
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

/// Depths of the blocks that are headings; those of others mean nothing. `pages` has the page of each
/// block.
pub(super) fn depths(blocks: &[&Block], pages: &[usize], headings: &[bool], bookmarks: &Bookmarks) -> Vec<u32> {
    let ladder = Ladder::new(blocks, pages, headings);
    let level = |block: &Block| ladder.level(block);

    // The level of first-level numbered headings: what their subsections are counted from.
    let numbered_base = blocks
        .iter()
        .zip(headings)
        .filter(|&(_, &heading)| heading)
        .filter_map(|(block, _)| Some((number_depth(&block.text)?, level(block))))
        .map(|(depth, level)| level.saturating_sub(depth - 1))
        .min();
    let bookmark_base = bookmark_base(blocks, headings, bookmarks, &level);
    blocks
        .iter()
        .map(|block| {
            let tagged = match block.tag {
                TagKind::Heading(Some(level)) => Some(u32::from(level).saturating_sub(1)),
                _ => None,
            };
            if let (Some(tagged), false) = (tagged, bookmarks.depth(&block.text).is_some()) {
                return tagged.min(MAX_DEPTH);
            }
            let depth = match (bookmarks.depth(&block.text), number_depth(&block.text), numbered_base) {
                (Some(depth), _, _) => bookmark_base + depth,
                (None, Some(depth), Some(base)) => base + depth - 1,
                _ => level(block),
            };
            depth.min(MAX_DEPTH)
        })
        .collect()
}

/// The font styles of a document's headings, from the most to the least prominent.
struct Ladder(Vec<Rung>);

/// One style of headings.
struct Rung {
    size: f32,
    bold: bool,
    /// All its headings stand on pages that hold hardly anything but headings.
    cover: bool,
    /// Levels of the section numbers of its headings, if they have any.
    numbered: Option<u32>,
    level: u32,
}

impl Rung {
    fn holds(&self, block: &Block) -> bool {
        self.size <= block.size * STEP && self.size * STEP >= block.size && self.bold == block.bold
    }
}

impl Ladder {
    fn new(blocks: &[&Block], pages: &[usize], headings: &[bool]) -> Self {
        let covers = covers(blocks, pages, headings);
        let mut found: Vec<(&Block, usize)> = blocks
            .iter()
            .zip(pages)
            .zip(headings)
            .filter(|&(_, &heading)| heading)
            .map(|((block, page), _)| (*block, *page))
            .collect();
        found.sort_by(|(a, _), (b, _)| b.size.total_cmp(&a.size).then(b.bold.cmp(&a.bold)));
        let mut rungs: Vec<Rung> = Vec::new();
        for (block, page) in found {
            let cover = covers.get(page).copied().unwrap_or(false);
            let numbered = number_depth(&block.text);
            let near = rungs.iter_mut().rev().take(2);
            let known = near
                .into_iter()
                .find(|rung| rung.size <= block.size * STEP && rung.bold == block.bold);
            if let Some(rung) = known {
                rung.cover &= cover;
                rung.numbered = match (rung.numbered, numbered) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                continue;
            }
            rungs.push(Rung {
                size: block.size,
                bold: block.bold,
                cover,
                numbered,
                level: 0,
            });
        }
        set_levels(&mut rungs);
        Self(rungs)
    }

    fn level(&self, block: &Block) -> u32 {
        let found = self.0.iter().find(|rung| rung.holds(block)).or(self.0.last());
        found.map_or(0, |rung| rung.level)
    }
}

/// Gives the rungs their levels. Whatever sizes a cover is set in, it is the top; and above the largest
/// headings with a section number, there is one level more than the number implies at most.
fn set_levels(rungs: &mut [Rung]) {
    let mut level = 0;
    let mut above: Option<bool> = None;
    for rung in rungs.iter_mut() {
        level += match above {
            None => 0,
            Some(cover) => u32::from(!(cover && rung.cover)),
        };
        above = Some(rung.cover);
        rung.level = level;
    }
    let Some(first) = rungs.iter().position(|rung| rung.numbered.is_some()) else {
        return;
    };
    let highest = rungs.get(first).and_then(|rung| rung.numbered).unwrap_or(1);
    let excess = rungs.get(first).map_or(0, |rung| rung.level.saturating_sub(highest));
    if excess == 0 {
        return;
    }
    for (index, rung) in rungs.iter_mut().enumerate() {
        rung.level = if index < first {
            rung.level.min(highest - 1)
        } else {
            rung.level - excess
        };
    }
}

/// By page, whether it holds hardly anything but headings. In a document of one or two pages none does.
fn covers(blocks: &[&Block], pages: &[usize], headings: &[bool]) -> Vec<bool> {
    let count = pages.iter().max().map_or(0, |last| last + 1);
    let mut text = vec![(0, 0); count];
    for ((block, page), &heading) in blocks.iter().zip(pages).zip(headings) {
        if let Some((all, heads)) = text.get_mut(*page) {
            *all += block.text.len();
            *heads += if heading { block.text.len() } else { 0 };
        }
    }
    text.into_iter()
        .map(|(all, heads)| count > 2 && heads * 10 > all * COVER)
        .collect()
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
pub(super) struct Bookmarks(HashMap<String, u32>);

impl Bookmarks {
    pub(super) fn new(outline: &[OutlineEntry]) -> Self {
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

    pub(super) fn depth(&self, text: &str) -> Option<u32> {
        if self.0.is_empty() || text.len() > 400 {
            return None;
        }
        self.0.get(&Self::key(text)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::Direction;
    use super::super::order::read_order;
    use super::super::segment::segments;
    use super::super::testing::typeset;
    use super::*;

    /// Depths of lines of given sizes, each a page and block of its own: page, size, text.
    fn depths_of(lines: &[(usize, f32, &str)]) -> Vec<u32> {
        let mut found = Vec::new();
        for &(page, size, text) in lines {
            let content = typeset(&[(50.0, 100.0, size, text)]);
            let regions = read_order(segments(&content, &[], Direction::East)).into_iter();
            found.extend(
                regions
                    .flat_map(|region| super::super::block::blocks(region, &[]))
                    .map(|b| (page, b)),
            );
        }
        let blocks: Vec<&Block> = found.iter().map(|(_, block)| block).collect();
        let pages: Vec<usize> = found.iter().map(|(page, _)| *page).collect();
        let headings: Vec<bool> = blocks.iter().map(|block| block.size > 10.5).collect();
        let depths = depths(&blocks, &pages, &headings, &Bookmarks::new(&[]));
        depths
            .into_iter()
            .zip(headings)
            .filter(|(_, heading)| *heading)
            .map(|(depth, _)| depth)
            .collect()
    }

    const PROSE: &str = "A line of plain text that is long enough to weigh something";

    #[test]
    fn section_numbers_tell_levels() {
        let found = [
            "1 Scope",
            "2.1 Scope",
            "A.1.2 Scope",
            "2.1 5-Level paging",
            "2.1 30 mm",
            "2 30-day rule",
            "12.5 7",
        ];
        assert_eq!(
            found.map(number_depth),
            [Some(1), Some(2), Some(3), Some(2), None, None, None]
        );
    }

    #[test]
    fn sizes_rank_headings() {
        assert_eq!(
            depths_of(&[
                (0, 20.0, "Title"),
                (0, 14.0, "Part"),
                (0, 10.0, PROSE),
                (0, 12.0, "Section"),
                (0, 14.2, "Part")
            ]),
            [0, 1, 2, 1]
        );
    }

    #[test]
    fn the_sizes_of_a_cover_are_one_level() {
        let book = [
            (0, 60.0, "Press"),
            (0, 40.0, "A Book"),
            (0, 30.0, "Of Many Things"),
            (1, 16.0, "Chapter"),
            (1, 10.0, PROSE),
            (2, 13.0, "Section"),
            (2, 10.0, PROSE),
        ];
        assert_eq!(depths_of(&book), [0, 0, 0, 1, 2]);
    }

    #[test]
    fn numbers_limit_what_stands_above_them() {
        let report = [
            (0, 30.0, "Report"),
            (0, 26.0, "Agency"),
            (0, 22.0, "Office"),
            (0, 10.0, PROSE),
            (0, 16.0, "1.1 Scope"),
            (0, 13.0, "1.1.1 Words"),
            (0, 10.0, PROSE),
            (0, 16.0, "Unnumbered"),
        ];
        assert_eq!(depths_of(&report), [0, 1, 1, 2, 3, 2]);
    }
}
