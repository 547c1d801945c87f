//! One module per resource.

pub(crate) mod connectors;
pub(crate) mod destinations;
pub(crate) mod events;
pub(crate) mod jobs;
pub(crate) mod nodes;
pub(crate) mod output;
pub(crate) mod service;
pub(crate) mod sources;
pub(crate) mod templates;
pub(crate) mod workflows;
