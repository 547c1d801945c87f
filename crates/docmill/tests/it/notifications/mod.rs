//! Notification channels, from the request that creates one to what arrives.
//!
//! docs/notifications-promises.md says which test holds which promise.

mod bad_input;
mod canary;
mod channels;
mod inbox;
mod outbox;
mod story;
mod verification;

/// Where the channels of the workspace are.
const CHANNELS: &str = "/api/v1/notifications/channels";
