//! Wiring that more than one command needs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use docmill_engine::{Runner, Vault};
use docmill_sandbox::{Sandbox, SandboxConfig};
use docmill_store::sqlite::SqliteStore;
use rand::TryRngCore;

use crate::Failure;
use crate::child::Libraries;
use crate::config::Config;

/// The hidden argument that makes the program a child process.
pub(crate) const CHILD_ARG: &str = "__child";

/// A sandbox that runs this program again for each file.
pub(crate) fn sandbox(config: &Config) -> Result<Arc<Sandbox>, Failure> {
    let libraries = Libraries {
        tessdata: tessdata(),
        pdfium: config.pdfium.path(),
        heif: config.heif.path(),
    };
    let args = [OsString::from(CHILD_ARG)].into_iter().chain(libraries.args());
    let mut sandbox = SandboxConfig::current_exe(args)?;
    sandbox.require = config.required_level()?;
    sandbox.limits = config.child_limits();
    Ok(Arc::new(Sandbox::new(sandbox)?))
}

/// The folder that Tesseract's models are in, where the environment says so.
pub(crate) fn tessdata() -> Option<PathBuf> {
    let folder = std::env::var_os("TESSDATA_PREFIX").filter(|folder| !folder.is_empty());
    folder.map(PathBuf::from)
}

/// A pool of child processes.
pub(crate) fn runner(config: &Config, sandbox: Arc<Sandbox>) -> Result<Runner, Failure> {
    Ok(Runner::start(sandbox, config.workers())?)
}

/// Opens the database, creating the data directory.
pub(crate) async fn store(config: &Config) -> Result<SqliteStore, Failure> {
    create_private_dir(&config.data_dir)?;
    let database = config.database()?;
    if let Some(folder) = database.parent() {
        create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    Ok(SqliteStore::open(&database, config.slots()).await?)
}

/// The vault of connectors' secrets.
pub(crate) fn vault(config: &Config) -> Result<Vault, Failure> {
    let key = match config.vault_key()? {
        Some(key) => key.to_vec(),
        None => secret(&config.data_dir, "secrets.key")?,
    };
    Ok(Vault::new(&key)?)
}

fn create_private_dir(dir: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| format!("cannot create the data directory {}: {error}", dir.display()).into())
}

/// Holds the data directory for this server: two servers on one directory would take each other's work.
pub(crate) fn lock(data_dir: &Path) -> Result<File, Failure> {
    create_private_dir(data_dir)?;
    let path = data_dir.join("server.lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)?;
    file.try_lock().map_err(|_| {
        format!(
            "another docmill server is using {}; stop it, or give this one another --data-dir",
            data_dir.display()
        )
    })?;
    Ok(file)
}

/// A secret of 32 random bytes kept in a file of the data directory, made at first use.
pub(crate) fn secret(data_dir: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let path = data_dir.join(name);
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path) {
        Ok(mut file) => {
            let mut secret = vec![0u8; 32];
            rand::rngs::OsRng.try_fill_bytes(&mut secret)?;
            file.write_all(&secret)?;
            file.sync_all()?;
            Ok(secret)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut secret = Vec::new();
            File::open(&path)?.read_to_end(&mut secret)?;
            if secret.len() < 32 {
                return Err(format!("{} is damaged; delete it to have a new one made", path.display()).into());
            }
            Ok(secret)
        }
        Err(error) => Err(format!("cannot create {}: {error}", path.display()).into()),
    }
}
