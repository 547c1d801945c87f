//! Segments to lines, and lines to blocks: paragraphs, headings, list items, rows of tables.

use super::aligned::{aligned_table, run_end};
use super::script::{is_east_asian, is_unspaced};
use super::segment::{Break, Segment, same_line};
use super::table::Table;

/// A gap within a line that is wider than this many font sizes separates cells.
const CELL_GAP: f32 = 1.5;
/// Texts of unlike size further apart than this many font sizes are not one line.
const FAR_GAP: f32 = 3.0;
/// A larger ratio of sizes is a change of style.
const SIZE_CHANGE: f32 = 1.14;
/// A step to the next line this much above the usual one starts a new paragraph.
const LEADING_SLACK: f32 = 1.22;
/// The usual step from line to line, in font sizes, where a column does not tell.
const USUAL_LEADING: f32 = 1.35;
/// Indent of a paragraph's first line, in font sizes.
const INDENT: f32 = 0.7;

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
    /// Stands for a table of the page.
    pub(super) table: Option<usize>,
}

impl Line {
    fn x0(&self) -> f32 {
        self.bbox[0]
    }

    fn x1(&self) -> f32 {
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
    /// The table it is.
    pub(super) table: Option<Table>,
}

/// What a list item starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// A bullet, which is no part of the text.
    Bullet,
    /// A number or letter, which stays.
    Number,
}

/// Groups the segments of one region of the page into blocks, from top to bottom. `tables` are those
/// the segments may stand for.
pub(super) fn blocks(region: Vec<Segment>, tables: &[Table]) -> Vec<Block> {
    let mut lines = lines(region);
    lines.retain(|line| line.table.is_some() || !is_rule(&line.text));
    let column = Column::new(&lines);
    let mut blocks: Vec<Block> = Vec::new();
    let mut current: Vec<&Line> = Vec::new();
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        let mut next = index + 1;
        let found = match line.table.and_then(|index| tables.get(index)) {
            Some(table) => Some(table.clone()),
            None => {
                let end = run_end(&lines, index);
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

/// A rule made of characters.
fn is_rule(text: &str) -> bool {
    let mut count = 0;
    for ch in text.chars() {
        match ch {
            '.' | '_' | '-' | '–' | '—' | '…' | '=' | '*' | '·' => count += 1,
            ' ' => {}
            _ => return false,
        }
    }
    count >= 10
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
        table: Some(table),
    }
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

fn is_marker(text: &str) -> bool {
    text.chars().count() <= 6 && (bullet_length(text).is_some() || is_numbered(&format!("{text} x")))
}

pub(super) fn union(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

/// What is usual in a column.
struct Column {
    left: f32,
    right: f32,
    /// Usual step between lines, in font sizes.
    leading: f32,
    /// Usual font size.
    size: f32,
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
    let in_item = current.first().is_some_and(|first| marker(&first.text).is_some());
    if line.size.max(last.size) > SIZE_CHANGE * line.size.min(last.size) {
        return true;
    }
    // Bold text that ends at the end of a full line may just run on as plain text.
    let set_in = line.x0() > last.x0() + INDENT * size;
    if last.bold != line.bold && !in_item && (set_in || has_room(last, line, column)) {
        return true;
    }
    if is_caps(&last.text) && !is_caps(&line.text) && !in_item && has_room(last, line, column) {
        return true;
    }
    if last.monospace != line.monospace || (last.cells > 1) != (line.cells > 1) {
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
    if marker(&line.text).is_some() {
        return true;
    }
    if line.cells > 1 {
        return false;
    }
    let indent = line.x0() - last.x0();
    let width = (column.right - column.left).max(1.0);
    if in_item {
        // Back to the margin left of the item's text.
        let first = current.first().map_or(0.0, |line| line.x0());
        return line.x0() < first - INDENT * size
            || (current.len() > 1 && indent < -INDENT * size)
            || ended_early(last, line, column);
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

/// Whether a line ends although the next line's first word would have fitted on it, at the end of
/// a sentence.
fn ended_early(last: &Line, line: &Line, column: &Column) -> bool {
    let room = column.right - last.x1();
    let word = first_word(line);
    let ends = last
        .text
        .trim_end_matches(['"', '\'', '”', '’', ')', ']', '»'])
        .ends_with(['.', '!', '?', ':', '。', '！', '？', ';']);
    let width = (column.right - column.left).max(1.0);
    let short = last.x1() - last.x0() < 0.5 * width;
    ends && room > word + 1.5 * line.size && (room > 0.12 * width || short)
}

/// Several letters, none of them small.
pub(super) fn is_caps(text: &str) -> bool {
    text.chars().filter(|ch| ch.is_uppercase()).count() >= 4 && !text.chars().any(char::is_lowercase)
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
        bold: lines.iter().all(|line| line.bold),
        italic: lines.iter().all(|line| line.italic),
        monospace: lines.iter().all(|line| line.monospace),
        tabular: lines.iter().all(|line| line.cells > 1),
        marker: if first.table.is_some() {
            None
        } else {
            marker(&first.text)
        },
        table: None,
    };
    for line in lines {
        append_line(&mut block.text, &line.text);
        block.bbox = union(block.bbox, line.bbox);
    }
    block.text.retain(|ch| ch != '\u{AD}');
    if block.marker == Some(Marker::Bullet) {
        let length = bullet_length(&block.text).unwrap_or(0);
        block.text = block.text.get(length..).unwrap_or_default().trim_start().to_owned();
    }
    (!block.text.is_empty()).then_some(block)
}

/// Appends a line, undoing hyphenation: a soft hyphen at the end goes, and so does a hyphen between
/// two lower-case letters that follows at least two letters.
pub(super) fn append_line(text: &mut String, line: &str) {
    if text.is_empty() {
        text.push_str(line);
        return;
    }
    if text.ends_with('\u{AD}') {
        text.pop();
        text.push_str(line);
        return;
    }
    let next = line.chars().next().unwrap_or(' ');
    if let Some(rest) = text.strip_suffix('-') {
        let mut before = rest.chars().rev();
        let letters = before.next().is_some_and(char::is_lowercase) && before.next().is_some_and(char::is_alphabetic);
        // A hyphen after anything but a space is a break within a word or number.
        let within = rest.ends_with(char::is_alphanumeric);
        if letters && next.is_lowercase() {
            text.pop();
        }
        if within {
            text.push_str(line);
            return;
        }
    }
    let last = text.chars().next_back().unwrap_or(' ');
    let unspaced = is_unspaced(last) && is_unspaced(next) || is_east_asian(last) && is_east_asian(next);
    if !unspaced {
        text.push(' ');
    }
    text.push_str(line);
}

/// The list marker a text starts with.
pub(super) fn marker(text: &str) -> Option<Marker> {
    if bullet_length(text).is_some() {
        return Some(Marker::Bullet);
    }
    is_numbered(text).then_some(Marker::Number)
}

/// Bytes of the bullet a text starts with, if more text or the end follows.
fn bullet_length(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let strong = matches!(
        first,
        '\u{95}'
            | '\u{2022}'
            | '\u{2023}'
            | '\u{2043}'
            | '\u{3164}'
            | '\u{204C}'
            | '\u{204D}'
            | '\u{2219}'
            | '\u{25CB}'
            | '\u{25CF}'
            | '\u{25D8}'
            | '\u{25E6}'
            | '\u{2619}'
            | '\u{2765}'
            | '\u{2767}'
            | '\u{29BE}'
            | '\u{29BF}'
            | '\u{25A0}'
            | '\u{25A1}'
            | '\u{25AA}'
            | '\u{25AB}'
            | '\u{25B6}'
            | '\u{25BA}'
            | '\u{27A2}'
            | '\u{2794}'
            | '\u{2713}'
            | '\u{2714}'
            | '\u{F000}'..='\u{F0FF}'
    );
    let weak = matches!(first, '*' | '\u{B7}' | '-' | '\u{2013}');
    let next = chars.next();
    if strong || (weak && next == Some(' ')) {
        return Some(first.len_utf8());
    }
    None
}

/// `1. text`, `2) text`, `(a) text`, `iv. text`.
fn is_numbered(text: &str) -> bool {
    let Some((head, rest)) = text.split_once(' ') else {
        return false;
    };
    let body = match (head.strip_prefix('('), head.chars().next_back()) {
        (Some(inner), Some(')')) => inner.get(..inner.len().saturating_sub(1)).unwrap_or_default(),
        (None, Some('.' | ')')) => head.get(..head.len() - 1).unwrap_or_default(),
        _ => return false,
    };
    let digits = !body.is_empty() && body.len() <= 3 && body.bytes().all(|b| b.is_ascii_digit());
    let letter = body.len() == 1 && body.bytes().all(|b| b.is_ascii_lowercase());
    let roman = (1..=5).contains(&body.len()) && body.bytes().all(|b| matches!(b, b'i' | b'v' | b'x'));
    (digits || letter || roman) && !rest.trim().is_empty()
}
