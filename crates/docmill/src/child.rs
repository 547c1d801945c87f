//! The child process: one file, from bytes to the output of each node.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use docmill_engine::protocol::{TaskDone, TaskFailed, TaskRequest};
use docmill_model::chain::NodeWork;
use docmill_model::element::make_ids_unique;
use docmill_model::settings::{ExtractMethod, ExtractOptions, OutputMode, Pattern};
use docmill_model::{Code, Element, Warning, WarningCode};
use docmill_nodes::chunk::chunk;
use docmill_nodes::extract::{self, Extracted, match_patterns};
use docmill_ocr::Ocr;
use docmill_partition::{Input, PartitionError, Tool, Tools, draw, partition_with};
use docmill_sandbox::{FrameWriter, Request};
use serde::Serialize;

/// Pages recognised at once at most: each takes some 200 MB.
const MAX_THREADS: usize = 4;

/// What a child is told by its arguments, as it has no environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Libraries {
    /// Folder of the recogniser's models, if it is not one of the usual ones.
    pub(crate) tessdata: Option<PathBuf>,
    /// The second PDF engine, if it is in use.
    pub(crate) pdfium: Option<PathBuf>,
    /// The decoder of HEIC pictures, if it is in use.
    pub(crate) heif: Option<PathBuf>,
}

impl Libraries {
    const TESSDATA: &str = "--tessdata";
    const PDFIUM: &str = "--pdfium";
    const HEIF: &str = "--heif";

    /// As arguments.
    pub(crate) fn args(&self) -> Vec<OsString> {
        let named = [
            (Self::TESSDATA, &self.tessdata),
            (Self::PDFIUM, &self.pdfium),
            (Self::HEIF, &self.heif),
        ];
        named
            .into_iter()
            .filter_map(|(name, path)| Some([name.into(), path.clone()?.into_os_string()]))
            .flatten()
            .collect()
    }

    /// From arguments.
    pub(crate) fn from_args(mut args: impl Iterator<Item = OsString>) -> Self {
        let mut libraries = Self::default();
        while let (Some(name), Some(path)) = (args.next(), args.next()) {
            if name == Self::TESSDATA {
                libraries.tessdata = Some(path.into());
            } else if name == Self::PDFIUM {
                libraries.pdfium = Some(path.into());
            } else if name == Self::HEIF {
                libraries.heif = Some(path.into());
            }
        }
        libraries
    }
}

/// Libraries as they were loaded, or why they were not.
struct Loaded {
    ocr: Result<Ocr, String>,
    pdfium: Option<Result<docmill_pdfium::Library, String>>,
    heif: Option<Result<docmill_heif::Library, String>>,
}

impl Loaded {
    fn load(libraries: &Libraries) -> Self {
        let pdfium = libraries.pdfium.as_deref().map(docmill_pdfium::Library::load);
        let heif = libraries.heif.as_deref().map(docmill_heif::Library::load);
        Self {
            ocr: Ocr::open(libraries.tessdata.as_deref()).map_err(|error| error.to_string()),
            pdfium: pdfium.map(|loaded| loaded.map_err(|error| error.to_string())),
            heif: heif.map(|loaded| loaded.map_err(|error| error.to_string())),
        }
    }
}

fn tool<T>(loaded: &Result<T, String>) -> Tool<'_, T> {
    match loaded {
        Ok(library) => Tool::Ready(library),
        Err(reason) => Tool::Absent(reason),
    }
}

/// Locks the process down, works on the one file it is sent, and ends.
///
/// Only a child that is started for a file that needs them loads libraries, before it locks itself down.
pub(crate) fn main(libraries: &Libraries) -> ! {
    docmill_sandbox::child_main_prepared(
        || Loaded::load(libraries),
        |request: Request, frames: &mut FrameWriter, loaded| {
            let tools = Tools {
                recognition: loaded.as_ref().map_or(Tool::OnRequest, |loaded| tool(&loaded.ocr)),
                pdfium: match &loaded {
                    None => libraries.pdfium.as_ref().map(|_| Tool::OnRequest),
                    Some(loaded) => loaded.pdfium.as_ref().map(tool),
                },
                heif: match &loaded {
                    None => libraries.heif.as_ref().map(|_| Tool::OnRequest),
                    Some(loaded) => loaded.heif.as_ref().map(tool),
                },
                threads: available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS)),
            };
            match work(request, frames, &tools) {
                Ok(done) => frames.done(&json(&done)),
                Err(failed) => frames.failed(&json(&failed)),
            }
        },
    )
}

fn work(request: Request, frames: &mut FrameWriter, tools: &Tools<'_>) -> Result<TaskDone, TaskFailed> {
    let task: TaskRequest =
        serde_json::from_slice(&request.request).map_err(|error| internal(format!("unreadable request: {error}")))?;
    let mut input = Some(Input {
        bytes: Arc::new(request.input),
        filename: task.filename.clone(),
        content_type: task.content_type.clone(),
    });
    if let (Some(pages), Some(input)) = (&task.draw, &input) {
        return draw_pages(input, &task, tools, pages, frames);
    }
    let mut elements: Vec<Element> = Vec::new();
    let mut warnings = Vec::new();
    let mut routes = Vec::new();
    let mut pages = 0;
    let mut inspection = None;
    for (index, node) in (0u32..).zip(task.chain.nodes()) {
        match &node.work {
            // A vision model, if one takes part, is asked by the parent.
            NodeWork::Partition(options) => {
                // Taken, so that the file's bytes are free again once they have been read.
                let input = input.take().ok_or_else(|| internal("two partition nodes".into()))?;
                let document = partition_with(&input, options, &task.limits, tools, &mut |progress| {
                    frames.progress(
                        progress.pages_done,
                        progress.pages_total,
                        u32::try_from(progress.elements).unwrap_or(u32::MAX),
                    );
                })
                .map_err(|error| failed(&error))?;
                if task.inspect {
                    inspection = docmill_partition::inspect(&input, &document, options, (&task.limits, tools))
                        .map_err(|error| internal(format!("the file could not be opened again: {error}")))?;
                }
                elements = document.elements;
                pages = document.pages.len() as u64;
                warnings.extend(document.warnings);
                routes = document.routes;
                task.add_file_metadata(&mut elements);
                if options.unique_element_ids {
                    make_ids_unique(&mut elements, &task.scope);
                }
            }
            NodeWork::Chunk(options) => elements = chunk(elements, options, &task.scope),
            // Without a model for the second pass, what the first found stays.
            NodeWork::Prompt(options) if options.model.is_none() => {}
            NodeWork::Extract(ExtractOptions {
                method: ExtractMethod::Regex(patterns),
                output_mode,
            }) => match extract_by_patterns(elements, patterns, *output_mode)? {
                Extracted::Elements(all) => elements = all,
                Extracted::Data(data) => {
                    frames.output(index, &json(&data));
                    elements = Vec::new();
                    continue;
                }
            },
            _ => {
                return Err(internal(format!(
                    "`{}` calls a model provider, and the child process can't",
                    node.subtype
                )));
            }
        }
        frames.output(index, &json(&elements));
    }
    if task.inspect {
        let nodes = u32::try_from(task.chain.nodes().len()).unwrap_or(u32::MAX);
        frames.output(nodes, &json(&inspection));
    }
    Ok(TaskDone {
        warnings,
        elements: elements.len() as u64,
        pages,
        routes,
        filetype: None,
    })
}

/// Draws pages for the parent to show to a model.
fn draw_pages(
    input: &Input,
    task: &TaskRequest,
    tools: &Tools<'_>,
    pages: &[u32],
    frames: &mut FrameWriter,
) -> Result<TaskDone, TaskFailed> {
    let options = task.chain.nodes().iter().find_map(|node| match &node.work {
        NodeWork::Partition(options) => Some(options),
        _ => None,
    });
    let options = options.ok_or_else(|| internal("pages to draw, and no partition node".into()))?;
    let mut warnings = Vec::new();
    let mut index = 0;
    let drawing = draw(input, options, (&task.limits, tools), pages, &mut |page| {
        let number = options.starting_page_number.saturating_add(page.index);
        let png = page.png.unwrap_or_else(|reason| {
            let message = format!("page {number} can't be shown to a model: {reason}");
            warnings.push(Warning::on_page(WarningCode::PartUnreadable, number, message));
            Vec::new()
        });
        frames.output(index, &png);
        index += 1;
    })
    .map_err(|error| failed(&error))?;
    Ok(TaskDone {
        warnings,
        elements: 0,
        pages: drawing.pages.unwrap_or(0).into(),
        routes: Vec::new(),
        filetype: Some(drawing.filetype.to_owned()),
    })
}

fn failed(error: &PartitionError) -> TaskFailed {
    TaskFailed {
        code: error.code(),
        message: error.to_string(),
        needs_tools: *error == PartitionError::ToolsNeeded,
    }
}

fn internal(message: String) -> TaskFailed {
    TaskFailed {
        code: Code::Internal,
        message,
        needs_tools: false,
    }
}

fn extract_by_patterns(
    elements: Vec<Element>,
    patterns: &[Pattern],
    output_mode: OutputMode,
) -> Result<Extracted, TaskFailed> {
    let data = match_patterns(patterns, &elements)
        .map_err(|error| internal(format!("a checked pattern does not compile: {error}")))?;
    Ok(extract::output(elements, data, output_mode, None))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // The values are plain structs with string keys, which always serialise.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_go_through_arguments() {
        let path = |text: &str| Some(PathBuf::from(text));
        for (tessdata, pdfium, heif) in [
            (None, None, None),
            (path("/models with spaces"), None, path("libheif.so.1")),
            (None, path("libpdfium.so"), None),
            (path("--pdfium"), path("/opt/pdfium/lib/libpdfium.so"), path("--heif")),
        ] {
            let libraries = Libraries { tessdata, pdfium, heif };
            assert_eq!(Libraries::from_args(libraries.args().into_iter()), libraries);
        }
    }
}
