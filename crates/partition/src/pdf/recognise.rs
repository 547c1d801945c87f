//! Which pages need recognition, and how they get it: several at once, each by a reader of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use docmill_model::RouteReason;
use docmill_model::settings::Strategy;
use docmill_ocr::{Gray, OcrError, PageText, Reader};

use super::engine::{PageContent, UNKNOWN};
use crate::context::{Context, Tool};

/// Share of characters without meaning from which a text layer is not to be trusted.
const MEANINGLESS: f64 = 0.2;
/// Share of the page that pictures cover for the text in them to be looked for.
const COVERED: f32 = 0.5;
/// Characters over the pictures of such a page from which its text layer is taken to be theirs.
const CAPTIONED: usize = 60;
/// Points and curves of a drawing from which on a page without text it may be letters, and no blank form.
const MANY_DRAWINGS: usize = 60;
/// Pages handed to the readers at once, for each of them.
const PAGES_PER_READER: usize = 3;
/// Readers at most; each holds a page's picture several times.
const MAX_READERS: usize = 8;

/// What of a page is to be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: its text layer says it all.
    Nothing,
    /// What the text layer does not say.
    Rest,
    /// Everything: the text layer is not there or not to be trusted.
    Whole,
}

/// Judges a page by its text layer: what is to be recognised, and why so.
pub(super) fn need(content: &PageContent, strategy: Strategy) -> (Need, RouteReason) {
    match strategy {
        Strategy::OcrOnly => return (Need::Whole, RouteReason::AskedFor),
        Strategy::Fast | Strategy::HiRes | Strategy::Auto => {}
    }
    let visible = content.glyphs.iter().filter(|glyph| !glyph.ch.is_whitespace());
    let (mut count, mut meaningless) = (0usize, 0usize);
    for glyph in visible {
        count += 1;
        meaningless += usize::from(is_meaningless(glyph.ch));
    }
    if count == 0 {
        let drawn = content.has_images || content.drawings > MANY_DRAWINGS;
        return match drawn {
            true => (Need::Whole, RouteReason::NoTextLayer),
            false => (Need::Nothing, RouteReason::BlankPage),
        };
    }
    if meaningless as f64 > MEANINGLESS * count as f64 {
        return (Need::Whole, RouteReason::TextLayerUnreadable);
    }
    let page = (content.width * content.height).max(1.0);
    let covers = |[x0, y0, x1, y1]: [f32; 4]| (x1 - x0).max(0.0) * (y1 - y0).max(0.0);
    let covered: f32 = content.images.iter().map(|bbox| covers(*bbox)).sum::<f32>() / page;
    if covered < COVERED {
        return (Need::Nothing, RouteReason::TextLayer);
    }
    let over = content.glyphs.iter().filter(|glyph| {
        !glyph.ch.is_whitespace()
            && content
                .images
                .iter()
                .any(|[x0, y0, x1, y1]| (*x0..*x1).contains(&glyph.x) && (*y0..*y1).contains(&glyph.y))
    });
    if over.take(CAPTIONED).count() < CAPTIONED {
        (Need::Rest, RouteReason::PicturesWithText)
    } else {
        (Need::Nothing, RouteReason::TextLayer)
    }
}

/// Characters that stand for nothing: unknown ones, controls, private and unassigned code points.
fn is_meaningless(ch: char) -> bool {
    ch == UNKNOWN || ch.is_control() || matches!(ch, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{10FFFF}')
}

/// A page's picture and its resolution in dots per inch.
pub(super) type Raster = (Gray, f32);

/// Makes the pictures of pages.
pub(super) trait Rasters: Sync {
    /// The picture of a page, or why there is none, for people.
    fn raster(&self, index: usize) -> Result<Raster, String>;
}

/// A page as recognised.
pub(super) struct Read {
    pub(super) index: usize,
    /// The text, or why there is none, for people.
    pub(super) text: Result<PageText, String>,
    pub(super) ms: f64,
}

/// The readers of a document.
pub(super) struct Readers {
    readers: Vec<Reader>,
    /// Why there are none.
    reason: String,
    /// The language of most of the first page that was read.
    lead: Option<String>,
    /// Whether recognition was needed and has to be asked for.
    pub(super) wanted: bool,
    on_request: bool,
}

impl Readers {
    pub(super) fn new(cx: &Context<'_>) -> Self {
        let mut readers = Self {
            readers: Vec::new(),
            reason: String::new(),
            lead: None,
            wanted: false,
            on_request: false,
        };
        match cx.tools.recognition {
            _ if cx.options.strategy == Strategy::Fast => {
                readers.reason = "the strategy `fast` reads text layers alone".into();
            }
            Tool::Absent(reason) => readers.reason = reason.into(),
            Tool::OnRequest => readers.on_request = true,
            Tool::Ready(ocr) => {
                for _ in 0..cx.tools.threads.clamp(1, MAX_READERS) {
                    match ocr.reader(&cx.options.languages) {
                        Ok(reader) => readers.readers.push(reader),
                        Err(error) => readers.reason = error.to_string(),
                    }
                }
            }
        }
        readers
    }

    /// Why nothing can be recognised, if so. Notes that it was wanted.
    pub(super) fn absent(&mut self) -> Option<String> {
        if self.on_request {
            self.wanted = true;
            return Some("recognition is asked for".into());
        }
        self.readers.is_empty().then(|| self.reason.clone())
    }

    /// How many pages are best given at once. The first page goes alone: what it is in leads the others,
    /// whatever the number of readers.
    pub(super) fn appetite(&self) -> usize {
        match self.lead {
            None => 1,
            Some(_) => self.readers.len() * PAGES_PER_READER,
        }
    }

    /// Recognises pages; the answers come in the order of `pages`.
    pub(super) fn read(&mut self, pages: &[usize], rasters: &dyn Rasters) -> Vec<Read> {
        let queue: Mutex<VecDeque<usize>> = Mutex::new(pages.iter().copied().collect());
        let done: Mutex<Vec<Read>> = Mutex::new(Vec::new());
        let lead = self.lead.clone();
        let work = |reader: &mut Reader| {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(index) = next else { return };
                let start = Instant::now();
                let text = read_one(reader, rasters, index, lead.as_deref());
                let read = Read {
                    index,
                    text,
                    ms: start.elapsed().as_secs_f64() * 1e3,
                };
                done.lock().unwrap_or_else(PoisonError::into_inner).push(read);
            }
        };
        match self.readers.as_mut_slice() {
            [first, rest @ ..] if pages.len() > 1 => std::thread::scope(|scope| {
                for reader in rest {
                    // Without another thread this one reads more.
                    let _ = std::thread::Builder::new()
                        .stack_size(16 << 20)
                        .spawn_scoped(scope, || work(reader));
                }
                work(first);
            }),
            [first, ..] => work(first),
            [] => {}
        }
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|read| read.index);
        if self.lead.is_none()
            && let Some(Ok(text)) = done.first().map(|read| &read.text)
        {
            self.lead = text.languages.first().cloned();
        }
        done
    }
}

fn read_one(reader: &mut Reader, rasters: &dyn Rasters, index: usize, lead: Option<&str>) -> Result<PageText, String> {
    let raster = catch_unwind(AssertUnwindSafe(|| rasters.raster(index)));
    let (picture, dpi) = raster.map_err(|_| "its picture cannot be made".to_owned())??;
    reader
        .read(picture, dpi, lead)
        .map_err(|error: OcrError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::testing::typeset;
    use super::*;

    const FULL: [f32; 4] = [0.0, 0.0, 600.0, 800.0];

    #[test]
    fn a_page_with_text_needs_nothing() {
        let mut page = typeset(&[(50.0, 100.0, 10.0, "Some text that a reader sees on this page.")]);
        assert_eq!(need(&page, Strategy::Auto).0, Need::Nothing);
        assert_eq!(need(&page, Strategy::OcrOnly), (Need::Whole, RouteReason::AskedFor));
        // A small picture changes nothing.
        page.images.push([50.0, 200.0, 150.0, 300.0]);
        assert_eq!(need(&page, Strategy::Auto).0, Need::Nothing);
    }

    #[test]
    fn a_picture_or_outlines_without_text_need_everything() {
        let mut page = typeset(&[]);
        assert_eq!(need(&page, Strategy::Auto).0, Need::Nothing);
        page.drawings = 500;
        assert_eq!(need(&page, Strategy::HiRes).0, Need::Whole);
        page.drawings = 0;
        page.has_images = true;
        assert_eq!(need(&page, Strategy::Auto).0, Need::Whole);
    }

    #[test]
    fn a_stamp_on_a_scan_leaves_the_scan_to_be_read() {
        let mut page = typeset(&[(50.0, 790.0, 10.0, "page 3 of 9")]);
        page.images.push(FULL);
        assert_eq!(need(&page, Strategy::Auto).0, Need::Rest);
    }

    #[test]
    fn a_scan_with_its_text_underneath_needs_nothing() {
        let line = "Text that was recognised before and lies under the picture.";
        let mut page = typeset(&[(50.0, 100.0, 10.0, line), (50.0, 120.0, 10.0, line)]);
        page.images.push(FULL);
        assert_eq!(need(&page, Strategy::Auto).0, Need::Nothing);
    }

    #[test]
    fn text_without_meaning_is_not_trusted() {
        let page = typeset(&[(50.0, 100.0, 10.0, "\u{F021}\u{F022}\u{F023} abc \u{FFFD}")]);
        assert_eq!(
            need(&page, Strategy::Auto),
            (Need::Whole, RouteReason::TextLayerUnreadable)
        );
    }
}
