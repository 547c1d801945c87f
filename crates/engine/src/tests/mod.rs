//! The engine over a real store, with sources, destinations and child processes that are made up.

mod files;
mod firing;
mod listing;
mod notify;
mod settings;
mod world;
