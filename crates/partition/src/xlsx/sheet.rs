//! The cells and merged areas of a sheet, streamed: what the sheet says of its extent is not trusted
//! and nothing is allocated by it.

use std::collections::HashSet;
use std::rc::Rc;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::FORMAT;
use super::styles::Formats;
use super::value;
use crate::error::PartitionError;
use crate::ooxml::xml::resolve_reference;

const MAX_ROW: u32 = 1_048_576;
const MAX_COLUMN: u32 = 16_384;

/// A cell that holds text; row and column count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) row: u32,
    pub(super) column: u32,
    pub(super) text: Rc<str>,
}

/// A rectangle of cells, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) top: u32,
    pub(super) left: u32,
    pub(super) bottom: u32,
    pub(super) right: u32,
}

/// What a sheet holds.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// In row order, then by column, no place twice.
    pub(super) cells: Vec<Cell>,
    pub(super) merged: Vec<Area>,
    /// Rows that the file says are heads of tables.
    pub(super) heads: HashSet<u32>,
}

/// What cells need of the workbook.
pub(super) struct Book {
    pub(super) strings: Vec<Rc<str>>,
    pub(super) formats: Formats,
    pub(super) epoch_1904: bool,
}

/// A cell being read.
#[derive(Default)]
struct Open {
    row: u32,
    column: u32,
    kind: String,
    style: usize,
    value: String,
    inline: String,
}

/// Where text belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Value,
    Inline,
}

/// Reads a worksheet; fails when more than `max_cells` cells hold text.
pub(super) fn read(text: &str, part: &str, book: &Book, max_cells: u64) -> Result<Sheet, PartitionError> {
    let mut sheet = Sheet::default();
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let (mut row, mut column) = (0u32, 0u32);
    let mut cell: Option<Open> = None;
    let mut inside = Inside::Nothing;
    // Pronunciation hints stand within the text they are for.
    let mut phonetic = false;
    let mut next_row = 0;
    loop {
        match event(&mut reader, part)? {
            Event::Start(tag) => match tag.local_name().into_inner() {
                "row" => {
                    let given = attribute(&tag, "r").and_then(|r| r.parse::<u32>().ok());
                    row = given.map_or(next_row, |r| r.saturating_sub(1)).min(MAX_ROW - 1);
                    next_row = row.saturating_add(1);
                    column = 0;
                }
                "c" => {
                    let place = attribute(&tag, "r").and_then(|r| place(&r));
                    let (r, c) = place.unwrap_or((row, column));
                    column = c.saturating_add(1);
                    cell = Some(Open {
                        row: r,
                        column: c,
                        kind: attribute(&tag, "t").unwrap_or_default(),
                        style: attribute(&tag, "s").and_then(|s| s.parse().ok()).unwrap_or(0),
                        ..Open::default()
                    });
                }
                "v" if cell.is_some() => inside = Inside::Value,
                "t" if cell.is_some() => inside = Inside::Inline,
                "rPh" => phonetic = true,
                "mergeCell" => sheet.merged.extend(attribute(&tag, "ref").and_then(|r| area(&r))),
                // A filter stands on the head of what it filters.
                "autoFilter" => sheet
                    .heads
                    .extend(attribute(&tag, "ref").and_then(|r| area(&r)).map(|a| a.top)),
                _ => {}
            },
            Event::End(tag) => match tag.local_name().into_inner() {
                "c" => {
                    if let Some(open) = cell.take()
                        && let Some(cell) = open.close(book)
                    {
                        if sheet.cells.len() as u64 >= max_cells {
                            return Err(PartitionError::limit("max_table_cells", max_cells, "cells in a sheet"));
                        }
                        sheet.cells.push(cell);
                    }
                }
                "v" | "t" => inside = Inside::Nothing,
                "rPh" => phonetic = false,
                _ => {}
            },
            Event::Eof => break,
            other => {
                if let (Some(open), Some(piece), false) = (&mut cell, piece(&other, part)?, phonetic) {
                    match inside {
                        Inside::Value => open.value.push_str(&piece),
                        Inside::Inline => open.inline.push_str(&piece),
                        Inside::Nothing => {}
                    }
                }
            }
        }
    }
    let place = |cell: &Cell| (cell.row, cell.column);
    if !sheet.cells.is_sorted_by_key(place) {
        sheet.cells.sort_by_key(place);
    }
    sheet.cells.dedup_by_key(|cell| (cell.row, cell.column));
    Ok(sheet)
}

impl Open {
    /// The cell, when it shows anything.
    fn close(self, book: &Book) -> Option<Cell> {
        let text: Rc<str> = match self.kind.as_str() {
            "s" => {
                let index: usize = self.value.trim().parse().ok()?;
                book.strings.get(index)?.clone()
            }
            "inlineStr" => unescape(&self.inline).into(),
            "str" => unescape(&self.value).into(),
            "b" if self.value.trim() == "1" => "TRUE".into(),
            "b" => "FALSE".into(),
            "d" => self.value.trim().trim_end_matches("T00:00:00").replace('T', " ").into(),
            "e" => self.value.into(),
            _ => match self.value.trim().parse::<f64>() {
                Ok(number) => value::format(number, book.formats.kind(self.style), book.epoch_1904).into(),
                Err(_) => self.value.into(),
            },
        };
        (!text.trim().is_empty()).then_some(Cell {
            row: self.row,
            column: self.column,
            text,
        })
    }
}

/// The shared strings of a workbook.
pub(super) fn strings(text: &str, part: &str) -> Result<Vec<Rc<str>>, PartitionError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut strings = Vec::new();
    let mut current = String::new();
    let (mut in_text, mut phonetic) = (false, false);
    loop {
        match event(&mut reader, part)? {
            Event::Start(tag) => match tag.local_name().into_inner() {
                "si" => current.clear(),
                "t" => in_text = true,
                "rPh" => phonetic = true,
                _ => {}
            },
            Event::End(tag) => match tag.local_name().into_inner() {
                "si" => strings.push(unescape(&current).into()),
                "t" => in_text = false,
                "rPh" => phonetic = false,
                _ => {}
            },
            Event::Eof => return Ok(strings),
            other => {
                if let (Some(piece), true, false) = (piece(&other, part)?, in_text, phonetic) {
                    current.push_str(&piece);
                }
            }
        }
    }
}

fn event<'t>(reader: &mut Reader<&'t [u8]>, part: &str) -> Result<Event<'t>, PartitionError> {
    match reader.read_event() {
        Ok(Event::DocType(_)) => Err(corrupt(part, "document type declarations are not allowed")),
        Ok(event) => Ok(event),
        Err(error) => Err(corrupt(part, error)),
    }
}

fn corrupt(part: &str, reason: impl std::fmt::Display) -> PartitionError {
    PartitionError::corrupt(FORMAT, format_args!("{part}: {reason}"))
}

/// The text of a text event; `None` for other events.
fn piece(event: &Event, part: &str) -> Result<Option<String>, PartitionError> {
    Ok(match event {
        Event::Text(text) => Some(text.xml10_content().into_owned()),
        Event::CData(text) => Some(text.xml10_content().into_owned()),
        Event::GeneralRef(reference) => match resolve_reference(reference) {
            Some(text) => Some(text),
            None => return Err(corrupt(part, "it uses an entity that XML does not define")),
        },
        _ => None,
    })
}

fn attribute(tag: &BytesStart, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    attributes
        .with_checks(false)
        .flatten()
        .find(|a| a.key.into_inner() == name)
        .map(|a| a.value.into_owned())
}

/// Row and column of a reference such as `B3`, counted from 0.
pub(super) fn place(reference: &str) -> Option<(u32, u32)> {
    let digits = reference.find(|c: char| c.is_ascii_digit())?;
    let (letters, digits) = reference.split_at(digits);
    let column = letters.bytes().filter(|b| *b != b'$').try_fold(0u32, |n, b| {
        let letter = b.to_ascii_uppercase().checked_sub(b'A').filter(|l| *l < 26)?;
        n.checked_mul(26)?.checked_add(u32::from(letter) + 1)
    })?;
    let row: u32 = digits.trim_start_matches('$').parse().ok()?;
    let valid = (1..=MAX_ROW).contains(&row) && (1..=MAX_COLUMN).contains(&column);
    valid.then(|| (row - 1, column - 1))
}

/// An area such as `A1:C2`.
pub(super) fn area(reference: &str) -> Option<Area> {
    let (from, to) = reference.split_once(':')?;
    let ((top, left), (bottom, right)) = (place(from)?, place(to)?);
    (top <= bottom && left <= right).then_some(Area {
        top,
        left,
        bottom,
        right,
    })
}

/// Replaces `_xHHHH_`, by which strings hold characters XML can't.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        out.push_str(&rest[..at]);
        let code = rest
            .get(at + 2..at + 7)
            .and_then(|c| c.strip_suffix('_'))
            .filter(|c| c.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|c| u32::from_str_radix(c, 16).ok())
            .and_then(char::from_u32);
        match code {
            Some(c) => {
                if !c.is_control() || c == '\n' || c == '\t' {
                    out.push(c);
                }
                rest = &rest[at + 7..];
            }
            None => {
                out.push_str("_x");
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        assert_eq!(place("A1"), Some((0, 0)));
        assert_eq!(place("$XFD$1048576"), Some((1_048_575, 16_383)));
        assert_eq!(place("XFE1"), None);
        assert_eq!(place("A0"), None);
        assert_eq!(place("é1"), None);
        assert_eq!(place("AAAAAAAAAAAAAA1"), None);
        assert_eq!(area("B2:A1"), None);
    }

    #[test]
    fn escapes_in_strings() {
        assert_eq!(unescape("a_x000D_\nb_x0041_"), "a\nbA");
        assert_eq!(unescape("snake_xcase_x00_"), "snake_xcase_x00_");
        assert_eq!(unescape("_x00é_"), "_x00é_");
    }
}
