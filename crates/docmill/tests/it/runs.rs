//! Runs of workflows between directories, as a client sees them.

use serde_json::{Value, json};

use crate::kit::client::{file_ids, text};
use crate::kit::documents::{html, slow_html};
use crate::kit::{Client, File, Folders, Server, custom_workflow, piped_workflow};
use crate::workflows::places;

async fn piped(client: &Client, folders: &Folders) -> Value {
    let source = client.local("source", &folders.folder("in")).await;
    let destination = client.local("destination", &folders.folder("out")).await;
    client.workflow(&piped_workflow("pipe", &source, &destination)).await
}

#[tokio::test]
async fn files_go_from_the_source_to_the_destination_and_only_new_ones_the_next_time() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for (name, words) in [("a.html", "first"), ("deep/er/b ü.html", "second")] {
        let path = folders.folder("in").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, html(words, 2)).expect("a file");
    }
    std::fs::write(folders.folder("in").join("broken.bin"), vec![0u8; 100]).expect("a file");
    let workflow = piped(&client, &folders).await;
    let id = text(&workflow["id"]);

    let job = client.run_workflow(id).await;
    assert_eq!(
        (&job["status"], &job["job_type"]),
        (&json!("COMPLETED"), &json!("persistent"))
    );
    assert_eq!(
        (&job["input_file_ids"], &job["output_node_files"]),
        (&Value::Null, &Value::Null)
    );
    let details = client.details(text(&job["id"])).await;
    assert_eq!(details["processing_status"], "COMPLETED_WITH_ERRORS");
    assert_eq!(
        (&details["listing"], &details["files_unchanged"]),
        (&json!("complete"), &json!(0))
    );
    assert_eq!(
        details["summary"],
        json!({"total_docs": 3, "total_docs_succeeded": 2, "total_docs_failed": 1})
    );
    let node = &details["node_stats"][0];
    assert_eq!(
        [&node["ready"], &node["in_progress"], &node["success"], &node["failure"]],
        [0, 0, 2, 1]
    );
    let failed = client.failed_files(text(&job["id"])).await;
    assert_eq!(failed["failed_files"][0]["document"], "broken.bin");
    let written = folders.files("out");
    assert_eq!(
        written.keys().collect::<Vec<_>>(),
        ["a.html.json", "deep/er/b ü.html.json"]
    );
    let elements: Value = serde_json::from_slice(&written["deep/er/b ü.html.json"]).expect("JSON");
    assert_eq!(elements[0]["text"], "second");
    let place = &elements[0]["metadata"]["data_source"]["record_locator"]["path"];
    assert!(place.is_string(), "{elements}");
    // None is kept for download.
    let file = text(&details["files"][0]["file_id"]);
    let answer = client
        .get(&format!("/jobs/{}/download?file_id={file}", text(&job["id"])))
        .await;
    answer.error(404, "output_not_ready");

    // Nothing is new but the file that failed.
    let again = client.run_workflow(id).await;
    let details = client.details(text(&again["id"])).await;
    assert_eq!(details["files_unchanged"], 2, "{details}");
    assert_eq!(details["summary"]["total_docs"], 1, "{details}");
    assert_eq!(folders.files("out"), written);
    std::fs::remove_file(folders.folder("in").join("broken.bin")).expect("removed");
    std::fs::write(folders.folder("in").join("a.html"), html("changed", 2)).expect("a file");
    let third = client.run_workflow(id).await;
    assert_eq!(client.details(text(&third["id"])).await["summary"]["total_docs"], 1);
    assert!(String::from_utf8_lossy(&folders.files("out")["a.html.json"]).contains("changed"));
    // With the setting, all of them, and what is gone is removed.
    std::fs::remove_dir_all(folders.folder("in").join("deep")).expect("removed");
    let change = json!({"reprocess_all": true, "delete_removed_files": true});
    client.put_json(&format!("/workflows/{id}"), &change).await.ok();
    client.run_workflow(id).await;
    assert_eq!(folders.files("out").keys().collect::<Vec<_>>(), ["a.html.json"]);
    let listed = client.get(&format!("/jobs?workflow_id={id}")).await.ok();
    assert_eq!(listed.as_array().map(Vec::len), Some(4));
    assert!(
        listed
            .as_array()
            .expect("a list")
            .iter()
            .all(|job| job["input_file_ids"].is_null())
    );
}

/// Files of the same name from two sources stay two documents at one destination, and one workflow's deletions
/// leave the other's documents alone.
#[tokio::test]
async fn equal_names_of_two_sources_do_not_overwrite_each_other() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let destination = client.local("destination", &folders.folder("out")).await;
    let mut workflows = Vec::new();
    for name in ["one", "two"] {
        for file in ["a.html", "deep/a.html"] {
            let path = folders.folder(name).join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(path, html(&format!("{file} of {name}"), 1)).expect("a file");
        }
        let source = client.local("source", &folders.folder(name)).await;
        let mut body = piped_workflow(name, &source, &destination);
        body["reprocess_all"] = json!(true);
        body["delete_removed_files"] = json!(true);
        workflows.push(text(&client.workflow(&body).await["id"]).to_owned());
    }
    let titles = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        let titles = files.values().map(|bytes| {
            let elements: Value = serde_json::from_slice(bytes).expect("JSON");
            text(&elements[0]["text"]).to_owned()
        });
        titles.collect::<std::collections::BTreeSet<_>>()
    };
    for workflow in &workflows {
        client.run_workflow(workflow).await;
    }
    let written = folders.files("out");
    let expected = [
        "a.html of one",
        "a.html of two",
        "deep/a.html of one",
        "deep/a.html of two",
    ];
    assert_eq!(titles(&written), expected.map(str::to_owned).into());
    assert!(written.contains_key("a.html.json") && written.contains_key("deep/a.html.json"));
    assert_eq!(written.len(), 4);
    // The names stay, in whatever order they run.
    for workflow in workflows.iter().rev() {
        client.run_workflow(workflow).await;
    }
    assert_eq!(
        folders.files("out").keys().collect::<Vec<_>>(),
        written.keys().collect::<Vec<_>>()
    );
    std::fs::remove_file(folders.folder("two").join("a.html")).expect("removed");
    client.run_workflow(&workflows[1]).await;
    let left = ["a.html of one", "deep/a.html of one", "deep/a.html of two"];
    assert_eq!(titles(&folders.files("out")), left.map(str::to_owned).into());
}

/// Names that are no text differ only in what replacement characters stand for.
#[cfg(unix)]
#[tokio::test]
async fn names_that_are_no_text_stay_apart() {
    use std::os::unix::ffi::OsStrExt;
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for name in [&b"a\xff.html"[..], b"a\xfe.html", "a\u{fffd}.html".as_bytes()] {
        let path = folders.folder("in").join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, html("odd", 1)).expect("a file");
    }
    let workflow = piped(&client, &folders).await;
    let job = client.run_workflow(text(&workflow["id"])).await;
    let details = client.details(text(&job["id"])).await;
    assert_eq!(details["summary"]["total_docs_succeeded"], 3, "{details}");
    assert_eq!(folders.files("out").len(), 3, "{:?}", folders.files("out").keys());
}

/// Uploads may have equal names, and are counted at every node though no output is kept here.
#[tokio::test]
async fn uploads_go_to_a_destination_each_under_its_id() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let mut body = custom_workflow("uploads");
    body["destination_id"] = json!(client.local("destination", &folders.folder("out")).await);
    let id = text(&client.workflow(&body).await["id"]).to_owned();
    let uploads = ["one", "two"].map(|title| File::new("a.html", html(title, 1)));
    let answer = client.send(client.run_request(&id, &uploads)).await;
    assert_eq!(answer.status, 202, "{answer}");
    let job = client.ended(text(&answer.json()["id"])).await;
    let ids = file_ids(&job);
    assert_eq!(
        folders.files("out").into_keys().collect::<Vec<_>>(),
        [0, 1].map(|index| format!("{}/a.html.json", ids[index]))
    );
    let details = client.details(text(&job["id"])).await;
    assert_eq!(details["processing_status"], "SUCCESS");
    for node in details["node_stats"].as_array().expect("a list") {
        assert_eq!(
            (&node["success"], &node["failure"]),
            (&json!(2), &json!(0)),
            "{details}"
        );
    }
}

#[tokio::test]
async fn without_destination_outputs_are_kept_for_download() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    std::fs::write(folders.folder("in").join("a.html"), html("kept", 2)).expect("a file");
    let mut body = custom_workflow("w");
    body["source_id"] = json!(client.local("source", &folders.folder("in")).await);
    let workflow = client.workflow(&body).await;
    let job = client.run_workflow(text(&workflow["id"])).await;
    let details = client.details(text(&job["id"])).await;
    let file = text(&details["files"][0]["file_id"]);
    assert!(client.text(text(&job["id"]), file).await.contains("kept"));
}

#[tokio::test]
async fn details_of_a_large_run_come_in_pages() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let files = 60;
    for number in 0..files {
        let name = format!("{number:03}.{}", if number % 3 == 0 { "bin" } else { "html" });
        let bytes = if number % 3 == 0 { vec![0u8; 50] } else { html("x", 1) };
        std::fs::write(folders.folder("in").join(name), bytes).expect("a file");
    }
    let workflow = piped(&client, &folders).await;
    let job = client.run_workflow(text(&workflow["id"])).await;
    let path = format!("/jobs/{}", text(&job["id"]));
    let names = async |query: &str, list: &str| {
        let answer = client.get(&format!("{path}/{query}")).await.ok();
        let files = answer[list].as_array().expect("a list").clone();
        files
            .iter()
            .map(|file| text(&file["document"]).to_owned())
            .collect::<Vec<_>>()
    };
    let all = names("details", "files").await;
    assert_eq!(all.len(), files);
    assert_eq!(names("details?limit=7&offset=3", "files").await, all[3..10]);
    assert_eq!(names("details?offset=58", "files").await, all[58..]);
    assert!(names("details?offset=1000", "files").await.is_empty());
    let failed = names("failed-files", "failed_files").await;
    assert_eq!(failed.len(), 20);
    assert_eq!(
        names("failed-files?limit=5&offset=10", "failed_files").await,
        failed[10..15]
    );
    let summary = client.get(&format!("{path}/details?limit=1")).await.ok();
    assert_eq!(summary["summary"]["total_docs"], files);
    assert_eq!(
        [
            &summary["node_stats"][0]["success"],
            &summary["node_stats"][0]["failure"]
        ],
        [40, 20]
    );
    for (query, place) in [
        ("limit=0", "query.limit"),
        ("limit=10001", "query.limit"),
        ("limit=x", "query.limit"),
        ("offset=-1", "query.offset"),
        ("offset=99999999999999999999", "query.offset"),
    ] {
        for list in ["details", "failed-files"] {
            assert_eq!(places(&client.get(&format!("{path}/{list}?{query}")).await), [place]);
        }
    }
}

#[tokio::test]
async fn one_run_at_a_time_and_deleting_the_workflow_ends_it() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for number in 0..8 {
        std::fs::write(folders.folder("in").join(format!("{number}.html")), slow_html()).expect("a file");
    }
    let workflow = piped(&client, &folders).await;
    let path = format!("/workflows/{}", text(&workflow["id"]));
    let first = client.post(&format!("{path}/run")).await;
    assert_eq!(first.status, 202, "{first}");
    let job = text(&first.json()["id"]).to_owned();
    let refused = client
        .post(&format!("{path}/run"))
        .await
        .error(409, "workflow_state_conflict");
    assert!(text(&refused["detail"]).contains(&job), "{refused}");
    client.delete(&path).await.ok();
    assert_eq!(client.ended(&job).await["status"], "STOPPED");
    client.post(&format!("{path}/run")).await.error(404, "not_found");
    client.get(&format!("/jobs/{job}/details")).await.ok();
}

#[tokio::test]
async fn a_run_whose_source_can_not_be_listed_fails_with_the_reason() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let workflow = piped(&client, &folders).await;
    std::fs::remove_dir_all(folders.folder("in")).expect("removed");
    let job = client.run_workflow(text(&workflow["id"])).await;
    assert_eq!(job["status"], "FAILED");
    let details = client.details(text(&job["id"])).await;
    assert_eq!(
        (&details["processing_status"], &details["listing"]),
        (&json!("FAILED"), &json!("failed"))
    );
    assert!(text(&details["message"]).len() > 10, "{details}");
}

#[tokio::test]
async fn a_run_whose_listing_broke_off_after_some_files_has_errors() {
    let folders = Folders::new();
    let (name, value) = folders.setting();
    let server = Server::with(&[(name, &value), ("LIMITS__MAX_FILES_PER_RUN", "2")]).await;
    let client = server.client();
    for n in 0..3 {
        std::fs::write(folders.folder("in").join(format!("{n}.html")), html("words", 2)).expect("a file");
    }
    let workflow = piped(&client, &folders).await;
    let job = client.run_workflow(text(&workflow["id"])).await;
    assert_eq!(job["status"], "COMPLETED");
    let details = client.details(text(&job["id"])).await;
    assert_eq!(details["summary"]["total_docs_failed"], 0, "{details}");
    assert_eq!(
        (&details["processing_status"], &details["listing"]),
        (&json!("COMPLETED_WITH_ERRORS"), &json!("failed"))
    );
    assert!(text(&details["message"]).contains("max_files_per_run"), "{details}");
}
