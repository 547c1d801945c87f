//! Settings of the nodes that may call a model provider.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ChunkOptions;
use crate::provider::ModelRef;
use crate::words::text_enum;

/// Settings of chunking by similarity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarityOptions {
    /// Maximum length and the like; the soft maximum and the overlap are not applied.
    pub chunks: ChunkOptions,
    /// Cosine similarity from which two neighbours belong together; more than 0, less than 1.
    pub threshold: f64,
    /// Whose vectors are compared.
    pub embedder: ModelRef,
}

/// Settings of contextual chunking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextOptions {
    /// Who writes the context.
    pub model: ModelRef,
    /// Code points of the document sent along with each chunk; a longer document is left unchanged.
    pub context_char_limit: usize,
    /// Instructions in place of the built-in ones.
    pub user_prompt: Option<String>,
}

text_enum! {
    /// How sure a model says it is.
    Confidence {
        /// A guess.
        Low = "low",
        /// More likely than not.
        Medium = "medium",
        /// As good as certain.
        High = "high",
    }
}

impl Confidence {
    /// Whether this is as sure as `least`.
    pub fn is_at_least(self, least: Self) -> bool {
        self as u8 >= least as u8
    }
}

/// Settings of merging tables that run across pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableMergeOptions {
    /// Who judges.
    pub model: ModelRef,
    /// Verdicts less sure than this are not applied.
    pub confidence_threshold: Confidence,
    /// Calls at a time; at least 1.
    pub max_concurrency: usize,
}

text_enum! {
    /// What a prompter node does.
    PromptTask {
        /// Describes pictures.
        ImageDescription = "image_description",
        /// Summarises tables.
        TableDescription = "table_description",
        /// Reads a table's structure.
        Table2Html = "table2html",
        /// Finds named entities and how they relate.
        Ner = "ner",
        /// Reads the text in pictures.
        Ocr = "ocr",
    }
}

/// Settings of a prompter node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptOptions {
    /// What to do.
    pub task: PromptTask,
    /// Who does it. `None` in `twopass_table2html` without a provider: what the engine found stays.
    pub model: Option<ModelRef>,
    /// Only where the engine's own reading left something to do (`twopass_table2html`).
    pub second_pass: bool,
    /// The whole prompt in place of the built-in one, with `{{text}}` where the element's text goes.
    pub user_prompt: Option<String>,
    /// OCR: lower-case names of the element types whose text is replaced.
    pub block_types: Vec<String>,
}

/// What an embedding model takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedLimits {
    /// Numbers in a vector.
    pub dimensions: usize,
    /// Code points a text may have.
    pub max_chars: usize,
}

/// Settings of an embed node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedOptions {
    /// Whose vectors.
    pub model: ModelRef,
    /// What is known of the model.
    pub limits: Option<EmbedLimits>,
}

text_enum! {
    /// What an extractor node yields.
    OutputMode {
        /// The data in an element in front of the elements.
        Elements = "elements_with_extracted_data",
        /// The data alone.
        DataOnly = "extracted_data_only",
    }
}

/// Settings of an extractor node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtractOptions {
    /// How data are found.
    pub method: ExtractMethod,
    /// What comes out.
    pub output_mode: OutputMode,
}

/// How data are extracted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtractMethod {
    /// By a chat model.
    Llm(LlmExtraction),
    /// By regular expressions.
    Regex(Vec<Pattern>),
}

/// Extraction by a chat model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmExtraction {
    /// Who extracts.
    pub model: ModelRef,
    /// What the data look like, in the subset of [`crate::schema`].
    pub schema: Option<Value>,
    /// What to look for.
    pub guidance: Option<String>,
}

/// A named regular expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// The key of what it finds.
    pub name: String,
    /// In the syntax of Python's `re`, as given.
    pub pattern: String,
    /// In the syntax of the `regex` crate.
    pub translated: String,
}
