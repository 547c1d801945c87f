//! The OpenAPI document and the reference page.

use docmill_model::chain::catalog::{Takes, catalog};
use reqwest::Method;
use serde_json::Value;

use crate::access::operations;
use crate::kit::Server;

#[tokio::test]
async fn every_documented_operation_has_a_route_and_every_reference_a_target() {
    let server = Server::start().await;
    let client = server.client();
    let document = client.get("/api/v1/openapi.json").await.ok();
    assert!(
        document["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3."))
    );
    assert_eq!(document["info"]["title"], "docmill");
    for (method, path) in operations(&client).await {
        let answer = client
            .send(client.request(method.clone(), &path.replace(['{', '}'], "")))
            .await;
        // An object that is not there, a form that is not there: anything but a missing route.
        let routed = answer.status != 405 && (answer.status != 404 || answer.json()["detail"] != "Not Found");
        assert!(routed, "{method} {path}: {answer}");
        let item = &document["paths"][&path][method.as_str().to_lowercase()];
        assert!(
            item["operationId"].is_string() && item["responses"].is_object(),
            "{method} {path}"
        );
        assert!(
            item["summary"].as_str().is_some_and(|text| text.len() > 5),
            "{method} {path} has no summary"
        );
    }
    let mut names = std::collections::HashSet::new();
    for item in document["paths"].as_object().expect("paths").values() {
        for operation in item.as_object().expect("operations").values() {
            assert!(
                names.insert(operation["operationId"].clone()),
                "{} twice",
                operation["operationId"]
            );
        }
    }
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    for reference in references {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let codes = document["components"]["schemas"]["ErrorCode"]["enum"]
        .as_array()
        .expect("a list of codes");
    for code in [
        "api_key_missing",
        "file_too_large",
        "rate_limited",
        "internal_error",
        "task_timeout",
        "channel_not_verified",
        "verification_code_wrong",
        "verification_code_expired",
        "verification_attempts_exceeded",
    ] {
        assert!(codes.contains(&Value::from(code)), "{code} is not documented");
    }
}

/// The operations of the interface, written down here a second time: a route that is added, lost or
/// renamed has to be meant.
#[tokio::test]
async fn the_operations_are_these() {
    let server = Server::start().await;
    let mut found: Vec<_> = operations(&server.client())
        .await
        .into_iter()
        .map(|(m, p)| format!("{m} {p}"))
        .collect();
    found.sort();
    let mut expected = [
        "DELETE /destinations/{destination_id}",
        "DELETE /jobs/{job_id}",
        "DELETE /sources/{source_id}",
        "DELETE /workflows/{workflow_id}",
        "GET /connectors",
        "GET /destinations",
        "GET /destinations/{destination_id}",
        "GET /destinations/{destination_id}/connection-check",
        "GET /jobs",
        "GET /jobs/{job_id}",
        "GET /jobs/{job_id}/details",
        "GET /jobs/{job_id}/download",
        "GET /jobs/{job_id}/events",
        "GET /jobs/{job_id}/failed-files",
        "GET /limits",
        "GET /livez",
        "GET /metrics",
        "GET /nodes",
        "GET /readyz",
        "GET /sources",
        "GET /sources/{source_id}",
        "GET /sources/{source_id}/connection-check",
        "GET /templates",
        "GET /templates/{template_id}",
        "GET /workflows",
        "GET /workflows/{workflow_id}",
        "GET /notifications/channels",
        "POST /notifications/channels",
        "GET /notifications/channels/{channel_id}",
        "PATCH /notifications/channels/{channel_id}",
        "DELETE /notifications/channels/{channel_id}",
        "POST /notifications/channels/{channel_id}/verify",
        "POST /notifications/channels/{channel_id}/resend",
        "POST /notifications/channels/{channel_id}/secret/rotate",
        "POST /notifications/channels/{channel_id}/test",
        "GET /notifications/channels/{channel_id}/deliveries",
        "POST /notifications/channels/{channel_id}/deliveries/replay-failed",
        "GET /notifications/channels/{channel_id}/deliveries/{delivery_id}",
        "GET /notifications/channels/{channel_id}/deliveries/{delivery_id}/attempts",
        "POST /notifications/channels/{channel_id}/deliveries/{delivery_id}/replay",
        "GET /workflows/{workflow_id}/notifications/channels",
        "POST /workflows/{workflow_id}/notifications/channels",
        "GET /workflows/{workflow_id}/notifications/channels/{channel_id}",
        "PATCH /workflows/{workflow_id}/notifications/channels/{channel_id}",
        "DELETE /workflows/{workflow_id}/notifications/channels/{channel_id}",
        "POST /workflows/{workflow_id}/notifications/channels/{channel_id}/verify",
        "POST /workflows/{workflow_id}/notifications/channels/{channel_id}/resend",
        "POST /workflows/{workflow_id}/notifications/channels/{channel_id}/secret/rotate",
        "POST /workflows/{workflow_id}/notifications/channels/{channel_id}/test",
        "GET /workflows/{workflow_id}/notifications/channels/{channel_id}/deliveries",
        "POST /workflows/{workflow_id}/notifications/channels/{channel_id}/deliveries/replay-failed",
        "GET /workflows/{workflow_id}/notifications/channels/{channel_id}/deliveries/{delivery_id}",
        "GET /workflows/{workflow_id}/notifications/channels/{channel_id}/deliveries/{delivery_id}/attempts",
        "POST /workflows/{workflow_id}/notifications/channels/{channel_id}/deliveries/{delivery_id}/replay",
        "GET /notifications",
        "GET /notifications/unread-count",
        "GET /notifications/{notification_id}",
        "POST /notifications/mark-read",
        "POST /auth/token",
        "POST /destinations",
        "POST /destinations/{destination_id}/connection-check",
        "POST /jobs",
        "POST /jobs/{job_id}/cancel",
        "POST /jobs/{job_id}/retry",
        "POST /sources",
        "POST /sources/{source_id}/connection-check",
        "POST /workflows",
        "POST /workflows/{workflow_id}/run",
        "PUT /destinations/{destination_id}",
        "PUT /sources/{source_id}",
        "PUT /workflows/{workflow_id}",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn the_command_prints_the_document_the_server_serves() {
    let server = Server::start().await;
    let printed: Value = serde_json::from_str(&server.docmill(&["openapi"])).expect("JSON");
    assert_eq!(printed, server.client().get("/openapi.json").await.ok());
}

#[tokio::test]
async fn the_reference_page_loads_nothing_from_elsewhere() {
    let server = Server::start().await;
    let client = server.client();
    for mount in ["", "/api/v1"] {
        for slash in ["", "/"] {
            let page = client
                .send(client.anonymous(Method::GET, &format!("{mount}/docs{slash}")))
                .await;
            assert_eq!(page.status, 200);
            assert!(page.header("content-type").is_some_and(|v| v.starts_with("text/html")));
            let page = String::from_utf8(page.bytes).expect("text");
            let base = attribute(&page, "<base href=\"");
            let folder = if slash.is_empty() {
                format!("{mount}/")
            } else {
                format!("{mount}/docs/")
            };
            let mut links: Vec<_> = page
                .match_indices("src=\"")
                .map(|(at, _)| attribute(&page[at..], "src=\""))
                .collect();
            links.extend(
                page.match_indices("<link")
                    .map(|(at, _)| attribute(&page[at..], "href=\"")),
            );
            assert!(links.len() >= 3, "{links:?} in {page}");
            for link in links {
                assert!(!link.contains("//"), "{link}");
                let url = join(&join(&folder, base), link);
                let asset = client.send(client.anonymous(Method::GET, &url)).await;
                assert_eq!(asset.status, 200, "{url}");
                if url.ends_with("initializer.js") {
                    let script = String::from_utf8_lossy(&asset.bytes).into_owned();
                    assert!(script.contains("../openapi.json"), "{script}");
                    assert!(!script.contains("http"), "the page would call another host: {script}");
                }
            }
        }
    }
    client.get("/docs/nothing.js").await.error(404, "not_found");
    client.get("/docs/..%2f..%2fetc%2fpasswd").await.error(404, "not_found");
    client.get("/docs/%ff").await.error(404, "not_found");
}

fn join(folder: &str, link: &str) -> String {
    format!("{folder}{}", link.trim_start_matches("./"))
}

fn attribute<'a>(text: &'a str, start: &str) -> &'a str {
    let rest = &text[text.find(start).expect(start) + start.len()..];
    &rest[..rest.find('"').expect("a quote")]
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(target) if name == "$ref" => found.push(target.clone()),
                    value => collect_references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// The pages about nodes name every node and every setting that does something.
#[test]
fn every_node_and_setting_is_on_its_page() {
    let page = |name: &str| {
        let path = format!("{}/../../docs/nodes/{name}.md", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let mut missing = Vec::new();
    for entry in catalog() {
        let name = match entry.kind {
            "structured_data_extractor" => "extractor",
            kind => kind,
        };
        let page = page(name);
        let words: Vec<&str> = match entry.subtype.split_once('_') {
            // The page says how prefix and task make the subtype.
            Some(_) if name == "prompter" && !page.contains(&entry.subtype) => {
                let provider = entry.providers[0].as_str();
                vec![provider, entry.subtype[provider.len() + 1..].into()]
            }
            _ => vec![&entry.subtype],
        };
        let settings = entry.settings.iter().filter(|setting| setting.value != Takes::Ignored);
        for word in words.into_iter().chain(settings.map(|setting| setting.name)) {
            if !page.contains(word) {
                missing.push(format!("{name}: {word} of {}", entry.subtype));
            }
        }
    }
    assert!(missing.is_empty(), "not on their pages: {missing:#?}");
}
