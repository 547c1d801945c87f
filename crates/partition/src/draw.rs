//! Pages as pictures, for models that look at them.

use std::io::Cursor;

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{DynamicImage, GrayImage, Rgb, RgbImage, RgbaImage, imageops};

use crate::error::PartitionError;
use crate::filetype::FileType;
use crate::{Input, Tools, detect, pdf};

/// Longest side of a picture, in pixels: models that see reduce larger ones themselves.
pub(crate) const LONG_SIDE: u32 = 1_800;
/// Bytes of a picture; a larger one is reduced. Providers take pictures of 5 MB in base64.
const MAX_BYTES: usize = 3_500_000;
/// Times a picture is reduced at most.
const REDUCTIONS: usize = 5;

/// A drawn page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnPage {
    /// Position of the page, from 0.
    pub index: u32,
    /// The picture as PNG, or why there is none, for people.
    pub png: Result<Vec<u8>, String>,
}

/// What is said of a file whose pages are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// Its MIME type.
    pub filetype: &'static str,
    /// Its pages; `None` for formats that have none to draw.
    pub pages: Option<u32>,
}

/// A page as it looks.
#[derive(Clone, Debug)]
pub struct PagePicture(DynamicImage);

impl PagePicture {
    /// As a PNG file; empty when it can't be encoded.
    pub fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let done = self.0.write_with_encoder(PngEncoder::new(&mut bytes));
        done.map(|()| bytes).unwrap_or_default()
    }

    /// As a JPEG file of a quality of 1 to 100; empty when it can't be encoded.
    pub fn jpeg(&self, quality: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
        let done = self.0.to_rgb8().write_with_encoder(encoder);
        done.map(|()| bytes).unwrap_or_default()
    }
}

/// Draws the first `most` pages of a PDF or picture, `long_side` pixels long or somewhat less, and hands each
/// to `put` with its position from 0: `None` for one that can't be drawn. Other formats have no pages to draw.
///
/// # Errors
/// As [`draw`].
pub fn draw_pages(
    input: &Input,
    password: Option<&str>,
    (limits, tools): (&ParseLimits, &Tools<'_>),
    (most, long_side): (u32, u32),
    put: &mut dyn FnMut(u32, Option<PagePicture>),
) -> Result<(), PartitionError> {
    let file_type = detect(input)?;
    let pages: Vec<u32> = (0..most).collect();
    if file_type == FileType::Pdf {
        let mut take = |index, image: Result<DynamicImage, String>| put(index, image.ok().map(PagePicture));
        pdf::draw(&input.bytes, password, (limits, tools), &pages, long_side, &mut take)?;
    } else if file_type.is_picture() {
        let mut take = |index, image: Result<DynamicImage, String>| {
            let reduced = image.ok().map(|image| match image.width().max(image.height()) {
                side if side <= long_side => image,
                _ => image.thumbnail(long_side, long_side),
            });
            put(index, reduced.map(PagePicture));
        };
        pdf::draw_pictures(&input.bytes, file_type, (limits, tools), &pages, &mut take)?;
    }
    Ok(())
}

/// Draws pages of a PDF or of a picture, of which a TIFF file may have several. Pages that are not there are
/// left out. Equal files give equal pictures.
///
/// # Errors
/// The file can't be read, or has more pages than `limits` allow.
pub fn draw(
    input: &Input,
    options: &PartitionOptions,
    (limits, tools): (&ParseLimits, &Tools<'_>),
    pages: &[u32],
    put: &mut dyn FnMut(DrawnPage),
) -> Result<Drawing, PartitionError> {
    let file_type = detect(input)?;
    let mut each = |index: u32, image: Result<DynamicImage, String>| {
        let png = image.and_then(png);
        put(DrawnPage { index, png });
    };
    let total = match file_type {
        FileType::Pdf => Some(pdf::draw(
            &input.bytes,
            options.password.as_deref(),
            (limits, tools),
            pages,
            LONG_SIDE,
            &mut each,
        )?),
        picture if picture.is_picture() => Some(pdf::draw_pictures(
            &input.bytes,
            file_type,
            (limits, tools),
            pages,
            &mut each,
        )?),
        _ => None,
    };
    Ok(Drawing {
        filetype: file_type.mime(),
        pages: total,
    })
}

/// A picture as PNG, on white, without colours it does not have, not larger than models take it.
fn png(image: DynamicImage) -> Result<Vec<u8>, String> {
    let mut image = plain(on_white(image));
    let longest = image.width().max(image.height());
    if longest > LONG_SIDE {
        image = reduced(&image, f64::from(LONG_SIDE) / f64::from(longest));
    }
    let mut bytes = encode(&image)?;
    for _ in 0..REDUCTIONS {
        if bytes.len() <= MAX_BYTES {
            return Ok(bytes);
        }
        // A tenth less than bytes by area, as details that go don't shrink with it.
        image = reduced(&image, 0.9 * (MAX_BYTES as f64 / bytes.len() as f64).sqrt());
        bytes = encode(&image)?;
    }
    Err(format!("its picture has {} bytes, more than models take", bytes.len()))
}

fn encode(image: &DynamicImage) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
    image.write_with_encoder(encoder).map_err(|error| error.to_string())?;
    Ok(bytes.into_inner())
}

fn reduced(image: &DynamicImage, factor: f64) -> DynamicImage {
    let side = |pixels: u32| ((f64::from(pixels) * factor).round() as u32).max(1);
    image.resize_exact(
        side(image.width()),
        side(image.height()),
        imageops::FilterType::Triangle,
    )
}

/// What shines through is white paper.
fn on_white(image: DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return image;
    }
    let image: RgbaImage = image.into_rgba8();
    let over =
        |value: u8, alpha: u8| ((u32::from(value) * u32::from(alpha) + 255 * (255 - u32::from(alpha))) / 255) as u8;
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [r, g, b, a] = image.get_pixel(x, y).0;
        Rgb([over(r, a), over(g, a), over(b, a)])
    })
    .into()
}

/// In eight bits, and in grey if there is nothing else.
fn plain(image: DynamicImage) -> DynamicImage {
    if !image.color().has_color() {
        return image.into_luma8().into();
    }
    let image = image.into_rgb8();
    if image.pixels().all(|Rgb([r, g, b])| r == g && g == b) {
        let grey = image.pixels().map(|pixel| pixel.0[0]).collect();
        if let Some(grey) = GrayImage::from_raw(image.width(), image.height(), grey) {
            return grey.into();
        }
    }
    image.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use image::{ImageFormat, Luma, Rgba};

    use super::*;
    use crate::pdf::test_pdf;

    fn input(bytes: Vec<u8>) -> Input {
        Input {
            bytes: Arc::new(bytes),
            filename: None,
            content_type: None,
        }
    }

    fn drawn(input: &Input, pages: &[u32]) -> (Drawing, Vec<(u32, DynamicImage)>) {
        let mut found = Vec::new();
        let drawing = draw(
            input,
            &PartitionOptions::default(),
            (&ParseLimits::default(), &Tools::default()),
            pages,
            &mut |page| {
                let png = page.png.unwrap();
                found.push((
                    page.index,
                    image::load_from_memory_with_format(&png, ImageFormat::Png).unwrap(),
                ));
            },
        );
        (drawing.unwrap(), found)
    }

    fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn pages_of_a_pdf_that_are_asked_for_are_drawn() {
        let file = input(test_pdf(3));
        let (drawing, pages) = drawn(&file, &[1, 2, 3]);
        assert_eq!((drawing.pages, drawing.filetype), (Some(3), "application/pdf"));
        assert_eq!(pages.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1, 2]);
        for (_, page) in &pages {
            assert!((LONG_SIDE - 2..=LONG_SIDE).contains(&page.height()) && page.width() < page.height());
            assert_eq!(page.color(), image::ColorType::L8, "black on white");
            let ink = page.to_luma8().pixels().filter(|pixel| pixel.0[0] < 128).count();
            assert!(ink > 100, "{ink}");
        }
        let again = drawn(&file, &[1]).1;
        assert_eq!(again[0].1, pages[0].1);
    }

    #[test]
    fn pictures_are_reduced_and_laid_on_white() {
        let clear = RgbaImage::from_fn(2_000, 500, |x, _| Rgba([200, 0, 0, if x < 1_000 { 255 } else { 0 }]));
        let (drawing, pages) = drawn(&input(encoded(&clear.into(), ImageFormat::Png)), &[0, 1]);
        assert_eq!(drawing.pages, Some(1));
        let page = pages[0].1.to_rgb8();
        assert_eq!((page.width(), page.height()), (1_800, 450));
        assert_eq!(
            (page.get_pixel(10, 10).0, page.get_pixel(1_790, 10).0),
            ([200, 0, 0], [255; 3])
        );

        let small = GrayImage::from_pixel(40, 30, Luma([7]));
        let (_, pages) = drawn(&input(encoded(&small.clone().into(), ImageFormat::Bmp)), &[0]);
        assert_eq!(pages[0].1.to_luma8(), small, "as it is");
    }

    #[test]
    fn noise_is_reduced_until_models_take_it() {
        let mut seed = 1u32;
        let noise = RgbImage::from_fn(1_800, 1_800, |_, _| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [_, r, g, b] = seed.to_be_bytes();
            Rgb([r, g, b])
        });
        let bytes = png(noise.into()).unwrap();
        assert!((1_000_000..=MAX_BYTES).contains(&bytes.len()), "{}", bytes.len());
    }

    #[test]
    fn what_has_no_pages_is_not_drawn() {
        let (drawing, pages) = drawn(&input(b"<html><body><p>Words</p></body></html>".to_vec()), &[0]);
        assert_eq!((drawing.pages, pages.len()), (None, 0));
        let broken = draw(
            &input(b"%PDF-1.4 nothing".to_vec()),
            &PartitionOptions::default(),
            (&ParseLimits::default(), &Tools::default()),
            &[0],
            &mut |_| {},
        );
        assert!(matches!(broken, Err(PartitionError::Corrupt { .. })), "{broken:?}");
        let few = ParseLimits {
            max_pages: 2,
            ..ParseLimits::default()
        };
        let many = draw(
            &input(test_pdf(3)),
            &PartitionOptions::default(),
            (&few, &Tools::default()),
            &[0],
            &mut |_| {},
        );
        assert!(matches!(
            many,
            Err(PartitionError::Limit {
                setting: "max_pages",
                ..
            })
        ));
    }
}
