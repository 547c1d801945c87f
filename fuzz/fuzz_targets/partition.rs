//! Any bytes under any name: no panic, and the same result twice. The first byte chooses the name, so
//! that every reader is reached.
//!
//! `cargo fuzz run -s none partition` works on a stable toolchain.
#![no_main]

use std::sync::Arc;

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_partition::{Input, partition};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 14] = [
    "a.txt", "a.md", "a.html", "a.csv", "a.tsv", "a.json", "a.ndjson", "a.xml", "a.docx", "a.pptx", "a.xlsx", "a.eml",
    "a.pdf", "a",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let input = Input {
        bytes: Arc::new(bytes.to_vec()),
        filename: Some(NAMES[usize::from(*first) % NAMES.len()].to_owned()),
        content_type: None,
    };
    let limits = ParseLimits { max_expanded_bytes: 16 << 20, max_elements: 20_000, ..ParseLimits::default() };
    let run = || partition(&input, &PartitionOptions::default(), &limits, &mut |_| {});
    assert_eq!(run(), run());
});
