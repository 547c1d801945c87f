//! Lines to blocks: paragraphs, headings, list items, tables.

use super::aligned::{aligned_table, run_end};
use super::counted::count_entries;
use super::engine::TagKind;
use super::line::{Line, SIZE_CHANGE, close_gaps, have_common_gap, lines, union};
use super::segment::Segment;
use super::table::Table;
use super::text::{Marker, append_line, bullet_length, is_caps, is_rule, marker, without_leaders};

/// A step to the next line this much above the usual one starts a new paragraph.
const LEADING_SLACK: f32 = 1.22;
/// The usual step from line to line, in font sizes, where a column does not tell.
const USUAL_LEADING: f32 = 1.35;
/// Indent of a paragraph's first line, in font sizes.
const INDENT: f32 = 0.7;

/// A run of lines that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// The lines joined.
    pub(super) text: String,
    /// `[x0, y0, x1, y1]` in the frame of its segments.
    pub(super) bbox: [f32; 4],
    /// Number of lines.
    pub(super) lines: usize,
    /// Font size of most of the text.
    pub(super) size: f32,
    /// Font of the first line.
    pub(super) font: u16,
    /// All lines are bold.
    pub(super) bold: bool,
    /// All lines are italic.
    pub(super) italic: bool,
    /// All lines are monospaced.
    pub(super) monospace: bool,
    /// Rows of cells.
    pub(super) tabular: bool,
    /// How the text starts when it is a list item.
    pub(super) marker: Option<Marker>,
    /// Dots lead from the text to a page number: an entry of a table of contents.
    pub(super) leaders: bool,
    /// The lines as they stand, indented, when they are monospaced; else empty.
    pub(super) code: String,
    /// What the file's structure says of most of its text.
    pub(super) tag: TagKind,
    /// The table it is.
    pub(super) table: Option<Table>,
    /// Where its parts stand when it was joined over columns or pages: indexes of pages and boxes.
    pub(super) places: Vec<(usize, [f32; 4])>,
}

/// Groups the segments of one region of the page into blocks, from top to bottom. `tables` are those
/// the segments may stand for.
pub(super) fn blocks(region: Vec<Segment>, tables: &[Table]) -> Vec<Block> {
    let mut lines = lines(region);
    lines.retain(|line| line.table.is_some() || !is_rule(&line.text));
    close_gaps(&mut lines);
    count_entries(&mut lines);
    let column = Column::new(&lines);
    let mut blocks: Vec<Block> = Vec::new();
    let mut current: Vec<&Line> = Vec::new();
    let mut index = 0;
    // Lines that may still be tried as tables; bounds the work where every attempt fails.
    let mut budget = 1000 + 16 * lines.len();
    while let Some(line) = lines.get(index) {
        let mut next = index + 1;
        let found = match line.table.and_then(|index| tables.get(index)) {
            Some(table) => Some(table.clone()),
            None => {
                let end = if budget > 0 { run_end(&lines, index) } else { index };
                budget = budget.saturating_sub(end - index);
                let table = lines.get(index..end).and_then(aligned_table);
                if table.is_some() {
                    next = end;
                }
                table
            }
        };
        if let Some(table) = found {
            blocks.extend(finish(&std::mem::take(&mut current)));
            blocks.push(table_block(table, line));
        } else {
            let starts = current
                .last()
                .is_some_and(|last| starts_block(&current, last, line, lines.get(next), &column));
            if starts {
                blocks.extend(finish(&std::mem::take(&mut current)));
            }
            current.push(line);
        }
        index = next;
    }
    blocks.extend(finish(&current));
    blocks
}

fn table_block(table: Table, line: &Line) -> Block {
    Block {
        text: table.text(),
        bbox: table.bbox,
        lines: table.rows,
        size: line.size,
        font: line.font,
        bold: false,
        italic: false,
        monospace: false,
        tabular: true,
        marker: None,
        leaders: false,
        code: String::new(),
        tag: TagKind::None,
        table: Some(table),
        places: Vec::new(),
    }
}

/// What is usual in a column.
struct Column {
    left: f32,
    right: f32,
    /// Usual step between lines, in font sizes.
    leading: f32,
    /// Usual font size.
    size: f32,
    /// Most lines are monospaced.
    monospace: bool,
}

impl Column {
    fn new(lines: &[Line]) -> Self {
        let mut steps: Vec<f32> = lines
            .windows(2)
            .filter_map(|pair| match pair {
                [a, b] if (a.size / b.size - 1.0).abs() < 0.1 => Some((b.base - a.base) / a.size),
                _ => None,
            })
            .filter(|step| (0.8..2.6).contains(step))
            .collect();
        let leading = if steps.len() < 3 {
            steps.iter().copied().fold(USUAL_LEADING, f32::min)
        } else {
            let third = steps.len() / 3;
            *steps.select_nth_unstable_by(third, f32::total_cmp).1
        };
        let mut sizes: Vec<f32> = lines.iter().map(|line| line.size).collect();
        let middle = sizes.len() / 2;
        let size = if sizes.is_empty() {
            0.0
        } else {
            *sizes.select_nth_unstable_by(middle, f32::total_cmp).1
        };
        Self {
            size,
            monospace: lines.iter().filter(|line| line.monospace).count() * 4 > lines.len() * 3,
            left: lines.iter().map(Line::x0).fold(f32::INFINITY, f32::min),
            right: lines.iter().map(Line::x1).fold(f32::NEG_INFINITY, f32::max),
            leading,
        }
    }
}

/// Whether `line`, which follows `last`, begins a new block.
fn starts_block(current: &[&Line], last: &Line, line: &Line, next: Option<&Line>, column: &Column) -> bool {
    if line.table.is_some() || last.table.is_some() {
        return true;
    }
    let size = last.size.max(line.size);
    let step = line.base - last.base;
    // A heading in italics or bold that the structure has in one element with its text.
    let head = current.len() == 1 && (last.italic && !line.italic || last.bold && !line.bold);
    if head
        && !last.is_item()
        && has_room(last, line, column)
        && last.text.ends_with(char::is_alphabetic)
        && line.text.starts_with(char::is_uppercase)
        && line.x0() < last.x0() + 2.0 * size
    {
        return true;
    }
    // One element of the file's structure.
    let tagged = line.tag.element > 0 && line.tag.element == last.tag.element && line.tag.kind != TagKind::None;
    if tagged && step < 2.0 * size && (0.8..1.25).contains(&(line.size / last.size)) {
        return false;
    }
    let in_item = current.first().is_some_and(|first| marker_of(first).is_some());
    if line.size.max(last.size) > SIZE_CHANGE * line.size.min(last.size) {
        return true;
    }
    // A word that is broken goes on, however wide the lines are set.
    if breaks_word(last, line) && step < 2.6 * size {
        return false;
    }
    // A section number, and a date with it, above the words of its heading.
    if line.bold && step < 1.6 * size && (line.x0() - last.x0()).abs() < size && is_section_number(current) {
        return false;
    }
    // Bold text that ends at the end of a full line may just run on as plain text.
    let set_in = line.x0() > last.x0() + INDENT * size;
    if last.bold != line.bold && !in_item && (set_in || has_room(last, line, column)) {
        return true;
    }
    // Entries of a table of contents.
    if last.has_leaders() || (line.has_leaders() && has_room(last, line, column)) {
        return true;
    }
    if is_caps(&last.text) && !is_caps(&line.text) && !in_item && has_room(last, line, column) {
        return true;
    }
    if last.monospace != line.monospace {
        return true;
    }
    // Code keeps its blank lines, indents and markers.
    if line.monospace && !column.monospace && step < 2.6 * size {
        return false;
    }
    if continues_heading(last, line, column) {
        return false;
    }
    if (last.cells > 1) != (line.cells > 1) {
        return true;
    }
    // Headings are often set wider than the text of the column.
    let usual = column.leading.max(USUAL_LEADING.min(column.leading * 1.1)) * LEADING_SLACK;
    let usual = if line.size > 1.2 * column.size {
        usual.max(1.6)
    } else {
        usual
    };
    if step > usual * size {
        return true;
    }
    if marker_of(line).is_some() || is_choice(&line.text) || is_choice(&last.text) {
        return true;
    }
    if line.cells > 1 {
        return false;
    }
    let indent = line.x0() - last.x0();
    let width = (column.right - column.left).max(1.0);
    if in_item {
        return ends_item(current, last, line, column);
    }
    // A first line set in, or set out from the lines after it.
    if indent > INDENT * size && indent < 0.25 * width {
        let returns = next.is_none_or(|next| next.x0() < line.x0() - 0.3 * size);
        let centred = (last.x0() + last.x1() - line.x0() - line.x1()).abs() < size;
        if returns && !centred && current.len() != 1 {
            return true;
        }
        if returns && !centred && last.x1() < column.right - 0.1 * width {
            return true;
        }
    }
    if current.len() > 1 && indent < -INDENT * size {
        return true;
    }
    ended_early(last, line, column)
}

/// Whether a line goes on with a heading whose section number is set apart, under its first word.
fn continues_heading(last: &Line, line: &Line, column: &Column) -> bool {
    let [number, text, ..] = last.parts.as_slice() else {
        return false;
    };
    let is_number = number.text.starts_with(|ch: char| ch.is_ascii_digit())
        && number.text.chars().count() <= 8
        && number.text.chars().all(|ch| ch.is_ascii_digit() || ch == '.');
    is_number
        && (last.bold || last.size > SIZE_CHANGE * column.size)
        && last.cells <= 2
        && line.cells == 1
        && line.font == last.font
        && (0.97..1.03).contains(&(line.size / last.size))
        && (line.x0() - text.x0).abs() < 0.5 * line.size
        && line.base - last.base < 1.6 * line.size
}

/// Lines of a section number with dots, and nothing but figures.
fn is_section_number(lines: &[&Line]) -> bool {
    let figures = |line: &&Line| !line.text.chars().any(|ch| ch.is_alphabetic() || ch == '%' || ch == ',');
    let number = lines.first().is_some_and(|line| {
        let mut parts = line.text.trim_end_matches('.').split('.');
        line.text.contains('.')
            && parts.all(|part| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
    });
    number && lines.len() <= 2 && lines.iter().all(figures)
}

/// Whether all lines are bold; figures above words may have another weight.
fn is_bold(lines: &[&Line]) -> bool {
    let words = |line: &&&Line| line.text.chars().any(char::is_alphabetic);
    match lines.iter().any(|line| words(&line)) {
        true => lines.iter().filter(words).all(|line| line.bold),
        false => lines.iter().all(|line| line.bold),
    }
}

/// How a line starts when it begins a list item.
fn marker_of(line: &Line) -> Option<Marker> {
    marker(&line.text).or(line.counted.then_some(Marker::Number))
}

/// Whether a word of a heading goes on in the next line.
fn breaks_word(last: &Line, line: &Line) -> bool {
    let before = last.text.strip_suffix(['-', '\u{AD}']);
    before.is_some_and(|text| text.ends_with(char::is_lowercase))
        && line.text.starts_with(char::is_lowercase)
        && (0.97..1.03).contains(&(line.size / last.size))
        && last.bold == line.bold
        && last.cells == 1
        && line.cells == 1
        && last.x0().max(line.x0()) < last.x1().min(line.x1())
}

/// A line of boxes to tick.
fn is_choice(text: &str) -> bool {
    text.starts_with(['□', '☐', '☑', '☒', '√', '■']) && text.chars().count() < 60
}

/// Whether a list item ends before `line`, which is no item itself.
fn ends_item(current: &[&Line], last: &Line, line: &Line, column: &Column) -> bool {
    let size = last.size.max(line.size);
    let first = current.first().map_or(0.0, |line| line.x0());
    // Set in as the text behind the marker is, it goes on with the item.
    let hangs = line.x0() > first + 0.4 * size && line.base - last.base < USUAL_LEADING * size;
    if current.len() == 1 && hangs {
        return false;
    }
    // Back to the margin left of the item's text; an item whose first line alone is set in goes on
    // there as long as its lines are full.
    let margin = current.iter().map(|line| line.x0()).fold(first, f32::min);
    let set_out = line.x0() < margin - INDENT * size || (current.len() > 1 && line.x0() - last.x0() < -INDENT * size);
    if set_out {
        return current.len() > 1 || has_room(last, line, column) || ends_sentence(&last.text);
    }
    ended_early(last, line, column)
}

/// Whether a line ends although the next line's first word would have fitted on it, at the end of
/// a sentence.
fn ended_early(last: &Line, line: &Line, column: &Column) -> bool {
    let room = column.right - last.x1();
    let word = first_word(line);
    let ends = ends_sentence(&last.text);
    let width = (column.right - column.left).max(1.0);
    let short = last.x1() - last.x0() < 0.5 * width;
    ends && room > word + 1.5 * line.size && (room > 0.12 * width || short)
}

fn ends_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '\'', '”', '’', ')', ']', '»'])
        .ends_with(['.', '!', '?', ':', '。', '！', '？', ';'])
}

/// Whether the next line's first word would have fitted on a line.
fn has_room(last: &Line, line: &Line, column: &Column) -> bool {
    column.right - last.x1() > first_word(line) + 0.5 * line.size
}

/// Width of a line's first word with the space before it.
fn first_word(line: &Line) -> f32 {
    let first = line.text.split(' ').next().unwrap_or_default().chars().count() as f32;
    let per_char = (line.x1() - line.x0()) / (line.text.chars().count().max(1) as f32);
    (first + 1.5) * per_char
}

fn finish(lines: &[&Line]) -> Option<Block> {
    let first = lines.first()?;
    let mut block = Block {
        text: String::new(),
        bbox: first.bbox,
        lines: lines.len(),
        size: lines
            .iter()
            .max_by_key(|line| line.text.len())
            .map_or(first.size, |line| line.size),
        font: first.font,
        bold: is_bold(lines),
        italic: lines.iter().all(|line| line.italic),
        monospace: lines.iter().all(|line| line.monospace),
        tabular: lines.iter().all(|line| line.cells > 1) && have_common_gap(lines, 0.0),
        marker: if first.table.is_some() { None } else { marker_of(first) },
        leaders: lines.iter().any(|line| line.has_leaders()),
        code: String::new(),
        tag: tag(lines),
        table: None,
        places: Vec::new(),
    };
    if block.monospace {
        block.code = code(lines);
    }
    for line in lines {
        append_line(&mut block.text, &line.text);
        block.bbox = union(block.bbox, line.bbox);
    }
    block.text.retain(|ch| ch != '\u{AD}');
    if block.leaders {
        block.text = without_leaders(&block.text);
    }
    if block.marker == Some(Marker::Bullet) {
        let length = bullet_length(&block.text).unwrap_or(0);
        block.text = block.text.get(length..).unwrap_or_default().trim_start().to_owned();
    }
    (!block.text.is_empty()).then_some(block)
}

/// The tag of more than half of the text.
fn tag(lines: &[&Line]) -> TagKind {
    let mut counts: Vec<(TagKind, usize)> = Vec::new();
    for line in lines {
        // There are few kinds.
        match counts.iter_mut().find(|(kind, _)| *kind == line.tag.kind) {
            Some((_, count)) => *count += line.text.len(),
            None => counts.push((line.tag.kind, line.text.len())),
        }
    }
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let most = counts.into_iter().find(|(_, count)| count * 2 > total);
    most.map_or(TagKind::None, |(kind, _)| kind)
}

/// Monospaced lines with their indents, as spaces, and blank lines.
fn code(lines: &[&Line]) -> String {
    let left = lines.iter().map(|line| line.x0()).fold(f32::INFINITY, f32::min);
    let mut out = String::new();
    let mut last: Option<&Line> = None;
    for line in lines {
        if let Some(last) = last {
            out.push('\n');
            if line.base - last.base > 1.8 * line.size {
                out.push('\n');
            }
        }
        let width = (line.x1() - line.x0()) / line.text.chars().count().max(1) as f32;
        let indent = ((line.x0() - left) / width.max(1.0)).round().clamp(0.0, 80.0) as usize;
        out.extend(std::iter::repeat_n(' ', indent));
        out.push_str(&line.text);
        last = Some(line);
    }
    out
}
