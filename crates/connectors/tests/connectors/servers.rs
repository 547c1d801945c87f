//! Programs the tests talk to, started on free ports and stopped with the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener as Listener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::{JoinHandle, JoinSet};

/// How long a program may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that listens on a port of its own.
pub(crate) struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// Where it listens on the loopback interface.
    pub(crate) port: u16,
    child: Mutex<Option<Child>>,
}

impl Server {
    /// Starts a program of the repository's test environment; `{port}` in an argument becomes its port.
    pub(crate) async fn start(program: &str, arguments: &[&str], environment: &[(&'static str, &str)]) -> Self {
        let program = self::program(program);
        let port = free_port();
        let server = Self {
            program,
            arguments: arguments
                .iter()
                .map(|argument| argument.replace("{port}", &port.to_string()))
                .collect(),
            environment: environment
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            port,
            child: Mutex::default(),
        };
        server.up().await;
        server
    }

    /// Starts it and waits until it listens.
    async fn up(&self) {
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; run scripts/setup", self.program.display()));
        *self.child.lock().unwrap() = Some(child);
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            assert!(Instant::now() < end, "{} does not listen", self.program.display());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Base of its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// A program or file of the repository.
pub(crate) fn program(path: &str) -> PathBuf {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    assert!(path.exists(), "{} is missing: run scripts/setup", path.display());
    path
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// A door before a server: shut, nothing answers there and what was connected is cut, while the server
/// behind it keeps what it holds.
pub(crate) struct Gate {
    port: u16,
    behind: u16,
    open: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Gate {
    /// An open gate before a port.
    pub(crate) async fn before(behind: u16) -> Self {
        let gate = Self {
            port: free_port(),
            behind,
            open: tokio::sync::Mutex::default(),
        };
        gate.set(true).await;
        gate
    }

    /// Opens or shuts it.
    pub(crate) async fn set(&self, open: bool) {
        let mut task = self.open.lock().await;
        if let Some(task) = task.take() {
            task.abort();
            let _ = task.await;
        }
        if open {
            let listener = Listener::bind(("127.0.0.1", self.port)).await.expect("the port");
            *task = Some(tokio::spawn(pass(listener, self.behind)));
        }
    }

    /// Base of its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

async fn pass(listener: Listener, behind: u16) {
    let mut connections = JoinSet::new();
    while let Ok((mut near, _)) = listener.accept().await {
        connections.spawn(async move {
            if let Ok(mut far) = TcpStream::connect(("127.0.0.1", behind)).await {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
}
