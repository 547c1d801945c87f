//! Binary formats, told by signatures and, for containers, by what is inside.

use std::borrow::Cow;
use std::io::Cursor;

use file_format::{FileFormat, Kind};

use super::{Hints, PDF_HEADER_WINDOW, ole};
use crate::charset;
use crate::error::PartitionError;
use crate::filetype::FileType;

/// Bytes of the list of brands that are looked at.
const MAX_BRANDS: usize = 256;

type Found = Result<FileType, PartitionError>;

/// What a file with a known binary signature is; `None` when it has none.
pub(super) fn by_signature(bytes: &[u8], hints: &Hints) -> Option<Found> {
    if is_pdf(bytes, hints) {
        return Some(Ok(FileType::Pdf));
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") || bytes.starts_with(b"PK\x07\x08") {
        return Some(zip(bytes, hints));
    }
    if bytes.starts_with(&ole::SIGNATURE) {
        return Some(Err(ole::describe(bytes, hints.binary())));
    }
    if bytes.starts_with(b"{\\rtf") {
        return Some(Err(unsupported("RTF")));
    }
    if let Some(picture) = picture(bytes) {
        return Some(Ok(picture));
    }
    if charset::is_text(bytes) {
        return None;
    }
    named(bytes).map(|detected| Err(unsupported(detected)))
}

/// Pictures, by their first bytes.
fn picture(bytes: &[u8]) -> Option<FileType> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => FileType::Png,
        [0xFF, 0xD8, 0xFF, ..] => FileType::Jpeg,
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => FileType::Tiff,
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => FileType::Gif,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => FileType::Webp,
        // Followed by the file's length and four reserved bytes, all zero in practice.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => FileType::Bmp,
        [_, _, _, _, b'f', b't', b'y', b'p', ..] if is_heic(bytes) => FileType::Heic,
        _ => return None,
    })
}

/// Whether the brands of an ISO media file (ISO 14496-12) say that it holds pictures compressed by HEVC
/// (ISO 23008-12, annex B.4).
fn is_heic(bytes: &[u8]) -> bool {
    let Some(&[a, b, c, d]) = bytes.first_chunk::<4>() else {
        return false;
    };
    let end = (u32::from_be_bytes([a, b, c, d]) as usize).min(MAX_BRANDS);
    // Major brand, version, compatible brands.
    let brands = bytes.get(8..bytes.len().min(end)).unwrap_or_default();
    let (brands, _) = brands.as_chunks::<4>();
    let is_hevc = |brand: &[u8; 4]| matches!(brand, b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx");
    brands.iter().any(is_hevc)
}

/// A PDF header at the start, or further on in a file that is called a PDF or is no text: a text
/// may quote a PDF header.
fn is_pdf(bytes: &[u8], hints: &Hints) -> bool {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if start.starts_with(b"%PDF-") {
        return true;
    }
    let window = &bytes[..bytes.len().min(PDF_HEADER_WINDOW)];
    window.windows(5).any(|w| w == b"%PDF-")
        && (hints.binary() == Some(FileType::Pdf) || std::str::from_utf8(bytes).is_err())
}

/// The error for binary data without a signature we know.
pub(super) fn unknown(bytes: &[u8], hints: &Hints) -> PartitionError {
    if let Some(error) = contradiction(hints) {
        return error;
    }
    match named(bytes) {
        Some(detected) => unsupported(detected),
        None if hints.extension.is_empty() => unsupported("binary data of unknown type:"),
        None => PartitionError::Unsupported {
            detected: format!(".{}", hints.extension.chars().take(16).collect::<String>()),
        },
    }
}

/// The error for content that is not what every hint says it is.
pub(super) fn contradiction(hints: &Hints) -> Option<PartitionError> {
    if hints.textual().is_some() {
        return None;
    }
    let reason = match hints.binary()? {
        FileType::Pdf => "there is no %PDF header in the first 1024 bytes",
        picture if picture.is_picture() => "it does not begin as such pictures do",
        _ => "it is not a ZIP archive, which every file of this type is",
    };
    Some(PartitionError::corrupt(hints.binary()?.name(), reason))
}

fn unsupported(detected: impl Into<String>) -> PartitionError {
    PartitionError::Unsupported {
        detected: detected.into(),
    }
}

/// Names of common types as people say them; `file-format` names the others.
fn named(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(64 * 1024)];
    let format = FileFormat::from_bytes(head);
    if format == FileFormat::ArbitraryBinaryData || format == FileFormat::PlainText || format == FileFormat::Empty {
        return None;
    }
    let short = format.short_name().unwrap_or_else(|| format.name());
    Some(match format.kind() {
        Kind::Image => format!("{short} image"),
        Kind::Audio => format!("{short} audio"),
        Kind::Video => format!("{short} video"),
        Kind::Archive | Kind::Compressed => format!("{short} archive"),
        Kind::Executable => format!("{short} executable"),
        Kind::Font => format!("{short} font"),
        _ => short.to_owned(),
    })
}

/// What a ZIP archive is, by the names of its members.
fn zip(bytes: &[u8], hints: &Hints) -> Found {
    match zip::ZipArchive::new(Cursor::new(bytes)) {
        Ok(archive) => zip_by_members(&Members::new(archive.file_names().flatten()), bytes, hints),
        Err(error) => Err(broken_zip(bytes, hints, &error)),
    }
}

/// Members that tell a format, with their letter case and path separators ignored.
#[derive(Default)]
struct Members {
    word: bool,
    sheet: bool,
    slides: bool,
    word_folder: bool,
    sheet_folder: bool,
    slides_folder: bool,
    binary_workbook: bool,
}

impl Members {
    fn new<'a>(names: impl Iterator<Item = Cow<'a, str>>) -> Self {
        let mut members = Self::default();
        for name in names.filter(|name| name.len() < 256) {
            let name = name.replace('\\', "/").to_ascii_lowercase();
            let name = name.trim_start_matches('/');
            members.word |= name == "word/document.xml";
            members.sheet |= name == "xl/workbook.xml";
            members.slides |= name == "ppt/presentation.xml";
            members.binary_workbook |= name == "xl/workbook.bin";
            members.word_folder |= name.starts_with("word/");
            members.sheet_folder |= name.starts_with("xl/");
            members.slides_folder |= name.starts_with("ppt/");
        }
        members
    }
}

fn zip_by_members(members: &Members, bytes: &[u8], hints: &Hints) -> Found {
    if members.word {
        return Ok(FileType::Docx);
    }
    if members.sheet {
        return Ok(FileType::Xlsx);
    }
    if members.slides {
        return Ok(FileType::Pptx);
    }
    if members.binary_workbook {
        return Err(unsupported("Excel binary workbook (XLSB)"));
    }
    // The main part may have another name: the readers find it by the relationships.
    if members.word_folder {
        return Ok(FileType::Docx);
    }
    if members.sheet_folder {
        return Ok(FileType::Xlsx);
    }
    if members.slides_folder {
        return Ok(FileType::Pptx);
    }
    let by_mimetype = stored_mimetype(bytes);
    if let Some(detected) = by_mimetype {
        return Err(unsupported(detected));
    }
    match hints.binary() {
        Some(FileType::Docx) => Err(PartitionError::corrupt(
            "DOCX",
            "the archive holds no word/document.xml",
        )),
        Some(FileType::Xlsx) => Err(PartitionError::corrupt("XLSX", "the archive holds no xl/workbook.xml")),
        Some(FileType::Pptx) => Err(PartitionError::corrupt(
            "PPTX",
            "the archive holds no ppt/presentation.xml",
        )),
        _ => Err(unsupported(named(bytes).unwrap_or_else(|| "ZIP archive".into()))),
    }
}

/// EPUB and OpenDocument files start with an uncompressed member `mimetype`.
fn stored_mimetype(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(256)];
    let at = |needle: &[u8]| head.windows(needle.len()).any(|w| w == needle);
    if !at(b"mimetype") {
        return None;
    }
    [
        (&b"application/epub+zip"[..], "EPUB"),
        (b"application/vnd.oasis.opendocument.text", "OpenDocument text (ODT)"),
        (
            b"application/vnd.oasis.opendocument.spreadsheet",
            "OpenDocument spreadsheet (ODS)",
        ),
        (
            b"application/vnd.oasis.opendocument.presentation",
            "OpenDocument presentation (ODP)",
        ),
    ]
    .into_iter()
    .find_map(|(mime, name)| at(mime).then_some(name))
}

/// The error for an archive whose directory can't be read, most often one cut short.
fn broken_zip(bytes: &[u8], hints: &Hints, error: &zip::result::ZipError) -> PartitionError {
    let reason = format!("the ZIP archive is damaged or cut short ({error})");
    let by_first_names = || {
        let head = &bytes[..bytes.len().min(64 * 1024)];
        let at = |needle: &[u8]| head.windows(needle.len()).any(|w| w == needle);
        [
            (&b"word/"[..], "DOCX"),
            (b"xl/w", "XLSX"),
            (b"ppt/", "PPTX"),
            (b"[Content_Types].xml", "Office Open XML"),
        ]
        .into_iter()
        .find_map(|(name, format)| at(name).then_some(format))
    };
    let format = hints
        .binary()
        .filter(|t| *t != FileType::Pdf)
        .map(FileType::name)
        .or_else(by_first_names)
        .unwrap_or("ZIP");
    PartitionError::Corrupt { format, reason }
}
