//! A mail server.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Process, free_port};
use crate::{python, root};

/// A mail server that keeps what it takes. Its certificate is for `localhost` and 127.0.0.1.
#[derive(Debug)]
pub struct SmtpServer {
    port: u16,
    folder: TempDir,
    process: Option<Process>,
}

/// A mail as the server took it.
#[derive(Clone, Debug)]
pub struct ReceivedMail {
    /// Sender of the envelope.
    pub from: String,
    /// Recipients of the envelope.
    pub to: Vec<String>,
    /// Whether the connection was encrypted.
    pub encrypted: bool,
    /// Who logged in; empty when nobody did.
    pub user: String,
    /// Number of the connection it came over; the first one only asked whether the server listens.
    pub connection: u64,
    /// The mail.
    pub bytes: Vec<u8>,
}

impl SmtpServer {
    /// Starts a server with arguments of `tests/python/smtp_server.py`, such as `--tls starttls`,
    /// `--login USER:PASSWORD`, `--rcpt "ADDRESS=550 no such mailbox"` or `--stall data`.
    pub fn start(arguments: &[&str]) -> Self {
        let mut server = Self {
            port: free_port(),
            folder: tempfile::tempdir().expect("a folder"),
            process: None,
        };
        server.restart(arguments);
        server
    }

    /// Starts it again on the same port with other manners and what it has taken so far hidden.
    pub fn restart(&mut self, arguments: &[&str]) {
        self.process = None;
        self.folder = tempfile::tempdir().expect("a folder");
        let tls = root().join("crates/egress/tests/tls");
        let mut command: Command = python("smtp_server.py");
        command
            .args(["--port", &self.port.to_string(), "--dir"])
            .arg(self.folder.path())
            .arg("--cert")
            .arg(tls.join("server.pem"))
            .arg("--key")
            .arg(tls.join("server.key"))
            .args(arguments);
        self.process = Some(Process::start(&mut command, self.port));
    }

    /// Ends it; its port refuses connections.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file with the authority of its certificate.
    pub fn ca_file() -> PathBuf {
        root().join("crates/egress/tests/tls/ca.pem")
    }

    /// The mails taken so far, in order.
    pub fn mails(&self) -> Vec<ReceivedMail> {
        let mut envelopes: Vec<PathBuf> = std::fs::read_dir(self.folder.path())
            .expect("a folder")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "envelope"))
            .collect();
        envelopes.sort();
        envelopes
            .iter()
            .map(|path| {
                let text = std::fs::read_to_string(path).expect("an envelope");
                let mut lines = text.split('\n').map(str::to_owned);
                let mut next = || lines.next().unwrap_or_default();
                ReceivedMail {
                    from: next(),
                    to: next().split_whitespace().map(str::to_owned).collect(),
                    encrypted: next() == "tls",
                    user: next(),
                    connection: next().parse().expect("a number"),
                    bytes: std::fs::read(path.with_extension("eml")).expect("a mail"),
                }
            })
            .collect()
    }
}
