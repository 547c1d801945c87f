//! The pages of a long file, read by several threads ahead of their being asked for.
//!
//! They also put the characters together to segments of text, so that the thread that asks has less to do.
//! Which thread reads which page is fixed, and every thread goes through its pages in order with fonts and
//! caches of its own; so what comes out does not depend on which of them is faster.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use hayro_syntax::Pdf;

use super::engine::{Font, FontId, OutlineEntry, PageContent, PageSource, Unreadable};
use super::hayro::HayroSource;
use super::segment::parts;

/// Pages from which starting threads pays.
const MIN_PAGES: usize = 16;
/// Pages in a row that one thread reads: neighbours use the same fonts.
const STRIPE: usize = 4;
/// Pages a thread may have read that nobody asked for yet; this bounds the memory they take.
const READ_AHEAD: usize = STRIPE;
/// Threads at most; each has caches of its own.
const MAX_THREADS: usize = 8;
/// Nested forms take stack.
const STACK_BYTES: usize = 16 << 20;

/// The pages of a file.
pub(super) struct Pages<'p> {
    /// Reads what no thread does, and keeps the fonts of all.
    inner: HayroSource<'p>,
    workers: Vec<Worker>,
}

struct Worker {
    /// Its pages, in order; none when they are no longer wanted.
    pages: Option<Receiver<ReadPage>>,
    /// Its fonts as those of the file.
    fonts: Vec<FontId>,
    thread: Option<JoinHandle<()>>,
}

struct ReadPage {
    index: usize,
    content: Result<PageContent, Unreadable>,
    /// Fonts not seen on earlier pages of the same thread.
    fonts: Vec<Font>,
}

impl<'p> Pages<'p> {
    /// Pages to be asked for in order, each once; `threads` read at the same time where there are many.
    pub(super) fn new(pdf: &'p Arc<Pdf>, threads: usize) -> Self {
        let inner = HayroSource::new(pdf);
        let count = inner.page_count();
        let wanted = match count >= MIN_PAGES && threads > 1 {
            true => threads.min(MAX_THREADS).min(count.div_ceil(STRIPE)),
            false => 0,
        };
        let workers = (0..wanted).map(|place| Worker::start(pdf.clone(), place, wanted));
        Self {
            // Pages of a thread that cannot be started are read here.
            workers: workers.collect(),
            inner,
        }
    }

    /// The id of a font that is not one of the file's.
    pub(super) fn add_font(&mut self, font: Font) -> FontId {
        self.inner.add_font(font)
    }

    /// A page as its thread read it.
    fn receive(&mut self, index: usize) -> Option<Result<PageContent, Unreadable>> {
        let place = (index / STRIPE).checked_rem(self.workers.len())?;
        let worker = self.workers.get_mut(place)?;
        let pages = worker.pages.as_ref()?;
        let read = pages.recv().ok()?;
        for font in read.fonts {
            worker.fonts.push(self.inner.add_font(font));
        }
        // Pages are asked for in order.
        if read.index != index {
            return None;
        }
        let known = &worker.fonts;
        Some(read.content.map(|mut content| {
            let file_id = |font: FontId| known.get(usize::from(font)).copied().unwrap_or(0);
            for glyph in &mut content.glyphs {
                glyph.font = file_id(glyph.font);
            }
            for (_, segments) in content.parts.iter_mut().flatten() {
                for segment in segments {
                    segment.font = file_id(segment.font);
                }
            }
            content
        }))
    }
}

impl Worker {
    fn start(pdf: Arc<Pdf>, place: usize, of: usize) -> Self {
        let (sender, receiver) = sync_channel(READ_AHEAD);
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || read_stripes(&pdf, place, of, &sender));
        Self {
            pages: thread.is_ok().then_some(receiver),
            fonts: Vec::new(),
            thread: thread.ok(),
        }
    }
}

/// Reads the pages of one thread and sends them, until nobody wants them any more.
fn read_stripes(pdf: &Pdf, place: usize, of: usize, sender: &SyncSender<ReadPage>) {
    let mut source = HayroSource::new(pdf);
    let mut sent = 0;
    let indexes = (0..source.page_count()).filter(|index| index / STRIPE % of == place);
    for index in indexes {
        let content = source.read_page(index).map(|content| PageContent {
            parts: Some(parts(&content, source.fonts())),
            ..content
        });
        let fonts = source.fonts().get(sent..).unwrap_or_default().to_vec();
        sent = source.fonts().len();
        if sender.send(ReadPage { index, content, fonts }).is_err() {
            return;
        }
    }
}

impl Drop for Pages<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.pages = None;
        }
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            // One that panicked has nothing to say any more.
            let _ = thread.join();
        }
    }
}

impl PageSource for Pages<'_> {
    fn page_count(&self) -> usize {
        self.inner.page_count()
    }

    fn page_size(&self, index: usize) -> (f32, f32) {
        self.inner.page_size(index)
    }

    fn read_page(&mut self, index: usize) -> Result<PageContent, Unreadable> {
        match self.receive(index) {
            Some(content) => content,
            None => self.inner.read_page(index),
        }
    }

    fn fonts(&self) -> &[Font] {
        self.inner.fonts()
    }

    fn outline(&self) -> Vec<OutlineEntry> {
        self.inner.outline()
    }
}

#[cfg(test)]
mod tests {
    use docmill_model::limits::ParseLimits;
    use docmill_model::settings::PartitionOptions;

    use super::*;
    use crate::context::{Context, Tools};
    use crate::pdf::testing::{PdfBuilder, show};

    /// A file of which every third page has a bold line, and every tenth a font of its own.
    fn long_file(pages: usize) -> Arc<Vec<u8>> {
        let mut file = PdfBuilder::new();
        for page in 0..pages {
            let font = if page % 3 == 0 { 'B' } else { 'F' };
            let content = show(font, 12.0, 40.0, 500.0, &format!("Chapter {page}"))
                + &show('F', 10.0, 40.0, 470.0, "The committee met on Monday and agreed on it.");
            file = match page % 10 {
                7 => file.page_with(
                    &content,
                    &format!(
                        "/Resources << /Font << /B 4 0 R /F << /Type /Font /Subtype /Type1 /BaseFont /Courier{} \
                         >> >> >>",
                        if page > 20 { "-Bold" } else { "" }
                    ),
                ),
                _ => file.page(&content, ""),
            };
        }
        file.build()
    }

    fn json(bytes: &Arc<Vec<u8>>, threads: usize) -> String {
        let (options, limits) = (PartitionOptions::default(), ParseLimits::default());
        let mut progress = |_| {};
        let tools = Tools {
            threads,
            ..Tools::default()
        };
        let mut cx = Context::new(None, &options, &limits, &mut progress).with_tools(tools);
        crate::pdf::partition(bytes, &mut cx).unwrap();
        serde_json::to_string(&cx.into_document().elements).unwrap()
    }

    #[test]
    fn any_number_of_threads_gives_the_same() {
        let bytes = long_file(45);
        let one = json(&bytes, 1);
        assert!(one.contains("Chapter 44"));
        for threads in [2, 3, 20] {
            assert_eq!(json(&bytes, threads), one, "{threads} threads");
        }
    }

    #[test]
    fn threads_are_for_long_files() {
        let pages = |count: usize, threads| {
            let pdf = Arc::new(Pdf::new(long_file(count)).unwrap());
            Pages::new(&pdf, threads).workers.len()
        };
        assert_eq!(pages(15, 4), 0);
        assert_eq!(pages(16, 1), 0);
        assert_eq!(pages(16, 3), 3);
        assert_eq!(pages(17, 100), 5);
    }

    #[test]
    fn pages_left_unread_stop_nobody() {
        let pdf = Arc::new(Pdf::new(long_file(100)).unwrap());
        let mut pages = Pages::new(&pdf, 2);
        for index in 0..3 {
            let content = pages.read_page(index).unwrap();
            assert!(
                content
                    .glyphs
                    .iter()
                    .all(|glyph| usize::from(glyph.font) < pages.fonts().len())
            );
        }
        // Not the next: read without the threads.
        let text: String = pages
            .read_page(90)
            .unwrap()
            .glyphs
            .iter()
            .map(|glyph| glyph.ch)
            .collect();
        assert!(text.starts_with("Chapter 90"));
        drop(pages);
    }
}
