//! Amazon Web Services: keys and the signature made with them.

mod machine;
mod sign;
mod sts;

pub use machine::Machine;
pub use sign::{Key, Scope, sign};
pub use sts::ask_sts;

/// Amazon's domain for a region.
pub fn domain(region: &str) -> &'static str {
    match region.starts_with("cn-") {
        true => "amazonaws.com.cn",
        false => "amazonaws.com",
    }
}

/// Base of the URL of Amazon's security token service in a region.
pub fn sts_of(region: &str) -> String {
    format!("https://sts.{region}.{}", domain(region))
}

/// Whether a text can be a region: it becomes part of host names.
pub fn is_region(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 40 && text.bytes().all(plain)
}
