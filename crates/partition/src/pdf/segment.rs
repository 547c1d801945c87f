//! Characters to segments: stretches of text on one baseline without a wide gap.
//!
//! Segments live in the frame of their text direction, in which text runs from left to right.

use super::engine::{Direction, Font, Glyph, PageContent, Rule, Tag, TagKind};
use super::frame::Frame;
use super::script::{is_blank, is_mark, is_right_to_left};
use super::spacing::{Break, text_of};

/// A gap wider than this many font sizes ends a segment.
const SEGMENT_GAP: f32 = 0.65;
/// How far text may step back within a segment, in font sizes (kerning, wrong widths).
const BACKSTEP: f32 = 0.4;
/// Baselines this close, in font sizes, are one line.
const BASELINE: f32 = 0.2;
/// The same for text of unlike sizes: superscripts and subscripts.
const BASELINE_SCRIPT: f32 = 0.55;
/// Largest ratio of font sizes within a segment.
const SIZE_RATIO: f32 = 2.2;
/// A letter this many times as large as the line beside it is its initial.
const INITIAL: f32 = 1.7;
/// Initials looked for on a page.
const MAX_INITIALS: usize = 16;
/// Pieces of a vertical rule closer than this, in points, are one.
const WALL_GAP: f32 = 4.0;
/// Rules looked at for one gap.
const MAX_WALLS: usize = 64;
/// Places looked at for a copy of a text.
const MAX_COPIES: usize = 64;
/// Characters of a segment for which there is room from the start.
const USUAL_LENGTH: usize = 16;
/// Marks in a [`Raw`] that a space glyph stood before the character.
const SPACE: u32 = 1 << 31;

/// A stretch of text on one baseline.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    /// The text in reading order.
    pub(super) text: String,
    /// Left.
    pub(super) x0: f32,
    /// Top: somewhat below the ascender, so that lines set without leading do not overlap.
    pub(super) y0: f32,
    /// Right.
    pub(super) x1: f32,
    /// Bottom.
    pub(super) y1: f32,
    /// Baseline.
    pub(super) base: f32,
    /// Font size of the largest part.
    pub(super) size: f32,
    /// Font of most characters.
    pub(super) font: u16,
    /// Most characters are bold.
    pub(super) bold: bool,
    /// Most characters are italic.
    pub(super) italic: bool,
    /// Most characters are monospaced.
    pub(super) monospace: bool,
    /// Stands for a table: its index among the tables of the page.
    pub(super) table: Option<usize>,
    /// What the file's structure says it is.
    pub(super) tag: Tag,
    /// Spaces wide enough to separate the cells of a tight table.
    pub(super) breaks: Vec<Break>,
}

/// Characters being collected into a segment.
struct Raw {
    /// Indexes into the glyphs, from left to right, with [`SPACE`].
    glyphs: Vec<u32>,
    x0: f32,
    x1: f32,
    base: f32,
    size: f32,
}

/// The text of a page by direction, the direction of most of the text first; at least one.
pub(super) fn parts(content: &PageContent, fonts: &[Font]) -> Vec<(Frame, Vec<Segment>)> {
    let part = |direction| {
        let frame = Frame::new(direction, content.width, content.height);
        (frame, segments(content, fonts, direction))
    };
    directions(content).into_iter().map(part).collect()
}

/// The directions text runs in, that of most of the text first; at least one.
fn directions(content: &PageContent) -> Vec<Direction> {
    let all = [
        Direction::East,
        Direction::North,
        Direction::South,
        Direction::West,
        Direction::Oblique,
    ];
    let mut counts = all.map(|direction| (0usize, direction));
    // Neighbours mostly run the same way.
    for run in content.glyphs.chunk_by(|a, b| a.direction == b.direction) {
        let direction = run.first().map(|glyph| glyph.direction);
        for (count, _) in counts.iter_mut().filter(|(_, known)| Some(*known) == direction) {
            *count += run.len();
        }
    }
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let used = counts.iter().filter(|(count, _)| *count > 0).count().max(1);
    counts.into_iter().take(used).map(|(_, direction)| direction).collect()
}

/// Groups the characters of one direction into segments, sorted by baseline, then from left to right.
pub(super) fn segments(content: &PageContent, fonts: &[Font], direction: Direction) -> Vec<Segment> {
    let frame = Frame::new(direction, content.width, content.height);
    let walls = Walls::new(content, &frame);
    let raws = collect(&content.glyphs, &frame, &walls);
    let mut segments = merge_rows(raws, &content.glyphs, &walls)
        .into_iter()
        .filter_map(|raw| finish(&raw, content, &frame, fonts))
        .collect();
    attach_initials(&mut segments);
    segments
}

/// Joins a large initial letter with the line it begins: the topmost of the lines right of it.
fn attach_initials(segments: &mut Vec<Segment>) {
    let is_initial = |s: &Segment| s.text.chars().count() == 1 && s.text.chars().all(char::is_alphabetic);
    let initials: Vec<usize> = segments
        .iter()
        .enumerate()
        .filter(|(_, s)| is_initial(s))
        .map(|(index, _)| index)
        .take(MAX_INITIALS)
        .collect();
    let mut used = Vec::new();
    for index in initials {
        let Some(initial) = segments.get(index).cloned() else {
            continue;
        };
        // A letter that has gone to its line already is no line.
        let line = segments.iter_mut().enumerate().find(|(at, s)| {
            let gap = s.x0 - initial.x1;
            initial.size > INITIAL * s.size
                && (-0.3 * s.size..1.5 * s.size).contains(&gap)
                && s.base < initial.base
                && s.y0 > initial.y0 - s.size
                && s.text.starts_with(char::is_alphabetic)
                && !used.contains(at)
        });
        if let Some((_, line)) = line {
            line.text.insert_str(0, &initial.text);
            for space in &mut line.breaks {
                space.at += initial.text.len();
            }
            used.push(index);
        }
    }
    let mut index = 0;
    segments.retain(|_| {
        index += 1;
        !used.contains(&(index - 1))
    });
}

/// What text does not run across: vertical rules, and the ends of tagged cells.
struct Walls {
    rules: Vec<Rule>,
    /// By tag the cell it stands for, 0 for none; empty where there are no cells.
    cells: Vec<u32>,
}

impl Walls {
    fn new(content: &PageContent, frame: &Frame) -> Self {
        let rules = &content.rules;
        let framed = |rule: &Rule| {
            let [x0, y0, x1, y1] = frame.map_box([rule.x0, rule.y0, rule.x1, rule.y1]);
            Rule { x0, y0, x1, y1 }
        };
        let mut pieces: Vec<Rule> = rules.iter().map(framed).filter(|rule| !rule.is_horizontal()).collect();
        pieces.sort_by(|a, b| a.x0.total_cmp(&b.x0).then(a.y0.total_cmp(&b.y0)));
        let mut walls: Vec<Rule> = Vec::new();
        for piece in pieces {
            match walls.last_mut() {
                Some(wall) if piece.x0 - wall.x0 < 0.5 && piece.y0 <= wall.y1 + WALL_GAP => {
                    wall.y1 = wall.y1.max(piece.y1);
                }
                _ => walls.push(piece),
            }
        }
        let cell = |tag: &Tag| match tag.kind {
            TagKind::Cell => tag.element,
            _ => 0,
        };
        let cells = if content.cells.is_empty() {
            Vec::new()
        } else {
            content.tags.iter().map(cell).collect()
        };
        Self { rules: walls, cells }
    }

    /// Whether two characters stand in different cells.
    fn part(&self, a: &Glyph, b: &Glyph) -> bool {
        a.tag != b.tag && self.cells.get(a.tag as usize) != self.cells.get(b.tag as usize)
    }

    fn between(&self, left: f32, right: f32, base: f32, size: f32) -> bool {
        let start = self.rules.partition_point(|wall| wall.x0 < left);
        self.rules
            .iter()
            .skip(start)
            .take(MAX_WALLS)
            .take_while(|wall| wall.x0 <= right)
            .any(|wall| wall.y0 < base - 0.3 * size && wall.y1 > base - 0.3 * size)
    }
}

/// Whether text of two sizes and baselines can stand on one line.
pub(super) fn same_line(base_a: f32, size_a: f32, base_b: f32, size_b: f32) -> bool {
    let (small, large) = (size_a.min(size_b), size_a.max(size_b));
    if large > small * SIZE_RATIO {
        return false;
    }
    let tolerance = if large > small * 1.12 {
        BASELINE_SCRIPT
    } else {
        BASELINE
    };
    (base_a - base_b).abs() <= tolerance * large
}

fn collect(glyphs: &[Glyph], frame: &Frame, walls: &Walls) -> Vec<Raw> {
    let mut raws: Vec<Raw> = Vec::new();
    let mut space = false;
    // A mark of right-to-left text drawn from left to right comes before its letter.
    let mut mark: Option<u32> = None;
    let mut rightward = false;
    for (index, glyph) in glyphs.iter().enumerate() {
        if glyph.direction != frame.direction {
            continue;
        }
        if is_blank(glyph.ch) {
            space = true;
            continue;
        }
        let (x, base) = frame.map(glyph.x, glyph.y);
        let index = index as u32;
        let rtl = is_right_to_left(glyph.ch);
        if let Some(raw) = raws.last_mut() {
            if is_mark(glyph.ch) && rightward && mark.is_none() && x >= raw.x0 {
                mark = Some(index);
                continue;
            }
            match joins(raw, glyph, x, base, glyphs, frame, walls) {
                Join::Drop => continue,
                Join::Append => {
                    let gap = x - raw.x1;
                    let flag = if space && gap > 0.0 { SPACE } else { 0 };
                    raw.glyphs.push(index | flag);
                    raw.x1 = raw.x1.max(x + glyph.advance);
                    if glyph.size > raw.size * 1.05 {
                        (raw.size, raw.base) = (glyph.size, base);
                    }
                    space = false;
                    rightward = false;
                    continue;
                }
                Join::New => {}
            }
            let beside =
                (raw.base - base).abs() < 0.5 * raw.size && (x - raw.x1).max(raw.x0 - x - glyph.advance) < raw.size;
            // Drawn from right to left, the space stands before what was drawn first.
            if rtl && space && beside && x < raw.x0 {
                if let Some(first) = raw.glyphs.first_mut() {
                    *first |= SPACE;
                }
                space = false;
            }
            space &= rtl && beside;
            rightward = rtl && beside && x > raw.x0;
        } else {
            space = false;
        }
        let mut indexes = Vec::with_capacity(USUAL_LENGTH);
        indexes.push(index | if space { SPACE } else { 0 });
        let mut raw = Raw {
            glyphs: indexes,
            x0: x,
            x1: x + glyph.advance,
            base,
            size: glyph.size,
        };
        raw.glyphs.extend(mark.take());
        space = false;
        raws.push(raw);
    }
    // A mark that no letter followed.
    if let (Some(mark), Some(raw)) = (mark, raws.last_mut()) {
        raw.glyphs.push(mark);
    }
    raws
}

enum Join {
    Append,
    New,
    Drop,
}

fn joins(raw: &Raw, glyph: &Glyph, x: f32, base: f32, glyphs: &[Glyph], frame: &Frame, walls: &Walls) -> Join {
    if let Some(last) = raw.glyphs.last().and_then(|&i| glyphs.get((i & !SPACE) as usize)) {
        let (last_x, last_base) = frame.map(last.x, last.y);
        // Bold faked by drawing a character twice, slightly shifted.
        let shift = (0.4 * glyph.advance).min(2.0);
        if last.ch == glyph.ch && (last_x - x).abs() < shift && (last_base - base).abs() < shift {
            return Join::Drop;
        }
        if walls.part(last, glyph) {
            return Join::New;
        }
        if is_mark(glyph.ch) {
            let middle = x + glyph.advance / 2.0;
            let slack = 0.3 * raw.size;
            return if middle > raw.x0 - slack && middle < raw.x1 + slack && (base - raw.base).abs() < raw.size {
                Join::Append
            } else {
                Join::New
            };
        }
        // Right-to-left text comes in any order; its characters are put together by position.
        if is_right_to_left(glyph.ch) || is_right_to_left(last.ch) {
            return Join::New;
        }
    }
    if !same_line(raw.base, raw.size, base, glyph.size) {
        return Join::New;
    }
    let size = raw.size.max(glyph.size);
    let gap = x - raw.x1;
    if gap > SEGMENT_GAP * size || gap < -BACKSTEP * size {
        return Join::New;
    }
    if gap > 0.1 * size && walls.between(raw.x1, x, base, size) {
        return Join::New;
    }
    Join::Append
}

/// Joins what stands side by side on one line but was not drawn in one go, and drops what is drawn
/// twice in one place.
fn merge_rows(mut raws: Vec<Raw>, glyphs: &[Glyph], walls: &Walls) -> Vec<Raw> {
    raws.sort_by(|a, b| a.base.total_cmp(&b.base));
    let mut merged: Vec<Raw> = Vec::with_capacity(raws.len());
    let mut row: Vec<Raw> = Vec::new();
    let (mut base, mut size) = (0.0f32, 0.0f32);
    for raw in raws {
        if !row.is_empty() && !same_line(base, size, raw.base, raw.size) {
            merge_row(&mut row, glyphs, walls, &mut merged);
            size = 0.0;
        }
        if raw.size > size {
            (base, size) = (raw.base, raw.size);
        }
        row.push(raw);
    }
    merge_row(&mut row, glyphs, walls, &mut merged);
    merged
}

fn merge_row(row: &mut Vec<Raw>, glyphs: &[Glyph], walls: &Walls, out: &mut Vec<Raw>) {
    row.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    let first = out.len();
    for raw in row.drain(..) {
        let Some(last) = out.get_mut(first..).and_then(<[Raw]>::last_mut) else {
            out.push(raw);
            continue;
        };
        let overlap = last.x1.min(raw.x1) - raw.x0;
        if overlap > 0.6 * (raw.x1 - raw.x0) && overlap > 0.0 && contains_text(last, &raw, glyphs) {
            continue;
        }
        let size = last.size.max(raw.size);
        let gap = raw.x0 - last.x1;
        let ends = [last.glyphs.last(), raw.glyphs.first()];
        let parted = match ends.map(|end| end.and_then(|&i| glyphs.get((i & !SPACE) as usize))) {
            [Some(a), Some(b)] => walls.part(a, b),
            _ => false,
        };
        let joins = !parted
            && same_line(last.base, last.size, raw.base, raw.size)
            && gap <= SEGMENT_GAP * size
            && gap >= -BACKSTEP * size
            && !(gap > 0.1 * size && walls.between(last.x1, raw.x0, last.base, size));
        if joins {
            last.glyphs.extend(raw.glyphs);
            last.x1 = last.x1.max(raw.x1);
            if raw.size > last.size {
                (last.size, last.base) = (raw.size, raw.base);
            }
        } else {
            out.push(raw);
        }
    }
}

fn contains_text(outer: &Raw, inner: &Raw, glyphs: &[Glyph]) -> bool {
    let ch = |&i: &u32| glyphs.get((i & !SPACE) as usize).map(|glyph| glyph.ch);
    let position = |i: &u32| glyphs.get((i & !SPACE) as usize).map_or(0.0, |glyph| glyph.x);
    let Some(first) = inner.glyphs.first() else { return true };
    // Where in `outer` the copy would start, by position.
    let from = position(first) - 2.0;
    let start = outer.glyphs.partition_point(|i| position(i) < from);
    (start..outer.glyphs.len())
        .take(MAX_COPIES)
        .take_while(|&index| outer.glyphs.get(index).is_some_and(|i| position(i) <= from + 4.0))
        .any(|start| {
            outer
                .glyphs
                .get(start..start + inner.glyphs.len())
                .is_some_and(|part| part.iter().map(ch).eq(inner.glyphs.iter().map(ch)))
        })
}

fn finish(raw: &Raw, content: &PageContent, frame: &Frame, fonts: &[Font]) -> Option<Segment> {
    let glyphs = &content.glyphs;
    let parts: Vec<(&Glyph, bool)> = raw
        .glyphs
        .iter()
        .filter_map(|&i| Some((glyphs.get((i & !SPACE) as usize)?, i & SPACE != 0)))
        .collect();
    let (text, breaks) = text_of(&parts, frame, fonts);
    if text.is_empty() {
        return None;
    }
    let (mut bold, mut italic, mut monospace) = (0, 0, 0);
    // Neighbours mostly share a font.
    for run in parts.chunk_by(|(a, _), (b, _)| a.font == b.font) {
        let id = run.first().map_or(0, |(glyph, _)| usize::from(glyph.font));
        if let Some(font) = fonts.get(id) {
            bold += if font.bold { run.len() } else { 0 };
            italic += if font.italic { run.len() } else { 0 };
            monospace += if font.monospace { run.len() } else { 0 };
        }
    }
    let is_most = |count: usize| count * 2 > parts.len();
    Some(Segment {
        x0: raw.x0,
        x1: raw.x1,
        y0: raw.base - 0.75 * raw.size,
        y1: raw.base + 0.2 * raw.size,
        base: raw.base,
        size: raw.size,
        font: parts.get(parts.len() / 2).map_or(0, |(glyph, _)| glyph.font),
        bold: is_most(bold),
        italic: is_most(italic),
        monospace: is_most(monospace),
        table: None,
        tag: parts
            .get(parts.len() / 2)
            .and_then(|(glyph, _)| content.tags.get(glyph.tag as usize))
            .copied()
            .unwrap_or_default(),
        breaks,
        text,
    })
}
