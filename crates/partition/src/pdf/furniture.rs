//! Running headers, footers and page numbers: what stands in the same place on several pages.

use std::collections::HashMap;

use super::edges::edge_lines;
use super::engine::TagKind;
use super::line::{Line, lines};
use super::segment::Segment;

/// The share of a page's height, at the top and at the bottom, where furniture is looked for.
const ZONE: f32 = 0.13;
/// Lines from the edge of the page that are looked at.
const MAX_LINES: usize = 5;
/// How far the same line may stand from where it stands on other pages, in points.
const DRIFT: f32 = 8.0;

/// Ratios to the size of the text: a running head above the first stands on most pages; above the second
/// it is the title of its page.
const LARGE: f32 = 1.12;
const TITLE: f32 = 1.3;

/// Lines at one edge of a page that are furniture because the structure leaves them out.
const MAX_ARTIFACTS: usize = 3;
/// Documents of at most this many pages may show running heads once only.
const UNREPEATED: usize = 2;

/// What kind of furniture a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Furniture {
    Header,
    Footer,
    PageNumber,
}

/// A line of furniture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FurnitureLine {
    pub(super) kind: Furniture,
    pub(super) line: Line,
}

/// One page to look at.
pub(super) struct Sheet<'s> {
    /// Segments of the page's main direction; furniture is taken out of them.
    pub(super) segments: &'s mut Vec<Segment>,
    /// Height of the page in the frame of the segments.
    pub(super) height: f32,
}

struct Candidate {
    page: usize,
    bottom: bool,
    /// Position from the edge of the page.
    rank: usize,
    line: Line,
    key: String,
}

/// Takes the furniture out of the pages; the answer has one list per page.
pub(super) fn take_furniture(sheets: &mut [Sheet<'_>], body_size: f32) -> Vec<Vec<FurnitureLine>> {
    let candidates = candidates(sheets);
    let repeated = repeated(&candidates, sheets.len(), body_size);
    // Whole blocks of text outside the structure are text all the same.
    let mut artifacts: HashMap<(usize, bool), usize> = HashMap::new();
    for candidate in candidates.iter().filter(|c| c.line.tag.kind == TagKind::Artifact) {
        *artifacts.entry((candidate.page, candidate.bottom)).or_default() += 1;
    }
    let mut found: Vec<Vec<FurnitureLine>> = sheets.iter().map(|_| Vec::new()).collect();
    for (candidate, repeated) in candidates.into_iter().zip(repeated) {
        let text = &candidate.line.text;
        // Alone, a number is the page's when it is not set as a heading is.
        let number = is_page_number(text) && candidate.line.size < 1.3 * body_size && !is_ordinal(text);
        let artifact = candidate.line.tag.kind == TagKind::Artifact
            && artifacts
                .get(&(candidate.page, candidate.bottom))
                .is_some_and(|&lines| lines <= MAX_ARTIFACTS);
        if !(repeated || artifact || (number && candidate.rank == 0)) {
            continue;
        }
        if let (Some(sheet), Some(list)) = (sheets.get_mut(candidate.page), found.get_mut(candidate.page)) {
            take(sheet, candidate.line, candidate.bottom, list);
        }
    }
    if sheets.len() <= UNREPEATED {
        for (sheet, list) in sheets.iter_mut().zip(&mut found) {
            let numbers: Vec<f32> = list
                .iter()
                .filter(|item| item.kind == Furniture::PageNumber)
                .map(|item| item.line.base)
                .collect();
            for bottom in [false, true] {
                for line in edge_lines(sheet.segments, sheet.height, bottom, body_size, &numbers) {
                    take(sheet, line, bottom, list);
                }
            }
        }
    }
    found
}

/// Moves a line from the page to its furniture.
fn take(sheet: &mut Sheet<'_>, line: Line, bottom: bool, list: &mut Vec<FurnitureLine>) {
    let kind = match (is_page_number(&line.text), bottom) {
        (true, _) => Furniture::PageNumber,
        (false, false) => Furniture::Header,
        (false, true) => Furniture::Footer,
    };
    let bbox = line.bbox;
    sheet.segments.retain(|s| {
        s.table.is_some() || !(s.base >= bbox[1] && s.base <= bbox[3] && s.x0 >= bbox[0] - 0.1 && s.x1 <= bbox[2] + 0.1)
    });
    list.push(FurnitureLine { kind, line });
}

/// `III.`: a number that heads a part of the text.
fn is_ordinal(text: &str) -> bool {
    text.ends_with('.') && text.starts_with(|ch: char| ch.is_ascii_alphabetic())
}

fn candidates(sheets: &[Sheet<'_>]) -> Vec<Candidate> {
    let mut out = Vec::new();
    for (page, sheet) in sheets.iter().enumerate() {
        for bottom in [false, true] {
            let zone: Vec<Segment> = sheet
                .segments
                .iter()
                .filter(|s| s.table.is_none())
                .filter(|s| {
                    if bottom {
                        s.base > sheet.height * (1.0 - ZONE)
                    } else {
                        s.base < sheet.height * ZONE
                    }
                })
                .cloned()
                .collect();
            let mut lines = lines(zone);
            if bottom {
                lines.reverse();
            }
            for (rank, line) in lines.into_iter().take(MAX_LINES).enumerate() {
                let key = key(&line.text);
                out.push(Candidate {
                    page,
                    bottom,
                    rank,
                    line,
                    key,
                });
            }
        }
    }
    out
}

/// The text without what changes from page to page.
fn key(text: &str) -> String {
    let mut key: String = text
        .chars()
        .filter(|ch| !ch.is_numeric() && !ch.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect();
    if key.chars().all(|ch| matches!(ch, 'i' | 'v' | 'x' | 'l' | 'c')) {
        key.clear();
    }
    key
}

/// For each candidate whether it stands in the same place on enough pages.
fn repeated(candidates: &[Candidate], pages: usize, body_size: f32) -> Vec<bool> {
    let mut groups: HashMap<(bool, &str), Vec<usize>> = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        groups
            .entry((candidate.bottom, &candidate.key))
            .or_default()
            .push(index);
    }
    let mut repeated = vec![false; candidates.len()];
    let least = if pages <= 4 { 2 } else { 3 };
    for members in groups.values_mut() {
        let base = |&i: &usize| candidates.get(i).map_or(0.0, |c: &Candidate| c.line.base);
        members.sort_by(|a, b| base(a).total_cmp(&base(b)));
        // Members within the drift of their neighbour form a cluster.
        let mut start = 0;
        while start < members.len() {
            let mut end = start + 1;
            while end < members.len()
                && members.get(end).map_or(0.0, base) - members.get(end - 1).map_or(0.0, base) <= DRIFT
            {
                end += 1;
            }
            let cluster = members.get(start..end).unwrap_or_default();
            let mut on: Vec<usize> = cluster
                .iter()
                .filter_map(|&i| candidates.get(i))
                .map(|c| c.page)
                .collect();
            on.sort_unstable();
            on.dedup();
            // Slides repeat their large titles now and then; a running head is small or everywhere.
            let sizes = cluster.iter().filter_map(|&i| candidates.get(i)).map(|c| c.line.size);
            let largest = sizes.fold(0.0, f32::max) / body_size;
            let enough = match largest {
                ..=LARGE => true,
                ..=TITLE => on.len() * 2 > pages,
                _ => false,
            };
            if on.len() >= least && enough {
                for &i in cluster {
                    if let Some(flag) = repeated.get_mut(i) {
                        *flag = true;
                    }
                }
            }
            start = end;
        }
    }
    repeated
}

/// `12`, `- 12 -`, `xii`, `Page 3`, `Page 3 of 10`, `3 / 10`.
pub(super) fn is_page_number(text: &str) -> bool {
    let text =
        text.trim_matches(|ch: char| ch.is_whitespace() || matches!(ch, '-' | '–' | '—' | '|' | '.' | '[' | ']'));
    if text.is_empty() || text.len() > 24 {
        return false;
    }
    let roman = |word: &str| {
        word.len() <= 6
            && word
                .bytes()
                .all(|b| matches!(b.to_ascii_lowercase(), b'i' | b'v' | b'x' | b'l'))
    };
    let number = |word: &str| !word.is_empty() && word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit());
    let mut words: Vec<&str> = text
        .split(|ch: char| ch.is_whitespace() || ch == '/')
        .filter(|w| !w.is_empty())
        .collect();
    let named = words.first().is_some_and(|word| {
        matches!(
            word.trim_end_matches('.').to_lowercase().as_str(),
            "page" | "p" | "pg" | "seite" | "página" | "pagina" | "pág" | "strana" | "side" | "sida" | "стр"
        )
    });
    if named {
        words.remove(0);
    }
    match words.as_slice() {
        [one] => number(one) || roman(one),
        [one, two] => number(one) && number(two) && (named || text.contains('/')),
        [one, word, two] => {
            number(one)
                && number(two)
                && matches!(
                    word.to_lowercase().as_str(),
                    "of" | "von" | "de" | "sur" | "di" | "из" | "av" | "van"
                )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_numbers() {
        for text in [
            "12",
            "- 12 -",
            "xiv",
            "Page 3",
            "Page 3 of 10",
            "3 / 10",
            "Seite 4 von 9",
        ] {
            assert!(is_page_number(text), "{text}");
        }
        for text in ["", "12345", "3 apples", "Chapter 3", "A", "2019-2020 report"] {
            assert!(!is_page_number(text), "{text}");
        }
    }
}
