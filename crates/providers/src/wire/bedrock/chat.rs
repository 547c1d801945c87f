//! Converse.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::openai::number;
use super::super::{CHAT_BYTES, check_chat, encode, url};
use crate::caller::{Answer, Call, Caller};
use crate::{Chat, ChatAnswer, ChatRequest, Finish, ImageType, Message, Part, Provider, Result, Role, Usage};

/// Most bytes of an image.
const LARGEST_IMAGE: usize = 3_932_160;

/// A model of Bedrock.
#[derive(Debug)]
pub(crate) struct BedrockChat {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) base: String,
}

#[async_trait]
impl Chat for BedrockChat {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        check_chat(&self.caller, request, LARGEST_IMAGE)?;
        let path = format!("/model/{}/converse", encode(&self.model, ""));
        let call = Call::new(url(&self.caller, &self.base, &path)?, &body(request));
        let outcome = self.caller.call(&call, CHAT_BYTES, read).await?;
        let mut answer = outcome.value;
        answer.usage += outcome.usage;
        answer.request_id = outcome.request_id;
        answer.model.clone_from(&self.model);
        Ok(answer)
    }
}

fn body(request: &ChatRequest) -> Value {
    let messages: Vec<_> = request.messages.iter().map(message).collect();
    let mut config = json!({"maxTokens": request.max_tokens});
    if let Some(temperature) = request.temperature {
        config["temperature"] = number(temperature);
    }
    let mut body = json!({"messages": messages, "inferenceConfig": config});
    if let Some(system) = &request.system {
        body["system"] = json!([{"text": system}]);
    }
    if let Some(schema) = &request.schema {
        let spec = json!({
            "name": schema.name,
            "description": "Gives the answer.",
            "inputSchema": {"json": schema.schema},
        });
        body["toolConfig"] = json!({
            "tools": [{"toolSpec": spec}],
            "toolChoice": {"tool": {"name": schema.name}},
        });
    }
    body
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"text": text}),
        Part::Image(image) => {
            let format = match image.media() {
                ImageType::Png => "png",
                ImageType::Jpeg => "jpeg",
                ImageType::Gif => "gif",
                ImageType::Webp => "webp",
            };
            json!({"image": {"format": format, "source": {"bytes": image.base64()}}})
        }
    });
    json!({"role": role, "content": parts.collect::<Vec<_>>()})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    output: Output,
    stop_reason: String,
    usage: Tokens,
}

#[derive(Deserialize)]
struct Output {
    message: Said,
}

#[derive(Deserialize)]
struct Said {
    content: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    text: Option<String>,
    tool_use: Option<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    input: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
}

fn read(answer: &Answer) -> std::result::Result<ChatAnswer, String> {
    let body: Body = answer.json()?;
    let finish = match body.stop_reason.as_str() {
        "end_turn" | "stop_sequence" | "tool_use" => Finish::Complete,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "guardrail_intervened" | "content_filtered" => Finish::Refused,
        _ => Finish::Other,
    };
    let mut text = None::<String>;
    let mut input = None;
    for block in body.output.message.content {
        if let Some(piece) = block.text {
            text.get_or_insert_default().push_str(&piece);
        }
        input = block.tool_use.map(|tool| tool.input.get().to_owned()).or(input);
    }
    let text = input.or(text);
    if text.is_none() && finish == Finish::Complete {
        return Err("it holds no text".into());
    }
    Ok(ChatAnswer {
        text: text.unwrap_or_default(),
        finish,
        model: String::new(),
        request_id: None,
        usage: Usage {
            tokens_in: body.usage.input_tokens,
            tokens_out: body.usage.output_tokens,
            ..Usage::default()
        },
    })
}
