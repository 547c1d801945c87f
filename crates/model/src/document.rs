//! What partitioning one file yields.

use serde::{Deserialize, Serialize};

use crate::element::Element;
use crate::words::text_enum;

/// A partitioned document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The elements in reading order.
    pub elements: Vec<Element>,
    /// Pages, slides or sheets, when the format has them.
    #[serde(default)]
    pub pages: Vec<PageInfo>,
    /// What was not done, or not fully.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// How each page was read, for formats whose pages can be read in several ways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<PageRoute>,
}

/// How a page was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageRoute {
    /// Page number, the first is 1.
    pub page_number: u32,
    /// The way that was taken.
    pub route: Route,
    /// Why.
    pub reason: RouteReason,
    /// Milliseconds it took to read the page, without the layout of the whole document. Of a page that a
    /// model read, those of its calls alone.
    pub ms: f64,
    /// Characters that were found, white space not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub characters: u32,
    /// Characters of the text layer that have no Unicode value and were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmapped: u32,
    /// Mean confidence of recognised text, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// Languages the text was recognised in, as the recogniser names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// What a vision model was asked about the page, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<PageCall>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The calls of a vision model for one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageCall {
    /// The model, as `provider/model`.
    pub model: String,
    /// Calls that were made; none where an answer was kept from an earlier one.
    pub calls: u64,
    /// Requests sent beyond the first of each call.
    #[serde(default)]
    pub retries: u64,
    /// Tokens of the questions.
    pub tokens_in: u64,
    /// Tokens of the answers.
    pub tokens_out: u64,
    /// Price in millionths; none where the model's price is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<i64>,
}

text_enum! {
    #[derive(Default)]
    /// Ways to read a page, by the strategy that stands for them.
    Route {
        /// The text layer alone.
        #[default]
        Fast = "fast",
        /// The text layer with tables or figures, or with OCR of the pictures that cover the page.
        HiRes = "hi_res",
        /// OCR of the whole page.
        OcrOnly = "ocr_only",
        /// A vision model.
        Vlm = "vlm",
    }
}

text_enum! {
    #[derive(Default)]
    /// Why a page was read the way it was.
    RouteReason {
        /// The text layer is trustworthy and all there is.
        #[default]
        TextLayer = "text_layer",
        /// The text layer is trustworthy, and there are tables or figures.
        TablesOrFigures = "tables_or_figures",
        /// The text layer leaves out what the pictures on the page say.
        PicturesWithText = "pictures_with_text",
        /// The page is a picture, or drawn, and has no text layer.
        NoTextLayer = "no_text_layer",
        /// The text layer has too many characters without meaning.
        TextLayerUnreadable = "text_layer_unreadable",
        /// Nothing is on the page.
        BlankPage = "blank_page",
        /// The settings ask for it.
        AskedFor = "asked_for",
        /// Only recognition could read the page, and there was none.
        RecognitionMissing = "recognition_missing",
        /// docmill's own engine can't read the page, or the file; PDFium, the second engine, did.
        SecondEngine = "second_engine",
        /// The page's content can't be read from the file.
        PageUnreadable = "page_unreadable",
        /// Recognition was too unsure of its text.
        LowConfidence = "low_confidence",
        /// Something is drawn on the page, and no text of it could be found.
        NoTextFound = "no_text_found",
        /// A vision model was asked and gave nothing that can be used.
        ModelFailed = "model_failed",
    }
}

/// One page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageInfo {
    /// Page number, the first is 1.
    pub number: u32,
    /// Width in points, when the format fixes it.
    pub width: Option<f64>,
    /// Height in points, when the format fixes it.
    pub height: Option<f64>,
}

/// Something a reader of the output should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable code.
    pub code: WarningCode,
    /// What happened, for people.
    pub message: String,
    /// The page it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_number: Option<u32>,
    /// The element it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_id: Option<String>,
}

impl Warning {
    /// A warning about the whole document.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            page_number: None,
            element_id: None,
        }
    }

    /// A warning about one page.
    pub fn on_page(code: WarningCode, page_number: u32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            page_number: Some(page_number),
            element_id: None,
        }
    }
}

/// The closed list of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// The file held content but no element came out.
    NoElements,
    /// A page without a text layer was not read, because there is no OCR.
    OcrNotDone,
    /// A page was recognised with so little confidence that its text may be wrong.
    OcrDoubtful,
    /// Pictures were asked for as `image_base64` and left out.
    ImageBlocksNotExtracted,
    /// A part of the file could not be read and was skipped.
    PartUnreadable,
    /// Text that is in the file but that nobody sees on the page was left out.
    TextHidden,
    /// Bytes that are no text in the file's encoding were replaced.
    EncodingReplaced,
    /// Something ended at a limit: the output is not the whole document.
    Truncated,
    /// An embedded or attached file was not partitioned.
    AttachmentSkipped,
    /// The local engine read a page, or a file, that a vision model was to read.
    PageReadLocally,
    /// A model's answer for an element could not be had or not be used; the element is as it was.
    ElementNotEnriched,
    /// The file's content is what its workflow processed last, so nothing was done.
    Unchanged,
}
