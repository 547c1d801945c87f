//! Recognised words of elements: how sure the recogniser was of each, and where it stands.

use docmill_model::Element;
use serde_json::{Value, json};

use super::engine::ReadWord;

/// Key of an element's mean confidence, 0 to 100, in its metadata.
pub(super) const CONFIDENCE: &str = "ocr_confidence";
/// Key of an element's words, `[text, x1, y1, x2, y2, confidence]` each, in the unit of its coordinates.
pub(super) const WORDS: &str = "ocr_words";

/// The recognised words of a page by the height they stand at.
#[derive(Clone, Debug, Default)]
pub(super) struct PageWords {
    /// From the top down by their middles, each with its place in the order of reading.
    words: Vec<(usize, ReadWord)>,
    /// Largest half of a word's height.
    reach: f32,
}

impl PageWords {
    pub(super) fn new(words: Vec<ReadWord>) -> Self {
        let mut words: Vec<(usize, ReadWord)> = words.into_iter().enumerate().collect();
        words.sort_by(|a, b| middle(a.1.bbox).1.total_cmp(&middle(b.1.bbox).1).then(a.0.cmp(&b.0)));
        let reach = words.iter().map(|(_, word)| (word.bbox[3] - word.bbox[1]) / 2.0);
        Self {
            reach: reach.fold(0.0, f32::max),
            words,
        }
    }

    /// The words whose middles are in a box, in the order they were read.
    pub(super) fn inside(&self, [x0, y0, x1, y1]: [f32; 4]) -> Vec<&ReadWord> {
        // Boxes of lines may be slimmer than those of their words.
        let slack = self.reach.min(2.0);
        let start = self.words.partition_point(|(_, word)| middle(word.bbox).1 < y0 - slack);
        let mut found: Vec<&(usize, ReadWord)> = self
            .words
            .iter()
            .skip(start)
            .take_while(|(_, word)| middle(word.bbox).1 <= y1 + slack)
            .filter(|(_, word)| (x0 - slack..=x1 + slack).contains(&middle(word.bbox).0))
            .collect();
        found.sort_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, word)| word).collect()
    }
}

fn middle([x0, y0, x1, y1]: [f32; 4]) -> (f32, f32) {
    ((x0 + x1) / 2.0, (y0 + y1) / 2.0)
}

/// Notes an element's confidence, and its words, given with their boxes in the unit of its coordinates, when
/// they are asked for.
pub(super) fn note(element: &mut Element, words: &[(&ReadWord, [f64; 4])], with_boxes: bool) {
    let (mut sum, mut count) = (0.0, 0.0);
    for (word, _) in words {
        let length = word.text.chars().count() as f64;
        sum += f64::from(word.confidence) * length;
        count += length;
    }
    if count == 0.0 {
        return;
    }
    let extra = &mut element.metadata.extra;
    extra.insert(CONFIDENCE.to_owned(), json!((sum / count).round() as u32));
    if with_boxes {
        let word = |(word, [x0, y0, x1, y1]): &(&ReadWord, [f64; 4])| {
            json!([word.text, x0, y0, x1, y1, word.confidence.round() as u32])
        };
        extra.insert(WORDS.to_owned(), words.iter().map(word).collect::<Vec<Value>>().into());
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::ElementType;

    use super::*;

    fn word(text: &str, bbox: [f32; 4], confidence: f32) -> ReadWord {
        ReadWord {
            text: text.into(),
            bbox,
            confidence,
        }
    }

    #[test]
    fn words_are_found_by_their_place_and_come_in_the_order_they_were_read() {
        let words = PageWords::new(vec![
            word("second", [10.0, 30.0, 40.0, 40.0], 80.0),
            word("line", [50.0, 29.0, 70.0, 41.0], 80.0),
            word("first", [10.0, 10.0, 40.0, 20.0], 80.0),
            word("aside", [200.0, 30.0, 240.0, 40.0], 80.0),
        ]);
        let found = |bbox| -> Vec<&str> { words.inside(bbox).iter().map(|word| word.text.as_str()).collect() };
        assert_eq!(found([0.0, 25.0, 100.0, 45.0]), ["second", "line"]);
        assert_eq!(found([0.0, 0.0, 300.0, 100.0]), ["second", "line", "first", "aside"]);
        assert!(found([0.0, 60.0, 300.0, 100.0]).is_empty());
    }

    #[test]
    fn long_words_weigh_more() {
        let (a, b) = (word("a", [0.0; 4], 10.0), word("bbb", [0.0; 4], 90.0));
        let bbox = [1.0, 2.0, 3.0, 4.0];
        let mut element = Element::new(ElementType::NarrativeText, "a bbb");
        note(&mut element, &[(&a, bbox), (&b, bbox)], true);
        assert_eq!(element.metadata.extra[CONFIDENCE], 70);
        assert_eq!(element.metadata.extra[WORDS][1], json!(["bbb", 1.0, 2.0, 3.0, 4.0, 90]));
        let mut without = Element::new(ElementType::NarrativeText, "");
        note(&mut without, &[], true);
        assert!(without.metadata.extra.is_empty());
    }
}
