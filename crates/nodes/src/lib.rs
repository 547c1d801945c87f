//! The nodes that work on elements rather than on bytes: pure functions, no I/O, no clock.
//!
//! [`chunk::chunk`] groups and splits elements into chunks of a bounded size.

pub mod chunk;
mod markup;
