//! Elasticsearch and OpenSearch, against a double that knows the part of their interface that is used and
//! refuses all else. Like the real ones it makes an index that is written to and isn't there, and finds
//! nothing that was written since the last refresh.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::response::Response;
use docmill_connectors::{Destination, Document, ErrorKind};
use serde_json::{Value, json};

use super::conformance::destinations::{self, DestinationRig, document};
use super::conformance::{destination, error};
use super::double::{Asked, Double, Service, answer};

const INDEX: &str = "elements";

#[derive(Default)]
struct Index {
    documents: BTreeMap<String, Value>,
    /// Ids that a search finds, with what it finds them by.
    found: BTreeMap<String, String>,
    mappings: Value,
    /// Writes of this many more documents are refused because the queue is full.
    full: usize,
}

struct Search {
    authorization: &'static str,
    indices: Mutex<BTreeMap<String, Index>>,
}

fn refuse(status: u16, kind: &str, reason: &str) -> Response {
    answer(
        status,
        &json!({"error": {"type": kind, "reason": reason}, "status": status}).to_string(),
    )
}

impl Service for Search {
    fn handle(&self, asked: &Asked) -> Response {
        if asked.header("authorization") != self.authorization {
            return refuse(401, "security_exception", "unable to authenticate");
        }
        let path: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
        let mut indices = self.indices.lock().unwrap();
        match (asked.method.as_str(), path.as_slice()) {
            ("HEAD", [index]) => answer(if indices.contains_key(*index) { 200 } else { 404 }, ""),
            ("POST", [index, "_bulk"]) => bulk(asked, indices.entry((*index).to_owned()).or_default()),
            (method, [index, operation]) => match indices.get_mut(*index) {
                None => refuse(404, "index_not_found_exception", "no such index"),
                Some(index) => match (method, *operation) {
                    ("GET", "_mapping") => mapping(asked, index),
                    ("POST", "_refresh") if asked.query.is_empty() && asked.body.is_empty() => refresh(index),
                    ("POST", "_delete_by_query") if asked.query.is_empty() => {
                        delete(asked, index).unwrap_or_else(|answer| *answer)
                    }
                    _ => refuse(400, "illegal_argument_exception", "no handler found"),
                },
            },
            _ => refuse(400, "illegal_argument_exception", "no handler found"),
        }
    }
}

fn mapping(asked: &Asked, index: &Index) -> Response {
    let parts = "*.mappings.dynamic,*.mappings.properties.record_id.type,*.mappings.properties.record_id.index";
    if !asked.asks(&[("filter_path", parts)]) {
        return refuse(400, "illegal_argument_exception", "unrecognized parameter");
    }
    match &index.mappings {
        Value::Null => answer(200, "{}"),
        mappings => answer(200, &json!({INDEX: {"mappings": mappings}}).to_string()),
    }
}

fn refresh(index: &mut Index) -> Response {
    index.found = index
        .documents
        .iter()
        .map(|(id, document)| (id.clone(), document["record_id"].as_str().unwrap().to_owned()))
        .collect();
    answer(200, r#"{"_shards":{"total":1,"successful":1,"failed":0}}"#)
}

fn bulk(asked: &Asked, index: &mut Index) -> Response {
    let parts = "items.*.status,items.*.error.type,items.*.error.reason";
    let body = std::str::from_utf8(&asked.body).unwrap_or_default();
    if asked.header("content-type") != "application/x-ndjson" || !asked.asks(&[("filter_path", parts)]) {
        return refuse(
            406,
            "media_type_header_exception",
            "Content-Type header is not supported",
        );
    }
    let Some(body) = body.strip_suffix('\n') else {
        return refuse(
            400,
            "illegal_argument_exception",
            "The bulk request must be terminated by a newline",
        );
    };
    let mut items = vec![];
    let mut lines = body.split('\n').map(serde_json::from_str::<Value>);
    while let Some(action) = lines.next() {
        let action = action.unwrap_or_default();
        let only = |name: &str| -> Option<String> {
            let operation = action.as_object().filter(|action| action.len() == 1)?.get(name)?;
            let id = operation.as_object().filter(|fields| fields.len() == 1)?.get("_id")?;
            id.as_str().filter(|id| id.len() <= 512).map(str::to_owned)
        };
        if let Some(id) = only("delete") {
            let status = if index.documents.remove(&id).is_some() {
                200
            } else {
                404
            };
            items.push(json!({"delete": {"status": status}}));
        } else if let (Some(id), Some(Ok(document @ Value::Object(_)))) = (only("index"), lines.next()) {
            items.push(json!({ "index": write(index, id, document) }));
        } else {
            return refuse(
                400,
                "illegal_argument_exception",
                "Malformed action/metadata line, expected a simple value",
            );
        }
    }
    answer(200, &json!({ "items": items }).to_string())
}

fn write(index: &mut Index, id: String, document: Value) -> Value {
    if index.full > 0 {
        index.full -= 1;
        return json!({"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}});
    }
    if document["metadata"]["page_number"].as_i64().is_none() {
        let reason = "failed to parse field [metadata.page_number] of type [long]";
        return json!({"status": 400, "error": {"type": "document_parsing_exception", "reason": reason}});
    }
    let there = index.documents.insert(id, document).is_some();
    json!({"status": if there { 200 } else { 201 }})
}

fn delete(asked: &Asked, index: &mut Index) -> Result<Response, Box<Response>> {
    let body = asked.json()?;
    let record_id = body["query"]["bool"]["filter"][0]["term"]["record_id"]["value"].as_str();
    let kept = &body["query"]["bool"]["must_not"][0]["ids"]["values"];
    let mut expected = json!({"query": {"bool": {"filter": [{"term": {"record_id": {"value": record_id}}}]}}});
    if !kept.is_null() {
        expected["query"]["bool"]["must_not"] = json!([{"ids": {"values": kept}}]);
    }
    if body != expected || record_id.is_none() {
        return Err(Box::new(refuse(400, "parsing_exception", "unknown query")));
    }
    let kept: Vec<_> = kept
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let record_id = record_id.unwrap_or_default();
    let stale = index
        .found
        .iter()
        .filter(|(id, record)| *record == record_id && !kept.contains(&id.as_str()));
    let stale: Vec<_> = stale.map(|(id, _)| id.clone()).collect();
    for id in &stale {
        index.found.remove(id);
        index.documents.remove(id);
    }
    let told = json!({"timed_out": false, "total": stale.len(), "deleted": stale.len(), "version_conflicts": 0, "failures": []});
    Ok(answer(200, &told.to_string()))
}

struct Rig {
    double: Double<Search>,
    kind: &'static str,
}

impl Rig {
    async fn new(kind: &'static str) -> Self {
        let authorization = if kind == "elasticsearch" {
            "ApiKey aWQ6a2V5"
        } else {
            "Basic bWU6cGFzcw=="
        };
        let indices = [(INDEX.to_owned(), Index::default())];
        let search = Search {
            authorization,
            indices: Mutex::new(indices.into()),
        };
        Self {
            double: Double::start(search).await,
            kind,
        }
    }

    fn open(&self, index: &str, secret: &str) -> Arc<dyn Destination> {
        let mut config = json!({"hosts": [self.double.url()], "index_name": index});
        if self.kind == "elasticsearch" {
            config["es_api_key"] = format!("id:{secret}").into();
        } else {
            config["username"] = "me".into();
            config["password"] = if secret == "key" { "pass" } else { secret }.into();
        }
        destination(self.kind, &config)
    }

    fn index<T>(&self, work: impl FnOnce(&mut Index) -> T) -> T {
        work(self.double.service.indices.lock().unwrap().get_mut(INDEX).unwrap())
    }
}

#[async_trait]
impl DestinationRig for Rig {
    fn destination(&self) -> Arc<dyn Destination> {
        self.open(INDEX, "key")
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Destination>> {
        Some(self.open(INDEX, "wrong"))
    }

    fn absent(&self) -> Option<Arc<dyn Destination>> {
        Some(self.open("absent", "key"))
    }

    async fn texts(&self, document: &Document) -> Vec<String> {
        self.index(|index| {
            let all = index.documents.values();
            let of_it = all.filter(|element| element["record_id"] == *document.record_id);
            of_it
                .map(|element| element["text"].as_str().unwrap().to_owned())
                .collect()
        })
    }

    async fn total(&self) -> usize {
        self.index(|index| index.documents.len())
    }

    async fn power(&self, on: bool) -> bool {
        self.double.power(on).await;
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn elasticsearch_conforms() {
    let rig = Rig::new("elasticsearch").await;
    destinations::conforms(&rig).await;
    let there: Vec<_> = rig.double.service.indices.lock().unwrap().keys().cloned().collect();
    assert_eq!(there, [INDEX], "no index was made by accident");
}

#[tokio::test(flavor = "multi_thread")]
async fn opensearch_conforms() {
    destinations::conforms(&Rig::new("opensearch").await).await;
}

#[tokio::test]
async fn patience_and_its_end() {
    let rig = Rig::new("elasticsearch").await;
    let (opened, one) = (rig.destination(), document(1, "a", &["one".into(), "three".into()]));
    rig.double.next(429, &[("retry-after", "1")], "");
    let start = std::time::Instant::now();
    opened.check().await.unwrap();
    assert!(start.elapsed() >= std::time::Duration::from_secs(1), "as long as asked");
    rig.double.next(429, &[("retry-after", "3600")], "{}");
    let busy = error(opened.check().await, "an hour is too long");
    assert_eq!(busy.kind, ErrorKind::Throttled);
    // Some elements are refused because the cluster is busy: only those are sent again.
    rig.index(|index| index.full = 1);
    opened.put(&one).await.unwrap();
    assert_eq!(rig.texts(&one).await.len(), 2);
    rig.index(|index| index.full = 1_000);
    let busy = error(opened.put(&one).await, "a cluster that stays busy");
    assert_eq!(busy.kind, ErrorKind::Throttled, "{busy}");
    rig.index(|index| index.full = 0);
    // One element of two can't be indexed.
    let mut odd = one.clone();
    odd.elements = String::from_utf8(one.elements.to_vec())
        .unwrap()
        .replacen("\"page_number\":1", "\"page_number\":\"x\"", 1)
        .into();
    let refused = error(opened.put(&odd).await, "an element that doesn't fit");
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(
        refused.message.contains("1 of 2") && refused.message.contains("page_number"),
        "{refused}"
    );
    rig.double.next(200, &[], "<html>");
    assert_eq!(error(opened.put(&one).await, "nonsense").kind, ErrorKind::Unexpected);
    rig.double.next(302, &[("location", "http://127.0.0.1/")], "");
    assert_eq!(error(opened.check().await, "a redirect").kind, ErrorKind::Unexpected);
}

#[tokio::test]
async fn an_index_that_can_not_find_documents_is_refused() {
    let rig = Rig::new("opensearch").await;
    for (mappings, good) in [
        (json!({"properties": {"record_id": {"type": "keyword"}}}), true),
        (
            json!({"dynamic": "strict", "properties": {"record_id": {"type": "text"}}}),
            true,
        ),
        (json!({"dynamic": "true"}), true),
        (json!({"dynamic": "strict"}), false),
        (json!({"dynamic": false}), false),
        (
            json!({"properties": {"record_id": {"type": "keyword", "index": false}}}),
            false,
        ),
        (json!({"properties": {"record_id": {"type": "long"}}}), false),
    ] {
        rig.index(|index| index.mappings = mappings.clone());
        assert_eq!(rig.destination().check().await.is_ok(), good, "{mappings}");
    }
}

#[tokio::test]
async fn the_next_host_is_asked_when_one_is_down() {
    let rig = Rig::new("elasticsearch").await;
    let down = format!("http://127.0.0.1:{}", docmill_testkit::free_port());
    let config = json!({"hosts": [down, rig.double.url()], "index_name": INDEX, "es_api_key": "aWQ6a2V5"});
    destination("elasticsearch", &config).check().await.unwrap();
}

#[test]
fn names_of_several_indices_are_refused() {
    for bad in ["a,b", "*", "_all", "a/b", "..", "<x-{now/d}>", "-a", "a b"] {
        let config = json!({"hosts": ["https://x.test"], "index_name": bad, "es_api_key": "k"});
        let role = docmill_model::connector::ConnectorRole::Destination;
        let settings = super::conformance::settings(role, "elasticsearch", &config);
        let environment = super::conformance::environment();
        let opened = docmill_connectors::open_destination(&environment, "elasticsearch", &settings);
        assert_eq!(error(opened, bad).kind, ErrorKind::Invalid);
    }
}
