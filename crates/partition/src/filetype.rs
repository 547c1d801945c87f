//! The types of file docmill reads.

/// A type of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// Windows bitmap.
    Bmp,
    /// Comma-separated (or otherwise delimited) values.
    Csv,
    /// Word document.
    Docx,
    /// E-mail message.
    Eml,
    /// Nothing: zero bytes and no type that needs some.
    Empty,
    /// GIF picture.
    Gif,
    /// HEIC pictures, which the decoder has to be at hand for.
    Heic,
    /// HTML page.
    Html,
    /// JPEG picture.
    Jpeg,
    /// JSON value.
    Json,
    /// Markdown.
    Md,
    /// One JSON value per line.
    Ndjson,
    /// PDF.
    Pdf,
    /// PNG picture.
    Png,
    /// PowerPoint presentation.
    Pptx,
    /// TIFF pictures, one to a page.
    Tiff,
    /// Tab-separated values.
    Tsv,
    /// Plain text and program code.
    Txt,
    /// WebP picture.
    Webp,
    /// Excel workbook.
    Xlsx,
    /// XML.
    Xml,
}

impl FileType {
    /// Types a file can be named by, in alphabetical order.
    pub const SUPPORTED: &'static [FileType] = &[
        Self::Bmp,
        Self::Csv,
        Self::Docx,
        Self::Eml,
        Self::Gif,
        Self::Html,
        Self::Jpeg,
        Self::Json,
        Self::Md,
        Self::Ndjson,
        Self::Pdf,
        Self::Png,
        Self::Pptx,
        Self::Tiff,
        Self::Tsv,
        Self::Txt,
        Self::Webp,
        Self::Xlsx,
        Self::Xml,
    ];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bmp => "BMP",
            Self::Gif => "GIF",
            Self::Heic => "HEIC",
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Tiff => "TIFF",
            Self::Webp => "WebP",
            Self::Csv => "CSV",
            Self::Docx => "DOCX",
            Self::Eml => "EML",
            Self::Empty => "empty",
            Self::Html => "HTML",
            Self::Json => "JSON",
            Self::Md => "Markdown",
            Self::Ndjson => "NDJSON",
            Self::Pdf => "PDF",
            Self::Pptx => "PPTX",
            Self::Tsv => "TSV",
            Self::Txt => "text",
            Self::Xlsx => "XLSX",
            Self::Xml => "XML",
        }
    }

    /// MIME type as written to `metadata.filetype`.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Bmp => "image/bmp",
            Self::Gif => "image/gif",
            Self::Heic => "image/heic",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Tiff => "image/tiff",
            Self::Webp => "image/webp",
            Self::Csv => "text/csv",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Eml => "message/rfc822",
            Self::Empty => "inode/x-empty",
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Md => "text/markdown",
            Self::Ndjson => "application/x-ndjson",
            Self::Pdf => "application/pdf",
            Self::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            Self::Tsv => "text/tsv",
            Self::Txt => "text/plain",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Xml => "application/xml",
        }
    }

    /// Whether files of this type are binary: no text file can be one of them.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Docx | Self::Pdf | Self::Pptx | Self::Xlsx) || self.is_picture()
    }

    /// Whether files of this type are pictures of pages.
    pub fn is_picture(self) -> bool {
        matches!(
            self,
            Self::Bmp | Self::Gif | Self::Heic | Self::Jpeg | Self::Png | Self::Tiff | Self::Webp
        )
    }

    /// The type a file name's extension (without dot, any case) stands for. Program code, logs and
    /// configuration files are [`FileType::Txt`].
    pub(crate) fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "bmp" | "dib" => Self::Bmp,
            "gif" => Self::Gif,
            "heic" | "heif" | "hif" => Self::Heic,
            "jpg" | "jpeg" | "jpe" | "jfif" => Self::Jpeg,
            "png" => Self::Png,
            "tif" | "tiff" => Self::Tiff,
            "webp" => Self::Webp,
            "csv" => Self::Csv,
            "docx" | "docm" | "dotx" | "dotm" => Self::Docx,
            "eml" | "p7s" | "mht" | "mhtml" => Self::Eml,
            "htm" | "html" | "xhtml" | "xht" => Self::Html,
            "json" => Self::Json,
            "md" | "markdown" | "mdown" | "mkd" | "mdx" => Self::Md,
            "ndjson" | "jsonl" => Self::Ndjson,
            "pdf" => Self::Pdf,
            "pptx" | "pptm" | "ppsx" | "ppsm" | "potx" => Self::Pptx,
            "tsv" | "tab" => Self::Tsv,
            "xlsx" | "xlsm" | "xltx" | "xltm" => Self::Xlsx,
            "xml" | "xsd" | "xsl" | "xslt" | "rss" | "atom" | "svg" => Self::Xml,
            "txt" | "text" | "log" | "rst" | "org" | "tex" | "srt" | "vtt" => Self::Txt,
            "yaml" | "yml" | "toml" | "ini" | "cfg" | "conf" | "properties" | "env" | "sql" => Self::Txt,
            extension if is_code_extension(extension) => Self::Txt,
            _ => return None,
        })
    }

    /// The type a MIME type (without parameters, any case) stands for. Types that say nothing, such
    /// as `application/octet-stream`, stand for none.
    pub(crate) fn from_mime(mime: &str) -> Option<Self> {
        let mime = mime.trim().to_ascii_lowercase();
        if let Some(file_type) = Self::SUPPORTED.iter().find(|t| t.mime() == mime) {
            return Some(*file_type);
        }
        Some(match mime.as_str() {
            "image/jpg" | "image/pjpeg" => Self::Jpeg,
            "image/x-ms-bmp" | "image/x-bmp" => Self::Bmp,
            "image/x-png" => Self::Png,
            "image/heic" | "image/heif" => Self::Heic,
            "image/tif" | "image/x-tiff" => Self::Tiff,
            "application/csv" | "application/x-csv" | "text/x-csv" | "text/comma-separated-values" => Self::Csv,
            "text/x-comma-separated-values" => Self::Csv,
            "text/tab-separated-values" | "application/tsv" => Self::Tsv,
            "text/x-markdown" | "application/markdown" => Self::Md,
            "application/xhtml+xml" => Self::Html,
            "text/json" | "application/x-json" => Self::Json,
            "application/ndjson" | "application/jsonl" | "application/x-jsonl" | "application/jsonlines" => {
                Self::Ndjson
            }
            "text/xml" => Self::Xml,
            "application/x-pdf" => Self::Pdf,
            "application/vnd.ms-word.document.macroenabled.12" => Self::Docx,
            "application/vnd.ms-excel.sheet.macroenabled.12" => Self::Xlsx,
            "application/vnd.ms-powerpoint.presentation.macroenabled.12" => Self::Pptx,
            "text/yaml" | "application/yaml" | "application/x-yaml" | "text/x-yaml" => Self::Txt,
            "application/javascript" | "application/x-sh" | "application/sql" => Self::Txt,
            mime if mime.starts_with("text/x-") || mime == "text/javascript" => Self::Txt,
            mime if mime.ends_with("+xml") => Self::Xml,
            mime if mime.ends_with("+json") => Self::Json,
            _ => return None,
        })
    }

    pub(crate) fn supported_list() -> String {
        Self::SUPPORTED.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
    }
}

/// Extensions of program code: such a file is plain text whatever its content looks like.
pub(crate) fn is_code_extension(extension: &str) -> bool {
    matches!(
        extension,
        "bash"
            | "c"
            | "cc"
            | "cpp"
            | "cs"
            | "css"
            | "cxx"
            | "go"
            | "h"
            | "hpp"
            | "java"
            | "js"
            | "jsx"
            | "kt"
            | "lua"
            | "php"
            | "pl"
            | "ps1"
            | "py"
            | "r"
            | "rb"
            | "rs"
            | "scala"
            | "sh"
            | "swift"
            | "ts"
            | "tsx"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_own_mime() {
        for file_type in FileType::SUPPORTED {
            assert_eq!(FileType::from_mime(file_type.mime()), Some(*file_type));
        }
    }

    #[test]
    fn aliases() {
        assert_eq!(FileType::from_mime("Text/X-Markdown"), Some(FileType::Md));
        assert_eq!(FileType::from_mime("text/x-python"), Some(FileType::Txt));
        assert_eq!(FileType::from_mime("application/atom+xml"), Some(FileType::Xml));
        assert_eq!(FileType::from_mime("application/octet-stream"), None);
        assert_eq!(FileType::from_extension("HTM"), Some(FileType::Html));
        assert_eq!(FileType::from_extension("xlsm"), Some(FileType::Xlsx));
        assert_eq!(FileType::from_extension("rb"), Some(FileType::Txt));
        assert_eq!(FileType::from_extension("docx2"), None);
    }
}
