//! The pages of documentation say what is so: every connector has one, it names every setting, and what its
//! examples send is accepted.

use std::path::{Path, PathBuf};

use docmill_connectors::{TYPES, find};
use docmill_model::connector::ConnectorRole;
use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Client, Server};

const ROLES: [(ConnectorRole, &str); 2] = [
    (ConnectorRole::Source, "sources"),
    (ConnectorRole::Destination, "destinations"),
];

/// A private key for the place where an example puts the text of a key file.
const PEM: &str = include_str!("../../../connectors/tests/connectors/object/service_account.pem");

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A call of the function `api` that the examples make for themselves.
#[derive(Debug)]
struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
}

/// The blocks of shell of a page, one after the other.
fn shell(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect()
}

fn calls(page: &str) -> Vec<Call> {
    let shell = shell(page);
    let mut calls = Vec::new();
    for (at, _) in shell.match_indices("api ") {
        let (before, text) = shell.split_at(at);
        if !before.is_empty() && !before.ends_with(['\n', '(']) {
            continue;
        }
        let line = text.lines().next().unwrap_or_default();
        let given = line.split_once("-X ").and_then(|(_, rest)| rest.split(' ').next());
        let sends = line.contains(" -d ");
        let method = given.unwrap_or(if sends { "POST" } else { "GET" });
        let (_, path) = line
            .split_once("$BASE")
            .unwrap_or_else(|| panic!("no address in {line}"));
        let end = path.find([' ', '"', '#', ')']).unwrap_or(path.len());
        calls.push(Call {
            method: method.parse().expect("a method"),
            path: path[..end].to_owned(),
            body: sends.then(|| body(text)),
        });
    }
    calls
}

/// What stands between the single quotes, as JSON.
fn body(text: &str) -> Value {
    let quoted = text.split('\'').nth(1).expect("a quoted body");
    let key_file = json!({"type": "service_account", "client_email": "docmill@project.example", "private_key": PEM});
    let text = quoted.replace("$key", &json!(key_file.to_string()).to_string());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {quoted}"))
}

/// Makes the calls, except that nothing is started: what would be is looked up.
async fn follow(client: &Client, page: &str) -> Vec<Call> {
    let calls = calls(page);
    for call in &calls {
        let path = format!("/api/v1{}", call.path);
        let answer = match &call.body {
            _ if path.contains("$JOB") => continue,
            Some(body) => client.send_json(call.method.clone(), &path, body).await,
            None if path.ends_with("/connection-check") || path.ends_with("/run") => {
                let (of, _) = path.rsplit_once('/').expect("a path");
                client.get(of).await
            }
            None => client.send(client.request(call.method.clone(), &path)).await,
        };
        assert_eq!(answer.status, 200, "{call:?}: {answer}");
    }
    calls
}

async fn server() -> Server {
    // As the pages tell the operator.
    Server::with(&[
        ("CONNECTORS__LOCAL_ROOTS", "[\"/srv\"]"),
        ("EGRESS__DANGER_ALLOW_CIDRS", "[\"127.0.0.0/8\"]"),
        ("EGRESS__ALLOW_HTTP", "true"),
    ])
    .await
}

#[tokio::test]
async fn what_the_connectors_pages_send_is_accepted() {
    for kind in TYPES {
        let server = server().await;
        let calls = follow(&server.client(), &page(&format!("docs/connectors/{}.md", kind.name))).await;
        for (role, path) in ROLES {
            let made = calls.iter().any(|call| {
                let sent = call.body.as_ref().filter(|_| call.path == format!("/{path}/"));
                sent.is_some_and(|body| body["type"] == kind.name)
            });
            assert_eq!(made, kind.fields(role).is_some(), "{} as a {role}", kind.name);
        }
        let ends = |end: &str| calls.iter().filter(|call| call.path.ends_with(end)).count();
        assert!(
            ends("/connection-check") >= 4 && ends("/run") >= 1,
            "{}: {calls:?}",
            kind.name
        );
    }
}

#[tokio::test]
async fn what_the_readme_and_the_page_on_workflows_send_is_accepted() {
    let server = server().await;
    assert!(follow(&server.client(), &page("README.md")).await.len() >= 4);
    drop(server);
    let server = self::server().await;
    let calls = follow(&server.client(), &page("docs/workflows.md")).await;
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        assert!(calls.iter().any(|call| call.method == method), "{method}");
    }
}

#[test]
fn every_connector_has_a_page_that_names_its_settings_and_no_others() {
    let index = page("docs/workflows.md");
    for kind in TYPES {
        let name = kind.name;
        assert!(
            index.contains(&format!("](connectors/{name}.md)")),
            "{name} is not in the list"
        );
        let text = page(&format!("docs/connectors/{name}.md"));
        assert!(
            text.lines()
                .next()
                .is_some_and(|title| title.ends_with(&format!(": `{name}`")))
        );
        let rows: Vec<(Vec<&str>, &str)> = text
            .lines()
            .skip_while(|line| !line.starts_with("| setting | role |"))
            .take_while(|line| line.starts_with('|'))
            .skip(2)
            .map(|row| {
                let cells: Vec<_> = row.split(" | ").collect();
                (cells[0].split('`').skip(1).step_by(2).collect(), cells[1])
            })
            .collect();
        let told = |role: ConnectorRole| {
            let mut names: Vec<_> = rows
                .iter()
                .filter(|(_, roles)| *roles == "both" || *roles == role.as_str())
                .flat_map(|(names, _)| names.clone())
                .collect();
            names.sort_unstable();
            names
        };
        for (role, _) in ROLES {
            let mut there: Vec<_> = kind
                .fields(role)
                .unwrap_or_default()
                .iter()
                .map(|field| field.name)
                .collect();
            there.sort_unstable();
            assert_eq!(told(role), there, "{name} as a {role}");
        }
    }
    let pages = std::fs::read_dir(top().join("docs/connectors")).expect("a folder");
    assert_eq!(pages.count(), TYPES.len(), "a page of something that is not there");
}

#[test]
fn the_options_of_every_run_without_server_exist() {
    for kind in TYPES {
        let shell = shell(&page(&format!("docs/connectors/{}.md", kind.name))).replace("\\\n", " ");
        let runs: Vec<_> = shell.lines().filter(|line| line.starts_with("docmill run ")).collect();
        assert!(!runs.is_empty(), "{}", kind.name);
        for run in runs {
            let words: Vec<_> = run.split_whitespace().collect();
            for pair in words.windows(2) {
                let role = match pair[0] {
                    "--source-option" => ConnectorRole::Source,
                    "--destination-option" => ConnectorRole::Destination,
                    _ => continue,
                };
                let (name, _) = pair[1].split_once('=').expect("NAME=VALUE");
                let fields = find(role, kind.name)
                    .and_then(|kind| kind.fields(role))
                    .unwrap_or_default();
                assert!(fields.iter().any(|field| field.name == name), "{name} in {run}");
            }
        }
    }
}

/// Settings of the server that pages name as `section.name`.
#[test]
fn every_setting_a_page_names_exists() {
    let settings = page("crates/docmill/docmill.default.toml");
    let mut pages = vec![
        "README.md".to_owned(),
        "ARCHITECTURE.md".into(),
        "docs/workflows.md".into(),
    ];
    pages.extend(TYPES.iter().map(|kind| format!("docs/connectors/{}.md", kind.name)));
    let mut named = 0;
    for path in pages {
        let text = page(&path);
        for word in text.split('`').skip(1).step_by(2) {
            let word = word.split(' ').next().unwrap_or_default();
            let Some((section, name)) = word.split_once('.') else {
                continue;
            };
            let Some((_, rest)) = settings.split_once(&format!("\n[{section}]\n")) else {
                continue;
            };
            let section = rest.split("\n[").next().unwrap_or_default();
            let there = section.lines().any(|line| line.split(" = ").next() == Some(name));
            // A file may have a section's name too.
            assert!(
                there
                    || Path::new(word)
                        .extension()
                        .is_some_and(|end| end == "key" || end == "rs"),
                "{word} in {path}"
            );
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

#[tokio::test]
async fn the_examples_of_the_reference_are_accepted() {
    let server = server().await;
    let client = server.client();
    let document = client.get("/openapi.json").await.ok();
    let example = |schema: &str| {
        let example = &document["components"]["schemas"][schema]["examples"][0];
        assert!(example.is_object(), "{schema} has no example");
        example.clone()
    };
    let mut connector = example("CreateConnector");
    client.post_json("/sources", &connector).await.ok();
    // The workflow's example writes to one of another name.
    connector["key"] = json!("elements");
    client.post_json("/destinations", &connector).await.ok();
    client
        .put_json("/sources/reports", &example("UpdateConnector"))
        .await
        .ok();
    client.post_json("/workflows", &example("CreateWorkflow")).await.ok();
    client
        .put_json("/workflows/reports-every-hour", &example("UpdateWorkflow"))
        .await
        .ok();
}

/// Whether a path with `$NAME`s is one of an operation with `{name}`s.
fn is_path_of(path: &str, operation: &str) -> bool {
    let (path, operation): (Vec<_>, Vec<_>) = (path.split('/').collect(), operation.split('/').collect());
    let alike = |(given, known): (&&str, &&str)| given == known || given.starts_with('$') && known.starts_with('{');
    path.len() == operation.len() && path.iter().zip(&operation).all(alike)
}

#[tokio::test]
async fn the_page_of_notifications_names_operations_and_settings_there_are() {
    let page = page("docs/notifications.md");
    let server = Server::start().await;
    let client = server.client();
    let operations = crate::access::operations(&client).await;
    let calls = calls(&page);
    assert!(calls.len() > 12, "{calls:?}");
    for call in calls {
        let path = call.path.split('?').next().unwrap_or_default();
        let known = operations
            .iter()
            .any(|(method, known)| *method == call.method && is_path_of(path, known));
        assert!(known, "{call:?}");
        let creates = call.method == Method::POST && path.ends_with("/channels");
        if let Some(mut body) = call.body.filter(|_| creates) {
            if body["url"].is_string() {
                // The example's host does not exist; this address does.
                body["url"] = "https://93.184.215.14/hooks/docmill".into();
            }
            let answer = client.post_json(path, &body).await;
            assert_eq!(answer.status, 201, "{answer}");
        }
    }
    let defaults = self::page("crates/docmill/docmill.default.toml");
    for name in page.split("DOCMILL_").skip(1) {
        let name: String = name
            .chars()
            .take_while(|c| c.is_ascii_uppercase() || *c == '_')
            .collect();
        let (section, key) = name.split_once("__").unwrap_or_else(|| panic!("{name}"));
        let section = defaults
            .split(&format!("[{}]", section.to_lowercase()))
            .nth(1)
            .unwrap_or_default();
        let section = section.split("\n[").next().unwrap_or_default();
        assert!(section.contains(&format!("\n{} = ", key.to_lowercase())), "{name}");
    }
    for setting in page.split('`').skip(1).step_by(2) {
        let Some((section @ ("mail" | "channels" | "egress" | "server"), key)) = setting.split_once('.') else {
            continue;
        };
        assert!(
            defaults.contains(&format!("[{section}]")) && defaults.contains(&format!("\n{key} = ")),
            "{setting}"
        );
    }
}
