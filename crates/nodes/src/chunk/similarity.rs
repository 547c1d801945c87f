//! Chunks of neighbouring elements that are about the same.

use docmill_model::Element;
use docmill_model::settings::{ChunkOptions, ChunkStrategy};

use super::pre_chunk::{Builder, PreChunk};
use super::{finish, split_off_data, within_range};

/// Whether chunking by similarity asks for a vector of this element: its text decides where it goes. Tables
/// are chunks of their own.
pub fn needs_vector(element: &Element, options: &ChunkOptions) -> bool {
    let stands_alone = element.kind.is_table() && options.isolate_table;
    !stands_alone && !element.text.trim().is_empty()
}

/// As [`super::chunk`], with a new chunk wherever the next element is about something else: where the cosine
/// of its vector and the mean of the vectors in the chunk is below `threshold`. Neighbours that are alike
/// stay together as long as they fit `max_characters`; soft maximum and overlap are not applied.
///
/// `vectors` runs parallel to `elements`. An element without a vector, or with one of another length than
/// the chunk's, goes with the element before it.
pub fn chunk_by_similarity(
    elements: Vec<Element>,
    vectors: &[Option<Vec<f32>>],
    options: &ChunkOptions,
    threshold: f64,
    scope: &str,
) -> Vec<Element> {
    let mut options = within_range(options);
    options.strategy = ChunkStrategy::BySimilarity;
    options.new_after_n_chars = options.max_characters;
    options.overlap = 0;
    options.overlap_all = false;
    let vectors = vectors.iter().map(Option::as_deref).chain(std::iter::repeat(None));
    let pairs: Vec<_> = elements.into_iter().zip(vectors).collect();
    let (data, _) = split_off_data(
        pairs
            .iter()
            .map(|(element, _)| element)
            .filter(is_data)
            .cloned()
            .collect(),
    );
    let rest = pairs.into_iter().filter(|(element, _)| !is_data(&element));
    let pre_chunks = gather(rest, &options, threshold);
    finish(data, pre_chunks, &options, scope)
}

fn is_data(element: &&Element) -> bool {
    element.kind == docmill_model::ElementType::DocumentData
}

fn gather<'v>(
    elements: impl Iterator<Item = (Element, Option<&'v [f32]>)>,
    options: &ChunkOptions,
    threshold: f64,
) -> Vec<PreChunk> {
    let mut builder = Builder::new(options);
    let mut topic = Topic::default();
    for (element, vector) in elements {
        let raw_len = builder.measure.len(&element.text);
        let direction = vector.and_then(direction);
        let alike = direction
            .as_deref()
            .is_none_or(|direction| topic.is_about(direction, threshold));
        if !alike || !builder.fits(&element, raw_len) {
            builder.flush();
            topic = Topic::default();
        }
        if let Some(direction) = direction {
            topic.add(&direction);
        }
        builder.add(element, raw_len);
    }
    builder.flush();
    builder.done
}

/// The vector at length 1; `None` if it has no direction.
fn direction(vector: &[f32]) -> Option<Vec<f64>> {
    let length = vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= f64::MIN_POSITIVE {
        return None;
    }
    Some(vector.iter().map(|&x| f64::from(x) / length).collect())
}

/// What a chunk is about: the sum of the directions of its elements.
#[derive(Default)]
struct Topic {
    sum: Vec<f64>,
}

impl Topic {
    fn is_about(&self, direction: &[f64], threshold: f64) -> bool {
        if self.sum.len() != direction.len() {
            return true;
        }
        let dot: f64 = self.sum.iter().zip(direction).map(|(a, b)| a * b).sum();
        let length = self.sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Opposite directions cancel out, and then nothing is like their sum.
        length > 1e-9 && dot / length >= threshold
    }

    fn add(&mut self, direction: &[f64]) {
        if self.sum.is_empty() {
            self.sum = direction.to_vec();
        } else if self.sum.len() == direction.len() {
            for (sum, x) in self.sum.iter_mut().zip(direction) {
                *sum += x;
            }
        }
    }
}
