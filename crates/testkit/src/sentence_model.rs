//! A sentence model that is small enough to be written in a test, and the library that runs it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The library of ONNX Runtime: that of `ORT_DYLIB_PATH`, or of the Python package that `scripts/setup` installs.
pub fn onnx_runtime() -> PathBuf {
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH") {
        return path.into();
    }
    let within = |folder: PathBuf, start: &str| {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
        found.next().map(|entry| entry.path())
    };
    let lib = crate::installed(".venv/bin/python").with_file_name("").join("../lib");
    let packages = within(lib, "python").map(|python| python.join("site-packages/onnxruntime/capi"));
    let library = packages.and_then(|packages| within(packages, "libonnxruntime.so"));
    library.expect("the Python package onnxruntime: run scripts/setup")
}

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

/// An ONNX model that looks every token up in a table: padding and unknown are (9, 9) and (0, 1), red is (3, 4) and blue
/// (1, 0). `third` names its input beside tokens and mask.
pub fn onnx(third: &str) -> Vec<u8> {
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

/// Writes a sentence model's directory `name` below `models`, with a tokenizer and these files beside.
pub fn write_model(models: &Path, name: &str, onnx: &[u8], files: &[(&str, Value)]) {
    let directory = models.join(name);
    fs::create_dir_all(directory.join("1_Pooling")).expect("a working disk");
    fs::write(directory.join("model.onnx"), onnx).expect("a working disk");
    let vocabulary = json!({"[PAD]": 0, "[UNK]": 1, "red": 2, "blue": 3});
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).expect("a working disk");
    for (file, content) in files {
        fs::write(directory.join(file), content.to_string()).expect("a working disk");
    }
}
