//! The engine behind [`PageSource`]: the `hayro` crates.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use hayro_interpret::InterpreterSettings;
use hayro_interpret::hayro_syntax::content::TypedIter;
use hayro_interpret::hayro_syntax::content::ops::TypedInstruction;
use hayro_interpret::hayro_syntax::object::dict::keys::{
    A, ANNOTS, CONTENTS, FIRST, NEXT, OUTLINES, RECT, SUBTYPE, TITLE, URI,
};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Rect, Stream, String as PdfString};
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{self, Affine};

use super::content::Drawn;
use super::device::GlyphDevice;
use super::engine::{Font, FontId, LinkArea, OutlineEntry, PageContent, PageSource, Unreadable};
use super::fonts::FontTable;
use super::forms::add_values;
use super::interpret::Interpreter;
use super::interpret::layers::{HiddenLayers, hidden_layers};
use super::repair::{relist, stated_pages, with_stub};
use super::structure::Structure;
use super::text::text_string;
use crate::error::PartitionError;

/// Entries of an outline that are read; more serve nobody.
const MAX_OUTLINE_ENTRIES: usize = 20_000;
/// Nesting of an outline that is followed.
const MAX_OUTLINE_DEPTH: usize = 32;
/// Unknown operators at the start of a content stream that are forgiven.
const MAX_OPERATORS_TRIED: usize = 1000;
/// Quadrilaterals of one link.
const MAX_QUADS: usize = 64;
/// Link annotations read per page.
const MAX_LINKS: usize = 10_000;

/// An opened file.
pub(super) struct Opened {
    pub(super) pdf: Pdf,
    /// What is wrong with it as a whole, for people.
    pub(super) faults: Vec<String>,
}

/// Opens a file, repairing it where possible.
pub(super) fn open(bytes: &Arc<Vec<u8>>, password: Option<&str>) -> Result<Opened, PartitionError> {
    let first = load(bytes, password);
    let stated = first.as_ref().ok().and_then(stated_pages).unwrap_or(0);
    let count = first.as_ref().map_or(0, |pdf| pdf.pages().len());
    if count > 0 && count >= stated {
        return first.map(|pdf| Opened {
            pdf,
            faults: Vec::new(),
        });
    }
    let damaged = matches!(first, Err(PartitionError::Corrupt { .. }) | Ok(_));
    let relisted = damaged.then(|| relisted(bytes, first.as_ref().ok())).flatten();
    let mut faults = Vec::new();
    let pdf = match (relisted, first) {
        (Some(pdf), _) if pdf.pages().len() > count => {
            faults.push("its list of pages is damaged; pages were searched for and may be out of order".to_owned());
            pdf
        }
        (_, first) => first?,
    };
    let count = pdf.pages().len();
    if count == 0 {
        let reason = match stated {
            0 => "it has no pages".to_owned(),
            stated => format!("it states {stated} pages but has none that can be found"),
        };
        return Err(PartitionError::corrupt("PDF", reason));
    }
    if stated > count {
        faults.push(format!("the file states {stated} pages; only {count} were found"));
    }
    Ok(Opened { pdf, faults })
}

/// The file with the pages that searching it finds; `pdf` is the file as it was opened, if it was.
fn relisted(bytes: &Arc<Vec<u8>>, pdf: Option<&Pdf>) -> Option<Pdf> {
    let search = |pdf: &Pdf| {
        catch_unwind(AssertUnwindSafe(|| relist(bytes, pdf)))
            .ok()
            .flatten()
            .and_then(|bytes| load(&bytes, None).ok())
    };
    match pdf {
        Some(pdf) => search(pdf),
        None => search(&load(&with_stub(bytes)?, None).ok()?),
    }
}

fn load(bytes: &Arc<Vec<u8>>, password: Option<&str>) -> Result<Pdf, PartitionError> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        Pdf::new_with_password(bytes.clone(), password.unwrap_or_default())
    }));
    match result {
        Ok(Ok(pdf)) => Ok(pdf),
        Ok(Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected))) => {
            Err(if password.is_some_and(|p| !p.is_empty()) {
                PartitionError::WrongPassword("PDF")
            } else {
                PartitionError::Encrypted("PDF")
            })
        }
        Ok(Err(LoadPdfError::Decryption(error))) => Err(PartitionError::corrupt("PDF", encryption_fault(error))),
        Ok(Err(LoadPdfError::Invalid)) => Err(PartitionError::corrupt(
            "PDF",
            "neither a list of pages nor a page can be found in it; it may be cut short",
        )),
        Err(_) => Err(PartitionError::corrupt("PDF", "its structure cannot be followed")),
    }
}

fn encryption_fault(error: DecryptionError) -> &'static str {
    match error {
        DecryptionError::MissingIDEntry => "it is encrypted but lacks the file identifier that takes",
        DecryptionError::UnsupportedAlgorithm => "it is encrypted with an unsupported algorithm",
        DecryptionError::InvalidEncryption | DecryptionError::PasswordProtected => {
            "its encryption dictionary is broken"
        }
    }
}

/// An open document with its fonts.
pub(super) struct HayroSource<'a> {
    pdf: &'a Pdf,
    fonts: FontTable<'a>,
    layers: HiddenLayers,
    structure: Option<Structure<'a>>,
}

impl<'a> HayroSource<'a> {
    pub(super) fn new(pdf: &'a Pdf) -> Self {
        Self {
            pdf,
            fonts: FontTable::new(InterpreterSettings::default()),
            layers: catch_unwind(AssertUnwindSafe(|| hidden_layers(pdf))).unwrap_or_default(),
            structure: catch_unwind(AssertUnwindSafe(|| Structure::open(pdf))).unwrap_or_default(),
        }
    }
}

impl HayroSource<'_> {
    /// The id of a font that is not one of the file's.
    pub(super) fn add_font(&mut self, font: Font) -> FontId {
        self.fonts.add(font)
    }
}

impl PageSource for HayroSource<'_> {
    fn page_count(&self) -> usize {
        self.pdf.pages().len()
    }

    fn page_size(&self, index: usize) -> (f32, f32) {
        self.pdf
            .pages()
            .get(index)
            .map_or((0.0, 0.0), |page| page.render_dimensions())
    }

    fn read_page(&mut self, index: usize) -> Result<PageContent, Unreadable> {
        let pdf = self.pdf;
        let page = pdf.pages().get(index).ok_or(Unreadable("there is no such page"))?;
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| self.interpret(page)));
        match result {
            Ok(content) => content.map(|content| PageContent {
                ms: start.elapsed().as_secs_f64() * 1e3,
                ..content
            }),
            Err(_) => {
                // A cache that was being written to when the interpreter gave up is not to be trusted.
                self.fonts.unload();
                Err(Unreadable("its content cannot be interpreted"))
            }
        }
    }

    fn fonts(&self) -> &[Font] {
        self.fonts.fonts()
    }

    fn outline(&self) -> Vec<OutlineEntry> {
        catch_unwind(AssertUnwindSafe(|| read_outline(self.pdf))).unwrap_or_default()
    }
}

impl<'a> HayroSource<'a> {
    fn interpret(&mut self, page: &'a Page<'a>) -> Result<PageContent, Unreadable> {
        self.fonts.bound();
        let drawn = Drawn::of(page)?;
        let (width, height) = page.render_dimensions();
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        let bbox = kurbo::Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let tags = self.structure.as_mut().map(|structure| structure.tags(page));
        let cells = match (&mut self.structure, &tags) {
            (Some(structure), Some((tags, _))) => structure.cells(tags),
            _ => Vec::new(),
        };
        let mut device = GlyphDevice::new(page, &mut self.fonts, tags.unwrap_or_default(), (width, height));
        Interpreter::new(&mut device, &self.layers, transform, bbox)
            .run(TypedIter::new(&drawn.operators), page.resources());
        if page.raw().contains_key(ANNOTS) {
            Interpreter::new(&mut device, &self.layers, transform, bbox).annotations(page);
        }
        let mut content = device.into_content();
        let blank =
            content.glyphs.is_empty() && content.rules.is_empty() && !content.has_images && content.drawings == 0;
        if blank && is_garbled(page) {
            return Err(Unreadable("its content stream holds no drawing operators"));
        }
        if page.raw().contains_key(ANNOTS) {
            add_values(page, transform, &mut content);
        }
        content.cells = cells;
        content.lost_parts = drawn.lost;
        content.damaged_parts = drawn.damaged;
        content.links = links(page, transform);
        Ok(content)
    }
}

/// Whether a page has content, but none that can be made sense of.
fn is_garbled(page: &Page<'_>) -> bool {
    let raw = page.raw();
    let stored = match raw.get::<Stream<'_>>(CONTENTS) {
        Some(stream) => !stream.raw_data().trim_ascii().is_empty(),
        None => raw.get::<Array<'_>>(CONTENTS).is_some_and(|parts| {
            let mut streams = parts.iter::<Stream<'_>>();
            streams.any(|stream| !stream.raw_data().trim_ascii().is_empty())
        }),
    };
    let mut operations = page.typed_operations();
    for _ in 0..MAX_OPERATORS_TRIED {
        match operations.next() {
            None => break,
            Some(TypedInstruction::Fallback(_)) => {}
            Some(_) => return false,
        }
    }
    stored
}

/// The URI links of a page.
fn links(page: &Page<'_>, transform: Affine) -> Vec<LinkArea> {
    let Some(annotations) = page.raw().get::<Array<'_>>(ANNOTS) else {
        return Vec::new();
    };
    let place = |rect: kurbo::Rect| {
        let bbox = transform.transform_rect_bbox(rect);
        [bbox.x0, bbox.y0, bbox.x1, bbox.y1].map(|v| v as f32)
    };
    annotations
        .iter::<Dict<'_>>()
        .take(MAX_LINKS)
        .filter_map(|annotation| {
            if annotation.get::<Name<'_>>(SUBTYPE)?.as_ref() != b"Link" {
                return None;
            }
            let uri = annotation.get::<Dict<'_>>(A)?.get::<PdfString<'_>>(URI)?;
            let rect = annotation.get::<Rect>(RECT)?;
            let rect = kurbo::Rect::new(rect.x0, rect.y0, rect.x1, rect.y1);
            // A link over the end of a line has one quadrilateral per line.
            let mut boxes: Vec<[f32; 4]> = quads(&annotation, rect).into_iter().map(place).collect();
            if boxes.is_empty() {
                boxes.push(place(rect));
            }
            Some(LinkArea {
                boxes,
                url: text_string(uri.as_bytes()),
            })
        })
        .collect()
}

/// The quadrilaterals of an annotation, if all of them lie within its rectangle as they have to.
fn quads(annotation: &Dict<'_>, rect: kurbo::Rect) -> Vec<kurbo::Rect> {
    let Some(points) = annotation.get::<Array<'_>>(b"QuadPoints") else {
        return Vec::new();
    };
    let points: Vec<f32> = points.iter::<f32>().take(8 * MAX_QUADS).collect();
    let area = rect.abs().inflate(1.0, 1.0);
    let boxes: Vec<kurbo::Rect> = points
        .chunks_exact(8)
        .map(|quad| {
            let corners = quad.chunks_exact(2).filter_map(|pair| match pair {
                [x, y] => Some(kurbo::Point::new(f64::from(*x), f64::from(*y))),
                _ => None,
            });
            corners
                .map(|corner| kurbo::Rect::from_points(corner, corner))
                .reduce(|a, b| a.union(b))
                .unwrap_or_default()
        })
        .collect();
    let inside = boxes.iter().all(|quad| area.contains_rect(*quad) && quad.area() > 0.0);
    if inside { boxes } else { Vec::new() }
}

/// Walks the outline tree depth first. Siblings form a linked list that a hostile file can close to
/// a ring, so the total is bounded.
fn read_outline(pdf: &Pdf) -> Vec<OutlineEntry> {
    let mut entries = Vec::new();
    let xref = pdf.xref();
    let Some(catalog) = xref.get::<Dict<'_>>(xref.root_id()) else {
        return entries;
    };
    let Some(root) = catalog.get::<Dict<'_>>(OUTLINES) else {
        return entries;
    };
    let mut path: Vec<Dict<'_>> = root.get::<Dict<'_>>(FIRST).into_iter().collect();
    while let Some(item) = path.pop() {
        if entries.len() >= MAX_OUTLINE_ENTRIES {
            break;
        }
        if let Some(title) = item.get::<PdfString<'_>>(TITLE) {
            entries.push(OutlineEntry {
                title: text_string(title.as_bytes()),
                depth: path.len() as u32,
            });
        } else {
            entries.push(OutlineEntry {
                title: String::new(),
                depth: path.len() as u32,
            });
        }
        let child = item.get::<Dict<'_>>(FIRST).filter(|_| path.len() < MAX_OUTLINE_DEPTH);
        match (item.get::<Dict<'_>>(NEXT), child) {
            (next, Some(child)) => {
                // The place of the parent is kept even when it is the last, for the depth's sake.
                path.push(next.unwrap_or_default());
                path.push(child);
            }
            (Some(next), None) => path.push(next),
            (None, None) => {}
        }
    }
    entries.retain(|entry| !entry.title.trim().is_empty());
    entries
}
