//! Element metadata: sparse, every field optional.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A box on a page and the page's size, in one coordinate system with y pointing down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    /// Corners, counter-clockwise from the top left: `[[x1,y1],[x1,y2],[x2,y2],[x2,y1]]`.
    pub points: [[f64; 2]; 4],
    /// `PixelSpace`: for a PDF read from its text layer the unit is the PDF point of the page.
    pub system: CoordinateSystem,
    /// Page width in the same unit.
    pub layout_width: f64,
    /// Page height in the same unit.
    pub layout_height: f64,
}

impl Coordinates {
    /// The box `[x1, y1, x2, y2]` (left, top, right, bottom) on a page of the given size.
    pub fn from_bbox(bbox: [f64; 4], layout_width: f64, layout_height: f64) -> Self {
        let [x1, y1, x2, y2] = bbox;
        Self {
            points: [[x1, y1], [x1, y2], [x2, y2], [x2, y1]],
            system: CoordinateSystem::PixelSpace,
            layout_width,
            layout_height,
        }
    }

    /// The smallest upright box `[x1, y1, x2, y2]` around the points.
    pub fn bbox(&self) -> [f64; 4] {
        let mut b = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
        for [x, y] in self.points {
            b = [b[0].min(x), b[1].min(y), b[2].max(x), b[3].max(y)];
        }
        b
    }
}

/// Names of coordinate systems on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoordinateSystem {
    /// Origin top left, y down, unit as stated by the layout size.
    PixelSpace,
    /// Origin bottom left, y up, unit point.
    PointSpace,
    /// Fractions of the page, origin bottom left, y up.
    RelativeCoordinateSystem,
}

/// A hyperlink within an element's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The linked text.
    pub text: String,
    /// Its target.
    pub url: String,
    /// Offset of the linked text in the element's text, in Unicode code points; -1 when unknown.
    pub start_index: i64,
}

/// Where part of a chunk stands: a page and, when known, the box around that part on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageSpan {
    /// Page number, the first is 1.
    pub page_number: u32,
    /// `[x1, y1, x2, y2]`, y down, in the unit of the elements' coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbox: Option<[f64; 4]>,
}

macro_rules! metadata {
    ($($(#[$attr:meta])* $name:ident: $ty:ty, $empty:literal;)+) => {
        /// Metadata of one element. A field that is null, an empty list or an empty object is not
        /// serialised; fields docmill does not know survive a round trip in [`Metadata::extra`].
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Metadata {
            $($(#[$attr])*
            #[serde(default, skip_serializing_if = $empty)]
            pub $name: $ty,)+
            /// Where the element stands when `coordinates` were not asked for: what the page spans of
            /// chunks are made from. Never serialised.
            #[serde(skip)]
            pub place: Option<Coordinates>,
            /// Fields unknown to docmill.
            #[serde(flatten)]
            pub extra: Map<String, Value>,
        }
    };
}

metadata! {
    /// Base name of the file.
    filename: Option<String>, "Option::is_none";
    /// Folder of the file, when it was read from one.
    file_directory: Option<String>, "Option::is_none";
    /// MIME type of the document as detected.
    filetype: Option<String>, "Option::is_none";
    /// When the file was last modified, `YYYY-MM-DDTHH:MM:SS`; for mail its Date header.
    last_modified: Option<String>, "Option::is_none";
    /// Languages of the text, ISO 639-3.
    languages: Vec<String>, "Vec::is_empty";
    /// Page, slide or sheet the element stands on; the first is 1.
    page_number: Option<u32>, "Option::is_none";
    /// Name of the sheet.
    page_name: Option<String>, "Option::is_none";
    /// Depth of a heading or list item, 0 at the top.
    category_depth: Option<u32>, "Option::is_none";
    /// Id of the element this one belongs under, such as the heading above a paragraph.
    parent_id: Option<String>, "Option::is_none";
    /// Where the element stands on its page.
    coordinates: Option<Coordinates>, "Option::is_none";
    /// A table as HTML.
    text_as_html: Option<String>, "Option::is_none";
    /// How the table was found: `grid`, `tatr` or `vlm`.
    table_extraction_method: Option<String>, "Option::is_none";
    /// How the element's page was read, of a PDF or a picture: `fast`, `hi_res`, `ocr_only` or `vlm`.
    routing: Option<String>, "Option::is_none";
    /// Texts of links, parallel to `link_urls`.
    link_texts: Vec<String>, "Vec::is_empty";
    /// Targets of links, parallel to `link_texts`.
    link_urls: Vec<String>, "Vec::is_empty";
    /// Links with their offsets.
    links: Vec<Link>, "Vec::is_empty";
    /// Emphasised runs of text, parallel to `emphasized_text_tags`.
    emphasized_text_contents: Vec<String>, "Vec::is_empty";
    /// `b`, `i` or `bi`, parallel to `emphasized_text_contents`.
    emphasized_text_tags: Vec<String>, "Vec::is_empty";
    /// `primary`, `first_page` or `even_page`.
    header_footer_type: Option<String>, "Option::is_none";
    /// Address of a linked picture.
    image_url: Option<String>, "Option::is_none";
    /// A picture's bytes in base64.
    image_base64: Option<String>, "Option::is_none";
    /// MIME type of `image_base64`.
    image_mime_type: Option<String>, "Option::is_none";
    /// Subject of a mail.
    subject: Option<String>, "Option::is_none";
    /// Senders of a mail.
    sent_from: Vec<String>, "Vec::is_empty";
    /// Recipients of a mail.
    sent_to: Vec<String>, "Vec::is_empty";
    /// Recipients of a copy.
    cc_recipient: Vec<String>, "Vec::is_empty";
    /// Recipients of a blind copy.
    bcc_recipient: Vec<String>, "Vec::is_empty";
    /// Message-ID of a mail, without angle brackets.
    email_message_id: Option<String>, "Option::is_none";
    /// Name of the mail this file was attached to.
    attached_to_filename: Option<String>, "Option::is_none";
    /// Signature block of a mail.
    signature: Option<String>, "Option::is_none";
    /// Address the document was fetched from.
    url: Option<String>, "Option::is_none";
    /// Where a connector found the document.
    data_source: Option<Value>, "Option::is_none";
    /// Which model or rule wrote which field.
    enrichment_origins: Map<String, Value>, "Map::is_empty";
    /// Chunks: the elements it was made of, see [`crate::orig_elements`].
    orig_elements: Option<String>, "Option::is_none";
    /// Chunks: true on the second and later parts of a split text.
    is_continuation: Option<bool>, "Option::is_none";
    /// Table chunks: shared by all chunks of one table.
    table_id: Option<String>, "Option::is_none";
    /// Table chunks: position within the table's chunks, from 0.
    chunk_index: Option<u32>, "Option::is_none";
    /// Table chunks: header rows repeated at the start.
    num_carried_over_header_rows: Option<u32>, "Option::is_none";
    /// Chunks: the pages, and boxes on them, the chunk was taken from.
    page_spans: Vec<PageSpan>, "Vec::is_empty";
    /// Chunks: ids of the elements it was made of, in order.
    source_element_ids: Vec<String>, "Vec::is_empty";
}
