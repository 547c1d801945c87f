//! Bytes of a file to a [`Document`]: detection, one reader per format, and what is common to all.
//!
//! Everything here is a function of its input: no network, no file system, no `unsafe`. The clock is read
//! only to report how long pages took; threads are started only to read several pages of a PDF at once.
//! Callers run it in a child process; a reader may still be asked to stop early by the limits of
//! [`ParseLimits`].

mod charset;
mod classify;
mod context;
mod csv;
mod detect;
mod docx;
mod draw;
mod email;
mod error;
mod filetype;
mod html;
mod inspect;
mod json;
mod markdown;
mod ooxml;
mod pdf;
mod pptx;
mod text;
mod xlsx;
mod xml;

use std::collections::HashMap;
use std::sync::Arc;

use docmill_model::element::assign_element_ids;
use docmill_model::hierarchy::assign_parents;
use docmill_model::language;
use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, Element, ElementType, Warning, WarningCode};

pub use context::{Progress, Tool, Tools};
pub use detect::detect;
pub use draw::{Drawing, DrawnPage, PagePicture, draw, draw_pages};
pub use error::PartitionError;
pub use filetype::FileType;
pub use inspect::inspect;

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

/// For measurements: reads a PDF's text with positions, without laying it out; pages and bytes of text.
pub fn read_pdf_text(bytes: &Arc<Vec<u8>>) -> Result<(usize, usize), PartitionError> {
    pdf::read_text(bytes)
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
    partition_with(input, options, limits, &Tools::default(), progress)
}

/// As [`partition`], with tools.
///
/// # Errors
/// As [`partition`], and [`PartitionError::ToolsNeeded`] as [`Tool::OnRequest`] says.
pub fn partition_with(
    input: &Input,
    options: &PartitionOptions,
    limits: &ParseLimits,
    tools: &Tools<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Document, PartitionError> {
    let file_type = detect(input)?;
    let mut cx = Context::new(input.filename.as_deref(), options, limits, progress).with_tools(*tools);
    read(file_type, &input.bytes, &mut cx)?;
    let mut document = cx.into_document();
    finish(&mut document, input, file_type, options);
    Ok(document)
}

/// Runs the reader of a format.
fn read(file_type: FileType, bytes: &Arc<Vec<u8>>, cx: &mut Context) -> Result<(), PartitionError> {
    match file_type {
        FileType::Empty => Ok(()),
        FileType::Txt => text::partition(bytes, cx),
        FileType::Md => markdown::partition(bytes, cx),
        FileType::Html => html::partition(bytes, cx),
        FileType::Csv | FileType::Tsv => csv::partition(bytes, file_type, cx),
        FileType::Json => json::partition(bytes, cx),
        FileType::Ndjson => json::partition_lines(bytes, cx),
        FileType::Xml => xml::partition(bytes, cx),
        FileType::Docx => docx::partition(bytes, cx),
        FileType::Pptx => pptx::partition(bytes, cx),
        FileType::Xlsx => xlsx::partition(bytes, cx),
        FileType::Eml => email::partition(bytes, cx),
        FileType::Pdf => pdf::partition(bytes, cx),
        FileType::Bmp
        | FileType::Gif
        | FileType::Heic
        | FileType::Jpeg
        | FileType::Png
        | FileType::Tiff
        | FileType::Webp => pdf::partition_picture(bytes, file_type, cx),
    }
}

/// Partitions a file found within another, such as an attachment, into a document of its own whose
/// elements carry the file's name and type. `cx` is that of the outer file.
pub(crate) fn partition_embedded(input: &Input, cx: &mut Context) -> Result<Document, PartitionError> {
    let file_type = detect(input)?;
    let mut inner = cx.embedded(input.filename.as_deref());
    read(file_type, &input.bytes, &mut inner)?;
    let mut document = inner.into_document();
    for element in &mut document.elements {
        let metadata = &mut element.metadata;
        metadata.filename = metadata.filename.take().or_else(|| input.filename.clone());
        metadata.filetype = metadata.filetype.take().or_else(|| Some(file_type.mime().to_owned()));
    }
    Ok(document)
}

/// What every format has in common: document-wide metadata, ids, parents, exclusions, warnings.
fn finish(document: &mut Document, input: &Input, file_type: FileType, options: &PartitionOptions) {
    let is_empty = document
        .elements
        .iter()
        .all(|element| element.kind == ElementType::PageBreak);
    if is_empty && file_type != FileType::Empty && !input.bytes.is_empty() {
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
            metadata.place = metadata.coordinates.take();
        }
    }
    if !options.include_page_breaks {
        document
            .elements
            .retain(|element| element.kind != ElementType::PageBreak);
    }
    rehash_ids(&mut document.elements);
    assign_parents(&mut document.elements);
    if !options.exclude_elements.is_empty() {
        document
            .elements
            .retain(|element| !options.exclude_elements.contains(&element.kind));
    }
}

/// Gives every element its id. Elements that came with ids (a JSON file of elements) keep their
/// parents under the new ids; a parent that is not in the document is forgotten.
fn rehash_ids(elements: &mut [Element]) {
    let old: Vec<String> = elements.iter_mut().map(|e| std::mem::take(&mut e.element_id)).collect();
    assign_element_ids(elements);
    if old.iter().all(String::is_empty) {
        return;
    }
    let new: HashMap<&str, String> = old
        .iter()
        .map(String::as_str)
        .zip(elements.iter().map(|e| e.element_id.clone()))
        .filter(|(old, _)| !old.is_empty())
        .collect();
    for element in elements {
        let parent = element.metadata.parent_id.take();
        element.metadata.parent_id = parent.and_then(|id| new.get(id.as_str()).cloned());
    }
}
