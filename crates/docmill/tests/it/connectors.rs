//! Sources and destinations: their records, their checks, and what is refused.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, Folders, custom_workflow, piped_workflow, until};
use crate::workflows::places;

const NEVER: &str = "01980000-0000-7000-8000-00000000abcd";

/// The outcome of a connection check.
async fn checked(client: &Client, path: &str) -> Value {
    let started = client.post(&format!("{path}/connection-check")).await;
    assert_eq!(started.status, 202, "{started}");
    let started = started.json();
    assert!(
        started["id"].is_string() && started["created_at"].is_string(),
        "{started}"
    );
    assert_eq!(
        (&started["status"], &started["reported_at"]),
        (&json!("SCHEDULED"), &Value::Null)
    );
    let ended = until("the check to end", async || {
        let check = client.get(&format!("{path}/connection-check")).await.ok();
        (check["status"] != "SCHEDULED").then_some(check)
    })
    .await;
    assert_eq!(ended["id"], started["id"]);
    assert!(ended["reported_at"].is_string());
    ended
}

#[tokio::test]
async fn a_connector_is_created_read_changed_checked_and_deleted() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for role in ["source", "destination"] {
        let list = format!("/api/v1/{role}s/");
        let folder = folders.folder(role);
        let body = json!({"name": "My Folder", "type": "local", "config": {"path": folder},
            "id": NEVER, "created_at": "2000-01-01T00:00:00Z", "unknown": 1});
        let created = client.post_json(&list, &body).await.ok();
        assert_ne!(created["id"], NEVER);
        assert_eq!(
            (&created["name"], &created["key"]),
            (&json!("My Folder"), &json!("my-folder"))
        );
        assert_eq!(
            (&created["type"], &created["config"]["path"]),
            (&json!("local"), &json!(folder))
        );
        assert!(!text(&created["created_at"]).starts_with("2000") && created["updated_at"].is_null());
        let path = format!("{list}{}", text(&created["id"]));
        for which in [path.clone(), format!("/{role}s/my-folder")] {
            assert_eq!(client.get(&which).await.ok(), created);
        }
        assert_eq!(client.get(&list).await.ok(), json!([created]));
        assert_eq!(
            client.get(&format!("{list}?{role}_type=local")).await.ok(),
            json!([created])
        );
        // A type clients know and nothing has.
        assert_eq!(
            client.get(&format!("{list}?{role}_type=couchbase")).await.ok(),
            json!([])
        );
        for wrong in ["nonsense", "LOCAL", "'%20OR%201=1", "%00"] {
            let answer = client.get(&format!("{list}?{role}_type={wrong}")).await;
            assert_eq!(places(&answer), [format!("query.{role}_type")]);
        }

        let check = format!("{path}/connection-check");
        client.get(&check).await.error(404, "not_found");
        assert_eq!(checked(&client, &path).await["status"], "SUCCESS");
        let elsewhere = folder.join("not-there");
        let changed = client
            .put_json(&path, &json!({"config": {"path": elsewhere}}))
            .await
            .ok();
        assert_eq!(changed["config"]["path"], json!(elsewhere));
        assert!(changed["updated_at"].is_string());
        assert_eq!((&changed["name"], &changed["key"]), (&created["name"], &created["key"]));
        if role == "source" {
            let failed = checked(&client, &path).await;
            assert_eq!(failed["status"], "FAILURE");
            assert!(text(&failed["reason"]).len() > 10, "{failed}");
        }

        assert_eq!(client.delete(&path).await.ok(), json!({}));
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::GET, check.clone()),
            (Method::POST, check.clone()),
        ] {
            let answer = client.send(client.request(method, &path)).await;
            let expected = format!("{}{} not found", role[..1].to_uppercase(), &role[1..]);
            assert_eq!(answer.error(404, "not_found")["detail"], expected);
        }
        let answer = client.put_json(&path, &json!({"config": {"path": folder}})).await;
        answer.error(404, "not_found");
    }
}

#[tokio::test]
async fn types_that_are_not_there_are_refused_by_name_with_those_that_are() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for (role, types) in [
        (
            "source",
            ["dropbox", "salesforce", "qdrant-cloud", "made_up", "Local", "x\u{0}y"],
        ),
        (
            "destination",
            ["pinecone", "milvus", "google_drive", "made_up", "", "../local"],
        ),
    ] {
        for kind in types {
            let body = json!({"name": "n", "type": kind, "config": {"path": "/x"}});
            let answer = client.post_json(&format!("/{role}s"), &body).await;
            assert_eq!(places(&answer), ["body.type"], "{kind}");
            let message = answer.json()["detail"][0]["msg"].clone();
            if !kind.is_empty() {
                assert!(
                    text(&message).contains(kind) && text(&message).contains("local"),
                    "{message}"
                );
            }
        }
        let long = json!({"name": "n", "type": "x".repeat(500_000), "config": {}});
        let answer = client.post_json(&format!("/{role}s"), &long).await;
        assert!(answer.bytes.len() < 2_000 && answer.status == 422, "{answer}");
        assert_eq!(client.get(&format!("/{role}s")).await.ok(), json!([]));
    }
    let types = client.get("/connectors").await.ok();
    let local = types
        .as_array()
        .expect("a list")
        .iter()
        .find(|kind| kind["type"] == "local")
        .expect("local");
    for role in ["source", "destination"] {
        assert_eq!(local[role]["required"], json!(["path"]), "{local}");
        assert_eq!(local[role]["additionalProperties"], false);
    }
}

#[tokio::test]
async fn settings_that_can_not_work_are_told_with_their_place() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let good = folders.folder("in");
    for (config, place) in [
        (Value::Null, "body.config"),
        (json!([]), "body.config"),
        (json!("path"), "body.config"),
        (json!({}), "body.config.path"),
        (json!({"path": ""}), "body.config.path"),
        (json!({"path": 7}), "body.config.path"),
        (json!({"path": "a\u{0}b"}), "body.config.path"),
        (json!({"path": good, "recursive": "yes"}), "body.config.recursive"),
        (json!({"path": good, "remote_url": "x"}), "body.config.remote_url"),
        (json!({"path": good, "": 1}), "body.config."),
        (json!({"path": "relative/folder"}), "body.config"),
        (json!({"path": format!("{}/../..", good.display())}), "body.config"),
    ] {
        let body = json!({"name": "n", "type": "local", "config": config});
        assert_eq!(places(&client.post_json("/sources", &body).await), [place], "{config}");
    }
    for (body, place) in [
        (json!({"type": "local", "config": {"path": good}}), "body.name"),
        (
            json!({"name": "a\nb", "type": "local", "config": {"path": good}}),
            "body.name",
        ),
        (json!({"name": "n", "config": {"path": good}}), "body.type"),
        (json!({"name": "n", "type": 7, "config": {"path": good}}), "body.type"),
        (
            json!({"name": "n", "type": "local", "config": {"path": good}, "key": "Not A Key"}),
            "body.key",
        ),
    ] {
        assert_eq!(places(&client.post_json("/sources", &body).await), [place], "{body}");
    }
    assert_eq!(client.get("/sources").await.ok(), json!([]));
}

#[tokio::test]
async fn a_folder_outside_the_allowed_roots_is_not_read() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for path in ["/etc", "/", "/proc/self"] {
        let body = json!({"name": "n", "type": "local", "config": {"path": path}});
        let answer = client.post_json("/sources", &body).await;
        if answer.status == 200 {
            let path = format!("/sources/{}", text(&answer.json()["id"]));
            let check = checked(&client, &path).await;
            assert_eq!(check["status"], "FAILURE", "{check}");
            assert!(text(&check["reason"]).contains("connectors.local_roots"), "{check}");
        } else {
            assert_eq!(places(&answer), ["body.config"]);
        }
    }
}

#[tokio::test]
async fn a_connector_in_use_is_not_deleted() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let source = client.local("source", &folders.folder("in")).await;
    let destination = client.local("destination", &folders.folder("out")).await;
    let workflow = client
        .workflow(&piped_workflow("the user", &source, &destination))
        .await;
    for path in [format!("/sources/{source}"), format!("/destinations/{destination}")] {
        let refused = client.delete(&path).await.error(409, "connector_in_use");
        let detail = text(&refused["detail"]);
        assert!(
            detail.contains("the user") && detail.contains(text(&workflow["id"])),
            "{detail}"
        );
        client.get(&path).await.ok();
    }
    client
        .delete(&format!("/workflows/{}", text(&workflow["id"])))
        .await
        .ok();
    client.delete(&format!("/sources/{source}")).await.ok();
    client.delete(&format!("/destinations/{destination}")).await.ok();
}

#[tokio::test]
async fn keys_name_connectors_of_one_role() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let body = json!({"name": "n", "type": "local", "config": {"path": folders.folder("x")}, "key": "shared"});
    let source = client.post_json("/sources", &body).await.ok();
    let destination = client.post_json("/destinations", &body).await.ok();
    client.post_json("/sources", &body).await.error(409, "key_taken");
    let workflow = client.workflow(&piped_workflow("by key", "shared", "shared")).await;
    assert_eq!(workflow["sources"], json!([source["id"]]));
    assert_eq!(workflow["destinations"], json!([destination["id"]]));
    for query in [
        "source_id=shared",
        "destination_id=shared",
        "source_id=shared&destination_id=shared",
    ] {
        assert_eq!(client.get(&format!("/workflows?{query}")).await.ok(), json!([workflow]));
    }
    assert_eq!(client.get("/workflows?source_id=nobody").await.ok(), json!([]));
}

/// Another workspace's object and one that never was must be told apart by nothing in the answer.
#[tokio::test]
async fn another_workspace_sees_and_uses_nothing() {
    let folders = Folders::new();
    let server = folders.server().await;
    let (owner, stranger) = (server.client(), server.stranger());
    let source = owner.local("source", &folders.folder("in")).await;
    let destination = owner.local("destination", &folders.folder("out")).await;
    let workflow = owner.workflow(&piped_workflow("w", &source, &destination)).await;
    for role in ["sources", "destinations"] {
        let id = if role == "sources" { &source } else { &destination };
        assert_eq!(checked(&owner, &format!("/{role}/{id}")).await["status"], "SUCCESS");
    }
    let objects = [
        ("{workflow_id}", text(&workflow["id"]), text(&workflow["key"])),
        ("{source_id}", source.as_str(), "a-source"),
        ("{destination_id}", destination.as_str(), "a-destination"),
    ];
    let bodies = [
        json!({}),
        json!({"name": "mine"}),
        json!({"config": {"path": "/x"}}),
        json!([]),
    ];
    let mut tried = 0;
    for (method, path) in crate::access::operations(&owner).await {
        let Some((place, id, key)) = objects.iter().find(|(place, ..)| path.contains(place)) else {
            continue;
        };
        for body in &bodies {
            let send = async |which: &str| {
                let path = path.replace(place, which);
                if method == Method::PUT {
                    stranger.put_json(&path, body).await
                } else {
                    stranger.send(stranger.request(method.clone(), &path)).await
                }
            };
            let nobodys = send(NEVER).await;
            for which in [id, key] {
                let theirs = send(which).await;
                assert_eq!(theirs.comparable(), nobodys.comparable(), "{method} {path}");
                if method != Method::PUT || body.is_object() {
                    theirs.error(404, "not_found");
                }
            }
            tried += 1;
        }
    }
    assert!(tried >= 4 * (4 + 5 + 5), "{tried}");
    for list in [
        "/workflows",
        "/workflows?show_only_soft_deleted=true",
        "/sources",
        "/destinations",
        "/jobs",
    ] {
        assert_eq!(stranger.get(list).await.ok(), json!([]));
    }
    for filter in [
        format!("source_id={source}"),
        format!("destination_id={destination}"),
        "source_id=a-source".into(),
    ] {
        assert_eq!(stranger.get(&format!("/workflows?{filter}")).await.ok(), json!([]));
    }
    // Nor can it be made part of a workflow of one's own.
    for (name, place) in [("source_id", &source), ("destination_id", &destination)] {
        let (theirs, nobodys) = (
            {
                let mut body = custom_workflow("mine");
                body[name] = json!(place);
                stranger.post_json("/workflows", &body).await
            },
            {
                let mut body = custom_workflow("mine");
                body[name] = json!(NEVER);
                stranger.post_json("/workflows", &body).await
            },
        );
        assert_eq!(places(&theirs), [format!("body.{name}")]);
        assert_eq!(theirs.comparable(), nobodys.comparable());
    }
    assert_eq!(
        owner.get(&format!("/workflows/{}", text(&workflow["id"]))).await.ok()["name"],
        "w"
    );
    assert_eq!(owner.get("/jobs").await.ok(), json!([]));
}

#[tokio::test]
async fn ids_that_are_none_name_nothing() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    for id in [
        "x",
        "..%2f..%2fetc",
        "%00",
        "'; DROP TABLE workflows; --",
        &"9".repeat(4_000),
        "{workflow_id}",
        "%25",
        "-",
    ] {
        for list in ["workflows", "sources", "destinations"] {
            client.get(&format!("/{list}/{id}")).await.error(404, "not_found");
            client.delete(&format!("/{list}/{id}")).await.error(404, "not_found");
            client
                .put_json(&format!("/{list}/{id}"), &json!({"config": {}}))
                .await
                .error(404, "not_found");
        }
        client
            .post(&format!("/workflows/{id}/run"))
            .await
            .error(404, "not_found");
        client
            .post(&format!("/sources/{id}/connection-check"))
            .await
            .error(404, "not_found");
        client
            .get(&format!("/destinations/{id}/connection-check"))
            .await
            .error(404, "not_found");
    }
}
