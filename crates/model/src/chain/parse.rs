//! The rules of a chain.

use serde_json::{Map, Value, json};

use super::catalog::{self, NodeEntry};
use super::fields::{Fields, clip};
use super::order::check_place;
use super::{Node, NodeChain, NodeSpec, NodeWork, Problem, node_settings, paid_settings};
use crate::ids::NodeId;
use crate::provider::Available;
use crate::settings::ChunkStrategy;

/// Nodes a chain may have.
const MAX_NODES: usize = 32;

/// Reads a chain that may call no provider: [`parse_with`] where none is available.
pub fn parse(value: &Value, loc: &[Value]) -> Result<(NodeChain, Vec<NodeSpec>), Vec<Problem>> {
    parse_with(value, loc, &Available::none())
}

/// Reads a chain from a request's JSON value found at `loc`.
///
/// Gives every node an id, keeps the client's `type` and `subtype` words, and refuses by name what
/// docmill does not do, or can't do without a provider that is not `available`. All problems are reported,
/// not just the first.
///
/// # Errors
/// Everything that is wrong, each with its place below `loc`.
pub fn parse_with(
    value: &Value,
    loc: &[Value],
    available: &Available,
) -> Result<(NodeChain, Vec<NodeSpec>), Vec<Problem>> {
    let Some(items) = value.as_array() else {
        return Err(vec![Problem::new(loc, "list_type", "input should be a list of nodes")]);
    };
    if items.is_empty() {
        return Err(vec![Problem::new(
            loc,
            "too_short",
            "the chain needs at least a partition node",
        )]);
    }
    if items.len() > MAX_NODES {
        return Err(vec![Problem::new(
            loc,
            "too_long",
            format!("a chain has at most {MAX_NODES} nodes"),
        )]);
    }
    let mut problems = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut specs = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut at = loc.to_vec();
        at.push(json!(index));
        match parse_node(item, &at, available) {
            Ok((mut node, spec)) => {
                if nodes.iter().any(|other| other.id == node.id) {
                    problems.push(Problem::new(
                        &[at.as_slice(), &[json!("id")]].concat(),
                        "value_error",
                        "two nodes have this id",
                    ));
                }
                check_place(&mut nodes, &mut node, &at, &mut problems);
                nodes.push(node);
                specs.push(spec);
            }
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        Ok((NodeChain { nodes }, specs))
    } else {
        Err(problems)
    }
}

fn parse_node(item: &Value, at: &[Value], available: &Available) -> Result<(Node, NodeSpec), Vec<Problem>> {
    let path = |name: &str| [at, &[json!(name)]].concat();
    let Some(map) = item.as_object() else {
        return Err(vec![Problem::new(at, "dict_type", "input should be an object")]);
    };
    let mut problems = Vec::new();
    let mut text = |name: &str| match map.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Null) | None => {
            problems.push(Problem::new(&path(name), "missing", "field required"));
            None
        }
        Some(_) => {
            problems.push(Problem::new(&path(name), "string_type", "input should be a string"));
            None
        }
    };
    let (name, kind, subtype) = (text("name"), text("type"), text("subtype"));
    let id = match map.get("id") {
        None | Some(Value::Null) => Some(NodeId::new()),
        Some(Value::String(id)) if id.is_empty() => Some(NodeId::new()),
        Some(Value::String(id)) => id.parse().ok(),
        Some(_) => None,
    };
    if id.is_none() {
        problems.push(Problem::new(&path("id"), "uuid_parsing", "input should be a UUID"));
    }
    let empty = Map::new();
    let settings = match map.get("settings") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(settings)) => settings,
        Some(_) => {
            problems.push(Problem::new(
                &path("settings"),
                "dict_type",
                "input should be an object",
            ));
            &empty
        }
    };
    let (Some(name), Some(kind), Some(subtype), Some(id)) = (name, kind, subtype, id) else {
        return Err(problems);
    };
    // One published sample has the two words the wrong way round; there is no doubt what it means.
    let (kind, subtype) = if kind == "vlm" && subtype == "partition" {
        (subtype, kind)
    } else {
        (kind, subtype)
    };
    match parse_work(&kind, &subtype, settings, at, available) {
        Ok(work) if problems.is_empty() => {
            let spec = NodeSpec {
                id: Some(id),
                name: name.clone(),
                kind: kind.clone(),
                subtype: subtype.clone(),
                settings: settings.clone(),
            };
            Ok((
                Node {
                    id,
                    name,
                    kind,
                    subtype,
                    work,
                    sealed_key: None,
                },
                spec,
            ))
        }
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

fn parse_work(
    kind: &str,
    subtype: &str,
    settings: &Map<String, Value>,
    at: &[Value],
    available: &Available,
) -> Result<NodeWork, Vec<Problem>> {
    let path = |field: &str| [at, &[json!(field)]].concat();
    let entry = find(kind, subtype).map_err(|(field, msg)| vec![Problem::new(&path(field), "value_error", msg)])?;
    let fields = Fields::new(path("settings"), path("subtype"), settings, entry, available);
    match (entry.kind, entry.subtype.as_str()) {
        ("partition", "vlm") => node_settings::vlm(fields),
        ("partition", _) => node_settings::partition(fields),
        ("chunk", "chunk_by_title") => node_settings::chunk(fields, ChunkStrategy::ByTitle),
        ("chunk", "chunk_by_character") => node_settings::chunk(fields, ChunkStrategy::ByCharacter),
        ("chunk", "chunk_by_page") => node_settings::chunk(fields, ChunkStrategy::ByPage),
        ("chunk", "chunk_by_similarity") => node_settings::chunk_by_similarity(fields),
        ("chunk", "chunk_by_contextual") => paid_settings::contextual(fields),
        ("chunk", _) => paid_settings::table_merging(fields),
        ("prompter", _) => paid_settings::prompter(fields),
        ("embed", _) => paid_settings::embed(fields),
        (_, "llm") => paid_settings::extract_llm(fields),
        _ => paid_settings::extract_regex(fields),
    }
}

/// The node with these words; else which word is wrong, and why.
fn find(kind: &str, subtype: &str) -> Result<&'static NodeEntry, (&'static str, String)> {
    catalog::entry(kind, subtype).ok_or_else(|| match catalog::subtypes(kind) {
        none if none.is_empty() => ("type", unknown("node type", kind, &catalog::kinds())),
        known => ("subtype", unknown(&format!("{kind} subtype"), subtype, &known)),
    })
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!("unknown {what} `{}`; known are {}", clip(name), known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: Value) -> Result<(NodeChain, Vec<NodeSpec>), Vec<Problem>> {
        parse(&value, &[json!("body"), json!("job_nodes")])
    }

    fn problem(value: Value) -> (String, &'static str) {
        let problems = one(value).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        (serde_json::to_string(&problems[0].loc).unwrap(), problems[0].kind)
    }

    fn partition_node() -> Value {
        json!({"name": "P", "type": "partition", "subtype": "service_api", "settings": {"strategy": "hi_res"}})
    }

    #[test]
    fn the_published_chain_is_taken_and_echoed() {
        let (chain, specs) = one(json!([
            {"name": "Partitioner", "type": "partition", "subtype": "unstructured_api",
             "settings": {"strategy": "hi_res", "extract_image_block_types": ["image", "table"], "infer_table_structure": true}},
            {"name": "Chunker", "type": "chunk", "subtype": "chunk_by_title",
             "settings": {"max_characters": 1200, "new_after_n_chars": 1000, "overlap": 150}}
        ]))
        .unwrap();
        assert_eq!(specs[0].subtype, "unstructured_api");
        let NodeWork::Chunk(options) = &chain.nodes()[1].work else {
            panic!("{chain:?}")
        };
        assert_eq!(
            (options.max_characters, options.new_after_n_chars, options.overlap),
            (1200, 1000, 150)
        );
        assert!(!options.multipage_sections && !options.include_orig_elements);
    }

    #[test]
    fn each_wrong_chain_is_refused_where_it_is_wrong() {
        let chunk = json!({"name": "C", "type": "chunk", "subtype": "chunk_by_title"});
        assert_eq!(problem(json!({})).1, "list_type");
        assert_eq!(problem(json!([])).1, "too_short");
        assert_eq!(
            problem(json!([partition_node(), partition_node()])).0,
            r#"["body","job_nodes",1]"#
        );
        assert_eq!(problem(json!([chunk])).0, r#"["body","job_nodes",0]"#);
        assert_eq!(
            problem(json!([{"name": "P", "type": "partition", "subtype": "magic"}])).0,
            r#"["body","job_nodes",0,"subtype"]"#
        );
        assert_eq!(
            problem(json!([{"name": "P", "type": "wash", "subtype": "magic"}])).0,
            r#"["body","job_nodes",0,"type"]"#
        );
        assert_eq!(
            problem(json!([{"type": "partition", "subtype": "vlm", "settings": {"is_dynamic": true}}])).1,
            "missing"
        );
        let with = |settings: Value| json!([partition_node(), {"name": "C", "type": "chunk", "subtype": "chunk_by_title", "settings": settings}]);
        let at = |name: &str| format!(r#"["body","job_nodes",1,"settings","{name}"]"#);
        assert_eq!(problem(with(json!({"max_characters": 0}))).0, at("max_characters"));
        assert_eq!(
            problem(with(json!({"max_characters": "many"}))),
            (at("max_characters"), "int_type")
        );
        assert_eq!(problem(with(json!({"overlap": 500}))).0, at("overlap"));
        assert_eq!(
            problem(with(json!({"combine_text_under_n_chars": 501}))).0,
            at("combine_text_under_n_chars")
        );
        assert_eq!(
            problem(with(json!({"max_chars": 5}))),
            (at("max_chars"), "extra_forbidden")
        );
        assert_eq!(
            problem(with(json!({"skip_table_chunking": true, "isolate_table": false}))).0,
            at("skip_table_chunking")
        );
    }

    #[test]
    fn what_needs_a_provider_is_refused_by_name() {
        for (kind, subtype, setting) in [
            ("prompter", "openai_image_description", "model"),
            ("embed", "voyageai", "model_name"),
        ] {
            let node = json!({"name": "N", "type": kind, "subtype": subtype, "settings": {setting: "m"}});
            let problems = one(json!([partition_node(), node])).unwrap_err();
            assert!(
                problems[0].msg.contains(subtype) && problems[0].msg.contains("provider"),
                "{problems:?}"
            );
        }
        assert_eq!(
            problem(json!([{"name": "P", "type": "partition", "subtype": "vlm", "settings": {"is_dynamic": false}}])).1,
            "value_error"
        );
    }

    #[test]
    fn swapped_words_of_a_published_sample_are_understood() {
        let (chain, _) = one(json!([{"name": "P", "type": "vlm", "subtype": "partition", "settings": {"is_dynamic": true, "allow_fast": true}}])).unwrap();
        assert_eq!(chain.nodes()[0].subtype, "vlm");
    }
}
