//! Chunking: elements in, chunks of bounded length out.
//!
//! Elements are first gathered greedily into *pre-chunks* (`pre_chunk`); by title, small ones are then
//! combined (`combine`). What is still too long is split (`split`), tables along their rows
//! (`table`). Each chunk's metadata is consolidated from its members (`consolidate`).
//!
//! Every length is in Unicode code points, or in tokens (`measure`). Time and memory are linear in the input, for a given ratio
//! of overlap to maximum.

mod combine;
mod consolidate;
mod measure;
mod output;
mod pre_chunk;
mod similarity;
mod split;
mod split_tokens;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use docmill_model::settings::{ChunkOptions, ChunkStrategy};
use docmill_model::{Element, ElementType};

pub(crate) use measure::Measure;
use output::Output;
use pre_chunk::PreChunk;
pub use similarity::{chunk_by_similarity, needs_vector};

/// Groups `elements` into chunks: `CompositeElement`s of text, `Table`s, and `TableChunk`s where a table
/// did not fit. With `skip_table_chunking` tables pass through unchanged.
///
/// Every chunk says where it comes from: `source_element_ids` names its members and `page_spans` the
/// pages they stand on. Equal input gives equal output, byte for byte: chunk ids are content hashes as
/// for elements, and a `table_id` is derived from `scope` (a file id, say) and the table's element id.
///
/// Elements should have their ids. Options out of their valid range are moved into it: `max_characters`
/// to at least 1, `overlap` below `max_characters`, the soft maximum to at most the hard one.
///
/// `orig_elements`, and other metadata as large as the source, are repeated on every part of a split
/// element until the repetitions add up to 64 MiB in one call; from then on only the first part has them.
///
/// A `DocumentData` element is about the document, so it passes through unchanged, in front of the chunks.
///
/// With a tokenizer, maximum, soft maximum and overlap are in tokens: no chunk has more, save where a single
/// character has, and an overlap is a number of whole words of at most that many tokens.
pub fn chunk(elements: Vec<Element>, options: &ChunkOptions, scope: &str) -> Vec<Element> {
    let options = &within_range(options);
    let (data, elements) = split_off_data(elements);
    let mut pre_chunks = pre_chunk::gather(elements, options);
    if options.strategy == ChunkStrategy::ByTitle {
        pre_chunks = combine::combine(pre_chunks, options);
    }
    finish(data, pre_chunks, options, scope)
}

fn split_off_data(elements: Vec<Element>) -> (Vec<Element>, Vec<Element>) {
    let is_data = |element: &Element| element.kind == ElementType::DocumentData;
    if !elements.iter().any(is_data) {
        return (Vec::new(), elements);
    }
    elements.into_iter().partition(is_data)
}

fn finish(data: Vec<Element>, pre_chunks: Vec<PreChunk>, options: &ChunkOptions, scope: &str) -> Vec<Element> {
    let mut output = Output::new(options, scope);
    for element in data {
        output.pass(element);
    }
    for pre_chunk in pre_chunks {
        if pre_chunk.is_lone_table() {
            table::chunk(pre_chunk, &mut output);
        } else {
            output.push_text(pre_chunk);
        }
    }
    output.finish()
}

fn within_range(options: &ChunkOptions) -> ChunkOptions {
    let mut options = options.clone();
    options.max_characters = options.max_characters.max(1);
    options.new_after_n_chars = options.new_after_n_chars.min(options.max_characters);
    options.overlap = options.overlap.min(options.max_characters - 1);
    options
}
