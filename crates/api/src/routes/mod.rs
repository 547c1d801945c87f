//! One module per resource.

pub(crate) mod events;
pub(crate) mod jobs;
pub(crate) mod output;
pub(crate) mod service;
pub(crate) mod templates;
