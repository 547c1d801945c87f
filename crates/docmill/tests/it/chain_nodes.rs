//! The chunkers that call models, destinations, and chains without a server.

use std::path::Path;
use std::process::{Command, Output};

use docmill_testkit::Double;
use serde_json::{Value, json};

use crate::chain::output;
use crate::kit::client::text;
use crate::kit::models::{self, embedder, good_model, node, paragraphs, prompter};
use crate::kit::{File, Folders, partition_node, piped_workflow};

fn texts(elements: &Value) -> Vec<&str> {
    elements
        .as_array()
        .expect("a list")
        .iter()
        .map(|element| text(&element["text"]))
        .collect()
}

#[tokio::test]
async fn equal_questions_are_asked_once() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let page = "<p>Ada works for ACME in Paris, as everybody knows.</p>".repeat(7);
    let request = json!({"job_nodes": [partition_node(), prompter("ner"), embedder()]});
    let job = client.run(&request, &[File::new("a.html", page)]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    let last = output(&client, &job, 2).await;
    let elements = last.as_array().expect("a list");
    assert_eq!(elements.len(), 7);
    assert!(
        elements
            .iter()
            .all(|e| e["metadata"]["entities"].is_object() && e["embeddings"].is_array())
    );
    assert_eq!(double.count(), 2);
}

#[tokio::test]
async fn tables_over_a_pages_end_become_one() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let table = |id: &str, page: u32, value: &str| {
        let html =
            format!("<table><thead><tr><th>Name</th></tr></thead><tbody><tr><td>{value}</td></tr></tbody></table>");
        json!({"type": "Table", "element_id": id, "text": format!("Name {value}"),
            "metadata": {"page_number": page, "text_as_html": html}})
    };
    let document = json!([table("1", 1, "Ada"), table("2", 2, "Bob")]).to_string();
    let merging = json!({"table_merging_provider": "openai", "table_merging_model": "gpt-4o"});
    let request = json!({"job_nodes": [partition_node(), node("chunk", "chunk_by_table_merging", merging)]});
    let job = client.run(&request, &[File::new("a.json", document)]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    assert_eq!(texts(&output(&client, &job, 1).await), ["Name Ada Bob"]);
    assert_eq!(double.count(), 1);
}

#[tokio::test]
async fn chunks_by_similarity_and_with_context() {
    let double = good_model().await;
    let server = models::server(&double, &[("MODELS__EMBED", "openai/text-embedding-3-small")]).await;
    let client = server.client();
    let similar = node(
        "chunk",
        "chunk_by_similarity",
        json!({"similarity_threshold": 0.5, "max_characters": 400}),
    );
    let request = json!({"job_nodes": [partition_node(), similar]});
    let job = client.run(&request, &[File::new("a.html", paragraphs(12))]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    let chunks = output(&client, &job, 1).await;
    assert!((2..12).contains(&texts(&chunks).len()), "{chunks}");
    assert_eq!(double.count(), 1);

    let context = json!({"contextual_chunking_strategy": "v1", "max_characters": 300});
    let request = json!({"job_nodes": [partition_node(), node("chunk", "chunk_by_title", context)]});
    let job = client.run(&request, &[File::new("a.html", paragraphs(4))]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    let chunks = output(&client, &job, 1).await;
    for chunk in texts(&chunks) {
        assert!(
            chunk.starts_with("Prefix: From the yearly report of ACME.; Original: Ada"),
            "{chunk}"
        );
    }
}

/// A run from a source to a destination: what is embedded arrives, and what has not changed is not paid for.
#[tokio::test]
async fn a_workflow_delivers_what_its_models_made() {
    let double = good_model().await;
    let folders = Folders::new();
    let (name, roots) = folders.setting();
    let server = models::server(&double, &[(name, &roots)]).await;
    let client = server.client();
    std::fs::write(folders.folder("in").join("a.html"), paragraphs(3)).expect("a file");
    let source = client.local("source", &folders.folder("in")).await;
    let destination = client.local("destination", &folders.folder("out")).await;
    let mut workflow = piped_workflow("w", &source, &destination);
    workflow["workflow_nodes"] = json!([partition_node(), prompter("ner"), embedder()]);
    workflow["reprocess_all"] = true.into();
    let workflow = client.workflow(&workflow).await;
    for _ in 0..2 {
        let run = client.run_workflow(text(&workflow["id"])).await;
        let run = client.ended(text(&run["id"])).await;
        assert_eq!(
            run["status"],
            "COMPLETED",
            "{}",
            client.failed_files(text(&run["id"])).await
        );
    }
    let written = folders.files("out");
    let (_, bytes) = written.first_key_value().expect("a document");
    let elements: Value = serde_json::from_slice(bytes).expect("JSON");
    assert_eq!(elements[2]["embeddings"].as_array().map(Vec::len), Some(1_536));
    assert_eq!(elements[0]["metadata"]["entities"]["items"][0]["entity"], "Ada");
    assert_eq!(double.count(), 3 + 1);
}

pub(crate) fn run(folder: &Path, double: Option<&Double>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command.args(["run", "--source", "in", "--destination", "out", "--nodes", "nodes.json"]);
    command.current_dir(folder).env_remove("OPENAI_API_KEY");
    for (name, value) in double.map(models::settings).unwrap_or_default() {
        command.env(format!("DOCMILL_{name}"), value);
    }
    command.output().expect("the program starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_without_a_server_calls_models_too() {
    let double = good_model().await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("in")).expect("a folder");
    for name in ["in/a.html", "in/b.html"] {
        std::fs::write(folder.path().join(name), paragraphs(3)).expect("a file");
    }
    let nodes = json!([partition_node(), prompter("ner"), embedder()]);
    std::fs::write(folder.path().join("nodes.json"), nodes.to_string()).expect("a file");
    let refused = run(folder.path(), None);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && told.contains("providers.openai.api_key"),
        "{told}"
    );

    let done = run(folder.path(), Some(&double));
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && told.contains("openai_ner: "), "{told}");
    let bytes = std::fs::read(folder.path().join("out/b.html.json")).expect("a document");
    let elements: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(elements[0]["embeddings"].as_array().map(Vec::len), Some(1_536));
    // The second file asks the same; both may be under way at once.
    assert!((4..=8).contains(&double.count()), "{}", double.count());
}
