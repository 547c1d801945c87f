//! Chains whose nodes call models, from the request to the last output.

use serde_json::{Value, json};

use crate::kit::client::{file_ids, text};
use crate::kit::models::{self, embedder, good_model, hi_res, node, paragraphs, prompter, report, report_pdf};
use crate::kit::{Client, File, Server, partition_node};

pub(crate) async fn output(client: &Client, job: &Value, node: usize) -> Value {
    let id = text(&job["id"]);
    let outputs = job["output_node_files"].as_array().expect("outputs");
    let mut nodes: Vec<&str> = Vec::new();
    for output in outputs {
        let id = text(&output["node_id"]);
        if !nodes.contains(&id) {
            nodes.push(id);
        }
    }
    let file = &file_ids(job)[0];
    let path = format!("/jobs/{id}/download?file_id={file}&node_id={}", nodes[node]);
    client.get(&path).await.ok()
}

fn of_type<'v>(elements: &'v Value, kind: &str) -> &'v Value {
    let elements = elements.as_array().expect("elements");
    let found = elements.iter().find(|element| element["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {elements:?}"))
}

#[tokio::test]
async fn chunks_are_embedded() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let chunker = node("chunk", "chunk_by_character", json!({"max_characters": 200}));
    let request = json!({"job_nodes": [partition_node(), chunker, embedder()]});
    let job = client.run(&request, &[File::new("a.html", paragraphs(20))]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    let chunks = output(&client, &job, 1).await;
    let embedded = output(&client, &job, 2).await;
    let (chunks, embedded) = (chunks.as_array().expect("a list"), embedded.as_array().expect("a list"));
    assert!(chunks.len() > 5 && chunks.len() == embedded.len());
    for (chunk, embedded) in chunks.iter().zip(embedded) {
        assert!(chunk.get("embeddings").is_none());
        let vector = embedded["embeddings"].as_array().expect("a vector");
        assert_eq!(vector.len(), 1_536);
        assert_eq!(vector[0], text(&chunk["text"]).chars().count() as f64);
        let mut without = embedded.clone();
        without.as_object_mut().expect("an object").remove("embeddings");
        assert_eq!(&without, chunk, "the rest is as it was");
    }
    assert_eq!(double.count(), 1, "all in one batch");
}

/// The published chain: every output field.
#[tokio::test]
async fn pictures_tables_entities_chunks_and_vectors() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let request = json!({"job_nodes": [
        hi_res(), prompter("image_description"), prompter("table_description"), prompter("table2html"),
        prompter("ner"), node("chunk", "chunk_by_title", json!({"include_orig_elements": true})), embedder(),
    ]});
    let job = client.run(&request, &[File::new("report.pdf", report_pdf())]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );

    let read = output(&client, &job, 0).await;
    let described = output(&client, &job, 1).await;
    let image = of_type(&described, "Image");
    let said: Value = serde_json::from_str(text(&image["text"])).expect("JSON text");
    assert_eq!(
        said,
        json!({"type": "graph", "description": {
            "texts": ["Revenue"], "tables": [], "description": "Bars that rise from 2023 to 2024."}})
    );
    let picture = text(&image["metadata"]["image_base64"]);
    assert!(picture.starts_with("/9j/") && picture.len() > 500, "{picture}");
    assert_eq!(image["metadata"]["image_mime_type"], "image/jpeg");
    assert_eq!(
        image["metadata"]["enrichment_origins"]["text"],
        json!([{"type": "image_description", "provider": "openai", "model": "gpt-4o"}])
    );

    let summarised = output(&client, &job, 2).await;
    let table = of_type(&summarised, "Table");
    assert_eq!(table["text"], "Revenue rose from 1 to 2 million.");
    let before = of_type(&read, "Table");
    assert_eq!(before["text"], "Year Revenue 2023 1 2024 2");
    for field in ["text_as_html", "image_base64"] {
        assert!(table["metadata"][field].is_string());
        assert_eq!(table["metadata"][field], before["metadata"][field], "as it was");
    }

    let structured = output(&client, &job, 3).await;
    let html = text(&of_type(&structured, "Table")["metadata"]["text_as_html"]).to_owned();
    assert_eq!(
        html,
        "<table><thead><tr><th>Year</th><th>Revenue</th></tr></thead><tbody><tr><td>2023</td><td>1</td></tr>\
         <tr><td>2024</td><td>2</td></tr></tbody></table>"
    );

    let named = output(&client, &job, 4).await;
    let entities = &of_type(&named, "NarrativeText")["metadata"]["entities"];
    assert_eq!(
        entities,
        &json!({"items": [{"entity": "Ada", "type": "PERSON"}, {"entity": "ACME", "type": "ORGANIZATION"}],
            "relationships": [{"from": "Ada", "relationship": "works_for", "to": "ACME"}]})
    );
    assert_eq!(
        of_type(&named, "NarrativeText")["metadata"]["parent_id"],
        of_type(&named, "Title")["element_id"]
    );

    let chunks = output(&client, &job, 5).await;
    let kinds: Vec<_> = chunks
        .as_array()
        .expect("a list")
        .iter()
        .map(|chunk| text(&chunk["type"]))
        .collect();
    assert_eq!(kinds, ["CompositeElement", "Table"]);
    assert_eq!(
        &chunks[0]["metadata"]["entities"], entities,
        "those of its elements, each once"
    );
    assert!(
        text(&chunks[0]["metadata"]["orig_elements"]).starts_with("eJ"),
        "{}",
        chunks[0]
    );
    // The chunker writes tables without what is no cell.
    let plain = html
        .replace("<thead>", "")
        .replace("</thead>", "")
        .replace("<tbody>", "")
        .replace("</tbody>", "");
    let plain = plain.replace("th>", "td>");
    assert_eq!(chunks[1]["metadata"]["text_as_html"], plain);

    let last = output(&client, &job, 6).await;
    for chunk in last.as_array().expect("a list") {
        assert_eq!(chunk["embeddings"].as_array().map(Vec::len), Some(1_536));
        let keys: Vec<_> = chunk.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["type", "element_id", "text", "metadata", "embeddings"]);
    }

    let details = client.details(text(&job["id"])).await;
    let cost = |node: usize| &details["node_stats"][node]["cost"];
    assert_eq!(details["node_stats"][0].get("cost"), None);
    assert_eq!(
        (
            &cost(1)["calls"],
            &cost(1)["tokens_in"],
            &cost(1)["tokens_out"],
            &cost(1)["model"]
        ),
        (&json!(1), &json!(100), &json!(10), &json!("openai/gpt-4o"))
    );
    assert_eq!(cost(4)["calls"], 4, "each element with words");
    assert_eq!(details["cost"]["calls"], 8);
    assert_eq!(details["files"][0]["costs"].as_array().map(Vec::len), Some(5));
    assert_eq!(details["files"][0]["costs"][0]["node_name"], "openai_image_description");
    assert_eq!(double.count(), 8);
}

/// Partition, enrich, chunk, context, extract, embed: each kind of node in one job.
#[tokio::test]
async fn every_kind_of_node_in_one_job() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["company", "years"],
        "properties": {"company": {"type": "string"}, "years": {"type": "array", "items": {"type": "integer"}}}});
    let request = json!({"job_nodes": [
        hi_res(),
        prompter("image_description"),
        node("structured_data_extractor", "llm", json!({"provider": "openai", "model": "gpt-4o",
            "schema_to_extract": {"json_schema": schema.to_string(), "extraction_guidance": "The company."}})),
        node("chunk", "chunk_by_title", json!({})),
        node("chunk", "chunk_by_contextual", json!({"contextual_chunking_model": "openai/gpt-4o"})),
        embedder(),
    ]});
    let job = client.run(&request, &[File::new("report.json", report())]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    let extracted = output(&client, &job, 2).await;
    assert_eq!(extracted[0]["type"], "DocumentData");
    assert_eq!(
        extracted[0]["metadata"]["extracted_data"],
        json!({"company": "ACME", "years": [2023, 2024]})
    );
    let (chunks, context) = (output(&client, &job, 3).await, output(&client, &job, 4).await);
    let words = |elements: &Value| {
        let all = elements.as_array().expect("a list").iter();
        all.filter(|element| element["type"] != "DocumentData")
            .map(|e| text(&e["text"]).to_owned())
            .collect::<Vec<_>>()
    };
    for (before, after) in words(&chunks).iter().zip(words(&context)) {
        assert_eq!(
            after,
            format!("Prefix: From the yearly report of ACME.; Original: {before}")
        );
    }
    let last = output(&client, &job, 5).await;
    assert_eq!(last[1]["embeddings"].as_array().map(Vec::len), Some(1_536));

    let request = json!({"job_nodes": [
        partition_node(),
        node("structured_data_extractor", "llm", json!({"provider": "openai", "model": "gpt-4o",
            "output_mode": "extracted_data_only", "schema_to_extract": {"json_schema": schema.to_string()}})),
    ]});
    let job = client.run(&request, &[File::new("report.json", report())]).await;
    assert_eq!(
        output(&client, &job, 1).await,
        json!({"company": "ACME", "years": [2023, 2024]})
    );
}

#[tokio::test]
async fn what_lacks_credentials_is_refused_by_the_name_of_the_setting() {
    let server = Server::start().await;
    let client = server.client();
    let file = File::new("a.txt", "Some words.");
    for (paid, setting) in [
        (prompter("ner"), "providers.openai.api_key"),
        (embedder(), "providers.openai.api_key"),
        (
            node("embed", "custom", json!({"model_name": "m"})),
            "providers.custom.base_url",
        ),
        (
            node("embed", "local", json!({"model_name": "m"})),
            "providers.local.model_dir",
        ),
    ] {
        let request = json!({"job_nodes": [partition_node(), paid]});
        let refused = client
            .create(&request, std::slice::from_ref(&file))
            .await
            .error(422, "chain_invalid");
        assert!(refused.to_string().contains(setting), "{refused}");
        let loc = refused["detail"][0]["loc"].to_string();
        assert!(loc.contains(r#""job_nodes",1"#), "{loc}");
        let workflow = json!({"name": "w", "workflow_type": "custom", "workflow_nodes": request["job_nodes"]});
        let refused = client
            .post_json("/workflows", &workflow)
            .await
            .error(422, "chain_invalid");
        assert!(refused.to_string().contains(setting), "{refused}");
    }
    let template = json!({"template_id": "hi_res_and_enrichment"});
    client.create(&template, &[file]).await.error(422, "chain_invalid");
}

#[tokio::test]
async fn the_template_with_enrichments_runs_where_there_is_a_provider() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let client = server.client();
    let template = json!({"template_id": "hi_res_and_enrichment"});
    let job = client.run(&template, &[File::new("report.json", report())]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    assert!(output(&client, &job, 3).await.to_string().contains("works_for"));
}

#[tokio::test]
async fn the_nodes_are_listed_with_their_schemas() {
    let double = good_model().await;
    let server = models::server(&double, &[]).await;
    let listed = server.client().get("/nodes").await.ok();
    let find = |kind: &str, subtype: &str| {
        let all = listed.as_array().expect("a list");
        let found = all
            .iter()
            .find(|node| node["type"] == kind && node["subtype"] == subtype);
        found.unwrap_or_else(|| panic!("no {kind} {subtype}")).clone()
    };
    let embed = find("embed", "openai");
    assert_eq!(
        (&embed["needs_provider"], &embed["available"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(embed["settings_schema"]["required"], json!(["model_name"]));
    assert_eq!(find("prompter", "anthropic_ner")["available"], false);
    assert_eq!(find("chunk", "chunk_by_title")["available"], true);
    assert_eq!(find("prompter", "twopass_table2html")["needs_provider"], false);
}
