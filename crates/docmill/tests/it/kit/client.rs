//! A client that checks every answer it gets: whatever a test does, an error must have the documented
//! shape and give nothing away.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::{PATIENCE, until};

/// A file to upload.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    pub(crate) fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
    data_dir: PathBuf,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("not JSON: {self}"))
    }

    /// The body of an answer that must be 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self}");
        self.json()
    }

    /// The error's body; `status` and `code` must be these.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status, body["code"].as_str()), (status, Some(code)), "{self}");
        body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The parts of `detail` that are the same for every request: what a client could compare.
    pub(crate) fn comparable(&self) -> (u16, Value) {
        let mut body = self.json();
        if let Some(body) = body.as_object_mut() {
            body.remove("request_id");
        }
        (self.status, body)
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.bytes);
        write!(f, "{} {}", self.status, text.chars().take(2_000).collect::<String>())
    }
}

impl Client {
    pub(crate) fn new(base: &str, key: &str, data_dir: &Path) -> Self {
        super::install_cryptography();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build()
            .expect("a client");
        Self {
            http,
            base: base.to_owned(),
            key: key.to_owned(),
            data_dir: data_dir.to_owned(),
        }
    }

    /// The same client with a connection pool of its own.
    pub(crate) fn on_new_connection(&self) -> Self {
        Self::new(&self.base, &self.key, &self.data_dir)
    }

    /// A request without credentials.
    pub(crate) fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.anonymous(method, path).header("service-api-key", &self.key)
    }

    /// Sends, reads to the end and checks what holds for every answer.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        match self.try_send(request).await {
            Ok(answer) => answer,
            Err(error) => panic!("no answer: {error:?}"),
        }
    }

    /// The same where the server may die at any moment.
    pub(crate) async fn try_send(&self, request: RequestBuilder) -> reqwest::Result<Answer> {
        let response = request.send().await?;
        let answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            bytes: response.bytes().await?.to_vec(),
        };
        self.check(&answer);
        Ok(answer)
    }

    fn check(&self, answer: &Answer) {
        assert!(!(300..400).contains(&answer.status), "a redirect: {answer}");
        let request_id = answer.header("x-request-id").expect("a request id");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        if answer.status < 400 || answer.bytes.is_empty() || answer.status == 503 && is_readiness(&answer.bytes) {
            return;
        }
        check_error(answer, request_id, &self.data_dir);
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.send(self.request(Method::POST, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Sends a JSON body.
    pub(crate) async fn send_json(&self, method: Method, path: &str, body: &Value) -> Answer {
        self.send_text(method, path, body.to_string()).await
    }

    /// Sends a body that says it is JSON.
    pub(crate) async fn send_text(&self, method: Method, path: &str, body: String) -> Answer {
        let request = self.request(method, path).header(CONTENT_TYPE, "application/json");
        self.send(request.body(body)).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Answer {
        self.send_json(Method::POST, path, body).await
    }

    pub(crate) async fn put_json(&self, path: &str, body: &Value) -> Answer {
        self.send_json(Method::PUT, path, body).await
    }

    /// Creates a workflow that must be accepted; its record.
    pub(crate) async fn workflow(&self, body: &Value) -> Value {
        self.post_json("/api/v1/workflows/", body).await.ok()
    }

    /// Creates a local source or destination that must be accepted; its id.
    pub(crate) async fn local(&self, role: &str, folder: &Path) -> String {
        let body = serde_json::json!({
            "name": format!("a {role}"), "type": "local", "config": {"path": folder},
        });
        let connector = self.post_json(&format!("/{role}s"), &body).await.ok();
        text(&connector["id"]).to_owned()
    }

    /// Runs a workflow that takes no files; the job's record when it has ended.
    pub(crate) async fn run_workflow(&self, workflow: &str) -> Value {
        let answer = self.post(&format!("/workflows/{workflow}/run")).await;
        assert_eq!(answer.status, 202, "{answer}");
        self.ended(text(&answer.json()["id"])).await
    }

    /// The request that runs a workflow with files.
    pub(crate) fn run_request(&self, workflow: &str, files: &[File]) -> RequestBuilder {
        let mut form = Form::new();
        for file in files {
            form = form.part(
                "input_files[]",
                Part::bytes(file.bytes.clone()).file_name(file.name.clone()),
            );
        }
        self.request(Method::POST, &format!("/workflows/{workflow}/run"))
            .multipart(form)
    }

    /// The request that creates a job.
    pub(crate) fn create_request(&self, request_data: &Value, files: &[File]) -> RequestBuilder {
        let mut form = Form::new().text("request_data", request_data.to_string());
        for file in files {
            form = form.part(
                "input_files",
                Part::bytes(file.bytes.clone()).file_name(file.name.clone()),
            );
        }
        self.request(Method::POST, "/api/v1/jobs/").multipart(form)
    }

    pub(crate) async fn create(&self, request_data: &Value, files: &[File]) -> Answer {
        self.send(self.create_request(request_data, files)).await
    }

    /// Creates a job that must be accepted; its record.
    #[track_caller]
    pub(crate) fn created(&self, request_data: &Value, files: &[File]) -> impl Future<Output = Value> {
        let answer = self.create(request_data, files);
        async move {
            let job = answer.await.ok();
            let status = job["status"].as_str().unwrap_or_default().to_owned();
            assert!(["SCHEDULED", "IN_PROGRESS"].contains(&status.as_str()), "{job}");
            job
        }
    }

    /// Creates a job and waits for its end; its record.
    pub(crate) async fn run(&self, request_data: &Value, files: &[File]) -> Value {
        let job = self.created(request_data, files).await;
        self.ended(text(&job["id"])).await
    }

    /// Waits for a job's end; its record.
    pub(crate) async fn ended(&self, job: &str) -> Value {
        until(&format!("the end of job {job}"), async || {
            let record = self.get(&format!("/jobs/{job}")).await.ok();
            let open = ["SCHEDULED", "IN_PROGRESS"].contains(&text(&record["status"]));
            if open {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            (!open).then_some(record)
        })
        .await
    }

    pub(crate) async fn details(&self, job: &str) -> Value {
        self.get(&format!("/jobs/{job}/details")).await.ok()
    }

    pub(crate) async fn failed_files(&self, job: &str) -> Value {
        self.get(&format!("/jobs/{job}/failed-files")).await.ok()
    }

    /// The elements of a file that must have some output.
    pub(crate) async fn elements(&self, job: &str, file: &str) -> Vec<Value> {
        let answer = self.get(&format!("/jobs/{job}/download?file_id={file}")).await;
        match answer.ok() {
            Value::Array(elements) => elements,
            other => panic!("not an array: {other}"),
        }
    }

    /// The text of all elements of a file, one line each.
    pub(crate) async fn text(&self, job: &str, file: &str) -> String {
        let elements = self.elements(job, file).await;
        elements
            .iter()
            .map(|element| text(&element["text"]))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

/// Ids of a job's files.
pub(crate) fn file_ids(job: &Value) -> Vec<String> {
    let ids = job["input_file_ids"].as_array().expect("input_file_ids");
    ids.iter().map(|id| text(id).to_owned()).collect()
}

fn is_readiness(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Value>(bytes).is_ok_and(|body| body["status"] == "not ready")
}

/// The documented shape of an error, and nothing of the server's inside.
pub(crate) fn check_error(answer: &Answer, request_id: &str, data_dir: &Path) {
    let content_type = answer
        .headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    assert!(content_type.starts_with("application/json"), "{content_type}: {answer}");
    let body = answer.json();
    match &body["detail"] {
        Value::String(detail) => assert!(!detail.is_empty(), "{answer}"),
        Value::Array(problems) => {
            assert!(!problems.is_empty(), "{answer}");
            for problem in problems {
                let loc = problem["loc"].as_array().unwrap_or_else(|| panic!("no loc: {answer}"));
                assert!(loc.iter().all(|part| part.is_string() || part.is_u64()), "{answer}");
                assert!(problem["msg"].is_string() && problem["type"].is_string(), "{answer}");
            }
        }
        _ => panic!("detail is neither text nor a list: {answer}"),
    }
    assert_eq!(body["request_id"], request_id, "{answer}");
    assert!(body["code"].as_str().is_some_and(|code| !code.is_empty()), "{answer}");
    assert_eq!(answer.status >= 500, body["retryable"].is_boolean(), "{answer}");
    let said = String::from_utf8_lossy(&answer.bytes).to_lowercase();
    let home = data_dir.to_string_lossy().to_lowercase();
    for giveaway in [
        home.as_str(),
        "/root/",
        "/src/",
        ".rs:",
        "sqlite",
        "sqlx",
        "select ",
        "insert ",
        "panicked",
        "backtrace",
        "os error",
    ] {
        assert!(!said.contains(giveaway), "`{giveaway}` in an answer: {answer}");
    }
}
