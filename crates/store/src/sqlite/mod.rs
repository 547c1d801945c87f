//! The SQLite store: one writer that commits in groups, a few readers, WAL, `synchronous=FULL`.

mod channels;
mod claims;
mod codes;
mod connectors;
mod deletion;
mod deliveries;
mod delivery_ends;
mod delivery_log;
mod events;
mod firings;
mod inbox;
mod jobs;
mod keys;
mod lifecycle;
mod listed_pages;
mod listings;
mod naming;
mod open;
mod page_routes;
mod paid;
mod rows;
mod slugs;
mod store;
mod upkeep;
mod workflow_list;
mod workflows;
mod writer;

#[cfg(test)]
mod tests;

pub use open::{Slots, SqliteStore};
