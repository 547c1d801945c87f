//! Broken files as a whole.

use std::sync::Arc;

use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, WarningCode};

use super::testing::{PdfBuilder, partition, show};
use crate::error::PartitionError;

fn read(bytes: &[u8]) -> Result<Document, PartitionError> {
    partition(&Arc::new(bytes.to_vec()), &PartitionOptions::default())
}

fn texts(document: &Document) -> Vec<&str> {
    let texts = document.elements.iter().map(|element| element.text.as_str());
    texts.filter(|text| !text.is_empty()).collect()
}

/// A file of pages that say which they are.
fn pages(count: usize) -> Vec<u8> {
    let page = |n: usize| show('F', 10.0, 40.0, 300.0, &format!("This is page {n}."));
    let builder = (1..=count).fold(PdfBuilder::new(), |builder, n| builder.page(&page(n), ""));
    builder.build().to_vec()
}

/// Replaces text by other text of the same length.
fn patched(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn a_page_tree_that_is_a_ring_is_an_error() {
    let bytes = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
                  2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2147483647>>endobj\ntrailer<</Root 1 0 R>>\n";
    let Err(PartitionError::Corrupt { reason, .. }) = read(bytes) else {
        panic!("no error")
    };
    assert!(reason.contains("states 2147483647 pages"), "{reason}");
}

#[test]
fn a_file_without_pages_is_an_error() {
    assert!(matches!(read(&pages(0)), Err(PartitionError::Corrupt { .. })));
}

#[test]
fn more_pages_stated_than_there_are_is_a_warning() {
    let document = read(&patched(&pages(2), "/Count 2", "/Count 9")).unwrap();
    assert_eq!(texts(&document).len(), 2);
    let warning = &document.warnings[0];
    assert_eq!((warning.code, warning.page_number), (WarningCode::PartUnreadable, None));
    assert_eq!(warning.message, "the file states 9 pages; only 2 were found");
}

#[test]
fn pages_that_the_tree_lost_are_found() {
    // The second page is listed as an object that does not exist.
    let bytes = patched(&pages(3), " 8 0 R ", " 99 0 R");
    let document = read(&bytes).unwrap();
    assert_eq!(document.pages.len(), 3);
    let mut found = texts(&document);
    found.sort_unstable();
    assert_eq!(found, ["This is page 1.", "This is page 2.", "This is page 3."]);
    assert!(
        document
            .warnings
            .iter()
            .any(|w| w.message.contains("list of pages is damaged"))
    );
}

#[test]
fn a_file_cut_before_its_catalog_gives_the_pages_it_still_has() {
    // Written with the catalog last, as many programs do.
    let whole = pages(4);
    let text = String::from_utf8(whole).unwrap();
    let start = text.find("3 0 obj").unwrap();
    let cut = text.find("12 0 obj").unwrap();
    let head = format!("%PDF-1.4\n{}", &text[start..cut + 30]);
    let document = read(head.as_bytes()).unwrap();
    assert_eq!(
        texts(&document),
        ["This is page 1.", "This is page 2.", "This is page 3."]
    );
    assert!(document.warnings[0].message.contains("list of pages is damaged"));
}

#[test]
fn a_content_stream_that_is_lost_is_reported() {
    let mut builder = PdfBuilder::new();
    let text = show('F', 10.0, 40.0, 300.0, "The part that is left.");
    let good = builder.object(format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()));
    let bad = builder.object("<< /Length 4 /Filter /FlateDecode >>\nstream\nabcd\nendstream");
    let bytes = builder.page_of(&format!("[{good} 0 R {bad} 0 R 77 0 R]"), "").build();
    let document = partition(&bytes, &PartitionOptions::default()).unwrap();
    assert_eq!(texts(&document), ["The part that is left."]);
    assert_eq!(document.warnings[0].code, WarningCode::PartUnreadable);
    assert!(document.warnings[0].message.contains("2 of its content streams"));
}

#[test]
fn every_cut_of_a_file_ends_in_text_an_error_or_a_warning() {
    let whole = pages(2);
    for cut in (0..whole.len()).step_by(7) {
        if let Ok(document) = read(&whole[..cut]) {
            assert!(
                texts(&document).len() == 2 || !document.warnings.is_empty(),
                "cut at {cut}: silence"
            );
        }
    }
}
