//! Bytes to text: which charset a text file is in, and decoding.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use docmill_model::{Warning, WarningCode};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::context::Context;
use crate::error::PartitionError;

/// Bytes looked at when a charset is guessed. Guessing costs more per byte than decoding does.
const SAMPLE: usize = 64 * 1024;

/// A charset docmill can decode. UTF-32 is no web encoding, so `encoding_rs` leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Web(&'static Encoding),
    Utf32 { big_endian: bool },
}

impl Charset {
    fn name(self) -> &'static str {
        match self {
            Self::Web(encoding) => encoding.name(),
            Self::Utf32 { .. } => "UTF-32",
        }
    }
}

/// Text and what had to be done to get it.
pub(crate) struct Decoded<'a> {
    /// The text, without byte order mark.
    pub(crate) text: Cow<'a, str>,
    /// Name of the charset it was in.
    pub(crate) charset: &'static str,
    /// Whether bytes that are no text in this charset were replaced by U+FFFD.
    pub(crate) replaced: bool,
}

/// The text of a file, by the charset the caller asked for or, without one, by [`decode`].
/// Replaced bytes become a warning.
pub(crate) fn decode_file<'a>(
    bytes: &'a [u8],
    declared: Option<&str>,
    cx: &mut Context,
) -> Result<Cow<'a, str>, PartitionError> {
    let mut decoded = match cx.options.encoding.as_deref().filter(|name| !name.trim().is_empty()) {
        Some(name) => {
            let charset = by_name(name).ok_or_else(|| PartitionError::UnknownEncoding(name.to_owned()))?;
            decode_as(bytes, charset)
        }
        None => decode(bytes, declared),
    };
    if decoded.text.contains(is_binary_control) {
        decoded.text = Cow::Owned(decoded.text.replace(is_binary_control, "\u{fffd}"));
        decoded.replaced = true;
    }
    if decoded.replaced {
        cx.warn(Warning::new(
            WarningCode::EncodingReplaced,
            format!(
                "bytes that are no text in {} were replaced by U+FFFD; set `encoding` if the file is in another charset",
                decoded.charset
            ),
        ));
    }
    Ok(decoded.text)
}

/// Decodes by, in this order: byte order mark, the shape of UTF-16 and UTF-32, UTF-8 when all bytes
/// are valid, `declared` (a charset named inside the file), a guess from the first 64 KB.
///
/// Valid UTF-8 outranks what a file declares because text that was re-encoded often keeps its old
/// declaration, while text in another charset is hardly ever valid UTF-8 by chance. ISO-2022-JP, whose
/// bytes are all ASCII, is the exception and told by its escape sequences.
pub(crate) fn decode<'a>(bytes: &'a [u8], declared: Option<&str>) -> Decoded<'a> {
    if let Some(charset) = by_mark(bytes).or_else(|| by_shape(bytes)) {
        return decode_as(bytes, charset);
    }
    let declared = declared.and_then(by_name);
    let iso_2022_jp = Charset::Web(encoding_rs::ISO_2022_JP);
    // The escape sequences that switch to Japanese are ASCII, and so valid UTF-8.
    let escapes = bytes[..bytes.len().min(SAMPLE)]
        .windows(3)
        .any(|w| matches!(w, b"\x1b$B" | b"\x1b$@"))
        && (declared == Some(iso_2022_jp) || guess(bytes) == encoding_rs::ISO_2022_JP);
    if escapes {
        return decode_as(bytes, iso_2022_jp);
    }
    if std::str::from_utf8(bytes).is_ok() {
        return decode_as(bytes, Charset::Web(UTF_8));
    }
    // A declaration of UTF-16 can't be right here: it was read from bytes that are not UTF-16.
    let declared = declared.filter(|charset| {
        !matches!(charset, Charset::Utf32 { .. }) && ![UTF_8, UTF_16LE, UTF_16BE].map(Charset::Web).contains(charset)
    });
    decode_as(bytes, declared.unwrap_or_else(|| Charset::Web(guess(bytes))))
}

/// The charset of a name as programs write it (`utf_8`, `latin-1`, `cp1252`, `Shift_JIS`).
fn by_name(name: &str) -> Option<Charset> {
    let name = name.trim().to_ascii_lowercase();
    let dashed = name.replace('_', "-");
    let web = |label: &str| Encoding::for_label(label.as_bytes()).map(Charset::Web);
    match dashed.as_str() {
        "utf-32" | "utf-32-le" | "utf-32le" => return Some(Charset::Utf32 { big_endian: false }),
        "utf-32-be" | "utf-32be" => return Some(Charset::Utf32 { big_endian: true }),
        "utf-16-le" => return web("utf-16le"),
        "utf-16-be" => return web("utf-16be"),
        "utf-8-sig" => return web("utf-8"),
        "latin-1" | "iso8859-1" => return web("latin1"),
        "cp932" | "ms932" => return web("shift_jis"),
        "cp936" => return web("gbk"),
        "cp949" => return web("euc-kr"),
        "cp950" => return web("big5"),
        "cp874" => return web("windows-874"),
        "euc-jis-2004" | "eucjp" => return web("euc-jp"),
        _ => {}
    }
    web(&name).or_else(|| web(&dashed))
}

fn by_mark(bytes: &[u8]) -> Option<Charset> {
    // The UTF-32LE mark starts with the UTF-16LE mark, so it is looked for first.
    if bytes.starts_with(&[0xff, 0xfe, 0, 0]) && bytes.len().is_multiple_of(4) {
        return Some(Charset::Utf32 { big_endian: false });
    }
    if bytes.starts_with(&[0, 0, 0xfe, 0xff]) {
        return Some(Charset::Utf32 { big_endian: true });
    }
    Encoding::for_bom(bytes).map(|(encoding, _)| Charset::Web(encoding))
}

/// UTF-16 and UTF-32 without a mark, told by where the zero bytes of ASCII characters stand.
fn by_shape(bytes: &[u8]) -> Option<Charset> {
    let even = bytes.len().min(4096) & !3;
    let sample = bytes.get(..even)?;
    if sample.len() < 4 {
        return None;
    }
    let mut zeros = [0usize; 4];
    for (i, byte) in sample.iter().enumerate() {
        if *byte == 0 {
            zeros[i % 4] += 1;
        }
    }
    let units = sample.len() / 4;
    // In UTF-32 the top byte is always 0 and the one below it is at most 0x10.
    if zeros[0] == units && zeros[1] * 10 >= units * 9 && zeros[3] == 0 {
        return Some(Charset::Utf32 { big_endian: true });
    }
    if zeros[3] == units && zeros[2] * 10 >= units * 9 && zeros[0] == 0 {
        return Some(Charset::Utf32 { big_endian: false });
    }
    let (high_first, low_first) = (zeros[0] + zeros[2], zeros[1] + zeros[3]);
    // Bytes of Latin text in an 8-bit charset that happens to hold a zero or two.
    let latin = sample.iter().filter(|b| matches!(b, b' ' | b'a'..=b'z')).count();
    if (high_first + low_first) * 8 < sample.len() && latin * 5 > sample.len() * 2 {
        return None;
    }
    let candidate = match (high_first, low_first) {
        (0, 0) => utf16_without_zeros(sample)?,
        (be, le) if be > 4 * le => UTF_16BE,
        (be, le) if le > 4 * be => UTF_16LE,
        _ => return None,
    };
    is_clean_utf16(sample, candidate).then_some(Charset::Web(candidate))
}

/// UTF-16 of Japanese or Chinese without a single ASCII character: one byte of every pair falls in
/// the few rows of kana, ideographs and their punctuation, with kana or punctuation among them.
fn utf16_without_zeros(sample: &[u8]) -> Option<&'static Encoding> {
    if std::str::from_utf8(sample).is_ok() {
        return None;
    }
    let rows = |offset: usize| {
        let row = sample.iter().skip(offset).step_by(2);
        let typical = row
            .clone()
            .filter(|b| matches!(b, 0x20 | 0x30 | 0x4e..=0x9f | 0xac..=0xd7 | 0xff))
            .count();
        let marks = row.filter(|b| **b == 0x30).count();
        let units = sample.len() / 2;
        typical * 100 >= units * 95 && marks * 20 >= units
    };
    match (rows(0), rows(1)) {
        (true, false) => Some(UTF_16BE),
        (false, true) => Some(UTF_16LE),
        _ => None,
    }
}

/// Whether the sample decodes without lone surrogates and without control characters.
fn is_clean_utf16(sample: &[u8], encoding: &'static Encoding) -> bool {
    let (text, replaced) = encoding.decode_without_bom_handling(sample);
    // A pair cut in two by the end of the sample is no fault.
    let text = text.trim_end_matches('\u{fffd}');
    let odd = text
        .chars()
        .filter(|c| is_binary_control(*c) || *c == '\u{fffd}')
        .count();
    if replaced {
        odd == 0
    } else {
        odd * 100 <= text.chars().count()
    }
}

fn is_binary_control(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{e}'..='\u{1a}' | '\u{1c}'..='\u{1f}')
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, sample.len() == bytes.len());
    detector.guess(None, Utf8Detection::Allow)
}

fn decode_as(bytes: &[u8], charset: Charset) -> Decoded<'_> {
    let (text, replaced) = match charset {
        Charset::Web(encoding) => encoding.decode_with_bom_removal(bytes),
        Charset::Utf32 { big_endian } => {
            let (text, replaced) = decode_utf32(bytes, big_endian);
            (Cow::Owned(text), replaced)
        }
    };
    Decoded {
        text,
        charset: charset.name(),
        replaced,
    }
}

fn decode_utf32(bytes: &[u8], big_endian: bool) -> (String, bool) {
    let mut text = String::with_capacity(bytes.len() / 4);
    let mut replaced = !bytes.len().is_multiple_of(4);
    for unit in bytes.chunks_exact(4) {
        let unit = [unit[0], unit[1], unit[2], unit[3]];
        let code = if big_endian {
            u32::from_be_bytes(unit)
        } else {
            u32::from_le_bytes(unit)
        };
        match char::from_u32(code) {
            Some('\u{feff}') if text.is_empty() => {}
            Some(c) => text.push(c),
            None => {
                replaced = true;
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
    (text, replaced)
}

/// Whether bytes are text in any charset docmill reads, rather than binary data.
///
/// Text in UTF-16 or UTF-32 counts as text; otherwise at most one byte in ten of the sample may be a
/// control character that text has no use for, and UTF-8 that is valid may have a few more.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(8192)];
    if sample.is_empty() || by_mark(sample).is_some() || by_shape(sample).is_some() {
        return true;
    }
    let controls = sample.iter().filter(|b| is_binary_control(char::from(**b))).count();
    let high = sample.iter().filter(|b| **b >= 0x80).count();
    let valid = match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    if valid {
        return controls * 5 <= sample.len();
    }
    // Legacy charsets have no control characters; compressed data has about one in ten and more.
    controls * 25 <= sample.len() || (sample.len() < 64 && controls * 10 <= sample.len() && high * 4 <= sample.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|u| if big_endian { u.to_be_bytes() } else { u.to_le_bytes() })
            .collect()
    }

    #[test]
    fn marks_and_shapes_of_utf16_and_utf32() {
        for text in ["plain, ascii\nlines", "日本語の文章です。これは、かな交じり。"] {
            for big_endian in [true, false] {
                assert_eq!(decode(&utf16(text, big_endian), None).text, text);
                let marked = utf16(&format!("\u{feff}{text}"), big_endian);
                assert_eq!(decode(&marked, None).text, text);
            }
        }
        let utf32: Vec<u8> = "abc def".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
        assert_eq!(decode(&utf32, None).text, "abc def");
        assert_eq!(decode(b"\xef\xbb\xbfabc", None).text, "abc");
    }

    #[test]
    fn legacy_charsets_are_guessed_or_taken_as_declared() {
        let text = "Все люди рождаются свободными и равными в своём достоинстве";
        let (bytes, _, _) = encoding_rs::KOI8_R.encode(text);
        assert_eq!(decode(&bytes, None).text, text);
        let (bytes, _, _) = encoding_rs::WINDOWS_1250.encode("Příliš žluťoučký");
        assert_eq!(decode(&bytes, Some("windows-1250")).text, "Příliš žluťoučký");
        let (bytes, _, _) = encoding_rs::ISO_2022_JP.encode("日本語の文章です。");
        assert_eq!(decode(&bytes, None).text, "日本語の文章です。");
        // UTF-8 text that claims to be Latin-1.
        assert_eq!(decode("café".as_bytes(), Some("iso-8859-1")).text, "café");
    }

    #[test]
    fn names_as_programs_write_them() {
        for name in [
            "utf_8",
            "UTF-8",
            "latin-1",
            "cp1252",
            "utf_16_le",
            "Shift_JIS",
            "cp949",
            "tis-620",
            "utf-32",
        ] {
            assert!(by_name(name).is_some(), "{name}");
        }
        assert_eq!(by_name("klingon"), None);
    }

    #[test]
    fn a_stray_zero_makes_no_utf16() {
        let decoded = decode(
            b"caf\xe9 \xff\xfe \0 ok text here\ncaf\xe9 \xff\xfe \0 ok text here\n",
            None,
        );
        assert!(decoded.text.contains("ok text here"));
    }

    #[test]
    fn binary_data_is_no_text() {
        let noise: Vec<u8> = (0u32..4096)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert!(!is_text(&noise));
        assert!(is_text("naïve".as_bytes()));
        assert!(is_text(&utf16("some text", false)));
        assert!(is_text(b"a,b,c\n1,2,\"un\0\x01\xff,9\n"));
    }
}
