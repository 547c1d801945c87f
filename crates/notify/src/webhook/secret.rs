//! Secrets of webhooks.

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// What the text of a secret begins with when its key is Base64.
const PREFIX: &str = "whsec_";
/// Lengths of a secret's text, in bytes.
const TEXT: std::ops::RangeInclusive<usize> = 24..=75;
/// Lengths of a key that was Base64, in bytes, as the specification has them.
const KEY: std::ops::RangeInclusive<usize> = 24..=64;

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a text is no secret. Never repeats it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(&'static str);

/// The key a webhook's requests are signed with. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret {
    text: String,
    key: Vec<u8>,
}

impl WebhookSecret {
    /// A secret of 32 random bytes, which must come from a cryptographic generator.
    pub fn generate(random: [u8; 32]) -> Self {
        Self {
            text: format!("{PREFIX}{}", STANDARD.encode(random)),
            key: random.to_vec(),
        }
    }

    /// Reads a secret of 24 to 75 bytes.
    ///
    /// `whsec_` and the Base64 of 24 to 64 bytes: these bytes are the key. Any other text: its own UTF-8
    /// bytes are the key. (Libraries for Standard Webhooks read every text as Base64; give them the bytes
    /// of such a secret instead of the text.)
    ///
    /// # Errors
    /// [`SecretError`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        if !TEXT.contains(&text.len()) {
            return Err(SecretError("a secret has 24 to 75 bytes"));
        }
        if text.chars().any(|c| c.is_control()) || text.trim() != text {
            return Err(SecretError(
                "a secret has no control characters and no spaces around it",
            ));
        }
        let key = match text.strip_prefix(PREFIX) {
            None => text.as_bytes().to_vec(),
            Some(base64) => {
                let key = LENIENT
                    .decode(base64)
                    .map_err(|_| SecretError("what follows whsec_ is not Base64"))?;
                if !KEY.contains(&key.len()) {
                    return Err(SecretError("what follows whsec_ is the Base64 of 24 to 64 bytes"));
                }
                key
            }
        };
        Ok(Self {
            text: text.to_owned(),
            key,
        })
    }

    /// The text, to be shown once to whoever made the webhook, and to be stored sealed.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_back_as_they_were() {
        let made = WebhookSecret::generate([7; 32]);
        assert!(made.reveal().starts_with("whsec_") && TEXT.contains(&made.reveal().len()));
        assert_eq!(WebhookSecret::parse(made.reveal()).unwrap(), made);
        assert_eq!(
            WebhookSecret::parse(made.reveal().trim_end_matches('=')).unwrap().key(),
            made.key()
        );
        assert_eq!(format!("{made:?}"), "WebhookSecret(***)");
    }

    #[test]
    fn a_text_without_prefix_is_its_own_key() {
        let secret = WebhookSecret::parse("correct horse battery staple").unwrap();
        assert_eq!(secret.key(), b"correct horse battery staple");
        assert!(WebhookSecret::parse(&"x".repeat(24)).is_ok() && WebhookSecret::parse(&"x".repeat(75)).is_ok());
    }

    #[test]
    fn wrong_secrets_are_refused_and_not_repeated() {
        for text in [
            "".to_owned(),
            "x".repeat(23),
            "x".repeat(76),
            format!("whsec_{}", "!".repeat(32)),
            format!("whsec_{}", STANDARD.encode([1; 23])),
            format!("{}\n", "x".repeat(30)),
            format!(" {}", "x".repeat(30)),
            "ä".repeat(38),
        ] {
            let error = WebhookSecret::parse(&text).unwrap_err();
            assert!(text.is_empty() || !error.to_string().contains(&text));
        }
    }
}
