//! Pictures of whole pages, for people to look at and for measurements.

use std::sync::Arc;

use docmill_model::limits::ParseLimits;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, RgbImage};

use super::picture::Pictures;
use super::{hayro, render};
use crate::error::PartitionError;
use crate::filetype::FileType;

/// A page as it looks.
#[derive(Clone, Debug)]
pub struct PagePicture(RgbImage);

impl PagePicture {
    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        self.0.dimensions()
    }

    /// As a PNG file; empty when it can't be encoded.
    pub fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (width, height) = self.size();
        match PngEncoder::new(&mut bytes).write_image(&self.0, width, height, ExtendedColorType::Rgb8) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// As a JPEG file of a quality of 1 to 100; empty when it can't be encoded.
    pub fn jpeg(&self, quality: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        match JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&self.0) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }
}

/// Draws pages of a PDF or picture one after the other, at most at `dpi` dots per inch, and hands each to
/// `each` with its index, `None` for one that can't be drawn, until that answers `false`.
pub(crate) fn pages(
    bytes: &Arc<Vec<u8>>,
    file_type: FileType,
    password: Option<&str>,
    limits: &ParseLimits,
    dpi: f32,
    each: &mut dyn FnMut(usize, Option<PagePicture>) -> bool,
) -> Result<(), PartitionError> {
    if file_type == FileType::Pdf {
        let pdf = hayro::open(bytes, password)?.pdf;
        let count = pdf.pages().len().min(limits.max_pages as usize);
        for index in 0..count {
            if !each(index, render::colour(&pdf, index, dpi).map(PagePicture)) {
                break;
            }
        }
    } else if file_type.is_picture() {
        let pictures = Pictures::open(bytes, file_type, limits)?;
        for index in 0..pictures.len() {
            if !each(index, pictures.colour(index, dpi).map(PagePicture)) {
                break;
            }
        }
    }
    Ok(())
}
