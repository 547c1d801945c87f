//! Secrets of connectors and channels, encrypted as long as they are stored.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docmill_connectors::{Field, FieldKind, MASK};
use docmill_model::ids::ConnectorId;
use rand::TryRngCore;
use rand::rngs::OsRng;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde_json::{Map, Value, json};

/// Name of the member that marks an encrypted secret.
pub(crate) const MARK: &str = "$enc";

/// How secrets are encrypted, as a prefix of what is stored, so that a later way can be told apart.
const VERSION: &str = "v1:";

/// Encrypts secrets with AES-256-GCM. Each is bound to its place (as its connector and setting), so that one
/// copied to another place in the database opens nothing there.
#[derive(Clone)]
pub struct Vault {
    key: Arc<LessSafeKey>,
    macs: Arc<hmac::Key>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

/// A secret that can't be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Made with another key, moved from another place, or altered.
    #[error(
        "the secret in setting `{0}` can't be decrypted: it was stored under another key (setting `secrets.key`, or \
         file `secrets.key` in the data directory), or altered; write the connector's settings again"
    )]
    Unreadable(String),
    /// No random numbers, or the cipher refuses.
    #[error("a secret can't be encrypted")]
    Encrypt,
}

impl Vault {
    /// A vault with a key of 32 bytes.
    ///
    /// # Errors
    /// [`VaultError::Encrypt`] when the key has another length.
    pub fn new(key: &[u8]) -> Result<Self, VaultError> {
        let unbound = UnboundKey::new(&AES_256_GCM, key).map_err(|_| VaultError::Encrypt)?;
        // A key of its own, so that no tag says anything of the encryption's key.
        let root = hmac::Key::new(hmac::HMAC_SHA256, key);
        let derived = hmac::sign(&root, b"docmill message authentication 1");
        Ok(Self {
            key: Arc::new(LessSafeKey::new(unbound)),
            macs: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())),
        })
    }

    /// HMAC-SHA256 of some parts under a key that is derived from the vault's. Tags of one purpose are worth
    /// nothing for another.
    pub(crate) fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.macs);
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            // With its length before it, no part can pass for two.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut tag = [0; 32];
        tag.iter_mut()
            .zip(context.sign().as_ref())
            .for_each(|(to, from)| *to = *from);
        tag
    }

    /// Bytes encrypted for one place.
    pub(crate) fn seal_bytes(&self, place: &str, secret: &[u8]) -> Result<Vec<u8>, VaultError> {
        let mut nonce = [0u8; NONCE_LEN];
        OsRng.try_fill_bytes(&mut nonce).map_err(|_| VaultError::Encrypt)?;
        let mut sealed = secret.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut sealed)
            .map_err(|_| VaultError::Encrypt)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// What [`Vault::seal_bytes`] encrypted for this place; `None` with another key, from another place, or
    /// altered.
    pub(crate) fn open_bytes(&self, place: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.key.open_in_place(nonce, Aad::from(place), &mut sealed).ok()?;
        Some(plain.to_vec())
    }

    /// Settings as they are stored: every secret encrypted.
    pub(crate) fn seal(
        &self,
        connector: ConnectorId,
        fields: &[Field],
        mut config: Map<String, Value>,
    ) -> Result<Map<String, Value>, VaultError> {
        for field in fields.iter().filter(|field| field.kind == FieldKind::Secret) {
            if let Some(Value::String(secret)) = config.get(field.name) {
                let sealed = self.encrypt(connector, field.name, secret)?;
                config.insert(field.name.into(), json!({ MARK: sealed }));
            }
        }
        Ok(config)
    }

    /// Stored settings with every secret readable again.
    pub(crate) fn open(&self, connector: ConnectorId, stored: &Value) -> Result<Map<String, Value>, VaultError> {
        let mut config = stored.as_object().cloned().unwrap_or_default();
        for (name, value) in &mut config {
            if let Some(sealed) = value.get(MARK) {
                let unreadable = || VaultError::Unreadable(name.clone());
                let sealed = sealed.as_str().ok_or_else(unreadable)?;
                *value = self.decrypt(connector, name, sealed).ok_or_else(unreadable)?.into();
            }
        }
        Ok(config)
    }

    fn encrypt(&self, connector: ConnectorId, field: &str, secret: &str) -> Result<String, VaultError> {
        let sealed = self.seal_bytes(&place(connector, field), secret.as_bytes())?;
        Ok(format!("{VERSION}{}", STANDARD.encode(sealed)))
    }

    fn decrypt(&self, connector: ConnectorId, field: &str, sealed: &str) -> Option<String> {
        let bytes = STANDARD.decode(sealed.strip_prefix(VERSION)?).ok()?;
        String::from_utf8(self.open_bytes(&place(connector, field), &bytes)?).ok()
    }
}

fn place(connector: ConnectorId, field: &str) -> String {
    format!("{connector}\0{field}")
}

/// Stored settings as they are sent out: every secret masked.
pub fn masked(stored: &Value) -> Value {
    let mut config = stored.clone();
    for value in config.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if value.get(MARK).is_some() {
            *value = MASK.into();
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[Field] = &[
        Field::new("url", FieldKind::Text, "Where."),
        Field::new("token", FieldKind::Secret, "Who."),
        Field::new("other", FieldKind::Secret, "Who else."),
    ];

    fn config() -> Map<String, Value> {
        let Value::Object(config) = json!({"url": "u", "token": "hush", "other": "quiet ü"}) else {
            panic!("an object")
        };
        config
    }

    #[test]
    fn secrets_come_back_only_where_they_belong_and_only_with_the_key() {
        let (vault, connector) = (Vault::new(&[7; 32]).unwrap(), ConnectorId::new());
        let sealed = Value::Object(vault.seal(connector, FIELDS, config()).unwrap());
        assert!(!sealed.to_string().contains("hush") && sealed["url"] == "u");
        assert_eq!(vault.open(connector, &sealed).unwrap(), config());
        assert_eq!(masked(&sealed), json!({"url": "u", "token": MASK, "other": MASK}));

        let swapped = json!({"token": sealed["other"].clone()});
        assert!(matches!(vault.open(connector, &swapped), Err(VaultError::Unreadable(name)) if name == "token"));
        assert!(vault.open(ConnectorId::new(), &sealed).is_err());
        assert!(Vault::new(&[8; 32]).unwrap().open(connector, &sealed).is_err());
        for damaged in ["", "v1:", "v1:AAAA", "v2:AAAA", "v1:%%"] {
            assert!(vault.open(connector, &json!({"token": {MARK: damaged}})).is_err());
        }
        assert!(Vault::new(&[1; 16]).is_err());
    }

    #[test]
    fn the_same_secret_never_looks_the_same_twice() {
        let (vault, connector) = (Vault::new(&[7; 32]).unwrap(), ConnectorId::new());
        let seal = || vault.seal(connector, FIELDS, config()).unwrap();
        assert_ne!(seal(), seal());
    }
}
