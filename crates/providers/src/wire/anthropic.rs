//! Anthropic's messages.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::Url;

use super::openai::number;
use super::{CHAT_BYTES, check_chat};
use crate::caller::{Answer, Call, Caller};
use crate::{Chat, ChatAnswer, ChatRequest, Finish, Message, Part, Provider, Result, Role, Usage};

/// Where it is.
pub(crate) const BASE: &str = "https://api.anthropic.com";
/// The version that is spoken.
const VERSION: &str = "2023-06-01";
/// Most bytes of an image.
const LARGEST_IMAGE: usize = 5 << 20;

/// A model of Anthropic.
#[derive(Debug)]
pub(crate) struct AnthropicChat {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) url: Url,
}

#[async_trait]
impl Chat for AnthropicChat {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        check_chat(&self.caller, request, LARGEST_IMAGE)?;
        let mut call = Call::new(self.url.clone(), &self.body(request));
        let version = HeaderValue::from_static(VERSION);
        call.headers.insert("anthropic-version", version);
        let outcome = self.caller.call(&call, CHAT_BYTES, read).await?;
        let mut answer = outcome.value;
        answer.usage += outcome.usage;
        answer.request_id = outcome.request_id.or(answer.request_id);
        Ok(answer)
    }
}

impl AnthropicChat {
    fn body(&self, request: &ChatRequest) -> Value {
        let messages: Vec<_> = request.messages.iter().map(message).collect();
        let mut body = json!({"model": self.model, "max_tokens": request.max_tokens, "messages": messages});
        if let Some(system) = &request.system {
            body["system"] = system.as_str().into();
        }
        if let Some(temperature) = request.temperature {
            body["temperature"] = number(temperature);
        }
        if let Some(schema) = &request.schema {
            // A tool that must be used is how every model is held to a schema.
            body["tools"] = json!([{
                "name": schema.name,
                "description": "Gives the answer.",
                "input_schema": schema.schema,
            }]);
            body["tool_choice"] = json!({"type": "tool", "name": schema.name});
        }
        body
    }
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(image) => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media().mime(), "data": image.base64()},
        }),
    });
    json!({"role": role, "content": parts.collect::<Vec<_>>()})
}

#[derive(Deserialize)]
struct Body {
    id: Option<String>,
    model: String,
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Tokens,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

fn read(answer: &Answer) -> std::result::Result<ChatAnswer, String> {
    let body: Body = answer.json()?;
    let finish = match body.stop_reason.as_deref() {
        Some("end_turn" | "stop_sequence" | "tool_use") => Finish::Complete,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refused,
        _ => Finish::Other,
    };
    let mut text = None::<String>;
    let mut input = None;
    for block in body.content {
        match (block.kind.as_str(), block.text, block.input) {
            ("text", Some(piece), _) => text.get_or_insert_default().push_str(&piece),
            ("tool_use", _, Some(given)) => input = Some(given.get().to_owned()),
            _ => {}
        }
    }
    // What is said beside the tool's input is no part of the answer.
    let text = input.or(text);
    if text.is_none() && finish == Finish::Complete {
        return Err("it holds no text".into());
    }
    let tokens = body.usage;
    let cached = tokens.cache_creation_input_tokens.unwrap_or_default();
    let cached = cached.saturating_add(tokens.cache_read_input_tokens.unwrap_or_default());
    Ok(ChatAnswer {
        text: text.unwrap_or_default(),
        finish,
        model: body.model,
        request_id: body.id,
        usage: Usage {
            tokens_in: tokens.input_tokens.saturating_add(cached),
            tokens_out: tokens.output_tokens,
            ..Usage::default()
        },
    })
}
