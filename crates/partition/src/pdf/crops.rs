//! Pictures of elements, for the types that were named: `image_base64` and `image_mime_type`.

use std::collections::BTreeMap;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docmill_model::settings::Strategy;
use docmill_model::{ElementType, Warning, WarningCode};
use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;

use crate::context::Context;

/// Resolution of the pictures, in dots per inch.
const DPI: f32 = 150.0;
/// JPEG quality.
const QUALITY: u8 = 85;
/// Room left around an element, as a share of the page.
const MARGIN: f64 = 0.004;
/// Labels of elements that may be named beside the types' own names.
const LABELS: &[&str] = &[
    "Abstract",
    "BulletedText",
    "Caption",
    "Figure",
    "Footnote",
    "Headline",
    "Link",
    "List",
    "List-item",
    "Page-footer",
    "Page-header",
    "Paragraph",
    "Picture",
    "Section-header",
    "Subheadline",
    "Text",
    "Threading",
];

/// Draws each page that has elements of the types asked for, once, and cuts them out. `draw` gives the
/// picture of a page, counting from 0, at a resolution in dots per inch.
pub(super) fn add(cx: &mut Context<'_>, draw: &mut dyn FnMut(usize, f32) -> Option<RgbImage>) {
    let kinds = kinds(&cx.options.extract_image_block_types);
    if kinds.is_empty() || cx.options.strategy == Strategy::Fast {
        return;
    }
    let first = cx.options.starting_page_number;
    let mut pages: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, element) in cx.elements().iter().enumerate() {
        if kinds.contains(&element.kind)
            && element.metadata.coordinates.is_some()
            && let Some(number) = element.metadata.page_number
        {
            pages.entry(number).or_default().push(index);
        }
    }
    for (number, elements) in pages {
        let drawn = number.checked_sub(first).and_then(|index| draw(index as usize, DPI));
        let Some(page) = drawn else {
            cx.warn(Warning::on_page(
                WarningCode::ImageBlocksNotExtracted,
                number,
                format!("page {number} cannot be drawn, so its elements have no image_base64"),
            ));
            continue;
        };
        for index in elements {
            let Some(element) = cx.elements_mut().get_mut(index) else {
                continue;
            };
            let Some(place) = &element.metadata.coordinates else {
                continue;
            };
            let [x0, y0, x1, y1] = place.bbox();
            let (width, height) = (place.layout_width.max(1.0), place.layout_height.max(1.0));
            if let Some(jpeg) = cut(&page, [x0 / width, y0 / height, x1 / width, y1 / height]) {
                element.metadata.image_base64 = Some(STANDARD.encode(jpeg));
                element.metadata.image_mime_type = Some("image/jpeg".into());
            }
        }
    }
}

/// The types of elements that names and labels, in any letter case, stand for.
fn kinds(names: &[String]) -> Vec<ElementType> {
    let known = ElementType::ALL
        .iter()
        .map(|kind| kind.as_str())
        .chain(LABELS.iter().copied());
    let known: Vec<&str> = known.collect();
    names
        .iter()
        .filter_map(|name| known.iter().find(|known| known.eq_ignore_ascii_case(name.trim())))
        .filter_map(|name| ElementType::from_str(name).ok())
        .collect()
}

/// A part of a page, given in shares of its sides, as JPEG.
fn cut(page: &RgbImage, [x0, y0, x1, y1]: [f64; 4]) -> Option<Vec<u8>> {
    let pixels = |share: f64, side: u32| (share.clamp(0.0, 1.0) * f64::from(side)) as u32;
    let (left, top) = (pixels(x0 - MARGIN, page.width()), pixels(y0 - MARGIN, page.height()));
    let (right, bottom) = (pixels(x1 + MARGIN, page.width()), pixels(y1 + MARGIN, page.height()));
    let (width, height) = (right.checked_sub(left)?, bottom.checked_sub(top)?);
    if width == 0 || height == 0 {
        return None;
    }
    let part = image::imageops::crop_imm(page, left, top, width, height).to_image();
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, QUALITY)
        .encode_image(&part)
        .ok()?;
    Some(jpeg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_in_any_case_and_by_label() {
        let names = ["image", "TABLE", "Figure", "nonsense"].map(String::from);
        assert_eq!(
            kinds(&names),
            [ElementType::Image, ElementType::Table, ElementType::Image]
        );
    }

    #[test]
    fn a_part_is_cut_out_with_a_margin() {
        let page = RgbImage::from_fn(1000, 1000, |x, _| image::Rgb([if x < 500 { 0 } else { 255 }; 3]));
        let jpeg = cut(&page, [0.6, 0.1, 0.8, 0.2]).unwrap();
        let part = image::load_from_memory(&jpeg).unwrap().to_luma8();
        assert_eq!((part.width(), part.height()), (208, 108));
        assert!(part.pixels().all(|pixel| pixel.0[0] > 250));
        assert_eq!(cut(&page, [0.9, 0.5, 0.1, 0.6]), None);
    }
}
