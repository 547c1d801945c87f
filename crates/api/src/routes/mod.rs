//! One module per resource.

pub(crate) mod channels;
pub(crate) mod connectors;
pub(crate) mod deliveries;
pub(crate) mod destinations;
pub(crate) mod events;
pub(crate) mod jobs;
pub(crate) mod nodes;
pub(crate) mod notifications;
pub(crate) mod output;
pub(crate) mod service;
pub(crate) mod sources;
pub(crate) mod templates;
pub(crate) mod unsubscribe;
pub(crate) mod workflows;
