//! Starts, stops and kills the real program.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Client, PATIENCE, until};

/// The key every test server accepts.
pub(crate) const KEY: &str = "dm_test-key-of-the-default-workspace";

/// A running server. Dropped, it is killed, and its directory goes with the last server on it.
pub(crate) struct Server {
    process: Child,
    home: Arc<TempDir>,
    settings: Vec<(String, String)>,
    base: String,
    log: PathBuf,
}

impl Server {
    /// A server on an empty directory with the gap between creations switched off.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// The same with settings: `("LIMITS__MAX_FILE_BYTES", "1000")`.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        let mut all = vec![("LIMITS__CREATE_GAP_MS".to_owned(), "0".to_owned())];
        for (name, value) in settings {
            all.retain(|(other, _)| other != name);
            all.push(((*name).to_owned(), (*value).to_owned()));
        }
        let home = Arc::new(tempfile::tempdir().expect("a temporary directory"));
        Self::on(home, all).await
    }

    async fn on(home: Arc<TempDir>, settings: Vec<(String, String)>) -> Self {
        let run = fs::read_dir(home.path()).expect("the directory").count();
        let out = home.path().join(format!("stdout-{run}"));
        let log = home.path().join(format!("stderr-{run}"));
        let mut process = program(home.path(), &settings)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(File::create(&out).expect("a file for stdout"))
            .stderr(File::create(&log).expect("a file for stderr"))
            .spawn()
            .expect("the program starts");
        let base = until("the server to listen", async || {
            if let Some(status) = process.try_wait().expect("the process can be asked") {
                panic!(
                    "the server ended with {status}: {}",
                    fs::read_to_string(&log).unwrap_or_default()
                );
            }
            let out = fs::read_to_string(&out).ok()?;
            let line = out.lines().find(|line| line.starts_with("listening on "))?;
            out.ends_with('\n').then(|| line["listening on ".len()..].to_owned())
        })
        .await;
        Self {
            process,
            home,
            settings,
            base,
            log,
        }
    }

    /// Starts a server again on the directory of one that has ended.
    pub(crate) async fn restart(mut self) -> Self {
        let _ = self.process.kill();
        let _ = self.process.wait();
        Self::on(self.home.clone(), self.settings.clone()).await
    }

    /// The same with one setting changed.
    pub(crate) async fn restart_with(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(other, _)| other != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self.restart().await
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// A client with the server's key.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.base, KEY, &self.data_dir())
    }

    /// A client with the key of another workspace, which is made.
    pub(crate) fn stranger(&self) -> Client {
        self.create_workspace("strangers");
        Client::new(&self.base, &self.create_key("strangers", "stranger"), &self.data_dir())
    }

    /// Makes a workspace in an account of its own.
    pub(crate) fn create_workspace(&self, name: &str) {
        self.docmill(&["accounts", "create", name]);
        self.docmill(&["workspaces", "create", name, "--account", name]);
    }

    /// Makes a key.
    pub(crate) fn create_key(&self, workspace: &str, name: &str) -> String {
        let out = self.docmill(&["keys", "create", "--name", name, "--workspace", workspace]);
        out.split_whitespace()
            .find(|word| word.starts_with("dm_"))
            .unwrap_or_else(|| panic!("no key in {out:?}"))
            .to_owned()
    }

    /// Runs another command of the program on the server's data; what it printed.
    pub(crate) fn docmill(&self, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = program(self.home.path(), &self.settings)
            .args(args)
            .output()
            .expect("the program starts");
        assert!(
            status.success(),
            "docmill {args:?}: {}",
            String::from_utf8_lossy(&stderr)
        );
        String::from_utf8(stdout).expect("text")
    }

    /// What `docmill doctor` says, whether all is well or not.
    #[cfg_attr(feature = "local-models", allow(dead_code, reason = "for builds without"))]
    pub(crate) fn diagnosis(&self) -> String {
        let output = program(self.home.path(), &self.settings).arg("doctor").output();
        String::from_utf8(output.expect("the program starts").stdout).expect("text")
    }

    /// A second server on the same data: what it says and how it ends.
    pub(crate) fn second_server(&self) -> Output {
        program(self.home.path(), &self.settings)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .output()
            .expect("the program starts")
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Everything the server has logged since its last start.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Kills it as a power cut would, as far as processes go.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("the process can be killed");
        self.process.wait().expect("the process ended");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) async fn terminate(&mut self) -> (ExitStatus, Duration) {
        let started = Instant::now();
        let sent = Command::new("kill")
            .args(["-TERM", &self.process.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success());
        loop {
            if let Some(status) = self.process.try_wait().expect("the process can be asked") {
                return (status, started.elapsed());
            }
            assert!(started.elapsed() < PATIENCE, "the server does not stop: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Memory of the server process alone, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a Linux /proc");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse().ok())
            .expect("a number")
    }

    /// Process ids of the server's children that have not ended.
    pub(crate) fn children(&self) -> Vec<u32> {
        let parent = self.process.id().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("a Linux /proc").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // pid (name) state parent ...; the name may hold anything, so start behind its last bracket.
            let Some((_, rest)) = stat.rsplit_once(')') else {
                continue;
            };
            let mut fields = rest.split_whitespace();
            let state = fields.next();
            if fields.next() == Some(&parent) && state != Some("Z") {
                found.push(pid);
            }
        }
        found
    }

    /// Files below a folder of the data directory.
    pub(crate) fn files_below(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.data_dir().join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    _ => found.push(entry.path()),
                }
            }
        }
        found
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the server\n{}", tail(&self.log(), 6_000));
        }
    }
}

fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The program with the settings of a test and none of the machine's.
fn program(home: &Path, settings: &[(String, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    let foreign = [
        "DOCMILL_",
        "OPENAI_",
        "AZURE_OPENAI_",
        "ANTHROPIC_",
        "GEMINI_",
        "GOOGLE_API",
        "VOYAGE",
        "TOGETHER",
        "WATSONX_",
    ];
    for (name, _) in std::env::vars().filter(|(name, _)| foreign.iter().any(|start| name.starts_with(start))) {
        command.env_remove(name);
    }
    command
        .current_dir(home)
        .env("DOCMILL_DATA_DIR", home.join("data"))
        .env("DOCMILL_BOOTSTRAP_API_KEY", KEY)
        .env("NO_COLOR", "1");
    for (name, value) in settings {
        command.env(format!("DOCMILL_{name}"), value);
    }
    command
}
