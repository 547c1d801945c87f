//! A PDF whose pages are recognised where their text layer does not do.

use std::collections::BTreeMap;

use docmill_model::RouteReason;
use docmill_model::settings::Strategy;

use super::engine::{Font, OutlineEntry, PageContent, PageSource, Unreadable};
use super::opened::{FileSource, OpenPdf};
use super::recognise::{Need, Raster, Rasters, Readers, need};
use super::render;
use super::scan::{self, ScanFonts};

/// Resolution at which pages are recognised, in dots per inch, and the least for coarse scans.
const DPI: f32 = 300.0;
const LEAST_DPI: f32 = 150.0;
/// Pages read ahead while looking for more that need recognition.
const LOOK_AHEAD: usize = 32;

pub(super) struct ScannedPdf<'p, 't> {
    pdf: &'p OpenPdf<'t>,
    inner: FileSource<'p, 't>,
    strategy: Strategy,
    readers: Readers,
    fonts: ScanFonts,
    /// Pages read ahead.
    ready: BTreeMap<usize, Result<PageContent, Unreadable>>,
    next: usize,
}

/// Pages to recognise and their resolutions.
struct PdfRasters<'p, 't> {
    pdf: &'p OpenPdf<'t>,
    dpi: BTreeMap<usize, f32>,
}

impl Rasters for PdfRasters<'_, '_> {
    fn raster(&self, index: usize) -> Result<Raster, String> {
        let dpi = self.dpi.get(&index).copied().unwrap_or(DPI);
        let dpi = render::possible_dpi(self.pdf.page_size(index).unwrap_or_default(), dpi);
        let gray = render::gray(self.pdf, index, dpi).ok_or("the page cannot be drawn")?;
        Ok((gray, dpi))
    }
}

impl<'p, 't> ScannedPdf<'p, 't> {
    /// `threads` may read pages at the same time.
    pub(super) fn new(pdf: &'p OpenPdf<'t>, strategy: Strategy, readers: Readers, threads: usize) -> Self {
        let mut inner = pdf.source(threads);
        let fonts = ScanFonts {
            regular: 0,
            bold: inner.add_font(Font {
                bold: true,
                ..Font::default()
            }),
        };
        Self {
            pdf,
            inner,
            strategy,
            readers,
            fonts,
            ready: BTreeMap::new(),
            next: 0,
        }
    }

    /// Whether a page needed recognition that has to be asked for.
    pub(super) fn wants_recognition(&self) -> bool {
        self.readers.wanted
    }

    /// Reads a page and those after it until enough need recognition, and recognises them together.
    fn read_from(&mut self, index: usize) {
        let mut waiting: Vec<(usize, Need, PageContent)> = Vec::new();
        self.next = index;
        while self.next < self.page_count() && self.next < index + LOOK_AHEAD {
            let at = self.next;
            self.next += 1;
            let mut content = match self.inner.read_page(at) {
                Ok(content) => content,
                Err(reason) => {
                    self.ready.insert(at, Err(reason));
                    continue;
                }
            };
            let (need, reason) = need(&content, self.strategy);
            if content.reason != RouteReason::SecondEngine || need != Need::Nothing {
                content.reason = reason;
            }
            let absent = if need == Need::Nothing {
                None
            } else {
                self.readers.absent()
            };
            if need == Need::Nothing || absent.is_some() {
                content.not_recognised = absent;
                self.ready.insert(at, Ok(content));
                // Without a page that waits there is no reason to read on.
                if waiting.is_empty() {
                    return;
                }
                continue;
            }
            waiting.push((at, need, content));
            if waiting.len() >= self.readers.appetite() {
                break;
            }
        }
        self.recognise(waiting);
    }

    fn recognise(&mut self, waiting: Vec<(usize, Need, PageContent)>) {
        let rasters = PdfRasters {
            pdf: self.pdf,
            dpi: waiting
                .iter()
                .map(|(index, _, content)| (*index, dpi(content)))
                .collect(),
        };
        let pages: Vec<usize> = waiting.iter().map(|(index, ..)| *index).collect();
        let mut texts: BTreeMap<usize, _> = self
            .readers
            .read(&pages, &rasters)
            .into_iter()
            .map(|read| (read.index, read))
            .collect();
        for (index, need, mut content) in waiting {
            let read = texts.remove(&index);
            let ms = content.ms + read.as_ref().map_or(0.0, |read| read.ms);
            match read.map(|read| read.text) {
                Some(Ok(text)) => {
                    let reason = content.reason;
                    let mut recognised = scan::content(&text, (content.width, content.height), self.fonts);
                    if need == Need::Whole {
                        recognised.links = std::mem::take(&mut content.links);
                        content = recognised;
                    } else {
                        scan::merge(&mut content, recognised);
                    }
                    content.reason = reason;
                }
                Some(Err(reason)) => content.not_recognised = Some(reason),
                None => content.not_recognised = Some("there was nobody to read it".into()),
            }
            content.ms = ms;
            self.ready.insert(index, Ok(content));
        }
    }
}

/// The resolution to recognise a page at: that of the scan, within bounds.
fn dpi(content: &PageContent) -> f32 {
    if content.image_dpi > 0.0 {
        content.image_dpi.clamp(LEAST_DPI, DPI)
    } else {
        DPI
    }
}

impl PageSource for ScannedPdf<'_, '_> {
    fn page_count(&self) -> usize {
        self.inner.page_count()
    }

    fn page_size(&self, index: usize) -> (f32, f32) {
        self.inner.page_size(index)
    }

    fn read_page(&mut self, index: usize) -> Result<PageContent, Unreadable> {
        if self.readers.wanted {
            return Err(Unreadable("the file is read again with recognition"));
        }
        if !self.ready.contains_key(&index) {
            self.read_from(index);
        }
        self.ready
            .remove(&index)
            .unwrap_or(Err(Unreadable("it could not be read")))
    }

    fn fonts(&self) -> &[Font] {
        self.inner.fonts()
    }

    fn outline(&self) -> Vec<OutlineEntry> {
        self.inner.outline()
    }
}
