//! The one place that reads the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use docmill_model::time::Micros;

/// The current instant.
pub fn now() -> Micros {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as Micros)
}
