//! The child process: one file, from bytes to the output of each node.

use std::path::Path;
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
use docmill_partition::{Input, PartitionError, Recognition, Tools, draw, partition_with};
use docmill_sandbox::{FrameWriter, Request};
use serde::Serialize;

/// Pages recognised at once at most: each takes some 200 MB.
const MAX_THREADS: usize = 4;

/// Locks the process down, works on the one file it is sent, and ends.
///
/// `tessdata` is the folder of the recogniser's models, if it is not one of the usual ones. Only a child
/// that is started to recognise text loads the recogniser, before it locks itself down.
pub(crate) fn main(tessdata: Option<&Path>) -> ! {
    docmill_sandbox::child_main_prepared(
        || Ocr::open(tessdata).map_err(|error| error.to_string()),
        |request: Request, frames: &mut FrameWriter, ocr| match work(request, frames, ocr.as_ref()) {
            Ok(done) => frames.done(&json(&done)),
            Err(failed) => frames.failed(&json(&failed)),
        },
    )
}

fn work(request: Request, frames: &mut FrameWriter, ocr: Option<&Result<Ocr, String>>) -> Result<TaskDone, TaskFailed> {
    let task: TaskRequest =
        serde_json::from_slice(&request.request).map_err(|error| internal(format!("unreadable request: {error}")))?;
    let tools = Tools {
        recognition: match ocr {
            None => Recognition::OnRequest,
            Some(Ok(ocr)) => Recognition::Ready(ocr),
            Some(Err(reason)) => Recognition::Absent(reason),
        },
        threads: available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS)),
    };
    let mut input = Some(Input {
        bytes: Arc::new(request.input),
        filename: task.filename.clone(),
        content_type: task.content_type.clone(),
    });
    if let (Some(pages), Some(input)) = (&task.draw, &input) {
        return draw_pages(input, &task, pages, frames);
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
                let document = partition_with(&input, options, &task.limits, &tools, &mut |progress| {
                    frames.progress(
                        progress.pages_done,
                        progress.pages_total,
                        u32::try_from(progress.elements).unwrap_or(u32::MAX),
                    );
                })
                .map_err(|error| failed(&error))?;
                if task.inspect {
                    inspection = docmill_partition::inspect(&input, &document, options, &task.limits)
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
    let drawing = draw(input, options, &task.limits, pages, &mut |page| {
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
        needs_ocr: *error == PartitionError::OcrNeeded,
    }
}

fn internal(message: String) -> TaskFailed {
    TaskFailed {
        code: Code::Internal,
        message,
        needs_ocr: false,
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
