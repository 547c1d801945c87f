//! Webhooks as the Standard Webhooks specification (version 1.0) has them.

mod secret;
mod send;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
pub use secret::{SecretError, WebhookSecret};
pub use send::{AttemptReport, Outcome, WebhookSender};
use sha2::Sha256;

/// An HMAC-SHA256 under a key of any length.
pub(crate) fn hmac(key: &[u8]) -> Hmac<Sha256> {
    // HMAC hashes keys that are longer than its block itself, so that none is refused; were one, the empty
    // key would stand in, which verifies nothing that the true key has signed.
    Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()))
}

/// The header `webhook-signature`: `v1,` and the Base64 of the HMAC-SHA256 of `id.timestamp.body`, once for
/// each secret, separated by spaces. During a rotation give the new secret and the one before, so that the
/// receiver may use either. `timestamp` is in seconds since 1970.
pub fn sign(secrets: &[&WebhookSecret], id: &str, timestamp: i64, body: &[u8]) -> String {
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| {
            format!(
                "v1,{}",
                STANDARD.encode(signed(secret, id, timestamp, body).finalize().into_bytes())
            )
        })
        .collect();
    signatures.join(" ")
}

/// Whether a header made by [`sign`] (or by any sender of Standard Webhooks) holds a signature by one of
/// the secrets. Compares in constant time. Whoever receives must also refuse timestamps that are more than
/// five minutes off.
pub fn verify(secrets: &[&WebhookSecret], id: &str, timestamp: i64, body: &[u8], header: &str) -> bool {
    let mut good = false;
    for signature in header.split(' ').take(16) {
        let Some(Ok(signature)) = signature.strip_prefix("v1,").map(|text| STANDARD.decode(text)) else {
            continue;
        };
        for secret in secrets {
            good |= signed(secret, id, timestamp, body).verify_slice(&signature).is_ok();
        }
    }
    good
}

fn signed(secret: &WebhookSecret, id: &str, timestamp: i64, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = hmac(secret.key());
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's text.
    #[test]
    fn the_specifications_example_is_signed_alike() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let header = sign(
            &[&secret],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(header, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn either_secret_of_a_rotation_verifies() {
        let (old, new) = (WebhookSecret::generate([1; 32]), WebhookSecret::generate([2; 32]));
        let other = WebhookSecret::generate([3; 32]);
        let header = sign(&[&new, &old], "id", 7, b"body");
        assert_eq!(header.split(' ').count(), 2);
        assert!(verify(&[&old], "id", 7, b"body", &header));
        assert!(verify(&[&new], "id", 7, b"body", &header));
        assert!(!verify(&[&other], "id", 7, b"body", &header));
        assert!(!verify(&[&old], "id2", 7, b"body", &header));
        assert!(!verify(&[&old], "id", 8, b"body", &header));
        assert!(!verify(&[&old], "id", 7, b"bodY", &header));
        for broken in ["", "v1,", "v1,AAAA", "v2,AAAA", "v1a,", "v1,=", " "] {
            assert!(!verify(&[&old], "id", 7, b"body", broken), "{broken}");
        }
    }
}
