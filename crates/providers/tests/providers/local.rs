//! Models run here. The tests make a tiny one; `scripts/setup` brings the library of ONNX Runtime.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use docmill_providers::{Provider, ProviderErrorKind, ProviderSettings, Providers, Purpose, embed_all};
use docmill_testkit::{onnx, onnx_runtime, write_model as write};
use serde_json::json;

use crate::double::egress;

const NAME: Provider = Provider::Local;

fn providers(models: &Path) -> Providers {
    let settings = ProviderSettings {
        model_dir: Some(models.to_owned()),
        runtime_library: Some(onnx_runtime()),
        ..ProviderSettings::default()
    };
    Providers::new(egress(), BTreeMap::from([(NAME, settings)]))
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn a_model_embeds_as_its_files_say() {
    let models = tempfile::tempdir().unwrap();
    let bert = |most: u32| ("sentence_bert_config.json", json!({"max_seq_length": most}));
    let first = (
        "1_Pooling/config.json",
        json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}),
    );
    let modules = (
        "modules.json",
        json!([{"type": "sentence_transformers.models.Transformer"}]),
    );
    write(models.path(), "org/mean", &onnx("token_type_ids"), &[bert(3)]);
    write(
        models.path(),
        "first",
        &onnx("token_type_ids"),
        &[bert(3), first, modules],
    );
    let providers = providers(models.path());
    let half = 0.5_f32.sqrt();
    for (model, vectors) in [
        ("org/mean", [[0.6, 0.8], [half, half], [0.0, 1.0]]),
        ("first", [[3.0, 4.0], [1.0, 0.0], [0.0, 1.0]]),
    ] {
        let embedder = providers.embedder(NAME, model, None).unwrap();
        let asked = texts(&["red", "blue red", "green"]);
        let embedded = embed_all(embedder.as_ref(), &asked, Purpose::Document).await.unwrap();
        assert_eq!((embedded.usage.tokens_in, embedded.model.as_str()), (4, model));
        for (found, wanted) in embedded.vectors.iter().zip(vectors) {
            let near = found
                .iter()
                .zip(wanted)
                .all(|(found, wanted)| (found - wanted).abs() < 1e-6);
            assert!(near && found.len() == 2, "{model}: {found:?} is not {wanted:?}");
        }
        let many: Vec<String> = (0..100).map(|place| ["red", "blue"][place % 2].to_owned()).collect();
        let embedded = embed_all(embedder.as_ref(), &many, Purpose::Document).await.unwrap();
        assert_eq!((embedded.vectors.len(), embedded.usage.calls), (100, 4));
        assert_eq!(embedded.vectors[0], embedded.vectors[98]);
        // Never cut, also where the tokenizer's file says so.
        let error = embed_all(embedder.as_ref(), &texts(&["red", "red red red red"]), Purpose::Query).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
        assert!(
            error
                .message
                .starts_with("text 1 has 4 tokens; the model takes at most 3"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_no_model_is_told() {
    let models = tempfile::tempdir().unwrap();
    write(models.path(), "broken", b"no model", &[]);
    write(models.path(), "strange", &onnx("pixel_values"), &[]);
    write(
        models.path(),
        "last",
        &onnx("x"),
        &[("1_Pooling/config.json", json!({"pooling_mode_lasttoken": true}))],
    );
    fs::create_dir(models.path().join("empty")).unwrap();
    let providers = providers(models.path());
    for (model, message) in [
        ("empty", "is missing"),
        ("nowhere", "is missing"),
        ("../empty", "is no name of a model"),
        ("/etc", "is no name of a model"),
    ] {
        let error = providers.embedder(NAME, model, None).unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Setup);
        assert!(error.message.contains(message), "{error}");
    }
    for (model, message) in [
        ("broken", "model.onnx"),
        ("strange", "the model wants the input `pixel_values`"),
        ("last", "1_Pooling/config.json asks for"),
    ] {
        let embedder = providers.embedder(NAME, model, None).unwrap();
        let error = embedder.embed(&texts(&["red"]), Purpose::Document).await.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Setup, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}
