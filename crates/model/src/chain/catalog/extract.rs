//! Extractors of structured data.

use super::{NodeEntry, ObjectOf, Setting, Takes, default, required, setting};
use crate::provider::Provider;

const PLACE: &str = "after the partitioner, once; with `extracted_data_only` last";

pub(super) fn entries() -> Vec<NodeEntry> {
    let entry = |subtype: &str, summary: &str, settings: Vec<Setting>| NodeEntry {
        kind: "structured_data_extractor",
        subtype: subtype.into(),
        summary: summary.into(),
        place: PLACE,
        providers: Vec::new(),
        needs_provider: false,
        settings,
    };
    let llm = vec![
        required(
            "schema_to_extract",
            Takes::Object(ObjectOf::SchemaToExtract),
            "`json_schema`, what the data look like, `extraction_guidance`, what to look for, or both.",
        ),
        default(
            "provider",
            Takes::Word(&["anthropic", "azure_openai", "bedrock", "openai", "vertexai", "custom"]),
            "openai",
            "Who has the model.",
        ),
        setting(
            "model",
            Takes::Text,
            "The model; left out, a default one of the provider.",
        ),
        output_mode(),
    ];
    let regex = vec![
        required(
            "regex_patterns",
            Takes::Object(ObjectOf::Patterns),
            "Named regular expressions in the syntax of Python's `re`.",
        ),
        output_mode(),
    ];
    vec![
        NodeEntry {
            providers: vec![
                Provider::Anthropic,
                Provider::AzureOpenAi,
                Provider::Bedrock,
                Provider::OpenAi,
                Provider::VertexAi,
                Provider::Custom,
            ],
            needs_provider: true,
            ..entry("llm", "Extracts data of a given JSON Schema with a chat model.", llm)
        },
        entry("regex", "Extracts what regular expressions match.", regex),
    ]
}

fn output_mode() -> Setting {
    default(
        "output_mode",
        Takes::Word(&["elements_with_extracted_data", "extracted_data_only"]),
        "elements_with_extracted_data",
        "The data in a first element in front of the others, or the data alone.",
    )
}
