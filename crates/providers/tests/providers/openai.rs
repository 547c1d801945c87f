//! OpenAI, Azure, Together AI and servers of one's own.

use docmill_providers::{
    Chat, Finish, ImageType, Provider, ProviderErrorKind, ProviderSettings, Purpose, Usage, embed_all,
};
use serde_json::{Value, json};

use crate::double::{
    Asked, Double, Fields, KEY, PNG, Reply, full, in_order, providers, schema_value, settings, simple, texts, vector,
};

fn bearer() -> String {
    format!("Bearer {KEY}")
}

/// The body of [`full`] as the reference of chat completions has it.
fn chat_body(mut body: Fields, tokens: &str, temperature: bool) -> Result<(), String> {
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
    body.equals(tokens, json!(77))?;
    if temperature {
        body.equals("temperature", json!(0.1))?;
    }
    let format = json!({"name": "description", "schema": schema_value(), "strict": true});
    body.equals("response_format", json!({"type": "json_schema", "json_schema": format}))?;
    body.done()
}

fn completion() -> Reply {
    Reply::json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-4o-2024-08-06",
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "{\"type\":\"graph\"}", "refusal": null, "annotations": []},
        }],
        "usage": {
            "prompt_tokens": 1_117, "completion_tokens": 46, "total_tokens": 1_163,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        "service_tier": "default", "system_fingerprint": "fp_1",
    }))
    .with("x-request-id", "req_42")
}

async fn asks_for_graph(chat: &dyn Chat) {
    let answer = chat.complete(&full()).await.unwrap();
    assert_eq!(answer.json(), Some(json!({"type": "graph"})));
    assert_eq!(
        (answer.finish, answer.request_id.as_deref()),
        (Finish::Complete, Some("req_42"))
    );
    let usage = answer.usage;
    assert_eq!(
        (usage.calls, usage.retries, usage.tokens_in, usage.tokens_out),
        (1, 0, 1_117, 46)
    );
}

#[tokio::test]
async fn openai_chats() {
    let double = Double::start(|asked, _| {
        asked.is("/v1/chat/completions", "", &[("authorization", &bearer())])?;
        let mut body = asked.json()?;
        body.equals("model", json!("gpt-4o"))?;
        chat_body(body, "max_completion_tokens", true)?;
        Ok(completion())
    })
    .await;
    let settings = settings(&format!("{}/v1/", double.url));
    let chat = providers(Provider::OpenAi, settings).chat(Provider::OpenAi, "gpt-4o", None);
    let chat = chat.unwrap();
    asks_for_graph(chat.as_ref()).await;
    assert_eq!((chat.provider(), chat.model()), (Provider::OpenAi, "gpt-4o"));
}

#[tokio::test]
async fn models_that_reason_get_no_temperature() {
    let double = Double::start(|asked, _| {
        asked.is("/chat/completions", "", &[("authorization", &bearer())])?;
        let mut body = asked.json()?;
        body.equals("model", json!("gpt-5-mini-2025-08-07"))?;
        chat_body(body, "max_completion_tokens", false)?;
        Ok(completion())
    })
    .await;
    let providers = providers(Provider::OpenAi, settings(&double.url));
    let chat = providers.chat(Provider::OpenAi, "gpt-5-mini-2025-08-07", None);
    asks_for_graph(chat.unwrap().as_ref()).await;
}

#[tokio::test]
async fn azure_names_the_deployment_in_the_path() {
    let name = Provider::AzureOpenAi;
    let double = Double::start(|asked, _| {
        let key = [("api-key", KEY)];
        if asked.path.starts_with("/openai/v1/") {
            asked.is("/openai/v1/chat/completions", "", &key)?;
            let mut body = asked.json()?;
            body.equals("model", json!("gpt/1"))?;
            chat_body(body, "max_completion_tokens", true)?;
            return Ok(completion());
        }
        asked.is(
            "/openai/deployments/gpt%2F1/chat/completions",
            "api-version=2024-10-21",
            &key,
        )?;
        chat_body(asked.json()?, "max_completion_tokens", true)?;
        Ok(completion())
    })
    .await;
    for base in ["", "/", "/openai", "/openai/v1/"] {
        let settings = settings(&format!("{}{base}", double.url));
        let chat = providers(name, settings).chat(name, "gpt/1", None).unwrap();
        asks_for_graph(chat.as_ref()).await;
    }
}

#[tokio::test]
async fn together_and_own_servers_take_max_tokens() {
    for (name, key) in [
        (Provider::TogetherAi, true),
        (Provider::Custom, true),
        (Provider::Custom, false),
    ] {
        let double = Double::start(move |asked, _| {
            let bearer = bearer();
            let headers = [("authorization", bearer.as_str())];
            asked.is("/v1/chat/completions", "", &headers[..usize::from(key)])?;
            let mut body = asked.json()?;
            body.equals("model", json!("meta-llama/Llama-4"))?;
            chat_body(body, "max_tokens", true)?;
            Ok(completion())
        })
        .await;
        let mut settings = settings(&format!("{}/v1", double.url));
        if !key {
            settings.api_key = None;
        }
        let chat = providers(name, settings)
            .chat(name, "meta-llama/Llama-4", None)
            .unwrap();
        asks_for_graph(chat.as_ref()).await;
    }
}

#[tokio::test]
async fn refusals_and_cut_answers_are_told() {
    let said = |content: Value, refusal: Value, reason: &str| {
        let message = json!({"role": "assistant", "content": content, "refusal": refusal});
        json!({"choices": [{"message": message, "finish_reason": reason}]}).to_string()
    };
    for (body, finish, text) in [
        (said(json!("half"), Value::Null, "length"), Finish::Length, "half"),
        (said(Value::Null, Value::Null, "length"), Finish::Length, ""),
        (said(Value::Null, json!("I can't"), "stop"), Finish::Refused, "I can't"),
        (said(json!(""), Value::Null, "content_filter"), Finish::Refused, ""),
        (said(json!("x"), Value::Null, "unheard_of"), Finish::Other, "x"),
    ] {
        let double = Double::start(move |_, _| Ok(Reply::status(200, body.clone()))).await;
        let providers = providers(Provider::Custom, settings(&double.url));
        let chat = providers.chat(Provider::Custom, "m", None).unwrap();
        let answer = chat.complete(&simple("x")).await.unwrap();
        assert_eq!(
            (answer.finish, answer.text.as_str(), answer.model.as_str()),
            (finish, text, "m")
        );
    }
}

fn embeddings(asked: &Asked, dims: usize, most: usize) -> Result<Reply, String> {
    let mut body = asked.json()?;
    body.equals("encoding_format", json!("float"))?;
    let input = body.take("input")?;
    let input = input.as_array().ok_or("input is no list")?;
    if input.is_empty() || input.len() > most {
        return Err(format!("{} texts", input.len()));
    }
    if let Ok(model) = body.take("model")
        && !model.is_string()
    {
        return Err("model is no text".into());
    }
    body.done()?;
    let items = input.iter().enumerate();
    let mut data: Vec<_> = items
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text, dims)}))
        .collect();
    // The index tells the order, not the place.
    data.reverse();
    let tokens = 3 * input.len();
    Ok(Reply::json(json!({
        "object": "list", "data": data, "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })))
}

#[tokio::test]
async fn texts_are_embedded_in_batches_and_in_order() {
    for (name, model, dims, most, path) in [
        (Provider::OpenAi, "text-embedding-3-small", 1_536, 128, "/embeddings"),
        (Provider::Custom, "bge", 8, 32, "/embeddings"),
        (
            Provider::TogetherAi,
            "togethercomputer/m2-bert-80M-32k-retrieval",
            768,
            64,
            "/embeddings",
        ),
        (
            Provider::AzureOpenAi,
            "text-embedding-3-large",
            3_072,
            128,
            "/openai/deployments/text-embedding-3-large/embeddings",
        ),
    ] {
        let double = Double::start(move |asked, _| {
            let bearer = bearer();
            match name {
                Provider::AzureOpenAi => asked.is(path, "api-version=2024-10-21", &[("api-key", KEY)])?,
                _ => asked.is(path, "", &[("authorization", &bearer)])?,
            }
            embeddings(asked, dims, most)
        })
        .await;
        let providers = providers(name, settings(&double.url));
        let embedder = providers.embedder(name, model, None).unwrap();
        let embedded = embed_all(embedder.as_ref(), &texts(300), Purpose::Document)
            .await
            .unwrap();
        assert_eq!(embedded.vectors.len(), 300);
        in_order(&embedded.vectors, dims);
        let calls = 300_usize.div_ceil(most);
        assert_eq!((embedded.usage.calls, embedded.usage.tokens_in), (calls as u64, 900));
        assert_eq!(double.count(), calls);
    }
}

#[tokio::test]
async fn texts_too_long_are_refused_before_anything_is_paid() {
    let double = Double::start(|_, _| Err("nobody may ask".into())).await;
    let providers = providers(Provider::OpenAi, settings(&double.url));
    let embedder = providers
        .embedder(Provider::OpenAi, "text-embedding-3-small", None)
        .unwrap();
    let long = vec!["a".into(), "é".repeat(28_673)];
    let error = embed_all(embedder.as_ref(), &long, Purpose::Document)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Invalid);
    assert_eq!(
        error.message,
        "text 1 has 28673 characters; model text-embedding-3-small takes at most 28672: use smaller chunks"
    );
    let error = embed_all(embedder.as_ref(), &["a".into(), " \n".into()], Purpose::Document)
        .await
        .unwrap_err();
    assert!(error.message.starts_with("text 1 is empty"), "{error}");
    let none = embed_all(embedder.as_ref(), &[], Purpose::Document).await.unwrap();
    assert_eq!((none.vectors.len(), none.usage), (0, Usage::default()));
    assert_eq!(double.count(), 0);
}

#[tokio::test]
async fn images_too_large_are_refused_before_anything_is_paid() {
    let double = Double::start(|_, _| Err("nobody may ask".into())).await;
    let name = Provider::Anthropic;
    let chat = providers(
        name,
        ProviderSettings {
            ..settings(&double.url)
        },
    )
    .chat(name, "m", None)
    .unwrap();
    let mut request = simple("x");
    let image = docmill_providers::Image::new(ImageType::Png, &vec![0; 6 << 20]);
    request.messages[0].parts.push(docmill_providers::Part::Image(image));
    let error = chat.complete(&request).await.unwrap_err();
    assert_eq!((error.kind, double.count()), (ProviderErrorKind::Invalid, 0));
}
