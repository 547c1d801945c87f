//! Reader of PDF files: their text layer, laid out.
//!
//! The engine gives characters with their places; everything after that is pure: characters to
//! segments of text ([`segment`]), repeated lines taken out ([`furniture`]), segments into reading
//! order ([`order`]), lines and paragraphs ([`block`]), kinds of elements ([`roles`]).

mod aligned;
mod block;
mod device;
mod document;
mod engine;
mod fonts;
mod frame;
mod furniture;
mod grid;
mod hayro;
mod line;
mod links;
mod order;
mod roles;
mod script;
mod segment;
mod spacing;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use crate::context::Context;
use crate::error::PartitionError;

pub(crate) fn partition(bytes: &Arc<Vec<u8>>, cx: &mut Context) -> Result<(), PartitionError> {
    if bytes.is_empty() {
        return Err(PartitionError::Empty("PDF"));
    }
    let pdf = hayro::open(bytes, cx.options.password.as_deref())?;
    document::partition(&mut hayro::HayroSource::new(&pdf), cx)
}
