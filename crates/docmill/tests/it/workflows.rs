//! Workflows: their records, and what is refused.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::{Answer, Client, File, Folders, Server, custom_workflow, partition_node, piped_workflow};

/// Where the problems of an answer are.
#[track_caller]
pub(crate) fn places(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 422, "{answer}");
    let detail = answer.json()["detail"].clone();
    let problems = detail.as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    problems
        .iter()
        .map(|problem| {
            let loc = problem["loc"].as_array().expect("a path");
            let parts: Vec<_> = loc
                .iter()
                .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
                .collect();
            parts.join(".")
        })
        .collect()
}

async fn refused(client: &Client, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut body = custom_workflow("w");
    change(&mut body);
    places(&client.post_json("/workflows", &body).await)
}

#[tokio::test]
async fn a_workflow_is_created_read_changed_and_deleted() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    let destination = client.local("destination", &folders.folder("out")).await;
    let mut body = piped_workflow("My First: Workflow", &source, &destination);
    body["schedule"] = json!("daily");
    // What a client has no say in.
    for name in [
        "id",
        "created_at",
        "updated_at",
        "deleted_at",
        "status",
        "workspace_id",
        "next_runs",
        "unknown",
    ] {
        body[name] = json!("01980000-0000-7000-8000-00000000abcd");
    }
    let created = client.workflow(&body).await;
    let id = text(&created["id"]).to_owned();
    assert_ne!(created["id"], body["id"]);
    assert_eq!(created["name"], "My First: Workflow");
    assert_eq!(created["key"], "my-first-workflow");
    assert_eq!(created["sources"], json!([source]));
    assert_eq!(created["destinations"], json!([destination]));
    assert_eq!(created["workflow_type"], "custom");
    assert_eq!(
        created["schedule"],
        json!({"crontab_entries": [{"cron_expression": "0 0 * * *"}]})
    );
    assert_eq!(
        (&created["timezone"], &created["schedule_overlap"]),
        (&json!("UTC"), &json!("skip"))
    );
    assert_eq!(created["status"], "active");
    assert_eq!(
        (&created["reprocess_all"], &created["delete_removed_files"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(
        (&created["updated_at"], &created["deleted_at"]),
        (&Value::Null, &Value::Null)
    );
    assert!(text(&created["created_at"]).ends_with('Z'));
    let node = &created["workflow_nodes"][0];
    assert!(node["id"].is_string(), "{node}");
    for (name, value) in partition_node().as_object().expect("an object") {
        assert_eq!(node[name], *value);
    }
    for which in [id.as_str(), "my-first-workflow"] {
        assert_eq!(client.get(&format!("/api/v1/workflows/{which}")).await.ok(), created);
    }
    assert_eq!(client.get("/api/v1/workflows/").await.ok(), json!([created]));

    let changed = client
        .put_json(&format!("/workflows/{id}"), &json!({"name": "Other"}))
        .await
        .ok();
    let mut expected = created.clone();
    expected["name"] = json!("Other");
    expected["updated_at"] = changed["updated_at"].clone();
    assert!(changed["updated_at"].is_string());
    // The next runs may have moved on at midnight.
    expected["next_runs"] = changed["next_runs"].clone();
    assert_eq!(changed, expected);

    assert_eq!(client.delete(&format!("/workflows/{id}")).await.ok(), json!({}));
    for path in ["", "/run"] {
        let method = if path.is_empty() { Method::GET } else { Method::POST };
        let answer = client
            .send(client.request(method, &format!("/workflows/{id}{path}")))
            .await;
        assert_eq!(answer.error(404, "not_found")["detail"], "Workflow not found");
    }
    client
        .put_json(&format!("/workflows/{id}"), &json!({}))
        .await
        .error(404, "not_found");
    client.delete(&format!("/workflows/{id}")).await.error(404, "not_found");
    assert_eq!(client.get("/workflows").await.ok(), json!([]));
    let deleted = client.get("/workflows?show_only_soft_deleted=true").await.ok();
    assert_eq!(deleted[0]["id"], created["id"]);
    assert!(
        deleted[0]["deleted_at"].is_string() && deleted[0]["next_runs"] == json!([]),
        "{deleted}"
    );
    // Its key is free again.
    let again = client.workflow(&custom_workflow("My first workflow")).await;
    assert_eq!(again["key"], "my-first-workflow");
}

#[tokio::test]
async fn only_given_fields_change_and_null_takes_away() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    let destination = client.local("destination", &folders.folder("out")).await;
    let mut body = piped_workflow("w", &source, &destination);
    body["schedule"] = json!("weekly");
    body["timezone"] = json!("Europe/Berlin");
    body["schedule_overlap"] = json!("allow");
    body["reprocess_all"] = json!(true);
    body["delete_removed_files"] = json!(true);
    let created = client.workflow(&body).await;
    let path = format!("/workflows/{}", text(&created["id"]));
    let change = async |body: Value| client.put_json(&path, &body).await.ok();

    let same = change(json!({})).await;
    for name in [
        "name",
        "sources",
        "destinations",
        "schedule",
        "timezone",
        "schedule_overlap",
        "status",
        "key",
    ] {
        assert_eq!(same[name], created[name], "{name}");
    }
    assert_eq!(
        (&same["reprocess_all"], &same["delete_removed_files"]),
        (&json!(true), &json!(true))
    );
    // A null where nothing can be taken away counts as absent, as generated clients send it.
    let nulls = json!({"name": null, "workflow_type": null, "workflow_nodes": null, "template_id": null,
        "reprocess_all": null, "state": null, "timezone": null, "key": null});
    let same = change(nulls).await;
    assert_eq!(
        (&same["name"], &same["workflow_nodes"]),
        (&created["name"], &created["workflow_nodes"])
    );

    let changed = change(json!({"timezone": "Asia/Tokyo"})).await;
    assert_eq!(changed["timezone"], "Asia/Tokyo");
    assert_eq!(changed["schedule"], created["schedule"]);
    assert_eq!(changed["schedule_overlap"], "allow");
    let changed = change(json!({"schedule": "daily"})).await;
    assert_eq!(changed["timezone"], "Asia/Tokyo");
    let changed = change(json!({"workflow_type": "template", "template_id": "hi_res_partition"})).await;
    assert_eq!(changed["workflow_type"], "template");
    assert_eq!(changed["workflow_nodes"][0]["settings"]["strategy"], "hi_res");
    let changed = change(json!({"workflow_nodes": created["workflow_nodes"], "workflow_type": "custom"})).await;
    assert_eq!(changed["workflow_nodes"], created["workflow_nodes"], "node ids stay");

    let inactive = change(json!({"state": "inactive"})).await;
    assert_eq!(
        (&inactive["status"], &inactive["next_runs"]),
        (&json!("inactive"), &json!([]))
    );
    let answer = client.post(&format!("{path}/run")).await;
    answer.error(409, "workflow_state_conflict");
    assert_eq!(change(json!({"state": "active"})).await["status"], "active");

    // A source can't go while there is a schedule; both can.
    let answer = client.put_json(&path, &json!({"source_id": null})).await;
    assert_eq!(places(&answer), ["body.schedule"]);
    let bare = change(json!({"source_id": null, "destination_id": null, "schedule": null})).await;
    for (name, empty) in [
        ("sources", json!([])),
        ("destinations", json!([])),
        ("schedule", Value::Null),
        ("timezone", Value::Null),
        ("schedule_overlap", Value::Null),
        ("next_runs", json!([])),
    ] {
        assert_eq!(bare[name], empty, "{name}");
    }
    for (body, place) in [
        (json!({"key": "another"}), "body.key"),
        (json!({"name": ""}), "body.name"),
        (json!({"state": "asleep"}), "body.state"),
        (json!({"workflow_nodes": []}), "body.workflow_nodes"),
        (json!({"template_id": "nothing"}), "body.template_id"),
        (json!({"schedule": "daily"}), "body.schedule"),
        (json!({"timezone": "UTC"}), "body.timezone"),
        (
            json!({"source_id": "01980000-0000-7000-8000-00000000abcd"}),
            "body.source_id",
        ),
        // A destination is no source.
        (json!({"source_id": destination}), "body.source_id"),
    ] {
        assert_eq!(places(&client.put_json(&path, &body).await), [place], "{body}");
    }
    assert_eq!(client.get(&path).await.ok(), bare, "what was refused changed nothing");
}

#[tokio::test]
async fn types_stand_for_chains() {
    let server = Server::start().await;
    let client = server.client();
    for (kind, subtype, strategy) in [
        ("basic", "unstructured_api", json!("fast")),
        ("advanced", "unstructured_api", json!("hi_res")),
        ("platinum", "vlm", Value::Null),
    ] {
        let created = client.workflow(&json!({"name": kind, "workflow_type": kind})).await;
        let node = &created["workflow_nodes"][0];
        assert_eq!(created["workflow_type"], kind);
        assert_eq!(
            (&node["type"], &node["subtype"]),
            (&json!("partition"), &json!(subtype))
        );
        assert_eq!(node["settings"]["strategy"], strategy);
        let own = json!({"name": kind, "workflow_type": kind, "workflow_nodes": [partition_node()]});
        let created = client.workflow(&own).await;
        assert_eq!(created["workflow_nodes"][0]["name"], "Partitioner");
    }
    let template = json!({"name": "t", "workflow_type": "template", "template_id": "hi_res_partition"});
    let created = client.workflow(&template).await;
    assert_eq!(created["workflow_type"], "template");
    let nodes = client.get("/templates/hi_res_partition").await.ok()["nodes"].clone();
    assert_eq!(created["workflow_nodes"], nodes);
    // Clients whose list of types has no `template` use it as `custom`.
    let custom = json!({"name": "t", "workflow_type": "custom", "template_id": "hi_res_partition"});
    assert_eq!(client.workflow(&custom).await["workflow_nodes"], nodes);

    for (body, place) in [
        (json!({"name": "w", "workflow_type": "custom"}), "body.workflow_nodes"),
        (json!({"name": "w", "workflow_type": "template"}), "body.template_id"),
        (
            json!({"name": "w", "workflow_type": "template", "template_id": "nothing"}),
            "body.template_id",
        ),
        (
            json!({"name": "w", "workflow_type": "template", "template_id": 7}),
            "body.template_id",
        ),
    ] {
        assert!(
            places(&client.post_json("/workflows", &body).await).contains(&place.to_owned()),
            "{body}"
        );
    }
    let lacking = json!({"name": "w", "workflow_type": "template", "template_id": "hi_res_and_enrichment"});
    let answer = client.post_json("/workflows", &lacking).await;
    let body = answer.error(422, "chain_invalid");
    assert!(
        text(&body["detail"][0]["msg"]).contains("openai_image_description"),
        "{answer}"
    );
}

#[tokio::test]
async fn generated_clients_read_custom_where_the_type_is_template() {
    let server = Server::start().await;
    let client = server.client();
    let template = json!({"name": "t", "workflow_type": "template", "template_id": "hi_res_partition"});
    let id = text(&client.workflow(&template).await["id"]).to_owned();
    for (agent, word) in [
        (
            "speakeasy-sdk/python 0.46.4 2.680.0 1.2.31 unstructured-client",
            "custom",
        ),
        ("speakeasy-sdk", "template"),
        ("curl/8.0", "template"),
    ] {
        let request = client.request(Method::GET, &format!("/workflows/{id}"));
        let read = client.send(request.header("user-agent", agent)).await.ok();
        let request = client.request(Method::GET, "/workflows");
        let listed = client.send(request.header("user-agent", agent)).await.ok();
        assert_eq!(
            (&read["workflow_type"], &listed[0]["workflow_type"]),
            (&json!(word), &json!(word)),
            "{agent}"
        );
    }
}

#[tokio::test]
async fn names_and_keys_are_checked() {
    let server = Server::start().await;
    let client = server.client();
    let long = "ä".repeat(255);
    for name in [
        long.as_str(),
        "'; DROP TABLE workflows; --",
        "日本語 🙂",
        "<script>alert(1)</script>",
        "${HOME}",
    ] {
        let created = client.workflow(&custom_workflow(name)).await;
        assert_eq!(created["name"], name);
        assert_eq!(
            client.get(&format!("/workflows/{}", text(&created["key"]))).await.ok(),
            created
        );
    }
    for name in [
        json!(""),
        json!(" \t"),
        json!("x".repeat(256)),
        json!("x".repeat(500_000)),
        json!("a\r\nb"),
        json!("a\u{0}"),
        json!("\u{1b}[2J"),
        json!(7),
        json!({}),
        Value::Null,
    ] {
        assert_eq!(
            refused(&client, |body| body["name"] = name.clone()).await,
            ["body.name"],
            "{name}"
        );
    }
    // What looks like an id would stand for another workflow's after that one is gone.
    let id = "01a1feb6-f3a6-71a9-bb9e-3a692dee403a";
    assert_eq!(
        client.workflow(&custom_workflow(id)).await["key"],
        format!("workflow-{id}")
    );
    for key in [
        "",
        "-a",
        "a-",
        "a--b",
        "A",
        "a b",
        "ä",
        "a/b",
        "..",
        &"x".repeat(64),
        id,
    ] {
        assert_eq!(
            refused(&client, |body| body["key"] = json!(key)).await,
            ["body.key"],
            "{key}"
        );
    }
    let mut body = custom_workflow("same name");
    assert_eq!(client.workflow(&body).await["key"], "same-name");
    let second = client.workflow(&body).await;
    assert_ne!(second["key"], "same-name", "names may be equal, keys not");
    body["key"] = json!("same-name");
    let taken = client.post_json("/workflows", &body).await.error(409, "key_taken");
    assert!(text(&taken["detail"]).contains("same-name"));
    body["key"] = json!("chosen");
    assert_eq!(client.workflow(&body).await["key"], "chosen");
}

#[tokio::test]
async fn chains_and_fields_that_are_wrong_are_told_with_their_place() {
    let server = Server::start().await;
    let client = server.client();
    let node = |change: Value| {
        let mut node = partition_node();
        for (name, value) in change.as_object().expect("an object") {
            node[name] = value.clone();
        }
        node
    };
    let id = "01980000-0000-7000-8000-000000000001";
    let chunk = json!({"id": id, "name": "c", "type": "chunk", "subtype": "chunk_by_title"});
    for (nodes, place) in [
        (json!("partition"), "body.workflow_nodes"),
        (json!([]), "body.workflow_nodes"),
        (json!([1]), "body.workflow_nodes.0"),
        (json!([node(json!({"id": "7"}))]), "body.workflow_nodes.0.id"),
        (json!([node(json!({"id": id})), chunk]), "body.workflow_nodes.1.id"),
        (
            json!([node(json!({"subtype": "magic"}))]),
            "body.workflow_nodes.0.subtype",
        ),
        (
            json!([node(json!({"settings": {"strategy": "psychic"}}))]),
            "body.workflow_nodes.0.settings.strategy",
        ),
        (
            json!([
                partition_node(),
                {"name": "e", "type": "embed", "subtype": "voyageai", "settings": {"model_name": "voyage-3"}},
            ]),
            "body.workflow_nodes.1.subtype",
        ),
    ] {
        let mut body = custom_workflow("w");
        body["workflow_nodes"] = nodes.clone();
        let answer = client.post_json("/workflows", &body).await;
        answer.error(422, "chain_invalid");
        assert_eq!(places(&answer), [place], "{nodes}");
    }
    let gone = "01980000-0000-7000-8000-00000000abcd";
    for (name, value) in [
        ("workflow_type", json!("magic")),
        ("workflow_type", Value::Null),
        ("workflow_type", json!(1)),
        ("source_id", json!(gone)),
        ("source_id", json!(7)),
        ("source_id", json!("' OR 1=1 --")),
        ("destination_id", json!(gone)),
        ("destination_id", json!("x".repeat(100_000))),
        ("reprocess_all", json!("yes")),
        ("delete_removed_files", json!(1)),
        ("state", json!("asleep")),
        ("schedule_overlap", json!("queue")),
    ] {
        let found = refused(&client, |body| body[name] = value.clone()).await;
        assert_eq!(found, [format!("body.{name}")], "{value}");
    }
    let everything = json!({"name": 1, "workflow_type": "magic", "schedule": "at noon", "timezone": "Mars/Base",
        "reprocess_all": 1, "workflow_nodes": [{"name": "n"}]});
    let answer = client.post_json("/workflows", &everything).await;
    assert_eq!(answer.json()["code"], "validation_failed");
    assert!(places(&answer).len() >= 6, "all at once: {answer}");
    assert_eq!(client.get("/workflows").await.ok(), json!([]));
}

#[tokio::test]
async fn bodies_that_are_no_object_of_json_are_refused_quickly() {
    let server = Server::start().await;
    let client = server.client();
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let deep_settings = format!(
        r#"{{"name": "w", "workflow_type": "custom", "workflow_nodes": [{{"name": "n", "type": "partition",
            "subtype": "unstructured_api", "settings": {{"x": {}1{}}}}}]}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for path in ["/workflows", "/sources", "/destinations"] {
        for body in [
            "",
            "{",
            "[]",
            "null",
            "1",
            "{\"name\": NaN}",
            "{\"name\": 1e999}",
            "{} {}",
            &deep,
            &deep_settings,
        ] {
            let started = Instant::now();
            let answer = client.send_text(Method::POST, path, body.to_owned()).await;
            answer.error(422, "validation_failed");
            assert_eq!(places(&answer), ["body"]);
            assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        }
        let large = format!("{{\"name\": \"{}\"}}", "x".repeat(1_200_000));
        client
            .send_text(Method::POST, path, large)
            .await
            .error(413, "request_too_large");
        let request = client
            .request(Method::POST, path)
            .header("content-type", "text/plain")
            .body("{}");
        client.send(request).await.error(415, "unsupported_media_type");
        let request = client.request(Method::POST, path).body("{\"name\": 7}");
        assert!(
            places(&client.send(request).await).contains(&"body.name".to_owned()),
            "without a content type"
        );
        let request = client
            .request(Method::POST, path)
            .header("content-type", "application/json");
        let answer = client
            .send(request.body(vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']))
            .await;
        answer.error(422, "validation_failed");
    }
}

#[tokio::test]
async fn a_workflow_without_source_takes_files_when_it_is_run() {
    let server = Server::with(&[("LIMITS__MAX_FILE_BYTES", "100000")]).await;
    let client = server.client();
    let workflow = client.workflow(&custom_workflow("by hand")).await;
    let id = text(&workflow["id"]);
    let files = [
        File::new("a.html", html("first", 3)),
        File::new("b ü.html", html("second", 2)),
    ];
    let answer = client.send(client.run_request(id, &files)).await;
    assert_eq!(answer.status, 202, "{answer}");
    let started = answer.json();
    assert!(
        ["SCHEDULED", "IN_PROGRESS"].contains(&text(&started["status"])),
        "{started}"
    );
    assert_eq!(started["job_type"], "persistent");
    assert_eq!(
        (&started["workflow_id"], &started["workflow_name"]),
        (&workflow["id"], &workflow["name"])
    );
    let job = client.ended(text(&started["id"])).await;
    assert_eq!(job["status"], "COMPLETED");
    let ids = file_ids(&job);
    assert_eq!(ids.len(), 2);
    assert!(client.text(text(&job["id"]), &ids[1]).await.contains("second"));
    assert_eq!(
        job["output_node_files"][0]["node_id"],
        workflow["workflow_nodes"][0]["id"]
    );
    let by_key = client.post("/workflows/by-hand/run").await;
    assert_eq!(by_key.status, 202, "without any file: {by_key}");
    let empty = client.ended(text(&by_key.json()["id"])).await;
    assert_eq!(
        (&empty["status"], &empty["input_file_ids"]),
        (&json!("COMPLETED"), &json!([]))
    );
    let listed = client.get(&format!("/jobs?workflow_id={id}")).await.ok();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));

    let many: Vec<_> = (0..11).map(|n| File::new(format!("{n}.html"), html("x", 1))).collect();
    client
        .send(client.run_request(id, &many))
        .await
        .error(422, "too_many_files");
    let large = [File::new("large.html", vec![b'x'; 200_000])];
    client
        .send(client.run_request(id, &large))
        .await
        .error(413, "file_too_large");
    // Without a body, the content type says nothing.
    let request = client.request(Method::POST, &format!("/workflows/{id}/run"));
    let empty = client.send(request.header("content-type", "application/json")).await;
    assert_eq!(empty.status, 202, "{empty}");
    let request = client.request(Method::POST, &format!("/workflows/{id}/run"));
    let answer = client
        .send(request.header("content-type", "text/csv").body("1,2"))
        .await;
    answer.error(415, "unsupported_media_type");
    for input in server.files_below("blobs/in") {
        assert!(
            ids.iter().any(|id| input.ends_with(id)),
            "{} was left behind",
            input.display()
        );
    }
}

#[tokio::test]
async fn a_workflow_with_a_source_takes_no_files() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    let mut body = custom_workflow("w");
    body["source_id"] = json!(source);
    let id = text(&client.workflow(&body).await["id"]).to_owned();
    let answer = client
        .send(client.run_request(&id, &[File::new("a.html", html("a", 1))]))
        .await;
    assert_eq!(places(&answer), ["body.input_files"]);
    assert_eq!(client.get("/jobs").await.ok(), json!([]));
    assert!(server.files_below("blobs/in").is_empty());
}

#[tokio::test]
async fn workflows_of_jobs_over_local_files_are_hidden() {
    let server = Server::start().await;
    let client = server.client();
    let job = client.run(&crate::kit::partition_only(), &[]).await;
    let path = format!("/workflows/{}", text(&job["workflow_id"]));
    client.get(&path).await.error(404, "not_found");
    client
        .put_json(&path, &json!({"name": "mine"}))
        .await
        .error(404, "not_found");
    client.delete(&path).await.error(404, "not_found");
    client.post(&format!("{path}/run")).await.error(404, "not_found");
    for list in [
        "/workflows",
        "/workflows?show_only_soft_deleted=true",
        "/workflows?name=job",
    ] {
        assert_eq!(client.get(list).await.ok(), json!([]));
    }
}

#[tokio::test]
async fn a_provider_key_in_a_node_is_neither_told_nor_kept() {
    let server = Server::start().await;
    let client = server.client();
    let canary = "sk-canary-0123456789abcdef";
    let node = json!({"name": "n", "type": "partition", "subtype": "vlm", "settings": {
        "is_dynamic": true, "allow_fast": true, "provider": "openai", "provider_api_key": canary}});
    let body = json!({"name": "w", "workflow_type": "custom", "workflow_nodes": [node]});
    let created = client.workflow(&body).await;
    let settings = &created["workflow_nodes"][0]["settings"];
    assert_eq!(
        (&settings["provider_api_key"], &settings["provider"]),
        (&json!("**********"), &json!("openai"))
    );
    // Sent back as it came, it still runs.
    let path = format!("/workflows/{}", text(&created["id"]));
    client
        .put_json(&path, &json!({"workflow_nodes": created["workflow_nodes"]}))
        .await
        .ok();
    crate::secrets::assert_nowhere(&server, canary);
}
