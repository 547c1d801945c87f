//! Combining small neighbouring sections.

use docmill_model::settings::ChunkOptions;

use super::Measure;
use super::pre_chunk::PreChunk;
use super::text;

/// Merges each pre-chunk into the one before while that one is shorter than
/// `combine_text_under_n_chars` and both together fit a chunk.
pub(super) fn combine(pre_chunks: Vec<PreChunk>, options: &ChunkOptions) -> Vec<PreChunk> {
    let mut combined: Vec<PreChunk> = Vec::with_capacity(pre_chunks.len());
    for next in pre_chunks {
        match combined.last_mut() {
            Some(last) if may_merge(last, &next, options) => merge(last, next, Measure::of(options)),
            _ => combined.push(next),
        }
    }
    combined
}

fn may_merge(last: &PreChunk, next: &PreChunk, options: &ChunkOptions) -> bool {
    if options.isolate_table && (last.has_table || next.has_table) {
        return false;
    }
    last.chars < options.combine_text_under_n_chars
        && merged_len(last, next, Measure::of(options)) <= options.max_characters
}

/// In tokens not exact, and settled when the chunk is made.
fn merged_len(last: &PreChunk, next: &PreChunk, measure: Measure) -> usize {
    if last.len == 0 || next.len == 0 {
        return last.len + next.len;
    }
    let prefix = measure.len(&next.text[..next.body_start]);
    last.len + measure.separator() + next.len.saturating_sub(prefix)
}

/// The overlap at the start of `next` goes, since the text it repeats now stands right before it.
fn merge(last: &mut PreChunk, next: PreChunk, measure: Measure) {
    last.len = merged_len(last, &next, measure);
    let chars = merged_len_in_chars(last, &next);
    last.has_table |= next.has_table;
    if last.text.is_empty() {
        last.body_start = next.body_start;
        last.text = next.text;
    } else {
        text::push_joined(&mut last.text, &next.text[next.body_start..], text::SEPARATOR);
    }
    last.chars = chars;
    last.members.extend(next.members);
}

fn merged_len_in_chars(last: &PreChunk, next: &PreChunk) -> usize {
    if last.chars == 0 || next.chars == 0 {
        return last.chars + next.chars;
    }
    last.chars + text::SEPARATOR_LEN + next.chars - text::len(&next.text[..next.body_start])
}
