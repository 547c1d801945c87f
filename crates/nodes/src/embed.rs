//! Embeddings: which texts are sent together, and where the vectors go.

use std::collections::HashMap;

use docmill_model::settings::EmbedLimits;
use docmill_model::{Element, ElementType};

/// What one call may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Texts.
    pub max_texts: usize,
    /// Code points of all texts together.
    pub max_chars: usize,
}

/// A text to be embedded, once for all elements that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'e> {
    /// The text as sent.
    pub text: &'e str,
    /// The elements whose vector this is.
    pub elements: Vec<usize>,
}

/// Why elements can't be embedded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A text is longer than the model takes. Nothing was sent.
    #[error(
        "element {index} (`{element_id}`) has {chars} characters, and the model takes at most {max}: put a chunk node with a smaller maximum before the embed node"
    )]
    TooLong {
        /// Position of the element.
        index: usize,
        /// Its id.
        element_id: String,
        /// Its length.
        chars: usize,
        /// The model's maximum.
        max: usize,
    },
    /// The answer has more or fewer vectors than texts were sent.
    #[error("{found} vectors came back for {sent} texts")]
    WrongCount {
        /// Texts sent.
        sent: usize,
        /// Vectors received.
        found: usize,
    },
    /// A vector has another length than the model's.
    #[error("a vector has {found} dimensions instead of {expected}")]
    WrongDimensions {
        /// As known of the model, or as the first vector had.
        expected: usize,
        /// As received.
        found: usize,
    },
    /// A number in a vector is not finite.
    #[error("a vector holds a value that is no finite number")]
    NotFinite,
}

/// Whether an element gets a vector: whether it has text. Page breaks and data of the document do not.
pub fn applies(element: &Element) -> bool {
    !matches!(element.kind, ElementType::PageBreak | ElementType::DocumentData) && !element.text.trim().is_empty()
}

/// What to send for `elements`: batches of texts in order, each text once.
///
/// # Errors
/// [`EmbedError::TooLong`] if the model is known not to take one of the texts.
pub fn plan<'e>(
    elements: &'e [Element],
    limits: Option<EmbedLimits>,
    batches: BatchLimits,
) -> Result<Vec<Vec<Item<'e>>>, EmbedError> {
    let max = limits.map(|limits| limits.max_chars);
    let chosen = elements.iter().enumerate().filter(|(_, element)| applies(element));
    let texts = chosen.map(|(index, element)| {
        let chars = element.text.chars().count();
        match max.filter(|max| chars > *max) {
            Some(max) => Err(EmbedError::TooLong {
                index,
                element_id: element.element_id.clone(),
                chars,
                max,
            }),
            None => Ok((index, element.text.as_str(), chars)),
        }
    });
    Ok(batch(texts.collect::<Result<_, _>>()?, batches))
}

/// As [`plan`], for the elements that `wanted` picks and with texts cut to what the model takes: enough to
/// tell what an element is about.
pub fn plan_clipped<'e>(
    elements: &'e [Element],
    wanted: impl Fn(&Element) -> bool,
    limits: Option<EmbedLimits>,
    batches: BatchLimits,
) -> Vec<Vec<Item<'e>>> {
    let max = limits.map_or(usize::MAX, |limits| limits.max_chars);
    let chosen = elements.iter().enumerate().filter(|(_, element)| wanted(element));
    let texts = chosen.map(|(index, element)| {
        let text = crate::chat::clip(&element.text, max);
        (index, text, text.chars().count())
    });
    batch(texts.collect(), batches)
}

fn batch(texts: Vec<(usize, &str, usize)>, limits: BatchLimits) -> Vec<Vec<Item<'_>>> {
    let mut batches: Vec<Vec<Item>> = Vec::new();
    let mut places = HashMap::<&str, (usize, usize)>::new();
    let mut chars_in_batch = 0;
    for (index, text, chars) in texts {
        if let Some(item) = places
            .get(text)
            .and_then(|&(batch, at)| batches.get_mut(batch)?.get_mut(at))
        {
            item.elements.push(index);
            continue;
        }
        let is_full =
            |batch: &Vec<Item>| batch.len() >= limits.max_texts.max(1) || chars_in_batch + chars > limits.max_chars;
        if batches.last().is_none_or(is_full) {
            batches.push(Vec::new());
            chars_in_batch = 0;
        }
        chars_in_batch += chars;
        let batch_index = batches.len() - 1;
        if let Some(batch) = batches.last_mut() {
            places.insert(text, (batch_index, batch.len()));
            batch.push(Item {
                text,
                elements: vec![index],
            });
        }
    }
    batches
}

/// Checks the vectors that came back for `sent` texts: their number, their length (`dimensions`, else that of
/// the first) and that they hold numbers.
///
/// # Errors
/// What is wrong with them.
pub fn check(vectors: &[Vec<f32>], sent: usize, dimensions: Option<usize>) -> Result<(), EmbedError> {
    if vectors.len() != sent {
        return Err(EmbedError::WrongCount {
            sent,
            found: vectors.len(),
        });
    }
    let expected = dimensions.or(vectors.first().map(Vec::len)).unwrap_or(0);
    for vector in vectors {
        if vector.len() != expected || vector.is_empty() {
            return Err(EmbedError::WrongDimensions {
                expected,
                found: vector.len(),
            });
        }
        if !vector.iter().all(|x| x.is_finite()) {
            return Err(EmbedError::NotFinite);
        }
    }
    Ok(())
}

/// Writes the vectors of one batch into its elements; `places` are the [`Item::elements`] of its items.
///
/// # Errors
/// As [`check`]; no element is changed then.
pub fn write(
    elements: &mut [Element],
    places: &[Vec<usize>],
    vectors: Vec<Vec<f32>>,
    dimensions: Option<usize>,
) -> Result<(), EmbedError> {
    check(&vectors, places.len(), dimensions)?;
    for (places, vector) in places.iter().zip(vectors) {
        for &index in places {
            if let Some(element) = elements.get_mut(index) {
                element.embeddings.clone_from(&vector);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(texts: &[&str]) -> Vec<Element> {
        texts
            .iter()
            .map(|text| Element::new(ElementType::CompositeElement, *text))
            .collect()
    }

    const LIMITS: BatchLimits = BatchLimits {
        max_texts: 2,
        max_chars: 10,
    };

    fn known(max_chars: usize) -> Option<EmbedLimits> {
        Some(EmbedLimits {
            dimensions: 2,
            max_chars,
        })
    }

    #[test]
    fn batches_keep_order_and_limits_and_send_equal_texts_once() {
        let elements = elements(&["a", "", "b", "a", "cccccc", "dddddd", "eeeeeeeeeeeeeee", "b"]);
        let batches = plan(&elements, None, LIMITS).unwrap();
        let texts: Vec<Vec<_>> = batches
            .iter()
            .map(|batch| batch.iter().map(|item| item.text).collect())
            .collect();
        assert_eq!(
            texts,
            [vec!["a", "b"], vec!["cccccc"], vec!["dddddd"], vec!["eeeeeeeeeeeeeee"]]
        );
        assert_eq!(batches[0][0].elements, [0, 3]);
        assert_eq!(batches[0][1].elements, [2, 7]);
    }

    #[test]
    fn a_text_too_long_is_told_before_anything_is_sent() {
        let elements = elements(&["ä", "äöü"]);
        assert!(plan(&elements, known(3), LIMITS).is_ok());
        assert!(matches!(
            plan(&elements, known(2), LIMITS),
            Err(EmbedError::TooLong { index: 1, chars: 3, .. })
        ));
        let clipped = plan_clipped(&elements, applies, known(2), LIMITS);
        assert_eq!(clipped[0][1].text, "äö");
    }

    #[test]
    fn vectors_are_checked_before_they_are_written() {
        let mut elements = elements(&["a", "b", "a"]);
        let places = [vec![0, 2], vec![1]];
        let mut write = |vectors: Vec<Vec<f32>>| write(&mut elements, &places, vectors, Some(2));
        assert_eq!(
            write(vec![vec![1.0, 2.0]]),
            Err(EmbedError::WrongCount { sent: 2, found: 1 })
        );
        let short = vec![vec![1.0, 2.0], vec![1.0]];
        assert_eq!(write(short), Err(EmbedError::WrongDimensions { expected: 2, found: 1 }));
        assert_eq!(
            write(vec![vec![1.0, 2.0], vec![1.0, f32::NAN]]),
            Err(EmbedError::NotFinite)
        );
        write(vec![vec![1.0, 2.0], vec![3.0, 4.0]]).unwrap();
        let vectors: Vec<_> = elements.iter().map(|element| element.embeddings.clone()).collect();
        assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]);
    }
}
