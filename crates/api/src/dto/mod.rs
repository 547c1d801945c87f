//! The shapes of answers. Nothing else is ever serialised to a client.

mod common;
mod connectors;
mod jobs;
mod nodes;
mod templates;
mod workflows;

pub(crate) use common::*;
pub(crate) use connectors::*;
pub(crate) use jobs::*;
pub(crate) use nodes::*;
pub(crate) use templates::*;
pub(crate) use workflows::*;
