//! The words of a page, put into one form: noise dropped, size by line, weight.

use crate::bullets;
use crate::measure::{font_size, is_square, stroke};
use crate::reading::{PageText, Paragraph, Reading, Sheet, Word};
use crate::tesseract::Found;

/// Words read with less confidence are specks, and so are short ones with less than the second.
const NOISE: f32 = 12.0;
const SHORT_NOISE: f32 = 35.0;
/// Strokes this many times as thick, by size, as is usual on the page are bold.
const BOLD: f32 = 1.25;
/// Half of the words of a bold line are heavier than the first, and three quarters than the second.
const LINE_BOLD: f32 = 1.11;
const HEAVIER: f32 = 1.05;

/// Gathers what was read on a page, in pixels of the page as given.
pub(crate) fn page_text(sheet: &Sheet, reading: Reading) -> PageText {
    let scale = |value: i32| value as f32 / sheet.scale;
    let mut text = PageText {
        quarters: sheet.quarters,
        angle: sheet.angle,
        width: sheet.picture.width() as f32 / sheet.scale,
        height: sheet.picture.height() as f32 / sheet.scale,
        rules: sheet.rules.clone(),
        pictures: reading.pictures.iter().map(|bbox| bbox.map(scale)).collect(),
        confidence: reading.confidence(),
        languages: languages(&reading.paragraphs),
        words: Vec::new(),
    };
    let mut weights = Vec::new();
    let mut line = 0;
    let mut found = lines(&reading.paragraphs);
    bullets::mark(&sheet.picture, sheet.threshold, &mut found);
    for found in found {
        let size = line_size(&found);
        if size <= 0.0 {
            continue;
        }
        for word in found {
            let thickness = stroke(&sheet.picture, word.bbox, sheet.threshold) / size;
            weights.push((thickness, word.text.chars().count()));
            text.words.push(Word {
                confidence: word.confidence,
                bbox: word.bbox.map(scale),
                baseline: word.base() / sheet.scale,
                size: size / sheet.scale,
                bold: false,
                spaced: word.spaced,
                line,
                text: greek(word.text),
            });
        }
        line += 1;
    }
    set_bold(&mut text.words, &weights);
    text
}

/// Finds what is set in bold: words by themselves where they are much heavier than usual, and lines whose
/// words are all somewhat heavier, as scans blur the difference.
fn set_bold(words: &mut [Word], weights: &[(f32, usize)]) {
    let usual = usual_weight(weights);
    if usual <= 0.0 {
        return;
    }
    let mut weights = weights.iter().map(|(weight, _)| weight / usual);
    for line in words.chunk_by_mut(|a, b| a.line == b.line) {
        let mut telling = Vec::new();
        for (word, weight) in line.iter_mut().zip(&mut weights) {
            word.bold = weight > BOLD;
            // Figures and single letters measure heavier than words of the same type.
            if word.text.chars().filter(|ch| ch.is_alphabetic()).count() >= 3 {
                telling.push(weight);
            }
        }
        telling.sort_by(f32::total_cmp);
        let at = |share: usize| telling.get(telling.len() * share / 4).copied().unwrap_or(0.0);
        if telling.len() >= 3 && at(2) > LINE_BOLD && at(1) > HEAVIER {
            line.iter_mut().for_each(|word| word.bold = true);
        }
    }
}

/// The micro sign, which models know as the Greek letter that looks like it, as that letter in Greek words.
fn greek(text: String) -> String {
    let is_greek = |ch: char| matches!(ch, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}');
    if text.contains('\u{B5}') && text.chars().any(is_greek) {
        text.replace('\u{B5}', "\u{3BC}")
    } else {
        text
    }
}

/// Lines of words without the noise.
fn lines(paragraphs: &[Paragraph]) -> Vec<Vec<Found>> {
    let mut lines: Vec<Vec<Found>> = Vec::new();
    for paragraph in paragraphs {
        let mut fresh = true;
        for word in &paragraph.words {
            fresh |= word.begins_line;
            if is_noise(word) {
                continue;
            }
            match lines.last_mut() {
                Some(line) if !fresh => line.push(word.clone()),
                _ => lines.push(vec![word.clone()]),
            }
            fresh = false;
        }
    }
    lines
}

fn is_noise(word: &Found) -> bool {
    let telling = word.text.chars().filter(|ch| ch.is_alphanumeric()).count();
    let [x0, y0, x1, y1] = word.bbox;
    let east_asian = word.text.chars().any(is_square);
    (word.confidence < NOISE && !east_asian)
        || (word.confidence < SHORT_NOISE && telling < 3 && !east_asian)
        // What is left of rules, and edges of pictures.
        || (telling == 0 && word.confidence < 60.0 && word.text.chars().all(|ch| "|_—-–~=.,'`‘’“”\"".contains(ch)))
        || x1 <= x0
        || y1 <= y0
}

/// Median font size of a line's words, by characters.
pub(crate) fn line_size(words: &[Found]) -> f32 {
    let mut sizes: Vec<(f32, usize)> = words
        .iter()
        .map(|word| {
            let size = font_size(&word.text, word.bbox.map(|v| v as f32), word.base());
            (size, word.text.chars().count())
        })
        .filter(|(size, _)| *size > 0.0)
        .collect();
    if sizes.is_empty() {
        let height = |word: &Found| (word.bbox[3] - word.bbox[1]) as f32;
        return words.iter().map(height).fold(0.0, f32::max);
    }
    weighted_median(&mut sizes)
}

fn usual_weight(weights: &[(f32, usize)]) -> f32 {
    let mut weights: Vec<(f32, usize)> = weights.iter().filter(|(weight, _)| *weight > 0.0).copied().collect();
    weighted_median(&mut weights)
}

fn weighted_median(values: &mut [(f32, usize)]) -> f32 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<usize>() / 2;
    let mut seen = 0;
    let middle = values.iter().find(|(_, weight)| {
        seen += weight;
        seen > half
    });
    middle.or(values.last()).map_or(0.0, |(value, _)| *value)
}

/// Languages by how many characters are in them.
fn languages(paragraphs: &[Paragraph]) -> Vec<String> {
    let mut counts: Vec<(usize, &str)> = Vec::new();
    for paragraph in paragraphs {
        let count = paragraph
            .words
            .iter()
            .map(|word| word.text.chars().count())
            .sum::<usize>();
        match counts.iter_mut().find(|(_, name)| *name == paragraph.language) {
            Some(entry) => entry.0 += count,
            None => counts.push((count, &paragraph.language)),
        }
    }
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: u32, texts: &[&str]) -> Vec<Word> {
        texts
            .iter()
            .map(|text| Word {
                text: (*text).to_owned(),
                confidence: 90.0,
                bbox: [0.0; 4],
                baseline: 0.0,
                size: 20.0,
                bold: false,
                spaced: true,
                line,
            })
            .collect()
    }

    #[test]
    fn lines_are_bold_as_a_whole_or_word_by_word() {
        let mut all = words(0, &["Terms", "and", "conditions"]);
        all.extend(words(1, &["one", "heavy", "word", "12"]));
        all.extend(words(2, &["plain", "words", "in", "plenty"]));
        let mut weights = [1.13, 1.12, 1.16, 1.0, 1.4, 1.02, 1.2, 1.0, 1.01, 0.98, 1.0].map(|weight| (weight, 10));
        weights[10].1 = 100;
        set_bold(&mut all, &weights);
        let bold: Vec<bool> = all.iter().map(|word| word.bold).collect();
        let plain = [false; 4];
        assert_eq!(bold[..3], [true; 3]);
        assert_eq!(bold[3..7], [false, true, false, false]);
        assert_eq!(bold[7..], plain);
    }
}
