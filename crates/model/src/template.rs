//! Built-in templates: named chains a job can be made from.

use serde_json::{Value, json};

/// A template.
#[derive(Clone, Debug)]
pub struct Template {
    /// Slug.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Version of its chain.
    pub version: &'static str,
    /// When its chain last changed.
    pub last_updated: &'static str,
    nodes: fn() -> Value,
}

impl Template {
    /// The chain, in the shape of `job_nodes`, with fixed node ids.
    pub fn nodes(&self) -> Value {
        (self.nodes)()
    }
}

/// The templates there are.
pub const TEMPLATES: &[Template] = &[
    Template {
        id: "hi_res_partition",
        name: "High Resolution Partition",
        description: "Partition with the most thorough engine there is.",
        version: "1.0.0",
        last_updated: "2026-11-21T00:00:00.000000",
        nodes: || json!([hi_res("01980000-0000-7000-8000-000000000001")]),
    },
    Template {
        id: "hi_res_and_enrichment",
        name: "High Resolution and Enrichment",
        description: "Partition with the most thorough engine, then describe pictures and tables and find named entities with a model provider.",
        version: "1.0.0",
        last_updated: "2026-11-21T00:00:00.000000",
        nodes: || {
            json!([
                hi_res("01980000-0000-7000-8000-000000000011"),
                openai(
                    "01980000-0000-7000-8000-000000000012",
                    "image description step",
                    "openai_image_description"
                ),
                openai(
                    "01980000-0000-7000-8000-000000000013",
                    "table description step",
                    "openai_table_description"
                ),
                openai(
                    "01980000-0000-7000-8000-000000000014",
                    "named entities step",
                    "openai_ner"
                ),
            ])
        },
    },
];

/// The template with this slug.
pub fn find(id: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| template.id == id)
}

fn hi_res(id: &str) -> Value {
    json!({
        "id": id, "name": "partition step", "type": "partition", "subtype": "unstructured_api",
        "settings": {"strategy": "hi_res", "include_page_breaks": true, "infer_table_structure": true}
    })
}

fn openai(id: &str, name: &str, subtype: &str) -> Value {
    json!({
        "id": id, "name": name, "type": "prompter", "subtype": subtype,
        "settings": {"provider_type": "openai", "model": "gpt-4o"}
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::parse;

    #[test]
    fn one_template_runs_and_the_other_says_what_it_lacks() {
        assert!(parse(&find("hi_res_partition").unwrap().nodes(), &[]).is_ok());
        let problems = parse(&find("hi_res_and_enrichment").unwrap().nodes(), &[]).unwrap_err();
        assert!(problems.iter().all(|p| p.msg.contains("provider")), "{problems:?}");
    }
}
