//! Keys, tokens, and what a key may see.

use reqwest::Method;
use serde_json::Value;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::server::KEY;
use crate::kit::{Client, File, Server, custom_workflow, partition_only};

const MISSING: &str = "API key is missing, please provide an API key in the header.";
const MALFORMED: &str = "API key is malformed, please type the API key correctly in the header.";

#[tokio::test]
async fn a_key_opens_by_either_header_or_as_bearer() {
    let server = Server::start().await;
    let client = server.client();
    for (name, value) in [
        ("service-api-key", KEY.to_owned()),
        ("unstructured-api-key", KEY.to_owned()),
        ("Unstructured-API-Key", format!("  {KEY} ")),
        ("authorization", format!("Bearer {KEY}")),
        ("authorization", format!("bearer {KEY}")),
    ] {
        let answer = client
            .send(client.anonymous(Method::GET, "/jobs").header(name, &value))
            .await;
        assert_eq!(answer.status, 200, "{name}: {value}: {answer}");
    }
}

#[tokio::test]
async fn without_a_key_and_with_a_wrong_one_the_answers_are_the_documented_ones() {
    let server = Server::start().await;
    let client = server.client();
    let bare = client.send(client.anonymous(Method::GET, "/api/v1/jobs/")).await;
    assert_eq!(bare.error(401, "api_key_missing")["detail"], MISSING);
    assert_eq!(bare.header("www-authenticate"), Some("Bearer"));
    for (name, value) in [
        ("service-api-key", ""),
        ("authorization", "Basic dXNlcjpwYXNz"),
        ("authorization", "Bearer "),
    ] {
        let answer = client
            .send(client.anonymous(Method::GET, "/jobs").header(name, value))
            .await;
        assert_eq!(
            answer.error(401, "api_key_missing")["detail"],
            MISSING,
            "{name}: {value}"
        );
    }
    let long = "x".repeat(5_000);
    let nearly = &KEY[..KEY.len() - 1];
    for (name, value) in [
        ("service-api-key", "wrong"),
        ("service-api-key", nearly),
        ("service-api-key", long.as_str()),
        ("unstructured-api-key", "' OR '1'='1"),
        ("authorization", "Bearer wrong"),
        ("authorization", "Bearer eyJhbGciOiJub25lIn0.e30."),
        ("authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.AAAA"),
    ] {
        let answer = client
            .send(client.anonymous(Method::GET, "/jobs").header(name, value))
            .await;
        assert_eq!(
            answer.error(401, "api_key_invalid")["detail"],
            MALFORMED,
            "{name}: {value}"
        );
    }
    let garbled = reqwest::header::HeaderValue::from_bytes(b"dm_\xff\xfe").expect("a legal value");
    let answer = client
        .send(
            client
                .anonymous(Method::GET, "/jobs")
                .header("service-api-key", garbled),
        )
        .await;
    assert_eq!(answer.error(401, "api_key_invalid")["detail"], MALFORMED);
}

#[tokio::test]
async fn every_operation_but_the_open_ones_asks_for_a_key() {
    let server = Server::start().await;
    let client = server.client();
    for (method, path) in operations(&client).await {
        let open = ["/livez", "/readyz", "/metrics"].contains(&path.as_str());
        let path = path.replace(['{', '}'], "");
        let answer = client.send(client.anonymous(method.clone(), &path)).await;
        if open {
            assert_eq!(answer.status, 200, "{method} {path}");
        } else {
            answer.error(401, "api_key_missing");
        }
    }
}

#[tokio::test]
async fn an_access_token_stands_for_its_key_until_the_key_is_revoked() {
    let server = Server::start().await;
    let client = server.client();
    let key = server.create_key("default", "short-lived");
    let issued = client
        .send(
            client
                .anonymous(Method::POST, "/api/v1/auth/token")
                .header("service-api-key", &key),
        )
        .await
        .ok();
    assert_eq!(
        (issued["token_type"].as_str(), issued["expires_in"].as_u64()),
        (Some("bearer"), Some(3_600))
    );
    let token = text(&issued["access_token"]);
    assert!(!token.contains(&key));
    let with_token = |path: &str| client.anonymous(Method::GET, path).bearer_auth(token);
    let job = client.run(&partition_only(), &[]).await;
    client
        .send(with_token(&format!("/jobs/{}", text(&job["id"]))))
        .await
        .ok();
    client.send(with_token("/templates")).await.ok();

    let (head, signature) = token.rsplit_once('.').expect("three parts");
    let mut forged = signature.to_owned();
    let last = if forged.ends_with('A') { 'B' } else { 'A' };
    forged.replace_range(0..1, &last.to_string());
    if forged != signature {
        let answer = client
            .send(
                client
                    .anonymous(Method::GET, "/jobs")
                    .bearer_auth(format!("{head}.{forged}")),
            )
            .await;
        answer.error(401, "api_key_invalid");
    }

    server.docmill(&["keys", "revoke", &key[..11]]);
    let by_key = client
        .send(client.anonymous(Method::GET, "/jobs").header("service-api-key", &key))
        .await;
    by_key.error(401, "api_key_invalid");
    client.send(with_token("/jobs")).await.error(401, "api_key_invalid");
    client.get("/jobs").await.ok();
}

#[tokio::test]
async fn a_token_ends_after_its_lifetime() {
    let server = Server::with(&[("AUTH__TOKEN_LIFETIME_SECS", "2")]).await;
    let client = server.client();
    let issued = client.post("/auth/token").await.ok();
    let token = text(&issued["access_token"]).to_owned();
    crate::kit::until("the token to end", async || {
        let answer = client
            .send(client.anonymous(Method::GET, "/jobs").bearer_auth(&token))
            .await;
        (answer.status == 401).then(|| answer.error(401, "api_key_invalid"))
    })
    .await;
}

#[tokio::test]
async fn listing_workflows_asks_for_a_bearer_where_the_setting_says_so() {
    let server = Server::with(&[("AUTH__REQUIRE_BEARER_FOR_WORKFLOWS", "true")]).await;
    let client = server.client();
    let token = client.post("/auth/token").await.ok();
    let token = text(&token["access_token"]);
    for path in ["/workflows", "/api/v1/workflows/"] {
        let get = || client.anonymous(Method::GET, path);
        client.get(path).await.error(401, "api_key_missing");
        client.send(get()).await.error(401, "api_key_missing");
        let basic = get().header("authorization", "Basic eDp5");
        client.send(basic).await.error(401, "api_key_missing");
        client
            .send(get().bearer_auth("dm_no-such-key"))
            .await
            .error(401, "api_key_invalid");
        let wrong = client.request(Method::GET, path).bearer_auth("eyJ.eyJ.x");
        client.send(wrong).await.error(401, "api_key_invalid");
        client.send(get().bearer_auth(token)).await.ok();
        client.send(get().bearer_auth(KEY)).await.ok();
        client
            .send(client.request(Method::GET, path).bearer_auth(token))
            .await
            .ok();
    }
    // Everything else goes on as ever.
    client.get("/sources").await.ok();
    let workflow = client.workflow(&custom_workflow("seen")).await;
    client.get(&format!("/workflows/{}", text(&workflow["id"]))).await.ok();
    assert!(
        server
            .docmill(&["config", "docs"])
            .contains("require_bearer_for_workflows = false")
    );
}

#[tokio::test]
async fn the_names_of_key_headers_are_a_setting() {
    let server = Server::with(&[("AUTH__KEY_HEADERS", "[\"X-My-Key\"]")]).await;
    let client = server.client();
    client
        .send(client.anonymous(Method::GET, "/jobs").header("x-my-key", KEY))
        .await
        .ok();
    client.get("/jobs").await.error(401, "api_key_missing");
}

/// Another workspace's object and one that never was must be told apart by nothing in the answer.
#[tokio::test]
async fn another_workspace_sees_nothing_whatever_it_asks() {
    let server = Server::start().await;
    let (owner, stranger) = (server.client(), server.stranger());
    let job = owner
        .run(&partition_only(), &[File::new("mine.html", html("secret", 3))])
        .await;
    let failed = owner
        .run(&partition_only(), &[File::new("mine.bin", vec![0u8; 64])])
        .await;
    let never = "01980000-0000-7000-8000-00000000abcd";
    let file = file_ids(&job).remove(0);
    let node = text(&job["output_node_files"][0]["node_id"]).to_owned();

    for (method, path) in operations(&owner).await {
        if !path.contains("{job_id}") {
            continue;
        }
        for existing in [&job, &failed] {
            let at = |id: &str| {
                let query = if path.ends_with("/download") {
                    format!("?file_id={file}&node_id={node}")
                } else {
                    String::new()
                };
                format!("{}{query}", path.replace("{job_id}", id))
            };
            let theirs = stranger
                .send(stranger.request(method.clone(), &at(text(&existing["id"]))))
                .await;
            let nobodys = stranger.send(stranger.request(method.clone(), &at(never))).await;
            assert_eq!(theirs.comparable(), nobodys.comparable(), "{method} {path}");
            theirs.error(404, "not_found");
        }
    }
    assert_eq!(stranger.get("/jobs").await.ok(), Value::Array(Vec::new()));
    let by_workflow = stranger
        .get(&format!("/jobs?workflow_id={}", text(&job["workflow_id"])))
        .await;
    assert_eq!(by_workflow.ok(), Value::Array(Vec::new()));
    // The stranger's requests changed nothing either.
    assert_eq!(owner.get(&format!("/jobs/{}", text(&job["id"]))).await.ok(), job);
    assert_eq!(owner.elements(text(&job["id"]), &file).await.len(), 4);

    // A file of one job is not reachable through another job, not even the same owner's.
    let other = owner.run(&partition_only(), &[File::new("b.html", html("b", 1))]).await;
    let crossed = owner
        .get(&format!("/jobs/{}/download?file_id={file}", text(&other["id"])))
        .await;
    assert_eq!(crossed.error(404, "not_found")["detail"], "File not found");
}

#[tokio::test]
async fn ids_that_are_none_name_nothing() {
    let server = Server::start().await;
    let client = server.client();
    for id in [
        "x",
        "..%2f..%2fetc",
        "%00",
        "%ff%fe",
        "'; DROP TABLE jobs; --",
        &"9".repeat(4_000),
        "{job_id}",
    ] {
        for path in ["", "/details", "/failed-files", "/download?file_id=x"] {
            client.get(&format!("/jobs/{id}{path}")).await.error(404, "not_found");
        }
        client.get(&format!("/templates/{id}")).await.error(404, "not_found");
    }
}

/// Every operation of the OpenAPI document.
pub(crate) async fn operations(client: &Client) -> Vec<(Method, String)> {
    let document = client.get("/openapi.json").await.ok();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            let method = method.to_uppercase().parse().expect("a method");
            found.push((method, path.clone()));
        }
    }
    assert!(found.len() >= 16, "{found:?}");
    found
}
