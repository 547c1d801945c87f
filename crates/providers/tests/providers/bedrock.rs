//! Amazon Bedrock. The signature is checked by an implementation of its own.

use docmill_providers::{Finish, Provider, ProviderErrorKind, ProviderSettings, Purpose, Secret, embed_all};
use ring::hmac;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::double::{
    Asked, Double, KEY, PNG, Reply, full, in_order, providers, schema_value, settings, simple, texts, vector,
};

const NAME: Provider = Provider::Bedrock;
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "session-token-that-is-secret";

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

/// Checks Signature Version 4 as the service does: over the path encoded once more than it was sent.
fn signed(asked: &Asked, path: &str) -> Result<(), String> {
    if asked.path != path || asked.method != "POST" || !asked.query.is_empty() {
        return Err(format!(
            "{} {}?{} is not POST {path}",
            asked.method, asked.path, asked.query
        ));
    }
    let known = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-security-token",
    ];
    if let Some(name) = asked.headers.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("header {name} is not known"));
    }
    let time = asked.header("x-amz-date");
    let scope = format!("{}/eu-central-1/bedrock/aws4_request", &time[..8]);
    let names = "content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token";
    let lines: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", asked.header(name)))
        .collect();
    let hash = hex::encode(Sha256::digest(&asked.body));
    let twice = path.replace('%', "%25");
    let canonical = format!("POST\n{twice}\n\n{lines}\n{names}\n{hash}");
    let text = format!(
        "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex::encode(Sha256::digest(canonical))
    );
    let mut key = format!("AWS4{SECRET}").into_bytes();
    for part in scope.split('/') {
        key = mac(&key, part);
    }
    let signature = hex::encode(mac(&key, &text));
    let wanted = format!("AWS4-HMAC-SHA256 Credential=AKID/{scope}, SignedHeaders={names}, Signature={signature}");
    if asked.header("authorization") != wanted || asked.header("x-amz-security-token") != TOKEN {
        return Err("the signature does not match".into());
    }
    Ok(())
}

fn fixed(url: &str) -> ProviderSettings {
    ProviderSettings {
        api_key: None,
        region: Some("eu-central-1".into()),
        access_key_id: Some("AKID".into()),
        secret_access_key: Some(Secret::new(SECRET)),
        session_token: Some(Secret::new(TOKEN)),
        ..settings(url)
    }
}

fn converse(asked: &Asked) -> Result<Reply, String> {
    let mut body = asked.json()?;
    body.equals("system", json!([{"text": "Be brief."}]))?;
    body.equals("inferenceConfig", json!({"maxTokens": 77, "temperature": 0.1}))?;
    body.equals(
        "messages",
        json!([
            {"role": "user", "content": [{"text": "Hello"}]},
            {"role": "assistant", "content": [{"text": "Hi"}]},
            {"role": "user", "content": [
                {"text": "What is \"this\"?\n"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
            ]},
        ]),
    )?;
    let spec = json!({
        "name": "description", "description": "Gives the answer.", "inputSchema": {"json": schema_value()},
    });
    let choice = json!({"tool": {"name": "description"}});
    body.equals(
        "toolConfig",
        json!({"tools": [{"toolSpec": spec}], "toolChoice": choice}),
    )?;
    body.done()?;
    let tool = json!({"toolUseId": "t1", "name": "description", "input": {"type": "graph"}});
    Ok(Reply::json(json!({
        "output": {"message": {"role": "assistant", "content": [{"text": "Here"}, {"toolUse": tool}]}},
        "stopReason": "tool_use", "metrics": {"latencyMs": 5},
        "usage": {"inputTokens": 30, "outputTokens": 9, "totalTokens": 39},
    }))
    .with("x-amzn-requestid", "aws-1"))
}

#[tokio::test]
async fn converse_is_signed_and_holds_what_the_reference_defines() {
    for (model, path) in [
        ("us.amazon.nova-lite-v1:0", "/model/us.amazon.nova-lite-v1%3A0/converse"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/x.y-v1:0",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx.y-v1%3A0/converse",
        ),
    ] {
        let double = Double::start(move |asked, _| {
            signed(asked, path)?;
            converse(asked)
        })
        .await;
        let chat = providers(NAME, fixed(&double.url)).chat(NAME, model, None).unwrap();
        let answer = chat.complete(&full()).await.unwrap();
        assert_eq!(
            (answer.finish, answer.json()),
            (Finish::Complete, Some(json!({"type": "graph"})))
        );
        assert_eq!((answer.usage.tokens_in, answer.usage.tokens_out), (30, 9));
        assert_eq!(
            (answer.request_id.as_deref(), answer.model.as_str()),
            (Some("aws-1"), model)
        );
    }
}

#[tokio::test]
async fn a_key_of_bedrock_goes_as_a_token() {
    let double = Double::start(|asked, _| {
        let bearer = format!("Bearer {KEY}");
        asked.is("/model/m/converse", "", &[("authorization", &bearer)])?;
        converse(asked)
    })
    .await;
    let providers = providers(NAME, fixed(&double.url));
    let chat = providers.chat(NAME, "m", Some(&Secret::new(KEY))).unwrap();
    chat.complete(&full()).await.unwrap();
}

#[tokio::test]
async fn other_ends_and_refusals_are_told() {
    let double = Double::start(|_, number| {
        let end = |reason: &str, content: serde_json::Value| {
            Ok(Reply::json(json!({
                "output": {"message": {"role": "assistant", "content": content}},
                "stopReason": reason, "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            })))
        };
        match number {
            0 => end("max_tokens", json!([{"text": "half"}])),
            1 => end("guardrail_intervened", json!([])),
            2 => Ok(
                Reply::status(403, format!(r#"{{"message":"{TOKEN} is no token of\nAKID"}}"#))
                    .with("x-amzn-errortype", "UnrecognizedClientException:http://internal/")
                    .with("x-amzn-requestid", "aws-2"),
            ),
            _ => Err("no more".into()),
        }
    })
    .await;
    let chat = providers(NAME, fixed(&double.url)).chat(NAME, "m", None).unwrap();
    let answer = chat.complete(&simple("x")).await.unwrap();
    assert_eq!((answer.finish, answer.text.as_str()), (Finish::Length, "half"));
    assert_eq!(chat.complete(&simple("x")).await.unwrap().finish, Finish::Refused);
    let error = chat.complete(&simple("x")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.status, error.request_id.as_deref()),
        (ProviderErrorKind::Auth, Some(403), Some("aws-2"))
    );
    assert!(error.message.contains("UnrecognizedClientException"), "{error}");
    assert!(!format!("{error} {error:?} {chat:?}").contains(TOKEN), "{error}");
    assert_eq!(double.count(), 3);
}

#[tokio::test]
async fn titan_takes_one_text_and_cohere_many() {
    for (model, path, dims, calls) in [
        (
            "amazon.titan-embed-text-v2:0",
            "/model/amazon.titan-embed-text-v2%3A0/invoke",
            1_024,
            100,
        ),
        (
            "amazon.titan-embed-text-v1",
            "/model/amazon.titan-embed-text-v1/invoke",
            1_536,
            100,
        ),
        (
            "amazon.titan-embed-image-v1",
            "/model/amazon.titan-embed-image-v1/invoke",
            1_024,
            100,
        ),
        (
            "cohere.embed-english-v3",
            "/model/cohere.embed-english-v3/invoke",
            1_024,
            2,
        ),
    ] {
        let double = Double::start(move |asked, _| {
            signed(asked, path)?;
            let mut body = asked.json()?;
            if model.starts_with("cohere") {
                let all = body.take("texts")?;
                let all = all.as_array().ok_or("texts")?;
                body.equals("input_type", json!("search_document"))?;
                body.equals("truncate", json!("NONE"))?;
                body.done()?;
                if all.len() > 96 {
                    return Err("too many".into());
                }
                let vectors: Vec<_> = all.iter().map(|text| vector(text, dims)).collect();
                let reply =
                    json!({"embeddings": vectors, "id": "1", "response_type": "embeddings_floats", "texts": all});
                let tokens = (2 * all.len()).to_string();
                return Ok(Reply::json(reply).with("x-amzn-bedrock-input-token-count", tokens));
            }
            let text = body.take("inputText")?;
            match model {
                "amazon.titan-embed-text-v2:0" => {
                    body.equals("dimensions", json!(1_024))?;
                    body.equals("normalize", json!(true))?;
                }
                "amazon.titan-embed-image-v1" => {
                    body.equals("embeddingConfig", json!({"outputEmbeddingLength": 1_024}))?;
                }
                _ => {}
            }
            body.done()?;
            Ok(Reply::json(
                json!({"embedding": vector(&text, dims), "inputTextTokenCount": 2}),
            ))
        })
        .await;
        let providers = providers(NAME, fixed(&double.url));
        let embedder = providers.embedder(NAME, model, None).unwrap();
        let embedded = embed_all(embedder.as_ref(), &texts(100), Purpose::Document)
            .await
            .unwrap();
        in_order(&embedded.vectors, dims);
        assert_eq!((embedded.usage.calls, embedded.usage.tokens_in), (calls, 200));
        let error = embedder.embed(&texts(97), Purpose::Document).await.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
    }
}

#[tokio::test]
async fn models_that_do_not_embed_are_told_at_once() {
    let providers = providers(NAME, fixed("http://127.0.0.1:9999"));
    let error = providers.embedder(NAME, "us.amazon.nova-lite-v1:0", None).unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Setup);
    assert!(error.message.contains("no known model that embeds"), "{error}");
}
