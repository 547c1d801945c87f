//! Hostile HTML read without building a tree, and safe HTML written.

pub(crate) mod grid;
pub(crate) mod scan;
pub(crate) mod table;
