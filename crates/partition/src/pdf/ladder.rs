//! The styles that headings are set in, ranked: by size and weight, then by capitals.

use super::block::Block;
use super::headings::is_running_text;
use super::levels::number_depth;
use super::text::is_caps;

/// Sizes within this ratio are one step of the ladder.
const STEP: f32 = 1.07;
/// How much larger than the title a line in the text may be that is no title.
const OUTGROWN: f32 = 1.2;
/// Share of a page's text, in tenths, from which on a page of headings is a cover.
const COVER: usize = 7;

/// The font styles of a document's headings, from the most to the least prominent.
pub(super) struct Ladder(Vec<Rung>);

/// One style of headings.
struct Rung {
    size: f32,
    bold: bool,
    /// Set in capitals, where headings of the same size are not.
    capitals: Option<bool>,
    /// All its headings stand on pages that hold hardly anything but headings.
    cover: bool,
    /// Makes no level of its own: all its headings stand right above larger ones, or it is one line in the text
    /// that outgrows the title.
    aside: bool,
    /// Levels of the section numbers of its headings, if they have any.
    numbered: Option<u32>,
    level: u32,
}

impl Rung {
    fn holds(&self, block: &Block) -> bool {
        self.size <= block.size * STEP
            && self.size * STEP >= block.size
            && self.bold == block.bold
            && self.capitals.is_none_or(|capitals| capitals == is_capitals(block))
    }
}

/// A heading and where it stands.
struct Placed<'b> {
    block: &'b Block,
    /// Its place among the blocks.
    index: usize,
    /// On a cover.
    cover: bool,
    /// Right above a larger one.
    kicker: bool,
}

impl Ladder {
    /// `pages` has the page of each block.
    pub(super) fn new(blocks: &[&Block], pages: &[usize], headings: &[bool]) -> Self {
        let covers = covers(blocks, pages, headings);
        let is_heading = |index: usize| headings.get(index) == Some(&true);
        let placed = blocks
            .iter()
            .zip(pages)
            .enumerate()
            .filter(|(index, _)| is_heading(*index));
        let mut found: Vec<Placed<'_>> = placed
            .map(|(index, (block, page))| Placed {
                block,
                index,
                cover: covers.get(*page).copied().unwrap_or(false),
                kicker: blocks
                    .get(index + 1)
                    .is_some_and(|next| is_heading(index + 1) && next.size > STEP * block.size),
            })
            .collect();
        found.sort_by(|a, b| {
            b.block
                .size
                .total_cmp(&a.block.size)
                .then(b.block.bold.cmp(&a.block.bold))
        });
        let mut groups: Vec<Vec<Placed<'_>>> = Vec::new();
        for heading in found {
            let near = groups.iter_mut().rev().take(2);
            let known = near.into_iter().find(|group| {
                group.first().is_some_and(|first| {
                    first.block.size <= heading.block.size * STEP && first.block.bold == heading.block.bold
                })
            });
            match known {
                Some(group) => group.push(heading),
                None => groups.push(vec![heading]),
            }
        }
        let asides = raise_title(&mut groups, blocks);
        let mut rungs: Vec<Rung> = groups.iter().flat_map(|group| split(group)).collect();
        // The title is one rung.
        for rung in rungs.iter_mut().skip(1).take(asides) {
            rung.aside = true;
        }
        set_levels(&mut rungs);
        Self(rungs)
    }

    /// How many styles, and title or cover, stand above that of a heading.
    pub(super) fn level(&self, block: &Block) -> u32 {
        let found = self.0.iter().find(|rung| rung.holds(block)).or(self.0.last());
        found.map_or(0, |rung| rung.level)
    }
}

/// Puts the size of the title first, which opens the document, where single lines in the text are somewhat
/// larger; the answer is how many such lines there are.
fn raise_title(groups: &mut [Vec<Placed<'_>>], blocks: &[&Block]) -> usize {
    let first = |group: &Vec<Placed<'_>>| group.iter().map(|heading| heading.index).min().unwrap_or(usize::MAX);
    let Some((place, group)) = groups.iter().enumerate().min_by_key(|(_, group)| first(group)) else {
        return 0;
    };
    let (Some(title), Some(largest)) = (
        group.iter().min_by_key(|heading| heading.index),
        groups.first().and_then(|group| group.first()),
    ) else {
        return 0;
    };
    let opens = !blocks.iter().take(title.index).any(|block| is_running_text(block));
    let asides = groups.iter().take(place).all(|group| group.len() == 1);
    if !opens || !asides || group.len() > 1 || largest.block.size > OUTGROWN * title.block.size {
        return 0;
    }
    if let Some(larger) = groups.get_mut(..=place) {
        larger.rotate_right(1);
    }
    place
}

/// The rungs of headings of one size and weight: where one in capitals comes first, those in capitals stand above
/// the others.
fn split(group: &[Placed<'_>]) -> Vec<Rung> {
    let numbered = group.iter().any(|heading| number_depth(&heading.block.text).is_some());
    let mixed = group.iter().any(|heading| !is_capitals(heading.block));
    let first = group.iter().min_by_key(|heading| heading.index);
    let parted = mixed && !numbered && first.is_some_and(|first| is_capitals(first.block));
    let parts = if parted {
        vec![Some(true), Some(false)]
    } else {
        vec![None]
    };
    let rung = |capitals: Option<bool>| {
        let wanted = |heading: &&Placed<'_>| capitals.is_none_or(|capitals| capitals == is_capitals(heading.block));
        let part: Vec<&Placed<'_>> = group.iter().filter(wanted).collect();
        let first = part.first()?;
        Some(Rung {
            size: first.block.size,
            bold: first.block.bold,
            capitals,
            cover: part.iter().all(|heading| heading.cover),
            aside: part.iter().all(|heading| heading.kicker),
            numbered: part
                .iter()
                .filter_map(|heading| number_depth(&heading.block.text))
                .min(),
            level: 0,
        })
    };
    parts.into_iter().filter_map(rung).collect()
}

/// Several letters or words, all of them capitals.
fn is_capitals(block: &Block) -> bool {
    is_caps(&block.text) && block.text.chars().filter(|ch| ch.is_alphabetic()).count() >= 6
}

/// Gives the rungs their levels. Whatever sizes a cover is set in, it is the top; a line above a title makes no
/// level of its own; and above the largest headings with a section number, there is one level more than the
/// number implies at most.
fn set_levels(rungs: &mut [Rung]) {
    let mut level = 0;
    let mut above: Option<(bool, bool)> = None;
    for rung in rungs.iter_mut() {
        level += match above {
            None => 0,
            Some((cover, aside)) => u32::from(!(aside || cover && rung.cover)),
        };
        above = Some((rung.cover, rung.aside));
        rung.level = level;
    }
    let Some(first) = rungs.iter().position(|rung| rung.numbered.is_some()) else {
        return;
    };
    let highest = rungs.get(first).and_then(|rung| rung.numbered).unwrap_or(1);
    let level = rungs.get(first).map_or(0, |rung| rung.level);
    let (excess, lack) = (level.saturating_sub(highest), (highest - 1).saturating_sub(level));
    for (index, rung) in rungs.iter_mut().enumerate() {
        if index >= first {
            rung.level = (rung.level + lack) - excess;
        } else if excess > 0 {
            rung.level = rung.level.min(highest - 1);
        }
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
