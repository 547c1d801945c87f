use std::collections::HashSet;

use super::*;

#[test]
fn every_subtype_of_the_interface_is_there_once() {
    let mut seen = HashSet::new();
    for entry in catalog() {
        assert!(seen.insert((entry.kind, &entry.subtype)), "{entry:?} twice");
        let names: HashSet<_> = entry.settings.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), entry.settings.len(), "{}: a setting twice", entry.subtype);
        assert!(!entry.needs_provider || !entry.providers.is_empty());
    }
    assert_eq!(
        kinds(),
        ["partition", "prompter", "chunk", "structured_data_extractor", "embed"]
    );
    for (kind, subtype) in [
        ("prompter", "vertexai_image_description"),
        ("prompter", "bedrock_ocr"),
        ("prompter", "twopass_table2html"),
        ("chunk", "chunk_by_table_merging"),
        ("embed", "ibm"),
        ("embed", "local"),
        ("structured_data_extractor", "regex"),
    ] {
        assert!(entry(kind, subtype).is_some(), "{kind} {subtype}");
    }
}

#[test]
fn defaults_are_values_their_settings_take() {
    for entry in catalog() {
        let schema = entry.json_schema();
        for setting in &entry.settings {
            assert!(!setting.required || setting.default.is_null(), "{}", setting.name);
            if !setting.default.is_null() {
                let property = &schema["properties"][setting.name];
                assert_eq!(
                    crate::schema::violations(property, &setting.default),
                    [],
                    "{}",
                    setting.name
                );
            }
        }
    }
}

#[test]
fn a_description_holds_a_schema_with_bounds() {
    let schema = entry("chunk", "chunk_by_similarity").unwrap().describe()["settings_schema"].clone();
    assert_eq!(schema["properties"]["similarity_threshold"]["exclusiveMaximum"], 1.0);
    assert_eq!(schema["properties"]["max_characters"]["minimum"], 1);
    assert_eq!(schema["additionalProperties"], false);
    let schema = entry("embed", "openai").unwrap().json_schema();
    assert_eq!(schema["required"], json!(["model_name"]));
}

#[test]
fn tasks_are_read_from_subtypes() {
    assert_eq!(
        task_of("azure_openai_ner"),
        Some((PromptTask::Ner, Some(Provider::AzureOpenAi)))
    );
    assert_eq!(
        task_of("openai_table2html"),
        Some((PromptTask::Table2Html, Some(Provider::OpenAi)))
    );
    assert_eq!(task_of("twopass_table2html"), Some((PromptTask::Table2Html, None)));
    assert_eq!(task_of("openai_magic"), None);
}

use crate::settings::PromptTask;
