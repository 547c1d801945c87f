//! The child process: one file, from bytes to the output of each node.

use std::sync::Arc;

use docmill_engine::protocol::{TaskDone, TaskFailed, TaskRequest};
use docmill_model::chain::NodeWork;
use docmill_model::element::make_ids_unique;
use docmill_model::settings::{ExtractMethod, ExtractOptions, OutputMode, Pattern};
use docmill_model::{Code, Element};
use docmill_nodes::chunk::chunk;
use docmill_nodes::extract::{self, Extracted, match_patterns};
use docmill_partition::{Input, partition};
use docmill_sandbox::{FrameWriter, Request};
use serde::Serialize;

/// Locks the process down, works on the one file it is sent, and ends.
pub(crate) fn main() -> ! {
    docmill_sandbox::child_main(
        |request: Request, frames: &mut FrameWriter| match work(request, frames) {
            Ok(done) => frames.done(&json(&done)),
            Err(failed) => frames.failed(&json(&failed)),
        },
    )
}

fn work(request: Request, frames: &mut FrameWriter) -> Result<TaskDone, TaskFailed> {
    let task: TaskRequest = serde_json::from_slice(&request.request).map_err(|error| TaskFailed {
        code: Code::Internal,
        message: format!("unreadable request: {error}"),
    })?;
    let mut input = Some(Input {
        bytes: Arc::new(request.input),
        filename: task.filename.clone(),
        content_type: task.content_type.clone(),
    });
    let mut elements: Vec<Element> = Vec::new();
    let mut warnings = Vec::new();
    let mut pages = 0;
    for (index, node) in (0u32..).zip(task.chain.nodes()) {
        match &node.work {
            // Every page would have to go to the model.
            NodeWork::Partition(options) if options.vlm.as_ref().is_none_or(|vlm| vlm.is_dynamic) => {
                // Taken, so that the file's bytes are free again once they have been read.
                let input = input.take().ok_or_else(|| TaskFailed {
                    code: Code::Internal,
                    message: "two partition nodes".into(),
                })?;
                let document = partition(&input, options, &task.limits, &mut |progress| {
                    frames.progress(
                        progress.pages_done,
                        progress.pages_total,
                        u32::try_from(progress.elements).unwrap_or(u32::MAX),
                    );
                })
                .map_err(|error| TaskFailed {
                    code: error.code(),
                    message: error.to_string(),
                })?;
                elements = document.elements;
                pages = document.pages.len() as u64;
                warnings.extend(document.warnings);
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
                return Err(TaskFailed {
                    code: Code::Internal,
                    message: format!("`{}` calls a model provider, and the child process can't", node.subtype),
                });
            }
        }
        frames.output(index, &json(&elements));
    }
    Ok(TaskDone {
        warnings,
        elements: elements.len() as u64,
        pages,
    })
}

fn extract_by_patterns(
    elements: Vec<Element>,
    patterns: &[Pattern],
    output_mode: OutputMode,
) -> Result<Extracted, TaskFailed> {
    let data = match_patterns(patterns, &elements).map_err(|error| TaskFailed {
        code: Code::Internal,
        message: format!("a checked pattern does not compile: {error}"),
    })?;
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
