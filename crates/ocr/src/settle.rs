//! Which language each paragraph is in.
//!
//! A page is read in one language first. Paragraphs that come out well are asked which language their
//! words are; those that do not are read, one line of each, in one language of every script.

use crate::reading::{OcrError, Paragraph, Reader, Reading, Sheet, confidence};
use crate::tesseract::{Found, Segmentation};

/// Confidence from which a paragraph is taken to be in the script it was read in.
const SETTLED: f32 = 80.0;
/// Confidence from which a paragraph is taken to be in the script it was read in, when any language might
/// be: letters of another script read at 20 to 42, print that is hard to read mostly at 50 and more. Trying
/// costs: the models of nine scripts take as long to load as half a page to read.
const SAME_SCRIPT: f32 = 50.0;
/// How much better another language must do.
const BETTER: f32 = 5.0;
/// How much better than another that came first: those of more readers do.
const MARGIN: f32 = 4.0;
/// Confidence at which no other language is tried.
const SURE: f32 = 90.0;
/// How much worse the language that the words are of may do.
const NOT_WORSE: f32 = 3.0;
/// Letters that tell a language, and that make a page be read again in it.
const TELLING: usize = 30;
const TELLING_PAGE: usize = 120;
/// Paragraphs of a page whose language is looked for by trying.
const MAX_TRIED: usize = 24;
/// Paragraphs in a row that kept their language, after which no more are tried.
const MAX_KEPT: usize = 2;
/// Letters of a paragraph worth trying on a page that is mostly clear.
const WORTH_TRYING: usize = 12;
/// Share of a page's characters that are unclear for the page to be read again as a whole.
const MOSTLY: f32 = 0.9;

impl Reader {
    /// Finds the language of each paragraph and reads it again in that where it is another.
    pub(crate) fn settle(&mut self, sheet: &Sheet, mut reading: Reading) -> Result<Reading, OcrError> {
        if self.choices() < 2 {
            return Ok(reading);
        }
        let lead = self.leading(sheet, &reading)?;
        if let Some(lead) = lead {
            let again = self.read_sheet(sheet, &lead)?;
            if again.confidence() + NOT_WORSE >= reading.confidence() {
                reading = again;
            }
        }
        // Numbers and single words of an otherwise clear page are just hard to read.
        let (worth, least): (fn(&[Found]) -> usize, usize) = if reading.confidence() >= SETTLED {
            (letters, WORTH_TRYING)
        } else {
            (signs, 2)
        };
        let (mut tried, mut kept) = (0, 0);
        // Languages found on the page, the latest first: the next paragraph is likely in one of them.
        let mut known: Vec<String> = Vec::new();
        for paragraph in &mut reading.paragraphs {
            let unclear = self.is_unclear(paragraph) && worth(&paragraph.words) >= least;
            if unclear && tried < MAX_TRIED && kept < MAX_KEPT {
                tried += 1;
                match self.best_language(sheet, paragraph, &known)? {
                    Some(language) => {
                        kept = 0;
                        self.read_again(sheet, paragraph, &language, -BETTER)?;
                        known.retain(|other| *other != language);
                        known.insert(0, language);
                    }
                    None => kept += 1,
                }
            }
            if let Some(language) = self.told(&paragraph.words, &paragraph.language, TELLING) {
                self.read_again(sheet, paragraph, &language, NOT_WORSE)?;
            }
        }
        Ok(reading)
    }

    /// Whether a paragraph may be in another language than it was read in, to be found by trying.
    fn is_unclear(&self, paragraph: &Paragraph) -> bool {
        let settled = if self.named() { SETTLED } else { SAME_SCRIPT };
        confidence(paragraph.words.iter()) < settled
    }

    /// A language the whole page had better be read in.
    fn leading(&mut self, sheet: &Sheet, reading: &Reading) -> Result<Option<String>, OcrError> {
        let Some(first) = reading.paragraphs.first() else {
            return Ok(None);
        };
        let all: f32 = reading.words().map(|word| word.text.chars().count() as f32).sum();
        let is_unclear = |paragraph: &&Paragraph| self.is_unclear(paragraph);
        let unclear: f32 = reading
            .paragraphs
            .iter()
            .filter(is_unclear)
            .flat_map(|paragraph| &paragraph.words)
            .map(|word| word.text.chars().count() as f32)
            .sum();
        if unclear > MOSTLY * all {
            let widest = reading
                .paragraphs
                .iter()
                .filter(is_unclear)
                .max_by_key(|paragraph| letters(&paragraph.words));
            return match widest {
                Some(paragraph) => self.best_language(sheet, paragraph, &[]),
                None => Ok(None),
            };
        }
        let words: Vec<Found> = reading.words().cloned().collect();
        Ok(self.told(&words, &first.language, TELLING_PAGE))
    }

    /// The language, other than the one they were read in, that words are of.
    fn told(&self, words: &[Found], current: &str, least: usize) -> Option<String> {
        if letters(words) < least {
            return None;
        }
        let text = text_of(words);
        let info = whatlang::detect(&text).filter(whatlang::Info::is_reliable)?;
        let code = match info.lang() {
            // One model for simplified and one for traditional characters.
            whatlang::Lang::Cmn if current.starts_with("chi") => return None,
            lang => lang.code(),
        };
        self.permitted(code).filter(|model| model != current)
    }

    /// The language in which the longest line of a paragraph reads clearly better than it did; those of
    /// `first` are tried first.
    fn best_language(
        &mut self,
        sheet: &Sheet,
        paragraph: &Paragraph,
        first: &[String],
    ) -> Result<Option<String>, OcrError> {
        let Some((area, line)) = longest_line(&paragraph.words) else {
            return Ok(None);
        };
        let mut best = (score(line.iter()), None);
        let others = self.candidates().iter().filter(|name| !first.contains(name));
        let candidates: Vec<String> = first.iter().chain(others).cloned().collect();
        for language in candidates {
            if language == paragraph.language {
                continue;
            }
            let found = self.recognize(sheet, &language, area, Segmentation::Line)?;
            let score = score(found.words.iter());
            if score > best.0 + if best.1.is_none() { BETTER } else { MARGIN } {
                best = (score, Some(language));
                if score >= SURE {
                    break;
                }
            }
        }
        Ok(best.1)
    }

    /// Reads a paragraph in another language and keeps that if it is no worse than `slack` allows.
    fn read_again(
        &mut self,
        sheet: &Sheet,
        paragraph: &mut Paragraph,
        language: &str,
        slack: f32,
    ) -> Result<(), OcrError> {
        let area = grown(bounds(&paragraph.words), 4);
        let lines = paragraph.words.iter().filter(|word| word.begins_line).count();
        let segmentation = if lines > 1 {
            Segmentation::Block
        } else {
            Segmentation::Line
        };
        let found = self.recognize(sheet, language, area, segmentation)?;
        if score(found.words.iter()) + slack >= score(paragraph.words.iter()) && !found.words.is_empty() {
            paragraph.words = found.words;
            paragraph.language = language.to_owned();
        }
        Ok(())
    }
}

/// Confidence, lowered where hardly anything was read.
fn score<'w>(words: impl Iterator<Item = &'w Found> + Clone) -> f32 {
    let count = words.clone().map(|word| word.text.chars().count()).sum::<usize>();
    let thin = if count < 3 { 20.0 } else { 0.0 };
    confidence(words) - thin
}

fn signs(words: &[Found]) -> usize {
    let chars = words.iter().flat_map(|word| word.text.chars());
    chars.filter(|ch| ch.is_alphanumeric()).count()
}

fn letters(words: &[Found]) -> usize {
    let chars = words.iter().flat_map(|word| word.text.chars());
    chars.filter(|ch| ch.is_alphabetic()).count()
}

fn text_of(words: &[Found]) -> String {
    let mut text = String::new();
    for word in words {
        text.push_str(&word.text);
        text.push(' ');
    }
    text
}

fn longest_line(words: &[Found]) -> Option<([i32; 4], Vec<Found>)> {
    let mut lines: Vec<Vec<Found>> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if !word.begins_line => line.push(word.clone()),
            _ => lines.push(vec![word.clone()]),
        }
    }
    let line = lines.into_iter().max_by_key(|line| bounds(line)[2] - bounds(line)[0])?;
    let area = bounds(&line);
    Some((grown(area, (area[3] - area[1]) / 5 + 2), line))
}

fn bounds(words: &[Found]) -> [i32; 4] {
    words.iter().fold([i32::MAX, i32::MAX, 0, 0], |a, word| {
        let b = word.bbox;
        [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
    })
}

fn grown([x0, y0, x1, y1]: [i32; 4], by: i32) -> [i32; 4] {
    [
        x0.saturating_sub(by).max(0),
        y0.saturating_sub(by).max(0),
        x1.saturating_add(by),
        y1.saturating_add(by),
    ]
}
