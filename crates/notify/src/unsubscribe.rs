//! Links that stop a channel's mails with one click (RFC 8058), without logging in.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Keeps these tokens apart from whatever else the same key signs.
const PURPOSE: &[u8] = b"docmill unsubscribe 1\0";

/// A token that stops the mails of one channel, for the path of a link. Made of the channel's id and an
/// HMAC-SHA256 under `key` (at least 32 random bytes of the server's own); it does not expire.
pub fn unsubscribe_token(key: &[u8], channel_id: &str) -> String {
    let tag = mac(key, channel_id).finalize().into_bytes();
    format!("{channel_id}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// The channel that a token speaks for, if it was made with this key. Compares in constant time.
pub fn verify_unsubscribe_token<'t>(key: &[u8], token: &'t str) -> Option<&'t str> {
    let (channel_id, tag) = token.rsplit_once('.')?;
    let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
    mac(key, channel_id).verify_slice(&tag).ok()?;
    Some(channel_id)
}

fn mac(key: &[u8], channel_id: &str) -> Hmac<Sha256> {
    let mut mac = crate::webhook::hmac(key);
    mac.update(PURPOSE);
    mac.update(channel_id.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn a_token_speaks_for_its_channel_alone() {
        let token = unsubscribe_token(KEY, "ep_0a1B2c3D4e5F6g7H8i9J0k1L2m3N");
        assert_eq!(
            verify_unsubscribe_token(KEY, &token),
            Some("ep_0a1B2c3D4e5F6g7H8i9J0k1L2m3N")
        );
        assert_eq!(
            verify_unsubscribe_token(b"another key of thirty-two bytes!", &token),
            None
        );
        assert_eq!(verify_unsubscribe_token(KEY, &token.replace("0a1B", "0a1C")), None);
        assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)));
    }

    #[test]
    fn damaged_tokens_speak_for_nothing() {
        let token = unsubscribe_token(KEY, "ep_x");
        for end in 0..token.len() {
            assert_eq!(verify_unsubscribe_token(KEY, &token[..end]), None);
        }
        for text in [
            "",
            ".",
            "..",
            "ep_x",
            "ep_x.",
            ".AAAA",
            "ep_x.=",
            "ep_x.ä",
            &format!("{token}="),
            &format!("{token}A"),
        ] {
            assert_eq!(verify_unsubscribe_token(KEY, text), None, "{text}");
        }
    }
}
