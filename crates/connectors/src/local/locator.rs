//! Names of files as locators: paths below the root with `/` between components, in which every byte that
//! is no part of UTF-8 text, every control character and `%` stand as `%XX`. Nothing is lost, and the way
//! back never leaves the root.

use std::fmt::Write as _;

/// Adds a component to a locator.
pub(super) fn push(locator: &mut String, name: &[u8]) {
    if !locator.is_empty() {
        locator.push('/');
    }
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '%' || c.is_ascii_control() {
                escape(locator, c as u8);
            } else {
                locator.push(c);
            }
        }
        for byte in chunk.invalid() {
            escape(locator, *byte);
        }
    }
}

fn escape(locator: &mut String, byte: u8) {
    // Writing to a string can't fail.
    let _ = write!(locator, "%{byte:02X}");
}

/// The components a locator names; `None` for a text that is no locator.
pub(super) fn components(locator: &str) -> Option<Vec<Vec<u8>>> {
    locator.split('/').map(component).collect()
}

fn component(text: &str) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'%' => hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?,
            byte => byte,
        });
    }
    let bad = matches!(name.as_slice(), b"" | b"." | b"..") || name.iter().any(|byte| matches!(byte, 0 | b'/'));
    (!bad).then_some(name)
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// The components for people: what is no text is replaced.
pub(super) fn display(components: &[Vec<u8>]) -> String {
    let shown: Vec<_> = components.iter().map(|name| String::from_utf8_lossy(name)).collect();
    shown.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_bytes_survive_the_way_there_and_back() {
        let path: [&[u8]; 3] = [b"100% sure\n", "gr\u{fc}n".as_bytes(), b"a\xff\xfeb"];
        let mut locator = String::new();
        for name in path {
            push(&mut locator, name);
        }
        assert_eq!(locator, "100%25 sure%0A/gr\u{fc}n/a%FF%FEb");
        assert_eq!(components(&locator).unwrap(), path);
    }

    #[test]
    fn nothing_leads_out_of_the_root() {
        for bad in [
            "", "/etc", "..", "a/../b", "a//b", "%2e%2E", "a%2Fb", "%00", "%", "%4", "%zz", "a/",
        ] {
            assert_eq!(components(bad), None, "{bad}");
        }
    }
}
