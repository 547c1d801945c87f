//! IBM watsonx.ai.

use docmill_providers::{Finish, Provider, ProviderErrorKind, ProviderSettings, Purpose, embed_all};
use serde_json::{Value, json};

use crate::double::{
    Asked, Double, KEY, PNG, Reply, full, in_order, providers, schema_value, settings, simple, texts, vector,
};

const NAME: Provider = Provider::Ibm;
const BEARER: (&str, &str) = ("authorization", "Bearer iam-token-secret");

fn token(asked: &Asked) -> Result<Reply, String> {
    let form: Vec<_> = url::form_urlencoded::parse(&asked.body).into_owned().collect();
    let grant = (
        "grant_type".to_owned(),
        "urn:ibm:params:oauth:grant-type:apikey".to_owned(),
    );
    if asked.header("content-type") != "application/x-www-form-urlencoded" || form.first() != Some(&grant) {
        return Err("grant".into());
    }
    if form.get(1..) != Some(&[("apikey".to_owned(), KEY.to_owned())]) {
        let message = json!({"errorCode": "BXNIM0415E", "errorMessage": "Provided API key could not be found."});
        return Ok(Reply::status(400, message.to_string()));
    }
    Ok(Reply::json(json!({
        "access_token": "iam-token-secret", "refresh_token": "not_supported", "token_type": "Bearer",
        "expires_in": 3_600, "expiration": 1_900_000_000, "scope": "ibm openid",
    })))
}

fn with_iam(double: &Double) -> ProviderSettings {
    ProviderSettings {
        iam_url: Some(format!("{}/identity/token", double.url)),
        project: Some("p-1".into()),
        ..settings(&double.url)
    }
}

fn answer(asked: &Asked) -> Result<Reply, String> {
    if asked.path == "/identity/token" {
        return token(asked);
    }
    let version = "version=2024-10-10";
    let mut body = asked.json()?;
    if asked.path == "/ml/v1/text/embeddings" {
        asked.is("/ml/v1/text/embeddings", version, &[BEARER])?;
        body.equals("model_id", json!("sentence-transformers/all-minilm-l6-v2"))?;
        body.equals("space_id", json!("s-1"))?;
        let inputs = body.take("inputs")?;
        let inputs = inputs.as_array().ok_or("inputs")?;
        body.done()?;
        let results: Vec<Value> = inputs
            .iter()
            .map(|text| json!({"embedding": vector(text, 384)}))
            .collect();
        return Ok(Reply::json(json!({
            "model_id": "sentence-transformers/all-minilm-l6-v2", "results": results,
            "created_at": "2024-02-21T17:32:28Z", "input_token_count": inputs.len(),
        })));
    }
    asked.is("/ml/v1/text/chat", version, &[BEARER])?;
    body.equals("model_id", json!("ibm/granite-4"))?;
    body.equals("project_id", json!("p-1"))?;
    body.equals("max_tokens", json!(77))?;
    body.equals("temperature", json!(0.1))?;
    let url = format!("data:image/png;base64,{PNG}");
    body.equals(
        "messages",
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"},
            {"role": "user", "content": [
                {"type": "text", "text": "What is \"this\"?\n"},
                {"type": "image_url", "image_url": {"url": url}},
            ]},
        ]),
    )?;
    let schema = json!({"name": "description", "schema": schema_value(), "strict": true});
    body.equals("response_format", json!({"type": "json_schema", "json_schema": schema}))?;
    body.done()?;
    Ok(Reply::json(json!({
        "id": "chat-1", "model_id": "ibm/granite-4", "created": 1, "model_version": "1.0.0",
        "choices": [{
            "index": 0, "message": {"role": "assistant", "content": "```json\n{\"type\": \"graph\"}\n```"},
            "finish_reason": "stop",
        }],
        "usage": {"completion_tokens": 7, "prompt_tokens": 30, "total_tokens": 37},
    }))
    .with("x-global-transaction-id", "g-1"))
}

#[tokio::test]
async fn a_key_is_exchanged_once_and_chats() {
    let double = Double::start(|asked, _| answer(asked)).await;
    let chat = providers(NAME, with_iam(&double))
        .chat(NAME, "ibm/granite-4", None)
        .unwrap();
    for _ in 0..3 {
        let answer = chat.complete(&full()).await.unwrap();
        assert_eq!(
            (answer.finish, answer.json()),
            (Finish::Complete, Some(json!({"type": "graph"})))
        );
        assert_eq!(
            (answer.request_id.as_deref(), answer.model.as_str()),
            (Some("g-1"), "ibm/granite-4")
        );
        assert_eq!((answer.usage.tokens_in, answer.usage.tokens_out), (30, 7));
    }
    assert_eq!(double.count(), 4);
}

#[tokio::test]
async fn texts_are_embedded() {
    let double = Double::start(|asked, _| answer(asked)).await;
    let settings = ProviderSettings {
        project: None,
        space_id: Some("s-1".into()),
        ..with_iam(&double)
    };
    let providers = providers(NAME, settings);
    let embedder = providers
        .embedder(NAME, "sentence-transformers/all-minilm-l6-v2", None)
        .unwrap();
    let embedded = embed_all(embedder.as_ref(), &texts(130), Purpose::Document)
        .await
        .unwrap();
    in_order(&embedded.vectors, 384);
    assert_eq!((embedded.usage.calls, embedded.usage.tokens_in), (3, 130));
    assert_eq!(double.count(), 4);
}

#[tokio::test]
async fn a_key_that_is_not_exchanged_is_told_and_not_tried_again() {
    let double = Double::start(|asked, _| answer(asked)).await;
    let wrong = "another-key-that-is-wrong";
    let key = docmill_providers::Secret::new(wrong);
    let chat = providers(NAME, with_iam(&double))
        .chat(NAME, "ibm/granite-4", Some(&key))
        .unwrap();
    let error = chat.complete(&simple("x")).await.unwrap_err();
    assert_eq!((error.kind, double.count()), (ProviderErrorKind::Auth, 1));
    assert!(error.message.contains("BXNIM0415E"), "{error}");
    assert!(!format!("{error} {error:?} {chat:?}").contains(wrong));
}
