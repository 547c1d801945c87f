//! Any bytes as a PDF, as they are and as the content of a page: no panic, and the same elements with one
//! thread and with several.
//!
//! `cargo fuzz run -s none pdf` works on a stable toolchain. Small PDFs, the examples for a start, make good
//! seeds.
#![no_main]

use std::sync::Arc;

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_partition::{Input, Tools, partition_with};
use libfuzzer_sys::fuzz_target;

/// A page that draws `content`.
fn page(content: &[u8]) -> Vec<u8> {
    let mut file = format!(
        "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
         2 0 obj\n<< /Type /Pages /Kids [4 0 R] /Count 1 >>\nendobj\n\
         3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n\
         4 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 600] /Contents 5 0 R \
         /Resources << /Font << /F 3 0 R >> >> >>\nendobj\n\
         5 0 obj\n<< /Length {} >>\nstream\n",
        content.len()
    )
    .into_bytes();
    file.extend(content);
    file.extend(b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n");
    file
}

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let bytes = if first % 2 == 0 { bytes.to_vec() } else { page(bytes) };
    let input = Input {
        bytes: Arc::new(bytes),
        filename: Some("a.pdf".to_owned()),
        content_type: None,
    };
    let limits = ParseLimits { max_expanded_bytes: 16 << 20, max_elements: 20_000, ..ParseLimits::default() };
    let run = |threads| {
        let tools = Tools { threads, ..Tools::default() };
        partition_with(&input, &PartitionOptions::default(), &limits, &tools, &mut |_| {})
            .map(|document| document.elements)
    };
    assert_eq!(run(1), run(3));
});
