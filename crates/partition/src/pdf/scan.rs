//! Recognised words as page content, so that scans go through the same layout as text layers.

use docmill_model::Route;
use docmill_ocr::{PageText, Word};

use super::engine::{Direction, FontId, Glyph, PageContent, ReadWord, Recognised, Rule, Tag};
use super::script::{is_east_asian, is_right_to_left};

/// Sizes of lines this close to the usual one, as a ratio, are that one: measured sizes scatter.
const USUAL: f32 = 1.13;
/// Other sizes this close are one.
const ALIKE: f32 = 1.09;

/// Fonts that recognised text is given, which has only a weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanFonts {
    pub(super) regular: FontId,
    pub(super) bold: FontId,
}

/// From the pixels of the upright, straight picture to the displayed page.
struct Place {
    quarters: u8,
    width: f32,
    height: f32,
    /// Points to a pixel.
    scale: f32,
}

impl Place {
    fn point(&self, x: f32, y: f32) -> (f32, f32) {
        let (x, y) = match self.quarters {
            1 => (y, self.width - x),
            2 => (self.width - x, self.height - y),
            3 => (self.height - y, x),
            _ => (x, y),
        };
        (x * self.scale, y * self.scale)
    }

    fn bbox(&self, [x0, y0, x1, y1]: [f32; 4]) -> [f32; 4] {
        let ((ax, ay), (bx, by)) = (self.point(x0, y0), self.point(x1, y1));
        [ax.min(bx), ay.min(by), ax.max(bx), ay.max(by)]
    }

    fn word(&self, word: &Word) -> ReadWord {
        ReadWord {
            text: word.text.clone(),
            bbox: self.bbox(word.bbox),
            confidence: word.confidence,
        }
    }

    fn direction(&self) -> Direction {
        match self.quarters {
            1 => Direction::North,
            2 => Direction::West,
            3 => Direction::South,
            _ => Direction::East,
        }
    }
}

/// The content of a page of `width` by `height` points, of which `text` was read.
pub(super) fn content(text: &PageText, (width, height): (f32, f32), fonts: ScanFonts) -> PageContent {
    let upright = if text.quarters % 2 == 1 { height } else { width };
    let place = Place {
        quarters: text.quarters,
        width: text.width,
        height: text.height,
        scale: upright / text.width.max(1.0),
    };
    let mut content = PageContent {
        width,
        height,
        angle: text.angle,
        route: Route::OcrOnly,
        tags: vec![Tag::default()],
        recognised: Some(Recognised {
            confidence: text.confidence,
            languages: text.languages.clone(),
            words: text.words.iter().map(|word| place.word(word)).collect(),
        }),
        images: text.pictures.iter().map(|bbox| place.bbox(*bbox)).collect(),
        ..PageContent::default()
    };
    content.has_images = !content.images.is_empty();
    content.rules = text
        .rules
        .iter()
        .map(|rule| {
            let [x0, y0, x1, y1] = place.bbox([rule.x0, rule.y0, rule.x1, rule.y1]);
            Rule { x0, y0, x1, y1 }
        })
        .collect();
    let sizes = Sizes::of(&text.words);
    let mut words = text.words.iter().peekable();
    while let Some(word) = words.next() {
        let size = sizes.even(word.size);
        let next = words.peek().copied().filter(|next| next.line == word.line);
        let end = match next {
            Some(next) if adjoins(word, next) => next.bbox[0].max((word.bbox[0] + word.bbox[2]) / 2.0),
            _ => word.bbox[2],
        };
        push_word(&mut content, &place, word, end, size, fonts);
        if let Some(next) = next {
            push_space(&mut content, &place, word, next, size);
        }
    }
    content
}

/// Whether two words of a line are pieces of text without spaces: what room is between them belongs to
/// the characters.
fn adjoins(word: &Word, next: &Word) -> bool {
    let size = word.size.max(next.size);
    let gap = next.bbox[0] - word.bbox[2];
    let east_asian =
        word.text.chars().next_back().is_some_and(is_east_asian) && next.text.chars().next().is_some_and(is_east_asian);
    (!next.spaced || east_asian) && (-2.0 * size..1.1 * size).contains(&gap)
}

/// The characters of a word, sharing its box, as far as `x1`, evenly.
fn push_word(content: &mut PageContent, place: &Place, word: &Word, x1: f32, size: f32, fonts: ScanFonts) {
    let chars = visual(&word.text);
    let x0 = word.bbox[0];
    let share = (x1 - x0) / chars.len().max(1) as f32;
    for (index, ch) in chars.into_iter().enumerate() {
        let (x, y) = place.point(x0 + index as f32 * share, word.baseline);
        content.glyphs.push(Glyph {
            ch,
            x,
            y,
            advance: share * place.scale,
            size: size * place.scale,
            font: if word.bold { fonts.bold } else { fonts.regular },
            direction: place.direction(),
            tag: 0,
        });
    }
}

/// The space between two words of a line.
fn push_space(content: &mut PageContent, place: &Place, before: &Word, after: &Word, size: f32) {
    if adjoins(before, after) {
        return;
    }
    let (left, right) = if after.bbox[0] >= before.bbox[2] {
        (before.bbox[2], after.bbox[0])
    } else {
        (after.bbox[2], before.bbox[0])
    };
    let (x, y) = place.point(left, after.baseline);
    content.glyphs.push(Glyph {
        ch: ' ',
        x,
        y,
        advance: (right - left).max(0.0) * place.scale,
        size: size * place.scale,
        font: 0,
        direction: place.direction(),
        tag: 0,
    });
}

/// The characters of a word from left to right, as they stand on the page.
fn visual(text: &str) -> Vec<char> {
    if !text.chars().any(is_right_to_left) {
        return text.chars().collect();
    }
    let info = unicode_bidi::BidiInfo::new(text, None);
    match info.paragraphs.first() {
        Some(paragraph) => info.reorder_line(paragraph, paragraph.range.clone()).chars().collect(),
        None => text.chars().collect(),
    }
}

/// Evens out the sizes measured for the lines of a page.
struct Sizes {
    usual: f32,
    /// Other sizes, each with the mean of those like it.
    groups: Vec<(f32, f32)>,
}

impl Sizes {
    fn of(words: &[Word]) -> Self {
        let mut sizes: Vec<(f32, usize)> = words.iter().map(|word| (word.size, word.text.len())).collect();
        sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = sizes.iter().map(|(_, count)| count).sum::<usize>() / 2;
        let mut seen = 0;
        let usual = sizes.iter().find(|(_, count)| {
            seen += count;
            seen > half
        });
        let usual = usual.map_or(0.0, |(size, _)| *size);
        let mut groups: Vec<(f32, f32, usize)> = Vec::new();
        for (size, count) in sizes {
            match groups.last_mut() {
                Some((largest, sum, total)) if size <= *largest * ALIKE && size * *total as f32 <= *sum * ALIKE => {
                    *largest = size;
                    *sum += size * count as f32;
                    *total += count;
                }
                _ => groups.push((size, size * count as f32, count)),
            }
        }
        Self {
            usual,
            groups: groups
                .into_iter()
                .map(|(largest, sum, total)| (largest, sum / total.max(1) as f32))
                .collect(),
        }
    }

    fn even(&self, size: f32) -> f32 {
        if size < self.usual * USUAL && size * USUAL > self.usual {
            return self.usual;
        }
        let group = self.groups.iter().find(|(largest, _)| size <= *largest);
        group.map_or(size, |(_, mean)| *mean)
    }
}

/// Adds to a page's own text what was read in pictures where it has none.
pub(super) fn merge(own: &mut PageContent, read: PageContent) {
    own.parts = None;
    // A coarse map of where the page's own characters stand.
    const CELL: f32 = 6.0;
    let cell = |x: f32, y: f32| ((x / CELL) as i32, (y / CELL) as i32);
    let mut taken = std::collections::HashSet::new();
    for glyph in own.glyphs.iter().filter(|glyph| !glyph.ch.is_whitespace()) {
        let steps = (glyph.advance.max(glyph.size * 0.5) / CELL).ceil().min(64.0) as i32;
        let rows = (glyph.size / CELL).ceil().min(64.0) as i32;
        let (column, row) = cell(glyph.x, glyph.y);
        for dx in 0..=steps {
            taken.extend((-rows..=0).map(|dy| (column + dx, row + dy)));
        }
    }
    let is_free = |glyph: &Glyph| {
        let (column, row) = cell(glyph.x + glyph.advance / 2.0, glyph.y - glyph.size * 0.3);
        !taken.contains(&(column, row))
    };
    // Lines have no space at their ends.
    let words = read
        .glyphs
        .chunk_by(|a, b| a.ch != ' ' && (a.x - b.x).abs() + (a.y - b.y).abs() < a.advance + a.size);
    for word in words {
        if word.iter().all(|glyph| glyph.ch == ' ' || is_free(glyph)) {
            own.glyphs.extend_from_slice(word);
        }
    }
    own.rules.extend(read.rules);
    own.recognised = read.recognised.map(|mut said| {
        said.words.retain(|word| {
            let [x0, y0, x1, y1] = word.bbox;
            !taken.contains(&cell((x0 + x1) / 2.0, (y0 + y1) / 2.0))
        });
        said
    });
    own.route = Route::HiRes;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str, bbox: [f32; 4], size: f32, line: u32) -> Word {
        Word {
            text: text.into(),
            confidence: 90.0,
            bbox,
            baseline: bbox[3],
            size,
            bold: false,
            spaced: true,
            line,
        }
    }

    fn page(quarters: u8, words: Vec<Word>) -> PageText {
        let (width, height) = if quarters % 2 == 1 {
            (2000.0, 1000.0)
        } else {
            (1000.0, 2000.0)
        };
        PageText {
            quarters,
            width,
            height,
            words,
            ..PageText::default()
        }
    }

    const FONTS: ScanFonts = ScanFonts { regular: 0, bold: 1 };

    #[test]
    fn words_share_their_box_and_are_set_apart() {
        let text = page(
            0,
            vec![
                word("ab", [100.0, 80.0, 140.0, 100.0], 25.0, 0),
                word("c", [160.0, 80.0, 180.0, 100.0], 26.0, 0),
            ],
        );
        let content = content(&text, (500.0, 1000.0), FONTS);
        let glyphs: Vec<_> = content.glyphs.iter().map(|g| (g.ch, g.x, g.advance, g.size)).collect();
        assert_eq!(
            glyphs,
            [
                ('a', 50.0, 10.0, 12.5),
                ('b', 60.0, 10.0, 12.5),
                (' ', 70.0, 10.0, 12.5),
                ('c', 80.0, 10.0, 12.5)
            ]
        );
    }

    #[test]
    fn text_of_a_turned_page_runs_the_way_it_is_displayed() {
        for (quarters, direction, at) in [
            (1, Direction::North, (50.0, 950.0)),
            (2, Direction::West, (450.0, 950.0)),
            (3, Direction::South, (450.0, 50.0)),
        ] {
            let text = page(quarters, vec![word("a", [100.0, 80.0, 140.0, 100.0], 25.0, 0)]);
            let content = content(&text, (500.0, 1000.0), FONTS);
            let glyph = content.glyphs[0];
            assert_eq!((glyph.direction, (glyph.x, glyph.y)), (direction, at), "{quarters}");
        }
    }

    #[test]
    fn right_to_left_words_stand_from_right_to_left() {
        assert_eq!(visual("שלום"), "םולש".chars().collect::<Vec<_>>());
        assert_eq!(visual("abc"), ['a', 'b', 'c']);
    }

    #[test]
    fn scattered_sizes_are_evened_out() {
        let lines = [20.0, 20.5, 19.4, 21.0, 20.2, 30.0, 31.0];
        let words: Vec<Word> = lines.iter().map(|size| word("word", [0.0; 4], *size, 0)).collect();
        let sizes = Sizes::of(&words);
        assert_eq!(sizes.even(19.4), sizes.even(21.0));
        assert_eq!(sizes.even(30.0), sizes.even(31.0));
        assert!(sizes.even(30.0) > 29.0);
    }

    #[test]
    fn what_the_page_says_itself_is_not_said_twice() {
        let mut own = content(
            &page(0, vec![word("own", [100.0, 80.0, 160.0, 100.0], 25.0, 0)]),
            (500.0, 1000.0),
            FONTS,
        );
        let read = page(
            0,
            vec![
                word("own", [101.0, 80.0, 161.0, 101.0], 25.0, 0),
                word("more", [100.0, 300.0, 160.0, 320.0], 25.0, 1),
            ],
        );
        merge(&mut own, content(&read, (500.0, 1000.0), FONTS));
        let text: String = own.glyphs.iter().map(|glyph| glyph.ch).collect();
        assert_eq!(text, "ownmore");
    }
}
