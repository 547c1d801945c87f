//! What the tests of all providers share.

use std::collections::BTreeMap;

use docmill_egress::{Egress, Policy};
use docmill_providers::{
    ChatRequest, Image, ImageType, JsonSchema, Message, Part, Provider, ProviderSettings, Providers, Secret,
};
pub(crate) use docmill_testkit::{Asked, Double, Fields, Reply};
use serde_json::{Value, json};

/// A key that may appear nowhere.
pub(crate) const KEY: &str = "sk-test-0123456789abcdefghij";

/// A guard that lets tests reach doubles.
pub(crate) fn egress() -> Egress {
    Egress::new(Policy {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        allow_http: true,
        ca_file: None,
    })
}

/// Settings for tests: short waits.
pub(crate) fn settings(base_url: &str) -> ProviderSettings {
    ProviderSettings {
        base_url: Some(base_url.to_owned()),
        api_key: Some(Secret::new(KEY)),
        timeout_secs: 5,
        retry_base_millis: 1,
        ..ProviderSettings::default()
    }
}

pub(crate) fn providers(name: Provider, settings: ProviderSettings) -> Providers {
    Providers::new(egress(), BTreeMap::from([(name, settings)]))
}

/// A request with everything in it: a system text, turns, an image and a schema.
pub(crate) fn full() -> ChatRequest {
    ChatRequest {
        system: Some("Be brief.".into()),
        messages: vec![
            Message::user(vec![Part::Text("Hello".into())]),
            Message::assistant("Hi"),
            Message::user(vec![
                Part::Text("What is \"this\"?\n".into()),
                Part::Image(Image::new(ImageType::Png, b"\x89PNG fake")),
            ]),
        ],
        schema: Some(schema()),
        max_tokens: 77,
        temperature: Some(0.1),
    }
}

pub(crate) fn schema() -> JsonSchema {
    JsonSchema {
        name: "description".into(),
        schema: schema_value(),
        strict: true,
    }
}

pub(crate) fn schema_value() -> Value {
    json!({
        "type": "object",
        "properties": {"type": {"type": "string"}},
        "required": ["type"],
        "additionalProperties": false,
    })
}

/// What [`full`]'s image is in base64.
pub(crate) const PNG: &str = "iVBORyBmYWtl";

pub(crate) fn simple(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![Message::user(vec![Part::Text(text.into())])],
        max_tokens: 10,
        ..ChatRequest::default()
    }
}

pub(crate) fn texts(count: usize) -> Vec<String> {
    (0..count).map(|place| format!("text {place}")).collect()
}

/// A vector that tells which text it is of.
pub(crate) fn vector(text: &Value, dims: usize) -> Vec<f32> {
    let place: f32 = text.as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let mut vector = vec![0.25; dims];
    vector[0] = place;
    vector
}

pub(crate) fn in_order(vectors: &[Vec<f32>], dims: usize) {
    for (place, vector) in vectors.iter().enumerate() {
        assert_eq!((vector[0], vector.len()), (place as f32, dims));
    }
}
