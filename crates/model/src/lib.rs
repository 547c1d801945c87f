//! The words docmill speaks: elements, ids, node chains, jobs and error codes.
//!
//! Data and pure functions only: no I/O, no clock, no async. Every other crate may use this one and
//! this one uses none of them.

pub mod chain;
pub mod channel;
pub mod connector;
pub mod document;
pub mod element;
pub mod error;
pub mod hierarchy;
pub mod ids;
pub mod job;
pub mod language;
pub mod limits;
pub mod metadata;
pub mod orig_elements;
pub mod provider;
pub mod python_regex;
pub mod schema;
pub mod settings;
pub mod template;
pub mod time;
mod words;
pub mod workflow;

pub use document::{Document, PageCall, PageInfo, PageRoute, Route, RouteReason, Warning, WarningCode};
pub use element::{Element, ElementType};
pub use error::Code;
pub use metadata::{Coordinates, Link, Metadata, PageSpan};
