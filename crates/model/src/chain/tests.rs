//! Tests of chains that call providers.

use serde_json::{Value, json};

use super::*;
use crate::provider::{Available, Provider};
use crate::settings::{Confidence, ExtractMethod, PromptTask, Tokenizer};

fn all() -> Available {
    Available::of(Provider::ALL.iter().copied())
}

fn read(nodes: &[Value], available: &Available) -> Result<NodeChain, Vec<Problem>> {
    let nodes: Vec<_> = nodes.to_vec();
    parse_with(&json!(nodes), &[], available).map(|(chain, _)| chain)
}

fn node(kind: &str, subtype: &str, settings: Value) -> Value {
    json!({"name": subtype, "type": kind, "subtype": subtype, "settings": settings})
}

fn hi_res(blocks: &[&str]) -> Value {
    node(
        "partition",
        "unstructured_api",
        json!({"strategy": "hi_res", "extract_image_block_types": blocks}),
    )
}

fn prompter(subtype: &str) -> Value {
    node("prompter", subtype, json!({}))
}

/// The only problem of a chain: where, and what.
fn problem(nodes: &[Value], available: &Available) -> (String, String) {
    let problems = read(nodes, available).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    let loc: Vec<_> = problems[0]
        .loc
        .iter()
        .map(|part| part.to_string().replace('"', ""))
        .collect();
    (loc.join("."), problems[0].msg.clone())
}

#[test]
fn the_chain_of_every_kind_is_taken() {
    let chain = read(
        &[
            hi_res(&["Image", "Table"]),
            node(
                "prompter",
                "openai_image_description",
                json!({"provider_type": "openai", "model": "gpt-4o"}),
            ),
            node(
                "prompter",
                "anthropic_table_description",
                json!({"provider_type": "anthropic"}),
            ),
            prompter("twopass_table2html"),
            prompter("bedrock_ocr"),
            node(
                "prompter",
                "openai_ner",
                json!({"prompt_interface_overrides": {"prompt": {"user": "Find ships in {{text}}"}}}),
            ),
            node(
                "structured_data_extractor",
                "regex",
                json!({"regex_patterns": [{"name": "day", "pattern": r"\d+"}]}),
            ),
            node(
                "chunk",
                "chunk_by_table_merging",
                json!({"table_merging_provider": "vertexai", "confidence_threshold": "high"}),
            ),
            node(
                "chunk",
                "chunk_by_title",
                json!({"max_tokens": 512, "tokenizer": "gpt-4o", "overlap": 20}),
            ),
            node(
                "chunk",
                "chunk_by_contextual",
                json!({"contextual_chunking_model": "custom_openai_compatible/org/m"}),
            ),
            node("embed", "voyageai", json!({"model_name": "voyage-3-lite"})),
        ],
        &all(),
    )
    .unwrap();
    let works: Vec<_> = chain.nodes().iter().map(|node| &node.work).collect();
    assert!(
        matches!(works[3], NodeWork::Prompt(p) if p.second_pass && p.task == PromptTask::Table2Html && p.model.is_some())
    );
    assert!(matches!(works[4], NodeWork::Prompt(p) if p.block_types == ["image", "table"]));
    assert!(matches!(works[5], NodeWork::Prompt(p) if p.user_prompt.is_some()));
    assert!(
        matches!(works[6], NodeWork::Extract(e) if matches!(&e.method, ExtractMethod::Regex(p) if p[0].translated == r"[\p{Nd}]+"))
    );
    assert!(
        matches!(works[7], NodeWork::MergeTables(t) if t.confidence_threshold == Confidence::High && t.max_concurrency == 4)
    );
    assert!(matches!(works[8], NodeWork::Chunk(c) if c.tokenizer == Some(Tokenizer::O200k) && c.max_characters == 512));
    assert!(matches!(works[9], NodeWork::Contextualize(c) if c.model.to_string() == "custom/org/m"));
    assert!(matches!(works[10], NodeWork::Embed(e) if e.limits.unwrap().dimensions == 512));
    let stored = serde_json::to_string(&chain).unwrap();
    assert_eq!(serde_json::from_str::<NodeChain>(&stored).unwrap(), chain);
}

#[test]
fn wrong_orders_are_refused_where_they_are() {
    let chunk = node("chunk", "chunk_by_title", json!({}));
    let embed = node("embed", "openai", json!({"model_name": "text-embedding-3-small"}));
    let fast = node("partition", "service_api", json!({"strategy": "fast"}));
    let vlm = node("partition", "vlm", json!({"is_dynamic": false}));
    let describe = prompter("openai_image_description");
    let data_only = json!({"regex_patterns": [{"name": "a", "pattern": "a"}], "output_mode": "extracted_data_only"});
    let cases: &[(&[Value], &str)] = &[
        (
            &[hi_res(&[]), chunk.clone(), describe.clone()],
            "before they are chunked",
        ),
        (&[fast, describe.clone()], "`fast`"),
        (&[vlm, describe.clone()], "vision model"),
        (&[hi_res(&[]), prompter("openai_ocr")], "extract_image_block_types"),
        (&[hi_res(&[]), embed.clone(), chunk.clone()], "after an embed node"),
        (
            &[hi_res(&[]), describe.clone(), prompter("anthropic_image_description")],
            "same",
        ),
        (&[hi_res(&[]), chunk.clone(), chunk.clone()], "at most one"),
        (
            &[
                hi_res(&[]),
                node(
                    "chunk",
                    "chunk_by_contextual",
                    json!({"contextual_chunking_model": "openai/gpt-4o"}),
                ),
            ],
            "after a node that makes chunks",
        ),
        (
            &[
                hi_res(&[]),
                node("structured_data_extractor", "regex", data_only),
                embed.clone(),
            ],
            "leaves no elements",
        ),
    ];
    for (nodes, why) in cases {
        let (loc, msg) = problem(nodes, &all());
        assert_eq!(loc, (nodes.len() - 1).to_string());
        assert!(msg.contains(why), "{why}: {msg}");
    }
    let ner_last = [hi_res(&[]), chunk, prompter("openai_ner"), embed];
    assert!(read(&ner_last, &all()).is_ok());
}

#[test]
fn wrong_settings_are_refused_where_they_are() {
    let one =
        |kind: &str, subtype: &str, settings: Value| problem(&[hi_res(&[]), node(kind, subtype, settings)], &all());
    let cases = [
        one("chunk", "chunk_by_similarity", json!({"similarity_threshold": 1.0})),
        one("chunk", "chunk_by_title", json!({"max_tokens": 9})),
        one(
            "chunk",
            "chunk_by_title",
            json!({"max_tokens": 9, "tokenizer": "magic"}),
        ),
        one(
            "chunk",
            "chunk_by_title",
            json!({"max_tokens": 9, "tokenizer": "o200k_base", "max_characters": 9}),
        ),
        one(
            "chunk",
            "chunk_by_contextual",
            json!({"contextual_chunking_model": "voyageai/m"}),
        ),
        one("chunk", "chunk_by_contextual", json!({})),
        one("prompter", "openai_ner", json!({"provider_type": "anthropic"})),
        one("prompter", "azure_openai_ner", json!({})),
        one(
            "prompter",
            "openai_ner",
            json!({"prompt_interface_overrides": {"prompt": {"user": "no place"}}}),
        ),
        one("embed", "openai", json!({"model_name": "m", "dimensions": 3})),
        one(
            "structured_data_extractor",
            "llm",
            json!({"schema_to_extract": {"json_schema": "{"}}),
        ),
        one("structured_data_extractor", "llm", json!({"schema_to_extract": {}})),
        one(
            "structured_data_extractor",
            "regex",
            json!({"regex_patterns": [{"name": "a", "pattern": "(?=a)"}]}),
        ),
        one("structured_data_extractor", "regex", json!({"regex_patterns": []})),
        one("structured_data_extractor", "magic", json!({})),
    ];
    let locs: Vec<_> = cases
        .iter()
        .map(|(loc, _)| loc.strip_prefix("1.settings.").unwrap_or(loc))
        .collect();
    assert_eq!(
        locs,
        [
            "similarity_threshold",
            "tokenizer",
            "tokenizer",
            "max_characters",
            "contextual_chunking_model",
            "contextual_chunking_model",
            "provider_type",
            "model",
            "prompt_interface_overrides.prompt.user",
            "dimensions",
            "schema_to_extract.json_schema",
            "schema_to_extract",
            "regex_patterns.0.pattern",
            "regex_patterns",
            "1.subtype",
        ]
    );
    assert!(cases[12].1.contains("look-ahead"), "{}", cases[12].1);
    let small = node("embed", "bedrock", json!({"model_name": "amazon.titan-embed-image-v1"}));
    let chunk = node("chunk", "chunk_by_title", json!({"max_characters": 1000}));
    assert_eq!(problem(&[hi_res(&[]), chunk, small], &all()).0, "2.settings.model_name");
}

#[test]
fn without_credentials_each_node_names_what_it_lacks() {
    let none = Available::none();
    for (kind, subtype, settings, lacks) in [
        (
            "prompter",
            "bedrock_image_description",
            json!({}),
            "providers.bedrock.api_key",
        ),
        (
            "embed",
            "local",
            json!({"model_name": "m"}),
            "providers.local.model_dir",
        ),
        ("chunk", "chunk_by_similarity", json!({}), "providers.local.model_dir"),
        (
            "chunk",
            "chunk_by_table_merging",
            json!({"table_merging_provider": "openai"}),
            "providers.openai.api_key",
        ),
        (
            "structured_data_extractor",
            "llm",
            json!({"schema_to_extract": {"extraction_guidance": "all"}}),
            "providers.openai.api_key",
        ),
    ] {
        let (loc, msg) = problem(&[hi_res(&[]), node(kind, subtype, settings)], &none);
        assert_eq!(loc, "1.subtype");
        assert!(msg.contains(lacks), "{msg}");
    }
    assert!(read(&[hi_res(&[]), prompter("twopass_table2html")], &none).is_ok());
    let vlm = |settings: Value| [node("partition", "vlm", settings)];
    assert!(
        read(
            &vlm(json!({"is_dynamic": true, "allow_fast": true, "provider": "openai"})),
            &none
        )
        .is_ok()
    );
    assert_eq!(
        problem(&vlm(json!({"is_dynamic": false})), &none).0,
        "0.settings.provider"
    );
    assert!(
        read(
            &vlm(json!({"is_dynamic": false, "provider": "openai", "provider_api_key": "k"})),
            &none
        )
        .is_ok()
    );
    assert!(
        read(
            &vlm(json!({"is_dynamic": false, "provider": "openai", "provider_api_key": "****"})),
            &none
        )
        .is_err()
    );
}

#[test]
fn describing_pictures_lets_the_partitioner_keep_them() {
    let chain = read(&[hi_res(&["table"]), prompter("openai_image_description")], &all()).unwrap();
    let NodeWork::Partition(options) = &chain.nodes()[0].work else {
        panic!("{chain:?}")
    };
    assert_eq!(options.extract_image_block_types, ["table", "image"]);
}
