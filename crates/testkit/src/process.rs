//! A server's process.

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest time a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process and all it started, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

/// A port of the loopback interface that nobody listens on now.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

impl Process {
    /// Starts a server and waits until it listens on `port`.
    pub(crate) fn start(command: &mut Command, port: u16) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let mut process = Self(child);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = process.0.try_wait().expect("a child") {
                panic!("{command:?} ended at once: {status}");
            }
            assert!(start.elapsed() < PATIENCE, "{command:?} does not listen on {port}");
            sleep(Duration::from_millis(20));
        }
        process
    }

    /// Sends a signal to the process and all it started.
    pub(crate) fn signal(&self, name: &str) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill")
            .args([&format!("-{name}"), "--", &group])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal("KILL");
        let _ = self.0.wait();
    }
}
