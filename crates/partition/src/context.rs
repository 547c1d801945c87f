//! What a reader works with: options, limits, and the document it builds.

use std::collections::HashMap;

use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;
use docmill_model::{Document, Element, PageInfo, PageRoute, Route, Warning};

use crate::error::PartitionError;

/// How far a reader has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pages done.
    pub pages_done: u32,
    /// Pages there are; 0 for formats without pages.
    pub pages_total: u32,
    /// Elements found so far.
    pub elements: u64,
}

/// What a reader may use beyond the bytes of the file.
#[derive(Clone, Copy, Debug)]
pub struct Tools<'t> {
    /// Recognition of text in pictures. Without it, pages that need it yield a warning and no text.
    pub recognition: Tool<'t, docmill_ocr::Ocr>,
    /// The second PDF engine, for files and pages that docmill's own can't read; `None` when it is not in use.
    pub pdfium: Option<Tool<'t, docmill_pdfium::Library>>,
    /// The decoder of HEIC pictures; without it such files fail with [`PartitionError::Unsupported`].
    pub heif: Option<Tool<'t, docmill_heif::Library>>,
    /// Pages that may be read or recognised at once; at least 1.
    pub threads: usize,
}

impl Default for Tools<'_> {
    /// No recognition, no second engine, no HEIC, one thread.
    fn default() -> Self {
        Self {
            recognition: Tool::Absent("it is not part of this run"),
            pdfium: None,
            heif: None,
            threads: 1,
        }
    }
}

/// A library that is loaded at run time.
#[derive(Debug)]
pub enum Tool<'t, T> {
    /// It can't be had, for the reason given.
    Absent(&'t str),
    /// It could be had: a file that needs it fails with [`PartitionError::ToolsNeeded`], to be partitioned
    /// again with [`Tool::Ready`]. So files that don't need it never wait for it.
    OnRequest,
    /// At hand.
    Ready(&'t T),
}

// Derived, they would ask the same of the library.
impl<T> Clone for Tool<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tool<'_, T> {}

/// Elements between two calls of the progress function.
const ELEMENTS_PER_REPORT: usize = 256;

pub(crate) struct Context<'a> {
    pub(crate) filename: Option<&'a str>,
    pub(crate) options: &'a PartitionOptions,
    pub(crate) limits: &'a ParseLimits,
    /// Files this one is embedded in: 0 for the file itself, 1 for an attachment of it.
    pub(crate) level: u32,
    pub(crate) tools: Tools<'a>,
    document: Document,
    pages_done: u32,
    pages_total: u32,
    progress: &'a mut dyn FnMut(Progress),
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        filename: Option<&'a str>,
        options: &'a PartitionOptions,
        limits: &'a ParseLimits,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Self {
            filename,
            options,
            limits,
            level: 0,
            tools: Tools::default(),
            document: Document::default(),
            pages_done: 0,
            pages_total: 0,
            progress,
        }
    }

    /// The same with tools.
    pub(crate) fn with_tools(mut self, tools: Tools<'a>) -> Self {
        self.tools = tools;
        self
    }

    /// A context for a file found within this one, with a document of its own.
    pub(crate) fn embedded<'b>(&'b mut self, filename: Option<&'b str>) -> Context<'b> {
        Context {
            filename,
            options: self.options,
            limits: self.limits,
            level: self.level + 1,
            tools: self.tools,
            document: Document::default(),
            pages_done: 0,
            pages_total: 0,
            progress: &mut *self.progress,
        }
    }

    /// Adds an element; fails when the document has too many.
    pub(crate) fn push(&mut self, element: Element) -> Result<(), PartitionError> {
        if self.document.elements.len() as u64 >= self.limits.max_elements {
            return Err(PartitionError::limit(
                "max_elements",
                self.limits.max_elements,
                "elements",
            ));
        }
        self.document.elements.push(element);
        if self.document.elements.len().is_multiple_of(ELEMENTS_PER_REPORT) {
            self.report();
        }
        Ok(())
    }

    /// The elements so far.
    pub(crate) fn elements(&self) -> &[Element] {
        &self.document.elements
    }

    /// The elements so far, to amend.
    pub(crate) fn elements_mut(&mut self) -> &mut Vec<Element> {
        &mut self.document.elements
    }

    /// Says how many pages there will be; fails when that is too many.
    pub(crate) fn expect_pages(&mut self, total: usize) -> Result<(), PartitionError> {
        match u32::try_from(total) {
            Ok(total) if total <= self.limits.max_pages => {
                self.pages_total = total;
                Ok(())
            }
            _ => Err(PartitionError::limit(
                "max_pages",
                self.limits.max_pages.into(),
                "pages",
            )),
        }
    }

    /// Records a page that has been read.
    pub(crate) fn page_done(&mut self, page: PageInfo) {
        self.document.pages.push(page);
        self.pages_done += 1;
        self.report();
    }

    /// Records how a page was read.
    pub(crate) fn route(&mut self, route: PageRoute) {
        self.document.routes.push(route);
    }

    /// Says on every element how its page was read.
    pub(crate) fn mark_routes(&mut self) {
        let routes: HashMap<u32, Route> = self
            .document
            .routes
            .iter()
            .map(|route| (route.page_number, route.route))
            .collect();
        for element in &mut self.document.elements {
            let route = element.metadata.page_number.and_then(|page| routes.get(&page));
            element.metadata.routing = route.map(|route| route.as_str().to_owned());
        }
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        self.document.warnings.push(warning);
    }

    pub(crate) fn into_document(self) -> Document {
        self.document
    }

    fn report(&mut self) {
        (self.progress)(Progress {
            pages_done: self.pages_done,
            pages_total: self.pages_total,
            elements: self.document.elements.len() as u64,
        });
    }
}
