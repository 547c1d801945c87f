//! A PDF as it was opened: by docmill's own engine or, where that can't, by the second one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use docmill_pdfium::{Document, Library};
use hayro_syntax::Pdf;

use super::ahead::Pages;
use super::engine::{Font, FontId, OutlineEntry, PageContent, PageSource, Unreadable};
use super::fonts::intern;
use super::render::{self, Pixels};
use super::{hayro, pdfium};
use crate::context::Tool;
use crate::error::PartitionError;

/// An open file.
pub(super) struct OpenPdf<'t> {
    /// As docmill's own engine opened it, if it could.
    own: Option<Arc<Pdf>>,
    second: Second<'t>,
    /// What is wrong with the file as a whole, for people.
    pub(super) faults: Vec<String>,
}

/// The file as the second engine has it, which opens it when that is first needed.
struct Second<'t> {
    tool: Option<Tool<'t, Library>>,
    bytes: &'t [u8],
    password: Option<&'t str>,
    document: OnceLock<Option<Document<'t>>>,
    /// It was needed and has to be asked for.
    wanted: AtomicBool,
}

impl<'t> Second<'t> {
    fn document(&self) -> Option<&Document<'t>> {
        match self.tool? {
            Tool::Ready(library) => {
                let open = || Document::open(library, self.bytes, self.password).ok();
                self.document.get_or_init(open).as_ref()
            }
            Tool::OnRequest => {
                self.wanted.store(true, Ordering::Relaxed);
                None
            }
            Tool::Absent(_) => None,
        }
    }
}

impl<'t> OpenPdf<'t> {
    /// Opens a file with the engine that can.
    ///
    /// # Errors
    /// Neither can, or the second one has to be asked for.
    pub(super) fn open(
        bytes: &'t Arc<Vec<u8>>,
        password: Option<&'t str>,
        pdfium: Option<Tool<'t, Library>>,
    ) -> Result<Self, PartitionError> {
        if bytes.is_empty() {
            return Err(PartitionError::Empty("PDF"));
        }
        let second = Second {
            tool: pdfium,
            bytes,
            password,
            document: OnceLock::new(),
            wanted: AtomicBool::new(false),
        };
        let error = match hayro::open(bytes, password) {
            Ok(opened) => {
                return Ok(Self {
                    own: Some(Arc::new(opened.pdf)),
                    second,
                    faults: opened.faults,
                });
            }
            Err(error) => error,
        };
        if second.document().is_some_and(|document| document.page_count() > 0) {
            return Ok(Self {
                own: None,
                second,
                faults: Vec::new(),
            });
        }
        Err(match (error, pdfium) {
            (_, Some(Tool::OnRequest)) => PartitionError::ToolsNeeded,
            (PartitionError::Corrupt { format, reason }, Some(Tool::Absent(why))) => {
                PartitionError::corrupt(format, format!("{reason} (PDFium could not be asked: {why})"))
            }
            (PartitionError::Corrupt { format, reason }, Some(Tool::Ready(_))) => {
                PartitionError::corrupt(format, format!("{reason}; PDFium can't read it either"))
            }
            (error, _) => error,
        })
    }

    /// A file that the second engine alone reads.
    #[cfg(test)]
    pub(super) fn second_only(bytes: &'t Arc<Vec<u8>>, library: &'t Library) -> Self {
        Self {
            own: None,
            second: Second {
                tool: Some(Tool::Ready(library)),
                bytes,
                password: None,
                document: OnceLock::new(),
                wanted: AtomicBool::new(false),
            },
            faults: Vec::new(),
        }
    }

    /// Its pages, read by up to `threads` at the same time.
    pub(super) fn source(&self, threads: usize) -> FileSource<'_, 't> {
        FileSource {
            own: self.own.as_ref().map(|pdf| Pages::new(pdf, threads)),
            second: &self.second,
            // Id 0 is the font nothing is known of.
            fonts: vec![Font::default()],
        }
    }

    /// Whether the second engine was needed and has to be asked for.
    pub(super) fn wants_second(&self) -> bool {
        self.second.wanted.load(Ordering::Relaxed)
    }

    /// Number of pages.
    pub(super) fn page_count(&self) -> usize {
        match &self.own {
            Some(pdf) => pdf.pages().len(),
            None => self.second.document().map_or(0, Document::page_count),
        }
    }

    /// Size of a displayed page in points.
    pub(super) fn page_size(&self, index: usize) -> Option<(f32, f32)> {
        match &self.own {
            Some(pdf) => pdf.pages().get(index).map(|page| page.render_dimensions()),
            None => self.second.document()?.page_size(index),
        }
    }

    /// Draws a page on white, `scale` pixels to the point; none when it can't be drawn.
    pub(super) fn draw(&self, index: usize, scale: f32) -> Option<Pixels> {
        let own = self.own.as_ref().and_then(|pdf| render::pixels(pdf, index, scale));
        own.or_else(|| {
            let picture = self.second.document()?.draw(index, scale)?;
            let (rgba, _) = picture.rgba.as_chunks::<4>();
            (rgba.len() == picture.width * picture.height).then(|| Pixels {
                width: picture.width,
                height: picture.height,
                rgba: rgba.to_vec(),
            })
        })
    }
}

/// The pages of a file. Those that docmill's own engine can't read are read by the second one, if it is there.
pub(super) struct FileSource<'p, 't> {
    own: Option<Pages<'p>>,
    second: &'p Second<'t>,
    /// Fonts of a file that only the second engine reads.
    fonts: Vec<Font>,
}

impl FileSource<'_, '_> {
    /// The id of a font that may not be one of the file's.
    pub(super) fn add_font(&mut self, font: Font) -> FontId {
        match &mut self.own {
            Some(pages) => pages.add_font(font),
            None => intern(&mut self.fonts, font),
        }
    }

    fn read_again(&mut self, index: usize) -> Option<PageContent> {
        let start = Instant::now();
        let page = self.second.document()?.page(index)?;
        let mut content = pdfium::content(&page, &mut |font| self.add_font(font));
        content.ms = start.elapsed().as_secs_f64() * 1e3;
        // Nothing at all, of a page that has content, is no better than an error.
        let is_blank = content.glyphs.is_empty() && !content.has_images && content.drawings == 0;
        (!is_blank || self.own.is_none()).then_some(content)
    }
}

impl PageSource for FileSource<'_, '_> {
    fn page_count(&self) -> usize {
        match &self.own {
            Some(pages) => pages.page_count(),
            None => self.second.document().map_or(0, Document::page_count),
        }
    }

    fn page_size(&self, index: usize) -> (f32, f32) {
        match &self.own {
            Some(pages) => pages.page_size(index),
            None => {
                let size = self.second.document().and_then(|document| document.page_size(index));
                size.unwrap_or_default()
            }
        }
    }

    fn read_page(&mut self, index: usize) -> Result<PageContent, Unreadable> {
        let own = match &mut self.own {
            Some(pages) => pages.read_page(index),
            None => Err(Unreadable("PDFium can't read it")),
        };
        match own {
            // What comes after damage, each engine finds more of in other cases.
            Ok(own) if own.damaged_parts > 0 => match self.read_again(index) {
                Some(other) if other.glyphs.len() > own.glyphs.len() => Ok(PageContent {
                    damaged_parts: own.damaged_parts,
                    ..other
                }),
                _ => Ok(own),
            },
            Ok(own) => Ok(own),
            Err(reason) => self.read_again(index).ok_or(reason),
        }
    }

    fn fonts(&self) -> &[Font] {
        match &self.own {
            Some(pages) => pages.fonts(),
            None => &self.fonts,
        }
    }

    fn outline(&self) -> Vec<OutlineEntry> {
        match &self.own {
            Some(pages) => pages.outline(),
            None => {
                let bookmarks = self.second.document().map(Document::outline).unwrap_or_default();
                let entry = |bookmark: docmill_pdfium::Bookmark| OutlineEntry {
                    title: bookmark.title,
                    depth: bookmark.depth,
                };
                bookmarks.into_iter().map(entry).collect()
            }
        }
    }
}
