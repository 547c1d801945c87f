//! Object stores.

use std::process::Command;

use tempfile::TempDir;

use crate::installed;
use crate::process::{Process, free_port};

/// S3 (and STS) with any credentials, in memory.
#[derive(Debug)]
pub struct Moto {
    port: u16,
    process: Option<Process>,
}

impl Moto {
    /// Starts it.
    pub fn start() -> Self {
        let mut moto = Self {
            port: free_port(),
            process: None,
        };
        moto.restart();
        moto
    }

    /// Starts it again, empty, on the same port.
    pub fn restart(&mut self) {
        self.process = None;
        let mut command = Command::new(installed(".venv/bin/moto_server"));
        command.args(["-H", "127.0.0.1", "-p", &self.port.to_string()]);
        self.process = Some(Process::start(&mut command, self.port));
    }

    /// Ends it; its port refuses connections.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Azure Blob Storage with the well-known account `devstoreaccount1`.
#[derive(Debug)]
pub struct Azurite {
    port: u16,
    folder: TempDir,
    process: Option<Process>,
}

impl Azurite {
    /// Name of the account.
    pub const ACCOUNT: &str = "devstoreaccount1";
    /// The emulator's published key: no secret.
    pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// Starts it.
    pub fn start() -> Self {
        let mut azurite = Self {
            port: free_port(),
            folder: tempfile::tempdir().expect("a folder"),
            process: None,
        };
        azurite.restart();
        azurite
    }

    /// Starts it again on the same port with what it holds.
    pub fn restart(&mut self) {
        self.process = None;
        let mut command = Command::new(installed("tests/node/node_modules/.bin/azurite-blob"));
        command
            .args([
                "--silent",
                "--skipApiVersionCheck",
                "--disableProductStyleUrl",
                "--blobHost",
                "127.0.0.1",
            ])
            .args(["--blobPort", &self.port.to_string(), "--location"])
            .arg(self.folder.path());
        self.process = Some(Process::start(&mut command, self.port));
    }

    /// Ends it; its port refuses connections.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// `http://127.0.0.1:PORT/devstoreaccount1`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, Self::ACCOUNT)
    }
}

/// Google Cloud Storage with any credentials, in memory.
#[derive(Debug)]
pub struct GcsEmulator {
    port: u16,
    folder: TempDir,
    process: Option<Process>,
}

impl GcsEmulator {
    /// Starts it.
    pub fn start() -> Self {
        let mut emulator = Self {
            port: free_port(),
            folder: tempfile::tempdir().expect("a folder"),
            process: None,
        };
        emulator.restart();
        emulator
    }

    /// Starts it again, empty, on the same port.
    pub fn restart(&mut self) {
        self.process = None;
        let mut command = Command::new(installed(".venv/bin/gcp-storage-emulator"));
        command.current_dir(self.folder.path()).args([
            "start",
            "--host",
            "127.0.0.1",
            "--in-memory",
            "--port",
            &self.port.to_string(),
        ]);
        self.process = Some(Process::start(&mut command, self.port));
    }

    /// Ends it; its port refuses connections.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listens_after_its_start() {
        let (moto, azurite, gcs) = (Moto::start(), Azurite::start(), GcsEmulator::start());
        for endpoint in [moto.endpoint(), azurite.endpoint(), gcs.endpoint()] {
            let address = endpoint
                .trim_start_matches("http://")
                .split('/')
                .next()
                .unwrap_or_default();
            std::net::TcpStream::connect(address).unwrap();
        }
    }
}
