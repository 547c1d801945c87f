//! A real server on a free port with an empty data directory, and the few calls the measurements need.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use tempfile::TempDir;

use crate::Failure;

const KEY: &str = "bench-key-0123456789";

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    base: String,
    client: Client,
    _data: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The release binary, built first if need be.
pub(crate) fn binary() -> Result<PathBuf, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let built = Command::new("cargo")
        .args(["build", "--release", "-p", "docmill"])
        .current_dir(root)
        .status()?;
    if !built.success() {
        return Err("the build failed".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/docmill"))
}

impl Server {
    /// Starts a server with the limits on creation and running jobs lifted, whose connectors may reach this
    /// machine and the directory `root`.
    pub(crate) fn start(binary: &Path, root: &Path) -> Result<Self, Failure> {
        Self::start_with(binary, root, &[])
    }

    /// The same with more variables.
    pub(crate) fn start_with(binary: &Path, root: &Path, variables: &[(&str, &str)]) -> Result<Self, Failure> {
        // Fails when it was done before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let data = tempfile::tempdir()?;
        let mut child = Command::new(binary)
            .arg("serve")
            .arg("--data-dir")
            .arg(data.path())
            .args(["--listen", "127.0.0.1:0"])
            .env("DOCMILL_BOOTSTRAP_API_KEY", KEY)
            .env("DOCMILL_LIMITS__CREATE_GAP_MS", "0")
            .env("DOCMILL_LIMITS__MAX_RUNNING_LOCAL_JOBS", "0")
            .env("DOCMILL_LOG__LEVEL", "warn")
            .env("DOCMILL_EGRESS__DANGER_ALLOW_CIDRS", "127.0.0.0/8")
            .env("DOCMILL_EGRESS__ALLOW_HTTP", "true")
            .env("DOCMILL_CONNECTORS__LOCAL_ROOTS", root)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let base = loop {
            let line = lines.next().ok_or("the server ended at once")??;
            if let Some(base) = line.strip_prefix("listening on ") {
                break base.to_owned();
            }
        };
        Ok(Self {
            child,
            base,
            client: Client::new(),
            _data: data,
        })
    }

    /// Creates a job; its id.
    pub(crate) async fn create(&self, files: &[(String, Vec<u8>)], nodes: &Value) -> Result<String, Failure> {
        let mut form = Form::new().text("request_data", serde_json::json!({ "job_nodes": nodes }).to_string());
        for (name, bytes) in files {
            form = form.part("input_files", Part::bytes(bytes.clone()).file_name(name.clone()));
        }
        let answer = self
            .client
            .post(format!("{}/jobs/", self.base))
            .header("service-api-key", KEY)
            .multipart(form)
            .send()
            .await?;
        let job: Value = answer.error_for_status()?.json().await?;
        Ok(job["id"].as_str().ok_or("no id")?.to_owned())
    }

    /// Waits until a job has ended; an error unless it is COMPLETED.
    pub(crate) async fn wait(&self, job: &str, pause: Duration) -> Result<(), Failure> {
        loop {
            let answer = self
                .client
                .get(format!("{}/jobs/{job}", self.base))
                .header("service-api-key", KEY)
                .send()
                .await?;
            let job: Value = answer.error_for_status()?.json().await?;
            match job["status"].as_str() {
                Some("COMPLETED") => return Ok(()),
                Some("SCHEDULED" | "IN_PROGRESS") => tokio::time::sleep(pause).await,
                _ => return Err(format!("a job ended badly: {job}").into()),
            }
        }
    }

    /// The answer to a GET.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        let request = self.client.get(format!("{}{path}", self.base));
        read(request).await
    }

    /// The answer to a POST.
    pub(crate) async fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let request = self.client.post(format!("{}{path}", self.base));
        read(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// Resident memory of the server process, in bytes.
    pub(crate) fn resident(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .ok_or("no VmRSS")?;
        let kib: u64 = line.split_whitespace().nth(1).ok_or("no value")?.parse()?;
        Ok(kib * 1024)
    }
}

async fn read(request: reqwest::RequestBuilder) -> Result<Value, Failure> {
    let answer = request.header("service-api-key", KEY).send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    if status.is_success() {
        Ok(serde_json::from_str(&text)?)
    } else {
        Err(format!("{status}: {text}").into())
    }
}
