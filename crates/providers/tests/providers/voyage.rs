//! Voyage AI.

use docmill_providers::{Provider, ProviderErrorKind, Purpose, embed_all};
use serde_json::{Value, json};

use crate::double::{Double, KEY, Reply, in_order, providers, settings, texts, vector};

const NAME: Provider = Provider::VoyageAi;

#[tokio::test]
async fn texts_are_embedded_for_what_they_are() {
    for (model, dims, purpose, kind) in [
        ("voyage-3-large", 1_024, Purpose::Document, "document"),
        ("voyage-3-lite", 512, Purpose::Query, "query"),
        ("voyage-multimodal-3", 1_024, Purpose::Document, "document"),
    ] {
        let double = Double::start(move |asked, _| {
            let bearer = format!("Bearer {KEY}");
            let mut body = asked.json();
            let body = body.as_mut().map_err(|why| why.clone())?;
            let input: Vec<Value> = if model.contains("multimodal") {
                asked.is("/v1/multimodalembeddings", "", &[("authorization", &bearer)])?;
                let inputs = body.take("inputs")?;
                let inputs = inputs.as_array().ok_or("inputs")?.clone();
                let text = |input: &Value| {
                    let text = input.pointer("/content/0/text").cloned().unwrap_or_default();
                    let whole = json!({"content": [{"type": "text", "text": text}]});
                    (*input == whole)
                        .then_some(text)
                        .ok_or("an input is not as it should be")
                };
                inputs.iter().map(text).collect::<Result<_, _>>()?
            } else {
                asked.is("/v1/embeddings", "", &[("authorization", &bearer)])?;
                body.take("input")?.as_array().ok_or("input")?.clone()
            };
            body.equals("model", json!(model))?;
            body.equals("input_type", json!(kind))?;
            body.equals("truncation", json!(false))?;
            let items = input.iter().enumerate();
            let data: Vec<_> = items
                .map(|(index, text)| json!({"object": "embedding", "embedding": vector(text, dims), "index": index}))
                .collect();
            let usage = json!({"total_tokens": input.len()});
            Ok(Reply::json(
                json!({"object": "list", "data": data, "model": model, "usage": usage}),
            ))
        })
        .await;
        let settings = settings(&format!("{}/v1", double.url));
        let embedder = providers(NAME, settings).embedder(NAME, model, None).unwrap();
        let embedded = embed_all(embedder.as_ref(), &texts(200), purpose).await.unwrap();
        in_order(&embedded.vectors, dims);
        assert_eq!(
            (embedded.usage.calls, embedded.usage.tokens_in, embedded.vectors.len()),
            (2, 200, 200)
        );
        assert_eq!(embedded.model, model);
    }
}

#[tokio::test]
async fn its_reason_is_told() {
    let double = Double::start(|_, _| Ok(Reply::status(400, r#"{"detail":"Model x is not supported."}"#))).await;
    let providers = providers(NAME, settings(&double.url));
    let embedder = providers.embedder(NAME, "x", None).unwrap();
    let error = embedder.embed(&texts(1), Purpose::Document).await.unwrap_err();
    assert_eq!((error.kind, double.count()), (ProviderErrorKind::Invalid, 1));
    assert_eq!(
        error.to_string(),
        "voyageai: it answers 400: Model x is not supported. (status 400)"
    );
    assert!(providers.chat(NAME, "x", None).is_err());
}
