//! Chunkers.

use super::{NodeEntry, Setting, Takes, default, ignored, required, setting};
use crate::provider::Provider;

const PLACE: &str = "after enrichments of pictures and tables, once";
const CHAT: &[Provider] = &[
    Provider::Anthropic,
    Provider::OpenAi,
    Provider::Custom,
    Provider::VertexAi,
    Provider::Bedrock,
    Provider::AzureOpenAi,
];

pub(super) fn entries() -> Vec<NodeEntry> {
    let entry = |subtype: &str, summary: &str, settings: Vec<Setting>| NodeEntry {
        kind: "chunk",
        subtype: subtype.into(),
        summary: summary.into(),
        place: PLACE,
        providers: Vec::new(),
        needs_provider: false,
        settings,
    };
    vec![
        entry("chunk_by_character", "Fills chunks up to the maximum.", common()),
        entry("chunk_by_title", "Starts a new chunk at each title.", by_title()),
        entry(
            "chunk_by_page",
            "Fills chunks up to the maximum, never across a page.",
            common(),
        ),
        NodeEntry {
            providers: Provider::ALL
                .iter()
                .copied()
                .filter(|provider| provider.embeds())
                .collect(),
            needs_provider: true,
            ..entry(
                "chunk_by_similarity",
                "Keeps neighbouring elements together while they are about the same.",
                by_similarity(),
            )
        },
        NodeEntry {
            place: "after a chunker of text, once",
            providers: CHAT.to_vec(),
            needs_provider: true,
            ..entry(
                "chunk_by_contextual",
                "Puts a sentence or two of context in front of each chunk's text.",
                contextual(),
            )
        },
        NodeEntry {
            place: "after the partitioner, before an embedder, once",
            providers: CHAT.to_vec(),
            needs_provider: true,
            ..entry(
                "chunk_by_table_merging",
                "Merges tables that run over a page's end.",
                table_merging(),
            )
        },
    ]
}

fn common() -> Vec<Setting> {
    let mut settings = vec![
        setting(
            "max_characters",
            Takes::Count(1),
            "Hard maximum of a chunk's length in characters; 500 when left out.",
        ),
        setting(
            "new_after_n_chars",
            Takes::Count(0),
            "Soft maximum: a longer chunk takes no further element; `max_characters` when left out.",
        ),
        default(
            "overlap",
            Takes::Count(0),
            0,
            "Characters repeated from the end of a split text at the start of its continuation; less than the maximum.",
        ),
        default(
            "overlap_all",
            Takes::Boolean,
            false,
            "Repeat the overlap between chunks of different elements too.",
        ),
        setting(
            "max_tokens",
            Takes::Count(1),
            "Hard maximum in tokens, in place of `max_characters`; `overlap` is in tokens then.",
        ),
        setting("new_after_n_tokens", Takes::Count(0), "Soft maximum in tokens."),
        setting(
            "tokenizer",
            Takes::Text,
            "With `max_tokens`: `cl100k_base`, `o200k_base`, `p50k_base`, `r50k_base`, or the name of a model that uses one.",
        ),
    ];
    settings.extend(of_output());
    settings.push(setting(
        "contextual_chunking_strategy",
        Takes::Word(&["v1", "none"]),
        "`v1` puts a sentence or two of context in front of each chunk's text.",
    ));
    settings.extend(
        [
            "multipage_sections",
            "combine_text_under_n_chars",
            "combine_under_n_chars",
        ]
        .map(ignored),
    );
    settings.extend(ignored_keys());
    settings
}

fn of_output() -> Vec<Setting> {
    vec![
        default(
            "include_orig_elements",
            Takes::Boolean,
            false,
            "Keep the elements a chunk was made of in `orig_elements`.",
        ),
        default(
            "repeat_table_headers",
            Takes::Boolean,
            true,
            "Repeat a split table's header rows on each of its chunks.",
        ),
        default(
            "isolate_table",
            Takes::Boolean,
            true,
            "Keep tables in chunks of their own.",
        ),
        default(
            "skip_table_chunking",
            Takes::Boolean,
            false,
            "Pass tables through unchanged; requires `isolate_table`.",
        ),
    ]
}

fn ignored_keys() -> [Setting; 4] {
    [
        "unstructured_api_url",
        "unstructured_api_key",
        "service_api_url",
        "service_api_key",
    ]
    .map(ignored)
}

fn by_title() -> Vec<Setting> {
    let mut settings = common();
    let own = [
        default(
            "multipage_sections",
            Takes::Boolean,
            false,
            "A section may run across pages.",
        ),
        setting(
            "combine_text_under_n_chars",
            Takes::Count(0),
            "Sections shorter than this are combined with the next; the maximum when left out, 0 for never.",
        ),
        setting(
            "combine_under_n_chars",
            Takes::Count(0),
            "Another name of `combine_text_under_n_chars`.",
        ),
    ];
    settings.retain(|setting| own.iter().all(|one| one.name != setting.name));
    settings.extend(own);
    settings
}

fn by_similarity() -> Vec<Setting> {
    let mut settings = common();
    settings.push(default(
        "similarity_threshold",
        Takes::Between(0.0, 1.0),
        0.5,
        "Cosine similarity from which neighbours belong together.",
    ));
    settings
}

fn contextual() -> Vec<Setting> {
    let mut settings = vec![
        required(
            "contextual_chunking_model",
            Takes::Text,
            "`provider/model`, where provider is anthropic, openai, custom_openai_compatible, vertexai or bedrock.",
        ),
        default(
            "context_char_limit",
            Takes::Count(1),
            15_000,
            "Longest document that is sent along; the chunks of a longer one stay as they are.",
        ),
        setting(
            "user_prompt",
            Takes::Text,
            "Instructions in place of the built-in ones.",
        ),
    ];
    settings.extend(ignored_keys());
    settings
}

fn table_merging() -> Vec<Setting> {
    let mut settings = vec![
        required(
            "table_merging_provider",
            Takes::Word(&["anthropic", "openai", "bedrock", "vertexai", "azure_openai", "custom"]),
            "Who judges whether two tables are one.",
        ),
        setting(
            "table_merging_model",
            Takes::Text,
            "The model; left out, a default one of the provider.",
        ),
        default(
            "confidence_threshold",
            Takes::Word(&["low", "medium", "high"]),
            "medium",
            "How sure a verdict has to be.",
        ),
        default("table_merging_max_concurrency", Takes::Count(1), 4, "Calls at a time."),
    ];
    settings.extend(ignored_keys());
    settings
}
