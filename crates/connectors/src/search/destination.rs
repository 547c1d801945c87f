//! Elements as documents of an index.

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::http::{Answer, Http, JSON, Request};
use crate::rows::{Row, batches, rows};
use crate::{ConnectorError, Destination, Document, ErrorKind, Result};

/// Elements sent with one request, and their bytes.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 5 << 20;
/// Times that elements are sent again which the cluster was too busy for.
const TRIES: u32 = 4;

const NDJSON: &str = "application/x-ndjson";

pub(super) struct SearchDestination {
    http: Http,
    index: String,
    /// Whether the index was seen: writing to one that isn't there would make it, with guessed types.
    seen: tokio::sync::OnceCell<()>,
}

/// An element as it is sent: what to do, and the document.
struct Line {
    action: String,
    source: String,
}

impl SearchDestination {
    pub(super) fn new(http: Http, index: String) -> Self {
        Self {
            http,
            index,
            seen: tokio::sync::OnceCell::new(),
        }
    }

    async fn call(&self, method: Method, end: &str, query: &[(&str, &str)], body: Option<Value>) -> Result<Answer> {
        let path = [self.index.as_str(), end];
        let request = Request {
            method,
            path: if end.is_empty() { &path[..1] } else { &path },
            query,
            body: body.map(|body| (JSON, body.to_string().into())),
        };
        self.http.send(&request).await
    }

    async fn exists(&self) -> Result<()> {
        let answer = self.call(Method::HEAD, "", &[], None).await?;
        match answer.status {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND => Err(ConnectorError::new(
                ErrorKind::Missing,
                format!(
                    "there is no index `{0}`; make it with: PUT /{0} {{\"mappings\": {{\"properties\": {{\"record_id\": \
                     {{\"type\": \"keyword\"}}, \"element_id\": {{\"type\": \"keyword\"}}}}}}}}",
                    self.index
                ),
            )),
            _ => Err(self.http.refusal("look up the index", &answer)),
        }
    }

    async fn seen(&self) -> Result<()> {
        self.seen.get_or_try_init(|| self.exists()).await?;
        Ok(())
    }

    /// Documents are removed by their `record_id`, which must therefore be searchable as it is.
    async fn mapped(&self) -> Result<()> {
        const WHAT: &str = "read the index's mapping";
        let filter = [(
            "filter_path",
            "*.mappings.dynamic,*.mappings.properties.record_id.type,*.mappings.properties.record_id.index",
        )];
        let answer = self.call(Method::GET, "_mapping", &filter, None).await?;
        if !answer.status.is_success() {
            return Err(self.http.refusal(WHAT, &answer));
        }
        let answer = self.http.json(WHAT, &answer)?;
        for index in answer.as_object().into_iter().flat_map(|indices| indices.values()) {
            let field = &index["mappings"]["properties"]["record_id"];
            let dynamic = !matches!(&index["mappings"]["dynamic"], Value::String(word) if word == "strict" || word == "false")
                && index["mappings"]["dynamic"] != false;
            let searchable = match field["type"].as_str() {
                Some(kind) => {
                    matches!(kind, "keyword" | "text") && field["index"] != false && field["index"] != "false"
                }
                None => dynamic,
            };
            if !searchable {
                let message = format!(
                    "index `{0}` can't be searched by record_id; map it with: PUT /{0}/_mapping {{\"properties\": \
                     {{\"record_id\": {{\"type\": \"keyword\"}}}}}}",
                    self.index
                );
                return Err(ConnectorError::new(ErrorKind::Invalid, message));
            }
        }
        Ok(())
    }

    /// Sends lines; those the cluster was too busy for again.
    async fn bulk(&self, mut lines: Vec<Line>) -> Result<()> {
        for tries in 1.. {
            let states = self.bulk_once(&lines).await?;
            let all = lines.len();
            let mut refused = states
                .iter()
                .filter(|state| !matches!(state.status, 200 | 201 | 404 | 429 | 503));
            if let Some(first) = refused.next() {
                let kind = if first.status == 403 {
                    ErrorKind::Unauthorized
                } else {
                    ErrorKind::Invalid
                };
                let count = 1 + refused.count();
                let message = format!(
                    "the index refuses {count} of {all} elements, the first because {}",
                    first.reason
                );
                return Err(ConnectorError::new(kind, message));
            }
            let busy = states.iter().map(|state| matches!(state.status, 429 | 503));
            lines = lines
                .into_iter()
                .zip(busy)
                .filter_map(|(line, busy)| busy.then_some(line))
                .collect();
            if lines.is_empty() {
                break;
            }
            if tries >= TRIES {
                let message = format!("the cluster is too busy for {} of {all} elements", lines.len());
                return Err(ConnectorError::new(ErrorKind::Throttled, message));
            }
            tokio::time::sleep(std::time::Duration::from_millis(250) * 2_u32.saturating_pow(tries)).await;
        }
        Ok(())
    }

    /// What became of each line.
    async fn bulk_once(&self, lines: &[Line]) -> Result<Vec<State>> {
        const WHAT: &str = "write to the index";
        let mut body = String::new();
        for line in lines {
            for part in [&line.action, &line.source] {
                if !part.is_empty() {
                    body.push_str(part);
                    body.push('\n');
                }
            }
        }
        let request = Request {
            method: Method::POST,
            path: &[&self.index, "_bulk"],
            query: &[("filter_path", "items.*.status,items.*.error.type,items.*.error.reason")],
            body: Some((NDJSON, Bytes::from(body))),
        };
        let answer = self.http.send(&request).await?;
        if !answer.status.is_success() {
            return Err(self.http.refusal(WHAT, &answer));
        }
        let answer = self.http.json(WHAT, &answer)?;
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let states: Option<Vec<_>> = items.iter().map(State::read).collect();
        states.filter(|states| states.len() == lines.len()).ok_or_else(|| {
            let message = "the answer to a bulk request doesn't tell what became of each element";
            ConnectorError::new(ErrorKind::Unexpected, message)
        })
    }

    /// Removes a document's elements but those with the ids `kept`.
    async fn remove(&self, record_id: &str, kept: &[String]) -> Result<()> {
        const WHAT: &str = "remove a document's old elements";
        // What was written a moment ago can't be found before this.
        let answer = self.call(Method::POST, "_refresh", &[], None).await?;
        if !answer.status.is_success() {
            return Err(self.http.refusal("refresh the index", &answer));
        }
        let mut query = json!({"bool": {"filter": [{"term": {"record_id": {"value": record_id}}}]}});
        if !kept.is_empty() {
            query["bool"]["must_not"] = json!([{"ids": {"values": kept}}]);
        }
        let body = json!({ "query": query });
        let answer = self.call(Method::POST, "_delete_by_query", &[], Some(body)).await?;
        if !answer.status.is_success() {
            return Err(self.http.refusal(WHAT, &answer));
        }
        let told = self.http.json(WHAT, &answer)?;
        let failures = told["failures"].as_array().map_or(0, Vec::len);
        if told["timed_out"] == true || failures > 0 {
            let message = format!("cannot {WHAT}: {failures} could not be removed, or it took too long");
            return Err(ConnectorError::new(ErrorKind::Unavailable, message));
        }
        Ok(())
    }
}

/// What became of one line of a bulk request.
struct State {
    status: u64,
    reason: String,
}

impl State {
    fn read(item: &Value) -> Option<Self> {
        let told = item.as_object()?.values().next()?;
        let reason = format!(
            "{}: {}",
            told["error"]["type"].as_str().unwrap_or("unknown"),
            told["error"]["reason"].as_str().unwrap_or("no reason is given")
        );
        Some(Self {
            status: told["status"].as_u64()?,
            reason: reason.chars().take(300).collect(),
        })
    }
}

fn line(record_id: &str, row: Row) -> Line {
    let mut source = row.element;
    source.insert("record_id".into(), record_id.into());
    Line {
        action: json!({"index": {"_id": row.id}}).to_string(),
        source: Value::Object(source).to_string(),
    }
}

#[async_trait]
impl Destination for SearchDestination {
    async fn check(&self) -> Result<()> {
        self.exists().await?;
        self.mapped().await?;
        // Removing what is not there needs the right to write and leaves nothing behind.
        let action = json!({"delete": {"_id": format!("docmill-check-{}", uuid::Uuid::new_v4())}}).to_string();
        self.bulk(vec![Line {
            action,
            source: String::new(),
        }])
        .await
    }

    async fn put(&self, document: &Document) -> Result<()> {
        let rows = rows(document)?;
        self.seen().await?;
        let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
        let lines = rows.into_iter().map(|row| line(&document.record_id, row)).collect();
        for batch in batches(lines, BATCH, BATCH_BYTES, |line: &Line| line.source.len()) {
            self.bulk(batch).await?;
        }
        self.remove(&document.record_id, &ids).await
    }

    async fn delete(&self, record_id: &str, _name: &str) -> Result<()> {
        self.seen().await?;
        self.remove(record_id, &[]).await
    }
}
