//! Segments to lines.

use super::engine::Tag;
use super::segment::{Segment, same_line};
use super::spacing::Break;
use super::text::{bullet_length, is_marker};

/// A gap within a line that is wider than this many font sizes separates cells.
const CELL_GAP: f32 = 1.5;
/// Texts of unlike size further apart than this many font sizes are not one line.
const FAR_GAP: f32 = 3.0;
/// A larger ratio of sizes is a change of style.
pub(super) const SIZE_CHANGE: f32 = 1.14;

/// Lines in parts from which on a column may be loose prose, and how many parts they have on average.
const MIN_LOOSE: usize = 6;
const MEAN_PARTS: usize = 4;
/// Lines in a row that share a gap where it is one of a table.
const LOOSE_WINDOW: usize = 5;
/// Such windows there must be.
const MIN_WINDOWS: usize = 3;
/// Narrowest gap between columns, in font sizes.
const COLUMN_GAP: f32 = 0.4;

/// One line of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) bbox: [f32; 4],
    pub(super) base: f32,
    pub(super) size: f32,
    pub(super) font: u16,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) monospace: bool,
    /// The parts that gaps separate.
    pub(super) parts: Vec<Part>,
    /// Number of parts that wide gaps separate.
    pub(super) cells: usize,
    /// Begins an entry of a counted list, see [`super::counted`].
    pub(super) counted: bool,
    /// What the file's structure says it is.
    pub(super) tag: Tag,
    /// Stands for a table of the page.
    pub(super) table: Option<usize>,
}

impl Line {
    pub(super) fn x0(&self) -> f32 {
        self.bbox[0]
    }

    pub(super) fn x1(&self) -> f32 {
        self.bbox[2]
    }

    /// Dots that lead the eye to a page number.
    pub(super) fn has_leaders(&self) -> bool {
        self.text.contains("....") || self.text.contains(". . . .") || self.text.contains("……")
    }

    pub(super) fn is_item(&self) -> bool {
        bullet_length(&self.text).is_some()
    }
}

/// A stretch of a line without a gap.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) bold: bool,
    /// Spaces within it that may separate cells of a tight table.
    pub(super) breaks: Vec<Break>,
}

/// Puts segments on common baselines together.
pub(super) fn lines(mut region: Vec<Segment>) -> Vec<Line> {
    region.sort_by(|a, b| a.base.total_cmp(&b.base));
    let mut lines = Vec::new();
    let mut row: Vec<Segment> = Vec::new();
    let (mut base, mut size) = (0.0, 0.0);
    for segment in region {
        let apart = segment.table.is_some() || row.last().is_some_and(|last| last.table.is_some());
        if !row.is_empty() && (apart || !same_line(base, size, segment.base, segment.size)) {
            lines.extend(split_row(std::mem::take(&mut row)));
            size = 0.0;
        }
        if segment.size > size {
            (base, size) = (segment.base, segment.size);
        }
        row.push(segment);
    }
    lines.extend(split_row(row));
    lines
}

/// Makes lines of the segments of one row: several where texts of unlike size stand far apart.
fn split_row(mut row: Vec<Segment>) -> Vec<Line> {
    row.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    let mut out = Vec::new();
    let mut group: Vec<Segment> = Vec::new();
    for segment in row {
        let apart = group.last().is_some_and(|last| {
            let size = last.size.max(segment.size);
            segment.x0 - last.x1 > FAR_GAP * size && size > SIZE_CHANGE * last.size.min(segment.size)
        });
        if apart {
            out.extend(line(std::mem::take(&mut group)));
        }
        group.push(segment);
    }
    out.extend(line(group));
    out
}

fn line(row: Vec<Segment>) -> Option<Line> {
    let main = row.iter().max_by_key(|segment| segment.text.len())?;
    let mut line = Line {
        text: String::new(),
        bbox: [main.x0, main.y0, main.x1, main.y1],
        base: main.base,
        size: main.size,
        font: main.font,
        bold: main.bold,
        italic: main.italic,
        monospace: main.monospace,
        parts: Vec::new(),
        cells: 0,
        counted: false,
        tag: main.tag,
        table: main.table,
    };
    let total: usize = row.iter().map(|segment| segment.text.len()).sum();
    let bold: usize = row.iter().filter(|s| s.bold).map(|s| s.text.len()).sum();
    line.bold = bold * 10 > total * 8;
    let mut end = f32::NEG_INFINITY;
    for segment in &row {
        line.cells += usize::from(segment.x0 - end > CELL_GAP * line.size);
        line.parts.push(Part {
            text: segment.text.clone(),
            x0: segment.x0,
            x1: segment.x1,
            bold: segment.bold,
            breaks: segment.breaks.clone(),
        });
        if !line.text.is_empty() {
            line.text.push(' ');
        }
        line.text.push_str(&segment.text);
        end = end.max(segment.x1);
        line.bbox = union(line.bbox, [segment.x0, segment.y0, segment.x1, segment.y1]);
    }
    // A bullet or number set apart from its text makes no table row.
    if line.cells == 2 && row.first().is_some_and(|first| is_marker(&first.text)) {
        line.cells = 1;
    }
    Some(line)
}

/// Whether a gap runs down through all lines, as between columns of cells. Justified or recognised prose
/// has wide gaps too, but each elsewhere. Narrower gaps than `least` do not count.
pub(super) fn have_common_gap(lines: &[&Line], least: f32) -> bool {
    let gaps = |line: &Line| -> Vec<(f32, f32)> {
        let pairs = line.parts.windows(2).filter_map(|pair| match pair {
            [a, b] if b.x0 - a.x1 > least => Some((a.x1, b.x0)),
            _ => None,
        });
        pairs.collect()
    };
    let mut open: Option<Vec<(f32, f32)>> = None;
    for line in lines {
        let here = gaps(line);
        let next = match open {
            None => here,
            // Both are in order, so that one walk finds all overlaps.
            Some(open) => {
                let mut common = Vec::new();
                let mut from = 0;
                for (left, right) in open {
                    while here.get(from).is_some_and(|gap| gap.1 <= left) {
                        from += 1;
                    }
                    if let Some(gap) = here.get(from).filter(|gap| right.min(gap.1) - left.max(gap.0) > least) {
                        common.push((left.max(gap.0), right.min(gap.1)));
                    }
                }
                common
            }
        };
        if next.is_empty() {
            return false;
        }
        open = Some(next);
    }
    true
}

/// Takes the gaps out of lines of prose that come in many parts each. Text behind a scan is often drawn narrower
/// than what is seen, so that every word stands alone; but unlike those of a table, the gaps between the words
/// are elsewhere on every line.
pub(super) fn close_gaps(lines: &mut [Line]) {
    let split: Vec<&Line> = lines.iter().filter(|line| line.parts.len() > 1).collect();
    let parts: usize = split.iter().map(|line| line.parts.len()).sum();
    if split.len() < MIN_LOOSE || split.len() * 5 < lines.len() * 3 || parts < MEAN_PARTS * split.len() {
        return;
    }
    let windows = || {
        let whole = |window: &&[Line]| window.iter().all(|line| line.parts.len() > 1 && line.table.is_none());
        lines.windows(LOOSE_WINDOW).filter(whole)
    };
    let common = |window: &[Line]| {
        let size = window.iter().map(|line| line.size).fold(0.0, f32::max);
        have_common_gap(&window.iter().collect::<Vec<_>>(), COLUMN_GAP * size)
    };
    let (seen, common) = windows().fold((0, 0), |(seen, found), window| {
        (seen + 1, found + usize::from(common(window)))
    });
    let words = || split.iter().flat_map(|line| &line.parts);
    let lettered = words()
        .filter(|part| part.text.chars().any(char::is_alphabetic))
        .count();
    if seen < MIN_WINDOWS || common * 3 > seen || lettered * 5 < parts * 4 {
        return;
    }
    for line in lines.iter_mut().filter(|line| line.parts.len() > 1) {
        let bold = line.bold;
        line.cells = 1;
        line.parts = vec![Part {
            text: line.text.clone(),
            x0: line.bbox[0],
            x1: line.bbox[2],
            bold,
            breaks: Vec::new(),
        }];
    }
}

pub(super) fn union(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

#[cfg(test)]
mod tests {
    use super::super::engine::Direction;
    use super::super::segment::segments;
    use super::super::testing::typeset;
    use super::*;

    /// The numbers of parts of lines of words with a wide gap after each; `pitch` is the space that a word and its
    /// gap take for each of its characters, or one for all words.
    fn parts(texts: &[&str], pitch: Option<f32>) -> Vec<usize> {
        let mut rows = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let mut x = 50.0;
            for word in text.split(' ') {
                rows.push((x, 100.0 + 14.0 * index as f32, 10.0, word));
                x += pitch.unwrap_or(5.0 * word.len() as f32 + 12.0);
            }
        }
        let mut lines = lines(segments(&typeset(&rows), &[], Direction::East));
        close_gaps(&mut lines);
        lines.iter().map(|line| line.parts.len()).collect()
    }

    const PROSE: [&str; 8] = [
        "gardening societies preserve and transplant the hereditary walnut",
        "trees behind the orchard wall whereas all the others are pruned",
        "watered plentifully on wednesdays unless the weather of these",
        "months is exceptionally humid or close to the freezing threshold",
        "or dry and every medicinal herb mentioned in this almanac was",
        "collected and catalogued carefully but is not botanically named",
        "a watercolour is added followed by some appraisal of leaves and",
        "the remaining specimens are largely unidentified in catalogues",
    ];

    #[test]
    fn words_of_prose_that_stand_apart_are_one_line() {
        assert_eq!(parts(&PROSE, None), [1; 8]);
        // Too few to tell.
        assert!(parts(&PROSE[..4], None).iter().all(|&count| count > 4));
    }

    #[test]
    fn cells_in_columns_stay_apart() {
        let rows = ["north south east west sum"; 8];
        assert_eq!(parts(&rows, Some(60.0)), [5; 8]);
    }
}
