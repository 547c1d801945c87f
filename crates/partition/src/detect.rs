//! What type a file is: by content first, then by declared type, then by extension.

mod binary;
mod ole;
#[cfg(test)]
mod tests;
mod textual;

use crate::Input;
use crate::charset;
use crate::error::PartitionError;
use crate::filetype::{FileType, is_code_extension};

/// Bytes of a text file looked at to tell what kind of text it is.
const TEXT_SAMPLE: usize = 64 * 1024;

/// Bytes within which a PDF header may stand (ISO 32000 readers accept leading junk).
const PDF_HEADER_WINDOW: usize = 1024;

/// The type of a file, or an error that names what it is instead.
///
/// - Zero bytes: [`FileType::Empty`], unless name or declared type say PDF, DOCX, PPTX or XLSX, none
///   of which can be empty.
/// - Binary formats are told by their content alone; a wrong name or declared type changes nothing.
///   Old Office files, encrypted Office files, pictures, archives and so on are named in the error.
/// - Text is of the type its declared content type says, else its extension; `text/plain`,
///   `application/octet-stream` and unknown extensions leave it to the text's own shape (JSON,
///   NDJSON, XML, HTML, e-mail, delimited values), last of all plain text.
/// - One exception: text that starts with `<!doctype html` or `<html` is HTML even when it is named
///   `.txt` or `.md`, because pages saved under such names are common and their tags are no text.
///   Program code keeps to its extension.
pub fn detect(input: &Input) -> Result<FileType, PartitionError> {
    let bytes: &[u8] = &input.bytes;
    let hints = Hints::of(input);
    if bytes.is_empty() {
        return match hints.binary() {
            Some(file_type) => Err(PartitionError::Empty(file_type.name())),
            None => Ok(FileType::Empty),
        };
    }
    if let Some(found) = binary::by_signature(bytes, &hints) {
        return found;
    }
    let is_text = charset::is_text(bytes);
    if !is_text && hints.textual().is_none() {
        return Err(binary::unknown(bytes, &hints));
    }
    if let Some(error) = binary::contradiction(&hints) {
        return Err(error);
    }
    if !is_text && charset_is_hopeless(bytes) {
        return Err(binary::unknown(bytes, &hints));
    }
    Ok(textual::refine(bytes, &hints))
}

/// Mostly zero bytes or control characters: not even a damaged text file.
fn charset_is_hopeless(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(8192)];
    let controls = sample.iter().filter(|b| matches!(b, 0..=8 | 14..=26 | 28..=31)).count();
    controls * 20 > sample.len()
}

/// What the sender says about the file.
struct Hints {
    /// Type by declared MIME type.
    declared: Option<FileType>,
    /// Type by extension.
    named: Option<FileType>,
    /// The declared MIME type is `text/plain`, which says no more than "some text".
    declared_plain: bool,
    /// Extension, lower case.
    extension: String,
}

impl Hints {
    fn of(input: &Input) -> Self {
        let mime = input.content_type.as_deref().unwrap_or_default();
        let mime = mime.split(';').next().unwrap_or_default().trim();
        let name = input.filename.as_deref().unwrap_or_default();
        let extension = match name.rsplit_once('.') {
            Some((_, extension)) => extension.to_ascii_lowercase(),
            None => String::new(),
        };
        let declared = FileType::from_mime(mime);
        Self {
            declared,
            named: FileType::from_extension(&extension),
            declared_plain: declared == Some(FileType::Txt),
            extension,
        }
    }

    /// The first hint that names a binary format docmill reads.
    fn binary(&self) -> Option<FileType> {
        [self.declared, self.named]
            .into_iter()
            .flatten()
            .find(|t| t.is_binary())
    }

    /// The most telling hint for a text: a special declared type, then the extension, then plain.
    fn textual(&self) -> Option<FileType> {
        let declared = self.declared.filter(|t| !t.is_binary());
        let named = self.named.filter(|t| !t.is_binary());
        match declared {
            Some(FileType::Txt) | None => named.or(declared),
            special => special,
        }
    }

    fn is_code(&self) -> bool {
        is_code_extension(&self.extension)
    }
}
