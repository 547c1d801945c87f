//! Workflows: their records.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Answer, Folders, Server, custom_workflow, partition_node, piped_workflow};

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
