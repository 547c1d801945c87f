//! From settings to typed options: enrichments, extractors, embedders and the chunkers that ask a model.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::catalog::{embed_limits, task_of};
use super::fields::{Fields, clip};
use super::{NodeWork, Problem};
use crate::provider::{ModelRef, Provider};
use crate::settings::{
    Confidence, ContextOptions, EmbedOptions, ExtractMethod, ExtractOptions, LlmExtraction, OutputMode, Pattern,
    PromptOptions, TableMergeOptions,
};
use crate::{python_regex, schema};

/// Characters a prompt, or guidance, of a user may have.
const MAX_PROMPT_CHARS: usize = 50_000;

/// Where the element's text goes in a user's prompt.
pub(super) const TEXT_PLACE: &str = "{{text}}";

/// Patterns one node may have.
const MAX_PATTERNS: usize = 100;

pub(super) fn provider_missing(provider: Provider) -> String {
    match provider {
        Provider::Local => "there is no local model: set `providers.local.model_dir`".into(),
        Provider::Custom => "the model provider `custom` has no address: set `providers.custom.base_url`".into(),
        provider => format!(
            "the model provider `{provider}` has no credentials: set `providers.{provider}.api_key` (environment \
             `DOCMILL_PROVIDERS__{}__API_KEY`)",
            provider.as_str().to_ascii_uppercase()
        ),
    }
}

/// Whether `provider` can be called, by the server's key or by one in the node's settings.
pub(super) fn available_or_own_key(fields: &Fields, provider: Provider) -> bool {
    let own = fields.text("provider_api_key").unwrap_or_default();
    // A row of stars is how answers show a key, which is then not there.
    fields.available.has(provider) || !own.trim_matches('*').trim().is_empty()
}

/// The provider if it can be called; else that is a problem of the subtype.
fn callable(fields: &mut Fields, provider: Provider) -> Option<Provider> {
    if available_or_own_key(fields, provider) {
        return Some(provider);
    }
    let msg = format!("`{}` can't run: {}", fields.entry.subtype, provider_missing(provider));
    fields.problem_of_subtype(msg);
    None
}

/// The model named by the setting `name`, or the provider's default.
fn model_of(fields: &mut Fields, provider: Provider, name: &str) -> Option<ModelRef> {
    let given = fields.text(name).map(str::trim).filter(|model| !model.is_empty());
    if given.is_none() && fields.has(name) {
        fields.problem(name, "value_error", "input should name a model");
    } else if given.is_none()
        && provider.default_chat_model().is_none()
        && fields.entry.setting(name).is_some_and(|setting| !setting.required)
    {
        fields.problem(
            name,
            "missing",
            format!("`{provider}` has no default model, so name one"),
        );
    }
    let model = given.or(provider.default_chat_model())?;
    Some(ModelRef {
        provider,
        model: model.to_owned(),
    })
}

pub(super) fn prompter(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let Some((task, prefix)) = task_of(&fields.entry.subtype) else {
        return fields.fail();
    };
    let second_pass = prefix.is_none();
    let stated = fields.text("provider_type").filter(|word| !word.is_empty());
    if let (Some(prefix), Some(stated)) = (prefix, stated)
        && stated != prefix.as_str()
    {
        let msg = format!("input should be `{prefix}`, as in the subtype");
        fields.problem("provider_type", "value_error", msg);
    }
    let model = match prefix {
        Some(provider) => callable(&mut fields, provider).and_then(|provider| model_of(&mut fields, provider, "model")),
        None => second_pass_model(&mut fields, stated),
    };
    let user_prompt = user_prompt(&mut fields);
    if model.is_none() && !second_pass {
        return fields.fail();
    }
    fields.finish(NodeWork::Prompt(PromptOptions {
        task,
        model,
        second_pass,
        user_prompt,
        block_types: Vec::new(),
    }))
}

/// The model of a second pass, which there may be without.
fn second_pass_model(fields: &mut Fields, stated: Option<&str>) -> Option<ModelRef> {
    let Some(stated) = stated else {
        return fields.available.chat_model();
    };
    match Provider::parse(stated).filter(|provider| provider.chats()) {
        Some(provider) => {
            let provider = callable(fields, provider)?;
            model_of(fields, provider, "model")
        }
        None => {
            let msg = format!("unknown provider `{}` of chat models", clip(stated));
            fields.problem("provider_type", "value_error", msg);
            None
        }
    }
}

fn user_prompt(fields: &mut Fields) -> Option<String> {
    const NAME: &str = "prompt_interface_overrides";
    let given = fields.get(NAME)?;
    let path = [json!(NAME), json!("prompt"), json!("user")];
    let prompt = only_key(given, "prompt").and_then(|prompt| only_key(prompt, "user"));
    let Some(Value::String(prompt)) = prompt else {
        fields.problem_in(
            &path,
            "value_error",
            "input should be an object `{\"prompt\": {\"user\": \"...\"}}`",
        );
        return None;
    };
    if !prompt.contains(TEXT_PLACE) {
        let msg = format!("the prompt should hold `{TEXT_PLACE}` where the element's text goes");
        fields.problem_in(&path, "value_error", msg);
    }
    check_length(fields, &path, prompt);
    Some(prompt.clone())
}

fn only_key<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.as_object().filter(|map| map.len() == 1)?.get(name)
}

fn check_length(fields: &mut Fields, path: &[Value], text: &str) {
    if text.chars().count() > MAX_PROMPT_CHARS {
        let msg = format!("input should have at most {MAX_PROMPT_CHARS} characters");
        fields.problem_in(path, "too_long", msg);
    }
}

pub(super) fn contextual(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    const NAME: &str = "contextual_chunking_model";
    let user_prompt = fields.text("user_prompt").map(str::to_owned);
    if let Some(prompt) = &user_prompt {
        check_length(&mut fields, &[json!("user_prompt")], prompt);
    }
    let context_char_limit = fields.count("context_char_limit").unwrap_or(1);
    let Some(given) = fields.text(NAME) else {
        return fields.fail();
    };
    let parts = given.split_once('/').filter(|(_, model)| !model.trim().is_empty());
    let Some((provider, model)) = parts.and_then(|(provider, model)| {
        let provider = match provider {
            "custom_openai_compatible" => Provider::Custom,
            name => Provider::parse(name).filter(|provider| provider.chats())?,
        };
        Some((provider, model.trim().to_owned()))
    }) else {
        let msg = "input should be `provider/model`, where provider is anthropic, openai, custom_openai_compatible, vertexai or bedrock";
        fields.problem(NAME, "value_error", msg);
        return fields.fail();
    };
    if callable(&mut fields, provider).is_none() {
        return fields.fail();
    }
    fields.finish(NodeWork::Contextualize(ContextOptions {
        model: ModelRef { provider, model },
        context_char_limit,
        user_prompt,
    }))
}

pub(super) fn table_merging(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let provider = fields.text("table_merging_provider").and_then(Provider::parse);
    let provider = provider.and_then(|provider| callable(&mut fields, provider));
    let Some(model) = provider.and_then(|provider| model_of(&mut fields, provider, "table_merging_model")) else {
        return fields.fail();
    };
    let confidence = fields.text("confidence_threshold").and_then(Confidence::parse);
    let max_concurrency = fields.count("table_merging_max_concurrency").unwrap_or(1);
    fields.finish(NodeWork::MergeTables(TableMergeOptions {
        model,
        confidence_threshold: confidence.unwrap_or(Confidence::Medium),
        max_concurrency,
    }))
}

pub(super) fn embed(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let provider = Provider::parse(&fields.entry.subtype);
    let provider = provider.and_then(|provider| callable(&mut fields, provider));
    let model = fields.text("model_name").map(str::trim);
    if model == Some("") {
        fields.problem("model_name", "value_error", "input should name a model");
    }
    let (Some(provider), Some(model)) = (provider, model) else {
        return fields.fail();
    };
    fields.finish(NodeWork::Embed(EmbedOptions {
        limits: embed_limits(provider, model),
        model: ModelRef {
            provider,
            model: model.to_owned(),
        },
    }))
}

pub(super) fn extract_llm(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    let (schema, guidance) = schema_to_extract(&mut fields);
    let provider = fields.text("provider").and_then(Provider::parse);
    let provider = provider.and_then(|provider| callable(&mut fields, provider));
    let Some(model) = provider.and_then(|provider| model_of(&mut fields, provider, "model")) else {
        return fields.fail();
    };
    let options = ExtractOptions {
        method: ExtractMethod::Llm(LlmExtraction {
            model,
            schema,
            guidance,
        }),
        output_mode: output_mode(&fields),
    };
    fields.finish(NodeWork::Extract(options))
}

fn output_mode(fields: &Fields) -> OutputMode {
    let mode = fields.text("output_mode").and_then(OutputMode::parse);
    mode.unwrap_or(OutputMode::Elements)
}

fn schema_to_extract(fields: &mut Fields) -> (Option<Value>, Option<String>) {
    const NAME: &str = "schema_to_extract";
    let Some(given) = fields.get(NAME) else {
        return (None, None);
    };
    let at = |key: &str| [json!(NAME), json!(key)];
    let empty = Map::new();
    let map = given.as_object().unwrap_or(&empty);
    let known = ["json_schema", "extraction_guidance"];
    if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
        fields.problem_in(
            &at(key),
            "extra_forbidden",
            format!("unknown key; known are {}", known.join(", ")),
        );
    }
    let schema = map.get("json_schema").filter(|value| !value.is_null() && *value != "");
    let schema = schema.and_then(|schema| match read_schema(schema) {
        Ok(schema) => Some(schema),
        Err(msg) => {
            fields.problem_in(&at("json_schema"), "value_error", msg);
            None
        }
    });
    let guidance = match map.get("extraction_guidance") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Some(_) => {
            fields.problem_in(&at("extraction_guidance"), "string_type", "input should be a string");
            None
        }
    };
    if let Some(text) = &guidance {
        check_length(fields, &at("extraction_guidance"), text);
    }
    if schema.is_none() && guidance.is_none() && map.values().all(|value| value.is_null() || value == "") {
        fields.problem(
            NAME,
            "value_error",
            "input should be an object with `json_schema`, `extraction_guidance` or both",
        );
    }
    (schema, guidance)
}

/// Reads a schema given as a text or as an object, also in the wrapping `{name, schema, strict}`.
fn read_schema(given: &Value) -> Result<Value, String> {
    let read = match given {
        Value::String(text) => serde_json::from_str(text).map_err(|error| format!("the text is no JSON: {error}"))?,
        other => other.clone(),
    };
    let schema = match read.get("schema") {
        Some(inner) if read.get("type").is_none() => inner.clone(),
        _ => read,
    };
    schema::check(&schema).map_err(|problem| problem.to_string())?;
    Ok(schema)
}

pub(super) fn extract_regex(mut fields: Fields) -> Result<NodeWork, Vec<Problem>> {
    const NAME: &str = "regex_patterns";
    let items = match fields.get(NAME) {
        Some(Value::Array(items)) if (1..=MAX_PATTERNS).contains(&items.len()) => items.as_slice(),
        Some(_) => {
            let msg = format!("input should be a list of 1 to {MAX_PATTERNS} objects `{{name, pattern}}`");
            fields.problem(NAME, "list_type", msg);
            &[]
        }
        None => &[],
    };
    let mut patterns = Vec::new();
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = |key: &str| [json!(NAME), json!(index), json!(key)];
        let text = |key: &str| item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        for key in ["name", "pattern"] {
            if text(key).is_none() {
                fields.problem_in(&at(key), "missing", "input should be a string that is not empty");
            }
        }
        let (Some(name), Some(pattern)) = (text("name"), text("pattern")) else {
            continue;
        };
        if !names.insert(name) {
            fields.problem_in(&at("name"), "value_error", "two patterns have this name");
        }
        match python_regex::translate(pattern) {
            Ok(translated) => patterns.push(Pattern {
                name: name.to_owned(),
                pattern: pattern.to_owned(),
                translated,
            }),
            Err(error) => fields.problem_in(&at("pattern"), "value_error", error.to_string()),
        }
    }
    let options = ExtractOptions {
        method: ExtractMethod::Regex(patterns),
        output_mode: output_mode(&fields),
    };
    fields.finish(NodeWork::Extract(options))
}
