//! Calls of a node's model: from the kept answers where they are there, else paid for, within the budget.

use std::collections::HashMap;
use std::sync::Arc;

use docmill_model::Code;
use docmill_model::provider::ModelRef;
use docmill_nodes::chat::ChatRequest as Question;
use docmill_nodes::embed::check;
use docmill_providers::{
    Chat, ChatAnswer, ChatRequest, Embedder, Finish, Image, ImageType, JsonSchema, Message, Part, ProviderError,
    Purpose, Secret, Usage,
};
use docmill_store::Cost;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::failure::{code, is_final};
use super::{Ledger, Models, NodeFailure};

/// Keys looked up at once.
const LOOKED_UP: usize = 1_000;

/// What makes the question about each of a node's items; `None` where there is none.
pub(super) type Make = Arc<dyn Fn(usize) -> Option<Question> + Send + Sync>;

/// The calls of one node for one file.
pub(super) struct Calls<'a> {
    pub(super) models: &'a Models,
    pub(super) ledger: &'a dyn Ledger,
    /// Position of the node.
    pub(super) node: u32,
    pub(super) model: &'a ModelRef,
    /// The node's own key.
    pub(super) key: Option<Secret>,
}

/// What came of one question.
pub(super) struct Outcome {
    /// The key of its answer.
    pub(super) key: String,
    /// The items that ask it.
    pub(super) items: Vec<usize>,
    pub(super) answer: Result<String, ItemFailure>,
    /// What was paid for it; none where it was kept.
    pub(super) cost: Option<Cost>,
}

/// Why an item got no answer.
#[derive(Clone, Debug)]
pub(super) struct ItemFailure {
    pub(super) code: Code,
    pub(super) message: String,
}

impl ItemFailure {
    pub(super) fn unusable(message: impl ToString) -> Self {
        Self {
            code: Code::ProviderAnswerInvalid,
            message: message.to_string(),
        }
    }
}

/// What names an answer: who was asked, where, and what.
#[derive(Serialize)]
struct Asked<'a, R> {
    model: &'a ModelRef,
    base_url: Option<&'a str>,
    request: R,
}

impl Calls<'_> {
    /// Calls made at a time.
    pub(super) fn at_once(&self) -> usize {
        self.models
            .providers()
            .settings(self.model.provider)
            .concurrency
            .clamp(1, 1_024)
    }

    /// The provider's address, where it is set.
    pub(super) fn base_url(&self) -> Option<String> {
        self.models.providers().settings(self.model.provider).base_url
    }

    pub(super) fn chat(&self) -> Result<Arc<dyn Chat>, NodeFailure> {
        let providers = self.models.providers();
        Ok(providers.chat(self.model.provider, &self.model.model, self.key.as_ref())?)
    }

    /// Asks one question.
    pub(super) async fn ask(&self, question: Question) -> Result<Outcome, NodeFailure> {
        let make: Make = Arc::new(move |_| Some(question.clone()));
        let outcomes = self.ask_all(1, make, 1).await?;
        let none = || NodeFailure::new(Code::Internal, "a question was not asked");
        outcomes.into_iter().next().ok_or_else(none)
    }

    /// Asks the questions about `items` items, equal ones once, some at a time. Ends at the first failure that
    /// no other question escapes: a refused key, a spent budget.
    pub(super) async fn ask_all(&self, items: usize, make: Make, at_once: usize) -> Result<Vec<Outcome>, NodeFailure> {
        let questions = self.questions(items, make.clone()).await?;
        let keys: Vec<_> = questions.iter().map(|(key, _)| key.clone()).collect();
        let kept = self.kept(&keys).await?;
        let kept: HashMap<_, _> = kept.into_iter().collect();
        let (mut outcomes, mut open) = (Vec::new(), Vec::new());
        for (key, items) in questions {
            match kept.get(&key).and_then(|bytes| String::from_utf8(bytes.clone()).ok()) {
                Some(answer) => outcomes.push(Outcome {
                    key,
                    items,
                    answer: Ok(answer),
                    cost: None,
                }),
                None => open.push((key, items)),
            }
        }
        if open.is_empty() {
            return Ok(outcomes);
        }
        let chat = self.chat()?;
        let calls = open.into_iter().map(|(key, items)| {
            let question = items.first().and_then(|item| make(*item));
            self.pay(chat.as_ref(), key, items, question)
        });
        let mut answers = stream::iter(calls).buffer_unordered(at_once.max(1));
        while let Some(answer) = answers.next().await {
            outcomes.push(answer?);
        }
        Ok(outcomes)
    }

    /// The keys of the questions, each with the items that ask it, in order.
    async fn questions(&self, items: usize, make: Make) -> Result<Vec<(String, Vec<usize>)>, NodeFailure> {
        let base_url = self.base_url();
        let model = self.model.clone();
        let keys = tokio::task::spawn_blocking(move || {
            let key = |question| answer_key(&model, base_url.as_deref(), question);
            let asked = (0..items).filter_map(|item| Some((item, key(make(item)?))));
            asked.collect::<Vec<_>>()
        })
        .await
        .map_err(|error| NodeFailure::new(Code::Internal, format!("the questions could not be made: {error}")))?;
        let mut places = HashMap::<String, usize>::new();
        let mut questions: Vec<(String, Vec<usize>)> = Vec::new();
        for (item, key) in keys {
            let place = *places.entry(key.clone()).or_insert(questions.len());
            match questions.get_mut(place) {
                Some((_, items)) => items.push(item),
                None => questions.push((key, vec![item])),
            }
        }
        Ok(questions)
    }

    /// The kept answers to some of these keys; their use is noted.
    pub(super) async fn kept(&self, keys: &[String]) -> Result<Vec<(String, Vec<u8>)>, NodeFailure> {
        let mut kept = Vec::new();
        for some in keys.chunks(LOOKED_UP) {
            kept.extend(self.ledger.answers(some).await?);
        }
        if !kept.is_empty() {
            let cost = Cost {
                cached: kept.len() as u64,
                ..self.cost(&Usage::default())
            };
            metrics::counter!("docmill_model_answers_kept_total", "provider" => self.model.provider.as_str())
                .increment(cost.cached);
            let used = kept.iter().map(|(key, _)| key.clone()).collect();
            self.ledger.record(self.node, cost, Vec::new(), used).await?;
        }
        Ok(kept)
    }

    /// Asks the model. The answer is durable on return.
    pub(super) async fn pay(
        &self,
        chat: &dyn Chat,
        key: String,
        items: Vec<usize>,
        question: Option<Question>,
    ) -> Result<Outcome, NodeFailure> {
        let request = match question.map(request) {
            Some(Ok(request)) => request,
            Some(Err(failure)) => {
                return Ok(Outcome {
                    key,
                    items,
                    answer: Err(failure),
                    cost: None,
                });
            }
            None => {
                return Err(NodeFailure::new(
                    Code::Internal,
                    "a question was made once and not again",
                ));
            }
        };
        let request = clamped(request, &self.model.model);
        self.within_budget().await?;
        let (answer, cost) = match chat.complete(&request).await {
            Ok(answer) => {
                let cost = self.cost(&answer.usage);
                self.note(&cost, "answered");
                let answer = usable(answer);
                let keep = answer.as_ref().map(|text| (key.clone(), text.clone().into_bytes()));
                self.ledger
                    .record(self.node, cost.clone(), keep.into_iter().collect(), Vec::new())
                    .await?;
                (answer, cost)
            }
            Err(error) => {
                let cost = self.failed(&error).await?;
                let failure = ItemFailure {
                    code: code(error.kind),
                    message: error.to_string(),
                };
                (Err(failure), cost)
            }
        };
        Ok(Outcome {
            key,
            items,
            answer,
            cost: Some(cost),
        })
    }

    /// Notes and tells what a failed call cost; an error when no other call can go better.
    async fn failed(&self, error: &ProviderError) -> Result<Cost, NodeFailure> {
        let cost = self.cost(&error.usage);
        self.note(&cost, error.kind.as_str());
        self.ledger
            .record(self.node, cost.clone(), Vec::new(), Vec::new())
            .await?;
        match is_final(error.kind) {
            true => Err(error.clone().into()),
            false => Ok(cost),
        }
    }

    /// The vectors of texts, which are all different, in their order.
    pub(super) async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, NodeFailure> {
        let base_url = self.base_url();
        let keys: Vec<_> = texts
            .iter()
            .map(|text| answer_key(self.model, base_url.as_deref(), Embed { embed: text }))
            .collect();
        let mut vectors = HashMap::new();
        for (key, bytes) in self.kept(&keys).await? {
            vectors.insert(key, from_bytes(&bytes));
        }
        let open = texts
            .into_iter()
            .zip(&keys)
            .filter(|(_, key)| !vectors.contains_key(*key));
        let open: Vec<(String, String)> = open.map(|(text, key)| (key.clone(), text)).collect();
        if !open.is_empty() {
            let providers = self.models.providers();
            let embedder = providers.embedder(self.model.provider, &self.model.model, self.key.as_ref())?;
            let batches = batches(open, embedder.as_ref());
            let calls = batches
                .into_iter()
                .map(|batch| self.pay_batch(embedder.as_ref(), batch));
            let mut answers = stream::iter(calls).buffer_unordered(self.at_once());
            while let Some(batch) = answers.next().await {
                vectors.extend(batch?);
            }
        }
        let all: Vec<_> = keys.iter().filter_map(|key| vectors.remove(key)).collect();
        if let Err(error) = check(&all, keys.len(), None) {
            // Kept vectors and new ones may differ: the model behind a name has changed. All are asked for anew.
            self.ledger.forget(keys).await?;
            return Err(NodeFailure::new(
                Code::ProviderAnswerInvalid,
                format!("{}: {error}", self.model.provider),
            ));
        }
        Ok(all)
    }

    async fn pay_batch(
        &self,
        embedder: &dyn Embedder,
        batch: Vec<(String, String)>,
    ) -> Result<Vec<(String, Vec<f32>)>, NodeFailure> {
        let (keys, texts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        self.within_budget().await?;
        let embedded = match embedder.embed(&texts, Purpose::Document).await {
            Ok(embedded) => embedded,
            Err(error) => {
                self.failed(&error).await?;
                return Err(error.into());
            }
        };
        let cost = self.cost(&embedded.usage);
        self.note(&cost, "answered");
        let checked = check(&embedded.vectors, texts.len(), embedder.limits().dims);
        let keep = match &checked {
            Ok(()) => keys
                .iter()
                .cloned()
                .zip(embedded.vectors.iter().map(|vector| to_bytes(vector)))
                .collect(),
            Err(_) => Vec::new(),
        };
        self.ledger.record(self.node, cost, keep, Vec::new()).await?;
        checked.map_err(|error| {
            NodeFailure::new(Code::ProviderAnswerInvalid, format!("{}: {error}", self.model.provider))
        })?;
        Ok(keys.into_iter().zip(embedded.vectors).collect())
    }

    async fn within_budget(&self) -> Result<(), NodeFailure> {
        let Some(budget) = self.models.config().budget else {
            return Ok(());
        };
        let spent = self.ledger.spent().await?;
        if spent < budget {
            return Ok(());
        }
        let unit = |micros: i64| micros as f64 / 1e6;
        Err(NodeFailure::new(
            Code::BudgetExceeded,
            format!(
                "the workspace has spent {:.6} of its {:.6} for this month: {} is not called any more (setting \
                 `budget.per_workspace_per_month`)",
                unit(spent),
                unit(budget),
                self.model
            ),
        ))
    }

    fn cost(&self, usage: &Usage) -> Cost {
        Cost {
            model: self.model.to_string(),
            calls: usage.calls,
            cached: 0,
            retries: usage.retries,
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            millis: usage.millis,
            price: self.models.price(self.model).map(|price| price.micros(usage)),
        }
    }

    fn note(&self, cost: &Cost, outcome: &'static str) {
        let provider = self.model.provider.as_str();
        metrics::counter!("docmill_model_calls_total", "provider" => provider, "outcome" => outcome)
            .increment(cost.calls);
        metrics::counter!("docmill_model_retries_total", "provider" => provider).increment(cost.retries);
        for (direction, tokens) in [("in", cost.tokens_in), ("out", cost.tokens_out)] {
            metrics::counter!("docmill_model_tokens_total", "provider" => provider, "direction" => direction)
                .increment(tokens);
        }
        metrics::histogram!("docmill_model_call_seconds", "provider" => provider).record(cost.millis as f64 / 1e3);
        let price = u64::try_from(cost.price.unwrap_or(0)).unwrap_or(0);
        metrics::counter!("docmill_model_price_micros_total", "provider" => provider).increment(price);
    }
}

/// The key of an answer: SHA-256 of who is asked, where, and what.
pub(super) fn answer_key(model: &ModelRef, base_url: Option<&str>, request: impl Serialize) -> String {
    let asked = Asked {
        model,
        base_url,
        request,
    };
    let mut digest = Digester(Sha256::new());
    // Values with text keys always serialise, and a digest takes all bytes.
    let _ = serde_json::to_writer(&mut digest, &asked);
    hex::encode(digest.0.finalize())
}

/// A text to embed, as it is named.
#[derive(Serialize)]
struct Embed<'a> {
    embed: &'a str,
}

/// Feeds a digest.
struct Digester(Sha256);

impl std::io::Write for Digester {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A question in the words of the providers' crate.
fn request(question: Question) -> Result<ChatRequest, ItemFailure> {
    let mut parts = Vec::new();
    for picture in question.pictures {
        let media = ImageType::from_mime(&picture.mime_type);
        let image = media.and_then(|media| Image::from_base64(media, &picture.base64));
        let image = image.ok_or_else(|| ItemFailure {
            code: Code::ProviderInvalid,
            message: "its picture is no base64 of a PNG, JPEG, GIF or WebP file".into(),
        })?;
        parts.push(Part::Image(image));
    }
    parts.push(Part::Text(question.user));
    Ok(ChatRequest {
        system: Some(question.system).filter(|system| !system.is_empty()),
        messages: vec![Message::user(parts)],
        schema: question.schema.map(|schema| JsonSchema {
            name: schema.name,
            schema: schema.schema,
            strict: true,
        }),
        max_tokens: question.max_tokens,
        temperature: Some(0.0),
    })
}

/// Models that refuse to be asked for more tokens than they can write: a part of the name, and the tokens.
const ANSWER_TOKENS: &[(&str, u32)] = &[
    ("claude-3-opus", 4_096),
    ("claude-3-sonnet", 4_096),
    ("claude-3-haiku", 4_096),
    ("claude-3-5", 8_192),
    ("nova-", 5_000),
    ("gpt-4o-2024-05-13", 4_096),
    ("gpt-4-turbo", 4_096),
    ("gpt-3.5", 4_096),
    ("gemini-1.5", 8_192),
    ("gemini-2.0", 8_192),
];

fn clamped(mut request: ChatRequest, model: &str) -> ChatRequest {
    if let Some((_, most)) = ANSWER_TOKENS.iter().find(|(part, _)| model.contains(part)) {
        request.max_tokens = request.max_tokens.min(*most);
    }
    request
}

/// The text of an answer that is whole: half a table reads like a table.
fn usable(answer: ChatAnswer) -> Result<String, ItemFailure> {
    let id = |answer: &ChatAnswer| {
        answer
            .request_id
            .as_ref()
            .map(|id| format!(" (request id {id})"))
            .unwrap_or_default()
    };
    match answer.finish {
        Finish::Length => Err(ItemFailure::unusable(format!(
            "the model's answer was cut at the limit of its length{}",
            id(&answer)
        ))),
        Finish::Refused => Err(ItemFailure::unusable(format!(
            "the model refuses to answer{}",
            id(&answer)
        ))),
        Finish::Complete | Finish::Other => Ok(answer.text),
    }
}

/// Texts, as many at a time as one request takes and at least one.
fn batches(texts: Vec<(String, String)>, embedder: &dyn Embedder) -> Vec<Vec<(String, String)>> {
    let limits = embedder.limits();
    let mut batches: Vec<Vec<_>> = Vec::new();
    let mut chars = 0_usize;
    for (key, text) in texts {
        let length = text.chars().count();
        let fits = |batch: &Vec<_>| {
            batch.len() < limits.max_texts.max(1) && chars.saturating_add(length) <= limits.max_batch_chars
        };
        match batches.last_mut().filter(|batch| fits(batch)) {
            Some(batch) => batch.push((key, text)),
            None => {
                chars = 0;
                batches.push(vec![(key, text)]);
            }
        }
        chars = chars.saturating_add(length);
    }
    batches
}

fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}
