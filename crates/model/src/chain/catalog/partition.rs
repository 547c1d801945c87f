//! Partitioners.

use serde_json::json;

use super::{NodeEntry, Setting, Takes, default, ignored, setting};
use crate::provider::Provider;

const PLACE: &str = "first, once";

pub(super) fn entries() -> Vec<NodeEntry> {
    let mut entries = vec![NodeEntry {
        kind: "partition",
        subtype: "vlm".into(),
        summary: "Reads pages with a vision model, or with `is_dynamic` sends each page to the cheapest engine that does it justice.".into(),
        place: PLACE,
        providers: vec![Provider::Anthropic, Provider::Bedrock, Provider::OpenAi, Provider::VertexAi, Provider::AzureOpenAi, Provider::Custom],
        needs_provider: false,
        settings: vlm(),
    }];
    for subtype in ["unstructured_api", "service_api"] {
        entries.push(NodeEntry {
            kind: "partition",
            subtype: subtype.into(),
            summary: "Turns a file into elements with the local engines.".into(),
            place: PLACE,
            providers: Vec::new(),
            needs_provider: false,
            settings: local(),
        });
    }
    entries
}

fn vlm() -> Vec<Setting> {
    let mut settings = vec![
        default(
            "is_dynamic",
            Takes::Boolean,
            false,
            "Route each page to the cheapest engine that does it justice, instead of every page to the model.",
        ),
        default(
            "allow_fast",
            Takes::Boolean,
            true,
            "The local engine may read pages: with `is_dynamic` those it does justice, which has to be allowed; without, those the model fails at.",
        ),
        default(
            "provider",
            Takes::Word(&[
                "anthropic",
                "auto",
                "bedrock",
                "openai",
                "vertexai",
                "azure_openai",
                "custom",
            ]),
            "anthropic",
            "Who has the model; `auto` takes one that has credentials.",
        ),
        setting(
            "provider_api_key",
            Takes::Text,
            "A key of the provider's, used instead of the configured one.",
        ),
        setting(
            "model",
            Takes::Text,
            "The model; left out, a default one of the provider.",
        ),
        default(
            "output_format",
            Takes::Word(&["text/html", "application/json"]),
            "text/html",
            "What the model writes for a page.",
        ),
        default(
            "format_html",
            Takes::Boolean,
            true,
            "Write `text_as_html` with line breaks between blocks.",
        ),
        default(
            "unique_element_ids",
            Takes::Boolean,
            true,
            "UUIDs as element ids instead of content hashes.",
        ),
        ignored("strategy"),
    ];
    settings.extend(common());
    settings
}

fn local() -> Vec<Setting> {
    let mut settings = vec![
        setting(
            "strategy",
            Takes::Text,
            "`fast` reads the text layer alone; `hi_res` and `auto` (the default) find figures too and recognise the text of pages that have no layer to be trusted; `ocr_only` recognises every page.",
        ),
        default(
            "include_page_breaks",
            Takes::Boolean,
            false,
            "Emit a `PageBreak` between pages.",
        ),
        default(
            "pdf_infer_table_structure",
            Takes::Boolean,
            false,
            "Find the structure of tables in PDFs.",
        ),
        default(
            "infer_table_structure",
            Takes::Boolean,
            false,
            "Find the structure of tables in PDFs and pictures.",
        ),
        default(
            "xml_keep_tags",
            Takes::Boolean,
            false,
            "XML: keep the tags, as one text.",
        ),
        default(
            "include_slide_notes",
            Takes::Boolean,
            true,
            "PPTX: include the notes of slides.",
        ),
        default(
            "coordinates",
            Takes::Boolean,
            false,
            "Keep the place of each element on its page.",
        ),
        setting(
            "encoding",
            Takes::Text,
            "Charset of text files; detected when left out.",
        ),
        setting("password", Takes::Text, "Password of an encrypted document."),
        default("starting_page_number", Takes::Count(1), 1, "Number of the first page."),
        setting(
            "languages",
            Takes::Texts,
            "Languages of the document, ISO 639; detected when left out.",
        ),
        default(
            "ocr_languages",
            Takes::Texts,
            json!(["eng"]),
            "Languages that OCR should expect.",
        ),
        default(
            "unique_element_ids",
            Takes::Boolean,
            false,
            "UUIDs as element ids instead of content hashes.",
        ),
    ];
    settings.extend(common());
    settings.extend(
        [
            "hi_res_model_name",
            "skip_infer_table_types",
            "table_ocr_agent",
            "detect_language_per_element",
        ]
        .map(ignored),
    );
    settings
}

fn common() -> Vec<Setting> {
    vec![
        setting("exclude_elements", Takes::ElementTypes, "Element types to leave out."),
        setting(
            "extract_image_block_types",
            Takes::ElementTypes,
            "Element types whose picture is kept as `image_base64`, in any case.",
        ),
    ]
}
