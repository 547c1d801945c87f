//! Bullets: dots and squares in front of lines, which the recogniser drops as specks or takes for letters.

use crate::page::line_size;
use crate::raster::Gray;
use crate::tesseract::Found;

/// What a bullet is read as.
const BULLET: &str = "•";
/// Confidence of a bullet that was seen, not read.
const SEEN: f32 = 80.0;
/// Sizes of bullets and their distance from their line, as shares of the font size.
const SIDES: std::ops::RangeInclusive<f32> = 0.14..=0.6;
const NEAR: f32 = 0.35;
const SPACE: f32 = 0.2;
const FAR: f32 = 3.5;
/// Share of its box that a bullet fills; a disc fills 0.79.
const FULL: f32 = 0.6;
/// How far the left edges of bullets of one list are apart at most, as a share of the font size.
const EDGE: f32 = 0.7;
/// Pixels of a spot looked at; bounds the search.
const MAX_SPOT: usize = 40_000;

/// A bullet in front of a line.
#[derive(Clone, Copy, Debug)]
struct Bullet {
    line: usize,
    bbox: [i32; 4],
    size: f32,
    /// The line's first word is the bullet.
    read: bool,
}

/// Finds bullets and makes them the first words of their lines. One alone is a speck.
pub(crate) fn mark(page: &Gray, threshold: u8, lines: &mut Vec<Vec<Found>>) {
    let found: Vec<Bullet> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| bullet(page, threshold, index, line))
        .collect();
    let is_of_list = |bullet: &Bullet| {
        found.iter().any(|other| {
            let apart = (other.bbox[0] - bullet.bbox[0]).abs() as f32;
            let (a, b) = (other.bbox[3] - other.bbox[1], bullet.bbox[3] - bullet.bbox[1]);
            other.line != bullet.line
                && apart <= EDGE * bullet.size
                && a.abs_diff(b) as f32 <= 2.0 + 0.35 * b as f32
                && (bullet.bbox[1] - other.bbox[1]).abs() as f32 > bullet.size
        })
    };
    let kept: Vec<Bullet> = found.iter().filter(|bullet| is_of_list(bullet)).copied().collect();
    for bullet in &kept {
        let Some(line) = lines.get_mut(bullet.line) else {
            continue;
        };
        let Some(first) = line.first_mut() else { continue };
        if bullet.read {
            first.text = BULLET.to_owned();
            first.confidence = first.confidence.max(SEEN);
            first.bbox = bullet.bbox;
            continue;
        }
        let word = Found {
            text: BULLET.to_owned(),
            confidence: SEEN,
            bbox: bullet.bbox,
            ..first.clone()
        };
        first.begins_line = false;
        first.begins_paragraph = false;
        line.insert(0, word);
    }
    // Some were read as lines of their own.
    lines.retain(|line| match line.as_slice() {
        [word] if word.text.chars().count() <= 2 => !kept.iter().any(|bullet| overlap(word.bbox, bullet.bbox)),
        _ => true,
    });
}

/// The bullet in front of a line, or the one its first word is.
fn bullet(page: &Gray, threshold: u8, index: usize, line: &[Found]) -> Option<Bullet> {
    let size = line_size(line.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(line));
    let first = line.first()?;
    if size < 8.0 || line.iter().map(|word| word.text.chars().count()).sum::<usize>() < 4 {
        return None;
    }
    let base = first.base();
    let (top, bottom) = ((base - 0.95 * size) as i32, (base + 0.2 * size) as i32);
    let within = |left: f32, right: f32| {
        let bbox = lone_spot(page, threshold, [left as i32, top, right as i32, bottom])?;
        is_bullet(page, threshold, bbox, size, base).then_some(bbox)
    };
    let left = first.bbox[0] as f32;
    let second = line.get(1).map(|word| word.bbox[0] as f32);
    let short = first.text.chars().count() <= 2 && !first.text.ends_with(['.', ')']);
    // A space after letters is wider for a bullet than for a word.
    let room = if first.text.contains(char::is_alphanumeric) {
        NEAR
    } else {
        SPACE
    } * size;
    if let Some(second) = second.filter(|second| short && second - first.bbox[2] as f32 >= room)
        && let Some(bbox) = within(left - SPACE * size, second - SPACE * size / 2.0)
    {
        return Some(Bullet {
            line: index,
            bbox,
            size,
            read: true,
        });
    }
    let bbox = within(left - FAR * size, left - NEAR * size)?;
    Some(Bullet {
        line: index,
        bbox,
        size,
        read: false,
    })
}

/// The box of all ink in an area, when it is one small spot well inside it.
fn lone_spot(page: &Gray, threshold: u8, area: [i32; 4]) -> Option<[i32; 4]> {
    let [left, top, right, bottom] = area;
    let clip = |value: i32, end: usize| usize::try_from(value).unwrap_or(0).min(end);
    let (x0, x1) = (clip(left, page.width()), clip(right, page.width()));
    let (y0, y1) = (clip(top, page.height()), clip(bottom, page.height()));
    if x1 <= x0 || y1 <= y0 || (x1 - x0) * (y1 - y0) > MAX_SPOT {
        return None;
    }
    let mut bbox: Option<[usize; 4]> = None;
    for y in y0..y1 {
        for x in (x0..x1).filter(|x| page.get(*x, y) <= threshold) {
            let [a, b, c, d] = bbox.unwrap_or([x, y, x, y]);
            bbox = Some([a.min(x), b.min(y), c.max(x), d.max(y)]);
        }
    }
    let [a, b, c, d] = bbox?;
    // What reaches the edge goes on beyond it.
    let inside = (a > x0 || x0 == 0) && c + 1 < x1 && b > y0 && d + 1 < y1;
    inside.then_some([a as i32, b as i32, c as i32 + 1, d as i32 + 1])
}

/// Whether a spot is as large, as round, as full and as high above the baseline as a bullet.
fn is_bullet(page: &Gray, threshold: u8, [x0, y0, x1, y1]: [i32; 4], size: f32, base: f32) -> bool {
    let (width, height) = ((x1 - x0) as f32, (y1 - y0) as f32);
    let middle = base - (y0 + y1) as f32 / 2.0;
    let ink = (y0..y1)
        .flat_map(|y| (x0..x1).map(move |x| (x, y)))
        .filter(|(x, y)| page.get(*x as usize, *y as usize) <= threshold)
        .count() as f32;
    SIDES.contains(&(width / size))
        && SIDES.contains(&(height / size))
        && (0.6..1.7).contains(&(width / height))
        && ink >= FULL * width * height
        && (0.14..0.62).contains(&(middle / size))
}

fn overlap(a: [i32; 4], b: [i32; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(page: &mut Gray, [x0, y0, x1, y1]: [usize; 4]) {
        for y in y0..y1 {
            (x0..x1).for_each(|x| page.set(x, y, 0));
        }
    }

    fn word(text: &str, bbox: [i32; 4], base: i32) -> Found {
        Found {
            text: text.into(),
            confidence: 40.0,
            bbox,
            baseline: [0, base, 1000, base],
            spaced: true,
            begins_line: true,
            begins_paragraph: true,
        }
    }

    /// A line of type of 30 pixels on a baseline.
    fn line(base: i32) -> Vec<Found> {
        vec![
            word("Hand", [100, base - 22, 160, base], base),
            word("some", [170, base - 15, 230, base], base),
        ]
    }

    fn texts(lines: &[Vec<Found>]) -> Vec<Vec<&str>> {
        lines
            .iter()
            .map(|line| line.iter().map(|word| word.text.as_str()).collect())
            .collect()
    }

    #[test]
    fn spots_in_front_of_several_lines_are_bullets() {
        let mut page = Gray::new(400, 400, Vec::new()).unwrap();
        for base in [60, 120, 180] {
            fill(&mut page, [60, base - 14, 70, base - 4]);
        }
        // The last was taken for a letter on a line of its own, the one before for one of its line.
        let mut second = line(120);
        second.insert(0, word("e", [59, 105, 71, 117], 120));
        let mut lines = vec![line(60), second, line(180), vec![word("o", [59, 165, 71, 177], 180)]];
        mark(&page, 128, &mut lines);
        assert_eq!(texts(&lines), [["•", "Hand", "some"]; 3]);
        assert_eq!(lines[0][0].bbox, [60, 46, 70, 56]);
    }

    #[test]
    fn one_spot_and_strokes_are_none() {
        let mut page = Gray::new(400, 400, Vec::new()).unwrap();
        fill(&mut page, [60, 46, 70, 56]);
        let mut lines = vec![line(60), line(120)];
        mark(&page, 128, &mut lines);
        assert_eq!(texts(&lines), [["Hand", "some"]; 2]);
        // Dashes, and letters that stand next to the area.
        for base in [60, 120] {
            fill(&mut page, [50, base - 12, 76, base - 4]);
        }
        mark(&page, 128, &mut lines);
        assert_eq!(texts(&lines), [["Hand", "some"]; 2]);
    }
}
