//! Chains as clients send them and as they are stored: read, and refused where they could not run.

use docmill_model::chain::{NODE_KEY, NodeChain, NodeSpec, NodeWork, Problem, parse_with};
use docmill_providers::{ProviderError, Secret};
use serde_json::{Value, json};

use super::{Models, NodeKeys};
use crate::vault::MARK;

/// Stands for an encrypted key while the settings around it are read.
const SEALED: &str = "sealed";

impl Models {
    /// Reads a client's chain. Keys in it are encrypted, in the chain as in the nodes to be stored; one that is
    /// shown as a mask is taken from the node of the same id in `stored`.
    ///
    /// # Errors
    /// All that is wrong with it, credentials and settings that its models lack among them.
    pub(crate) fn read_chain(
        &self,
        keys: &NodeKeys,
        nodes: &Value,
        stored: &[NodeSpec],
        loc: &[Value],
    ) -> Result<(NodeChain, Vec<NodeSpec>), Vec<Problem>> {
        let mut nodes = nodes.clone();
        let mut given = Vec::new();
        for node in nodes.as_array_mut().into_iter().flatten() {
            given.push(take_key(node, stored));
        }
        let (chain, specs) = parse_with(&nodes, loc, self.available())?;
        self.complete(keys, chain, specs, given, loc)
    }

    /// Reads a stored chain.
    ///
    /// # Errors
    /// What keeps it from running now.
    pub(crate) fn stored_chain(
        &self,
        keys: &NodeKeys,
        nodes: &[NodeSpec],
        loc: &[Value],
    ) -> Result<NodeChain, Vec<Problem>> {
        let mut value =
            serde_json::to_value(nodes).map_err(|error| vec![Problem::new(loc, "value_error", error.to_string())])?;
        let mut given = Vec::new();
        for node in value.as_array_mut().into_iter().flatten() {
            let key = node.pointer_mut(&format!("/settings/{NODE_KEY}"));
            given.push(key.and_then(|key| {
                let sealed = key.get(MARK)?.as_str()?.to_owned();
                *key = SEALED.into();
                Some(Key::Sealed(sealed))
            }));
        }
        let (chain, specs) = parse_with(&value, loc, self.available())?;
        self.complete(keys, chain, specs, given, loc).map(|(chain, _)| chain)
    }

    /// Adds the keys to a chain that was read, and checks that its models can be called.
    fn complete(
        &self,
        keys: &NodeKeys,
        mut chain: NodeChain,
        mut specs: Vec<NodeSpec>,
        given: Vec<Option<Key>>,
        loc: &[Value],
    ) -> Result<(NodeChain, Vec<NodeSpec>), Vec<Problem>> {
        let mut problems = Vec::new();
        for (index, key) in given.into_iter().enumerate() {
            let (Some(node), Some(spec)) = (chain.nodes_mut().get_mut(index), specs.get_mut(index)) else {
                continue;
            };
            let at = |parts: &[&str]| {
                let mut at = loc.to_vec();
                at.push(json!(index));
                at.extend(parts.iter().map(|part| json!(part)));
                at
            };
            let sealed = match key {
                None => None,
                Some(Key::Sealed(sealed)) => Some(sealed),
                Some(Key::Plain(key)) => match keys.seal(node, &key) {
                    Ok(sealed) => Some(sealed),
                    Err(error) => {
                        problems.push(Problem::new(
                            &at(&["settings", NODE_KEY]),
                            "value_error",
                            error.to_string(),
                        ));
                        continue;
                    }
                },
            };
            node.sealed_key = sealed;
            if let Some(sealed) = &node.sealed_key {
                spec.settings.insert(NODE_KEY.into(), json!({ MARK: sealed }));
            }
            let key = match keys.open(node) {
                Ok(key) => key,
                Err(_) => {
                    let msg = "the key was given for another provider or can't be decrypted; give it again";
                    problems.push(Problem::new(&at(&["settings", NODE_KEY]), "value_error", msg));
                    continue;
                }
            };
            if let Err((parts, msg)) = self.check(&node.work, key.as_ref()) {
                problems.push(Problem::new(&at(&parts), "value_error", msg));
            }
        }
        if problems.is_empty() {
            Ok((chain, specs))
        } else {
            Err(problems)
        }
    }

    /// Whether a node's model can be called; where the problem lies and what it is, otherwise.
    fn check(&self, work: &NodeWork, key: Option<&Secret>) -> Result<(), (Vec<&'static str>, String)> {
        let Some(model) = work.model() else { return Ok(()) };
        let made = if work.embeds() {
            self.providers().embedder(model.provider, &model.model, key).map(drop)
        } else {
            self.providers().chat(model.provider, &model.model, key).map(drop)
        };
        made.map_err(|error: ProviderError| (vec!["settings"], error.to_string()))?;
        if self.config().budget.is_some() && self.price(model).is_none() {
            let msg = format!(
                "there is a budget, and no price of {model} to hold against it: set \
                 `providers.{}.prices.\"{}\"`",
                model.provider, model.model
            );
            return Err((vec!["settings"], msg));
        }
        Ok(())
    }
}

/// A node's own key as it was found.
enum Key {
    Plain(String),
    Sealed(String),
}

/// The key in a client's node, if it holds one that is no mask; a mask stands for the stored node's.
fn take_key(node: &mut Value, stored: &[NodeSpec]) -> Option<Key> {
    let id = node.get("id").and_then(Value::as_str).map(str::to_owned);
    let key = node.pointer_mut(&format!("/settings/{NODE_KEY}"))?;
    let text = key.as_str()?.trim();
    if text.is_empty() {
        return None;
    }
    if !text.trim_matches('*').is_empty() {
        return Some(Key::Plain(text.to_owned()));
    }
    let same = stored
        .iter()
        .find(|spec| spec.id.map(|id| id.to_string()) == id && id.is_some())?;
    let sealed = same.settings.get(NODE_KEY)?.get(MARK)?.as_str()?.to_owned();
    *key = SEALED.into();
    Some(Key::Sealed(sealed))
}
