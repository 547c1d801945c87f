//! Cells of ruled tables whose text was not found: single figures and short words alone between rules are
//! easily taken for specks when the page is divided into lines.

use crate::raster::Gray;
use crate::reading::{OcrError, Paragraph, Reader, Reading, Sheet, usual_size};
use crate::rules::Ruling;
use crate::tesseract::Segmentation;

/// Rules of each direction that are looked at.
const MAX_RULES: usize = 300;
/// Cells of a page that are read.
const MAX_CELLS: usize = 80;
/// Boxes between rules of a page that are looked at.
const MAX_BOXES: usize = 4000;
/// How far rules may fall short of each other, in inches.
const REACH: f32 = 0.03;
/// Room along the rules that is left out, in inches: what is left of them stands there.
const EDGE: f32 = 0.016;
/// Heights of a single line of text, in font sizes: marks are less tall.
const LEAST_HEIGHT: f32 = 0.35;
const ONE_LINE: f32 = 1.5;
/// White around the text, in font sizes.
const MARGIN: f32 = 0.6;
/// Pixels of ink that are a text at least, as a share of the square of its size.
const INK: f32 = 0.05;
/// Share of a text and the white around it from which a word is its.
const OVERLAP: f32 = 0.06;
/// Confidence from which a word is kept.
const CONFIDENT: f32 = 55.0;

/// `[left, top, right, bottom]` in pixels.
type Box4 = [i32; 4];

impl Reader {
    /// Reads the cells that have ink but no words.
    pub(crate) fn read_cells(&mut self, sheet: &Sheet, reading: &mut Reading) -> Result<(), OcrError> {
        let size = usual_size(reading);
        let Some(language) = reading.paragraphs.first().map(|paragraph| paragraph.language.clone()) else {
            return Ok(());
        };
        if size <= 0.0 || sheet.rules.len() < 4 {
            return Ok(());
        }
        let words: Vec<Box4> = reading.words().map(|word| word.bbox).collect();
        // Words may have been read over the rules between cells.
        let is_read = |area: &Box4| words.iter().any(|word| overlap(*word, *area) > OVERLAP);
        let texts: Vec<Box4> = cells(&sheet.rules, sheet.scale, sheet.dpi as f32)
            .into_iter()
            .filter_map(|cell| ink(&sheet.picture, cell, sheet.threshold, size))
            .filter(|area| !is_read(area))
            .take(MAX_CELLS)
            .collect();
        for area in texts {
            let lines = if (area[3] - area[1]) as f32 > (ONE_LINE + 2.0 * MARGIN) * size {
                Segmentation::Block
            } else {
                Segmentation::Line
            };
            let found = self.recognize(sheet, &language, area, lines)?;
            let mut words = found.words;
            words.retain(|word| word.confidence >= CONFIDENT && word.text.chars().any(char::is_alphanumeric));
            if let Some(first) = words.first_mut() {
                first.begins_line = true;
                first.begins_paragraph = true;
                reading.paragraphs.push(Paragraph {
                    words,
                    language: language.clone(),
                });
            }
        }
        Ok(())
    }
}

/// The share of an area that a word covers.
fn overlap(word: Box4, area: Box4) -> f32 {
    let side = |from: usize, to: usize| (word[to].min(area[to]) - word[from].max(area[from])).max(0) as f32;
    let whole = (area[2] - area[0]).max(1) as f32 * (area[3] - area[1]).max(1) as f32;
    side(0, 2) * side(1, 3) / whole
}

/// The boxes between neighbouring rules, in pixels of a picture enlarged by `scale`.
fn cells(rules: &[Ruling], scale: f32, dpi: f32) -> Vec<Box4> {
    let enlarged = |rule: &Ruling| Ruling {
        x0: rule.x0 * scale,
        y0: rule.y0 * scale,
        x1: rule.x1 * scale,
        y1: rule.y1 * scale,
    };
    let (mut across, mut down): (Vec<Ruling>, Vec<Ruling>) = rules
        .iter()
        .map(enlarged)
        .partition(|rule| rule.x1 - rule.x0 > rule.y1 - rule.y0);
    across.sort_by(|a, b| a.y0.total_cmp(&b.y0));
    down.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    across.truncate(MAX_RULES);
    down.truncate(MAX_RULES);
    let (reach, edge) = (REACH * dpi, EDGE * dpi);
    let mut out = Vec::new();
    for (index, top) in across.iter().enumerate() {
        let from_here = |rule: &&Ruling| {
            rule.y0 < top.y1 + reach
                && rule.y1 > top.y1 + 3.0 * reach
                && rule.x0 > top.x0 - reach
                && rule.x1 < top.x1 + reach
        };
        let walls: Vec<&Ruling> = down.iter().filter(from_here).collect();
        for pair in walls.windows(2) {
            let [left, right] = pair else { continue };
            let closes = |rule: &&Ruling| {
                rule.y0 > top.y1 + 2.0 * reach && rule.x0 < left.x1 + reach && rule.x1 > right.x0 - reach
            };
            let Some(bottom) = across.iter().skip(index + 1).find(closes) else {
                continue;
            };
            if bottom.y0 > left.y1.min(right.y1) + reach || out.len() >= MAX_BOXES {
                continue;
            }
            let cell = [left.x1 + edge, top.y1 + edge, right.x0 - edge, bottom.y0 - edge].map(|v| v as i32);
            if cell[2] > cell[0] && cell[3] > cell[1] {
                out.push(cell);
            }
        }
    }
    out
}

/// The text in a cell with white around it, when there is as much ink as letters of a size have.
fn ink(picture: &Gray, cell: Box4, threshold: u8, size: f32) -> Option<Box4> {
    let [left, top, right, bottom] = cell.map(|v| v.max(0) as usize);
    let (right, bottom) = (right.min(picture.width()), bottom.min(picture.height()));
    let (mut x0, mut y0, mut x1, mut y1) = (usize::MAX, usize::MAX, 0, 0);
    let mut count = 0usize;
    for (y, row) in picture.rows().enumerate().take(bottom).skip(top) {
        for (x, value) in row.iter().enumerate().take(right).skip(left) {
            if *value <= threshold {
                (x0, y0, x1, y1) = (x0.min(x), y0.min(y), x1.max(x + 1), y1.max(y + 1));
                count += 1;
            }
        }
    }
    if x1 <= x0 || ((y1 - y0) as f32) < LEAST_HEIGHT * size || (count as f32) < INK * size * size {
        return None;
    }
    let margin = (MARGIN * size) as usize;
    let area = [
        x0.saturating_sub(margin).max(left),
        y0.saturating_sub(margin).max(top),
        (x1 + margin).min(right),
        (y1 + margin).min(bottom),
    ];
    Some(area.map(|v| v as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(x0: f32, y0: f32, x1: f32, y1: f32) -> Ruling {
        Ruling { x0, y0, x1, y1 }
    }

    #[test]
    fn boxes_between_rules_are_cells_also_where_some_are_joined() {
        let rules = [
            rule(100.0, 100.0, 700.0, 102.0),
            rule(400.0, 200.0, 700.0, 202.0),
            rule(100.0, 300.0, 700.0, 302.0),
            rule(100.0, 100.0, 102.0, 300.0),
            rule(400.0, 100.0, 402.0, 300.0),
            rule(700.0, 100.0, 702.0, 300.0),
        ];
        let found = cells(&rules, 1.0, 300.0);
        assert_eq!(
            found,
            [[106, 106, 395, 295], [406, 106, 695, 195], [406, 206, 695, 295]]
        );
        assert_eq!(cells(&rules[..3], 1.0, 300.0), [[0; 4]; 0]);
    }

    #[test]
    fn specks_are_no_text() {
        let mut picture = Gray::new(200, 100, vec![255; 20_000]).unwrap();
        let cell = [10, 10, 190, 90];
        assert_eq!(ink(&picture, cell, 128, 30.0), None);
        picture.set(50, 50, 0);
        assert_eq!(ink(&picture, cell, 128, 30.0), None);
        for y in 40..62 {
            for x in 50..56 {
                picture.set(x, y, 0);
            }
        }
        assert_eq!(ink(&picture, cell, 128, 30.0), Some([32, 22, 74, 80]));
    }
}
