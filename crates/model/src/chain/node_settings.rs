//! From settings to typed options: partitioners and chunkers.

use super::fields::{Fields, clip, number_of};
use super::paid_settings::{available_or_own_key, provider_missing};
use super::{NodeWork, Problem};
use crate::element::ElementType;
use crate::provider::{ModelRef, Provider};
use crate::settings::{
    ChunkOptions, ChunkStrategy, ContextOptions, PageFormat, PartitionOptions, SimilarityOptions, Strategy, Tokenizer,
    VlmOptions,
};

/// A chunk's maximum when none is given.
const DEFAULT_MAX: usize = 500;

/// Longest document sent along with its chunks when contextual chunking has no settings of its own.
const DEFAULT_CONTEXT_CHARS: usize = 15_000;

pub(super) fn partition(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let mut options = PartitionOptions::default();
    match fields.text("strategy") {
        Some("auto") => options.strategy = Strategy::Auto,
        Some("fast") => options.strategy = Strategy::Fast,
        Some("hi_res") => options.strategy = Strategy::HiRes,
        Some("ocr_only") => options.strategy = Strategy::OcrOnly,
        Some("vlm") => fields.problem(
            "strategy",
            "value_error",
            "for a vision model use a partition node of subtype `vlm`; here use `auto`, `fast`, `hi_res` or `ocr_only`",
        ),
        Some(_) => fields.problem(
            "strategy",
            "literal_error",
            "input should be `auto`, `fast`, `hi_res` or `ocr_only`",
        ),
        // The interface calls it required, yet a published template has none.
        None => {}
    }
    common(&mut fields, &mut options);
    options.include_page_breaks = fields.boolean("include_page_breaks");
    options.infer_table_structure =
        fields.boolean("infer_table_structure") || fields.boolean("pdf_infer_table_structure");
    options.xml_keep_tags = fields.boolean("xml_keep_tags");
    options.include_slide_notes = fields.boolean("include_slide_notes");
    options.coordinates = fields.boolean("coordinates");
    options.encoding = fields.text("encoding").map(str::to_owned);
    options.password = fields.text("password").map(str::to_owned);
    if let Some(number) = fields.count("starting_page_number") {
        options.starting_page_number = u32::try_from(number).unwrap_or(1);
    }
    let languages = fields.texts("languages").into_iter();
    options.languages = languages
        .filter(|language| !language.is_empty() && *language != "auto")
        .map(str::to_owned)
        .collect();
    options.unique_element_ids = fields.boolean("unique_element_ids");
    fields.finish(NodeWork::Partition(options))
}

pub(super) fn vlm(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let mut options = PartitionOptions::default();
    let is_dynamic = fields.boolean("is_dynamic");
    let allow_fast = fields.boolean("allow_fast");
    if is_dynamic && !allow_fast {
        fields.problem(
            "allow_fast",
            "value_error",
            "with `is_dynamic: true` pages go to the local engines unless they are hard, so `allow_fast` should be true; \
             to have a model read every page use `is_dynamic: false`",
        );
    }
    let model = vlm_model(&mut fields, is_dynamic);
    common(&mut fields, &mut options);
    options.unique_element_ids = fields.boolean("unique_element_ids");
    options.infer_table_structure = true;
    let format = fields.text("output_format").and_then(PageFormat::parse);
    options.vlm = Some(VlmOptions {
        is_dynamic,
        allow_fast,
        model,
        output_format: format.unwrap_or(PageFormat::Html),
        format_html: fields.boolean("format_html"),
    });
    fields.finish(NodeWork::Partition(options))
}

/// The model that reads pages. Without one, pages stay with the local engines if `optional`.
fn vlm_model(fields: &mut Fields, optional: bool) -> Option<ModelRef> {
    let left_open = !fields.has("provider") && !fields.has("model");
    let named = fields.text("provider").and_then(Provider::parse);
    let model = match named {
        Some(provider) if available_or_own_key(fields, provider) => {
            let model = fields.text("model").or(provider.default_chat_model());
            if model.is_none() {
                fields.problem("model", "missing", "the provider has no default model");
            }
            model.map(|model| ModelRef {
                provider,
                model: model.to_owned(),
            })
        }
        Some(_) if !left_open => None,
        // `auto`, or the default.
        _ => fields.available.chat_model(),
    };
    if model.is_none() && !optional {
        let msg = provider_missing(named.unwrap_or(Provider::Anthropic));
        fields.problem(
            "provider",
            "value_error",
            format!("{msg}; or let pages go to the local engines with `is_dynamic: true` and `allow_fast: true`"),
        );
    }
    model
}

/// Settings all partition subtypes take.
fn common(fields: &mut Fields, options: &mut PartitionOptions) {
    for name in fields.texts("exclude_elements") {
        match name.parse::<ElementType>() {
            Ok(kind) => {
                options.exclude_elements.insert(kind);
            }
            Err(_) => fields.problem(
                "exclude_elements",
                "literal_error",
                format!("unknown element type `{}`", clip(name)),
            ),
        }
    }
    let blocks = fields.texts("extract_image_block_types").into_iter();
    options.extract_image_block_types = blocks.map(str::to_ascii_lowercase).collect();
}

pub(super) fn chunk(mut fields: Fields, strategy: ChunkStrategy) -> Result<NodeWork, Vec<Problem>> {
    let mut options = chunk_options(&mut fields, strategy);
    if fields.text("contextual_chunking_strategy") == Some("v1") {
        match fields.available.chat_model() {
            Some(model) => {
                options.contextual = Some(ContextOptions {
                    model,
                    context_char_limit: DEFAULT_CONTEXT_CHARS,
                    user_prompt: None,
                });
            }
            None => fields.problem(
                "contextual_chunking_strategy",
                "value_error",
                "contextual chunking needs a model provider, and none has credentials: set `providers.<name>.api_key`",
            ),
        }
    }
    fields.finish(NodeWork::Chunk(options))
}

pub(super) fn chunk_by_similarity(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let chunks = chunk_options(&mut fields, ChunkStrategy::BySimilarity);
    if fields.text("contextual_chunking_strategy") == Some("v1") {
        fields.problem(
            "contextual_chunking_strategy",
            "value_error",
            "use a node `chunk_by_contextual` behind this one",
        );
    }
    let threshold = fields.get("similarity_threshold").and_then(number_of).unwrap_or(0.5);
    let Some(embedder) = fields.available.embedder() else {
        fields.problem_of_subtype(
            "`chunk_by_similarity` compares embeddings, and there is neither a local model (setting \
             `providers.local.model_dir`) nor a model provider with credentials (`providers.<name>.api_key`)",
        );
        return fields.fail();
    };
    fields.finish(NodeWork::ChunkBySimilarity(SimilarityOptions {
        chunks,
        threshold,
        embedder,
    }))
}

fn chunk_options(fields: &mut Fields, strategy: ChunkStrategy) -> ChunkOptions {
    let mut options = ChunkOptions::new(strategy);
    let max = read_max(fields, &mut options);
    options.overlap = fields.count("overlap").unwrap_or(0);
    if options.overlap >= max {
        let msg = format!("input should be less than the maximum ({max})");
        fields.problem("overlap", "less_than", msg);
    }
    options.overlap_all = fields.boolean("overlap_all");
    options.include_orig_elements = fields.boolean("include_orig_elements");
    options.repeat_table_headers = fields.boolean("repeat_table_headers");
    options.isolate_table = fields.boolean("isolate_table");
    options.skip_table_chunking = fields.boolean("skip_table_chunking");
    if options.skip_table_chunking && !options.isolate_table {
        fields.problem(
            "skip_table_chunking",
            "value_error",
            "true requires isolate_table to be true",
        );
    }
    options.combine_text_under_n_chars = max;
    if strategy == ChunkStrategy::ByTitle {
        options.multipage_sections = fields.boolean("multipage_sections");
        let name = if fields.has("combine_text_under_n_chars") {
            "combine_text_under_n_chars"
        } else {
            "combine_under_n_chars"
        };
        options.combine_text_under_n_chars = fields.count(name).unwrap_or(max);
        if options.combine_text_under_n_chars > max && options.tokenizer.is_none() {
            let msg = format!("input should be at most max_characters ({max})");
            fields.problem(name, "less_than_equal", msg);
        }
    }
    options
}

/// Reads the maximum and the soft maximum, in characters or in tokens.
fn read_max(fields: &mut Fields, options: &mut ChunkOptions) -> usize {
    let in_tokens = fields.has("max_tokens");
    if in_tokens {
        for name in ["max_characters", "new_after_n_chars"] {
            if fields.has(name) {
                fields.problem(
                    name,
                    "value_error",
                    "counts characters, while `max_tokens` counts tokens: give one of them",
                );
            }
        }
        match fields.text("tokenizer") {
            Some(name) => {
                options.tokenizer = Tokenizer::of(name);
                if options.tokenizer.is_none() {
                    let known: Vec<_> = Tokenizer::ALL.iter().map(|one| one.as_str()).collect();
                    let msg = format!(
                        "unknown tokenizer `{}`; known are {} and models that use one of them",
                        clip(name),
                        known.join(", ")
                    );
                    fields.problem("tokenizer", "value_error", msg);
                }
            }
            None => fields.problem(
                "tokenizer",
                "missing",
                "`max_tokens` needs a tokenizer, such as `o200k_base`",
            ),
        }
    } else {
        for name in ["tokenizer", "new_after_n_tokens"] {
            if fields.has(name) {
                fields.problem(name, "value_error", "has no meaning without `max_tokens`");
            }
        }
    }
    let (max, soft) = match in_tokens {
        true => ("max_tokens", "new_after_n_tokens"),
        false => ("max_characters", "new_after_n_chars"),
    };
    let max = fields.count(max).unwrap_or(DEFAULT_MAX);
    options.max_characters = max;
    options.new_after_n_chars = fields.count(soft).unwrap_or(max).min(max);
    max
}
