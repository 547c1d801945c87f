//! HEIC pictures: what they need, and what comes of them.

use std::sync::{Arc, OnceLock};

use docmill_heif::Library;
use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Code, Document};
use docmill_ocr::Ocr;

use super::testing::{installed, outline};
use crate::error::PartitionError;
use crate::{Input, PagePicture, Tool, Tools, detect, draw_pages, partition_with};

/// Two pictures of 640 by 260 pixels.
const TWO: &[u8] = include_bytes!("../../../heif/fixtures/two_pages.heic");
/// The first of them, stored on its side, and turned by a property of the file.
const TURNED: &[u8] = include_bytes!("../../../heif/fixtures/turned.heic");

/// The library that `scripts/setup` installs.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::load(&installed("pillow_heif.libs", "libheif-")).unwrap())
}

fn input(bytes: &[u8]) -> Input {
    Input {
        bytes: Arc::new(bytes.to_vec()),
        filename: Some("IMG_0001.JPG".into()),
        content_type: None,
    }
}

fn read(bytes: &[u8], heif: Option<Tool<'_, Library>>, limits: &ParseLimits) -> Result<Document, PartitionError> {
    let ocr = Ocr::open(None).unwrap();
    let options = PartitionOptions {
        languages: vec!["en".into()],
        coordinates: true,
        ..PartitionOptions::default()
    };
    let tools = Tools {
        recognition: Tool::Ready(&ocr),
        heif,
        ..Tools::default()
    };
    partition_with(&input(bytes), &options, limits, &tools, &mut |_| {})
}

#[test]
fn its_pictures_are_pages_that_are_recognised() {
    let document = read(TWO, Some(Tool::Ready(library())), &ParseLimits::default()).unwrap();
    assert_eq!(document.pages.len(), 2);
    let texts: Vec<&str> = outline(&document).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        texts.join(" "),
        "The ledger was closed on Friday by the treasurer of the society. The second picture of the file has a text \
         of its own."
    );
    let metadata = &document.elements[0].metadata;
    assert_eq!(metadata.filetype.as_deref(), Some("image/heic"));
    let place = metadata.coordinates.as_ref().unwrap();
    assert_eq!((place.layout_width, place.layout_height), (640.0, 260.0));
}

#[test]
fn it_is_turned_as_the_file_says() {
    let tools = Tools {
        heif: Some(Tool::Ready(library())),
        ..Tools::default()
    };
    let mut pictures = Vec::new();
    let mut put = |_, picture: Option<PagePicture>| pictures.push(picture.unwrap().png());
    draw_pages(
        &input(TURNED),
        None,
        (&ParseLimits::default(), &tools),
        (9, 2000),
        &mut put,
    )
    .unwrap();
    let [png] = pictures.as_slice() else {
        panic!("{} pictures", pictures.len())
    };
    let picture = image::load_from_memory(png).unwrap();
    assert_eq!((picture.width(), picture.height()), (640, 260));
}

#[test]
fn without_its_decoder_it_is_refused_by_name() {
    assert_eq!(detect(&input(TWO)).unwrap().mime(), "image/heic");
    let limits = ParseLimits::default();
    for (heif, reason) in [
        (None, "no setting `heif.library` names it"),
        (Some(Tool::Absent("it is not there")), "it is not there"),
    ] {
        let error = read(TWO, heif, &limits).unwrap_err();
        assert_eq!(error.code(), Code::FileTypeUnsupported);
        assert!(error.to_string().ends_with(reason), "{error}");
    }
    assert_eq!(
        read(TWO, Some(Tool::OnRequest), &limits),
        Err(PartitionError::ToolsNeeded)
    );
}

#[test]
fn more_pixels_than_allowed_are_not_decoded() {
    let limits = ParseLimits {
        max_image_pixels: 640 * 259,
        ..ParseLimits::default()
    };
    let error = read(TWO, Some(Tool::Ready(library())), &limits).unwrap_err();
    assert_eq!(error.code(), Code::FileLimitExceeded);
    let limits = ParseLimits {
        max_pages: 1,
        ..ParseLimits::default()
    };
    let error = read(TWO, Some(Tool::Ready(library())), &limits).unwrap_err();
    assert_eq!(error.code(), Code::FileLimitExceeded);
}

#[test]
fn cut_and_spoilt_files_give_errors() {
    let heif = Some(Tool::Ready(library()));
    for cut in (40..TURNED.len()).step_by(97) {
        let read = read(&TURNED[..cut], heif, &ParseLimits::default());
        assert_eq!(read.map_err(|error| error.code()), Err(Code::FileCorrupt), "{cut}");
    }
    for at in (0..TURNED.len().min(600)).step_by(23) {
        let mut spoilt = TURNED.to_vec();
        spoilt[at] ^= 0x55;
        // Whatever comes out, it comes in an orderly fashion.
        let _ = read(&spoilt, heif, &ParseLimits::default());
    }
}
