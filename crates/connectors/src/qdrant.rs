//! Qdrant: elements as points of a collection.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::HeaderName;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use url::Url;

use crate::config::{Field, FieldKind};
use crate::http::{Http, JSON, Request};
use crate::rows::{Row, batches, rows};
use crate::settings::{number, text};
use crate::{ConnectorError, ConnectorType, Destination, Document, Environment, ErrorKind, Opener, Result};

/// Bytes of points sent with one request.
const BATCH_BYTES: usize = 8 << 20;
/// Where Qdrant answers when the address names no port.
const PORT: u16 = 6333;

/// The type.
pub(crate) const TYPE: ConnectorType = ConnectorType {
    name: "qdrant-cloud",
    description: "A collection of a Qdrant server or cloud.",
    source: None,
    destination: Some(Opener {
        fields: &[
            Field::new(
                "url",
                FieldKind::Text,
                "Address of the cluster; port 6333 unless it names one.",
            )
            .required()
            .directs(),
            Field::new("api_key", FieldKind::Secret, "API key that may write.").required(),
            Field::new("collection_name", FieldKind::Text, "Collection, which must exist.").required(),
            Field::new(
                "batch_size",
                FieldKind::Integer(Some(50), 1, 10_000),
                "Elements written with one request.",
            ),
        ],
        open,
    }),
};

struct QdrantDestination {
    http: Http,
    collection: String,
    batch: usize,
    ready: OnceCell<Vectors>,
}

/// What vectors a collection's points have.
#[derive(Clone, Debug, PartialEq)]
enum Vectors {
    None,
    /// One without a name.
    Plain,
    Named(String),
}

fn open(environment: &Environment, config: &Map<String, Value>) -> Result<Arc<dyn Destination>> {
    let mut url = text(config, "url");
    if !url.contains("://") {
        url.insert_str(0, "https://");
    }
    if let Ok(mut parsed) = Url::parse(&url) {
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        // The usual port of the scheme can be meant only if it is written.
        let written = authority.is_some_and(|authority| authority.ends_with(":443") || authority.ends_with(":80"));
        if parsed.port().is_none() && !written && parsed.set_port(Some(PORT)).is_ok() {
            url = parsed.into();
        }
    }
    let header = (HeaderName::from_static("api-key"), text(config, "api_key"));
    Ok(Arc::new(QdrantDestination {
        http: Http::new(environment, "Qdrant", &[url], Some(header))?,
        collection: text(config, "collection_name"),
        batch: number(config, "batch_size").max(1),
        ready: OnceCell::new(),
    }))
}

impl QdrantDestination {
    async fn call(&self, what: &str, method: Method, end: &[&str], body: Option<Value>) -> Result<Value> {
        let path = [&["collections", self.collection.as_str()], end].concat();
        let request = Request {
            query: if method == Method::GET {
                &[]
            } else {
                &[("wait", "true")]
            },
            method,
            path: &path,
            body: body.map(|body| (JSON, body.to_string().into())),
        };
        let answer = self.http.send(&request).await?;
        if answer.status == StatusCode::NOT_FOUND {
            let message = format!("Qdrant has no collection `{}`", self.collection);
            return Err(ConnectorError::new(ErrorKind::Missing, message));
        }
        if !answer.status.is_success() {
            return Err(self.http.refusal(what, &answer));
        }
        self.http.json(what, &answer)
    }

    /// What the collection holds.
    async fn vectors(&self) -> Result<Vectors> {
        let told = self.call("look up the collection", Method::GET, &[], None).await?;
        vectors(&told["result"]["config"]["params"]["vectors"]).map_err(|names| {
            let message = format!(
                "collection `{}` has the vectors {names}; docmill fills one vector, so it needs a collection with one",
                self.collection
            );
            ConnectorError::new(ErrorKind::Invalid, message)
        })
    }

    /// What the collection holds, after an index was made for finding documents: clouds refuse to filter
    /// by what has none.
    async fn ready(&self) -> Result<&Vectors> {
        let make = async || {
            let vectors = self.vectors().await?;
            let body = json!({"field_name": "record_id", "field_schema": "keyword"});
            self.call("index record_id", Method::PUT, &["index"], Some(body))
                .await?;
            Ok(vectors)
        };
        self.ready.get_or_try_init(make).await
    }

    async fn remove(&self, record_id: &str, kept: &[String]) -> Result<()> {
        let mut filter = json!({"must": [{"key": "record_id", "match": {"value": record_id}}]});
        if !kept.is_empty() {
            filter["must_not"] = json!([{ "has_id": kept }]);
        }
        let body = json!({ "filter": filter });
        self.call("remove points", Method::POST, &["points", "delete"], Some(body))
            .await?;
        Ok(())
    }
}

/// What the settings of a collection say of its vectors.
///
/// # Errors
/// The names of several.
fn vectors(params: &Value) -> std::result::Result<Vectors, String> {
    let Some(params) = params.as_object() else {
        return Ok(Vectors::None);
    };
    if params.get("size").is_some_and(Value::is_number) {
        return Ok(Vectors::Plain);
    }
    let mut names = params.keys();
    match (names.next(), names.next()) {
        (None, _) => Ok(Vectors::None),
        (Some(name), None) => Ok(Vectors::Named(name.clone())),
        _ => Err(params.keys().cloned().collect::<Vec<_>>().join(", ")),
    }
}

/// An element as a point.
fn point(record_id: &str, row: Row, vectors: &Vectors) -> Result<String> {
    let mut payload = row.element;
    let embeddings = payload.remove("embeddings").filter(Value::is_array);
    let vector = match (vectors, embeddings) {
        (Vectors::None, _) => json!({}),
        (Vectors::Plain, Some(embeddings)) => embeddings,
        (Vectors::Named(name), Some(embeddings)) => Value::Object(Map::from_iter([(name.clone(), embeddings)])),
        (_, None) => {
            let message = "the elements have no embeddings, which the vector of this collection needs: write them to \
                           a collection without vectors";
            return Err(ConnectorError::new(ErrorKind::Invalid, message));
        }
    };
    payload.insert("record_id".into(), record_id.into());
    Ok(json!({"id": row.id, "vector": vector, "payload": payload}).to_string())
}

#[async_trait]
impl Destination for QdrantDestination {
    async fn check(&self) -> Result<()> {
        self.vectors().await?;
        // Removing what is not there needs the right to write and leaves nothing behind.
        let body = json!({"points": [uuid::Uuid::new_v4()]});
        self.call(
            "write to the collection",
            Method::POST,
            &["points", "delete"],
            Some(body),
        )
        .await?;
        Ok(())
    }

    async fn put(&self, document: &Document) -> Result<()> {
        let rows = rows(document)?;
        let vectors = self.ready().await?;
        let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
        let points = rows.into_iter().map(|row| point(&document.record_id, row, vectors));
        let points = points.collect::<Result<Vec<_>>>()?;
        for batch in batches(points, self.batch, BATCH_BYTES, String::len) {
            let request = Request {
                method: Method::PUT,
                path: &["collections", &self.collection, "points"],
                query: &[("wait", "true")],
                body: Some((JSON, format!("{{\"points\":[{}]}}", batch.join(",")).into())),
            };
            let answer = self.http.send(&request).await?;
            if !answer.status.is_success() {
                return Err(self.http.refusal("write points", &answer));
            }
        }
        self.remove(&document.record_id, &ids).await
    }

    async fn delete(&self, record_id: &str, _name: &str) -> Result<()> {
        self.ready().await?;
        self.remove(record_id, &[]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_a_collection_are_told_apart() {
        assert_eq!(vectors(&json!({"size": 3, "distance": "Dot"})), Ok(Vectors::Plain));
        assert_eq!(
            vectors(&json!({"text": {"size": 3}})),
            Ok(Vectors::Named("text".into()))
        );
        assert_eq!(vectors(&json!({})), Ok(Vectors::None));
        assert_eq!(vectors(&Value::Null), Ok(Vectors::None));
        assert_eq!(vectors(&json!({"a": {}, "b": {}})), Err("a, b".into()));
    }
}
