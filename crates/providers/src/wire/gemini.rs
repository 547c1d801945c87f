//! Google's `generateContent`: Vertex AI and the Gemini API.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::openai::number;
use super::{CHAT_BYTES, check_chat, encode, url};
use crate::caller::{Answer, Call, Caller};
use crate::{
    Chat, ChatAnswer, ChatRequest, Finish, Message, Part, Provider, ProviderErrorKind, Result, Role, Usage, schema,
};

/// Where the Gemini API is.
pub(crate) const GEMINI_API: &str = "https://generativelanguage.googleapis.com/v1beta";
/// What access tokens are asked for.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Most bytes of an image: a request has at most 20 MB.
const LARGEST_IMAGE: usize = 14 << 20;

/// A model of Google.
#[derive(Debug)]
pub(crate) struct GeminiChat {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) url: Url,
}

/// Which of Google's services, and whose.
pub(crate) enum Place<'a> {
    /// The Gemini API at a base that ends in the version.
    Gemini(&'a str),
    /// Vertex AI with a key.
    Express(Option<&'a str>),
    /// Vertex AI with an account.
    Project {
        base: Option<&'a str>,
        project: &'a str,
        location: &'a str,
    },
}

impl Place<'_> {
    /// Where a model is asked.
    pub(crate) fn url(&self, caller: &Caller, model: &str) -> Result<Url> {
        let model = encode(model.strip_prefix("models/").unwrap_or(model), "");
        let vertex = "https://aiplatform.googleapis.com";
        match self {
            Self::Gemini(base) => url(caller, base, &format!("/models/{model}:generateContent")),
            Self::Express(base) => {
                let path = format!("/v1/publishers/google/models/{model}:generateContent");
                url(caller, base.unwrap_or(vertex), &path)
            }
            Self::Project {
                base,
                project,
                location,
            } => {
                let regional = format!("https://{location}-aiplatform.googleapis.com");
                let usual = if *location == "global" { vertex } else { &regional };
                let path = format!(
                    "/v1/projects/{}/locations/{location}/publishers/google/models/{model}:generateContent",
                    encode(project, "")
                );
                url(caller, base.unwrap_or(usual), &path)
            }
        }
    }
}

#[async_trait]
impl Chat for GeminiChat {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        check_chat(&self.caller, request, LARGEST_IMAGE)?;
        let body = body(request).map_err(|why| self.caller.error(ProviderErrorKind::Invalid, why))?;
        let call = Call::new(self.url.clone(), &body);
        let outcome = self.caller.call(&call, CHAT_BYTES, read).await?;
        let mut answer = outcome.value;
        answer.usage += outcome.usage;
        answer.request_id = outcome.request_id.or(answer.request_id);
        if answer.model.is_empty() {
            answer.model.clone_from(&self.model);
        }
        Ok(answer)
    }
}

fn body(request: &ChatRequest) -> std::result::Result<Value, String> {
    let contents: Vec<_> = request.messages.iter().map(content).collect();
    let mut config = json!({"maxOutputTokens": request.max_tokens});
    if let Some(temperature) = request.temperature {
        config["temperature"] = number(temperature);
    }
    if let Some(wanted) = &request.schema {
        config["responseMimeType"] = "application/json".into();
        config["responseSchema"] = schema::google(&wanted.schema)?;
    }
    let mut body = json!({"contents": contents, "generationConfig": config});
    if let Some(system) = &request.system {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    Ok(body)
}

fn content(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"text": text}),
        Part::Image(image) => json!({"inlineData": {"mimeType": image.media().mime(), "data": image.base64()}}),
    });
    json!({"role": role, "parts": parts.collect::<Vec<_>>()})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Tokens,
    model_version: Option<String>,
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    prompt_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

fn read(answer: &Answer) -> std::result::Result<ChatAnswer, String> {
    let body: Body = answer.json()?;
    let blocked = body.prompt_feedback.and_then(|feedback| feedback.block_reason);
    let (finish, text) = match (body.candidates.into_iter().next(), blocked) {
        (Some(candidate), _) => candidate_text(candidate)?,
        (None, Some(reason)) => (Finish::Refused, reason),
        (None, None) => return Err("it holds no answer".into()),
    };
    let tokens = body.usage_metadata;
    Ok(ChatAnswer {
        text,
        finish,
        model: body.model_version.unwrap_or_default(),
        request_id: body.response_id,
        usage: Usage {
            tokens_in: tokens.prompt_token_count,
            tokens_out: tokens
                .candidates_token_count
                .saturating_add(tokens.thoughts_token_count),
            ..Usage::default()
        },
    })
}

fn candidate_text(candidate: Candidate) -> std::result::Result<(Finish, String), String> {
    let finish = match candidate.finish_reason.as_deref() {
        Some("STOP") => Finish::Complete,
        Some("MAX_TOKENS") => Finish::Length,
        Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" | "IMAGE_SAFETY") => {
            Finish::Refused
        }
        _ => Finish::Other,
    };
    let parts = candidate.content.map(|content| content.parts).unwrap_or_default();
    let said = parts.into_iter().filter(|part| !part.thought);
    let texts: Vec<_> = said.filter_map(|part| part.text).collect();
    if texts.is_empty() && finish == Finish::Complete {
        return Err("it holds no text".into());
    }
    Ok((finish, texts.concat()))
}
