//! Any elements under any valid options: no panic, no text chunk over the limit.
#![no_main]

use arbitrary::Arbitrary;
use docmill_model::settings::{ChunkOptions, ChunkStrategy};
use docmill_model::{Element, ElementType};
use docmill_nodes::chunk::chunk;
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Case {
    elements: Vec<(u8, String, Option<u8>, Option<String>)>,
    strategy: u8,
    max: u16,
    soft: u16,
    overlap: u16,
    flags: [bool; 5],
}

fuzz_target!(|case: Case| {
    let max = usize::from(case.max % 2_000) + 1;
    let options = ChunkOptions {
        strategy: [ChunkStrategy::ByCharacter, ChunkStrategy::ByTitle, ChunkStrategy::ByPage]
            [usize::from(case.strategy) % 3],
        max_characters: max,
        new_after_n_chars: usize::from(case.soft).min(max),
        overlap: usize::from(case.overlap) % max,
        overlap_all: case.flags[0],
        include_orig_elements: case.flags[1],
        repeat_table_headers: case.flags[2],
        skip_table_chunking: case.flags[3],
        isolate_table: true,
        combine_text_under_n_chars: max,
        multipage_sections: case.flags[4],
    };
    let elements: Vec<Element> = case
        .elements
        .into_iter()
        .map(|(kind, text, page, html)| {
            let mut element = Element::new(ElementType::ALL[usize::from(kind) % ElementType::ALL.len()], text);
            element.metadata.page_number = page.map(u32::from);
            element.metadata.text_as_html = html;
            element
        })
        .collect();
    for chunk in chunk(elements, &options, "fuzz") {
        if chunk.kind == ElementType::CompositeElement {
            assert!(chunk.text.chars().count() <= max);
        }
    }
});
