//! Embedders, and what is known of their models.

use super::{NodeEntry, Takes, required};
use crate::provider::Provider;
use crate::settings::EmbedLimits;

/// Provider, model, numbers in a vector, and code points a text may have: the model's limit in tokens
/// times 3.5.
const MODELS: &[(Provider, &str, usize, usize)] = &[
    (Provider::AzureOpenAi, "text-embedding-3-small", 1536, 28_672),
    (Provider::AzureOpenAi, "text-embedding-3-large", 3072, 28_672),
    (Provider::AzureOpenAi, "text-embedding-ada-002", 1536, 28_672),
    (Provider::OpenAi, "text-embedding-3-small", 1536, 28_672),
    (Provider::OpenAi, "text-embedding-3-large", 3072, 28_672),
    (Provider::OpenAi, "text-embedding-ada-002", 1536, 28_672),
    (Provider::Bedrock, "amazon.titan-embed-text-v2:0", 1024, 28_672),
    (Provider::Bedrock, "amazon.titan-embed-text-v1", 1536, 28_672),
    (Provider::Bedrock, "amazon.titan-embed-image-v1", 1024, 896),
    (Provider::Bedrock, "cohere.embed-english-v3", 1024, 1_792),
    (Provider::Bedrock, "cohere.embed-multilingual-v3", 1024, 1_792),
    (
        Provider::TogetherAi,
        "togethercomputer/m2-bert-80M-32k-retrieval",
        768,
        28_672,
    ),
    (Provider::VoyageAi, "voyage-3", 1024, 112_000),
    (Provider::VoyageAi, "voyage-3-large", 1024, 112_000),
    (Provider::VoyageAi, "voyage-3-lite", 512, 112_000),
    (Provider::VoyageAi, "voyage-code-3", 1024, 112_000),
    (Provider::VoyageAi, "voyage-finance-2", 1024, 112_000),
    (Provider::VoyageAi, "voyage-multimodal-3", 1024, 112_000),
    (Provider::VoyageAi, "voyage-law-2", 1024, 56_000),
    (Provider::VoyageAi, "voyage-code-2", 1536, 56_000),
    (Provider::Ibm, "sentence-transformers/all-minilm-l6-v2", 384, 896),
    (Provider::Ibm, "ibm/granite-embedding-278m-multilingual", 768, 1_792),
    (Provider::Ibm, "intfloat/multilingual-e5-large", 1024, 1_792),
    (Provider::Ibm, "ibm/slate-125m-english-rtrvr-v2", 768, 1_792),
    (Provider::Ibm, "ibm/slate-125m-multilingual-rtrvr-v2", 768, 1_792),
];

pub(super) fn entries() -> Vec<NodeEntry> {
    let all = [
        Provider::AzureOpenAi,
        Provider::Bedrock,
        Provider::TogetherAi,
        Provider::VoyageAi,
        Provider::Ibm,
        Provider::OpenAi,
        Provider::Custom,
        Provider::Local,
    ];
    let entry = |provider: Provider| NodeEntry {
        kind: "embed",
        subtype: provider.as_str().into(),
        summary: "Sets `embeddings`: a vector of each element's text.".into(),
        place: "last",
        providers: vec![provider],
        needs_provider: true,
        settings: vec![required(
            "model_name",
            Takes::Text,
            "The model; for `azure_openai` also the name of its deployment.",
        )],
    };
    all.into_iter().map(entry).collect()
}

/// What is known of an embedding model; `None` for one of a name not known.
pub fn embed_limits(provider: Provider, model: &str) -> Option<EmbedLimits> {
    let known = MODELS
        .iter()
        .find(|(by, name, ..)| *by == provider && name.eq_ignore_ascii_case(model));
    known.map(|&(_, _, dimensions, max_chars)| EmbedLimits { dimensions, max_chars })
}
