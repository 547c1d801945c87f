//! The pictures of a file: their sizes from the headers, before anything is decoded, and their pixels.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use docmill_heif::Library;
use docmill_model::limits::ParseLimits;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use crate::context::Tool;
use crate::error::PartitionError;
use crate::filetype::FileType;

/// Bytes to a pixel that decoders may take.
const BYTES_PER_PIXEL: u64 = 16;

/// The pictures of a file.
pub(in crate::pdf) struct Frames<'t> {
    bytes: Arc<Vec<u8>>,
    decoder: Decoder<'t>,
    max_pixels: u64,
    frames: Vec<Frame>,
}

/// What decodes them.
#[derive(Clone, Copy)]
enum Decoder<'t> {
    Own(ImageFormat),
    Heif(&'t Library),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Frame {
    /// TIFF: where its directory stands.
    directory: Option<u64>,
    width: u32,
    height: u32,
}

impl<'t> Frames<'t> {
    /// Reads the headers. `heif` is the decoder of HEIC.
    pub(in crate::pdf) fn open(
        bytes: &Arc<Vec<u8>>,
        file_type: FileType,
        limits: &ParseLimits,
        heif: Option<Tool<'t, Library>>,
    ) -> Result<Self, PartitionError> {
        let mut frames = Self {
            bytes: bytes.clone(),
            decoder: decoder(file_type, heif)?,
            max_pixels: limits.max_image_pixels,
            frames: Vec::new(),
        };
        let most = limits.max_pages as usize + 1;
        match frames.decoder {
            Decoder::Own(format) => {
                let directories = match format {
                    ImageFormat::Tiff => tiff_directories(bytes, most),
                    _ => vec![None],
                };
                for directory in directories {
                    let size = frames.header(format, directory, file_type)?;
                    frames.add(directory, size)?;
                }
            }
            Decoder::Heif(library) => {
                let sizes = library.sizes(bytes, most);
                for size in sizes.map_err(|reason| PartitionError::corrupt(file_type.name(), reason))? {
                    frames.add(None, size)?;
                }
            }
        }
        Ok(frames)
    }

    fn add(&mut self, directory: Option<u64>, (width, height): (u32, u32)) -> Result<(), PartitionError> {
        if u64::from(width) * u64::from(height) > self.max_pixels {
            return Err(PartitionError::limit(
                "max_image_pixels",
                self.max_pixels,
                "pixels in a picture",
            ));
        }
        self.frames.push(Frame {
            directory,
            width,
            height,
        });
        Ok(())
    }

    pub(in crate::pdf) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Width and height as displayed.
    pub(super) fn size(&self, index: usize) -> Option<(u32, u32)> {
        self.frames.get(index).map(|frame| (frame.width, frame.height))
    }

    fn header(
        &self,
        format: ImageFormat,
        directory: Option<u64>,
        file_type: FileType,
    ) -> Result<(u32, u32), PartitionError> {
        let corrupt = |reason: &dyn std::fmt::Display| PartitionError::corrupt(file_type.name(), reason);
        let read = catch_unwind(AssertUnwindSafe(|| {
            let bytes = self.with_directory(directory);
            let mut decoder = self.reader(format, bytes.as_deref().unwrap_or(&self.bytes))?;
            let orientation = decoder.orientation()?;
            let (width, height) = decoder.dimensions();
            let swaps = matches!(
                orientation,
                image::metadata::Orientation::Rotate90
                    | image::metadata::Orientation::Rotate270
                    | image::metadata::Orientation::Rotate90FlipH
                    | image::metadata::Orientation::Rotate270FlipH
            );
            Ok::<_, image::ImageError>(if swaps { (height, width) } else { (width, height) })
        }));
        match read {
            Ok(Ok((width, height))) if width > 0 && height > 0 => Ok((width, height)),
            Ok(Ok(_)) => Err(corrupt(&"it has no pixels")),
            Ok(Err(error)) => Err(corrupt(&error)),
            Err(_) => Err(corrupt(&"its header makes no sense")),
        }
    }

    /// The pixels of a picture, turned as its metadata says; or why there are none, for people.
    pub(in crate::pdf) fn decode(&self, index: usize) -> Result<DynamicImage, String> {
        let frame = self.frames.get(index).ok_or("there is no such picture")?;
        let format = match self.decoder {
            Decoder::Own(format) => format,
            Decoder::Heif(library) => {
                let picture = library.decode(&self.bytes, index)?;
                let image = RgbImage::from_raw(picture.width, picture.height, picture.rgb);
                return image.map(Into::into).ok_or_else(|| "its pixels make no sense".into());
            }
        };
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            let bytes = self.with_directory(frame.directory);
            let mut decoder = self.reader(format, bytes.as_deref().unwrap_or(&self.bytes))?;
            let orientation = decoder.orientation()?;
            let mut image = DynamicImage::from_decoder(decoder)?;
            image.apply_orientation(orientation);
            Ok::<_, image::ImageError>(image)
        }));
        match decoded {
            Ok(Ok(image)) => Ok(image),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("its pixels cannot be decoded".into()),
        }
    }

    fn reader<'b>(&self, format: ImageFormat, bytes: &'b [u8]) -> image::ImageResult<impl ImageDecoder + use<'b>> {
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        let mut limits = Limits::default();
        limits.max_alloc = Some(self.max_pixels.saturating_mul(BYTES_PER_PIXEL).min(1 << 30));
        reader.limits(limits);
        reader.into_decoder()
    }

    /// A copy of a TIFF file whose first directory is the one at `directory`: so each of its pictures is
    /// read as the first one.
    fn with_directory(&self, directory: Option<u64>) -> Option<Vec<u8>> {
        let directory = directory?;
        let mut bytes = self.bytes.as_ref().clone();
        let tiff = Tiff::new(&self.bytes)?;
        let slot = bytes.get_mut(tiff.start_at..tiff.start_at + tiff.offset_len)?;
        match (tiff.offset_len, tiff.little) {
            (8, true) => slot.copy_from_slice(&directory.to_le_bytes()),
            (8, false) => slot.copy_from_slice(&directory.to_be_bytes()),
            (_, true) => slot.copy_from_slice(&u32::try_from(directory).ok()?.to_le_bytes()),
            (_, false) => slot.copy_from_slice(&u32::try_from(directory).ok()?.to_be_bytes()),
        }
        Some(bytes)
    }
}

fn decoder(file_type: FileType, heif: Option<Tool<'_, Library>>) -> Result<Decoder<'_>, PartitionError> {
    Ok(Decoder::Own(match file_type {
        FileType::Heic => {
            return match heif {
                Some(Tool::Ready(library)) => Ok(Decoder::Heif(library)),
                Some(Tool::OnRequest) => Err(PartitionError::ToolsNeeded),
                Some(Tool::Absent(reason)) => Err(PartitionError::HeifMissing(reason.to_owned())),
                None => Err(PartitionError::HeifMissing(
                    "no setting `heif.library` names it".to_owned(),
                )),
            };
        }
        FileType::Bmp => ImageFormat::Bmp,
        FileType::Gif => ImageFormat::Gif,
        FileType::Jpeg => ImageFormat::Jpeg,
        FileType::Tiff => ImageFormat::Tiff,
        FileType::Webp => ImageFormat::WebP,
        _ => ImageFormat::Png,
    }))
}

/// How numbers are written in a TIFF file.
struct Tiff<'b> {
    bytes: &'b [u8],
    little: bool,
    /// Where the offset of the first directory stands, and bytes of an offset.
    start_at: usize,
    offset_len: usize,
}

impl<'b> Tiff<'b> {
    fn new(bytes: &'b [u8]) -> Option<Self> {
        let little = bytes.starts_with(b"II");
        let big = bytes.get(if little { 2 } else { 3 }) == Some(&43);
        bytes.get(..8)?;
        Some(Self {
            bytes,
            little,
            start_at: if big { 8 } else { 4 },
            offset_len: if big { 8 } else { 4 },
        })
    }

    fn number(&self, at: usize, len: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(len)?)?;
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.little {
            bytes.iter().rev().fold(0, push)
        } else {
            bytes.iter().fold(0, push)
        })
    }
}

/// Where the directories of a TIFF file stand. They form a chain, which a hostile file can close to a
/// ring. `None` stands for the first one when the chain cannot be followed at all.
fn tiff_directories(bytes: &[u8], most: usize) -> Vec<Option<u64>> {
    let mut found: Vec<Option<u64>> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    if let Some(tiff) = Tiff::new(bytes) {
        let (count_len, entry_len) = if tiff.offset_len == 8 { (8, 20) } else { (2, 12) };
        let mut next = tiff.number(tiff.start_at, tiff.offset_len);
        while let Some(at) = next.filter(|at| *at != 0 && found.len() < most && seen.insert(*at)) {
            let Ok(start) = usize::try_from(at) else { break };
            let Some(count) = tiff.number(start, count_len) else {
                break;
            };
            found.push(Some(at));
            let end = usize::try_from(count)
                .ok()
                .and_then(|count| count.checked_mul(entry_len))
                .and_then(|len| len.checked_add(start + count_len));
            next = end.and_then(|end| tiff.number(end, tiff.offset_len));
        }
    }
    if found.is_empty() {
        found.push(None);
    }
    found
}

/// Grey values of a picture on white paper.
pub(super) fn luma(image: DynamicImage) -> Vec<u8> {
    if !image.color().has_alpha() {
        return image.into_luma8().into_raw();
    }
    let grey = image.into_luma_alpha8();
    let over = |[value, alpha]: [u8; 2]| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        ((value * alpha + 255 * (255 - alpha)) / 255) as u8
    };
    grey.pixels().map(|pixel| over(pixel.0)).collect()
}
