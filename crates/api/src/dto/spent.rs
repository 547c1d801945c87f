//! What calls of models cost, by node and by page.

use docmill_model::PageRoute;
use docmill_store::Cost;
use serde::Serialize;
use utoipa::ToSchema;

/// What calls of models cost.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct CallCost {
    /// The model, as `provider/model`.
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
    /// Calls that were made.
    calls: u64,
    /// Answers that were kept from earlier calls, and cost nothing.
    cached: u64,
    /// Requests sent beyond the first of each call.
    retries: u64,
    /// Tokens of the questions.
    tokens_in: u64,
    /// Tokens of the answers.
    tokens_out: u64,
    /// Time of the calls in milliseconds, each counted for itself.
    duration_ms: u64,
    /// Price, in the unit the model's price is set in; left out where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

impl CallCost {
    pub(super) fn of(cost: Cost) -> Self {
        let mut all = Self::default();
        all.add(&cost);
        all.model = cost.model;
        all
    }

    pub(super) fn add(&mut self, cost: &Cost) {
        self.calls += cost.calls;
        self.cached += cost.cached;
        self.retries += cost.retries;
        self.tokens_in += cost.tokens_in;
        self.tokens_out += cost.tokens_out;
        self.duration_ms += cost.millis;
        if let Some(price) = cost.price {
            // Added in millionths, so that no sum shows rounding.
            let micros = (self.price.unwrap_or(0.0) * 1e6).round() + price as f64;
            self.price = Some(micros / 1e6);
        }
    }
}

/// What the calls of one node cost.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeCost {
    #[schema(format = "uuid")]
    pub(super) node_id: String,
    pub(super) node_name: String,
    #[serde(flatten)]
    pub(super) cost: CallCost,
}

/// How a page was read.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageDetails {
    page_number: u32,
    /// `fast` (the text layer alone), `hi_res` (with tables, figures or recognition of pictures), `ocr_only` or `vlm`.
    route: String,
    /// Why: `text_layer`, `tables_or_figures`, `pictures_with_text`, `no_text_layer`, `text_layer_unreadable`,
    /// `blank_page`, `asked_for`, `recognition_missing`, `page_unreadable`, `second_engine`, `low_confidence`,
    /// `no_text_found` or `model_failed`.
    reason: String,
    /// Milliseconds it took to read the page.
    ms: f64,
    /// Mean confidence of recognised text, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f32>,
    /// Languages the text was recognised in, as the recogniser names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    languages: Vec<String>,
    /// The vision model that was asked, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Calls that were made of it; 0 where its answer was kept from an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    /// Tokens of the questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_in: Option<u64>,
    /// Tokens of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_out: Option<u64>,
    /// Price, in the unit the model's price is set in; left out where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

impl From<PageRoute> for PageDetails {
    fn from(route: PageRoute) -> Self {
        let call = route.call.as_ref();
        Self {
            page_number: route.page_number,
            route: route.route.to_string(),
            reason: route.reason.to_string(),
            ms: route.ms,
            confidence: route.confidence,
            model: call.map(|call| call.model.clone()),
            calls: call.map(|call| call.calls),
            tokens_in: call.map(|call| call.tokens_in),
            tokens_out: call.map(|call| call.tokens_out),
            price: call.and_then(|call| call.price).map(|micros| micros as f64 / 1e6),
            languages: route.languages,
        }
    }
}
