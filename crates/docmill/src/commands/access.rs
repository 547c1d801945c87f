//! `docmill accounts`, `docmill workspaces`, `docmill keys`. Safe to use while the server runs.

use std::process::ExitCode;

use docmill_engine::{access, now};
use docmill_model::time::iso8601;
use docmill_store::sqlite::SqliteStore;
use docmill_store::{Store, Workspace};

use crate::config::Config;
use crate::{Failure, setup};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Accounts {
    /// Create an account.
    Create {
        /// Unique name.
        name: String,
    },
    /// List accounts.
    List,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Workspaces {
    /// Create a workspace.
    Create {
        /// Unique name.
        name: String,
        /// Account it belongs to.
        #[arg(long, default_value = access::DEFAULT_NAME)]
        account: String,
    },
    /// List workspaces.
    List,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Keys {
    /// Create a key and print it: the only time it is shown.
    Create {
        /// Workspace the key opens.
        #[arg(long, default_value = access::DEFAULT_NAME)]
        workspace: String,
        /// Name, to tell keys apart.
        #[arg(long, default_value = "")]
        name: String,
    },
    /// List keys by their first characters.
    List {
        /// Only keys of this workspace.
        #[arg(long)]
        workspace: Option<String>,
    },
    /// Revoke a key at once.
    Revoke {
        /// The key's first characters as listed, or its id.
        key: String,
    },
}

pub(crate) fn accounts(command: Accounts, config: &Config) -> Result<ExitCode, Failure> {
    with_store(config, async |store| {
        match command {
            Accounts::Create { name } => {
                let id = store.create_account(&name, now()).await?;
                println!("{id}");
            }
            Accounts::List => {
                println!("{:<38}{:<26}NAME", "ID", "CREATED");
                for account in store.accounts().await? {
                    println!("{:<38}{:<26}{}", account.id, iso8601(account.created_at), account.name);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn workspaces(command: Workspaces, config: &Config) -> Result<ExitCode, Failure> {
    with_store(config, async |store| {
        match command {
            Workspaces::Create { name, account } => {
                let accounts = store.accounts().await?;
                let owner = accounts.iter().find(|a| a.name == account).ok_or_else(|| {
                    format!("there is no account `{account}`; create it with `docmill accounts create {account}`")
                })?;
                let id = store.create_workspace(owner.id, &name, now()).await?;
                println!("{id}");
            }
            Workspaces::List => {
                let accounts = store.accounts().await?;
                println!("{:<38}{:<26}{:<20}NAME", "ID", "CREATED", "ACCOUNT");
                for workspace in store.workspaces().await? {
                    let account = accounts
                        .iter()
                        .find(|a| a.id == workspace.account)
                        .map_or("", |a| a.name.as_str());
                    println!(
                        "{:<38}{:<26}{:<20}{}",
                        workspace.id,
                        iso8601(workspace.created_at),
                        account,
                        workspace.name
                    );
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn keys(command: Keys, config: &Config) -> Result<ExitCode, Failure> {
    with_store(config, async |store| {
        match command {
            Keys::Create { workspace, name } => {
                let workspace = find_workspace(store, &workspace).await?;
                let key = access::generate_key()?;
                store
                    .create_key(access::key_record(workspace.id, &name, &key), now())
                    .await?;
                println!("{key}");
                eprintln!("hint: keep the key; it is not shown again");
            }
            Keys::List { workspace } => {
                let workspace = match workspace {
                    Some(name) => Some(find_workspace(store, &name).await?.id),
                    None => None,
                };
                println!(
                    "{:<13}{:<16}{:<26}{:<26}{:<26}NAME",
                    "PREFIX", "WORKSPACE", "CREATED", "LAST USED", "REVOKED"
                );
                for key in store.keys(workspace).await? {
                    let time = |at: Option<i64>| at.map_or_else(|| "-".to_owned(), iso8601);
                    println!(
                        "{:<13}{:<16}{:<26}{:<26}{:<26}{}",
                        key.prefix,
                        key.workspace_name,
                        iso8601(key.created_at),
                        time(key.last_used_at),
                        time(key.revoked_at),
                        key.name
                    );
                }
            }
            Keys::Revoke { key } => match store.revoke_keys(&key, now()).await? {
                0 => return Err(format!("no live key starts with exactly `{key}`; see `docmill keys list`").into()),
                count => println!("{count} revoked"),
            },
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn find_workspace(store: &SqliteStore, name: &str) -> Result<Workspace, Failure> {
    store
        .workspaces()
        .await?
        .into_iter()
        .find(|w| w.name == name)
        .ok_or_else(|| {
            format!("there is no workspace `{name}`; create it with `docmill workspaces create {name}`").into()
        })
}

fn with_store(
    config: &Config,
    work: impl AsyncFnOnce(&SqliteStore) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = setup::store(config).await?;
        access::ensure_default_workspace(&store, now()).await?;
        let result = work(&store).await;
        store.close().await;
        result
    })
}
