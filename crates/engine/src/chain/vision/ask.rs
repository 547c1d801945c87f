//! A model is asked about pages, several at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use docmill_model::settings::{PartitionOptions, VlmOptions};
use docmill_model::{Code, Element, PageCall, RouteReason};
use docmill_nodes::chat::{ChatRequest, Picture};
use docmill_nodes::vlm;
use docmill_providers::Chat;
use docmill_store::Cost;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::sheets::{Sheet, Sheets};
use super::{Failure, Partition};
use crate::chain::NodeFailure;
use crate::chain::calls::{Calls, ItemFailure, Outcome, answer_key};
use crate::chain::nodes::apart;
use crate::running::FileProgress;

/// What came of a page that was shown.
pub(super) struct PageOutcome {
    pub(super) elements: Result<Vec<Element>, ItemFailure>,
    /// Whether it could be shown at all.
    pub(super) drawn: bool,
    pub(super) reason: RouteReason,
    pub(super) call: PageCall,
    /// Milliseconds from the question to the answer.
    pub(super) ms: f64,
}

/// What came of all pages that were shown, by their positions.
pub(super) struct Read {
    pub(super) outcomes: BTreeMap<u32, PageOutcome>,
    /// Pages of the file; none if its format has none to draw.
    pub(super) total: Option<u32>,
    pub(super) filetype: Option<String>,
}

/// The pages of a file and who is asked about them.
pub(super) struct Pages<'a> {
    partition: &'a Partition<'a>,
    vlm: &'a VlmOptions,
    first_number: u32,
    calls: Calls<'a>,
    /// One turn for each question, so that pages that look the same are paid for once.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    done: AtomicU32,
    elements: Mutex<u64>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        partition: &'a Partition<'a>,
        options: &'a PartitionOptions,
        vlm: &'a VlmOptions,
    ) -> Result<Self, NodeFailure> {
        let node = partition.run.chain.nodes().first();
        let node = node.ok_or_else(|| NodeFailure::new(Code::Internal, "a chain without nodes"))?;
        Ok(Self {
            partition,
            vlm,
            first_number: options.starting_page_number,
            calls: partition.run.calls(0, node)?,
            turns: Mutex::default(),
            done: AtomicU32::new(0),
            elements: Mutex::default(),
        })
    }

    /// Shows the pages `wanted`, each for a reason, or all there are.
    ///
    /// # Errors
    /// No call can go better, or a page failed and nobody may stand in. Calls under way are waited for first: they
    /// are paid for, and another attempt finds their answers.
    pub(super) async fn read(&self, wanted: Option<BTreeMap<u32, RouteReason>>) -> Result<Read, Failure> {
        let chat = self.calls.chat()?;
        let named = wanted.as_ref().map(|wanted| wanted.keys().copied().collect());
        let mut sheets = Sheets::new(self.partition, named);
        let first = sheets.next().await?;
        let total = sheets.total.unwrap_or(0);
        if total == 0 {
            return Ok(Read {
                outcomes: BTreeMap::new(),
                total: None,
                filetype: sheets.filetype,
            });
        }
        let filetype = sheets.filetype.clone();
        let asked = wanted
            .as_ref()
            .map_or(total, |wanted| u32::try_from(wanted.len()).unwrap_or(total));
        // Pages that are not shown are done already.
        self.done.store(total.saturating_sub(asked), Ordering::Relaxed);
        let (mut outcomes, mut failure) = (BTreeMap::new(), None);
        let mut under_way = FuturesUnordered::new();
        let mut ready = first;
        let mut drawing = None;
        let mut sheets = Some(sheets);
        loop {
            if let Some(sheet) = ready.take() {
                let reasons = wanted.as_ref().and_then(|wanted| wanted.get(&sheet.index));
                let reason = reasons.copied().unwrap_or(RouteReason::AskedFor);
                under_way.push(self.page(chat.as_ref(), sheet, reason, total).boxed());
            }
            // No more pages are shown of a file that will fail.
            if failure.is_none()
                && let Some(sheets) = sheets.take()
            {
                drawing = Some(advance(sheets).boxed());
            }
            let room = under_way.len() < self.calls.at_once();
            tokio::select! {
                (back, sheet) = next_of(&mut drawing), if drawing.is_some() && room => {
                    drawing = None;
                    match sheet {
                        Ok(Some(sheet)) => (ready, sheets) = (Some(sheet), Some(back)),
                        Ok(None) => {}
                        Err(reason) => failure = failure.or(Some(reason)),
                    }
                }
                Some(answer) = under_way.next(), if !under_way.is_empty() => match answer {
                    Ok((index, outcome)) => drop(outcomes.insert(index, outcome)),
                    Err(reason) => {
                        failure = failure.or(Some(reason));
                        (ready, drawing) = (None, None);
                    }
                },
                else => break,
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Read {
                outcomes,
                total: Some(total),
                filetype,
            }),
        }
    }

    /// Shows a page and tells that it is done.
    async fn page(
        &self,
        chat: &dyn Chat,
        sheet: Sheet,
        reason: RouteReason,
        total: u32,
    ) -> Result<(u32, PageOutcome), Failure> {
        let index = sheet.index;
        let outcome = self.show(chat, sheet, reason).await?;
        self.report(total, &outcome)?;
        Ok((index, outcome))
    }

    /// Tells of a page that is done; fails when there are too many elements.
    fn report(&self, total: u32, outcome: &PageOutcome) -> Result<(), NodeFailure> {
        let found = outcome.elements.as_ref().map_or(0, Vec::len) as u64;
        let elements = {
            let mut elements = self.elements.lock().unwrap_or_else(PoisonError::into_inner);
            *elements += found;
            *elements
        };
        let most = self.partition.request.limits.max_elements;
        if elements > most {
            let message = format!("more than {most} elements (setting `limits.max_elements`)");
            return Err(NodeFailure::new(Code::FileLimitExceeded, message));
        }
        (self.partition.progress)(FileProgress {
            pages_done: self.done.fetch_add(1, Ordering::Relaxed) + 1,
            pages_total: total,
            elements,
            nodes_done: 0,
        });
        Ok(())
    }

    /// Shows one page.
    async fn show(&self, chat: &dyn Chat, sheet: Sheet, reason: RouteReason) -> Result<PageOutcome, Failure> {
        let number = self.first_number.saturating_add(sheet.index);
        let mut call = PageCall {
            model: self.calls.model.to_string(),
            ..PageCall::default()
        };
        let started = Instant::now();
        let (elements, drawn) = match sheet.png {
            Ok(png) => (self.ask(chat, number, png, &mut call).await?, true),
            Err(why) => {
                let failure = ItemFailure {
                    code: Code::FileCorrupt,
                    message: why,
                };
                (Err(failure), false)
            }
        };
        if let Err(failure) = &elements
            && drawn
            && !self.vlm.allow_fast
        {
            let message = format!("page {number}: {}", failure.message);
            return Err(NodeFailure::new(failure.code, message).into());
        }
        Ok(PageOutcome {
            elements,
            drawn,
            reason,
            call,
            ms: (started.elapsed().as_secs_f64() * 1e4).round() / 10.0,
        })
    }

    /// The elements of a page, with one more try for an answer that can't be read.
    async fn ask(
        &self,
        chat: &dyn Chat,
        number: u32,
        png: Bytes,
        call: &mut PageCall,
    ) -> Result<Result<Vec<Element>, ItemFailure>, NodeFailure> {
        let options = self.vlm.clone();
        let question = apart(move || {
            let picture = Picture {
                mime_type: "image/png".into(),
                base64: STANDARD.encode(png),
            };
            vlm::request(&options, picture)
        })
        .await?;
        let (first_key, answer) = self.answer(chat, question.clone(), call).await?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return Ok(Err(failure)),
        };
        let error = match self.elements(answer, number).await? {
            Ok(elements) => return Ok(Ok(elements)),
            Err(error) => error,
        };
        let (second_key, answer) = self.answer(chat, vlm::repair_request(&question, &error), call).await?;
        let failure = match answer {
            Ok(answer) => match self.elements(answer, number).await? {
                Ok(elements) => return Ok(Ok(elements)),
                Err(error) => ItemFailure::unusable(format!("{}: {error}", self.calls.model)),
            },
            Err(failure) => failure,
        };
        self.calls.ledger.forget(vec![first_key, second_key]).await?;
        Ok(Err(failure))
    }

    async fn elements(
        &self,
        answer: String,
        number: u32,
    ) -> Result<Result<Vec<Element>, docmill_nodes::AnswerError>, NodeFailure> {
        let options = self.vlm.clone();
        apart(move || vlm::read(&options, &answer, number)).await
    }

    /// The kept answer to a question, or one that is paid for; and its key.
    async fn answer(
        &self,
        chat: &dyn Chat,
        question: ChatRequest,
        call: &mut PageCall,
    ) -> Result<(String, Result<String, ItemFailure>), NodeFailure> {
        let base_url = self.calls.base_url();
        let model = self.calls.model.clone();
        let (key, question) = apart(move || {
            let key = answer_key(&model, base_url.as_deref(), &question);
            (key, question)
        })
        .await?;
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(key.clone()).or_default().clone()
        };
        let _turn = turn.lock().await;
        let kept = self.calls.kept(std::slice::from_ref(&key)).await?;
        let kept = kept
            .into_iter()
            .next()
            .and_then(|(_, bytes)| String::from_utf8(bytes).ok());
        if let Some(answer) = kept {
            return Ok((key, Ok(answer)));
        }
        let Outcome { answer, cost, .. } = self.calls.pay(chat, key.clone(), Vec::new(), Some(question)).await?;
        if let Some(cost) = cost {
            add(call, &cost);
        }
        Ok((key, answer))
    }
}

type Advance<'a> = (Sheets<'a>, Result<Option<Sheet>, Failure>);

/// The next page, and those behind it.
async fn advance(mut sheets: Sheets<'_>) -> Advance<'_> {
    let sheet = sheets.next().await;
    (sheets, sheet)
}

/// Goes on with what is under way, and may be dropped and called again.
async fn next_of<'a>(drawing: &mut Option<BoxFuture<'a, Advance<'a>>>) -> Advance<'a> {
    match drawing {
        Some(drawing) => drawing.await,
        None => std::future::pending().await,
    }
}

fn add(call: &mut PageCall, cost: &Cost) {
    call.calls += cost.calls;
    call.retries += cost.retries;
    call.tokens_in += cost.tokens_in;
    call.tokens_out += cost.tokens_out;
    call.price = match (call.price, cost.price) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
    };
}
