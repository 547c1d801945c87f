//! Gathering elements greedily into pre-chunks.

use docmill_model::settings::{ChunkOptions, ChunkStrategy};
use docmill_model::{Element, ElementType};

use super::Measure;
use super::text;

/// Elements that go into one chunk, or several when their text is too long for one.
#[derive(Debug)]
pub(super) struct PreChunk {
    /// Never empty.
    pub(super) members: Vec<Element>,
    /// Overlap with the pre-chunk before, then the members' texts. Empty when no member has text.
    pub(super) text: String,
    /// Byte offset in `text` of the members' texts.
    pub(super) body_start: usize,
    /// Length of `text`, in the unit of the options.
    pub(super) len: usize,
    /// Code points in `text`.
    pub(super) chars: usize,
    /// Whether a table is among the members.
    pub(super) has_table: bool,
}

impl PreChunk {
    fn new(prefix: &str, members: Vec<Element>, measure: Measure) -> Self {
        let room = |text: &str| text.len() + text::SEPARATOR.len();
        let most = room(prefix) + members.iter().map(|member| room(&member.text)).sum::<usize>();
        let mut text = String::with_capacity(most);
        text.push_str(prefix);
        let mut body_start = None;
        for member in &members {
            let part = text::of_element(member);
            text::push_joined(&mut text, &part, text::SEPARATOR);
            if !part.is_empty() {
                body_start.get_or_insert(text.len() - part.len());
            }
        }
        if body_start.is_none() {
            text.clear();
        }
        let chars = text::len(&text);
        Self {
            body_start: body_start.unwrap_or(0),
            len: if measure.in_tokens() { measure.len(&text) } else { chars },
            chars,
            has_table: members.iter().any(|member| member.kind.is_table()),
            members,
            text,
        }
    }

    /// Whether this is one table and nothing else.
    pub(super) fn is_lone_table(&self) -> bool {
        self.has_table && self.members.len() == 1
    }

    /// The overlap with the pre-chunk before, without the separator that follows it.
    pub(super) fn prefix(&self) -> &str {
        self.text[..self.body_start].trim_end()
    }
}

/// Fills pre-chunks in order of the elements: a new one begins at a boundary of the strategy, and where
/// the next element does not fit.
pub(super) fn gather(elements: Vec<Element>, options: &ChunkOptions) -> Vec<PreChunk> {
    let mut boundaries = Boundaries::new(options);
    let mut builder = Builder::new(options);
    for element in elements {
        let boundary = boundaries.before(&element);
        let raw_len = builder.measure.len(&element.text);
        if boundary || !builder.fits(&element, raw_len) {
            builder.flush();
        }
        builder.add(element, raw_len);
    }
    builder.flush();
    builder.done
}

/// Where a strategy wants a new pre-chunk.
struct Boundaries {
    at_title: bool,
    at_page: bool,
    /// Page of the elements so far; `None` before the first element.
    page: Option<u32>,
}

impl Boundaries {
    fn new(options: &ChunkOptions) -> Self {
        let by_title = options.strategy == ChunkStrategy::ByTitle;
        Self {
            at_title: by_title,
            at_page: match options.strategy {
                ChunkStrategy::ByTitle => !options.multipage_sections,
                ChunkStrategy::ByPage => true,
                ChunkStrategy::ByCharacter | ChunkStrategy::BySimilarity => false,
            },
            page: None,
        }
    }

    /// Takes note of the next element and says whether a pre-chunk begins with it. An element without a
    /// page number stands on the page of the one before.
    fn before(&mut self, element: &Element) -> bool {
        let own_page = element.metadata.page_number;
        let page = own_page.or(self.page).unwrap_or(1);
        let turned = self.page.is_some_and(|before| before != page);
        self.page = Some(page);
        (self.at_title && element.kind == ElementType::Title) || (self.at_page && turned)
    }
}

/// The pre-chunk being filled, and those done. Fitting is measured on the raw texts, which are never
/// shorter than the normalised ones a chunk holds.
pub(super) struct Builder<'o> {
    options: &'o ChunkOptions,
    pub(super) measure: Measure,
    prefix: String,
    members: Vec<Element>,
    has_table: bool,
    /// Texts so far: the prefix and the members that have text.
    segments: usize,
    /// Their total length.
    segments_len: usize,
    pub(super) done: Vec<PreChunk>,
}

impl<'o> Builder<'o> {
    pub(super) fn new(options: &'o ChunkOptions) -> Self {
        Self {
            options,
            measure: Measure::of(options),
            prefix: String::new(),
            members: Vec::new(),
            has_table: false,
            segments: 0,
            segments_len: 0,
            done: Vec::new(),
        }
    }

    pub(super) fn fits(&self, element: &Element, raw_len: usize) -> bool {
        if self.members.is_empty() {
            return true;
        }
        if self.options.isolate_table && (element.kind.is_table() || self.has_table) {
            return false;
        }
        let separators = self.segments * self.measure.separator();
        let current = (self.segments_len + separators).saturating_sub(self.measure.separator());
        current <= self.options.new_after_n_chars
            && raw_len + self.segments_len + separators <= self.options.max_characters
    }

    pub(super) fn add(&mut self, element: Element, raw_len: usize) {
        if element.kind.is_table() {
            self.has_table = true;
            if self.members.is_empty() && self.options.isolate_table {
                self.set_prefix(String::new());
            }
        }
        if raw_len > 0 {
            self.segments += 1;
            self.segments_len += raw_len;
        }
        self.members.push(element);
    }

    pub(super) fn flush(&mut self) {
        if self.members.is_empty() {
            return;
        }
        self.has_table = false;
        let done = PreChunk::new(&self.prefix, std::mem::take(&mut self.members), self.measure);
        let prefix = if !self.options.overlap_all || done.is_lone_table() {
            String::new()
        } else if done.text.is_empty() {
            // Nothing but page breaks and the like: the overlap waits for the next text, as a chunk made of
            // it alone would only repeat what was already said.
            std::mem::take(&mut self.prefix)
        } else {
            self.measure.tail(&done.text, self.options.overlap).trim().to_owned()
        };
        self.done.push(done);
        self.set_prefix(prefix);
    }

    /// Starts the next pre-chunk, whose first text is `prefix` if that is not empty.
    fn set_prefix(&mut self, prefix: String) {
        self.segments = usize::from(!prefix.is_empty());
        self.segments_len = self.measure.len(&prefix);
        self.prefix = prefix;
    }
}
