//! Reader of PDF files: their text layer, laid out.
//!
//! The engine opens the file, mending its list of pages where that is broken ([`repair`]), follows the
//! content streams ([`interpret`]) with what the fonts say ([`fonts`]), or a second engine does ([`opened`]), and gives
//! characters with their places ([`device`]), without those that nobody sees ([`visibility`]), with the
//! values of form fields ([`forms`]) and what a tagged file says of them ([`structure`]), on several pages
//! of a long file at a time ([`ahead`]); everything after that is pure: characters to segments of text
//! ([`segment`], [`sizes`]), tagged tables ([`tagged`]), ruled tables ([`grid`]) and those between horizontal rules or
//! shades ([`banded`]) and running heads ([`furniture`], [`edges`]) taken out, tables joined over columns and
//! pages ([`continued`]), segments into reading order ([`order`], [`side_heads`], [`logical`]), lines, tables without rules ([`aligned`]),
//! lists ([`counted`]) and paragraphs ([`block`]), paragraphs joined over columns and pages ([`joined`]), headings ([`headings`],
//! [`byline`]) and other kinds of elements ([`roles`]) and their levels ([`levels`], [`ladder`], [`lists`]).
//!
//! Pages that have no text layer, or none to be trusted ([`recognise`]), are drawn ([`render`]) and their
//! text is recognised; the words then take the place of the engine's characters ([`scan`], [`scanned`])
//! and go the same way. Pictures as documents ([`picture`]) are scans from the start.

mod ahead;
mod aligned;
mod banded;
mod bars;
mod block;
mod byline;
mod content;
mod continued;
mod counted;
mod crops;
mod device;
mod document;
mod drawings;
mod edges;
mod engine;
mod figures;
mod fonts;
mod forms;
mod frame;
mod furniture;
mod grid;
mod hayro;
mod headed;
#[cfg(test)]
mod heading_tests;
mod headings;
#[cfg(test)]
mod heic_tests;
mod interpret;
mod joined;
mod ladder;
mod levels;
mod line;
mod links;
mod lists;
mod logical;
#[cfg(test)]
mod logical_tests;
mod opened;
mod order;
mod pdfium;
#[cfg(test)]
mod pdfium_tests;
mod picture;
mod recognise;
mod render;
mod repair;
#[cfg(test)]
mod repair_tests;
mod report;
mod roles;
mod rows;
mod rulings;
mod scan;
#[cfg(test)]
mod scan_tests;
mod scanned;
mod script;
mod segment;
mod side_heads;
mod sizes;
mod spacing;
mod structure;
#[cfg(test)]
mod suite_tests;
mod table;
#[cfg(test)]
mod table_kinds_tests;
#[cfg(test)]
mod table_rows_tests;
#[cfg(test)]
mod table_tests;
mod tagged;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
mod text_tests;
mod turned;
mod visibility;
#[cfg(test)]
mod visibility_tests;
mod words;

use std::sync::Arc;

use docmill_model::limits::ParseLimits;
use docmill_model::{Warning, WarningCode};
use image::DynamicImage;

use crate::context::{Context, Tools};
use crate::error::PartitionError;
use crate::filetype::FileType;
use engine::PageSource;
use opened::OpenPdf;
use recognise::Readers;

pub(crate) fn partition(bytes: &Arc<Vec<u8>>, cx: &mut Context) -> Result<(), PartitionError> {
    let mut pdf = OpenPdf::open(bytes, cx.options.password.as_deref(), cx.tools.pdfium)?;
    for fault in std::mem::take(&mut pdf.faults) {
        cx.warn(Warning::new(WarningCode::PartUnreadable, fault));
    }
    let mut source = scanned::ScannedPdf::new(&pdf, cx.options.strategy, Readers::new(cx), cx.tools.threads);
    document::partition(&mut source, cx)?;
    if source.wants_recognition() || pdf.wants_second() {
        return Err(PartitionError::ToolsNeeded);
    }
    cx.mark_routes();
    crops::add(cx, &mut |index, dpi| render::colour(&pdf, index, dpi));
    Ok(())
}

/// A file of one page of 400 by 600 points.
#[cfg(test)]
pub(crate) fn one_page(content: &str) -> Arc<Vec<u8>> {
    testing::PdfBuilder::new().page(content, "").build()
}

/// Partitions a picture, or a TIFF file of several, as a document of scanned pages.
pub(crate) fn partition_picture(
    bytes: &Arc<Vec<u8>>,
    file_type: FileType,
    cx: &mut Context,
) -> Result<(), PartitionError> {
    picture::partition(bytes, file_type, cx)
}

/// Takes drawn pages: position from 0 and picture, or why there is none.
pub(crate) type TakePage<'t> = dyn FnMut(u32, Result<DynamicImage, String>) + 't;

/// Draws pages of a PDF, so many pixels long or somewhat less; how many pages there are.
pub(crate) fn draw(
    bytes: &Arc<Vec<u8>>,
    password: Option<&str>,
    (limits, tools): (&ParseLimits, &Tools<'_>),
    pages: &[u32],
    long_side: u32,
    take: &mut TakePage<'_>,
) -> Result<u32, PartitionError> {
    let pdf = OpenPdf::open(bytes, password, tools.pdfium)?;
    let total = checked_count(pdf.page_count(), limits)?;
    for &index in pages.iter().filter(|index| **index < total) {
        let drawn = render::long_side(&pdf, index as usize, long_side);
        take(index, drawn.map(Into::into).ok_or_else(|| "it cannot be drawn".into()));
    }
    if pdf.wants_second() {
        return Err(PartitionError::ToolsNeeded);
    }
    Ok(total)
}

/// Decodes pictures of a file; how many there are.
pub(crate) fn draw_pictures(
    bytes: &Arc<Vec<u8>>,
    file_type: FileType,
    (limits, tools): (&ParseLimits, &Tools<'_>),
    pages: &[u32],
    take: &mut TakePage<'_>,
) -> Result<u32, PartitionError> {
    let frames = picture::Frames::open(bytes, file_type, limits, tools.heif)?;
    let total = checked_count(frames.len(), limits)?;
    for &index in pages.iter().filter(|index| **index < total) {
        take(index, frames.decode(index as usize));
    }
    Ok(total)
}

fn checked_count(pages: usize, limits: &ParseLimits) -> Result<u32, PartitionError> {
    let count = u32::try_from(pages).ok().filter(|count| *count <= limits.max_pages);
    count.ok_or_else(|| PartitionError::limit("max_pages", limits.max_pages.into(), "pages"))
}

/// Reads the text of every page into segments with positions, as [`partition`] does before it lays
/// them out; how many pages there are and how many characters were found.
pub(crate) fn read_text(bytes: &Arc<Vec<u8>>) -> Result<(usize, usize), PartitionError> {
    let pdf = hayro::open(bytes, None)?.pdf;
    let mut source = hayro::HayroSource::new(&pdf);
    let pages = source.page_count();
    let mut characters = 0;
    for index in 0..pages {
        if let Ok(content) = source.read_page(index) {
            let segments = segment::segments(&content, source.fonts(), engine::Direction::East);
            characters += segments.iter().map(|segment| segment.text.len()).sum::<usize>();
        }
    }
    Ok((pages, characters))
}

/// A file of so many pages with a line each.
#[cfg(test)]
pub(crate) fn test_pdf(pages: usize) -> Vec<u8> {
    let file = (0..pages).fold(testing::PdfBuilder::new(), |file, page| {
        file.page(
            &testing::show('F', 24.0, 40.0, 300.0, &format!("Words of page {page}.")),
            "",
        )
    });
    file.build().as_ref().clone()
}
