//! What a model read and what the local engine read, joined to one document.

use std::collections::BTreeMap;

use docmill_model::document::WarningCode;
use docmill_model::element::make_ids_unique;
use docmill_model::language;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Code, Element, PageRoute, Route, RouteReason, Warning};
use docmill_nodes::vlm;

use super::ask::PageOutcome;
use super::{Failure, Partition, Partitioned};
use crate::chain::nodes::{MAX_WARNINGS, apart};
use crate::chain::{Content, NodeFailure};
use crate::protocol::TaskRequest;

/// What a document is joined from.
pub(super) struct Join {
    request: TaskRequest,
    scope: String,
    options: PartitionOptions,
    /// MIME type of the file, for pages that the model read.
    pub(super) filetype: Option<String>,
    /// Elements of the local engine and how it read pages, if it read the file.
    pub(super) local: Option<(Vec<Element>, Vec<PageRoute>)>,
    pub(super) warnings: Vec<Warning>,
}

impl Join {
    pub(super) fn new(partition: &Partition<'_>, options: &PartitionOptions, filetype: Option<String>) -> Self {
        Self {
            request: partition.request.clone(),
            scope: partition.run.scope.to_owned(),
            options: options.clone(),
            filetype,
            local: None,
            warnings: Vec::new(),
        }
    }

    /// The document of `total` pages. Pages without an outcome are the local engine's, as are those whose outcome is
    /// a failure if it read the file.
    pub(super) async fn finish(self, total: u32, outcomes: BTreeMap<u32, PageOutcome>) -> Result<Partitioned, Failure> {
        if self.local.is_none() && !outcomes.is_empty() && outcomes.values().all(|outcome| !outcome.drawn) {
            return Err(NodeFailure::new(Code::FileCorrupt, "none of its pages can be drawn").into());
        }
        Ok(apart(move || self.join(total, outcomes)).await?)
    }

    fn join(mut self, total: u32, outcomes: BTreeMap<u32, PageOutcome>) -> Partitioned {
        let shown = !outcomes.is_empty();
        let (local, routes) = self.local.take().unwrap_or_default();
        let (mut elements, routes) = if shown {
            self.by_pages(total, outcomes, local, routes)
        } else {
            (local, routes)
        };
        if shown {
            // Headings may be the model's, and what stands under them the local engine's.
            for element in &mut elements {
                element.metadata.parent_id = None;
            }
            vlm::finish(&mut elements);
        }
        elements.retain(|element| !self.options.exclude_elements.contains(&element.kind));
        if self.options.unique_element_ids {
            make_ids_unique(&mut elements, &self.scope);
        }
        self.warnings
            .retain(|warning| warning.code != WarningCode::NoElements || elements.is_empty());
        if shown && elements.is_empty() {
            let none = Warning::new(WarningCode::NoElements, "no text was found on its pages");
            self.warnings.push(none);
        }
        Partitioned {
            content: Content::Elements(elements),
            warnings: self.warnings,
            pages: total.into(),
            routes,
        }
    }

    /// The elements of all pages in order, and how each was read.
    fn by_pages(
        &mut self,
        total: u32,
        mut outcomes: BTreeMap<u32, PageOutcome>,
        local: Vec<Element>,
        routes: Vec<PageRoute>,
    ) -> (Vec<Element>, Vec<PageRoute>) {
        let first = self.options.starting_page_number;
        self.note_pictures(&outcomes);
        self.describe(&mut outcomes, &local);
        let has_local = !routes.is_empty();
        let read_by_model = |number: u32| {
            let outcome = number.checked_sub(first).and_then(|index| outcomes.get(&index));
            outcome.is_some_and(|outcome| outcome.elements.is_ok())
        };
        // What the local engine says of pages that it did not read in the end.
        self.warnings
            .retain(|warning| !warning.page_number.is_some_and(read_by_model));
        let mut local = Pages::of(local);
        let mut routes: BTreeMap<u32, PageRoute> = routes.into_iter().map(|route| (route.page_number, route)).collect();
        let (mut elements, mut taken) = (Vec::new(), Vec::new());
        let mut failures = Vec::new();
        for index in 0..total {
            let number = first.saturating_add(index);
            let route = routes.remove(&number);
            match outcomes.remove(&index) {
                None => {
                    elements.extend(local.take(number));
                    taken.extend(route);
                }
                Some(mut outcome) => match std::mem::replace(&mut outcome.elements, Ok(Vec::new())) {
                    Ok(of_page) => {
                        taken.push(shown(number, &of_page, outcome));
                        elements.extend(of_page);
                    }
                    Err(failure) => {
                        elements.extend(local.take(number));
                        taken.push(not_shown(number, route, outcome));
                        failures.push((number, failure.message));
                    }
                },
            }
        }
        self.warn(failures, has_local);
        (elements, taken)
    }

    /// Tells of elements whose pictures were asked for.
    fn note_pictures(&mut self, outcomes: &BTreeMap<u32, PageOutcome>) {
        let any = outcomes.values().any(|outcome| outcome.elements.is_ok());
        if any && !self.options.extract_image_block_types.is_empty() {
            self.warnings.push(Warning::new(
                WarningCode::ImageBlocksNotExtracted,
                "a model does not tell where elements stand, so those of pages it read have no image_base64",
            ));
        }
    }

    /// Gives the model's elements what is known of their file, and their languages.
    fn describe(&self, outcomes: &mut BTreeMap<u32, PageOutcome>, local: &[Element]) {
        let of_local = || local.iter().find_map(|element| element.metadata.filetype.clone());
        let filetype = self.filetype.clone().or_else(of_local);
        let pages = outcomes
            .values_mut()
            .filter_map(|outcome| outcome.elements.as_mut().ok());
        let mut pages: Vec<&mut Vec<Element>> = pages.collect();
        // Languages are told by the whole document, not by its pages.
        let counts: Vec<usize> = pages.iter().map(|page| page.len()).collect();
        let mut all: Vec<Element> = pages.iter_mut().flat_map(|page| page.drain(..)).collect();
        language::assign(&mut all, &self.options.languages);
        for element in &mut all {
            element.metadata.filename.clone_from(&self.request.filename);
            element.metadata.filetype.clone_from(&filetype);
        }
        self.request.add_file_metadata(&mut all);
        let mut all = all.into_iter();
        for (page, count) in pages.into_iter().zip(counts) {
            page.extend(all.by_ref().take(count));
        }
    }

    /// Tells of pages that were to be read by a model, and were not.
    fn warn(&mut self, failures: Vec<(u32, String)>, has_local: bool) {
        let (code, what) = match has_local {
            true => (WarningCode::PageReadLocally, "was read by the local engine"),
            false => (WarningCode::PartUnreadable, "was skipped"),
        };
        let more = failures.len().saturating_sub(MAX_WARNINGS);
        for (number, reason) in failures.into_iter().take(MAX_WARNINGS) {
            let message = format!("page {number} {what}: {reason}");
            self.warnings.push(Warning::on_page(code, number, message));
        }
        if more > 0 {
            self.warnings
                .push(Warning::new(code, format!("{more} more pages: likewise")));
        }
    }
}

/// The route of a page that a model read.
fn shown(number: u32, elements: &[Element], outcome: PageOutcome) -> PageRoute {
    let chars = |element: &Element| element.text.chars().filter(|ch| !ch.is_whitespace()).count();
    let characters: usize = elements.iter().map(chars).sum();
    PageRoute {
        page_number: number,
        route: Route::Vlm,
        reason: outcome.reason,
        ms: outcome.ms,
        characters: u32::try_from(characters).unwrap_or(u32::MAX),
        unmapped: 0,
        confidence: None,
        languages: Vec::new(),
        call: Some(outcome.call),
    }
}

/// The route of a page that a model could not read: the local engine's, if it read the page.
fn not_shown(number: u32, local: Option<PageRoute>, outcome: PageOutcome) -> PageRoute {
    let drawn = outcome.drawn;
    let reason = if drawn {
        RouteReason::ModelFailed
    } else {
        RouteReason::PageUnreadable
    };
    let call = drawn.then(|| outcome.call.clone());
    let route = local.unwrap_or_else(|| shown(number, &[], outcome));
    PageRoute { reason, call, ..route }
}

/// The elements of the local engine by page.
struct Pages(BTreeMap<u32, Vec<Element>>);

impl Pages {
    fn of(elements: Vec<Element>) -> Self {
        let mut pages = BTreeMap::<u32, Vec<Element>>::new();
        let mut current = 0;
        for element in elements {
            current = element.metadata.page_number.unwrap_or(current);
            pages.entry(current).or_default().push(element);
        }
        Self(pages)
    }

    fn take(&mut self, number: u32) -> Vec<Element> {
        self.0.remove(&number).unwrap_or_default()
    }
}
