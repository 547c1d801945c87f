//! Chunks of a table: the whole of it when it fits, otherwise parts along its rows.

mod pack;
mod spans;

use docmill_model::settings::ChunkOptions;
use docmill_model::{ElementType, Metadata};

use super::Measure;
use super::output::Output;
use super::pre_chunk::PreChunk;
use crate::markup::grid::Grid;

/// Below this maximum a row's markup leaves too little room for its text, so parts are text alone.
const MIN_MAX_FOR_ROWS: usize = 50;

/// The same in tokens.
const MIN_MAX_TOKENS_FOR_ROWS: usize = 15;

/// One chunk of a split table.
#[derive(Debug, Default, PartialEq)]
struct Part {
    text: String,
    html: Option<String>,
    /// Header rows repeated at the start.
    carried_header_rows: u32,
}

impl Part {
    fn of_text(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Makes the chunks of a pre-chunk that is one table; none when it has no text.
pub(super) fn chunk(pre_chunk: PreChunk, output: &mut Output<'_>) {
    let options = output.options;
    if options.skip_table_chunking {
        return pre_chunk.members.into_iter().for_each(|table| output.pass(table));
    }
    let Some(table) = pre_chunk.members.first().filter(|_| !pre_chunk.text.is_empty()) else {
        return;
    };
    let text = match pre_chunk.prefix() {
        "" => table.text.trim().to_owned(),
        prefix => format!("{prefix}\n{}", table.text.trim()),
    };
    let grid = table
        .metadata
        .text_as_html
        .as_deref()
        .map(Grid::parse)
        .filter(|grid| !grid.rows.is_empty());
    let id = table.element_id.clone();
    let mut metadata = output.metadata(pre_chunk.members);
    metadata.text_as_html = grid.as_ref().map(Grid::to_html);

    let max = options.max_characters;
    let measure = Measure::of(options);
    let min_max = if measure.in_tokens() {
        MIN_MAX_TOKENS_FOR_ROWS
    } else {
        MIN_MAX_FOR_ROWS
    };
    let fits = |text: &str| measure.len(text) <= max;
    if fits(&text) && metadata.text_as_html.as_deref().is_none_or(fits) {
        return output.push(ElementType::Table, text, metadata);
    }
    metadata.text_as_html = None;
    let parts = match grid.filter(Grid::has_text) {
        Some(grid) if max >= min_max => fitting(pack::pack(&grid.measured(measure), options), options),
        _ => measure
            .split(&text, max, options.overlap)
            .into_iter()
            .map(Part::of_text)
            .collect(),
    };
    push_parts(parts, &id, metadata, output);
}

/// Tokens of a joined text are not exactly those of its cells, so a part may turn out too long. Such a part
/// is split as text.
fn fitting(parts: Vec<Part>, options: &ChunkOptions) -> Vec<Part> {
    let measure = Measure::of(options);
    let max = options.max_characters;
    if !measure.in_tokens() {
        return parts;
    }
    let split = |part: Part| {
        if measure.len(&part.text) <= max {
            return vec![part];
        }
        let pieces = measure.split(&part.text, max, 0);
        pieces.into_iter().map(Part::of_text).collect()
    };
    parts.into_iter().flat_map(split).collect()
}

fn push_parts(parts: Vec<Part>, element_id: &str, metadata: Metadata, output: &mut Output<'_>) {
    let table_id = output.table_id(element_id);
    let metadata = output.part_metadata(metadata, parts.len());
    for (index, (part, mut metadata)) in (0..).zip(parts.into_iter().zip(metadata)) {
        metadata.text_as_html = part.html;
        metadata.table_id = Some(table_id.clone());
        metadata.chunk_index = Some(index);
        metadata.num_carried_over_header_rows = Some(part.carried_header_rows);
        output.push(ElementType::TableChunk, part.text, metadata);
    }
}
