//! Typed settings of the nodes that run inside the child process.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::element::ElementType;
use crate::provider::{ModelRef, Provider};
use crate::words::text_enum;

mod paid;

pub use paid::{
    Confidence, ContextOptions, EmbedLimits, EmbedOptions, ExtractMethod, ExtractOptions, LlmExtraction, OutputMode,
    Pattern, PromptOptions, PromptTask, SimilarityOptions, TableMergeOptions,
};

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
    /// Pages may, or must, be read by a vision model.
    pub vlm: Option<VlmOptions>,
}

text_enum! {
    /// What a vision model writes for a page.
    PageFormat {
        /// HTML.
        Html = "text/html",
        /// A JSON list of elements.
        Json = "application/json",
    }
}

/// Settings of a partition node that reads pages with a vision model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlmOptions {
    /// Each page goes to the cheapest engine that does it justice, instead of every page to the model.
    pub is_dynamic: bool,
    /// The local text engine may take pages.
    pub allow_fast: bool,
    /// Who reads pages; `None` where no provider is configured, which only dynamic routing allows.
    pub model: Option<ModelRef>,
    /// What the model writes.
    pub output_format: PageFormat,
    /// Write `text_as_html` with line breaks between blocks.
    pub format_html: bool,
}

impl VlmOptions {
    /// The provider, if pages can go to one.
    pub fn provider(&self) -> Option<Provider> {
        self.model.as_ref().map(|model| model.provider)
    }
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
            vlm: None,
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
    /// Keep together what is about the same, by the vectors of the elements.
    BySimilarity,
}

text_enum! {
    /// A byte pair encoding that tokens are counted in.
    Tokenizer {
        /// Of GPT-4, GPT-3.5 and the third generation of embedding models.
        Cl100k = "cl100k_base",
        /// Of GPT-4o and later models.
        O200k = "o200k_base",
        /// Of Codex models.
        P50k = "p50k_base",
        /// Of GPT-3 models.
        R50k = "r50k_base",
    }
}

impl Tokenizer {
    /// The tokenizer of this name, or of the model of this name.
    pub fn of(name: &str) -> Option<Self> {
        // Longer beginnings stand before shorter ones.
        const MODELS: &[(&str, Tokenizer)] = &[
            ("gpt-4o", Tokenizer::O200k),
            ("gpt-4.1", Tokenizer::O200k),
            ("gpt-4", Tokenizer::Cl100k),
            ("gpt-3.5", Tokenizer::Cl100k),
            ("gpt-35", Tokenizer::Cl100k),
            ("gpt-5", Tokenizer::O200k),
            ("chatgpt-4o", Tokenizer::O200k),
            ("o1", Tokenizer::O200k),
            ("o3", Tokenizer::O200k),
            ("o4", Tokenizer::O200k),
            ("text-embedding-", Tokenizer::Cl100k),
            ("text-davinci-00", Tokenizer::P50k),
            ("code-", Tokenizer::P50k),
            ("davinci", Tokenizer::R50k),
            ("gpt2", Tokenizer::R50k),
        ];
        Self::parse(name).or_else(|| {
            let model = MODELS.iter().find(|(start, _)| name.starts_with(start));
            model.map(|(_, tokenizer)| *tokenizer)
        })
    }
}

/// Settings of a chunk node. Lengths are Unicode code points, or tokens if there is a tokenizer.
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
    /// By title: sections shorter than this are combined with the next. Always code points; without
    /// a tokenizer at most `max_characters`.
    pub combine_text_under_n_chars: usize,
    /// By title: a section may run across pages.
    pub multipage_sections: bool,
    /// Count `max_characters`, `new_after_n_chars` and `overlap` in tokens of this kind.
    #[serde(default)]
    pub tokenizer: Option<Tokenizer>,
    /// Afterwards put a sentence of context before each chunk, written by this model.
    #[serde(default)]
    pub contextual: Option<ContextOptions>,
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
            tokenizer: None,
            contextual: None,
        }
    }
}
