//! Measures chunking on large and on adverse input.

use std::time::Instant;

use docmill_model::element::assign_element_ids;
use docmill_model::settings::{ChunkOptions, ChunkStrategy, Tokenizer};
use docmill_model::{Element, ElementType};
use docmill_nodes::chunk::chunk;

fn measure(name: &str, mut elements: Vec<Element>, options: &ChunkOptions) {
    assign_element_ids(&mut elements);
    let start = Instant::now();
    let chunks = chunk(elements, options, "scope");
    let time = start.elapsed();
    let bytes: usize = chunks
        .iter()
        .filter_map(|c| serde_json::to_string(c).ok())
        .map(|json| json.len())
        .sum();
    println!(
        "{name}: {time:.1?}, {} chunks, {} KB of JSON",
        chunks.len(),
        bytes / 1024
    );
}

fn prose(text: String) -> Element {
    Element::new(ElementType::NarrativeText, text)
}

fn table(html: String) -> Element {
    let mut table = Element::new(ElementType::Table, "some text ".repeat(1_000));
    table.metadata.text_as_html = Some(html);
    table
}

fn main() {
    for orig in [false, true] {
        let mut options = ChunkOptions::new(ChunkStrategy::ByTitle);
        options.include_orig_elements = orig;
        println!("-- orig_elements: {orig}");
        let words = "word after word, naïve as it is. ".repeat(64_000);
        let sections = (0..12_500).map(|n| match n % 10 {
            0 => Element::new(ElementType::Title, format!("Section {n}")),
            _ => prose("Words of a paragraph of middling length that says little, and then a little more.".into()),
        });
        let sections: Vec<_> = sections.collect();
        for _ in 0..3 {
            measure("1,000,000 characters of sections", sections.clone(), &options);
        }
        let mut in_tokens = options.clone();
        in_tokens.tokenizer = Some(Tokenizer::O200k);
        // The tables are read at the first use.
        measure("one token", vec![prose("one".into())], &in_tokens);
        measure("2 MB in chunks of 500 tokens", vec![prose(words.clone())], &in_tokens);
        measure("paragraph of 2 MB", vec![prose(words.clone())], &options);
        let mut overlapping = options.clone();
        overlapping.overlap = 100;
        measure("paragraph of 2 MB, overlap 100", vec![prose(words)], &overlapping);
        measure("2 MB without spaces", vec![prose("x".repeat(2 << 20))], &options);
        let small = (0..100_000).map(|n| prose(format!("small element {n} of many")).on_page(n / 50 + 1));
        measure("100,000 small elements", small.collect(), &options);
        let empty = (0..100_000).map(|_| prose(String::new()));
        measure(
            "100,000 empty elements",
            empty.chain([prose("x".into())]).collect(),
            &options,
        );
        let row = "<tr><td>some cell</td><td>another &amp; one</td><td>12.5</td></tr>";
        measure(
            "table of 30,000 rows",
            vec![table(format!("<table>{}</table>", row.repeat(30_000)))],
            &options,
        );
        for (name, html) in [
            ("nested tables", "<table><tr><td>x".repeat(120_000)),
            ("nested divs", "<div>".repeat(400_000)),
            ("attributes", format!("<td {}>", "a=1 b ".repeat(300_000))),
            ("ampersands", "&CounterClockwiseContourIntegra".repeat(60_000)),
            ("open comments", "<!-- <".repeat(300_000)),
            ("lone brackets", "<".repeat(2 << 20)),
            ("empty rows", "<tr>".repeat(500_000)),
            (
                "rowspans",
                "<td rowspan=0>a".repeat(60_000) + &"<tr><td rowspan=9>b".repeat(60_000),
            ),
            ("one long cell", "<td>".to_owned() + &"&lt;x ".repeat(300_000)),
        ] {
            measure(name, vec![table(html)], &options);
        }
    }
}
