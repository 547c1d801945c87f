//! Verification codes.

use docmill_model::channel::ChannelId;
use docmill_store::{CodeHash, NewCode};
use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::vault::{Vault, VaultError};

/// How many codes there are.
const CODES: u32 = 1_000_000;

/// A code of six digits, each as likely as any other, from the machine's own generator.
fn code() -> Result<String, VaultError> {
    /// Numbers below this are spread evenly over the codes.
    const EVEN: u32 = u32::MAX - u32::MAX % CODES;
    loop {
        let number = OsRng.try_next_u32().map_err(|_| VaultError::Encrypt)?;
        if number < EVEN {
            return Ok(format!("{:06}", number % CODES));
        }
    }
}

/// A new code for a channel: what its tries are compared with, and the code itself encrypted for its mail.
pub(super) fn new_code(vault: &Vault, channel: ChannelId) -> Result<NewCode, VaultError> {
    let code = code()?;
    Ok(NewCode {
        hash: hash(vault, channel, &code),
        sealed: vault.seal_bytes(&place(channel), code.as_bytes())?,
    })
}

/// What is stored of a code: without the server's key a million guesses tell nothing.
pub(super) fn hash(vault: &Vault, channel: ChannelId, code: &str) -> CodeHash {
    CodeHash(vault.mac("channel code 1", &[channel.to_string().as_bytes(), code.as_bytes()]))
}

/// The code in an outbox.
pub(super) fn open(vault: &Vault, channel: ChannelId, sealed: &[u8]) -> Option<String> {
    let code = vault.open_bytes(&place(channel), sealed)?;
    String::from_utf8(code).ok()
}

fn place(channel: ChannelId) -> String {
    format!("channel code\0{channel}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_have_six_digits_and_are_spread() {
        let codes: Vec<String> = (0..5_000).map(|_| code().unwrap()).collect();
        assert!(
            codes
                .iter()
                .all(|code| code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()))
        );
        assert!(codes.iter().collect::<HashSet<_>>().len() > 4_900);
        for place in 0..6 {
            for digit in b'0'..=b'9' {
                let count = codes.iter().filter(|code| code.as_bytes()[place] == digit).count();
                // 500 are due, the standard deviation is 21.
                assert!((350..650).contains(&count), "{digit} at {place}: {count}");
            }
        }
    }

    #[test]
    fn a_code_opens_for_its_channel_and_key_alone() {
        let (vault, channel) = (Vault::new(&[7; 32]).unwrap(), ChannelId::new());
        let made = new_code(&vault, channel).unwrap();
        let code = open(&vault, channel, &made.sealed).unwrap();
        assert_eq!(hash(&vault, channel, &code).0, made.hash.0);
        assert!(!made.sealed.windows(6).any(|window| window == code.as_bytes()));
        assert!(open(&vault, ChannelId::new(), &made.sealed).is_none());
        let other = Vault::new(&[8; 32]).unwrap();
        assert!(open(&other, channel, &made.sealed).is_none());
        assert_ne!(hash(&other, channel, &code).0, made.hash.0);
        assert_ne!(hash(&vault, ChannelId::new(), &code).0, made.hash.0);
        for end in 0..made.sealed.len() {
            assert!(open(&vault, channel, &made.sealed[..end]).is_none());
        }
    }
}
