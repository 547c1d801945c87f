//! Which node may stand where.

use serde_json::{Value, json};

use super::{Node, NodeWork, Problem};
use crate::settings::{EmbedOptions, PartitionOptions, PromptOptions, PromptTask, Strategy};

/// Checks that `node` may stand behind the nodes `before`, and lets each know what it needs of the other:
/// the partitioner which pictures to keep, OCR which elements are meant.
pub(super) fn check_place(before: &mut [Node], node: &mut Node, at: &[Value], problems: &mut Vec<Problem>) {
    let mut problem = |path: &[&str], msg: &str| {
        let path = path.iter().map(|name| json!(name));
        let loc: Vec<_> = at.iter().cloned().chain(path).collect();
        problems.push(Problem::new(&loc, "value_error", msg));
    };
    if let Err(msg) = after_all(before, &node.work) {
        return problem(&[], msg);
    }
    match &mut node.work {
        NodeWork::Prompt(options) => {
            if let Err(msg) = prompter(before, options) {
                problem(&[], msg);
            }
        }
        NodeWork::Embed(options) => {
            if let Err(msg) = fits_embedder(before, options) {
                problem(&["settings", "model_name"], &msg);
            }
        }
        _ => {}
    }
}

fn after_all(before: &[Node], work: &NodeWork) -> Result<(), &'static str> {
    let has = |is: fn(&NodeWork) -> bool| before.iter().any(|node| is(&node.work));
    let partitioned = has(|work| matches!(work, NodeWork::Partition(_)));
    if matches!(work, NodeWork::Partition(_)) {
        return match (partitioned, before.is_empty()) {
            (true, _) => Err("a chain has exactly one partition node"),
            (_, false) => Err("the partition node comes first"),
            _ => Ok(()),
        };
    }
    if !partitioned {
        return Err(match work {
            NodeWork::Chunk(_) => "a chunk node comes after the partition node",
            _ => "the chain begins with a partition node",
        });
    }
    if has(|work| matches!(work, NodeWork::Embed(_))) {
        return Err("nothing comes after an embed node, as its vectors are those of the final texts");
    }
    if has(NodeWork::yields_data_alone) {
        return Err(
            "nothing comes after an extractor with `output_mode: extracted_data_only`, which leaves no elements",
        );
    }
    let chunked = has(NodeWork::makes_chunks);
    let contextual = has(|work| {
        matches!(work, NodeWork::Contextualize(_))
            || matches!(work, NodeWork::Chunk(options) if options.contextual.is_some())
    });
    match work {
        NodeWork::Chunk(_) | NodeWork::ChunkBySimilarity(_) if chunked => {
            Err("a chain has at most one node that makes chunks")
        }
        NodeWork::Contextualize(_) if !chunked => Err("`chunk_by_contextual` comes after a node that makes chunks"),
        NodeWork::Contextualize(_) if contextual => Err("the chunks have context already"),
        NodeWork::MergeTables(_) if has(|work| matches!(work, NodeWork::MergeTables(_))) => {
            Err("a chain has at most one `chunk_by_table_merging`")
        }
        NodeWork::Extract(_) if has(|work| matches!(work, NodeWork::Extract(_))) => {
            Err("a chain has at most one extractor")
        }
        _ => Ok(()),
    }
}

fn prompter(before: &mut [Node], options: &mut PromptOptions) -> Result<(), &'static str> {
    let task = options.task;
    let twice = |node: &Node| matches!(&node.work, NodeWork::Prompt(other) if other.task == task);
    if before.iter().any(twice) {
        return Err("a node before this one does the same, so its result would be replaced");
    }
    if task == PromptTask::Ner {
        return Ok(());
    }
    if before.iter().any(|node| node.work.makes_chunks()) {
        return Err("pictures and tables are enriched before they are chunked: move this node before the chunk node");
    }
    let partition = before.iter_mut().find_map(|node| match &mut node.work {
        NodeWork::Partition(partition) => Some(partition),
        _ => None,
    });
    match partition {
        Some(partition) => with_partition(partition, options),
        None => Ok(()),
    }
}

fn with_partition(partition: &mut PartitionOptions, options: &mut PromptOptions) -> Result<(), &'static str> {
    if partition.strategy == Strategy::Fast {
        return Err(
            "the strategy `fast` finds no pictures or tables to enrich: use `hi_res` or `auto` in the partition node",
        );
    }
    if partition.vlm.as_ref().is_some_and(|vlm| !vlm.is_dynamic) {
        return Err(
            "a vision model has described pictures and tables already: leave this node out, or set `is_dynamic: true` in the partition node",
        );
    }
    let blocks = &mut partition.extract_image_block_types;
    match options.task {
        // Without its picture there is nothing of an image to describe.
        PromptTask::ImageDescription if !blocks.iter().any(|name| name == "image") => blocks.push("image".into()),
        PromptTask::Ocr if blocks.is_empty() => {
            return Err(
                "OCR reads the pictures of elements whose types `extract_image_block_types` of the partition node lists, and it lists none",
            );
        }
        PromptTask::Ocr => options.block_types.clone_from(blocks),
        _ => {}
    }
    Ok(())
}

/// Chunks that a model can't take would fail after everything before was paid.
fn fits_embedder(before: &[Node], options: &EmbedOptions) -> Result<(), String> {
    let chunks = before.iter().find_map(|node| match &node.work {
        NodeWork::Chunk(chunks) => Some(chunks),
        NodeWork::ChunkBySimilarity(options) => Some(&options.chunks),
        _ => None,
    });
    match (chunks, options.limits) {
        (Some(chunks), Some(limits)) if chunks.tokenizer.is_none() && chunks.max_characters > limits.max_chars => {
            Err(format!(
                "this model takes texts of at most {} characters, and the chunk node's `max_characters` is {}",
                limits.max_chars, chunks.max_characters
            ))
        }
        _ => Ok(()),
    }
}
