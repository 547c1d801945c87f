//! OpenAI's chat completions and embeddings, which most servers speak: Azure with other addresses, Together
//! AI, vLLM, Ollama, TEI, LiteLLM, and watsonx.ai for chat.

mod chat;
mod embed;

use serde_json::{Map, Value};
use url::Url;

pub(crate) use self::chat::{OpenAiChat, number};
pub(crate) use self::embed::{Item, OpenAiEmbedder, in_order};
use super::{encode, url};
use crate::caller::Caller;
use crate::{ProviderSettings, Result};

/// Version of Azure's interface unless set.
const AZURE_VERSION: &str = "2024-10-21";

/// Version of watsonx.ai's interface unless set.
const WATSONX_VERSION: &str = "2024-10-10";

/// How a server differs from the others.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Where chats are answered.
    pub(crate) chat: Url,
    /// Where texts are embedded.
    pub(crate) embeddings: Url,
    /// Fields that say what is asked.
    pub(crate) fixed: Map<String, Value>,
    /// The field that bounds an answer.
    pub(crate) tokens: &'static str,
    /// Most texts of a batch.
    pub(crate) max_texts: usize,
}

impl Shape {
    /// OpenAI itself, or a server like it.
    pub(crate) fn plain(
        caller: &Caller,
        base: &str,
        model: &str,
        tokens: &'static str,
        max_texts: usize,
    ) -> Result<Self> {
        Ok(Self {
            chat: url(caller, base, "/chat/completions")?,
            embeddings: url(caller, base, "/embeddings")?,
            fixed: fields([("model", model)]),
            tokens,
            max_texts,
        })
    }

    /// Azure: a model is a deployment, named by the path; its newer interface is like OpenAI's.
    pub(crate) fn azure(caller: &Caller, settings: &ProviderSettings, base: &str, model: &str) -> Result<Self> {
        if base.ends_with("/openai/v1") {
            return Self::plain(caller, base, model, "max_completion_tokens", 128);
        }
        let version = settings.api_version.as_deref().unwrap_or(AZURE_VERSION);
        let base = base.strip_suffix("/openai").unwrap_or(base);
        let below = |what: &str| {
            let path = format!(
                "/openai/deployments/{}/{what}?api-version={}",
                encode(model, ""),
                encode(version, "")
            );
            url(caller, base, &path)
        };
        Ok(Self {
            chat: below("chat/completions")?,
            embeddings: below("embeddings")?,
            fixed: Map::new(),
            tokens: "max_completion_tokens",
            max_texts: 128,
        })
    }

    /// watsonx.ai.
    pub(crate) fn watsonx(caller: &Caller, settings: &ProviderSettings, base: &str, model: &str) -> Result<Self> {
        let version = encode(settings.api_version.as_deref().unwrap_or(WATSONX_VERSION), "");
        let mut fixed = fields([("model_id", model)]);
        match (&settings.project, &settings.space_id) {
            (Some(project), _) => fixed.insert("project_id".into(), project.as_str().into()),
            (None, space) => fixed.insert("space_id".into(), space.as_deref().unwrap_or_default().into()),
        };
        Ok(Self {
            chat: url(caller, base, &format!("/ml/v1/text/chat?version={version}"))?,
            embeddings: url(caller, base, &format!("/ml/v1/text/embeddings?version={version}"))?,
            fixed,
            tokens: "max_tokens",
            max_texts: 64,
        })
    }
}

fn fields<const N: usize>(fields: [(&str, &str); N]) -> Map<String, Value> {
    let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
    fields.into_iter().collect()
}
