//! Whatever the bytes, names and declared types, partitioning ends in a document or a typed error.

use std::sync::Arc;

use docmill_model::settings::PartitionOptions;
use docmill_partition::{FileType, Input, detect, partition};
use proptest::prelude::*;

const NAMES: &[&str] = &[
    "", "a", "a.txt", "a.md", "a.html", "a.csv", "a.tsv", "a.json", "a.ndjson", "a.xml", "a.eml", "a.py", "a.pdf",
    "a.docx",
];

/// Pieces that readers react to, so that random input reaches past their first checks.
const PIECES: &[&str] = &[
    "<",
    ">",
    "</",
    "<p>",
    "<table>",
    "<tr>",
    "<td rowspan=3 colspan=2>",
    "</table>",
    "<ul><li>",
    "<b>",
    "<a href=x>",
    "<pre>",
    "<math>",
    "<svg>",
    "<select><option>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&x;",
    "&#0;",
    "<?xml ",
    "<!DOCTYPE ",
    "<html>",
    "From: a@b.c\r\n",
    "Content-Type: multipart/mixed; boundary=b\r\n",
    "Content-Type: message/rfc822\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "\r\n\r\n",
    "--b\r\n",
    "--b--\r\n",
    "\n",
    "\"",
    ",",
    ";",
    "\t",
    "{",
    "}",
    "[",
    "]",
    ":",
    "{\"type\":\"Title\",\"element_id\":\"\"}",
    "1. ",
    "- ",
    "# ",
    "|---|",
    "> ",
    "```",
    "[^1]:",
    "---\n",
    "word",
    "Two words. ",
    "。",
    "é",
    "\u{feff}",
    "\0",
    "%PDF-1.4",
    "PK\u{3}\u{4}",
];

fn run(bytes: Vec<u8>, name: &str, mime: Option<String>) {
    let input = Input {
        bytes: Arc::new(bytes),
        filename: (!name.is_empty()).then(|| name.to_owned()),
        content_type: mime,
    };
    let text_type = matches!(
        detect(&input),
        Ok(t) if ![FileType::Pdf, FileType::Docx, FileType::Pptx, FileType::Xlsx].contains(&t)
    );
    if text_type && let Ok(document) = partition(&input, &PartitionOptions::default(), &Default::default(), &mut |_| {})
    {
        assert!(document.elements.iter().all(|e| e.element_id.len() == 32));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), name in 0..NAMES.len()) {
        run(bytes, NAMES[name], None);
    }

    #[test]
    fn random_pieces(pieces in proptest::collection::vec(0..PIECES.len(), 0..60), name in 0..NAMES.len()) {
        let text: String = pieces.into_iter().map(|i| PIECES[i]).collect();
        run(text.into_bytes(), NAMES[name], None);
    }

    #[test]
    fn random_declared_types(text in "\\PC{0,60}", mime in "(text|application)/[a-z.+-]{0,12}") {
        run(text.into_bytes(), "", Some(mime));
    }
}
