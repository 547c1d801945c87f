//! The shapes of answers. Nothing else is ever serialised to a client.

mod channels;
mod common;
mod connectors;
mod jobs;
mod nodes;
mod notifications;
mod spent;
mod templates;
mod workflows;

pub(crate) use channels::*;
pub(crate) use common::*;
pub(crate) use connectors::*;
pub(crate) use jobs::*;
pub(crate) use nodes::*;
pub(crate) use notifications::*;
pub(crate) use templates::*;
pub(crate) use workflows::*;
