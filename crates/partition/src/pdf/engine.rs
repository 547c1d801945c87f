//! What the layout code asks of a PDF engine, free of any engine's types, so that another engine
//! can take its place.
//!
//! All lengths are PDF points in page space: the page as displayed (crop box and `/Rotate` applied),
//! origin at its top left, y pointing down.

use super::frame::Frame;
use super::segment::Segment;
use super::visibility::Hidden;
use docmill_model::{Route, RouteReason};

/// Stands for a character nobody knows.
pub(super) const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// Index into [`PageSource::fonts`].
pub(super) type FontId = u16;

/// Which way text runs on the displayed page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Direction {
    /// Left to right, upright.
    East,
    /// Downwards: turned by 90 degrees clockwise, and vertical East Asian writing.
    South,
    /// Upside down.
    West,
    /// Upwards: turned by 90 degrees counter-clockwise.
    North,
    /// At any other angle.
    Oblique,
}

/// One character as drawn. A glyph that stands for several characters is given as several of them
/// sharing its width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Glyph {
    /// The character; may be a space or [`UNKNOWN`].
    pub(super) ch: char,
    /// Origin on the baseline.
    pub(super) x: f32,
    /// Origin on the baseline.
    pub(super) y: f32,
    /// Length along the direction of the text.
    pub(super) advance: f32,
    /// Font size as displayed.
    pub(super) size: f32,
    /// Font.
    pub(super) font: FontId,
    /// Direction of the text.
    pub(super) direction: Direction,
    /// Index into [`PageContent::tags`].
    pub(super) tag: u32,
}

/// What the structure tree of a tagged file says of some text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: TagKind,
    /// Number of the element, the same for all text of a paragraph, and 0 for none.
    pub(super) element: u32,
    /// Place in the order in which the tree has the content of the page, from 1, and 0 for none.
    pub(super) order: u32,
}

/// Kinds of structure elements, as far as layout cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TagKind {
    #[default]
    None,
    /// No part of the text: running heads, decoration.
    Artifact,
    /// With its level, from 1, where it has one.
    Heading(Option<u8>),
    Paragraph,
    ListItem,
    Caption,
    Note,
    /// Of a table.
    Cell,
    /// Some other part of the text.
    Other,
}

/// A cell of a table as the structure tree has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaggedCell {
    /// Number of its element, as in [`Tag::element`].
    pub(super) element: u32,
    /// Number of the table's element.
    pub(super) table: u32,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) row_span: usize,
    pub(super) column_span: usize,
    /// It heads a row or column.
    pub(super) header: bool,
}

/// A font, as far as layout cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Font {
    /// PostScript name without subset prefix; empty when unknown.
    pub(super) name: String,
    /// Weight of 600 and above.
    pub(super) bold: bool,
    /// Italic or oblique.
    pub(super) italic: bool,
    /// All characters equally wide.
    pub(super) monospace: bool,
    /// Its characters are symbols, whatever letters they are encoded as.
    pub(super) dingbats: bool,
}

/// A straight horizontal or vertical line; thin filled rectangles count as such.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rule {
    /// Left.
    pub(super) x0: f32,
    /// Top.
    pub(super) y0: f32,
    /// Right; equal to `x0` for a vertical line.
    pub(super) x1: f32,
    /// Bottom; equal to `y0` for a horizontal line.
    pub(super) y1: f32,
}

impl Rule {
    pub(super) fn is_horizontal(&self) -> bool {
        self.x1 - self.x0 > self.y1 - self.y0
    }
}

/// A link annotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkArea {
    /// `[x0, y0, x1, y1]`, several for a link over several lines; never none.
    pub(super) boxes: Vec<[f32; 4]>,
    /// Its URI.
    pub(super) url: String,
}

/// What is drawn on one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PageContent {
    /// Width as displayed.
    pub(super) width: f32,
    /// Height as displayed.
    pub(super) height: f32,
    /// Characters in the order they are drawn.
    pub(super) glyphs: Vec<Glyph>,
    /// The characters as segments by direction, where they are put together already.
    pub(super) parts: Option<Vec<(Frame, Vec<Segment>)>>,
    /// Number of [`UNKNOWN`] characters.
    pub(super) unmapped: usize,
    /// Number of characters drawn invisibly, as text recognition adds them to a scan.
    pub(super) hidden: usize,
    /// Ruling lines.
    pub(super) rules: Vec<Rule>,
    /// The tags of the glyphs; the first says nothing.
    pub(super) tags: Vec<Tag>,
    /// The cells of tables whose rows are on the page.
    pub(super) cells: Vec<TaggedCell>,
    /// Filled rectangles that are no lines, `[x0, y0, x1, y1]`: shading.
    pub(super) fills: Vec<[f32; 4]>,
    /// Boxes of curves and slanted lines, `[x0, y0, x1, y1]`, clipped to the page.
    pub(super) shapes: Vec<[f32; 4]>,
    /// Links.
    pub(super) links: Vec<LinkArea>,
    /// Whether a raster image is drawn.
    pub(super) has_images: bool,
    /// Boxes of raster images, `[x0, y0, x1, y1]`, clipped to the page.
    pub(super) images: Vec<[f32; 4]>,
    /// Descriptions the file has for raster images, with the images' boxes.
    pub(super) descriptions: Vec<([f32; 4], String)>,
    /// Resolution of the largest raster image that covers a good part of the page; 0 without one.
    pub(super) image_dpi: f32,
    /// Milliseconds it took to read the page.
    pub(super) ms: f64,
    /// Number of content streams that could not be decoded.
    pub(super) lost_parts: usize,
    /// Number of content streams that are damaged: what follows the damage may be missing or wrong.
    pub(super) damaged_parts: usize,
    /// Number of points and curves of the paths drawn.
    pub(super) drawings: usize,
    /// Characters that are not seen; unless they are all there is, they are not among the glyphs.
    pub(super) unseen: Hidden,
    /// Angle by which the page was straightened before its text was placed, in radians, clockwise.
    pub(super) angle: f32,
    /// How it was read.
    pub(super) route: Route,
    /// Why.
    pub(super) reason: RouteReason,
    /// What recognition says of the page, when it was recognised.
    pub(super) recognised: Option<Recognised>,
    /// Why text that only recognition could give is missing.
    pub(super) not_recognised: Option<String>,
}

/// What recognition says of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recognised {
    /// Mean confidence, 0 to 100.
    pub(super) confidence: f32,
    /// Models used, the one of most text first.
    pub(super) languages: Vec<String>,
    /// The words, on the page as it was straightened.
    pub(super) words: Vec<ReadWord>,
}

/// A recognised word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReadWord {
    pub(super) text: String,
    /// `[x0, y0, x1, y1]`.
    pub(super) bbox: [f32; 4],
    /// How sure the recogniser is, 0 to 100.
    pub(super) confidence: f32,
}

/// An entry of the document outline (bookmarks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineEntry {
    /// Its text.
    pub(super) title: String,
    /// 0 for the top level.
    pub(super) depth: u32,
}

/// Why a page could not be read, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) &'static str);

/// An opened document.
pub(super) trait PageSource {
    /// Number of pages.
    fn page_count(&self) -> usize;
    /// Size of the displayed page, `(width, height)`.
    fn page_size(&self, index: usize) -> (f32, f32);
    /// Reads one page; `index` counts from 0.
    fn read_page(&mut self, index: usize) -> Result<PageContent, Unreadable>;
    /// The fonts seen so far.
    fn fonts(&self) -> &[Font];
    /// The outline, flattened in reading order.
    fn outline(&self) -> Vec<OutlineEntry>;
}
