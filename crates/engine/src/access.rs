//! API keys: how they are made and recognised.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use docmill_model::ids::WorkspaceId;
use docmill_model::time::Micros;
use docmill_store::{NewKey, Store};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};

/// Name of the account and of the workspace that exist from the first start.
pub const DEFAULT_NAME: &str = "default";

/// Characters of a key shown in lists: what every key starts with, and eight of its own.
const PREFIX_CHARS: usize = 11;

/// A new key: 256 bits from the operating system.
pub fn generate_key() -> Result<String, std::io::Error> {
    let mut secret = [0u8; 32];
    OsRng.try_fill_bytes(&mut secret).map_err(std::io::Error::other)?;
    Ok(format!("dm_{}", URL_SAFE_NO_PAD.encode(secret)))
}

/// What is stored instead of a key. A plain hash is enough: a key of 256 random bits can't be guessed.
pub fn hash_key(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}

/// The record of a key.
pub fn key_record(workspace: WorkspaceId, name: &str, key: &str) -> NewKey {
    NewKey {
        workspace,
        name: name.to_owned(),
        prefix: key.chars().take(PREFIX_CHARS).collect(),
        secret_hash: hash_key(key),
    }
}

/// Makes sure the default account and workspace exist; the workspace's id.
pub async fn ensure_default_workspace(store: &dyn Store, now: Micros) -> docmill_store::Result<WorkspaceId> {
    if let Some(workspace) = store.workspaces().await?.into_iter().find(|w| w.name == DEFAULT_NAME) {
        return Ok(workspace.id);
    }
    let account = match store.accounts().await?.into_iter().find(|a| a.name == DEFAULT_NAME) {
        Some(account) => account.id,
        None => store.create_account(DEFAULT_NAME, now).await?,
    };
    store.create_workspace(account, DEFAULT_NAME, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_long_distinct_and_only_their_hash_is_kept() {
        let (a, b) = (generate_key().unwrap(), generate_key().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), 46);
        let record = key_record(WorkspaceId::new(), "n", &a);
        assert!(a.starts_with(&record.prefix) && record.prefix.len() == PREFIX_CHARS);
        assert_eq!(record.secret_hash, hash_key(&a));
        assert!(!record.secret_hash.contains(&a[3..]));
    }
}
