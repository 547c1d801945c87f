//! How deep headings stand: by bookmarks and structure tags, then by section numbers, then by the type
//! they are set in.

use std::collections::HashMap;

use super::block::Block;
use super::engine::{OutlineEntry, TagKind};
use super::ladder::Ladder;

/// Depths given to headings: 0 to this.
const MAX_DEPTH: u32 = 5;

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

/// What divisions of books are called, with `Part` first: whatever has a section number stands below them.
const DIVISIONS: [&str; 12] = [
    "part",
    "teil",
    "partie",
    "parte",
    "часть",
    "chapter",
    "kapitel",
    "chapitre",
    "capítulo",
    "capitulo",
    "capitolo",
    "глава",
];

/// `Part B - Plants`, `Chapter 3`.
fn is_division(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default().to_lowercase();
    let number = words
        .next()
        .unwrap_or_default()
        .trim_end_matches([':', '.', ',', '-', '–', '—', ')']);
    let counts = number.bytes().all(|b| b.is_ascii_digit())
        || number.chars().all(|ch| matches!(ch, 'I' | 'V' | 'X' | 'L'))
        || number.chars().count() == 1 && number.chars().all(char::is_uppercase);
    DIVISIONS.contains(&name.as_str()) && !number.is_empty() && counts
}

/// Depths of the blocks that are headings; those of others mean nothing. `pages` has the page of each
/// block.
pub(super) fn depths(blocks: &[&Block], pages: &[usize], headings: &[bool], bookmarks: &Bookmarks) -> Vec<u32> {
    let ladder = Ladder::new(blocks, pages, headings);
    let level = |block: &Block| ladder.level(block);
    let found = || {
        let pairs = blocks.iter().zip(headings);
        pairs.filter(|&(_, &heading)| heading).map(|(block, _)| *block)
    };

    // The level of first-level numbered headings: what their subsections are counted from.
    let numbered = || found().filter_map(|block| Some((number_depth(&block.text)?, level(block))));
    let base = numbered().map(|(depth, level)| level.saturating_sub(depth - 1)).min();
    let highest = numbered().map(|(depth, _)| depth).min().unwrap_or(1);
    // Divisions stand above the sections.
    let divisions = found().filter(|block| is_division(&block.text)).map(level).min();
    let division = divisions
        .zip(base)
        .map(|(level, base)| level.min((base + highest).saturating_sub(2)));
    let numbered_base = match (base, division) {
        (Some(base), Some(division)) => Some(base.max((division + 2).saturating_sub(highest))),
        _ => base,
    };
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
                _ => match division {
                    Some(division) if is_division(&block.text) => division,
                    _ => level(block),
                },
            };
            depth.min(MAX_DEPTH)
        })
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

    #[test]
    fn a_line_above_the_title_makes_no_level() {
        let paper = [
            (0, 13.0, "Industry"),
            (0, 19.0, "A Title"),
            (0, 10.0, PROSE),
            (0, 11.5, "References"),
        ];
        assert_eq!(depths_of(&paper), [1, 0, 1]);
    }

    #[test]
    fn what_outgrows_the_title_is_not_above_it() {
        let form = [
            (0, 13.0, "Application"),
            (0, 12.0, "Who"),
            (0, 10.0, PROSE),
            (0, 14.0, "Attention"),
            (0, 12.0, "What"),
        ];
        assert_eq!(depths_of(&form), [0, 1, 1, 1]);
        let chapters = [(0, 12.0, "A Section"), (0, 10.0, PROSE), (0, 18.0, "A Chapter")];
        assert_eq!(depths_of(&chapters), [1, 0]);
    }

    #[test]
    fn capitals_stand_above_other_headings_of_their_size() {
        let notice = [
            (0, 12.0, "DEPARTMENT OF STATE"),
            (0, 12.0, "An Office"),
            (0, 10.0, PROSE),
            (0, 12.0, "DEPARTMENT OF LABOR"),
            (0, 12.0, "Another Office"),
        ];
        assert_eq!(depths_of(&notice), [0, 1, 0, 1]);
        // Not where another comes first.
        assert_eq!(depths_of(&[(0, 12.0, "Memory"), (0, 12.0, "EEPROM USES")]), [0, 0]);
    }

    #[test]
    fn divisions_stand_above_section_numbers_and_these_above_smaller_headings() {
        assert_eq!(depths_of(&[(0, 12.0, "PART B - Plants"), (0, 14.0, "1 Words")]), [0, 1]);
        let book = [
            (0, 14.0, "Chapter 2: Tea"),
            (0, 14.0, "2.1 Water"),
            (0, 12.0, "2.1.1 Heat"),
        ];
        assert_eq!(depths_of(&book), [0, 1, 2]);
        let data = [(0, 16.0, "1.1 Data"), (0, 10.0, PROSE), (0, 12.0, "Key")];
        assert_eq!(depths_of(&data), [1, 2]);
    }
}
