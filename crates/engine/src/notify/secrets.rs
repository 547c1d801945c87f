//! Secrets of webhooks as they are stored: encrypted, the newest first, the others with their end.

use std::time::Duration;

use docmill_model::channel::ChannelId;
use docmill_model::time::Micros;
use docmill_notify::WebhookSecret;
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};

use crate::engine::micros;
use crate::vault::{Vault, VaultError};

/// Most secrets that sign at once.
const MOST: usize = 2;

/// A webhook's stored secrets can't be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the webhook's secret can't be decrypted: it was stored under another key (setting `secrets.key`, or file \
     `secrets.key` in the data directory), or altered; set a new secret"
)]
pub(super) struct SecretsUnreadable;

#[derive(Serialize, Deserialize)]
struct Stored {
    secret: String,
    /// Signs until then; for ever when there is none.
    until: Option<Micros>,
}

/// A new secret.
pub(super) fn generate() -> Result<WebhookSecret, VaultError> {
    let mut random = [0; 32];
    OsRng.try_fill_bytes(&mut random).map_err(|_| VaultError::Encrypt)?;
    Ok(WebhookSecret::generate(random))
}

/// A secret as it is stored.
pub(super) fn seal(vault: &Vault, channel: ChannelId, secret: &WebhookSecret) -> Result<Vec<u8>, VaultError> {
    seal_all(vault, channel, &[stored(secret, None)])
}

/// A new secret before those stored, of which the first signs for a while yet.
pub(super) fn rotate(
    vault: &Vault,
    channel: ChannelId,
    secret: &WebhookSecret,
    sealed: Option<&[u8]>,
    overlap: Duration,
    now: Micros,
) -> Result<Vec<u8>, VaultError> {
    // Those that can't be read sign nothing; a new one is the way out.
    let old = sealed
        .and_then(|sealed| open_all(vault, channel, sealed))
        .unwrap_or_default();
    let mut secrets = vec![stored(secret, None)];
    secrets.extend(old.into_iter().filter(|old| old.until.is_none_or(|until| until > now)));
    secrets.truncate(MOST);
    for old in secrets.iter_mut().skip(1) {
        let end = now.saturating_add(micros(overlap));
        old.until = Some(old.until.map_or(end, |until| until.min(end)));
    }
    seal_all(vault, channel, &secrets)
}

/// The secrets that sign now, the newest first.
pub(super) fn open(
    vault: &Vault,
    channel: ChannelId,
    sealed: &[u8],
    now: Micros,
) -> Result<Vec<WebhookSecret>, SecretsUnreadable> {
    let secrets = open_all(vault, channel, sealed).ok_or(SecretsUnreadable)?;
    let live = secrets
        .iter()
        .filter(|secret| secret.until.is_none_or(|until| until > now));
    live.map(|live| WebhookSecret::parse(&live.secret).map_err(|_| SecretsUnreadable))
        .collect()
}

fn stored(secret: &WebhookSecret, until: Option<Micros>) -> Stored {
    Stored {
        secret: secret.reveal().to_owned(),
        until,
    }
}

fn seal_all(vault: &Vault, channel: ChannelId, secrets: &[Stored]) -> Result<Vec<u8>, VaultError> {
    let plain = serde_json::to_vec(secrets).map_err(|_| VaultError::Encrypt)?;
    vault.seal_bytes(&place(channel), &plain)
}

fn open_all(vault: &Vault, channel: ChannelId, sealed: &[u8]) -> Option<Vec<Stored>> {
    let plain = vault.open_bytes(&place(channel), sealed)?;
    serde_json::from_slice(&plain).ok()
}

fn place(channel: ChannelId) -> String {
    format!("channel secrets\0{channel}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_secret_signs_until_its_end_and_no_third_does() {
        let (vault, channel) = (Vault::new(&[7; 32]).unwrap(), ChannelId::new());
        let [a, b, c] = [1, 2, 3].map(|byte| WebhookSecret::generate([byte; 32]));
        let hour = Duration::from_secs(3_600);
        let first = seal(&vault, channel, &a).unwrap();
        assert_eq!(open(&vault, channel, &first, i64::MAX).unwrap(), vec![a.clone()]);
        let second = rotate(&vault, channel, &b, Some(&first), hour, 1_000).unwrap();
        assert_eq!(open(&vault, channel, &second, 1_001).unwrap(), [b.clone(), a.clone()]);
        assert_eq!(
            open(&vault, channel, &second, 1_000 + micros(hour)).unwrap(),
            vec![b.clone()]
        );
        let third = rotate(&vault, channel, &c, Some(&second), hour, 2_000).unwrap();
        assert_eq!(open(&vault, channel, &third, 2_001).unwrap(), [c.clone(), b]);
        assert_eq!(
            rotate(&vault, channel, &c, None, hour, 0)
                .map(|sealed| open(&vault, channel, &sealed, 0))
                .unwrap(),
            Ok(vec![c])
        );
        assert_eq!(open(&vault, ChannelId::new(), &third, 0), Err(SecretsUnreadable));
        assert_eq!(open(&vault, channel, b"", 0), Err(SecretsUnreadable));
    }
}
