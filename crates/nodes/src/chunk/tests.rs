//! Tests of chunking as a whole.

mod properties;
mod reference;
mod rules;
mod tables;

use docmill_model::element::assign_element_ids;
use docmill_model::settings::{ChunkOptions, ChunkStrategy};
use docmill_model::{Element, ElementType};

use super::chunk;

/// An element with text; ids are given by [`run`].
fn element(kind: ElementType, text: &str) -> Element {
    Element::new(kind, text)
}

fn title(text: &str) -> Element {
    element(ElementType::Title, text)
}

fn prose(text: &str) -> Element {
    element(ElementType::NarrativeText, text)
}

fn table(text: &str, html: &str) -> Element {
    let mut table = element(ElementType::Table, text);
    table.metadata.text_as_html = Some(html.into());
    table
}

fn by_character(max: usize) -> ChunkOptions {
    ChunkOptions {
        max_characters: max,
        new_after_n_chars: max,
        combine_text_under_n_chars: max,
        ..ChunkOptions::new(ChunkStrategy::ByCharacter)
    }
}

fn by_title(max: usize) -> ChunkOptions {
    ChunkOptions {
        strategy: ChunkStrategy::ByTitle,
        ..by_character(max)
    }
}

fn run(elements: &[Element], options: &ChunkOptions) -> Vec<Element> {
    let mut elements = elements.to_vec();
    assign_element_ids(&mut elements);
    chunk(elements, options, "scope")
}

fn texts(chunks: &[Element]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk.text.as_str()).collect()
}

fn htmls(chunks: &[Element]) -> Vec<&str> {
    let html = |chunk: &'_ Element| chunk.metadata.text_as_html.is_some();
    assert!(chunks.iter().all(html), "a chunk has no HTML");
    chunks
        .iter()
        .filter_map(|chunk| chunk.metadata.text_as_html.as_deref())
        .collect()
}
