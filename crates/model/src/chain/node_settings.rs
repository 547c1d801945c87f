//! The settings of each subtype: from a client's object to typed options.

use super::fields::{Fields, clip};
use super::{NodeWork, Problem};
use crate::element::ElementType;
use crate::settings::{ChunkOptions, ChunkStrategy, PartitionOptions, Strategy};

pub(super) fn partition(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let mut options = PartitionOptions::default();
    match fields.text("strategy") {
        Some("auto") => options.strategy = Strategy::Auto,
        Some("fast") => options.strategy = Strategy::Fast,
        Some("hi_res") => options.strategy = Strategy::HiRes,
        Some("ocr_only") => fields.problem(
            "strategy",
            "value_error",
            "`ocr_only` is not available in this version, which has no OCR; use `auto`, `fast` or `hi_res`",
        ),
        Some("vlm") => fields.problem(
            "strategy",
            "value_error",
            "`vlm` needs a model provider, and this version of docmill calls none; use `auto`, `fast` or `hi_res`",
        ),
        Some(_) => fields.problem(
            "strategy",
            "literal_error",
            "input should be `auto`, `fast` or `hi_res`",
        ),
        // The interface calls it required, yet a published template has none.
        None => {}
    }
    common(&mut fields, &mut options);
    options.include_page_breaks = fields.boolean("include_page_breaks").unwrap_or(false);
    let pdf = fields.boolean("pdf_infer_table_structure").unwrap_or(false);
    options.infer_table_structure = fields.boolean("infer_table_structure").unwrap_or(false) || pdf;
    options.xml_keep_tags = fields.boolean("xml_keep_tags").unwrap_or(false);
    options.include_slide_notes = fields.boolean("include_slide_notes").unwrap_or(true);
    options.coordinates = fields.boolean("coordinates").unwrap_or(false);
    options.encoding = fields.text("encoding").map(str::to_owned);
    options.password = fields.text("password").map(str::to_owned);
    if let Some(number) = fields.count("starting_page_number", 1) {
        options.starting_page_number = u32::try_from(number).unwrap_or(1);
    }
    let languages = fields.texts("languages").unwrap_or_default();
    // Checked, although nothing is recognised yet: it says what OCR should expect, not what the text is in.
    let _ = fields.texts("ocr_languages");
    options.languages = languages
        .into_iter()
        .filter(|l| !l.is_empty() && *l != "auto")
        .map(str::to_owned)
        .collect();
    options.unique_element_ids = fields.boolean("unique_element_ids").unwrap_or(false);
    fields.ignore(&[
        "hi_res_model_name",
        "skip_infer_table_types",
        "table_ocr_agent",
        "detect_language_per_element",
    ]);
    finish(fields, NodeWork::Partition(options))
}

pub(super) fn vlm(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let mut options = PartitionOptions::default();
    let dynamic = fields.boolean("is_dynamic").unwrap_or(false);
    let allow_fast = fields.boolean("allow_fast").unwrap_or(true);
    if !(dynamic && allow_fast) {
        fields.problem(
            "is_dynamic", "value_error",
            "without `is_dynamic: true` and `allow_fast: true` every page goes to a model provider, and this version of docmill calls none",
        );
    }
    common(&mut fields, &mut options);
    options.unique_element_ids = fields.boolean("unique_element_ids").unwrap_or(true);
    options.infer_table_structure = true;
    if let Some(format) = fields.text("output_format")
        && !["text/html", "application/json"].contains(&format)
    {
        fields.problem(
            "output_format",
            "literal_error",
            "input should be `text/html` or `application/json`",
        );
    }
    // Checked, although only a model provider would use it.
    let _ = fields.boolean("format_html");
    fields.ignore(&["provider", "provider_api_key", "model", "strategy"]);
    finish(fields, NodeWork::Partition(options))
}

/// Settings both partition subtypes take.
fn common(fields: &mut Fields, options: &mut PartitionOptions) {
    for name in fields.texts("exclude_elements").unwrap_or_default() {
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
    for name in fields.texts("extract_image_block_types").unwrap_or_default() {
        let known = ElementType::ALL
            .iter()
            .any(|kind| kind.as_str().eq_ignore_ascii_case(name))
            || name.parse::<ElementType>().is_ok();
        if known {
            options.extract_image_block_types.push(name.to_ascii_lowercase());
        } else {
            fields.problem(
                "extract_image_block_types",
                "literal_error",
                format!("unknown element type `{}`", clip(name)),
            );
        }
    }
}

pub(super) fn chunk(mut fields: Fields, strategy: ChunkStrategy) -> Result<NodeWork, Vec<Problem>> {
    let mut options = ChunkOptions::new(strategy);
    let max = fields.count("max_characters", 1).unwrap_or(500);
    options.max_characters = max;
    options.new_after_n_chars = fields.count("new_after_n_chars", 0).unwrap_or(max).min(max);
    options.overlap = fields.count("overlap", 0).unwrap_or(0);
    if options.overlap >= max {
        fields.problem(
            "overlap",
            "less_than",
            format!("input should be less than max_characters ({max})"),
        );
    }
    options.overlap_all = fields.boolean("overlap_all").unwrap_or(false);
    options.include_orig_elements = fields.boolean("include_orig_elements").unwrap_or(false);
    options.repeat_table_headers = fields.boolean("repeat_table_headers").unwrap_or(true);
    options.isolate_table = fields.boolean("isolate_table").unwrap_or(true);
    options.skip_table_chunking = fields.boolean("skip_table_chunking").unwrap_or(false);
    if options.skip_table_chunking && !options.isolate_table {
        fields.problem(
            "skip_table_chunking",
            "value_error",
            "true requires isolate_table to be true",
        );
    }
    options.combine_text_under_n_chars = max;
    if strategy == ChunkStrategy::ByTitle {
        options.multipage_sections = fields.boolean("multipage_sections").unwrap_or(false);
        let name = if fields.has("combine_text_under_n_chars") {
            "combine_text_under_n_chars"
        } else {
            "combine_under_n_chars"
        };
        options.combine_text_under_n_chars = fields.count(name, 0).unwrap_or(max);
        if options.combine_text_under_n_chars > max {
            fields.problem(
                name,
                "less_than_equal",
                format!("input should be at most max_characters ({max})"),
            );
        }
    } else {
        fields.ignore(&[
            "multipage_sections",
            "combine_text_under_n_chars",
            "combine_under_n_chars",
        ]);
    }
    if fields.has("contextual_chunking_strategy") && fields.text("contextual_chunking_strategy") != Some("none") {
        fields.problem(
            "contextual_chunking_strategy",
            "value_error",
            "contextual chunking is not available in this version",
        );
    }
    fields.ignore(&[
        "unstructured_api_url",
        "unstructured_api_key",
        "service_api_url",
        "service_api_key",
    ]);
    finish(fields, NodeWork::Chunk(options))
}

fn finish(fields: Fields, work: NodeWork) -> Result<NodeWork, Vec<Problem>> {
    let problems = fields.finish();
    if problems.is_empty() { Ok(work) } else { Err(problems) }
}
