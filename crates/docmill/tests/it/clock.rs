//! Workflows that run by the clock, from a bucket to a database and to a directory, through the loss of the
//! server.

use std::collections::BTreeMap;
use std::path::Path;

use docmill_testkit::{Moto, Postgres};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, Server, partition_node, until};

/// Objects of the bucket at the start: enough for a run to be under way when the server is killed.
const OBJECTS: usize = 120;

async fn put(moto: &Moto, path: &str, body: String) {
    crate::kit::install_cryptography();
    let answer = reqwest::Client::new()
        .put(format!("{}/{path}", moto.endpoint()))
        .body(body)
        .send()
        .await
        .expect("the bucket answers");
    assert!(answer.status().is_success(), "{answer:?}");
}

fn page(number: usize, edition: &str) -> String {
    format!("<h1>Page {number}</h1><p>This is the {edition} edition of page {number}, and nothing else.</p>")
}

async fn create(client: &Client, path: &str, body: Value) -> String {
    let answer = client.send(client.request(Method::POST, path).json(&body)).await;
    text(&answer.ok()["id"]).to_owned()
}

/// Runs of a workflow, oldest first.
async fn runs(client: &Client, workflow: &str) -> Vec<Value> {
    let jobs = client.get(&format!("/jobs/?workflow_id={workflow}")).await.ok();
    let mut jobs = jobs.as_array().expect("a list").clone();
    jobs.reverse();
    jobs
}

/// Waits for the end of a workflow's run of this number, the first being 1.
async fn run_ended(client: &Client, workflow: &str, number: usize) -> Value {
    let run = until(&format!("run {number}"), async || {
        runs(client, workflow).await.into_iter().nth(number - 1)
    })
    .await;
    let run = client.ended(text(&run["id"])).await;
    assert_eq!(
        (&run["status"], &run["job_type"]),
        (&json!("COMPLETED"), &json!("scheduled"))
    );
    run
}

/// The texts of each page in the directory, by page.
fn directory(root: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("pages")).expect("the folder").flatten() {
        let bytes = std::fs::read(entry.path()).expect("readable");
        let elements: Vec<Value> = serde_json::from_slice(&bytes).expect("JSON");
        let texts = elements
            .iter()
            .map(|element| text(&element["text"]).to_owned())
            .collect();
        found.insert(entry.file_name().to_string_lossy().into_owned(), texts);
    }
    found
}

fn expected(number: usize, edition: &str) -> Vec<String> {
    vec![
        format!("Page {number}"),
        format!("This is the {edition} edition of page {number}, and nothing else."),
    ]
}

#[tokio::test]
async fn scheduled_workflows_run_twice_through_a_kill_without_doubles() {
    let (moto, postgres) = (Moto::start(), Postgres::start());
    put(&moto, "library", String::new()).await;
    for number in 0..OBJECTS {
        put(
            &moto,
            &format!("library/in/pages/{number:03}.html"),
            page(number, "first"),
        )
        .await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    std::fs::create_dir(&out).expect("a folder");
    let mut server = Server::with(&[
        ("EGRESS__DANGER_ALLOW_CIDRS", "127.0.0.0/8"),
        ("EGRESS__ALLOW_HTTP", "true"),
        ("CONNECTORS__LOCAL_ROOTS", &folder.path().to_string_lossy()),
    ])
    .await;
    let client = server.client();
    let source = create(
        &client,
        "/sources",
        json!({"name": "library", "type": "s3", "config": {
            "remote_url": "s3://library/in/", "endpoint_url": moto.endpoint(), "key": "test", "secret": "test"}}),
    )
    .await;
    let table = create(
        &client,
        "/destinations",
        json!({"name": "table", "type": "postgres", "config": {
            "host": "127.0.0.1", "port": postgres.port(), "database": Postgres::DATABASE, "username": Postgres::USER,
            "password": Postgres::PASSWORD, "table_name": "elements", "batch_size": 50, "create_table": true}}),
    )
    .await;
    let shelf = create(
        &client,
        "/destinations",
        json!({"name": "shelf", "type": "local", "config": {"path": out}}),
    )
    .await;
    let workflow = |name: &str, destination: &str, reprocess_all: bool| {
        create(
            &client,
            "/workflows",
            json!({"name": name, "workflow_type": "custom", "source_id": source, "destination_id": destination,
                   "schedule": "* * * * *", "reprocess_all": reprocess_all, "workflow_nodes": [partition_node()]}),
        )
    };
    // One does everything again at each run, the other only what changed.
    let to_table = workflow("to the table", &table, true).await;
    let to_shelf = workflow("to the shelf", &shelf, false).await;

    run_ended(&client, &to_table, 1).await;
    run_ended(&client, &to_shelf, 1).await;
    put(&moto, "library/in/pages/000.html", page(0, "second")).await;
    put(&moto, "library/in/pages/new.html", page(OBJECTS, "first")).await;

    let second = until("the second run to be under way", async || {
        let run = runs(&client, &to_table).await.into_iter().nth(1)?;
        let details = client.details(text(&run["id"])).await;
        let done = details["summary"]["total_docs_succeeded"].as_u64()?;
        (done > 5 && done < OBJECTS as u64 / 2).then_some(run)
    })
    .await;
    server.kill();
    let server = server.restart().await;
    let client = server.client();
    run_ended(&client, &to_table, 2).await;
    assert_eq!(runs(&client, &to_table).await[1]["id"], second["id"]);
    let incremental = run_ended(&client, &to_shelf, 2).await;
    let details = client.details(text(&incremental["id"])).await;
    assert_eq!(details["files_unchanged"], OBJECTS - 1, "{details}");
    assert_eq!(details["summary"]["total_docs_succeeded"], 2, "{details}");

    let rows = postgres.sql("SELECT count(*), count(DISTINCT id), count(DISTINCT record_id) FROM elements");
    let documents = OBJECTS + 1;
    assert_eq!(rows, format!("{}|{}|{documents}", documents * 2, documents * 2));
    let second_editions = "SELECT count(*) FROM elements WHERE text LIKE '%second edition of page 0,%'";
    assert_eq!(postgres.sql(second_editions), "1");
    let stale = "SELECT count(*) FROM elements WHERE text LIKE '%first edition of page 0,%'";
    assert_eq!(postgres.sql(stale), "0");

    let found = directory(&out);
    assert_eq!(found.len(), documents);
    assert_eq!(found["000.html.json"], expected(0, "second"));
    assert_eq!(found["new.html.json"], expected(OBJECTS, "first"));
    assert_eq!(found["077.html.json"], expected(77, "first"));
}
