//! The child process: one file, from bytes to the output of each node.

use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;

use docmill_engine::protocol::{TaskDone, TaskFailed, TaskRequest};
use docmill_model::chain::NodeWork;
use docmill_model::element::make_ids_unique;
use docmill_model::settings::{ExtractMethod, ExtractOptions, OutputMode, Pattern};
use docmill_model::{Code, Element};
use docmill_nodes::chunk::chunk;
use docmill_nodes::extract::{self, Extracted, match_patterns};
use docmill_ocr::Ocr;
use docmill_partition::{Input, PartitionError, Recognition, Tools, partition_with};
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
    let mut elements: Vec<Element> = Vec::new();
    let mut warnings = Vec::new();
    let mut routes = Vec::new();
    let mut pages = 0;
    let mut inspection = None;
    for (index, node) in (0u32..).zip(task.chain.nodes()) {
        match &node.work {
            // Every page would have to go to the model.
            NodeWork::Partition(options) if options.vlm.as_ref().is_none_or(|vlm| vlm.is_dynamic) => {
                // Taken, so that the file's bytes are free again once they have been read.
                let input = input.take().ok_or_else(|| internal("two partition nodes".into()))?;
                let document = partition_with(&input, options, &task.limits, &tools, &mut |progress| {
                    frames.progress(
                        progress.pages_done,
                        progress.pages_total,
                        u32::try_from(progress.elements).unwrap_or(u32::MAX),
                    );
                })
                .map_err(|error| TaskFailed {
                    code: error.code(),
                    message: error.to_string(),
                    needs_ocr: error == PartitionError::OcrNeeded,
                })?;
                if task.inspect {
                    inspection = docmill_partition::inspect(&input, &document, options, &task.limits)
                        .map_err(|error| internal(format!("the file could not be opened again: {error}")))?;
                }
                elements = document.elements;
                pages = document.pages.len() as u64;
                warnings.extend(document.warnings);
                routes = document.routes;
                add_file_metadata(&mut elements, &task);
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
    })
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

fn add_file_metadata(elements: &mut [Element], task: &TaskRequest) {
    for element in elements {
        let metadata = &mut element.metadata;
        if metadata.last_modified.is_none() {
            metadata.last_modified.clone_from(&task.last_modified);
        }
        metadata.file_directory.clone_from(&task.file_directory);
        metadata.data_source.clone_from(&task.data_source);
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // The values are plain structs with string keys, which always serialise.
    serde_json::to_vec(value).unwrap_or_default()
}
