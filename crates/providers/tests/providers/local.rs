//! Models run here. The tests make a tiny one; the library of ONNX Runtime is named by `ORT_DYLIB_PATH`
//! (that of the Python package `onnxruntime` does).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use docmill_providers::{Provider, ProviderErrorKind, ProviderSettings, Providers, Purpose, embed_all};
use serde_json::{Value, json};

use crate::double::egress;

const NAME: Provider = Provider::Local;

/// A field of a protocol buffer that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 16_384, "a length of two bytes");
    let (low, high) = ((bytes.len() & 0x7f) as u8, (bytes.len() >> 7) as u8);
    [&[number << 3 | 2, low | 0x80, high], bytes].concat()
}

/// A field of a protocol buffer that holds a small number.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn value(name: &str, kind: u8, dims: usize) -> Vec<u8> {
    let dims: Vec<u8> = (0..dims)
        .flat_map(|dim| field(1, &field(2, format!("{name}{dim}").as_bytes())))
        .collect();
    let tensor = [number(1, kind), field(2, &dims)].concat();
    [field(1, name.as_bytes()), field(2, &field(1, &tensor))].concat()
}

/// An ONNX model that looks every token up in a table: padding, unknown, red, blue.
fn onnx(third: &str) -> Vec<u8> {
    let table: Vec<u8> = [9.0_f32, 9.0, 0.0, 1.0, 3.0, 4.0, 1.0, 0.0]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let table = [
        number(1, 4),
        number(1, 2),
        number(2, 1),
        field(8, b"table"),
        field(9, &table),
    ]
    .concat();
    let node = [
        field(1, b"table"),
        field(1, b"input_ids"),
        field(2, b"last_hidden_state"),
        field(4, b"Gather"),
    ];
    let graph = [
        field(1, &node.concat()),
        field(2, b"g"),
        field(5, &table),
        field(11, &value("input_ids", 7, 2)),
        field(11, &value("attention_mask", 7, 2)),
        field(11, &value(third, 7, 2)),
        field(12, &value("last_hidden_state", 1, 3)),
    ];
    [
        number(1, 8),
        field(7, &graph.concat()),
        field(8, &[field(1, b""), number(2, 13)].concat()),
    ]
    .concat()
}

fn write(models: &Path, name: &str, onnx: &[u8], files: &[(&str, Value)]) {
    let directory = models.join(name);
    fs::create_dir_all(directory.join("1_Pooling")).unwrap();
    fs::write(directory.join("model.onnx"), onnx).unwrap();
    let vocabulary = json!({"[PAD]": 0, "[UNK]": 1, "red": 2, "blue": 3});
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    for (file, content) in files {
        fs::write(directory.join(file), content.to_string()).unwrap();
    }
}

fn providers(models: &Path) -> Providers {
    let settings = ProviderSettings {
        model_dir: Some(models.to_owned()),
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
