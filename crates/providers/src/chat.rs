//! Chat with text and images.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::{Provider, Result, Usage};

/// A model that answers messages.
#[async_trait]
pub trait Chat: Send + Sync + fmt::Debug {
    /// Who runs the model.
    fn provider(&self) -> Provider;

    /// The model's name.
    fn model(&self) -> &str;

    /// Asks for one answer, with retries. Dropping the future ends the call.
    ///
    /// # Errors
    /// What the last try met, and what the call cost.
    async fn complete(&self, request: &ChatRequest) -> Result<ChatAnswer>;
}

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// What it is told before all messages.
    pub system: Option<String>,
    /// The messages, oldest first; the last is the user's.
    pub messages: Vec<Message>,
    /// What the answer must look like. The provider's own means are used to get it; the answer must be
    /// checked all the same.
    pub schema: Option<JsonSchema>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// 0 for the likeliest answer; left out for models that don't take it.
    pub temperature: Option<f32>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Whose it is.
    pub role: Role,
    /// What it says and shows, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of the user.
    pub fn user(parts: Vec<Part>) -> Self {
        Self {
            role: Role::User,
            parts,
        }
    }

    /// An earlier answer of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            parts: vec![Part::Text(text.into())],
        }
    }
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ours.
    User,
    /// The model's.
    Assistant,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Image),
}

/// The kinds of images every provider takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageType {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl ImageType {
    /// The type of a MIME name; `None` for images that must be converted first.
    pub fn from_mime(mime: &str) -> Option<Self> {
        match mime.trim().to_ascii_lowercase().as_str() {
            "image/png" => Some(Self::Png),
            "image/jpeg" | "image/jpg" => Some(Self::Jpeg),
            "image/gif" => Some(Self::Gif),
            "image/webp" => Some(Self::Webp),
            _ => None,
        }
    }

    /// The MIME name.
    pub const fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// An image, kept as the text that requests hold. Clones share it.
#[derive(Clone, PartialEq)]
pub struct Image {
    media: ImageType,
    base64: Arc<str>,
}

impl Image {
    /// From bytes.
    pub fn new(media: ImageType, bytes: &[u8]) -> Self {
        Self {
            media,
            base64: STANDARD.encode(bytes).into(),
        }
    }

    /// From standard base64 with padding; `None` when it is none.
    pub fn from_base64(media: ImageType, text: &str) -> Option<Self> {
        // Line breaks are common in what other tools write.
        let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        STANDARD.decode(&text).ok().map(|_| Self {
            media,
            base64: text.into(),
        })
    }

    /// The kind.
    pub fn media(&self) -> ImageType {
        self.media
    }

    /// Standard base64 with padding.
    pub fn base64(&self) -> &str {
        &self.base64
    }

    /// Its size in bytes, at most two too many.
    pub fn bytes(&self) -> usize {
        self.base64.len() / 4 * 3
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.media.mime(), self.bytes())
    }
}

/// What an answer must look like.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchema {
    /// A name of letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// The schema; an object at the top.
    pub schema: Value,
    /// Whether the provider is to hold the model to it strictly, where it can; OpenAI then demands that every
    /// property is required and no other is allowed.
    pub strict: bool,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It was done.
    Complete,
    /// The answer has as many tokens as were allowed: it is cut.
    Length,
    /// The model or the provider's filter refuses; the text tells why, if anything.
    Refused,
    /// Another reason.
    Other,
}

/// What a model answered. The text is a stranger's: never trust it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatAnswer {
    /// The text; JSON where a schema was given and the model kept to it.
    pub text: String,
    /// Why it ends there.
    pub finish: Finish,
    /// The model as the provider names it.
    pub model: String,
    /// The provider's own id of the exchange.
    pub request_id: Option<String>,
    /// What it cost.
    pub usage: Usage,
}

impl ChatAnswer {
    /// The answer as JSON: the whole text, or what a Markdown fence around all of it holds; `None` when that
    /// is no JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(unfenced(&self.text)).ok()
    }
}

/// What a Markdown fence around all of a text holds, or the text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let inner = text.strip_prefix("```")?.strip_suffix("```")?;
        let (language, rest) = inner.split_once('\n')?;
        language
            .trim()
            .chars()
            .all(|c| c.is_ascii_alphanumeric())
            .then_some(rest)
    };
    inner().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_behind_a_fence() {
        let json = |text: &str| {
            let answer = ChatAnswer {
                text: text.into(),
                finish: Finish::Complete,
                model: String::new(),
                request_id: None,
                usage: Usage::default(),
            };
            answer.json().map(|json| json.to_string())
        };
        for text in [
            "{\"a\":1}",
            " {\"a\": 1}\n",
            "```json\n{\"a\":1}\n```",
            "```\n{\"a\":1}```",
        ] {
            assert_eq!(json(text).as_deref(), Some("{\"a\":1}"), "{text}");
        }
        for text in ["", "{\"a\":", "```json", "``````", "here: {\"a\":1}"] {
            assert_eq!(json(text), None, "{text}");
        }
    }

    #[test]
    fn images_show_no_content() {
        let image = Image::new(ImageType::Png, b"12345");
        assert_eq!(format!("{image:?}"), "Image(image/png, 6 bytes)");
        assert_eq!(Image::from_base64(ImageType::Png, "MTIz\nNDU=\n"), Some(image));
        assert_eq!(Image::from_base64(ImageType::Png, "MTIz$"), None);
        assert_eq!(ImageType::from_mime("IMAGE/JPG"), Some(ImageType::Jpeg));
        assert_eq!(ImageType::from_mime("image/svg+xml"), None);
    }
}
