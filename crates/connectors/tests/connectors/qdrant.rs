//! Qdrant, against a double that knows the part of its interface that is used and refuses all else. It is
//! as strict as the cloud: filters by what has no index are refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::response::Response;
use docmill_connectors::{Destination, Document, ErrorKind};
use serde_json::{Value, json};

use super::conformance::destinations::{self, DestinationRig, document};
use super::conformance::{destination, error};
use super::double::{Asked, Double, Service, answer};

struct Qdrant {
    vectors: Value,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    indexed: bool,
    points: BTreeMap<String, Value>,
}

fn refuse(status: u16, reason: &str) -> Response {
    answer(status, &json!({"status": {"error": reason}, "time": 0.0}).to_string())
}

fn fine(result: Value) -> Response {
    answer(
        200,
        &json!({"result": result, "status": "ok", "time": 0.001}).to_string(),
    )
}

fn uuid(value: &Value) -> Option<&str> {
    value.as_str().filter(|id| uuid::Uuid::parse_str(id).is_ok())
}

impl Service for Qdrant {
    fn handle(&self, asked: &Asked) -> Response {
        if asked.header("api-key") != "key" {
            return refuse(403, "forbidden: invalid api-key");
        }
        let Some(rest) = asked.path.strip_prefix("/collections/elements") else {
            return refuse(404, "Not found: Collection doesn't exist!");
        };
        let mut state = self.state.lock().unwrap();
        match (asked.method.as_str(), rest) {
            ("GET", "") if asked.query.is_empty() => {
                fine(json!({"status": "green", "config": {"params": {"vectors": self.vectors}}}))
            }
            (method, rest) if asked.asks(&[("wait", "true")]) => {
                let body = match asked.json() {
                    Ok(body) => body,
                    Err(answer) => return *answer,
                };
                let done = match (method, rest) {
                    ("PUT", "/index") => index(&mut state, &body),
                    ("PUT", "/points") => self.upsert(&mut state, &body),
                    ("POST", "/points/delete") => delete(&mut state, &body),
                    _ => return refuse(404, ""),
                };
                match done {
                    Ok(()) => fine(json!({"operation_id": 1, "status": "completed"})),
                    Err(reason) => refuse(400, &reason),
                }
            }
            _ => refuse(404, ""),
        }
    }
}

fn index(state: &mut State, body: &Value) -> Result<(), String> {
    if *body != json!({"field_name": "record_id", "field_schema": "keyword"}) {
        return Err("Format error in JSON body".into());
    }
    state.indexed = true;
    Ok(())
}

impl Qdrant {
    fn upsert(&self, state: &mut State, body: &Value) -> Result<(), String> {
        let points = body["points"].as_array().filter(|points| !points.is_empty());
        for point in points.ok_or("Empty update request")? {
            let id = uuid(&point["id"]).ok_or("is not a valid point ID")?;
            let vector = match self.vectors["text"]["size"].as_u64() {
                Some(_) => &point["vector"]["text"],
                None => &point["vector"],
            };
            let size = self.vectors["size"].as_u64().or(self.vectors["text"]["size"].as_u64());
            let numbers = vector
                .as_array()
                .map(|vector| vector.iter().filter(|number| number.is_number()).count());
            if size != numbers.map(|count| count as u64) {
                return Err(format!(
                    "Wrong input: Vector dimension error: expected dim: {size:?}, got {numbers:?}"
                ));
            }
            if !point["payload"].is_object() || point.as_object().map(serde_json::Map::len) != Some(3) {
                return Err("Format error in JSON body".into());
            }
            state.points.insert(id.to_owned(), point.clone());
        }
        Ok(())
    }
}

fn delete(state: &mut State, body: &Value) -> Result<(), String> {
    if let Some(ids) = body["points"].as_array() {
        for id in ids {
            state.points.remove(uuid(id).ok_or("is not a valid point ID")?);
        }
        return Ok(());
    }
    let record_id = body["filter"]["must"][0]["match"]["value"]
        .as_str()
        .ok_or("no filter")?;
    let kept = &body["filter"]["must_not"][0]["has_id"];
    let mut expected = json!({"filter": {"must": [{"key": "record_id", "match": {"value": record_id}}]}});
    if !kept.is_null() {
        expected["filter"]["must_not"] = json!([{ "has_id": kept }]);
    }
    if *body != expected {
        return Err("Format error in JSON body".into());
    }
    if !state.indexed {
        return Err("Bad request: Index required but not found for \"record_id\"".into());
    }
    let kept: Vec<&str> = kept.as_array().into_iter().flatten().filter_map(uuid).collect();
    state
        .points
        .retain(|id, point| point["payload"]["record_id"] != record_id || kept.contains(&id.as_str()));
    Ok(())
}

struct Rig(Double<Qdrant>);

impl Rig {
    async fn new(vectors: Value) -> Self {
        let state = Mutex::default();
        Self(Double::start(Qdrant { vectors, state }).await)
    }

    fn open(&self, collection: &str, key: &str) -> Arc<dyn Destination> {
        let config = json!({"url": self.0.url(), "api_key": key, "collection_name": collection});
        destination("qdrant-cloud", &config)
    }
}

#[async_trait]
impl DestinationRig for Rig {
    fn destination(&self) -> Arc<dyn Destination> {
        self.open("elements", "key")
    }

    fn wrong_credentials(&self) -> Option<Arc<dyn Destination>> {
        Some(self.open("elements", "wrong"))
    }

    fn absent(&self) -> Option<Arc<dyn Destination>> {
        Some(self.open("absent", "key"))
    }

    async fn texts(&self, document: &Document) -> Vec<String> {
        let state = self.0.service.state.lock().unwrap();
        let payloads = state.points.values().map(|point| &point["payload"]);
        let of_it = payloads.filter(|payload| payload["record_id"] == *document.record_id);
        of_it
            .map(|payload| payload["text"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn total(&self) -> usize {
        self.0.service.state.lock().unwrap().points.len()
    }

    async fn power(&self, on: bool) -> bool {
        self.0.power(on).await;
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn qdrant_conforms() {
    destinations::conforms(&Rig::new(json!({"size": 3, "distance": "Cosine"})).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn qdrant_conforms_with_a_named_vector() {
    destinations::conforms(&Rig::new(json!({"text": {"size": 3, "distance": "Cosine"}})).await).await;
}

#[tokio::test]
async fn elements_must_fit_the_collection() {
    let rig = Rig::new(json!({"size": 3, "distance": "Dot"})).await;
    let mut one = document(1, "a", &["one".into()]);
    one.elements = r#"[{"element_id": "a", "text": "one"}]"#.into();
    let missing = error(rig.destination().put(&one).await, "no embeddings");
    assert!(
        missing.kind == ErrorKind::Invalid && missing.message.contains("embed node"),
        "{missing}"
    );
    one.elements = r#"[{"element_id": "a", "text": "one", "embeddings": [1, 2]}]"#.into();
    let wrong = error(rig.destination().put(&one).await, "a vector that is too short");
    assert!(
        wrong.kind == ErrorKind::Invalid && wrong.message.contains("dimension"),
        "{wrong}"
    );
    let several = Rig::new(json!({"a": {"size": 3}, "b": {"size": 3}})).await;
    let several = error(several.destination().check().await, "several vectors");
    assert!(
        several.kind == ErrorKind::Invalid && several.message.contains("a, b"),
        "{several}"
    );
}
