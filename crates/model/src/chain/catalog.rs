//! Every node docmill knows, with its settings: one table that settings are checked against, defaults are
//! taken from, and JSON Schemas and documentation are made from.

mod chunk;
mod embed;
mod extract;
mod partition;
mod prompter;
mod schema;

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::NODE_KEY;
use crate::provider::Provider;

pub use embed::embed_limits;
pub(super) use prompter::task_of;

/// What the setting [`NODE_KEY`] does.
const OWN_KEY: &str =
    "A key for the provider instead of the server's. It is encrypted where it is kept and never shown.";

/// One kind of node.
#[derive(Clone, Debug)]
pub struct NodeEntry {
    /// `type` on the wire.
    pub kind: &'static str,
    /// `subtype` on the wire.
    pub subtype: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// Where it may stand in a chain.
    pub place: &'static str,
    /// Providers it may call; empty if it calls none.
    pub providers: Vec<Provider>,
    /// Whether it can't run without one of them.
    pub needs_provider: bool,
    /// Its settings.
    pub settings: Vec<Setting>,
}

/// One setting of a node.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its key.
    pub name: &'static str,
    /// What values it takes.
    pub value: Takes,
    /// Whether it has to be given.
    pub required: bool,
    /// The value when it is not given; `Null` for none.
    pub default: Value,
    /// What it does, in a sentence.
    pub description: &'static str,
}

/// The values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// True or false.
    Boolean,
    /// A whole number of at least this.
    Count(usize),
    /// A number strictly between these.
    Between(f64, f64),
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of element types.
    ElementTypes,
    /// An object whose inside the node checks itself, with the JSON Schema of this name.
    Object(ObjectOf),
    /// Anything; the setting is taken for the sake of clients that send it and changes nothing.
    Ignored,
}

/// Objects and lists with an inside of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectOf {
    /// `{prompt: {user: text}}`.
    PromptOverrides,
    /// `{json_schema: text, extraction_guidance: text}`.
    SchemaToExtract,
    /// `[{name, pattern}]`.
    Patterns,
}

/// Every kind of node there is, in the order of the documentation.
pub fn catalog() -> &'static [NodeEntry] {
    static CATALOG: OnceLock<Vec<NodeEntry>> = OnceLock::new();
    CATALOG.get_or_init(|| {
        let mut entries = partition::entries();
        entries.extend(prompter::entries());
        entries.extend(chunk::entries());
        entries.extend(extract::entries());
        entries.extend(embed::entries());
        for entry in entries.iter_mut().filter(|entry| !entry.providers.is_empty()) {
            if entry.setting(NODE_KEY).is_none() && entry.subtype != "local" {
                entry.settings.push(setting(NODE_KEY, Takes::Text, OWN_KEY));
            }
        }
        entries
    })
}

/// The kind of node with these words. `service_api` and `unstructured_api` are two names of one.
pub fn entry(kind: &str, subtype: &str) -> Option<&'static NodeEntry> {
    catalog()
        .iter()
        .find(|entry| entry.kind == kind && entry.subtype == subtype)
}

/// The node types, each once.
pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = catalog().iter().map(|entry| entry.kind).collect();
    kinds.dedup();
    kinds
}

/// The subtypes of a node type.
pub fn subtypes(kind: &str) -> Vec<&'static str> {
    let of_kind = catalog().iter().filter(|entry| entry.kind == kind);
    of_kind.map(|entry| entry.subtype.as_str()).collect()
}

impl NodeEntry {
    /// The setting of this name.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// The entry as told to clients: its words, what it does, and the JSON Schema of its settings.
    pub fn describe(&self) -> Value {
        json!({
            "type": self.kind,
            "subtype": self.subtype,
            "summary": self.summary,
            "place": self.place,
            "providers": self.providers.iter().map(|provider| provider.as_str()).collect::<Vec<_>>(),
            "needs_provider": self.needs_provider,
            "settings_schema": self.json_schema(),
        })
    }
}

/// A setting that may be left out and then has no value.
fn setting(name: &'static str, value: Takes, description: &'static str) -> Setting {
    Setting {
        name,
        value,
        required: false,
        default: Value::Null,
        description,
    }
}

/// A setting with a default.
fn default(name: &'static str, value: Takes, default: impl Into<Value>, description: &'static str) -> Setting {
    Setting {
        default: default.into(),
        ..setting(name, value, description)
    }
}

/// A setting that has to be given.
fn required(name: &'static str, value: Takes, description: &'static str) -> Setting {
    Setting {
        required: true,
        ..setting(name, value, description)
    }
}

fn ignored(name: &'static str) -> Setting {
    setting(name, Takes::Ignored, "Taken and not used.")
}

#[cfg(test)]
mod tests;
