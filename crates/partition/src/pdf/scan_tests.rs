//! Scans and pictures, from bytes to elements. The pictures are drawn here, from pages of text; reading
//! them takes the recogniser, which the project's setup installs.

use std::io::Cursor;
use std::sync::{Arc, OnceLock};

use docmill_model::limits::ParseLimits;
use docmill_model::settings::{PartitionOptions, Strategy};
use docmill_model::{Code, Document, Route, RouteReason, WarningCode};
use docmill_ocr::Ocr;
use image::{DynamicImage, GrayImage, ImageFormat, Luma};

use super::opened::OpenPdf;
use super::render;
use super::testing::{PdfBuilder, outline, show};
use crate::error::PartitionError;
use crate::{Input, Tool, Tools, partition_with};

fn ocr() -> &'static Ocr {
    static OCR: OnceLock<Ocr> = OnceLock::new();
    OCR.get_or_init(|| Ocr::open(None).unwrap())
}

fn read_with(
    bytes: Vec<u8>,
    recognition: Tool<'_, docmill_ocr::Ocr>,
    threads: usize,
    options: &PartitionOptions,
) -> Result<Document, PartitionError> {
    let input = Input {
        bytes: Arc::new(bytes),
        filename: None,
        content_type: None,
    };
    let tools = Tools {
        recognition,
        threads,
        ..Tools::default()
    };
    partition_with(&input, options, &ParseLimits::default(), &tools, &mut |_| {})
}

fn english() -> PartitionOptions {
    PartitionOptions {
        languages: vec!["en".into()],
        coordinates: true,
        infer_table_structure: true,
        ..PartitionOptions::default()
    }
}

fn read(bytes: Vec<u8>) -> Document {
    read_with(bytes, Tool::Ready(ocr()), 2, &english()).unwrap()
}

/// A page of text as a picture of 200 dots per inch.
fn picture(content: &str) -> GrayImage {
    let bytes = PdfBuilder::new().page(content, "").build();
    let pdf = OpenPdf::open(&bytes, None, None).unwrap();
    let gray = render::gray(&pdf, 0, 200.0).unwrap();
    GrayImage::from_raw(gray.width() as u32, gray.height() as u32, gray.pixels().to_vec()).unwrap()
}

fn encoded(picture: GrayImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let image = DynamicImage::ImageLuma8(picture);
    let image = if format == ImageFormat::Png || format == ImageFormat::Jpeg {
        image
    } else {
        DynamicImage::ImageRgb8(image.to_rgb8())
    };
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn letter() -> String {
    show('B', 20.0, 40.0, 540.0, "Annual report")
        + &show(
            'F',
            11.0,
            40.0,
            500.0,
            "The committee met on Monday and agreed on the plan for",
        )
        + &show(
            'F',
            11.0,
            40.0,
            486.0,
            "the coming year. It will be published in the spring.",
        )
        + &show(
            'F',
            11.0,
            40.0,
            450.0,
            "Members may send their remarks until the end of the month.",
        )
}

/// A PDF whose pages are the pictures.
fn scan(pictures: &[GrayImage]) -> Vec<u8> {
    let mut builder = PdfBuilder::new();
    let mut pages = Vec::new();
    for picture in pictures {
        let data: String = picture.as_raw().iter().map(|value| format!("{value:02x}")).collect();
        let (width, height) = picture.dimensions();
        pages.push(builder.object(format!(
            "<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray \
             /BitsPerComponent 8 /Filter /ASCIIHexDecode /Length {} >>\nstream\n{data}>\nendstream",
            data.len() + 1
        )));
    }
    for object in pages {
        let draw = "q 400 0 0 600 0 0 cm /S Do Q";
        builder = builder.page_with(draw, &format!("/Resources << /XObject << /S {object} 0 R >> >>"));
    }
    builder.build().to_vec()
}

const LETTER: [(&str, &str); 3] = [
    ("Title", "Annual report"),
    (
        "NarrativeText",
        "The committee met on Monday and agreed on the plan for the coming year. It will be published in the spring.",
    ),
    (
        "NarrativeText",
        "Members may send their remarks until the end of the month.",
    ),
];

#[test]
fn a_picture_reads_as_the_text_it_shows() {
    let page = picture(&letter());
    let size = (f64::from(page.width()), f64::from(page.height()));
    let document = read(encoded(page, ImageFormat::Png));
    assert_eq!(outline(&document), LETTER);
    let place = document.elements[0].metadata.coordinates.as_ref().unwrap();
    assert_eq!((place.layout_width, place.layout_height), size);
    // 40 points from the left and some 46 from the top, at 200 dots per inch.
    let [x0, y0, ..] = place.bbox();
    assert!((x0 - 111.0).abs() < 8.0 && (y0 - 125.0).abs() < 20.0, "{x0} {y0}");
    let route = &document.routes[0];
    assert_eq!((route.page_number, route.route), (1, Route::OcrOnly));
    assert!(
        route.confidence.unwrap() > 80.0 && route.languages == ["eng"] && route.ms > 0.0,
        "{route:?}"
    );
}

#[test]
fn every_format_of_pictures_is_read() {
    let page = picture(&show('F', 14.0, 40.0, 500.0, "A short line of text"));
    for format in [
        ImageFormat::Bmp,
        ImageFormat::Gif,
        ImageFormat::Jpeg,
        ImageFormat::Tiff,
        ImageFormat::WebP,
    ] {
        let document = read(encoded(page.clone(), format));
        let texts: Vec<&str> = document.elements.iter().map(|e| e.text.as_str()).collect();
        assert_eq!(texts, ["A short line of text"], "{format:?}");
    }
}

#[test]
fn scans_that_lie_on_their_side_or_head_are_turned() {
    let page = picture(
        &(letter()
            + &letter()
                .replace(" 540.0", " 340.0")
                .replace("500.0", "300.0")
                .replace("486.0", "286.0")
                .replace("450.0", "250.0")),
    );
    for turned in [
        image::imageops::rotate90(&page),
        image::imageops::rotate180(&page),
        image::imageops::rotate270(&page),
    ] {
        let document = read(encoded(turned, ImageFormat::Png));
        let text: Vec<&str> = document.elements.iter().map(|e| e.text.as_str()).collect();
        assert!(text.contains(&LETTER[2].1), "{text:?} {:?}", document.routes);
    }
}

#[test]
fn slanted_scans_are_straightened_and_boxes_stay_where_the_text_is() {
    let page = picture(&letter());
    let (width, height) = page.dimensions();
    let slope = 2f32.to_radians().tan();
    let slanted = GrayImage::from_fn(width, height, |x, y| {
        let from = y as f32 - slope * (x as f32 - width as f32 / 2.0);
        let inside = from >= 0.0 && (from as u32) < height;
        if inside {
            *page.get_pixel(x, from as u32)
        } else {
            Luma([255])
        }
    });
    let document = read(encoded(slanted, ImageFormat::Png));
    assert_eq!(outline(&document)[2], LETTER[2]);
    // The heading stands left of the middle, where the slant has lifted it by some 15 to 4 pixels.
    let top = |document: &Document| document.elements[0].metadata.coordinates.as_ref().unwrap().bbox()[1];
    let lifted = top(&read(encoded(page, ImageFormat::Png))) - top(&document);
    assert!((8.0..22.0).contains(&lifted), "{lifted}");
}

#[test]
fn a_ruled_table_of_a_scan_is_a_table() {
    let mut content = String::from("1 w\n");
    for y in [500, 470, 440, 410] {
        content += &format!("40 {y} m 340 {y} l S\n");
    }
    for x in [40, 140, 240, 340] {
        content += &format!("{x} 410 m {x} 500 l S\n");
    }
    let rows = [
        ["Region", "Sales", "Costs"],
        ["North", "120", "80"],
        ["South", "340", "210"],
    ];
    for (row, y) in rows.iter().zip([480.0, 450.0, 420.0]) {
        for (cell, x) in row.iter().zip([50.0, 150.0, 250.0]) {
            content += &show('F', 12.0, x, y, cell);
        }
    }
    let document = read(encoded(picture(&content), ImageFormat::Png));
    let html = document.elements[0]
        .metadata
        .text_as_html
        .as_deref()
        .unwrap_or_default();
    let plain = html
        .replace("th>", "td>")
        .replace("<thead>", "")
        .replace("</thead>", "");
    assert!(
        plain.contains("<tr><td>North</td><td>120</td><td>80</td></tr>"),
        "{html}"
    );
}

#[test]
fn single_figures_between_the_rules_of_a_scan_are_read() {
    let mut content = letter();
    let (xs, ys) = ([40.0, 150.0, 230.0, 310.0, 390.0], [400.0, 376.0, 352.0, 328.0, 304.0]);
    for y in ys {
        content += &format!("0.8 w 40 {y} m 390 {y} l S\n");
    }
    for x in xs {
        content += &format!("{x} 400 m {x} 304 l S\n");
    }
    for (row, label) in ["Maple", "Copper beech", "Hawthorn", "Juniper"].iter().enumerate() {
        let y = 384.0 - 24.0 * row as f32;
        content += &show('F', 10.0, 46.0, y, label);
        for (column, digit) in [5, 1, 4].iter().enumerate() {
            content += &show('F', 10.0, 187.0 + 80.0 * column as f32, y, &digit.to_string());
        }
    }
    let document = read(scan(&[picture(&content)]));
    let table = document.elements.iter().find(|e| e.kind.as_str() == "Table").unwrap();
    assert_eq!(
        table.text,
        "Maple 5 1 4 Copper beech 5 1 4 Hawthorn 5 1 4 Juniper 5 1 4"
    );
}

#[test]
fn only_pages_without_text_are_recognised_and_only_when_asked_for() {
    let scanned = scan(&[picture(&letter())]);
    let wanted = read_with(scanned.clone(), Tool::OnRequest, 1, &english());
    assert_eq!(wanted, Err(PartitionError::ToolsNeeded));
    assert_eq!(outline(&read(scanned.clone())), LETTER);

    let fast = PartitionOptions {
        strategy: Strategy::Fast,
        ..english()
    };
    let document = read_with(scanned.clone(), Tool::OnRequest, 1, &fast).unwrap();
    assert_eq!(document.warnings[0].code, WarningCode::OcrNotDone);
    let document = read_with(scanned, Tool::Absent("it is not installed"), 1, &english()).unwrap();
    assert!(
        document.warnings[0]
            .message
            .ends_with("was not recognised: it is not installed")
    );

    let born_digital = PdfBuilder::new().page(&letter(), "").build().to_vec();
    let document = read_with(born_digital.clone(), Tool::OnRequest, 1, &english()).unwrap();
    assert_eq!(
        (outline(&document).as_slice(), document.routes[0].route),
        (LETTER.as_slice(), Route::Fast)
    );
    let all = PartitionOptions {
        strategy: Strategy::OcrOnly,
        ..english()
    };
    let document = read_with(born_digital, Tool::Ready(ocr()), 1, &all).unwrap();
    assert_eq!(
        (outline(&document).as_slice(), document.routes[0].route),
        (LETTER.as_slice(), Route::OcrOnly)
    );
}

#[test]
fn several_pages_give_the_same_with_any_number_of_threads() {
    let line = |text: &str| picture(&show('F', 14.0, 40.0, 500.0, text));
    let pages = ["The first page", "The second page", "The third page", "The fourth page"].map(line);
    let bytes = scan(&pages);
    let elements = |threads| {
        let document = read_with(bytes.clone(), Tool::Ready(ocr()), threads, &english()).unwrap();
        document.elements
    };
    let alone = elements(1);
    assert_eq!(alone.len(), 4);
    assert_eq!(
        (alone[3].text.as_str(), alone[3].metadata.page_number),
        ("The fourth page", Some(4))
    );
    assert_eq!(alone, elements(3));
}

#[test]
fn languages_that_are_not_installed_are_named() {
    let options = PartitionOptions {
        languages: vec!["tlh".into()],
        ..english()
    };
    let bytes = encoded(picture(&letter()), ImageFormat::Png);
    let document = read_with(bytes, Tool::Ready(ocr()), 1, &options).unwrap();
    assert_eq!(document.warnings[0].code, WarningCode::OcrNotDone);
    assert!(
        document.warnings[0]
            .message
            .contains("none of the languages tlh is installed")
    );
}

#[test]
fn elements_of_the_types_named_carry_their_picture() {
    let options = PartitionOptions {
        extract_image_block_types: vec!["title".into()],
        ..english()
    };
    let bytes = PdfBuilder::new().page(&letter(), "").build().to_vec();
    let document = read_with(bytes, Tool::OnRequest, 1, &options).unwrap();
    use base64::Engine;
    let base64 = document.elements[0].metadata.image_base64.as_deref().unwrap();
    let jpeg = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
    let cut = image::load_from_memory(&jpeg).unwrap().to_luma8();
    assert!(
        cut.width() > 200 && cut.width() < 400 && cut.height() < 80,
        "{:?}",
        cut.dimensions()
    );
    assert!(cut.pixels().any(|pixel| pixel.0[0] < 60));
    assert_eq!(
        document.elements[0].metadata.image_mime_type.as_deref(),
        Some("image/jpeg")
    );
    assert!(document.elements[1].metadata.image_base64.is_none());
}

/// A TIFF file of uncompressed grey pictures; the last directory points to the one at `ring`, if given.
fn tiff(pages: &[GrayImage], ring: Option<usize>) -> Vec<u8> {
    let mut bytes = b"II\x2a\0\0\0\0\0".to_vec();
    let mut link = 4;
    let mut directories = Vec::new();
    for page in pages {
        let data = bytes.len() as u32;
        bytes.extend(page.as_raw());
        let at = bytes.len() as u32;
        bytes[link..link + 4].copy_from_slice(&at.to_le_bytes());
        directories.push(at);
        let (width, height) = page.dimensions();
        let entries = [
            (256u16, width),
            (257, height),
            (258, 8),
            (259, 1),
            (262, 1),
            (273, data),
            (277, 1),
            (278, height),
            (279, width * height),
        ];
        bytes.extend((entries.len() as u16).to_le_bytes());
        for (tag, value) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend([4, 0, 1, 0, 0, 0]);
            bytes.extend(value.to_le_bytes());
        }
        link = bytes.len();
        bytes.extend([0; 4]);
    }
    if let Some(&at) = ring.and_then(|ring| directories.get(ring)) {
        bytes[link..link + 4].copy_from_slice(&at.to_le_bytes());
    }
    bytes
}

#[test]
fn each_picture_of_a_tiff_file_is_a_page() {
    let line = |text: &str| picture(&show('F', 14.0, 40.0, 500.0, text));
    let pages = [line("The first sheet"), line("The second sheet")];
    for ring in [None, Some(0)] {
        let document = read(tiff(&pages, ring));
        let found: Vec<_> = document
            .elements
            .iter()
            .map(|e| (e.text.as_str(), e.metadata.page_number))
            .collect();
        assert_eq!(found, [("The first sheet", Some(1)), ("The second sheet", Some(2))]);
    }
}

#[test]
fn a_picture_that_claims_to_be_huge_is_refused_by_its_header() {
    let mut png = encoded(GrayImage::new(4, 4), ImageFormat::Png);
    png[16..24].copy_from_slice(&[0, 1, 0x86, 0xA0, 0, 1, 0x86, 0xA0]);
    // The header's check sum.
    let crc = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    let error = read_with(png, Tool::Ready(ocr()), 1, &english()).unwrap_err();
    assert_eq!(error.code(), Code::FileLimitExceeded);
    assert!(error.to_string().contains("max_image_pixels"), "{error}");
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn broken_pictures_give_an_error_that_says_so() {
    let whole = encoded(picture(&letter()), ImageFormat::Png);
    for cut in [9, 20, 60, whole.len() / 2] {
        let error = read_with(whole[..cut].to_vec(), Tool::Ready(ocr()), 1, &english()).unwrap_err();
        assert_eq!(error.code(), Code::FileCorrupt, "{cut}: {error}");
    }
    for start in [
        &b"\xff\xd8\xff\xe0"[..],
        b"II\x2a\0\xff\xff\xff\xff",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBP",
        b"BM\0\0\0\0\0\0\0\0",
    ] {
        let mut bytes = start.to_vec();
        bytes.extend([0x11; 64]);
        let error = read_with(bytes, Tool::Ready(ocr()), 1, &english()).unwrap_err();
        assert_eq!(error.code(), Code::FileCorrupt, "{start:?}: {error}");
    }
}

#[test]
fn an_empty_or_tiny_picture_yields_no_text_and_no_fault() {
    for (width, height) in [(1, 1), (5, 300), (600, 400)] {
        let blank = GrayImage::from_pixel(width, height, Luma([255]));
        let document = read(encoded(blank, ImageFormat::Png));
        assert!(
            document.elements.iter().all(|element| element.text.is_empty()),
            "{width} x {height}"
        );
    }
}

/// Lines found in drawings may reach over the picture's edge.
#[test]
fn a_page_of_curves_is_read_without_fault() {
    let curve = |n: u32| {
        let (x, y) = (100 + 40 * (n % 8), 200 + 60 * (n / 8));
        format!(
            "{x} {y} m {} {} {} {} {} {y} c S\n",
            x + 5,
            y + 50,
            x + 25,
            y - 40,
            x + 30
        )
    };
    let curves: String = (0..64).map(curve).collect();
    let file = PdfBuilder::new().page(&curves, "/MediaBox [0 0 420 842]").build();
    let document = read(file.to_vec());
    assert_eq!(document.routes[0].route, Route::OcrOnly);
    assert_eq!(document.routes[0].reason, RouteReason::NoTextLayer);
}
