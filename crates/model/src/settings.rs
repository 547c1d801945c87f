//! Typed settings of the nodes that run inside the child process.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::element::ElementType;

/// Which engine reads pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The cheapest engine that does the page justice.
    #[default]
    Auto,
    /// The text layer alone.
    Fast,
    /// Layout, tables and OCR.
    HiRes,
    /// OCR alone.
    OcrOnly,
}

/// Settings of a partition node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartitionOptions {
    /// Which engine reads pages.
    pub strategy: Strategy,
    /// Emit a `PageBreak` element between pages.
    pub include_page_breaks: bool,
    /// Look for tables in PDFs.
    pub infer_table_structure: bool,
    /// Element types to leave out of the output.
    pub exclude_elements: BTreeSet<ElementType>,
    /// XML: keep the tags, as one text.
    pub xml_keep_tags: bool,
    /// Charset of text files; detected when absent.
    pub encoding: Option<String>,
    /// Languages of the document, ISO 639; detected when empty.
    pub languages: Vec<String>,
    /// Element types (lower case) whose picture is asked for as `image_base64`.
    pub extract_image_block_types: Vec<String>,
    /// Keep `coordinates` in the output.
    pub coordinates: bool,
    /// Random-looking UUIDs instead of hash ids.
    pub unique_element_ids: bool,
    /// PPTX: include the notes of slides.
    pub include_slide_notes: bool,
    /// Number of the first page.
    pub starting_page_number: u32,
    /// Password of an encrypted document.
    pub password: Option<String>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::Auto,
            include_page_breaks: false,
            infer_table_structure: false,
            exclude_elements: BTreeSet::new(),
            xml_keep_tags: false,
            encoding: None,
            languages: Vec::new(),
            extract_image_block_types: Vec::new(),
            coordinates: false,
            unique_element_ids: false,
            include_slide_notes: true,
            starting_page_number: 1,
            password: None,
        }
    }
}

/// How elements are grouped into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkStrategy {
    /// Fill chunks up to the limit, whatever the elements are.
    ByCharacter,
    /// Start a new chunk at each `Title`.
    ByTitle,
    /// As by character, but never across a page.
    ByPage,
}

/// Settings of a chunk node. Lengths are Unicode code points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkOptions {
    /// How elements are grouped.
    pub strategy: ChunkStrategy,
    /// Hard maximum of a chunk's text; at least 1.
    pub max_characters: usize,
    /// Soft maximum: a chunk longer than this takes no further element; at most `max_characters`.
    pub new_after_n_chars: usize,
    /// Code points repeated from the end of a split text at the start of its continuation; less than
    /// `max_characters`.
    pub overlap: usize,
    /// Repeat the overlap between chunks of different elements too.
    pub overlap_all: bool,
    /// Keep the source elements in `orig_elements`.
    pub include_orig_elements: bool,
    /// Repeat a split table's header rows on each of its chunks.
    pub repeat_table_headers: bool,
    /// Pass tables through unchanged.
    pub skip_table_chunking: bool,
    /// Keep tables in chunks of their own.
    pub isolate_table: bool,
    /// By title: sections shorter than this are combined with the next; at most `max_characters`.
    pub combine_text_under_n_chars: usize,
    /// By title: a section may run across pages.
    pub multipage_sections: bool,
}

impl ChunkOptions {
    /// The defaults of a strategy with a hard maximum of 500 code points.
    pub fn new(strategy: ChunkStrategy) -> Self {
        Self {
            strategy,
            max_characters: 500,
            new_after_n_chars: 500,
            overlap: 0,
            overlap_all: false,
            include_orig_elements: true,
            repeat_table_headers: true,
            skip_table_chunking: false,
            isolate_table: true,
            combine_text_under_n_chars: 500,
            multipage_sections: true,
        }
    }
}
