//! File names from clients: kept for display, never used as a path.

/// What a form part's `Content-Disposition` says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Disposition {
    /// Name of the field; empty when there is none.
    pub(crate) name: String,
    /// Name of the file as sent.
    pub(crate) filename: Option<String>,
}

impl Disposition {
    /// Reads the header as RFC 6266 defines it, with what clients make of it: names in raw UTF-8 or in
    /// an older charset, quotes escaped or not needed, and `filename*` of RFC 8187, which wins.
    pub(crate) fn parse(value: &[u8]) -> Self {
        let mut disposition = Self::default();
        let mut extended = None;
        let mut rest = after(value, b';');
        while let Some(text) = rest {
            let Some(equals) = text.iter().position(|b| matches!(b, b'=' | b';')) else {
                break;
            };
            if text[equals] == b';' {
                rest = after(text, b';');
                continue;
            }
            let key = String::from_utf8_lossy(&text[..equals]).trim().to_ascii_lowercase();
            let (value, left) = parameter_value(&text[equals + 1..]);
            rest = after(left, b';');
            match key.as_str() {
                "name" => disposition.name = String::from_utf8_lossy(&value).into_owned(),
                "filename" => disposition.filename = Some(String::from_utf8_lossy(&value).into_owned()),
                "filename*" => extended = extended_value(&value),
                _ => {}
            }
        }
        disposition.filename = extended.or(disposition.filename);
        disposition
    }
}

fn after(text: &[u8], mark: u8) -> Option<&[u8]> {
    let at = text.iter().position(|b| *b == mark)?;
    Some(&text[at + 1..])
}

/// A token or quoted string, and what follows it.
fn parameter_value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let text = text.trim_ascii_start();
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|b| *b == b';').unwrap_or(text.len());
        return (text[..end].trim_ascii_end().to_vec(), &text[end..]);
    };
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(&byte) = quoted.get(at) {
        match (byte, quoted.get(at + 1)) {
            (b'"', _) => return (value, &quoted[at + 1..]),
            // Not every backslash escapes: some clients send whole Windows paths.
            (b'\\', Some(&next @ (b'"' | b'\\'))) => {
                value.push(next);
                at += 2;
            }
            _ => {
                value.push(byte);
                at += 1;
            }
        }
    }
    (value, &[])
}

/// `charset'language'percent-encoded`; only UTF-8 is in use.
fn extended_value(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |b| *b == b'\'');
    let charset = parts.next()?;
    let _language = parts.next()?;
    let encoded = parts.next()?;
    if !charset.eq_ignore_ascii_case(b"utf-8") {
        return None;
    }
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = encoded.get(at) {
        let hex = encoded
            .get(at + 1..at + 3)
            .and_then(|two| std::str::from_utf8(two).ok());
        match (byte, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

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
    fn dispositions_are_read_in_every_spelling() {
        let parse = |text: &str| {
            let found = Disposition::parse(text.as_bytes());
            (found.name, found.filename)
        };
        let named = |name: &str, file: &str| (name.to_owned(), Some(file.to_owned()));
        assert_eq!(parse("form-data; name=\"a\""), ("a".into(), None));
        assert_eq!(
            parse("form-data; Name = a ; filename=b c.txt ;x"),
            named("a", "b c.txt")
        );
        assert_eq!(
            parse("form-data; filename=\"x; name=evil\"; name=\"a\""),
            named("a", "x; name=evil")
        );
        assert_eq!(
            parse("form-data; name=a; filename=\"q\\\"q\\\\.t\""),
            named("a", "q\"q\\.t")
        );
        assert_eq!(
            parse("form-data; name=a; filename=\"C:\\dir\\f.t\""),
            named("a", "C:\\dir\\f.t")
        );
        assert_eq!(
            parse("form-data; name=a; filename=\"f.t\"; filename*=utf-8''%E6%96%87%2.t"),
            named("a", "文%2.t")
        );
        assert_eq!(parse("form-data; name=a; filename*=latin1''%E9"), ("a".into(), None));
        for broken in [
            "",
            ";",
            "form-data",
            "form-data;;;=;\"",
            "form-data; name",
            "form-data; name=\"a",
        ] {
            parse(broken);
        }
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
