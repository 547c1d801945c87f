//! Paragraphs that run over the end of a column or of a page.

use super::block::Block;
use super::frame::Frame;
use super::line::union;
use super::text::{append_line, bullet_length};

/// Blocks at the foot of a column that may stand between the parts: footnotes.
const MAX_NOTES: usize = 4;
/// Ratio of font sizes that are the same.
const SAME_SIZE: f32 = 1.04;
/// Shortest text, in bytes, that is taken for a broken paragraph.
const MIN_TEXT: usize = 40;

/// Joins the parts of paragraphs; `pages` hold the blocks of each page in reading order.
pub(super) fn join_paragraphs(pages: &mut [Vec<(Frame, Block)>]) {
    for (index, page) in pages.iter_mut().enumerate() {
        let mut joined: Vec<(Frame, Block)> = Vec::with_capacity(page.len());
        for (frame, block) in page.drain(..) {
            let open = before(&mut joined, &block);
            match open {
                Some((other, a))
                    if *other == frame
                        && (begins_column(a, &block) || breaks_word(a, &block))
                        && runs_on(a, &block) =>
                {
                    append_line(&mut a.text, &block.text);
                    place(a, index);
                    a.places.push((index, block.bbox));
                    a.bbox = union(a.bbox, block.bbox);
                    a.lines += block.lines;
                }
                _ => joined.push((frame, block)),
            }
        }
        *page = joined;
    }
    for index in (1..pages.len()).rev() {
        let (earlier, later) = pages.split_at_mut(index);
        let (Some(page), Some(next)) = (earlier.last_mut(), later.first_mut()) else {
            continue;
        };
        let Some((frame, first)) = next.first() else { continue };
        let open = before(page, first);
        if let Some((other, block)) = open
            && other.direction == frame.direction
            && runs_on(block, first)
        {
            append_line(&mut block.text, &first.text);
            place(block, index - 1);
            if first.places.is_empty() {
                block.places.push((index, first.bbox));
            }
            block.places.extend(&first.places);
            block.lines += first.lines;
            next.remove(0);
        }
    }
}

/// Notes where a block stands before others are joined to it.
fn place(block: &mut Block, page: usize) {
    if block.places.is_empty() {
        block.places.push((page, block.bbox));
    }
}

/// The last block that is set as large as `block`; footnotes may stand between.
fn before<'b>(blocks: &'b mut [(Frame, Block)], block: &Block) -> Option<&'b mut (Frame, Block)> {
    let near = blocks.iter_mut().rev().take(MAX_NOTES);
    near.into_iter().find(|(_, other)| other.size * SAME_SIZE > block.size)
}

/// Whether `b` stands beside or above the end of `a`, where the next column begins.
fn begins_column(a: &Block, b: &Block) -> bool {
    b.bbox[1] < a.bbox[1].max(a.bbox[3] - 1.0)
}

/// Whether a word at the end of `a` goes on in `b` right below, as in a title over a column and more.
fn breaks_word(a: &Block, b: &Block) -> bool {
    let below = b.bbox[1] - a.bbox[3];
    let broken = a
        .text
        .strip_suffix('-')
        .is_some_and(|text| text.ends_with(char::is_lowercase));
    broken && b.text.starts_with(char::is_lowercase) && (-0.3 * a.size..a.size).contains(&below)
}

/// Whether `b` goes on in the middle of a sentence of `a`, in the same type.
fn runs_on(a: &Block, b: &Block) -> bool {
    let plain = |block: &Block| block.table.is_none() && !block.tabular && !block.text.is_empty();
    let size = a.size.max(b.size) < SAME_SIZE * a.size.min(b.size);
    let ends = a
        .text
        .trim_end_matches(['"', '”', '’', ')', '»', ']'])
        .ends_with(['.', '!', '?', ':', ';', '。', '！', '？']);
    let goes_on =
        b.text.starts_with(char::is_lowercase) || (a.text.ends_with('-') && b.text.starts_with(char::is_alphabetic));
    plain(a)
        && plain(b)
        && size
        && a.bold == b.bold
        && a.monospace == b.monospace
        && a.text.len() >= MIN_TEXT
        && b.marker.is_none()
        && bullet_length(&b.text).is_none()
        && !ends
        && goes_on
}
