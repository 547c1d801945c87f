//! What calls cost.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What calls cost. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Calls, however often each was tried.
    pub calls: u64,
    /// Requests sent beyond the first of each call.
    pub retries: u64,
    /// Tokens of the input, as the provider counts them; 0 where it doesn't tell.
    pub tokens_in: u64,
    /// Tokens of the output, as the provider counts them; 0 where it doesn't tell.
    pub tokens_out: u64,
    /// Milliseconds from the first request to the last answer, waits between retries included and the wait
    /// for a free place not. In sums, calls that ran at the same time count each.
    pub millis: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.retries = self.retries.saturating_add(other.retries);
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.millis = self.millis.saturating_add(other.millis);
    }
}
