//! Small PDF files and made-up characters for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use docmill_model::Document;
use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;

use super::engine::{Direction, Glyph, PageContent};
use crate::context::Context;
use crate::error::PartitionError;

/// A file of numbered objects; object 1 is the catalog, object 2 the page tree, object 3 Helvetica and
/// object 4 Helvetica-Bold.
pub(super) struct PdfBuilder {
    objects: Vec<Vec<u8>>,
    pages: Vec<usize>,
    trailer: String,
    catalog: String,
}

impl PdfBuilder {
    pub(super) fn new() -> Self {
        let font =
            |name: &str| format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>");
        Self {
            objects: vec![
                b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
                Vec::new(),
                font("Helvetica").into_bytes(),
                font("Helvetica-Bold").into_bytes(),
            ],
            pages: Vec::new(),
            trailer: String::new(),
            catalog: String::new(),
        }
    }

    /// Adds an object and returns its number.
    pub(super) fn object(&mut self, body: impl Into<Vec<u8>>) -> usize {
        self.objects.push(body.into());
        self.objects.len()
    }

    /// Adds a page of 400 by 600 points; `extra` are further entries of its dictionary.
    pub(super) fn page(mut self, content: &str, extra: &str) -> Self {
        let stream = self.object(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        self.page_of(&format!("{stream} 0 R"), extra)
    }

    /// Adds a page with its own resources.
    pub(super) fn page_with(mut self, content: &str, resources: &str) -> Self {
        let stream = self.object(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        let page = self.object(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 600] /Contents {stream} 0 R {resources} >>"
        ));
        self.pages.push(page);
        self
    }

    /// Adds a page whose contents are given as they stand in its dictionary.
    pub(super) fn page_of(mut self, contents: &str, extra: &str) -> Self {
        let media = if extra.contains("/MediaBox") {
            ""
        } else {
            "/MediaBox [0 0 400 600]"
        };
        let page = self.object(format!(
            "<< /Type /Page /Parent 2 0 R {media} /Contents {contents} {extra} \
             /Resources << /Font << /F 3 0 R /B 4 0 R >> /XObject << /I 5 0 R >> >> >>"
        ));
        self.pages.push(page);
        self
    }

    /// Adds entries to the trailer.
    pub(super) fn trailer(mut self, entries: &str) -> Self {
        self.trailer.push_str(entries);
        self
    }

    /// Adds entries to the catalog.
    pub(super) fn catalog(mut self, entries: &str) -> Self {
        self.catalog.push_str(entries);
        self
    }

    pub(super) fn build(mut self) -> Arc<Vec<u8>> {
        let kids: Vec<String> = self.pages.iter().map(|page| format!("{page} 0 R")).collect();
        self.objects[1] = format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len()).into_bytes();
        self.objects[0] = format!("<< /Type /Catalog /Pages 2 0 R {} >>", self.catalog).into_bytes();
        let mut out = b"%PDF-1.4\n".to_vec();
        let mut offsets = Vec::new();
        for (index, body) in self.objects.iter().enumerate() {
            offsets.push(out.len());
            out.extend(format!("{} 0 obj\n", index + 1).into_bytes());
            out.extend(body);
            out.extend(b"\nendobj\n");
        }
        let start = out.len();
        out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", offsets.len() + 1).into_bytes());
        for offset in &offsets {
            out.extend(format!("{offset:010} 00000 n \n").into_bytes());
        }
        out.extend(
            format!(
                "trailer\n<< /Size {} /Root 1 0 R {} >>\nstartxref\n{start}\n%%EOF\n",
                offsets.len() + 1,
                self.trailer
            )
            .into_bytes(),
        );
        Arc::new(out)
    }
}

/// A library of a Python package that `scripts/setup` installs, by its folder and the start of its name.
pub(super) fn installed(folder: &str, name: &str) -> PathBuf {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let found = entries(&lib)
        .flat_map(|python| entries(&python.path().join("site-packages").join(folder)))
        .find(|file| file.file_name().to_string_lossy().starts_with(name));
    found.expect("a library of the tests: run scripts/setup").path()
}

/// Content that shows `text` with its baseline starting at `(x, y)`, y pointing up.
pub(super) fn show(font: char, size: f32, x: f32, y: f32, text: &str) -> String {
    format!("BT /{font} {size} Tf {x} {y} Td ({text}) Tj ET\n")
}

pub(super) fn partition(bytes: &Arc<Vec<u8>>, options: &PartitionOptions) -> Result<Document, PartitionError> {
    let limits = ParseLimits::default();
    let mut progress = |_| {};
    let mut cx = Context::new(None, options, &limits, &mut progress);
    super::partition(bytes, &mut cx)?;
    Ok(cx.into_document())
}

/// Types and texts of the elements.
pub(super) fn outline(document: &Document) -> Vec<(&'static str, &str)> {
    document
        .elements
        .iter()
        .map(|element| (element.kind.as_str(), element.text.as_str()))
        .collect()
}

/// A page with upright text, half a font size per character; y points down.
pub(super) fn typeset(lines: &[(f32, f32, f32, &str)]) -> PageContent {
    let mut content = PageContent {
        width: 600.0,
        height: 800.0,
        ..PageContent::default()
    };
    for &(x, y, size, text) in lines {
        for (index, ch) in text.chars().enumerate() {
            content.glyphs.push(Glyph {
                ch,
                x: x + index as f32 * size / 2.0,
                y,
                advance: size / 2.0,
                size,
                font: 0,
                direction: Direction::East,
                tag: 0,
            });
        }
    }
    content
}
