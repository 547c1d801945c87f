//! The chunks made so far.

use std::collections::HashMap;

use docmill_model::element::{assign_element_ids, make_ids_unique};
use docmill_model::settings::ChunkOptions;
use docmill_model::{Element, ElementType, Metadata, orig_elements};

use super::Measure;
use super::consolidate::{consolidate, strip_bulk};
use super::pre_chunk::PreChunk;

/// Bytes of metadata repeated on the second and later parts of split elements, in one call. Without a
/// limit a long element with all its own text in `orig_elements` would make output of quadratic size.
const MAX_REPEATED_BYTES: usize = 64 << 20;

pub(super) struct Output<'o> {
    pub(super) options: &'o ChunkOptions,
    scope: &'o str,
    chunks: Vec<Element>,
    /// Places in `chunks` of elements passed through, with the ids they keep.
    passed: Vec<(usize, String)>,
    /// How often a table with this id was split already.
    split_tables: HashMap<String, u32>,
    repeatable_bytes: usize,
}

impl<'o> Output<'o> {
    pub(super) fn new(options: &'o ChunkOptions, scope: &'o str) -> Self {
        Self {
            options,
            scope,
            chunks: Vec::new(),
            passed: Vec::new(),
            split_tables: HashMap::new(),
            repeatable_bytes: MAX_REPEATED_BYTES,
        }
    }

    /// The chunks, with ids.
    pub(super) fn finish(self) -> Vec<Element> {
        let mut chunks = self.chunks;
        assign_element_ids(&mut chunks);
        for (index, id) in self.passed {
            if let Some(chunk) = chunks.get_mut(index) {
                chunk.element_id = id;
            }
        }
        chunks
    }

    /// Passes an element through as it is.
    pub(super) fn pass(&mut self, element: Element) {
        self.passed.push((self.chunks.len(), element.element_id.clone()));
        self.chunks.push(element);
    }

    /// Makes the chunks of a pre-chunk of text; none when it has no text.
    pub(super) fn push_text(&mut self, pre_chunk: PreChunk) {
        if pre_chunk.text.is_empty() {
            return;
        }
        let PreChunk { members, text, len, .. } = pre_chunk;
        let measure = Measure::of(self.options);
        // Tokens of a joined text are not exactly those of its parts.
        let len = if measure.in_tokens() { measure.len(&text) } else { len };
        let metadata = self.metadata(members);
        if len <= self.options.max_characters {
            self.push(ElementType::CompositeElement, text, metadata);
            return;
        }
        let pieces = measure.split(&text, self.options.max_characters, self.options.overlap);
        let parts = self.part_metadata(metadata, pieces.len());
        for (piece, metadata) in pieces.into_iter().zip(parts) {
            self.push(ElementType::CompositeElement, piece, metadata);
        }
    }

    /// Adds a chunk.
    pub(super) fn push(&mut self, kind: ElementType, text: String, metadata: Metadata) {
        let mut chunk = Element::new(kind, text);
        chunk.metadata = metadata;
        self.chunks.push(chunk);
    }

    /// The metadata of a chunk made of `members`.
    pub(super) fn metadata(&self, mut members: Vec<Element>) -> Metadata {
        let mut metadata = consolidate(&members);
        if self.options.include_orig_elements {
            for member in &mut members {
                member.metadata.orig_elements = None;
            }
            metadata.orig_elements = Some(orig_elements::encode(&members));
        }
        metadata
    }

    /// The metadata of `count` parts of what `whole` describes. Every part has all of it, until the limit
    /// on repetition is reached.
    pub(super) fn part_metadata(&mut self, whole: Metadata, count: usize) -> Vec<Metadata> {
        let size = |metadata: &Metadata| serde_json::to_string(metadata).map_or(0, |json| json.len());
        let mut lean = whole.clone();
        strip_bulk(&mut lean);
        let bulk = size(&whole).saturating_sub(size(&lean)).max(1);
        let repetitions = (self.repeatable_bytes / bulk).min(count.saturating_sub(1));
        self.repeatable_bytes -= repetitions * bulk;
        (0..count)
            .map(|index| {
                let mut part = if index <= repetitions {
                    whole.clone()
                } else {
                    lean.clone()
                };
                part.is_continuation = (index > 0).then_some(true);
                part
            })
            .collect()
    }

    /// An id for a table about to be split: equal for equal tables in equal documents.
    pub(super) fn table_id(&mut self, element_id: &str) -> String {
        let count = self.split_tables.entry(element_id.to_owned()).or_default();
        let mut named = [Element::new(ElementType::Table, "")];
        named[0].element_id = format!("table {element_id} {count}");
        *count += 1;
        make_ids_unique(&mut named, self.scope);
        let [table] = named;
        table.element_id
    }
}
