//! The second engine: what it reads that docmill's own can't, and whether both agree on what both can.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, Route, RouteReason};
use docmill_pdfium::Library;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::opened::OpenPdf;
use super::recognise::Readers;
use super::scanned::ScannedPdf;
use super::testing::{PdfBuilder, installed, outline, show};
use super::{document, render};
use crate::context::{Context, Tool, Tools};
use crate::error::PartitionError;
use crate::{Input, partition_with};

/// The library that `scripts/setup` installs.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::load(&installed("pypdfium2_raw", "libpdfium.")).unwrap())
}

fn read(bytes: &Arc<Vec<u8>>, pdfium: Option<Tool<'_, Library>>) -> Result<Document, PartitionError> {
    let input = Input {
        bytes: bytes.clone(),
        filename: None,
        content_type: None,
    };
    let options = PartitionOptions {
        coordinates: true,
        infer_table_structure: true,
        ..PartitionOptions::default()
    };
    let tools = Tools {
        pdfium,
        ..Tools::default()
    };
    partition_with(&input, &options, &ParseLimits::default(), &tools, &mut |_| {})
}

/// What the second engine alone makes of a file.
fn read_second(bytes: &Arc<Vec<u8>>) -> Document {
    let options = PartitionOptions {
        coordinates: true,
        infer_table_structure: true,
        ..PartitionOptions::default()
    };
    let limits = ParseLimits::default();
    let mut progress = |_| {};
    let mut cx = Context::new(None, &options, &limits, &mut progress);
    let pdf = OpenPdf::second_only(bytes, library());
    let mut source = ScannedPdf::new(&pdf, options.strategy, Readers::new(&cx), 1);
    document::partition(&mut source, &mut cx).unwrap();
    cx.into_document()
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    (digits + ">").into_bytes()
}

/// With a byte near its end that is no part of the encoding.
fn spoilt(mut encoded: Vec<u8>) -> Vec<u8> {
    encoded.insert(encoded.len() - 3, 0xFF);
    encoded
}

fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} /Filter /ASCIIHexDecode >>", data.len());
    [head.as_bytes(), b"\nstream\n", data, b"\nendstream"].concat()
}

/// A file whose page and page tree are in a stream of objects that has a wrong byte.
fn refused() -> Arc<Vec<u8>> {
    let content = show('F', 24.0, 40.0, 300.0, "The ledger was closed on Friday.");
    let inner = [
        (2, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned()),
        (5, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned()),
        (
            3,
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 600] /Contents 4 0 R \
             /Resources << /Font << /F 5 0 R >> >> >>"
                .to_owned(),
        ),
    ];
    let (mut head, mut body) = (String::new(), String::new());
    for (number, object) in &inner {
        head += &format!("{number} {} ", body.len());
        body += object;
        body += " ";
    }
    let packed = spoilt(hex((head.clone() + &body).as_bytes()));
    let mut out = b"%PDF-1.5\n".to_vec();
    let place = |out: &mut Vec<u8>, number: u8, body: Vec<u8>| {
        let at = out.len();
        out.extend(format!("{number} 0 obj\n").into_bytes());
        out.extend(body);
        out.extend(b"\nendobj\n");
        let [.., high, low] = at.to_be_bytes();
        [1, high, low, 0]
    };
    let catalog = place(&mut out, 1, b"<< /Type /Catalog /Pages 2 0 R >>".to_vec());
    let text = place(&mut out, 4, stream("", &hex(content.as_bytes())));
    let objects = place(
        &mut out,
        6,
        stream(&format!("/Type /ObjStm /N 3 /First {}", head.len()), &packed),
    );
    let start = out.len();
    let [.., high, low] = start.to_be_bytes();
    let rows = [
        [0; 4],
        catalog,
        [2, 0, 6, 0],
        [2, 0, 6, 2],
        text,
        [2, 0, 6, 1],
        objects,
        [1, high, low, 0],
    ]
    .concat();
    out.extend(
        format!(
            "7 0 obj\n<< /Type /XRef /Size 8 /W [1 2 1] /Root 1 0 R /Length {} >>\nstream\n",
            rows.len()
        )
        .into_bytes(),
    );
    out.extend(rows);
    out.extend(format!("\nendstream\nendobj\nstartxref\n{start}\n%%EOF\n").into_bytes());
    Arc::new(out)
}

#[test]
fn a_file_that_the_own_engine_refuses_is_read() {
    let bytes = refused();
    let error = read(&bytes, None).unwrap_err();
    assert!(matches!(error, PartitionError::Corrupt { .. }), "{error}");
    assert_eq!(read(&bytes, Some(Tool::OnRequest)), Err(PartitionError::ToolsNeeded));
    let told = read(&bytes, Some(Tool::Absent("it is not there")))
        .unwrap_err()
        .to_string();
    assert!(told.ends_with("(PDFium could not be asked: it is not there)"), "{told}");

    let document = read(&bytes, Some(Tool::Ready(library()))).unwrap();
    assert_eq!(
        outline(&document),
        [("NarrativeText", "The ledger was closed on Friday.")]
    );
    assert_eq!(
        (document.routes[0].route, document.routes[0].reason),
        (Route::Fast, RouteReason::SecondEngine)
    );
    let place = document.elements[0].metadata.coordinates.as_ref().unwrap().bbox();
    assert!(
        (place[0] - 40.0).abs() < 1.0 && (place[3] - 304.8).abs() < 3.0,
        "{place:?}"
    );
}

#[test]
fn what_neither_can_read_says_so() {
    let bytes = Arc::new(b"%PDF-1.4\nnothing of a file\n".to_vec());
    let error = read(&bytes, Some(Tool::Ready(library()))).unwrap_err().to_string();
    assert!(error.ends_with("PDFium can't read it either"), "{error}");
}

#[test]
fn one_page_that_cannot_be_read_is_read_by_the_second_engine() {
    let mut builder = PdfBuilder::new();
    let content = show('F', 12.0, 40.0, 300.0, "The second page has a stream that went wrong.") + "q Q q Q q Q q Q";
    let part = builder.object(stream("", &spoilt(hex(content.as_bytes()))));
    let bytes = builder
        .page(&show('F', 12.0, 40.0, 300.0, "The first page is as it should be."), "")
        .page_of(&format!("{part} 0 R"), "")
        .build();
    assert_eq!(read(&bytes, Some(Tool::OnRequest)), Err(PartitionError::ToolsNeeded));
    let alone = read(&bytes, None).unwrap();
    assert_eq!(
        (alone.elements.len(), alone.warnings.len()),
        (1, 1),
        "{:?}",
        alone.warnings
    );

    let document = read(&bytes, Some(Tool::Ready(library()))).unwrap();
    assert_eq!(
        outline(&document),
        [
            ("NarrativeText", "The first page is as it should be."),
            ("NarrativeText", "The second page has a stream that went wrong.")
        ]
    );
    let reasons: Vec<RouteReason> = document.routes.iter().map(|route| route.reason).collect();
    assert_eq!(reasons, [RouteReason::TextLayer, RouteReason::SecondEngine]);
    assert_eq!(document.warnings, []);
}

#[test]
fn of_damaged_content_the_engine_that_finds_more_is_believed() {
    // A hexadecimal string with a letter that is no digit: the own engine reads up to it.
    let content = show('F', 12.0, 40.0, 300.0, "The first line was all right.")
        + "BT /F 12 Tf 40 280 Td <546865z> Tj ET\n"
        + &show('F', 12.0, 40.0, 240.0, "The last line stands behind the damage.");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).unwrap();
    let mut data = encoder.finish().unwrap();
    // The check sum tells.
    *data.last_mut().unwrap() ^= 1;
    let mut builder = PdfBuilder::new();
    let head = format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", data.len());
    let part = builder.object([head.as_bytes(), &data, b"\nendstream"].concat());
    let bytes = builder.page_of(&format!("{part} 0 R"), "").build();
    let alone = read(&bytes, None).unwrap();
    assert_eq!(outline(&alone), [("NarrativeText", "The first line was all right.")]);
    assert_eq!(alone.warnings.len(), 1);
    let document = read(&bytes, Some(Tool::Ready(library()))).unwrap();
    let texts: Vec<&str> = outline(&document).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts.last(), Some(&"The last line stands behind the damage."));
    assert_eq!(document.warnings.len(), 1);
}

#[test]
fn a_file_that_can_be_read_does_not_ask_for_it() {
    let bytes = PdfBuilder::new()
        .page(&show('F', 12.0, 40.0, 300.0, "All is well."), "")
        .build();
    assert!(read(&bytes, Some(Tool::OnRequest)).is_ok());
}

/// Types, texts, tables, links and rounded boxes.
fn summary(document: &Document) -> Vec<String> {
    document
        .elements
        .iter()
        .map(|element| {
            let metadata = &element.metadata;
            let links: Vec<&str> = metadata.links.iter().map(|link| link.url.as_str()).collect();
            let place = metadata
                .coordinates
                .as_ref()
                .map(|place| place.bbox().map(|v| (v / 3.0).round()));
            format!(
                "{} {:?} {:?} {links:?} {place:?}",
                element.kind.as_str(),
                element.text,
                metadata.text_as_html
            )
        })
        .collect()
}

fn prose() -> String {
    let mut out = show('B', 16.0, 40.0, 540.0, "A Report of the Society");
    let lines = [
        "The committee met on Monday and agreed on the plan for",
        "the coming year, which all members had read before and",
        "which the chair had sent them in the week before.",
    ];
    for (line, y) in lines.iter().zip([500.0, 488.0, 476.0]) {
        out += &show('F', 10.0, 40.0, y, line);
    }
    out + &show('F', 10.0, 40.0, 440.0, "- the first of the points that were made")
        + &show('F', 10.0, 40.0, 426.0, "- the second of them, which took longer")
}

fn ruled_table() -> String {
    let mut out = String::from("1 w\n");
    for y in [400, 380, 360, 340] {
        out += &format!("40 {y} m 340 {y} l S\n");
    }
    for x in [40, 140, 240, 340] {
        out += &format!("{x} 340 m {x} 400 l S\n");
    }
    let rows = [
        ["Town", "People", "Area"],
        ["Aarau", "21,000", "12"],
        ["Basel", "178,000", "24"],
    ];
    for (row, y) in rows.iter().zip([386.0, 366.0, 346.0]) {
        for (cell, x) in row.iter().zip([44.0, 144.0, 244.0]) {
            out += &show('F', 10.0, x, y, cell);
        }
    }
    out
}

#[test]
fn both_engines_agree_on_what_both_can_read() {
    let mut linked = PdfBuilder::new();
    let link = linked.object(
        "<< /Type /Annot /Subtype /Link /Rect [40 495 140 512] /Border [0 0 0] \
         /A << /S /URI /URI (https://example.org/plan) >> >>",
    );
    let inner = ruled_table();
    let mut nested = PdfBuilder::new();
    let form = nested.object(format!(
        "<< /Type /XObject /Subtype /Form /BBox [0 0 400 600] /Matrix [1 0 0 1 10 -40] \
         /Resources << /Font << /F 3 0 R >> >> /Length {} >>\nstream\n{inner}\nendstream",
        inner.len()
    ));
    let hidden = show('F', 10.0, 40.0, 500.0, "What everybody sees on the page.")
        + "BT 3 Tr /F 10 Tf 40 300 Td (What nobody sees.) Tj ET\n"
        + &show('F', 10.0, 900.0, 300.0, "What stands beside it.");
    let files = [
        ("prose", PdfBuilder::new().page(&prose(), "").build()),
        ("a ruled table", PdfBuilder::new().page(&ruled_table(), "").build()),
        (
            "a page turned right",
            PdfBuilder::new().page(&prose(), "/Rotate 90").build(),
        ),
        (
            "a page turned left",
            PdfBuilder::new().page(&ruled_table(), "/Rotate 270").build(),
        ),
        (
            "a crop box",
            PdfBuilder::new().page(&prose(), "/CropBox [20 100 390 580]").build(),
        ),
        (
            "a link",
            linked.page(&prose(), &format!("/Annots [{link} 0 R]")).build(),
        ),
        (
            "a form",
            nested
                .page_with("/X Do", &format!("/Resources << /XObject << /X {form} 0 R >> >>"))
                .build(),
        ),
        ("hidden text", PdfBuilder::new().page(&hidden, "").build()),
    ];
    for (name, bytes) in &files {
        let own = super::testing::partition(
            bytes,
            &PartitionOptions {
                coordinates: true,
                infer_table_structure: true,
                ..PartitionOptions::default()
            },
        );
        assert_eq!(summary(&own.unwrap()), summary(&read_second(bytes)), "{name}");
    }
}

#[test]
fn its_outline_gives_levels() {
    let mut builder = PdfBuilder::new();
    // The entries refer to each other by numbers that are known before they are added.
    let first =
        builder.object("<< /Title (A Report of the Society) /Parent 7 0 R /First 6 0 R /Last 6 0 R /Count 1 >>");
    let second = builder.object("<< /Title (What Was Said) /Parent 5 0 R >>");
    let root = builder.object(format!(
        "<< /Type /Outlines /First {first} 0 R /Last {first} 0 R /Count 2 >>"
    ));
    assert_eq!((first, second, root), (5, 6, 7));
    let content = prose()
        + &show('B', 16.0, 40.0, 380.0, "What Was Said")
        + &show(
            'F',
            10.0,
            40.0,
            360.0,
            "Nothing that mattered to anybody who was there.",
        );
    let bytes = builder
        .catalog(&format!("/Outlines {root} 0 R"))
        .page(&content, "")
        .build();
    let document = read_second(&bytes);
    let titles: Vec<_> = document
        .elements
        .iter()
        .filter(|element| element.kind.as_str() == "Title")
        .map(|element| (element.text.as_str(), element.metadata.category_depth))
        .collect();
    assert_eq!(
        titles,
        [("A Report of the Society", Some(0)), ("What Was Said", Some(1))]
    );
}

#[test]
fn pages_look_alike() {
    let bytes = PdfBuilder::new().page(&(prose() + &ruled_table()), "").build();
    let own = OpenPdf::open(&bytes, None, None).unwrap();
    let second = OpenPdf::second_only(&bytes, library());
    let (own, second) = (
        render::gray(&own, 0, 100.0).unwrap(),
        render::gray(&second, 0, 100.0).unwrap(),
    );
    assert!(own.width().abs_diff(second.width()) <= 1 && own.height().abs_diff(second.height()) <= 1);
    let ink = |picture: &docmill_ocr::Gray| picture.pixels().iter().map(|v| 255 - u64::from(*v)).sum::<u64>() as f64;
    let ratio = ink(&own) / ink(&second);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}
