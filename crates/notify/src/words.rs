//! Text for people: what strangers chose is made harmless, numbers are made readable.

use docmill_model::time::{Micros, SECOND};
use url::Url;

/// Endings that people give to files and that no mail program takes for a domain.
const ENDINGS: &[&str] = &[
    "bmp", "csv", "doc", "docm", "docx", "dot", "dotx", "eml", "epub", "gif", "gz", "heic", "htm", "html", "jpeg",
    "jpg", "json", "jsonl", "log", "msg", "odp", "ods", "odt", "pdf", "png", "pot", "potx", "ppt", "pptm", "pptx",
    "rst", "rtf", "svg", "tar", "tif", "tiff", "tsv", "txt", "webp", "xls", "xlsm", "xlsx", "xml", "yaml", "yml",
];

/// Word joiner: invisible, and no mail program sees a link across it.
const JOINER: char = '\u{2060}';

/// One line of at most `most` characters, the last of which is then `…`. Control characters, line breaks
/// and other white space become single spaces; characters that reorder or hide text are left out.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most.saturating_mul(4)));
    let (mut count, mut space) = (0, false);
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            space = count > 0;
            continue;
        }
        if hides(c) {
            continue;
        }
        if count + usize::from(space) >= most {
            line.pop();
            line.truncate(line.trim_end().len());
            line.push('…');
            return line;
        }
        if std::mem::take(&mut space) {
            line.push(' ');
            count += 1;
        }
        line.push(c);
        count += 1;
    }
    line
}

/// Whether a character reorders the text around it or can't be seen.
fn hides(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// One line in which mail programs, which like to make links of what looks like an address, find none:
/// a word joiner stands inside of whatever could be one. Plain file names stay as they are.
pub(crate) fn inert(text: &str, most: usize) -> String {
    let line = one_line(text, most);
    let mut safe = String::with_capacity(line.len() + 16);
    for (index, word) in line.split(' ').enumerate() {
        if index > 0 {
            safe.push(' ');
        }
        if looks_linkable(word) {
            for c in word.chars() {
                safe.push(c);
                if matches!(c, '.' | '@' | ':' | '。' | '．' | '｡') {
                    safe.push(JOINER);
                }
            }
        } else {
            safe.push_str(word);
        }
    }
    safe
}

fn looks_linkable(word: &str) -> bool {
    if word.contains(['@', '。', '．', '｡']) || word.contains("//") {
        return true;
    }
    let lower = word.to_lowercase();
    if lower.starts_with("www.") || ["tel:", "sms:", "http:", "https:"].iter().any(|s| lower.contains(s)) {
        return true;
    }
    let bare = lower.trim_matches(|c: char| !c.is_alphanumeric());
    let Some((_, after)) = bare.split_once('.') else {
        return false;
    };
    // A path behind the domain, or a last label that is no known ending of a file.
    if after.contains(['/', ':', '?', '#']) {
        return true;
    }
    let last = after.rsplit('.').next().unwrap_or_default();
    last.chars().count() >= 2 && last.chars().any(char::is_alphabetic) && !ENDINGS.contains(&last)
}

/// A link of our own as it may stand in a mail: http or https, ASCII, not longer than a header line.
pub(crate) fn link(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let fits = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= 900;
    let clean = url
        .as_str()
        .bytes()
        .all(|b| b.is_ascii_graphic() && !b"<>\"'`\\".contains(&b));
    (fits && clean).then(|| url.to_string())
}

/// `1 file`, `2,500 files`.
pub(crate) fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { more })
}

/// A number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span for people: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn span(span: Micros) -> String {
    let span = span.max(0);
    if span < 10 * SECOND {
        let tenths = (span + 50_000) / 100_000;
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = (span + SECOND / 2) / SECOND;
    let pair = |high: i64, unit: &str, low: i64, small: &str| match low {
        0 => format!("{high} {unit}"),
        _ => format!("{high} {unit} {low} {small}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// An instant for people: `2026-06-22 11:37 UTC`.
pub(crate) fn minute(at: Micros) -> String {
    let text = docmill_model::time::iso8601(at);
    let day = text.get(..10).unwrap_or_default();
    let time = text.get(11..16).unwrap_or_default();
    format!("{day} {time} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_plain_and_short() {
        assert_eq!(one_line(" a\r\n\tb\u{2028}c\0d ", 20), "a b c d");
        assert_eq!(one_line("in\u{202e}voice\u{200b}", 20), "invoice");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("abcd efg", 6), "abcd…");
        assert_eq!(one_line("", 6), "");
        assert_eq!(one_line("äöü€", 3), "äö…");
    }

    #[test]
    fn what_looks_like_a_link_is_broken_and_file_names_are_not() {
        for plain in [
            "report.pdf",
            "Q3.2026 report.final.docx",
            "v1.2",
            "scan (1).tiff",
            "3.5",
            "Dr. Who",
            "notes.txt,",
            ".config",
            "12:30",
            "A/B",
            "e.g.",
        ] {
            assert_eq!(inert(plain, 100), plain);
        }
        for link in [
            "https://evil.example/pay",
            "evil.example",
            "www.evil.pdf",
            "evil.co/report.pdf",
            "ana@example.com",
            "HTTP:evil",
            "evil.example?x.pdf",
            "evil.zip",
            "tel:+431234",
            "evil.md.",
            "evil。example",
            "see evil.example now",
        ] {
            let safe = inert(link, 100);
            assert!(safe.contains(JOINER), "{link}");
            assert_eq!(safe.replace(JOINER, ""), link);
        }
    }

    #[test]
    fn links_of_our_own_are_checked() {
        assert_eq!(
            link("https://mill.example/jobs/1").as_deref(),
            Some("https://mill.example/jobs/1")
        );
        assert_eq!(
            link("https://mill.example/a b\"").as_deref(),
            Some("https://mill.example/a%20b%22")
        );
        for wrong in [
            "javascript:alert(1)",
            "mill.example",
            "data:text/html,x",
            "https://mill.example/'",
        ] {
            assert!(
                link(wrong).is_none_or(|link| link.starts_with("https://mill.example/%27")),
                "{wrong}"
            );
        }
        assert_eq!(link(&format!("https://mill.example/{}", "x".repeat(900))), None);
    }

    #[test]
    fn numbers_and_spans() {
        assert_eq!(counted(1, "file", "files"), "1 file");
        assert_eq!(counted(1_234_567, "file", "files"), "1,234,567 files");
        assert_eq!(span(-1), "0.0 s");
        assert_eq!(span(9_960_000), "10.0 s");
        assert_eq!(span(12 * SECOND), "12 s");
        assert_eq!(span(200 * SECOND), "3 min 20 s");
        assert_eq!(span(3_600 * SECOND), "1 h");
        assert_eq!(span(100 * 3_600 * SECOND), "4 d 4 h");
        assert_eq!(minute(1_750_592_241_648_000), "2025-06-22 11:37 UTC");
    }
}
