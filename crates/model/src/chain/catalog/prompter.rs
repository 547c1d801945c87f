//! Enrichments by chat models.

use super::{NodeEntry, ObjectOf, Setting, Takes, required, setting};
use crate::provider::Provider;
use crate::settings::PromptTask;

/// Providers whose name stands in front of a task to make a subtype.
const PREFIXES: &[Provider] = &[
    Provider::Anthropic,
    Provider::Bedrock,
    Provider::OpenAi,
    Provider::VertexAi,
    Provider::AzureOpenAi,
    Provider::Custom,
];

const TWO_PASS: &str = "twopass_table2html";

pub(super) fn entries() -> Vec<NodeEntry> {
    let mut entries = Vec::new();
    for &task in PromptTask::ALL {
        for &provider in PREFIXES {
            entries.push(NodeEntry {
                kind: "prompter",
                subtype: format!("{provider}_{task}"),
                summary: summary(task).into(),
                place: place(task),
                providers: vec![provider],
                needs_provider: true,
                settings: settings(task, provider),
            });
        }
    }
    entries.push(NodeEntry {
        kind: "prompter",
        subtype: TWO_PASS.into(),
        summary: "Sets `text_as_html` of tables: what the engine found, and where it found no good structure the answer of a chat model, if there is one.".into(),
        place: place(PromptTask::Table2Html),
        providers: PREFIXES.to_vec(),
        needs_provider: false,
        settings: vec![
            setting("provider_type", Takes::Text, "Who has the model of the second pass; left out, one that has credentials."),
            setting("model", Takes::Text, "The model of the second pass."),
        ],
    });
    entries
}

/// The task of a subtype, and its provider unless it is for the node to find one.
pub(in super::super) fn task_of(subtype: &str) -> Option<(PromptTask, Option<Provider>)> {
    if subtype == TWO_PASS {
        return Some((PromptTask::Table2Html, None));
    }
    PREFIXES.iter().find_map(|provider| {
        let task = subtype.strip_prefix(provider.as_str())?.strip_prefix('_')?;
        Some((PromptTask::parse(task)?, Some(*provider)))
    })
}

fn summary(task: PromptTask) -> &'static str {
    match task {
        PromptTask::ImageDescription => {
            "Describes each picture: its `text` becomes a JSON text with `type` and `description`."
        }
        PromptTask::TableDescription => "Summarises each table: its `text` becomes the summary, `text_as_html` stays.",
        PromptTask::Table2Html => "Sets `text_as_html` of each table from its picture or text.",
        PromptTask::Ner => "Sets `entities`: the named entities of each element and how they relate.",
        PromptTask::Ocr => {
            "Reads the picture of each element whose type is in the partitioner's `extract_image_block_types`: its `text` becomes what is read."
        }
    }
}

fn place(task: PromptTask) -> &'static str {
    match task {
        PromptTask::Ner => "after the partitioner, before an embedder",
        _ => "after a partitioner with strategy `hi_res` or `auto`, before chunkers",
    }
}

fn settings(task: PromptTask, provider: Provider) -> Vec<Setting> {
    let mut settings = vec![
        setting("provider_type", Takes::Text, "The provider, as in the subtype."),
        match provider.default_chat_model() {
            Some(_) => setting(
                "model",
                Takes::Text,
                "The model; left out, a default one of the provider.",
            ),
            None => required("model", Takes::Text, "The model, or the name of its deployment."),
        },
    ];
    if task == PromptTask::Ner {
        settings.push(setting(
            "prompt_interface_overrides",
            Takes::Object(ObjectOf::PromptOverrides),
            "`prompt.user` is sent in place of the built-in prompt, with the element's text for `{{text}}`.",
        ));
    }
    settings
}
