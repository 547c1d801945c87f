//! The types of file docmill reads.

/// A type of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// Comma-separated (or otherwise delimited) values.
    Csv,
    /// Word document.
    Docx,
    /// E-mail message.
    Eml,
    /// Nothing: zero bytes and no type that needs some.
    Empty,
    /// HTML page.
    Html,
    /// JSON value.
    Json,
    /// Markdown.
    Md,
    /// One JSON value per line.
    Ndjson,
    /// PDF.
    Pdf,
    /// PowerPoint presentation.
    Pptx,
    /// Tab-separated values.
    Tsv,
    /// Plain text and program code.
    Txt,
    /// Excel workbook.
    Xlsx,
    /// XML.
    Xml,
}

impl FileType {
    /// Types a file can be named by, in alphabetical order.
    pub const SUPPORTED: &'static [FileType] = &[
        Self::Csv,
        Self::Docx,
        Self::Eml,
        Self::Html,
        Self::Json,
        Self::Md,
        Self::Ndjson,
        Self::Pdf,
        Self::Pptx,
        Self::Tsv,
        Self::Txt,
        Self::Xlsx,
        Self::Xml,
    ];

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
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

    pub(crate) fn supported_list() -> String {
        Self::SUPPORTED.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
    }
}
