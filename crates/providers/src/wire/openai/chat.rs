//! Chat completions.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{CHAT_BYTES, check_chat};
use super::Shape;
use crate::caller::{Answer, Call, Caller};
use crate::{Chat, ChatAnswer, ChatRequest, Finish, Message, Part, Provider, Result, Role};

/// Most bytes of an image.
const LARGEST_IMAGE: usize = 20 << 20;

/// A model behind OpenAI's chat completions.
#[derive(Debug)]
pub(crate) struct OpenAiChat {
    pub(crate) caller: Arc<Caller>,
    pub(crate) model: String,
    pub(crate) shape: Shape,
}

#[async_trait]
impl Chat for OpenAiChat {
    fn provider(&self) -> Provider {
        self.caller.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer> {
        check_chat(&self.caller, request, LARGEST_IMAGE)?;
        let call = Call::new(self.shape.chat.clone(), &self.body(request));
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

impl OpenAiChat {
    fn body(&self, request: &ChatRequest) -> Value {
        let mut body = self.shape.fixed.clone();
        let system = request.system.iter();
        let system = system.map(|text| json!({"role": "system", "content": text}));
        let messages: Vec<_> = system.chain(request.messages.iter().map(message)).collect();
        body.insert("messages".into(), messages.into());
        body.insert(self.shape.tokens.into(), request.max_tokens.into());
        if let Some(temperature) = request.temperature.filter(|_| takes_temperature(&self.model)) {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(schema) = &request.schema {
            let format = json!({
                "type": "json_schema",
                "json_schema": {"name": schema.name, "schema": schema.schema, "strict": schema.strict},
            });
            body.insert("response_format".into(), format);
        }
        body.into()
    }
}

/// OpenAI's models that reason take no temperature but their own.
fn takes_temperature(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !["gpt-5", "o1", "o3", "o4"].iter().any(|start| name.starts_with(start))
}

/// A number as people write it: 0.1 and not 0.10000000149.
pub(crate) fn number(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    // A single text goes as such: small servers know nothing else.
    if let [Part::Text(text)] = message.parts.as_slice() {
        return json!({"role": role, "content": text});
    }
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(image) => {
            let url = format!("data:{};base64,{}", image.media().mime(), image.base64());
            json!({"type": "image_url", "image_url": {"url": url}})
        }
    });
    json!({"role": role, "content": parts.collect::<Vec<_>>()})
}

#[derive(Deserialize)]
struct Body {
    id: Option<String>,
    #[serde(alias = "model_id")]
    model: Option<String>,
    choices: Vec<Choice>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Default, Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

fn read(answer: &Answer) -> std::result::Result<ChatAnswer, String> {
    let body: Body = answer.json()?;
    let choice = body.choices.into_iter().next().ok_or("it holds no answer")?;
    let refused = choice.message.refusal.is_some() || choice.finish_reason.as_deref() == Some("content_filter");
    let finish = match choice.finish_reason.as_deref() {
        _ if refused => Finish::Refused,
        Some("stop" | "eos" | "stop_sequence") | None => Finish::Complete,
        Some("length" | "max_tokens") => Finish::Length,
        Some(_) => Finish::Other,
    };
    let text = choice.message.refusal.or(choice.message.content);
    if text.is_none() && finish == Finish::Complete {
        return Err("it holds no text".into());
    }
    let tokens = body.usage.unwrap_or_default();
    let mut made = ChatAnswer {
        text: text.unwrap_or_default(),
        finish,
        model: body.model.unwrap_or_default(),
        request_id: body.id,
        usage: crate::Usage::default(),
    };
    made.usage.tokens_in = tokens.prompt_tokens;
    made.usage.tokens_out = tokens.completion_tokens;
    Ok(made)
}
