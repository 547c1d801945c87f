//! PostgreSQL with the extension pgvector.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::{free_port, root};

/// A PostgreSQL server of a test's own: user `postgres`, password [`Postgres::PASSWORD`], database
/// `postgres`, on the loopback interface.
pub struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
}

impl Postgres {
    /// Name of the user who may do everything.
    pub const USER: &str = "postgres";
    /// The user's password.
    pub const PASSWORD: &str = "not a secret: it's for tests";
    /// The database.
    pub const DATABASE: &str = "postgres";

    /// Starts a server.
    ///
    /// # Panics
    /// When the programs are missing or don't work.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut packages = packages();
        if is_root() {
            // It runs as somebody else then, from whom root's files may be hidden.
            let copy = directory.path().join("packages");
            fs::create_dir(&copy).expect("a directory");
            let mut copying = Command::new("cp");
            copying.arg("-a").arg(packages.join("pgserver"));
            copying.arg(packages.join("pgserver.libs")).arg(&copy);
            succeed("cp", &copying.output().expect("cp"));
            packages = copy;
        }
        let server = Self {
            directory,
            programs: packages.join("pgserver/pginstall/bin"),
            port: free_port(),
        };
        let password = server.directory.path().join("password");
        fs::write(&password, Self::PASSWORD).expect("a file");
        if is_root() {
            let owner = Command::new("chown")
                .args(["-R", "nobody"])
                .arg(server.directory.path())
                .output();
            succeed("chown", &owner.expect("chown"));
        }
        server.run("initdb", |command| {
            command
                .args([
                    "--no-sync",
                    "--auth=scram-sha-256",
                    "--encoding=UTF8",
                    "--locale=C.UTF-8",
                ])
                .args(["--username", Self::USER])
                .arg("--pwfile")
                .arg(&password)
                .arg("--pgdata")
                .arg(server.data());
        });
        server.power(true);
        server
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server again, or stops it at once as a crash would.
    pub fn power(&self, on: bool) {
        self.run("pg_ctl", |command| {
            command.arg("--pgdata").arg(self.data()).arg("--wait");
            if on {
                let options = format!(
                    "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=50",
                    self.port
                );
                let log = self.directory.path().join("log");
                command.args(["start", "--silent", "--options", &options]).arg("--log").arg(log);
            } else {
                command.args(["stop", "--silent", "--mode=immediate"]);
            }
        });
    }

    /// A connection for the test itself.
    ///
    /// # Panics
    /// When it can't be made.
    pub async fn client(&self) -> Client {
        let connected = tokio_postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port)
            .user(Self::USER)
            .password(Self::PASSWORD)
            .dbname(Self::DATABASE)
            .connect(NoTls)
            .await;
        let (client, connection) = connected.expect("a connection to the test's own server");
        tokio::spawn(connection);
        client
    }

    /// Runs SQL; what `psql` prints, unaligned and without headings.
    ///
    /// # Panics
    /// With PostgreSQL's message when the SQL fails.
    pub fn sql(&self, sql: &str) -> String {
        let output = command(&self.programs.join("psql"))
            .current_dir(self.directory.path())
            .env("PGPASSWORD", Self::PASSWORD)
            .args(["-h", "127.0.0.1", "-U", Self::USER, "-d", Self::DATABASE])
            .args(["-p", &self.port.to_string()])
            .args(["-v", "ON_ERROR_STOP=1", "-X", "-q", "-A", "-t", "-c", sql])
            .output()
            .expect("psql runs");
        succeed(sql, &output);
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn run(&self, program: &str, arguments: impl FnOnce(&mut Command)) {
        let mut command = command(&self.programs.join(program));
        command.current_dir(self.directory.path());
        arguments(&mut command);
        // What the server inherits stays open as long as it runs, so output goes to a file.
        let output = self.directory.path().join(format!("{program}.out"));
        let file = fs::File::create(&output).expect("a file");
        let status = command
            .stdin(std::process::Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .status();
        let status = status.unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = fs::read_to_string(&output).unwrap_or_default();
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        assert!(status.success(), "{program} failed: {said}\n{log}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = command(&self.programs.join("pg_ctl"));
        stop.arg("--pgdata").arg(self.data());
        // It may be down already.
        let _ = stop
            .args(["stop", "--silent", "--mode=immediate"])
            .current_dir("/")
            .output();
    }
}

/// The directory of Python packages, one of which carries PostgreSQL.
fn packages() -> PathBuf {
    let libraries = root().join(".venv/lib");
    let pythons = fs::read_dir(&libraries).into_iter().flatten().flatten();
    let mut packages = pythons.map(|python| python.path().join("site-packages"));
    packages
        .find(|packages| packages.join("pgserver/pginstall/bin/initdb").is_file())
        .unwrap_or_else(|| {
            panic!(
                "no PostgreSQL in {}: run scripts/setup, which installs it for the tests",
                libraries.display()
            )
        })
}

/// A program, as somebody other than root, for whom PostgreSQL refuses to run.
fn command(program: &Path) -> Command {
    if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "nobody", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("the program id");
    output.stdout.trim_ascii() == b"0"
}

fn succeed(what: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{what}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_keeps_what_it_holds_over_a_restart() {
        let postgres = Postgres::start();
        postgres.sql("CREATE EXTENSION vector; CREATE TABLE t (v vector(2)); INSERT INTO t VALUES ('[1,2]')");
        postgres.power(false);
        postgres.power(true);
        assert_eq!(postgres.sql("SELECT v FROM t"), "[1,2]");
    }
}
