//! What each kind of node does with a file's elements: what is pure runs on a thread that may block, what calls
//! a model goes through [`Calls`].

use std::collections::HashMap;
use std::sync::Arc;

use docmill_model::document::WarningCode;
use docmill_model::settings::{
    ChunkOptions, ContextOptions, EmbedOptions, LlmExtraction, OutputMode, Pattern, PromptOptions, SimilarityOptions,
    TableMergeOptions,
};
use docmill_model::{Code, Element, Warning};
use docmill_nodes::chunk::{chunk, chunk_by_similarity, needs_vector};
use docmill_nodes::contextual::{self, Document};
use docmill_nodes::embed::{self, BatchLimits, EmbedError};
use docmill_nodes::extract::{self, Extracted};
use docmill_nodes::{AnswerError, merge, prompt};

use super::calls::{Calls, ItemFailure, Make, Outcome};
use super::{Content, NodeFailure};

/// Warnings about elements that one node leaves.
pub(super) const MAX_WARNINGS: usize = 50;

/// All texts at once: they are put into batches later, when it is known which are new.
const ALL: BatchLimits = BatchLimits {
    max_texts: usize::MAX,
    max_chars: usize::MAX,
};

/// Runs work that calls nobody on a thread that may block. A panic in it fails the file and nothing else.
pub(super) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NodeFailure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| NodeFailure::new(Code::Internal, format!("it broke off: {error}")))
}

/// Elements out of the hands of those who only read them.
fn back(elements: Arc<Vec<Element>>) -> Vec<Element> {
    Arc::try_unwrap(elements).unwrap_or_else(|shared| shared.as_ref().clone())
}

pub(super) async fn chunked(
    elements: Vec<Element>,
    options: ChunkOptions,
    scope: &str,
) -> Result<Vec<Element>, NodeFailure> {
    let scope = scope.to_owned();
    apart(move || chunk(elements, &options, &scope)).await
}

pub(super) async fn by_patterns(
    elements: Vec<Element>,
    patterns: Vec<Pattern>,
    mode: OutputMode,
) -> Result<Content, NodeFailure> {
    apart(move || {
        let data = extract::match_patterns(&patterns, &elements).map_err(|error| {
            NodeFailure::new(Code::Internal, format!("a checked pattern does not compile: {error}"))
        })?;
        Ok(extract::output(elements, data, mode, None).into())
    })
    .await?
}

impl From<Extracted> for Content {
    fn from(extracted: Extracted) -> Self {
        match extracted {
            Extracted::Elements(elements) => Self::Elements(elements),
            Extracted::Data(data) => Self::Data(data),
        }
    }
}

impl Calls<'_> {
    /// An enrichment: one question for each element that it applies to.
    pub(super) async fn enrich(
        &self,
        elements: Vec<Element>,
        options: &PromptOptions,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Element>, NodeFailure> {
        let elements = Arc::new(elements);
        let (shared, of) = (elements.clone(), options.clone());
        let make: Make = Arc::new(move |index| prompt::request(&of, shared.get(index)?));
        let outcomes = self.ask_all(elements.len(), make, self.at_once()).await?;
        let mut elements = back(elements);
        let apply = |element: &mut Element, answer: &str| prompt::apply(options, element, answer);
        self.apply(&mut elements, outcomes, apply, warnings).await?;
        Ok(elements)
    }

    /// Context in front of each chunk.
    pub(super) async fn contextualize(
        &self,
        elements: Vec<Element>,
        options: &ContextOptions,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Element>, NodeFailure> {
        let Some(document) = Document::of(&elements, options) else {
            return Ok(elements);
        };
        let elements = Arc::new(elements);
        let (shared, of) = (elements.clone(), options.clone());
        let make: Make = Arc::new(move |index| {
            let chunk = shared.get(index).filter(|chunk| contextual::applies(chunk))?;
            Some(contextual::request(&of, &document, chunk))
        });
        let outcomes = self.ask_all(elements.len(), make, self.at_once()).await?;
        let mut elements = back(elements);
        let apply = |element: &mut Element, answer: &str| contextual::apply(options, element, answer);
        self.apply(&mut elements, outcomes, apply, warnings).await?;
        Ok(elements)
    }

    /// Writes answers into their elements. What can't be used leaves its element as it is, and a warning; if
    /// nothing can be used, the node failed.
    async fn apply(
        &self,
        elements: &mut [Element],
        outcomes: Vec<Outcome>,
        apply: impl Fn(&mut Element, &str) -> Result<(), AnswerError>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), NodeFailure> {
        let (mut failures, mut useless) = (Vec::new(), Vec::new());
        let mut applied = 0_usize;
        for outcome in outcomes {
            let mut unusable = false;
            for index in outcome.items {
                let Some(element) = elements.get_mut(index) else {
                    continue;
                };
                let written = match &outcome.answer {
                    Ok(answer) => apply(element, answer).map_err(|error| {
                        unusable = true;
                        ItemFailure::unusable(error)
                    }),
                    Err(failure) => Err(failure.clone()),
                };
                match written {
                    Ok(()) => applied += 1,
                    Err(failure) => failures.push((index, failure)),
                }
            }
            if unusable {
                useless.push(outcome.key);
            }
        }
        if !useless.is_empty() {
            self.ledger.forget(useless).await?;
        }
        failures.sort_by_key(|(index, _)| *index);
        match failures.first() {
            Some((_, first)) if applied == 0 => Err(NodeFailure::new(
                first.code,
                format!("no element of {} could be done: {}", failures.len(), first.message),
            )),
            _ => {
                warn(elements, &failures, warnings);
                Ok(())
            }
        }
    }

    /// Tables that run over a page's end, made one.
    pub(super) async fn merge_tables(
        &self,
        elements: Vec<Element>,
        options: &TableMergeOptions,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<Element>, NodeFailure> {
        let pairs = Arc::new(merge::candidates(&elements));
        let elements = Arc::new(elements);
        let (shared, of) = (elements.clone(), pairs.clone());
        let make: Make = Arc::new(move |place| {
            let (first, second) = of.get(place)?;
            Some(merge::request(shared.get(*first)?, shared.get(*second)?))
        });
        let at_once = self.at_once().min(options.max_concurrency);
        let outcomes = self.ask_all(pairs.len(), make, at_once).await?;
        let (mut accepted, mut failures, mut useless) = (Vec::new(), Vec::new(), Vec::new());
        let mut judged = 0_usize;
        for outcome in outcomes {
            let asked = outcome.items.iter().filter_map(|place| pairs.get(*place).copied());
            let verdict = match &outcome.answer {
                Ok(answer) => merge::read(answer).map_err(ItemFailure::unusable),
                Err(failure) => Err(failure.clone()),
            };
            match verdict {
                Ok(verdict) => {
                    judged += 1;
                    accepted.extend(asked.filter(|_| merge::accepts(options, verdict)));
                }
                Err(failure) => {
                    failures.extend(asked.map(|(first, _)| (first, failure.clone())));
                    if outcome.answer.is_ok() {
                        useless.push(outcome.key);
                    }
                }
            }
        }
        if !useless.is_empty() {
            self.ledger.forget(useless).await?;
        }
        if let Some((_, first)) = failures.first().filter(|_| judged == 0) {
            return Err(NodeFailure::new(
                first.code,
                format!("no table could be judged: {}", first.message),
            ));
        }
        failures.sort_by_key(|(index, _)| *index);
        warn(&elements, &failures, warnings);
        let model = options.model.clone();
        let elements = back(elements);
        apart(move || merge::merge(elements, &accepted, &model)).await
    }

    /// A vector for each element.
    pub(super) async fn embed_elements(
        &self,
        mut elements: Vec<Element>,
        options: &EmbedOptions,
    ) -> Result<Vec<Element>, NodeFailure> {
        let too_long = |error: EmbedError| NodeFailure::new(Code::NodeInputTooLong, error);
        let batches = embed::plan(&elements, options.limits, ALL).map_err(too_long)?;
        let items = batches.into_iter().flatten();
        let (texts, places): (Vec<_>, Vec<_>) = items.map(|item| (item.text.to_owned(), item.elements)).unzip();
        let vectors = self.embed(texts).await?;
        let dimensions = options.limits.map(|limits| limits.dimensions);
        embed::write(&mut elements, &places, vectors, dimensions)
            .map_err(|error| NodeFailure::new(Code::ProviderAnswerInvalid, format!("{}: {error}", self.model)))?;
        Ok(elements)
    }

    /// Chunks of what is about the same.
    pub(super) async fn chunk_similar(
        &self,
        elements: Vec<Element>,
        options: &SimilarityOptions,
        scope: &str,
    ) -> Result<Vec<Element>, NodeFailure> {
        let wanted = |element: &Element| needs_vector(element, &options.chunks);
        let limits = docmill_model::chain::catalog::embed_limits(self.model.provider, &self.model.model);
        let items = embed::plan_clipped(&elements, wanted, limits, ALL)
            .into_iter()
            .flatten();
        let (texts, places): (Vec<_>, Vec<_>) = items.map(|item| (item.text.to_owned(), item.elements)).unzip();
        let found = self.embed(texts).await?;
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; elements.len()];
        for (places, vector) in places.into_iter().zip(found) {
            for place in places {
                if let Some(slot) = vectors.get_mut(place) {
                    *slot = Some(vector.clone());
                }
            }
        }
        let (options, scope) = (options.clone(), scope.to_owned());
        apart(move || chunk_by_similarity(elements, &vectors, &options.chunks, options.threshold, &scope)).await
    }

    /// Data of the whole document, with one more try for an answer that is not as the schema says.
    pub(super) async fn extract(
        &self,
        elements: Vec<Element>,
        llm: &LlmExtraction,
        mode: OutputMode,
    ) -> Result<Content, NodeFailure> {
        let question =
            extract::request(llm, &elements).map_err(|error| NodeFailure::new(Code::NodeInputTooLong, error))?;
        let (first_key, answer) = self.whole(question.clone()).await?;
        let data = match extract::read(llm, &answer) {
            Ok(data) => data,
            Err(error) => {
                let again = extract::repair_request(&question, &answer, &error);
                let (second_key, answer) = self.whole(again).await?;
                match extract::read(llm, &answer) {
                    Ok(data) => data,
                    Err(error) => {
                        self.ledger.forget(vec![first_key, second_key]).await?;
                        return Err(NodeFailure::new(
                            Code::ProviderAnswerInvalid,
                            format!("{}: {error}", self.model),
                        ));
                    }
                }
            }
        };
        let model = self.model.clone();
        apart(move || extract::output(elements, data, mode, Some(&model)).into()).await
    }

    /// The answer to a question that the whole file depends on, and its key.
    async fn whole(&self, question: docmill_nodes::chat::ChatRequest) -> Result<(String, String), NodeFailure> {
        let outcome = self.ask(question).await?;
        match outcome.answer {
            Ok(answer) => Ok((outcome.key, answer)),
            Err(failure) => Err(NodeFailure::new(failure.code, failure.message)),
        }
    }
}

/// Tells of elements that stay as they were.
fn warn(elements: &[Element], failures: &[(usize, ItemFailure)], warnings: &mut Vec<Warning>) {
    for (index, failure) in failures.iter().take(MAX_WARNINGS) {
        let Some(element) = elements.get(*index) else { continue };
        warnings.push(Warning {
            code: WarningCode::ElementNotEnriched,
            message: failure.message.clone(),
            page_number: element.metadata.page_number,
            element_id: Some(element.element_id.clone()),
        });
    }
    if failures.len() > MAX_WARNINGS {
        let mut reasons = HashMap::<&str, usize>::new();
        for (_, failure) in failures.iter().skip(MAX_WARNINGS) {
            *reasons.entry(failure.code.as_str()).or_default() += 1;
        }
        let mut reasons: Vec<_> = reasons
            .into_iter()
            .map(|(code, count)| format!("{count} {code}"))
            .collect();
        reasons.sort();
        warnings.push(Warning::new(
            WarningCode::ElementNotEnriched,
            format!(
                "and {} more elements: {}",
                failures.len() - MAX_WARNINGS,
                reasons.join(", ")
            ),
        ));
    }
}
