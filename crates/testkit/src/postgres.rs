//! PostgreSQL with pgvector.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Process, free_port};
use crate::root;

/// A cluster of its own, with user and database `docmill`.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    bin: PathBuf,
    folder: TempDir,
    process: Option<Process>,
}

impl Postgres {
    /// Name of the superuser and of the database.
    pub const USER: &str = "docmill";
    /// The user's password.
    pub const PASSWORD: &str = "mill-4711";

    /// Makes and starts a cluster.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (packages, libraries) = package();
        // PostgreSQL does not run as root, and root's files may be hidden from others: then it runs as
        // `nobody` from a copy.
        let bin = if is_root() {
            let copy = folder.path().join("packages");
            std::fs::create_dir(&copy).expect("a folder");
            run(Command::new("cp").arg("-a").args([&packages, &libraries]).arg(&copy));
            run(Command::new("chown").args(["-R", "nobody"]).arg(folder.path()));
            copy.join("pgserver/pginstall/bin")
        } else {
            packages.join("pginstall/bin")
        };
        let password = folder.path().join("password");
        std::fs::write(&password, Self::PASSWORD).expect("a file");
        let mut postgres = Self {
            port: free_port(),
            bin,
            folder,
            process: None,
        };
        if is_root() {
            run(Command::new("chown").arg("nobody").arg(&password));
        }
        run(postgres
            .program("initdb")
            .arg("-D")
            .arg(postgres.data())
            .args([
                "-U",
                Self::USER,
                "-A",
                "scram-sha-256",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            ])
            .arg(format!("--pwfile={}", password.display())));
        postgres.restart();
        run(postgres.program("createdb").env("PGPASSWORD", Self::PASSWORD).args([
            "-h",
            "127.0.0.1",
            "-U",
            Self::USER,
            "-p",
            &postgres.port.to_string(),
            Self::USER,
        ]));
        postgres
    }

    /// Starts it again on the same port with what it holds.
    pub fn restart(&mut self) {
        self.stop();
        let mut command = self.program("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-c", "fsync=off"])
            .arg("-k")
            .arg(self.folder.path());
        self.process = Some(Process::start(&mut command, self.port));
    }

    /// Ends it; its port refuses connections.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal("INT");
            // Its children hold shared memory that only an orderly end gives back.
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        let _ = std::fs::remove_file(self.data().join("postmaster.pid"));
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL; what `psql` prints, unaligned and without headings.
    ///
    /// # Panics
    /// With PostgreSQL's message when the SQL fails.
    pub fn sql(&self, sql: &str) -> String {
        let output = self
            .program("psql")
            .env("PGPASSWORD", Self::PASSWORD)
            .args([
                "-h",
                "127.0.0.1",
                "-U",
                Self::USER,
                "-p",
                &self.port.to_string(),
                "-d",
                Self::USER,
            ])
            .args(["-v", "ON_ERROR_STOP=1", "-X", "-q", "-A", "-t", "-c", sql])
            .output()
            .expect("psql runs");
        assert!(
            output.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let path = self.bin.join(name);
        if is_root() {
            let mut command = Command::new("runuser");
            command
                .args(["-u", "nobody", "--"])
                .arg(path)
                .current_dir(self.folder.path());
            command
        } else {
            Command::new(path)
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The installed package, and the folder of the libraries it brings along.
fn package() -> (PathBuf, PathBuf) {
    let pythons = std::fs::read_dir(root().join(".venv/lib")).ok();
    pythons
        .into_iter()
        .flatten()
        .flatten()
        .map(|python| python.path().join("site-packages"))
        .map(|packages| (packages.join("pgserver"), packages.join("pgserver.libs")))
        .find(|(package, _)| package.is_dir())
        .expect("PostgreSQL for the tests is missing: run scripts/setup, which installs what the tests need")
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_keeps_what_it_holds_over_a_restart() {
        let mut postgres = Postgres::start();
        postgres.sql("CREATE EXTENSION vector; CREATE TABLE t (v vector(2)); INSERT INTO t VALUES ('[1,2]')");
        postgres.restart();
        assert_eq!(postgres.sql("SELECT v FROM t"), "[1,2]");
    }
}
