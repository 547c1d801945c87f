//! Bytes of a file to a [`Document`]: detection, one reader per format, and what is common to all.
//!
//! Everything here is a pure function of its input: no clock, no network, no file system, no threads,
//! no `unsafe`. Callers run it in a child process; a reader may still be asked to stop early by the
//! limits of [`ParseLimits`].

mod charset;
mod classify;
mod context;
mod csv;
mod detect;
mod docx;
mod email;
mod error;
mod filetype;
mod html;
mod json;
mod language;
mod markdown;
mod ooxml;
mod pdf;
mod pptx;
mod text;
mod xlsx;
mod xml;

use std::sync::Arc;

use docmill_model::element::assign_element_ids;
use docmill_model::hierarchy::assign_parents;
use docmill_model::limits::ParseLimits;
use docmill_model::settings::{PartitionOptions, Strategy};
use docmill_model::{Document, ElementType, Warning, WarningCode};

pub use context::Progress;
pub use detect::detect;
pub use error::PartitionError;
pub use filetype::FileType;

use context::Context;

/// A file to partition.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its content.
    pub bytes: Arc<Vec<u8>>,
    /// Its base name; decides nothing but the last resort of detection, and is copied into metadata.
    pub filename: Option<String>,
    /// The MIME type its sender declared.
    pub content_type: Option<String>,
}

/// Partitions one file.
///
/// `progress` is called now and then while the work advances; a caller can take its silence for a
/// stall.
pub fn partition(
    input: &Input,
    options: &PartitionOptions,
    limits: &ParseLimits,
    progress: &mut dyn FnMut(Progress),
) -> Result<Document, PartitionError> {
    let file_type = detect(input)?;
    let mut cx = Context::new(input.filename.as_deref(), options, limits, progress);
    let bytes = &input.bytes;
    match file_type {
        FileType::Empty => {}
        FileType::Txt => text::partition(bytes, &mut cx)?,
        FileType::Md => markdown::partition(bytes, &mut cx)?,
        FileType::Html => html::partition(bytes, &mut cx)?,
        FileType::Csv | FileType::Tsv => csv::partition(bytes, file_type, &mut cx)?,
        FileType::Json => json::partition(bytes, &mut cx)?,
        FileType::Ndjson => json::partition_lines(bytes, &mut cx)?,
        FileType::Xml => xml::partition(bytes, &mut cx)?,
        FileType::Docx => docx::partition(bytes, &mut cx)?,
        FileType::Pptx => pptx::partition(bytes, &mut cx)?,
        FileType::Xlsx => xlsx::partition(bytes, &mut cx)?,
        FileType::Eml => email::partition(bytes, &mut cx)?,
        FileType::Pdf => pdf::partition(bytes, &mut cx)?,
    }
    let mut document = cx.into_document();
    finish(&mut document, input, file_type, options);
    Ok(document)
}

/// What every format has in common: document-wide metadata, ids, parents, exclusions, warnings.
fn finish(document: &mut Document, input: &Input, file_type: FileType, options: &PartitionOptions) {
    if document.elements.is_empty() && file_type != FileType::Empty && !input.bytes.is_empty() {
        document.warnings.push(Warning::new(
            WarningCode::NoElements,
            format!(
                "no text was found in this {} file of {} bytes",
                file_type.name(),
                input.bytes.len()
            ),
        ));
    }
    language::assign(&mut document.elements, &options.languages);
    for element in &mut document.elements {
        let metadata = &mut element.metadata;
        if metadata.filename.is_none() {
            metadata.filename.clone_from(&input.filename);
        }
        if metadata.filetype.is_none() {
            metadata.filetype = Some(file_type.mime().to_owned());
        }
        if !options.coordinates {
            metadata.coordinates = None;
        }
    }
    if !options.include_page_breaks {
        document
            .elements
            .retain(|element| element.kind != ElementType::PageBreak);
    }
    assign_element_ids(&mut document.elements);
    assign_parents(&mut document.elements);
    if !options.exclude_elements.is_empty() {
        document
            .elements
            .retain(|element| !options.exclude_elements.contains(&element.kind));
    }
    if !options.extract_image_block_types.is_empty() && options.strategy != Strategy::Fast {
        document.warnings.push(Warning::new(
            WarningCode::ImageBlocksNotExtracted,
            format!(
                "no image_base64 for element types {}: this version does not extract pictures",
                options.extract_image_block_types.join(", ")
            ),
        ));
    }
}
