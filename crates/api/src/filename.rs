//! File names from clients: kept for display, never used as a path.

/// Characters a name is cut to.
const MAX_CHARS: usize = 255;

/// The name without folders, control characters and direction overrides, of bounded length; `file`
/// when nothing is left. A long name keeps its extension.
pub(crate) fn clean(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let base: String = base.chars().filter(|c| !c.is_control() && !reorders(*c)).collect();
    let base = base.trim();
    if base.is_empty() || base.chars().all(|c| c == '.') {
        return "file".to_owned();
    }
    let count = base.chars().count();
    if count <= MAX_CHARS {
        return base.to_owned();
    }
    let extension: String = match base.rfind('.') {
        Some(dot) if base[dot..].chars().count() <= 16 => base[dot..].to_owned(),
        _ => String::new(),
    };
    let keep = MAX_CHARS - extension.chars().count();
    base.chars().take(keep).chain(extension.chars()).collect()
}

/// Bidirectional controls can make `exe.pdf` out of a name that ends in `fdp.exe`.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A `Content-Disposition` value that offers `name` for saving, by RFC 6266 with RFC 8187 encoding.
pub(crate) fn attachment(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_become_harmless() {
        assert_eq!(clean("../../etc/passwd"), "passwd");
        assert_eq!(clean("C:\\temp\\report.pdf"), "report.pdf");
        assert_eq!(clean("a\0b\r\nc.txt"), "abc.txt");
        assert_eq!(clean("invoice\u{202e}fdp.exe"), "invoicefdp.exe");
        assert_eq!(clean(".."), "file");
        assert_eq!(clean(""), "file");
        assert_eq!(clean("dir/"), "file");
        assert_eq!(clean("naïve 文件 🙂.md"), "naïve 文件 🙂.md");
        let long = clean(&format!("{}.docx", "x".repeat(5_000)));
        assert!(long.chars().count() == MAX_CHARS && long.ends_with(".docx"));
    }

    #[test]
    fn a_download_header_is_ascii_and_holds_the_name() {
        assert_eq!(
            attachment("a \"b\".json"),
            "attachment; filename=\"a__b_.json\"; filename*=UTF-8''a%20%22b%22.json"
        );
        assert!(attachment("文.json").ends_with("UTF-8''%E6%96%87.json"));
    }
}
