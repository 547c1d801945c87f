//! Pictures as documents: each is a page, or several of a TIFF file are.

mod frames;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use docmill_model::RouteReason;
use docmill_model::metadata::Coordinates;
use docmill_ocr::Gray;
use serde_json::Value;

use super::crops;
use super::document;
use super::engine::{Font, OutlineEntry, PageContent, PageSource, Unreadable};
use super::recognise::{Raster, Rasters, Readers};
use super::scan::{self, ScanFonts};
use super::words::WORDS;
use crate::context::Context;
use crate::error::PartitionError;
use crate::filetype::FileType;
pub(super) use frames::Frames;

/// Width of the sheet a picture is taken to show, in inches: that of A4. Pictures do not reliably say.
const SHEET: f32 = 8.27;
/// Resolutions a picture is taken to have, in dots per inch.
const LEAST_DPI: f32 = 72.0;
const MOST_DPI: f32 = 400.0;
/// Larger pictures are reduced for recognition, to so many pixels.
const MAX_PIXELS: f32 = 24_000_000.0;

pub(super) fn partition(bytes: &Arc<Vec<u8>>, file_type: FileType, cx: &mut Context) -> Result<(), PartitionError> {
    let frames = Frames::open(bytes, file_type, cx.limits, cx.tools.heif)?;
    let mut source = PictureSource {
        rasters: FrameRasters {
            frames: &frames,
            faults: Mutex::default(),
        },
        readers: Readers::new(cx),
        fonts: vec![
            Font::default(),
            Font {
                bold: true,
                ..Font::default()
            },
        ],
        ready: BTreeMap::new(),
    };
    document::partition(&mut source, cx)?;
    if source.readers.wanted {
        return Err(PartitionError::ToolsNeeded);
    }
    let faults = source
        .rasters
        .faults
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(fault) = faults.first()
        && faults.len() == frames.len()
    {
        return Err(PartitionError::corrupt(file_type.name(), fault));
    }
    in_pixels(&frames, cx);
    cx.mark_routes();
    crops::add(cx, &mut |index, _| {
        frames.decode(index).ok().map(|image| image.to_rgb8())
    });
    Ok(())
}

/// Gives coordinates in pixels of the picture instead of points of the sheet.
fn in_pixels(frames: &Frames<'_>, cx: &mut Context) {
    let first = cx.options.starting_page_number;
    for element in cx.elements_mut() {
        let index = element
            .metadata
            .page_number
            .and_then(|number| number.checked_sub(first));
        let size = index.and_then(|index| frames.size(index as usize));
        if let (Some((width, height)), Some(place)) = (size, &mut element.metadata.coordinates) {
            let scale = f64::from(width) / place.layout_width.max(1.0);
            let bbox = place.bbox().map(|v| (v * scale).round());
            *place = Coordinates::from_bbox(bbox, f64::from(width), f64::from(height));
            let extra = &mut element.metadata.extra;
            if let Some(cells) = extra.get_mut("table_as_cells").and_then(Value::as_array_mut) {
                let boxes = cells.iter_mut().filter_map(|cell| cell.get_mut("bbox")?.as_array_mut());
                boxes.for_each(|bbox| enlarge(bbox, scale));
            }
            if let Some(words) = extra.get_mut(WORDS).and_then(Value::as_array_mut) {
                let words = words.iter_mut().filter_map(Value::as_array_mut);
                words
                    .filter_map(|word| word.get_mut(1..5))
                    .for_each(|bbox| enlarge(bbox, scale));
            }
        }
    }
}

fn enlarge(numbers: &mut [Value], scale: f64) {
    for number in numbers {
        if let Some(value) = number.as_f64() {
            *number = Value::from((value * scale).round());
        }
    }
}

struct FrameRasters<'f, 't> {
    frames: &'f Frames<'t>,
    /// Why pictures could not be decoded.
    faults: Mutex<Vec<String>>,
}

impl Rasters for FrameRasters<'_, '_> {
    fn raster(&self, index: usize) -> Result<Raster, String> {
        let size = self.frames.size(index).unwrap_or_default();
        let decoded = self.frames.decode(index).inspect_err(|fault| {
            self.faults
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(fault.clone());
        })?;
        let (width, height) = (decoded.width() as usize, decoded.height() as usize);
        let gray = Gray::new(width, height, frames::luma(decoded)).map_err(|error| error.to_string())?;
        let pixels = width as f32 * height as f32;
        if pixels <= MAX_PIXELS {
            return Ok((gray, dpi(size)));
        }
        let factor = (MAX_PIXELS / pixels).sqrt();
        let gray = gray.scaled(factor).map_err(|error| error.to_string())?;
        Ok((gray, dpi(size) * factor))
    }
}

/// The resolution a picture is taken to have.
fn dpi((width, height): (u32, u32)) -> f32 {
    (width.min(height) as f32 / SHEET).clamp(LEAST_DPI, MOST_DPI)
}

struct PictureSource<'f, 't> {
    rasters: FrameRasters<'f, 't>,
    readers: Readers,
    fonts: Vec<Font>,
    ready: BTreeMap<usize, PageContent>,
}

impl PictureSource<'_, '_> {
    /// A page that shows the picture and says nothing.
    fn bare(&self, index: usize) -> PageContent {
        let (width, height) = self.page_size(index);
        PageContent {
            width,
            height,
            has_images: true,
            reason: RouteReason::NoTextLayer,
            images: vec![[0.0, 0.0, width, height]],
            ..PageContent::default()
        }
    }

    fn recognise(&mut self, index: usize) {
        let end = self.page_count().min(index + self.readers.appetite().max(1));
        let pages: Vec<usize> = (index..end).collect();
        for read in self.readers.read(&pages, &self.rasters) {
            let fonts = ScanFonts { regular: 0, bold: 1 };
            let mut content = match read.text {
                Ok(text) => {
                    let mut content = scan::content(&text, self.page_size(read.index), fonts);
                    content.reason = RouteReason::NoTextLayer;
                    if content.glyphs.is_empty() {
                        // A photograph, say.
                        content.images = self.bare(read.index).images;
                        content.has_images = true;
                    }
                    content
                }
                Err(reason) => PageContent {
                    not_recognised: Some(reason),
                    ..self.bare(read.index)
                },
            };
            content.ms = read.ms;
            self.ready.insert(read.index, content);
        }
    }
}

impl PageSource for PictureSource<'_, '_> {
    fn page_count(&self) -> usize {
        self.rasters.frames.len()
    }

    fn page_size(&self, index: usize) -> (f32, f32) {
        let size = self.rasters.frames.size(index).unwrap_or_default();
        let scale = 72.0 / dpi(size);
        (size.0 as f32 * scale, size.1 as f32 * scale)
    }

    fn read_page(&mut self, index: usize) -> Result<PageContent, Unreadable> {
        if let Some(reason) = self.readers.absent() {
            return Ok(PageContent {
                not_recognised: Some(reason),
                ..self.bare(index)
            });
        }
        if !self.ready.contains_key(&index) {
            self.recognise(index);
        }
        self.ready.remove(&index).ok_or(Unreadable("it could not be read"))
    }

    fn fonts(&self) -> &[Font] {
        &self.fonts
    }

    fn outline(&self) -> Vec<OutlineEntry> {
        Vec::new()
    }
}
