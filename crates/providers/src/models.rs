//! Embedding models that are known, so that their limits can be checked before anything is paid.

use crate::Provider;

/// An embedding model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// Who runs it.
    pub provider: Provider,
    /// Its name.
    pub name: &'static str,
    /// Numbers of a vector.
    pub dims: usize,
    /// Most characters of a text: the tokens it takes, at three and a half characters each.
    pub max_chars: usize,
}

const fn model(provider: Provider, name: &'static str, dims: usize, max_chars: usize) -> EmbeddingModel {
    EmbeddingModel {
        provider,
        name,
        dims,
        max_chars,
    }
}

use Provider::{AzureOpenAi, Bedrock, Ibm, OpenAi, TogetherAi, VoyageAi};

/// The known models. Others can be used too; their limits are then the provider's to tell.
pub const EMBEDDING_MODELS: &[EmbeddingModel] = &[
    model(OpenAi, "text-embedding-3-small", 1_536, 28_672),
    model(OpenAi, "text-embedding-3-large", 3_072, 28_672),
    model(OpenAi, "text-embedding-ada-002", 1_536, 28_672),
    model(AzureOpenAi, "text-embedding-3-small", 1_536, 28_672),
    model(AzureOpenAi, "text-embedding-3-large", 3_072, 28_672),
    model(AzureOpenAi, "text-embedding-ada-002", 1_536, 28_672),
    model(Bedrock, "amazon.titan-embed-text-v2:0", 1_024, 28_672),
    model(Bedrock, "amazon.titan-embed-text-v1", 1_536, 28_672),
    model(Bedrock, "amazon.titan-embed-image-v1", 1_024, 896),
    model(Bedrock, "cohere.embed-english-v3", 1_024, 1_792),
    model(Bedrock, "cohere.embed-multilingual-v3", 1_024, 1_792),
    model(TogetherAi, "togethercomputer/m2-bert-80M-32k-retrieval", 768, 28_672),
    model(VoyageAi, "voyage-3", 1_024, 112_000),
    model(VoyageAi, "voyage-3-large", 1_024, 112_000),
    model(VoyageAi, "voyage-3-lite", 512, 112_000),
    model(VoyageAi, "voyage-code-3", 1_024, 112_000),
    model(VoyageAi, "voyage-finance-2", 1_024, 112_000),
    model(VoyageAi, "voyage-multimodal-3", 1_024, 112_000),
    model(VoyageAi, "voyage-law-2", 1_024, 56_000),
    model(VoyageAi, "voyage-code-2", 1_536, 56_000),
    model(Ibm, "sentence-transformers/all-minilm-l6-v2", 384, 896),
    model(Ibm, "ibm/granite-embedding-278m-multilingual", 768, 1_792),
    model(Ibm, "intfloat/multilingual-e5-large", 1_024, 1_792),
    model(Ibm, "ibm/slate-125m-english-rtrvr-v2", 768, 1_792),
    model(Ibm, "ibm/slate-125m-multilingual-rtrvr-v2", 768, 1_792),
];

/// What is known of a model.
pub fn embedding_model(provider: Provider, name: &str) -> Option<&'static EmbeddingModel> {
    EMBEDDING_MODELS
        .iter()
        .find(|model| model.provider == provider && model.name == name)
}
